"""What tells a jump from fast motion, part by part: distances, swings, explanations and switches of a branch."""

import numpy as np
import pytest

import synovia as sy
from synovia.kernels import layout
from synovia.tracking import jumps

ARM = sy.Skeleton(
    [
        sy.Joint("rail", None, sy.Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(-1, 1)),
        sy.Joint("ball", "rail", sy.Kind.BALL),
        sy.Joint("hinge", "ball", sy.Kind.HINGE, axis=(0, 0, 1)),
        sy.Joint("tip", "hinge", rest=np.array([[1, 0, 0, 2.0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])),
    ]
)


def test_how_far_joints_move():
    """The sum of squares of rotations, whichever sign a quaternion has, and of slides in reaches."""
    ik = sy.IK(ARM, sy.PositionGoal("tip"))
    a = np.array([ARM.random_pose(k).q for k in range(5)])
    b = np.array([ARM.random_pose(k + 50).q for k in range(5)])
    turned = [
        (sy.Rotation.from_quat(p[1:5]).inv() * sy.Rotation.from_quat(q[1:5])).magnitude()
        for p, q in zip(a, b, strict=True)
    ]
    expected = ((b[:, 0] - a[:, 0]) / ik.reach) ** 2 + np.square(turned) + (b[:, 5] - a[:, 5]) ** 2
    np.testing.assert_allclose(jumps.changes(ik.problem, a, b), expected, atol=1e-12)
    b[:, 1:5] *= -1.0
    np.testing.assert_allclose(jumps.changes(ik.problem, a, b), expected, atol=1e-12)


def test_vectors_are_carried_by_the_smallest_rotation():
    """From one direction to another, about their common normal."""
    rng = np.random.default_rng(1)
    v, a, b = (rng.normal(size=(20, 3)) for _ in range(3))
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    for k, found in enumerate(jumps._carried(v, a, b)):
        axis = np.cross(a[k], b[k])
        angle = np.arctan2(np.linalg.norm(axis), a[k] @ b[k])
        turn = sy.Rotation.from_rotvec(axis / np.linalg.norm(axis) * angle)
        np.testing.assert_allclose(found, turn.apply(v[k]), atol=1e-9)
    np.testing.assert_allclose(jumps._carried(v, a, a), v, atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "near", "passes"),
    [
        ((1, 0.1, 0), (-1, 0.1, 0), 0, True),
        ((1, 0.9, 0), (-1, 0.9, 0), 0, True),  # 0.9 beside 1.35: less than three quarters
        ((1, 1.2, 0), (-1, 1.2, 0), 0, False),
        ((1, 0, 0), (2, 0, 0), 0, False),  # goes away
        ((8, 1, 0), (-0.2, 1, 0), 0, True),  # comes from far: a quarter of the larger distance
        ((3, 1, 0), (0.2, 1, 0), 0, False),
        ((1, 1, 0), (1, 1, 0), 0, False),
        ((1, 0, 0), (2, 0, 0), 1.1, True),  # is near all the time
    ],
)
def test_ways_that_pass_close_to_a_line(a, b, near, passes):
    """A way passes if its nearest point is much nearer than its ends, or than a given distance."""
    a, b, near = np.array([a], float), np.array([b], float), np.array([near], float)
    assert jumps._passes(a, b, near)[0] == passes
    assert jumps._passes(b, a, near)[0] == passes


def frame(point=(0.0, 0.0, 0.0), angle=0.0):
    """Return a target as a row of 16 numbers."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = sy.Rotation.from_rotvec([0, 0, angle]).as_matrix(), point
    return T.ravel()


def test_how_much_turning_the_targets_explain():
    """The rotation of a target, and its way over its nearer distance from the joint; the most of all goals counts."""
    goals = [sy.PoseGoal("tip"), sy.PositionGoal("hinge")]
    ik = sy.IK(ARM, goals)
    joint = np.array([1.0, 0.0, 0.0])
    still = frame((3, 0, 0))

    def explained(*after):
        return jumps._explained(ik.problem, joint, np.array([still, still]), np.array(after))

    assert explained(still, still) == 0.0
    assert explained(frame((3, 0, 0), 0.4), still) == pytest.approx(0.4)
    assert explained(still, frame((3, 1, 0))) == pytest.approx(1.0 / 2.0)
    assert explained(still, frame((2, 0, 0))) == pytest.approx(1.0 / 1.0)
    assert explained(frame((3, 1, 0), -0.4), still) == pytest.approx(0.9)
    assert explained(frame((3, 0, 0), 0.4), frame((3, 1, 0))) == pytest.approx(0.5)
    assert explained(still, frame((1, 0, 0))) == np.inf
    look = sy.IK(ARM, sy.DirectionGoal("tip", axis=(1, 0, 0)))  # a direction is seen from the origin
    assert jumps._explained(look, joint, np.array([frame((1, 0, 0))]), np.array([frame((1, 0.5, 0))])) == pytest.approx(
        0.5
    )


def test_targets_between_two_frames():
    """Evenly on the way and on the shortest turn, from the first to the last."""
    a, b = np.zeros((1, 17)), np.zeros((1, 17))
    a[0, :16], b[0, :16] = frame((0, 0, 0), 0.2), frame((4, 2, 0), 1.0)
    a[0, layout.GIVEN] = b[0, layout.GIVEN] = layout.POSITION | layout.ROTATION
    table = jumps._between(a, b, 4)
    assert table.shape == (5, 1, 17)
    for k, row in enumerate(table):
        np.testing.assert_allclose(row[0, :16], frame((k, k / 2, 0), 0.2 + 0.2 * k), atol=1e-12)
        assert row[0, layout.GIVEN] == a[0, layout.GIVEN]


@pytest.mark.parametrize(
    ("path", "step", "switch"),
    [
        (np.linspace(0, 1, 5), 1.0, False),  # fast motion
        ([0, 0.1, 0.8, 0.9, 1.0], 1.0, True),  # a large step stays large
        (np.linspace(0, 0.4, 5), 1.0, True),  # small steps end on another branch
        (np.linspace(0, 0.6, 5), 1.0, False),  # near enough to be the same
        (np.linspace(0.3, 0.3, 5), 1.0, False),  # it began elsewhere, which proves nothing
        (np.linspace(0, 3, 9), 3.0, False),
        (np.linspace(0, 2, 9), 3.0, False),
        (np.linspace(0, 1.2, 9), 3.0, True),
        ([0, 0.15], 0.15, False),  # too small to be a switch
    ],
)
def test_a_switch_stays_a_large_step(path, step, switch):
    """Where the targets move in small steps, fast motion is made of small steps; a switch is not."""
    body = sy.Skeleton([
        sy.Joint("h", None, sy.Kind.HINGE, axis=(0, 0, 1)),
        sy.Joint("tip", "h", rest=np.array([[1, 0, 0, 1.0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])),
    ])  # fmt: skip
    ik = sy.IK(body, sy.PositionGoal("tip"))
    rows = np.zeros((len(path), layout.OUT_HEAD + 1 + 2 + 16))
    rows[:, ik.problem.places] = np.reshape(path, (-1, 1))
    asked = []

    def follow(problem, table, start, progress):
        asked.append((problem, start.copy()))
        return rows

    ends = np.array([[0.0], [step]])
    assert jumps._is_switch(ik.problem, np.zeros((len(path), 1, 17)), ends, follow) == switch
    if step > 0.2:
        np.testing.assert_array_equal(asked[0][1], [[0.0]])


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({}, 1),
        ({"smoothness": 0.2}, 2),
        ({"candidates": 3}, 3),
        ({"candidates": 2, "both_ways": True, "smoothness": 0.1}, 5),
    ],
)
def test_progress_counts_every_track_and_the_smoothing(settings, parts):
    """The last report says that all is done, of all frames of all parts; it never falls."""
    chain = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    targets = np.array([(1.2 * np.cos(t), 1.2 * np.sin(t), 0.3) for t in np.linspace(0, 1, 6)])
    told = []
    sy.IK(chain, sy.PositionGoal("joint2")).track(
        {"joint2": targets}, **settings, threads=1, progress=lambda done, of: told.append((done, of))
    )
    assert {of for _, of in told} == {6 * parts}
    assert told[-1] == (6 * parts, 6 * parts)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_leap_of_the_target_is_a_jump_of_the_pose():
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PositionGoal("tool"))
    path = np.linspace((0.4, -0.3, 0.5), (0.4, -0.2, 0.5), 20)
    path[10:, 1] += 0.5
    clip = ik.track({"tool": path}, arm.rest_pose(), fps=30, name="stepped")
    assert clip.reached.all()
    steps = np.abs(np.diff(clip.q, axis=0)).max(axis=1)
    assert steps[9] > 0.7
    assert 10 in clip.jumps
    assert clip.motion.name == "stepped"
    even = ik.track({"tool": np.linspace(path[0], path[9], 20)}, clip[0].pose)
    assert even.jumps == ()
