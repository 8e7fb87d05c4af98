"""Joint values from wanted orientations: what a path of hinges can give, it gives."""

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.tree.orient import orient
from synovia.model import Joint, Kind

AXES = ((0, 0, 1), (0, 1, 0), (1, 0, 0))


def oriented(skeleton, wanted, start):
    """Return the joint values that turn the last joint to an orientation, from where the hinges stand."""
    t = skeleton.tables
    which = np.full(len(skeleton), -1, np.int32)
    which[t.owner] = np.arange(len(t.owner))
    path = np.arange(len(skeleton), dtype=np.int32)
    goal = wanted @ t.unfold[-1].reshape(3, 3).T
    q = np.array([start])
    orient(
        t.ints, t.fixed, t.couple, t.variables, t.limits, which, path, np.array([[0, len(path)]], np.int32),
        goal.reshape(1, 1, 9), q, np.empty((len(path), 9)), np.empty((len(path), 3)),
    )  # fmt: skip
    return q[0]


@pytest.mark.parametrize("between", [None, 0, 1, 2])
def test_three_hinges_take_an_orientation_to_the_last_digits(between):
    """In the few steps that one frame may take, also where a joint of the path does not turn."""
    joints: list[Joint] = []
    for i, axis in enumerate(AXES):
        above = joints[-1].name if joints else None
        if i == between:
            joints.append(Joint("held", above))
            above = "held"
        joints.append(Joint(f"h{i}", above, Kind.HINGE, axis=axis))
    body = sy.Skeleton(joints)
    rng = np.random.default_rng(4)
    for _ in range(5):
        wanted = sy.Pose(body, rng.uniform(-0.7, 0.7, 3)).matrix("h2")[:3, :3]
        found = sy.Pose(body, oriented(body, wanted, rng.uniform(-0.1, 0.1, 3))).matrix("h2")[:3, :3]
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_hinge_at_its_limit_is_left_out_and_the_others_do_what_they_can():
    """One that would go further out takes no part; the orientation is the nearest that is left."""
    limits = (sy.Interval(-0.2, 0.2), None, None)
    body = sy.Skeleton([
        Joint(f"h{i}", f"h{i - 1}" if i else None, Kind.HINGE, axis=axis, **({"limit": limit} if limit else {}))
        for i, (axis, limit) in enumerate(zip(AXES, limits, strict=True))
    ])  # fmt: skip
    wanted = sy.Rotation.from_rotvec((0.1, 0.3, 0.9)).as_matrix()
    found = oriented(body, wanted, np.zeros(3))
    assert found[0] == 0.2

    def off(q):
        turn = sy.Pose(body, q).matrix("h2")[:3, :3].T @ wanted
        return np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))

    for step in ((0, 1e-3, 0), (0, -1e-3, 0), (0, 0, 1e-3), (0, 0, -1e-3)):
        assert off(found) < off(found + step)


def random_turn(rng):
    """Return a random rotation."""
    return sy.Rotation.from_quat(rng.normal(size=4) / 2)


@pytest.mark.parametrize("kind", [Kind.BALL, Kind.FREE])
def test_a_ball_takes_its_orientation_in_one_step(kind):
    """Below joints that stand anywhere, from its own frame at rest; a free root keeps its place."""
    rng = np.random.default_rng(2)
    rest = np.eye(4)
    rest[:3, :3], rest[:3, 3] = random_turn(rng).as_matrix(), (1, 2, 3)
    if kind is Kind.FREE:
        body = sy.Skeleton([Joint("ball", None, kind, rest)])
        start = np.array([4.0, 5.0, 6.0, 0, 0, 0, 1.0])
    else:
        tilt = np.eye(4)
        tilt[:3, :3] = random_turn(rng).as_matrix()
        above = [Joint("h", None, Kind.HINGE, tilt, axis=(0, 1, 1)), Joint("held", "h", rest=rest)]
        body = sy.Skeleton([*above, Joint("ball", "held", kind, rest)])
        start = np.array([0.8, 0, 0, 0, 1.0])
    wanted = random_turn(rng).as_matrix()
    found = oriented(body, wanted, start)
    np.testing.assert_allclose(sy.Pose(body, found).matrix("ball")[:3, :3], wanted, atol=1e-12)
    np.testing.assert_array_equal(found[:-4], start[:-4])


def test_a_ball_stays_within_its_limit():
    """It takes the nearest orientation that its limit allows."""
    limit = sy.SwingTwist(x=(0.2, 0.2), y=(0.2, 0.2), twist=(-0.1, 0.3))
    body = sy.Skeleton([Joint("ball", None, Kind.BALL, limit=limit)])
    for vector, expected in (((0, 0, 0.9), (0, 0, 0.3)), ((0.8, 0, 0), (0.2, 0, 0)), ((0, 0, -0.5), (0, 0, -0.1))):
        found = oriented(body, sy.Rotation.from_rotvec(vector).as_matrix(), np.array([0, 0, 0, 1.0]))
        np.testing.assert_allclose(sy.Rotation.from_quat(found).as_rotvec(), expected, atol=1e-9)


def test_frames_follow_the_one_before_and_paths_the_path_above():
    """Hinges start each frame where they were; what a path above misses is left to the path below."""
    joints = [
        Joint(f"h{i}", f"h{i - 1}" if i else None, Kind.HINGE, axis=axis)
        for i, axis in enumerate(((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)))
    ]
    body = sy.Skeleton([*joints, Joint("end", "h5", Kind.BALL)])
    rng = np.random.default_rng(5)
    t = body.tables
    which = np.full(7, -1, np.int32)
    which[t.owner] = np.arange(len(t.owner))
    frames = 6
    begin = np.array([0.3, 0.4, -0.2, 0.1, 0.5, 0.2])
    way = begin + np.cumsum(rng.uniform(-0.08, 0.08, (frames, 6)), axis=0)
    rows = np.column_stack([way, np.tile([0, 0, 0, 1.0], (frames, 1))])
    wanted = np.empty((frames, 3, 9))
    ends = ("h2", "h5", "end")
    turned = [random_turn(rng).as_matrix() for _ in range(frames)]
    for k, row in enumerate(rows):
        for w, name in enumerate(ends):
            goal = turned[k] if name == "end" else sy.Pose(body, row).matrix(name)[:3, :3]
            wanted[k, w] = (goal @ t.unfold[body.index(name)].reshape(3, 3).T).ravel()
    wanted[3, 0] = (sy.Rotation.from_rotvec((0.2, 0.1, 0.1)).as_matrix() @ wanted[3, 0].reshape(3, 3)).ravel()
    q = np.zeros((frames, 10))
    q[:, 9] = 1.0
    q[0, :6] = way[0] + 0.1
    orient(
        t.ints, t.fixed, t.couple, t.variables, t.limits, which, np.arange(7, dtype=np.int32),
        np.array([[0, 3], [3, 6], [6, 7]], np.int32), wanted, q, np.empty((7, 9)), np.empty((7, 3)),
    )  # fmt: skip
    for k in range(frames):
        pose = sy.Pose(body, q[k])
        for w, name in enumerate(ends):
            goal = wanted[k, w].reshape(3, 3) @ t.unfold[body.index(name)].reshape(3, 3)
            np.testing.assert_allclose(pose.matrix(name)[:3, :3], goal, atol=1e-8)
    np.testing.assert_allclose(q[[0, 1, 2, 4, 5], :3], way[[0, 1, 2, 4, 5], :3], atol=1e-6)
    assert np.abs(np.diff(q[:, :6], axis=0)).max() < 0.7
