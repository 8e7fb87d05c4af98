"""Gazes with an up: the roll of heads, eyes and other joints that aim."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from synovia.errors import InputError

UP = np.array([0.0, 1.0, 0.0])
BAR = np.radians(1.0)  # a hundred times the tolerance, with room for the fade


def tilt_of(pose, joint="head"):
    """Return the angle between the top of the head and the vertical plane of its gaze, radians."""
    side = pose.rotation(joint).as_matrix() @ (1.0, 0.0, 0.0)
    return float(np.arcsin(np.clip(abs(side @ UP), 0.0, 1.0)))


@pytest.fixture(scope="module")
def free():
    """Return the bundled body without limits, as characters are."""
    body = sy.bundled("humanoid")
    return body.with_joints([replace(joint, limit=None) for joint in body.joints])


def test_a_gaze_around_the_person_leaves_the_head_upright(free):
    head = free.rest_pose().position("head")
    angle = np.linspace(0.0, 2.0 * np.pi, 61)
    points = head + 2.0 * np.stack([np.sin(angle), 0.05 + 0.0 * angle, np.cos(angle)], axis=1)
    track = sy.IK(free, sy.AimGoal("head")).track({"head": points}, free.rest_pose(), fps=30)
    assert track.reached.all()
    assert not track.jumps
    for k in range(61):
        assert tilt_of(track.motion[k]) < BAR


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_head_is_upright_where_the_aim_is_possible(seed):
    """From random poses of neck and head, with axes of the head turned at random."""
    rng = np.random.default_rng(seed)
    body = sy.bundled("humanoid")
    joints = [replace(joint, limit=None) for joint in body.joints]
    row = body.index("head")
    turn = np.eye(4)
    turn[:3, :3] = sy.Rotation.random(random_state=rng).as_matrix()
    joints[row] = replace(joints[row], rest=joints[row].rest @ turn)
    for child in body.children[row]:
        joints[child] = replace(joints[child], rest=turn.T @ joints[child].rest)
    body = body.with_joints(joints)
    q = body.rest_q.copy()
    for name in ("spine", "chest", "neck", "head"):
        q[body.q_slice(name)] = sy.Rotation.from_rotvec(rng.normal(size=3) * 0.4).as_quat()
    pitch, yaw = rng.uniform(-1.2, 1.2), rng.uniform(-np.pi, np.pi)
    way = np.array([np.cos(pitch) * np.sin(yaw), np.sin(pitch), np.cos(pitch) * np.cos(yaw)])
    point = sy.Pose(body, q).position("head") + rng.uniform(1.0, 5.0) * way
    solution = sy.IK(body, sy.AimGoal("head", point)).solve(start=q)
    assert solution.reached
    frame = solution.pose.rotation("head").as_matrix() @ turn[:3, :3].T  # as the head of the bundled body
    assert abs((frame @ (1.0, 0.0, 0.0)) @ UP) < BAR
    assert (frame @ UP) @ UP > 0.0


@pytest.mark.parametrize("solver", ["lm", "full-body", "aim", "dls"])
def test_solvers_agree_and_batches_have_the_same_bits(free, solver):
    ik = sy.IK(free, sy.AimGoal("head", ancestors=0) if solver != "aim" else sy.AimGoal("head"), solver)
    points = free.rest_pose().position("head") + np.array([[2.0, 0.3, 0.5], [-1.0, -0.4, 1.0], [0.2, 0.5, 3.0]])
    many = ik.solve_many({"head": points}, free.rest_q)
    for k, point in enumerate(points):
        one = ik.solve({"head": point}, start=free.rest_pose())
        assert one.reached, solver
        assert tilt_of(one.pose) < BAR
        np.testing.assert_array_equal(one.pose.q, many.q[k])


def test_other_joints_roll_freely_unless_they_get_an_up(free):
    """A hand keeps the roll of the smallest turn; with up, its top points there."""
    point = free.rest_pose().position("left_hand") + np.array([0.4, 1.0, 2.0])
    plain = sy.AimGoal("left_hand", point, axis=(1, 0, 0))
    assert not sy.IK(free, plain).goals[0].takes & 2
    lamp = sy.AimGoal("left_hand", point, axis=(1, 0, 0), top=(0, 0, 1), up=(1, 0, 0))
    solution = sy.solve(free, lamp)
    assert solution.reached
    frame = solution.pose.rotation("left_hand").as_matrix()
    assert abs(frame[:, 1] @ (1.0, 0.0, 0.0)) < BAR
    assert frame[:, 2] @ (1.0, 0.0, 0.0) > 0.0


def test_an_up_may_change_with_the_target(free):
    """A transform as the target has up as its z axis."""
    ik = sy.IK(free, sy.AimGoal("head"))
    target = np.eye(4)
    target[:3, :3] = sy.Rotation.from_euler("y", 90, degrees=True).as_matrix()  # z is now +x
    target[:3, 3] = free.rest_pose().position("head") + np.array([0.0, 0.0, 2.0])
    pose = ik.solve({"head": target}, start=free.rest_pose()).pose
    frame = pose.rotation("head").as_matrix()
    assert abs(frame[0, 0]) < BAR
    assert frame[0, 1] > 0.9
    ahead = ik.solve({"head": target[:3, 3]}, start=free.rest_pose()).pose
    assert tilt_of(ahead) < BAR


def test_straight_up_is_reached_with_any_roll(free):
    head = free.rest_pose().position("head")
    assert sy.IK(free, sy.AimGoal("head", ancestors=0)).solve({"head": head + np.array([0, 3.0, 0])}).reached


def test_a_head_on_two_hinges_rolls_as_they_do():
    """As the necks of robots: yaw and pitch, no roll to choose."""
    body = sy.bundled("humanoid")
    joints = list(body.joints)
    for name, axis in (("neck", (0, 1, 0)), ("head", (1, 0, 0))):
        row = body.index(name)
        joints[row] = replace(joints[row], kind=sy.Kind.HINGE, axis=axis, limit=None, preferred=None)
    goal = sy.IK(body.with_joints(joints), sy.AimGoal("head")).goals[0]
    assert not goal.takes & 2


def test_a_settings_up_takes_the_place_of_the_default_and_not_of_a_given_one(free):
    tilted = sy.IK(free, sy.AimGoal("head"), sy.Aim(up=(1, 1, 0)))
    point = free.rest_pose().position("head") + np.array([0.0, 0.0, 2.0])
    solution = tilted.solve({"head": point})
    assert solution.reached
    assert np.degrees(tilt_of(solution.pose)) == pytest.approx(45.0, abs=0.1)
    with pytest.raises(InputError, match="up: expected no up= in the goal"):
        sy.IK(free, sy.AimGoal("head", up=(0, 1, 0)), sy.Aim(up=(1, 1, 0)))


def test_files_and_texts_have_up_and_top(tmp_path):
    goal = sy.AimGoal("head", (1, 2, 3), up=(0, 0, 2), top=(0, 1, 0))
    assert repr(goal) == "AimGoal('head', point=(1, 2, 3), up=(0, 0, 1), top=(0, 1, 0))"
    sy.write_goals([goal, sy.AimGoal("head", name="plain")], tmp_path / "goals.toml")
    back = sy.read_goals(tmp_path / "goals.toml")
    assert [repr(one) for one in back] == [repr(goal), "AimGoal('head', name='plain')"]
    assert "up" not in (tmp_path / "goals.toml").read_text().split("plain")[0].split("kind")[-1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"up": (0, 0, 0)}, "up: expected a vector"),
        ({"top": (np.nan, 0, 0)}, "top"),
        ({"axis": (0, 0, 1), "top": (0, 0, -2)}, "top: expected a direction at least 18 degrees away from the axis"),
    ],
)
def test_wrong_values_are_refused(values, words):
    with pytest.raises(InputError, match=words):
        sy.AimGoal("head", (1, 2, 3), **values)


EYES = ["left_eye", "LeftEye", "mixamorig:LeftEye", "eye_l", "eye.L", "DEF-eye.L", "lEye", "J_Adj_L_FaceEye"]


def with_eye(name, turn=None):
    """Return the bundled body with an eye whose frame is turned."""
    body = sy.bundled("humanoid")
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = np.eye(3) if turn is None else turn, (0.03, 0.09, 0.08)
    return body.with_joints([*body.joints, sy.Joint(name, "head", sy.Kind.BALL, rest=place)])


@pytest.mark.parametrize("name", EYES)
def test_an_eye_is_known_by_its_name(name):
    assert with_eye(name).roles["left_eye"] == name


@pytest.mark.parametrize("name", ["left_eyelid", "eyebrow.L", "LeftEyeLid"])
def test_lids_and_brows_are_no_eyes(name):
    assert "left_eye" not in with_eye(name).roles


@pytest.mark.parametrize("axes", ["x", "y", "z"])
def test_an_eye_looks_where_the_face_does_however_its_frame_is_turned(axes):
    turn = sy.Rotation.from_euler(axes, -90, degrees=True).as_matrix()
    body = with_eye("left_eye", turn)
    point = np.array([1.0, 1.6, 2.0])
    pose = sy.solve(body, sy.AimGoal("left_eye", point), moving=["left_eye"]).pose
    ahead = pose.matrix("left_eye")[:3, :3] @ turn.T @ (0.0, 0.0, 1.0)
    assert np.degrees(np.arccos(ahead @ _towards(pose, point))) < 0.1
    left = pose.matrix("left_eye")[:3, :3] @ turn.T @ (1.0, 0.0, 0.0)
    assert abs(left @ UP) < np.sin(BAR)


def _towards(pose, point):
    """Return the direction from the left eye to a point."""
    away = point - pose.position("left_eye")
    return away / np.linalg.norm(away)


def test_eyes_have_limits_of_people():
    limited = sy.with_human_limits(with_eye("left_eye"))
    point = limited.rest_pose().position("left_eye") - np.array((0.0, 0.0, 1.0))
    answer = sy.solve(limited, sy.AimGoal("left_eye", point), moving=["left_eye"])
    assert not answer.reached
    rest, turned = limited.rest_pose().rotation("left_eye"), answer.pose.rotation("left_eye")
    assert (rest.inv() * turned).magnitude() < np.radians(60.0)


def lying_at_rest():
    """Return the bundled body with all bones along x at rest, as files of zero poses have them."""
    body = sy.bundled("humanoid").with_root("free")
    joints = [
        replace(joint, rest=moved_along_x(joint.rest), limit=None, preferred=None) if k > 1 else joint
        for k, joint in enumerate(body.joints)
    ]
    return sy.Skeleton(joints, name="zero pose")


def moved_along_x(rest):
    """Return the place of a joint at the same distance along x, without a rotation."""
    out = np.eye(4)
    out[0, 3] = np.linalg.norm(rest[:3, 3])
    return out


def test_a_rest_pose_that_does_not_stand_is_an_error_for_a_look():
    with pytest.raises(sy.errors.UnsupportedError, match="rest pose does not show where the head looks"):
        sy.solve(lying_at_rest(), sy.AimGoal("head", (0.0, 1.0, 3.0)))


def test_a_look_with_an_axis_needs_no_rest_pose():
    body = lying_at_rest()
    assert sy.solve(body, sy.AimGoal("head", (0.0, 1.0, 3.0), axis=(0.0, 0.0, 1.0))).reached
