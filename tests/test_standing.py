"""A body that stands: its goals by role, what they keep in reaches, and what is missing where it cannot stand."""

import dataclasses
import re

import numpy as np
import pytest

import synovia as sy
from rigs import nameless, skeleton_of
from synovia.errors import InputError

BODIES = {
    "person": lambda: sy.bundled("humanoid"),
    "without names": lambda: sy.with_body_masses(nameless()),
    "mixamo": lambda: sy.with_body_masses(skeleton_of("mixamo")),
}


@pytest.mark.compiled
@pytest.mark.parametrize("kind", BODIES)
def test_a_body_reaches_upright_on_planted_feet(kind):
    """Random points around a shoulder, in front: the trunk stays upright and the feet hold."""
    body = BODIES[kind]()
    hand, shoulder, hips, neck = (body.role_rows[r] for r in ("left_hand", "left_upper_arm", "hips", "neck"))
    goals = [*sy.standing_goals(body), sy.PositionGoal(hand, name="reach", priority=1)]
    ik = sy.IK(body, goals, "full-body", root="free")
    rest, rng = body.rest_pose(), np.random.default_rng(3)
    length = np.linalg.norm(rest.position(hand) - rest.position(shoulder))
    upright = rest.position(neck) - rest.position(hips)
    reached = 0
    for _ in range(12):
        way = rng.normal(size=3)
        way[2] = abs(way[2])
        target = rest.position(shoulder) + rng.uniform(0.5, 1.1) * length * way / np.linalg.norm(way)
        solution = ik.solve({"reach": target})
        reached += solution.reached
        if not solution.reached:
            continue
        trunk = solution.pose.position(neck) - solution.pose.position(hips)
        lean = np.degrees(np.arccos(trunk @ upright / np.linalg.norm(trunk) / np.linalg.norm(upright)))
        assert lean < 30.0
        for side in ("left_foot", "right_foot"):
            row = body.role_rows[side]
            moved = np.linalg.norm(solution.pose.position(row) - rest.position(row))
            assert moved <= ik.tolerance[0]
    assert reached >= 8


@pytest.mark.compiled
def test_four_feet_stay_while_the_head_reaches():
    body = sy.bundled("quadruped")
    goals = sy.standing_goals(body)
    assert sum(isinstance(goal, sy.ContactGoal) for goal in goals) == 4
    target = body.rest_pose().position("head") + np.array([0.0, -0.05, 0.05])
    solution = sy.solve(
        body, [*goals, sy.PositionGoal("head", target, priority=1, name="nose")], "full-body", root="free"
    )
    assert all(error.position <= 1e-3 for error in solution.errors[:5])


def test_feet_and_balance_come_first_and_gaze_and_posture_last():
    body = sy.bundled("humanoid")
    goals = {goal.label: goal for goal in sy.standing_goals(body)}
    assert list(goals) == ["left_foot", "right_foot", "balance", "gaze", "posture"]
    assert [goals[name].priority for name in ("left_foot", "right_foot", "balance")] == [0, 0, 0]
    assert goals["gaze"].priority > 100
    assert goals["posture"].root > 0.0


def test_a_head_looks_ahead_whatever_its_axes_are():
    """The face is known by role: with other axes in the head, and without an up axis in the file."""
    person = sy.bundled("humanoid")
    head, turned = person.role_rows["head"], np.eye(4)
    turned[:3, :3] = sy.Rotation.from_euler("xyz", (40, -70, 110), degrees=True).as_matrix()
    joints = [
        dataclasses.replace(joint, rest=joint.rest @ turned) if row == head else joint
        for row, joint in enumerate(person.joints)
    ]
    ahead = (0.0, 1.5, 2.0)
    for body in (person, sy.Skeleton(joints, up="y"), sy.Skeleton(joints)):
        np.testing.assert_allclose(body.rest_pose().matrix("head") @ body.face, (0.0, 0.0, 1.0), atol=1e-9)
        goal = sy.AimGoal("head", ahead).resolved(body)
        np.testing.assert_allclose(goal.offset[:3, 2], body.face, atol=1e-9)
        np.testing.assert_allclose(sy.AimGoal("left_hand", ahead).resolved(body).offset[:3, 2], (0, 0, 1))
        given = sy.AimGoal("head", ahead, axis=(1, 0, 0)).resolved(body)
        np.testing.assert_allclose(given.offset[:3, 2], (1, 0, 0))
    assert sy.bundled("arm7").face is None


def test_a_gaze_moves_as_many_joints_as_asked():
    body = sy.bundled("humanoid")
    solution = sy.solve(body, sy.AimGoal("head", (1.0, 1.0, 1.0), ancestors=1))
    rest = body.rest_pose()
    changed = {
        name
        for row, name in enumerate(body.joint_names)
        if np.abs(solution.pose.q[body.q_slice(row)] - rest.q[body.q_slice(row)]).max(initial=0.0) > 1e-9
    }
    assert solution.reached
    assert changed <= {"neck", "head"}
    with pytest.raises(InputError, match="ancestors"):
        sy.solve(body, sy.AimGoal("head", (1.0, 1.0, 1.0), ancestors=99))


def test_a_body_stands_where_a_pose_has_it():
    """The feet and their support are those of the pose, so that a body far from its file's place stands, too."""
    body = sy.bundled("humanoid")
    pose = sy.Pose(body, {"hips": [5.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]})
    feet = {goal.label: goal for goal in sy.standing_goals(body, pose=pose)}
    np.testing.assert_allclose(feet["left_foot"].target[:3, 3], pose.position("left_foot"))
    middle = feet["balance"].polygon.mean(axis=0)
    assert np.linalg.norm(middle[[0, 2]] - pose.center_of_mass()[[0, 2]]) < 0.15


def test_what_is_missing_is_named():
    with pytest.raises(InputError, match="left_foot"):
        sy.standing_goals(sy.bundled("arm7"))
    with pytest.raises(InputError, match="with_body_masses"):
        sy.standing_goals(skeleton_of("mixamo"))
    assert not any(isinstance(g, sy.CenterOfMassGoal) for g in sy.standing_goals(skeleton_of("mixamo"), balance=False))
    person = sy.bundled("humanoid")
    lying = sy.Pose(person, {"hips": [0.0, 0.2, 0.0, *sy.Rotation.from_euler("x", -90, degrees=True).as_quat()]})
    with pytest.raises(InputError, match="expected a body above its feet"):
        sy.standing_goals(person, pose=lying)
    with pytest.raises(InputError, match="root"):
        sy.RestGoal(root=-1.0)


@pytest.mark.compiled
@pytest.mark.parametrize("own", [True, False])
def test_a_posture_holds_the_root_that_moves(own):
    """A root of the file, or one that ``root=`` adds: with a factor it moves less."""
    body = sy.bundled("humanoid")
    if not own:
        body = body.with_root("fixed")
    goal = sy.PositionGoal("left_hand", (0.4, 1.2, 0.5))
    moved = []
    for factor in (0.0, 20.0):
        solution = sy.solve(body, [goal, sy.RestGoal(root=factor)], "full-body", root="free")
        assert solution.reached
        moved.append(np.linalg.norm(solution.pose.position("hips") - body.rest_pose().position("hips")))
    assert moved[1] < 0.5 * moved[0]


def test_masses_of_a_body_without_arms_are_between_its_legs():
    """What the hips carry has the mass of the trunk, on the middle."""
    body = sy.Skeleton(
        [
            sy.Joint("hips", kind=sy.Kind.FREE, role="hips"),
            *(
                sy.Joint(name, parent, sy.Kind.BALL, rest, role=role)
                for name, parent, role, rest in (
                    ("lump", "hips", None, _at(0.0, 0.5)),
                    ("left", "hips", "left_upper_leg", _at(0.1, -0.1)),
                    ("left_shin", "left", "left_lower_leg", _at(0.0, -0.4)),
                    ("right", "hips", "right_upper_leg", _at(-0.1, -0.1)),
                    ("right_shin", "right", "right_lower_leg", _at(0.0, -0.4)),
                )
            ),
        ],
        up="y",
    )
    heavy = sy.with_body_masses(body)
    assert sum(joint.mass for joint in heavy.joints) == pytest.approx(75.0)
    assert abs(heavy.rest_pose().center_of_mass()[0]) < 1e-9
    assert heavy.joint("lump").mass > 30.0


# Turns about world axes from rest, degrees, that a healthy person can and cannot make.
MOVES = [
    ("left_lower_leg", (1, 0, 0), 120, True), ("left_lower_leg", (-1, 0, 0), 20, False),
    ("left_lower_arm", (0, -1, 0), 140, True), ("left_lower_arm", (0, 1, 0), 20, False),
    ("right_lower_arm", (0, 1, 0), 140, True), ("right_lower_arm", (0, -1, 0), 20, False),
    ("left_upper_leg", (-1, 0, 0), 110, True), ("left_upper_leg", (1, 0, 0), 60, False),
    ("right_upper_leg", (0, 0, -1), 40, True), ("right_upper_leg", (0, 0, 1), 40, False),
    ("left_upper_arm", (0, -1, 0), 120, True), ("left_upper_arm", (0, 1, 0), 80, False),
    ("left_foot", (1, 0, 0), 40, True), ("left_foot", (-1, 0, 0), 40, False),
    ("spine", (1, 0, 0), 35, True), ("spine", (-1, 0, 0), 35, False),
    ("left_upper_arm", (1, 0, 0), 65, True), ("left_upper_arm", (1, 0, 0), 80, False),  # the forearm down, then up
    ("left_upper_arm", (-1, 0, 0), 80, True), ("right_upper_arm", (1, 0, 0), 80, False),
    ("left_foot", (0, 0, 1), 30, False), ("left_foot", (0, 0, -1), 30, True),  # the sole outwards, inwards
    ("right_foot", (0, 0, 1), 30, True), ("right_foot", (0, 0, -1), 30, False),
]  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("role", "axis", "degrees", "can"), MOVES)
def test_joints_turn_as_those_of_people(role, axis, degrees, can, turned):
    """A body without limits, with the axes of its joints along the world or turned, as in most rigs."""
    bare = nameless()
    frame = np.eye(4)
    if turned:
        frame[:3, :3] = sy.Rotation.from_euler("xyz", (40, -70, 110), degrees=True).as_matrix()
    joints = []
    for row, joint in enumerate(bare.joints):
        parent = bare.parents[row]
        rest = joint.rest @ frame if parent < 0 else np.linalg.inv(frame) @ joint.rest @ frame
        joints.append(dataclasses.replace(joint, parent=parent if parent >= 0 else None, rest=rest))
    body = sy.with_human_limits(sy.Skeleton(joints))
    row = body.role_rows[role]
    limit, inward = body.joints[row].limit, frame[:3, :3].T
    q = sy.Rotation.from_rotvec(np.radians(degrees) * (inward @ np.array(axis, float))).as_quat()
    (swing,), (twist,) = limit.components(q[None])
    ends = [pair[1] if value > 0.0 else pair[0] for value, pair in zip(swing, (limit.x, limit.y), strict=True)]
    inside = (
        sum((value / max(end, 1e-6)) ** 2 for value, end in zip(swing, ends, strict=True) if abs(value) > 1e-9) <= 1.0
    )
    inside &= limit.twist[0] <= twist <= limit.twist[1]
    assert inside == can


def test_limits_that_a_model_has_stay():
    body = sy.bundled("humanoid")
    assert sy.with_human_limits(body) is body
    with pytest.raises(InputError, match="not a human body"):
        sy.with_human_limits(sy.bundled("quadruped"))


def _at(x, y):
    place = np.eye(4)
    place[:2, 3] = x, y
    return place


@pytest.mark.compiled
@pytest.mark.parametrize(("target", "leans"), [((0.3, 1.1, 0.5), False), ((0.2, 0.1, 0.5), True)])
def test_an_explanation_says_how_far_a_standing_body_leans(target, leans):
    body = sy.bundled("humanoid")
    solution = sy.solve(
        body, [*sy.standing_goals(body), sy.PositionGoal("left_hand", target, priority=1)], "full-body", root="free"
    )
    assert solution.reached
    line = solution.pose.position("neck") - solution.pose.position("hips")
    angle = np.degrees(np.arccos(line[1] / np.linalg.norm(line)))
    told = [text for text in solution.explain() if "leans by" in text]
    assert bool(told) == leans
    if leans:
        assert abs(float(re.findall(r"by (\d+) deg", told[0])[0]) - angle) < 5.0  # at rest, the line leans too
