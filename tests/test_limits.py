"""Limits as a person gives them."""

import math
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from synovia.errors import InputError
from synovia.model import Joint, Kind, Mimic, Skeleton
from synovia.model.geometry import rigid, unit
from synovia.model.limits import Interval, SwingTwist

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    "ends", [(1, 0), (NAN, 1), (0, NAN), (INF, INF), (-INF, -INF), ("a", 1), (None, 1), ([1, 2], 3)]
)
def test_intervals_that_leave_nothing_are_refused(ends):
    with pytest.raises(InputError, match="limits"):
        Interval(*ends)


def test_interval():
    limit = Interval(-0.5, 2)
    assert limit.contains(2 + 1e-10)
    assert not limit.contains(2 + 1e-8)
    assert limit.contains(2.5, slack=1.0)
    assert not limit.contains(NAN)
    assert limit.describe() == "-0.5 to 2"
    np.testing.assert_array_equal(limit.row(), [-0.5, 2, *[0] * 9])
    assert Interval(3, 3).contains(3)
    assert Interval().contains(1e300)
    assert limit == Interval(-0.5, 2.0)
    assert hash(limit) == hash(Interval(-0.5, 2.0))


@pytest.mark.parametrize(
    "bad",
    [
        {"x": (-0.1, 1)},
        {"x": (0, 3.2)},
        {"y": (0, NAN)},
        {"y": 0.5},
        {"y": (1, 1, 1)},
        {"x": ("a", 1)},
        {"twist": (1, 0)},
        {"twist": (-4, 0)},
        {"twist": (0, NAN)},
        {"twist": None},
        {"frame": np.diag([1, 1, -1])},
        {"frame": 2 * np.eye(3)},
        {"frame": np.eye(4)},
        {"frame": [[1], [1, 2]]},
    ],
)
def test_swing_twists_that_mean_nothing_are_refused(bad):
    with pytest.raises(InputError, match="limit"):
        SwingTwist(**{"x": (1, 1), "y": (1, 1), **bad})


def test_arrays_make_the_same_limit_as_tuples():
    a = SwingTwist(x=(0.1, 0.2), y=(0.3, 0.4), twist=(-1, 1), frame=((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    b = SwingTwist(x=np.array([0.1, 0.2]), y=[0.3, 0.4], twist=[-1, 1], frame=np.eye(3))
    assert a == b
    assert hash(a) == hash(b)
    assert pickle.loads(pickle.dumps(b)) == a


def test_row_and_words():
    limit = SwingTwist(x=(0, 0.5), y=(1, math.pi), twist=(-1, 1))
    np.testing.assert_allclose(limit.row(), [0, 0, 0, 1, 1e-10, 0.5, 1, math.pi, -1, 1, 1])
    assert limit.describe() == "swing x -0/+28.6, y -57.3/+180, twist -57.3 to 57.3 deg"


@pytest.mark.parametrize("bone", [(0, 0, 1), (0, 0, -3), (1, 2, 3), (0, -1e-9, 0), (1e6, 0, 0)])
def test_about_puts_the_bone_on_the_twist_axis(bone):
    frame = np.array(SwingTwist.about(bone, x=(1, 1), y=(1, 1)).frame)
    np.testing.assert_allclose(frame[:, 2], np.array(bone) / np.linalg.norm(bone), atol=1e-15)
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) > 0


def test_about_takes_the_x_axis_it_is_given():
    frame = np.array(SwingTwist.about((0, 2, 0), x=(1, 1), y=(1, 1), x_axis=(5, 5, 0)).frame)
    np.testing.assert_allclose(frame[:, 0], (1, 0, 0), atol=1e-15)


@pytest.mark.parametrize("bone", [(0, 0, 0), (NAN, 0, 1), (1, 2), "abc", None, [[1], [2, 3]]])
def test_about_refuses_bones_without_direction(bone):
    with pytest.raises(InputError, match="bone"):
        SwingTwist.about(bone, x=(1, 1), y=(1, 1))


@pytest.mark.parametrize("x_axis", [(0, 1, 0), (0, 0, 0), (NAN, 0, 0), (1, 2), "x"])
def test_about_refuses_an_x_axis_along_the_bone(x_axis):
    with pytest.raises(InputError, match="x_axis"):
        SwingTwist.about((0, 2, 0), x=(1, 1), y=(1, 1), x_axis=x_axis)


# --- A limit without a frame is about the bone of its joint -----------------------------------------------------------


def tree(*bones, up=None, forward=None, turn=None, limit=None):
    """A ball with bones of these vectors (in the world), itself turned; the ball lies on a stem of (0, 1, 0)."""
    turn = np.eye(3) if turn is None else turn
    joints = [
        Joint("stem", kind=Kind.BALL),
        Joint("ball", "stem", Kind.BALL, rest=rigid((0, 1, 0), turn), limit=limit or SwingTwist(x=(1, 0.2), y=(1, 1))),
    ]
    joints += [Joint(f"tip{i}", "ball", rest=rigid(turn.T @ np.array(bone, float))) for i, bone in enumerate(bones)]
    return Skeleton(joints, up=up, forward=forward)


def axes_in_world(skeleton, joint="ball"):
    """The axes of a joint's limit in the world at rest, as columns."""
    row = skeleton.index(joint)
    turn = np.eye(3)
    while row >= 0:
        turn = skeleton.joints[row].rest[:3, :3] @ turn
        row = skeleton.parents[row]
    return turn @ skeleton.joint(joint).limit.axes


TURNS = [None, Rotation.from_rotvec((0.3, -1.2, 2.0)).as_matrix(), Rotation.from_rotvec((3.0, 0, 0)).as_matrix()]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize(
    ("bones", "up", "forward", "x", "z"),
    [
        ([(0, -2, 0)], "y", "z", (1, 0, 0), (0, -1, 0)),  # a leg: x to the left of the body
        ([(0, -2, 0)], None, None, (1, 0, 0), (0, -1, 0)),
        ([(0, 0, -2)], "z", "x", (0, 1, 0), (0, 0, -1)),
        ([(0, 0, -2)], "z", None, (0, 1, 0), (0, 0, -1)),
        ([(0, 0, -2)], "z", "-y", (1, 0, 0), (0, 0, -1)),
        ([(3, 0, 0)], "y", "z", (0, 1, 0), (1, 0, 0)),  # an arm in a T pose: x up
        ([(-3, 0, 0)], "y", "z", (0, 1, 0), (-1, 0, 0)),
        ([(0, 0, 1)], "y", "z", (1, 0, 0), (0, 0, 1)),  # a foot
        ([(0.2, 0.5, 0), (-0.2, 0.5, 0), (0, 0.4, 0)], "y", "z", (1, 0, 0), (0, 1, 0)),  # a chest
        ([(0, 0.1, 0), (0, 0, 1), (0, 0, -1)], "y", "z", (1, 0, 0), (0, 0, 1)),  # they cancel: the longest, or first
        ([], "y", "z", (1, 0, 0), (0, 1, 0)),  # on from the parent
        ([(0, 0, 0)], "y", "z", (1, 0, 0), (0, 1, 0)),
    ],
)
def test_without_a_frame_the_twist_is_about_the_bone_and_x_is_an_axis_of_the_body(bones, up, forward, x, z, turn):
    axes = axes_in_world(tree(*bones, up=up, forward=forward, turn=turn))
    np.testing.assert_allclose(axes[:, 0], x, atol=1e-12)
    np.testing.assert_allclose(axes[:, 2], z, atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)


def test_the_bone_of_joints_in_one_place_is_that_of_the_next_in_another():
    joints = [
        Joint("a", kind=Kind.BALL, limit=SwingTwist(x=(1, 1), y=(1, 1))),
        Joint("b", "a", Kind.HINGE, axis=(1, 0, 0)),
        Joint("c", "b", Kind.HINGE, rest=rigid(rotation=TURNS[1]), axis=(1, 0, 0)),
        Joint("d", "c", rest=rigid((0, 0, -3))),
    ]
    np.testing.assert_allclose(axes_in_world(Skeleton(joints), "a")[:, 2], -TURNS[1][:, 2], atol=1e-12)
    alone = Skeleton(joints[:1]).joint("a").limit
    assert alone == SwingTwist(x=(1, 1), y=(1, 1), frame=np.eye(3))  # no bone: its own axes


@pytest.mark.parametrize("seed", range(5))
def test_the_bone_stays_inside_its_swing_and_twist_is_free(seed):
    rng = np.random.default_rng(seed)
    bone = rng.normal(size=3)
    limit = SwingTwist(x=(0.3, 0.5), y=(0.2, 0.4))
    skeleton = tree(bone, turn=Rotation.random(random_state=seed).as_matrix(), limit=limit)
    axis = skeleton.joint("ball").limit.axes[:, 2]
    np.testing.assert_allclose(axis, unit(skeleton.joint("tip0").rest[:3, 3]), atol=1e-12)
    turns = [Rotation.from_quat(skeleton.random_pose(k)["ball"]) for k in range(200)]
    assert max(math.acos(turn.apply(axis) @ axis) for turn in turns) <= 0.5 + 1e-9
    assert max(turn.magnitude() for turn in turns) > 2.5  # about the bone


def test_a_limit_keeps_its_frame_when_the_skeleton_changes():
    body = tree((0, -2, 0), turn=TURNS[1])
    limit = body.joint("ball").limit
    assert limit.frame is not None
    assert body.with_root("free").joint("ball").limit == limit
    assert body.with_limits({"stem": SwingTwist(x=(1, 1), y=(1, 1))}).joint("ball").limit == limit
    identity = SwingTwist(x=(1, 1), y=(1, 1), frame=np.eye(3))
    assert body.with_limits({"ball": identity}).joint("ball").limit == identity  # given, so it stays


# --- Limits of mimic joints -------------------------------------------------------------------------------------------


def pair(ratio, offset, low=-1.0, high=1.0):
    """A leader between two ends, and a follower with the limits that a file would give it."""
    return Skeleton(
        [
            Joint("drive", kind=Kind.HINGE, axis=(1, 0, 0), limit=Interval(low, high)),
            Joint(
                "follow",
                "drive",
                Kind.HINGE,
                axis=(1, 0, 0),
                limit=Interval(-9, 9),
                mimic=Mimic("drive", ratio, offset),
            ),
            Joint("third", "follow", Kind.HINGE, axis=(1, 0, 0), mimic=Mimic("follow", -0.5, 0.1)),
        ]
    )


@pytest.mark.parametrize("ratio", [2.0, 0.5, -1.0, -3.0])
@pytest.mark.parametrize("offset", [0.0, 0.3, -0.4])
@pytest.mark.parametrize("name", ["follow", "third"])
def test_a_limit_of_a_mimic_joint_binds_its_leader(ratio, offset, name):
    hand = pair(ratio, offset)
    low, high = hand.value_range(name)
    inner = (low + 0.3 * (high - low), low + 0.6 * (high - low))
    tight = hand.with_limits({name: inner})
    assert tight.value_range(name) == pytest.approx(inner)
    values = [tight.random_pose(k)[name] for k in range(50)]
    assert inner[0] - 1e-9 <= min(values) <= max(values) <= inner[1] + 1e-9
    assert tight.with_limits({name: None}).value_range(name) == pytest.approx((low, high))
    assert tight.with_limits({name: (low, low)}).value_range(name) == pytest.approx((low, low))  # the limits touch
    with pytest.raises(InputError, match=f"limits of joint '{name}' and its leader 'drive'.*overlap"):
        hand.with_limits({name: (high + 0.1, high + 1.0)})


def test_a_mimic_joint_that_does_not_move_keeps_its_limit_or_is_refused():
    still = pair(0.0, 0.25)
    assert still.with_limits({"follow": (0.0, 0.5)}).limits[1][0] == 1.0
    with pytest.raises(InputError, match="value of joint 'follow', which follows 'drive'"):
        still.with_limits({"follow": (0.3, 0.5)})
