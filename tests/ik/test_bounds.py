"""Bounds of goals by axis, and cones: what they mean, at every edge, in every part that takes goals."""

import copy
import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import synovia as sy
from conftest import UNCOMPILED
from synovia.goals.bounds import as_bounds

ARM = sy.bundled("arm7")
SOME = settings(max_examples=10 if UNCOMPILED else 60)
MET = 1e-9


def swing_twist(E, k):
    """Return the angle of the twist about axis k, and the rotation vector of the tilt that follows it."""
    quat = Rotation.from_matrix(E).as_quat()
    twist = np.zeros(4)
    twist[[k, 3]] = quat[[k, 3]]
    twist = np.array([0, 0, 0, 1.0]) if np.linalg.norm(twist) < 1e-12 else twist
    tilt = (Rotation.from_quat(quat) * Rotation.from_quat(twist).inv()).as_rotvec()
    angle = 2 * math.atan2(twist[k], twist[3])
    return math.remainder(angle, 2 * math.pi), tilt


def odd_axis(ranges):
    """Return the axis that the twist is about."""
    sizes = [min(high - low, 2 * math.pi) for low, high in ranges]
    order = sorted(range(3), key=sizes.__getitem__)
    least, middle, most = (sizes[k] for k in order)
    if least == most:
        return 2
    return order[2] if most - middle >= middle - least else order[0]


def off(x, ends):
    """Return what of a value lies outside its ends."""
    return x - min(max(x, ends[0]), ends[1])


def outside(R, p, T, ranges, frame):
    """Return how far a frame lies outside bounds of a pose: a length and an angle."""
    E, x = T[:3, :3].T @ R, T[:3, :3].T @ (p - T[:3, 3])
    k = odd_axis(ranges[3:])
    twist, tilt = swing_twist(E, k)
    if frame == "tool":
        x, tilt = E.T @ x, E.T @ tilt
    w = [off(tilt[i], ranges[3 + i]) for i in range(3)]
    low, high = ranges[3 + k]
    w[k] = 0.0
    if high - low < math.inf:
        turn = math.remainder(twist - (low + high) / 2, 2 * math.pi)
        w[k] = off(turn, ((low - high) / 2, (high - low) / 2))
    return math.hypot(*(off(x[i], ranges[i]) for i in range(3))), math.hypot(*w)


def drawn(rng, scale):
    """Return the bounds of an axis: none, exact, symmetric, on one side, or without the target."""
    side = float(scale * rng.uniform(-1, 1))
    kinds = [0, None, float(scale * rng.random()), (side, side + float(scale * rng.random())), (None, 0.0)]
    return kinds[rng.choice(5, p=(0.3, 0.2, 0.3, 0.15, 0.05))]


def problem(seed, frame="target"):
    """Return a pose goal with bounds about a pose of the arm, its target and ranges."""
    rng = np.random.default_rng(seed)
    T = ARM.random_pose(seed).transform("tool")
    bounds = [drawn(rng, 0.2 if k < 3 else 1.0) for k in range(6)]
    bounds = [*bounds[:5], 0.1] if all(one is None for one in bounds) else bounds
    goal = sy.PoseGoal("tool", transform=T, bounds=bounds, bounds_frame=frame)
    return goal, T, goal.ranges


@pytest.mark.parametrize("frame", ["target", "tool"])
@SOME
@given(seed=st.integers(0, 2**31 - 2))
def test_the_error_is_what_lies_outside_the_bounds(frame, seed):
    goal, T, ranges = problem(seed, frame)
    solution = sy.solve(ARM, goal, "lm", start=ARM.random_pose(seed + 1))
    R, p = solution.pose.matrix("tool"), solution.pose.position("tool")
    length, angle = outside(R, p, T, ranges, frame)
    assert solution.errors[0].position == pytest.approx(length, abs=1e-7)
    assert solution.errors[0].angle == pytest.approx(angle, abs=1e-6)
    assert solution.reached == (length <= solution.ik.tolerance[0] and angle <= solution.ik.tolerance[1])


@pytest.mark.parametrize("frame", ["target", "tool"])
@SOME
@given(seed=st.integers(0, 2**31 - 2))
def test_a_pose_within_the_bounds_needs_no_step_and_no_miss_is_proved(frame, seed):
    """The start is a pose within the bounds, or the target is shifted out of reach by less than they allow."""
    rng = np.random.default_rng(seed)
    start = ARM.random_pose(seed)
    at = start.transform("tool")
    shift, turn = rng.normal(size=3), rng.normal(size=3)
    T = at.copy()
    T[:3, 3] += shift
    T[:3, :3] = T[:3, :3] @ Rotation.from_rotvec(turn / max(1.0, np.linalg.norm(turn) / 3)).as_matrix()
    E, x = T[:3, :3].T @ at[:3, :3], T[:3, :3].T @ (at[:3, 3] - T[:3, 3])
    wide = [(-abs(v) - 0.01, abs(v) + 0.01) for v in (E.T @ x if frame == "tool" else x)]
    _, tilt = swing_twist(E, 2)
    tilt = E.T @ tilt if frame == "tool" else tilt
    wide += [(-abs(v) - 0.01, abs(v) + 0.01) for v in tilt[:2]] + [None]
    goal = sy.PoseGoal("tool", transform=T, bounds=wide, bounds_frame=frame)
    assume(odd_axis(goal.ranges[3:]) == 2)
    for solver in ("lm", "full-body"):
        solution = sy.solve(ARM, goal, solver, start=start)
        assert (solution.steps, solution.reached) == (0, True)
    other = sy.solve(ARM, goal, "lm", start=ARM.random_pose(seed + 1))
    assert other.status is not sy.Status.UNREACHABLE


def test_bounds_of_zero_are_none():
    down = Rotation.from_euler("x", 180, degrees=True)
    for plain, bounded in [
        (sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.PositionGoal("tool", (0.4, 0.1, 0.5), bounds=(0, 0, 0))),
        (sy.RotationGoal("tool", down), sy.RotationGoal("tool", down, bounds=np.zeros((3, 2)))),
        (sy.PoseGoal("tool", (0.4, 0.1, 0.5), down), sy.PoseGoal("tool", (0.4, 0.1, 0.5), down, bounds=[0.0] * 6)),
        (sy.DirectionGoal("tool", direction=(0, 0, -1)), sy.DirectionGoal("tool", direction=(0, 0, -1), cone=0)),
    ]:
        a, b = (sy.solve(ARM, goal, "lm", start=ARM.random_pose(1)) for goal in (plain, bounded))
        assert np.array_equal(a.pose.q, b.pose.q)
        assert bounded.terms == () or bounded.terms[0].kind == plain.terms[0].kind
    part = sy.PoseGoal("tool", (0.4, 0.1, 0.5), down, bounds=(0, 0, 0, 0, 0, None))
    assert (part.constrained_parts, len(part.terms), part.takes) == (1, 1, 3)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, 3.0, math.pi - 1e-9, math.pi, -math.pi, -3.0])
@pytest.mark.parametrize("ends", [(-0.1, 0.1), (2.0, 3.1), (3.0, 3.3), (-4.0, -3.0), (0.0, 0.0), (-3.0, 3.0)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_twist_is_off_by_the_shorter_way_round(angle, ends, axis):
    """A body of one ball, turned about an axis by angles up to half a turn, against bounds across half a turn too."""
    body = sy.Skeleton([sy.Joint("ball", kind=sy.Kind.BALL), sy.Joint("tip", "ball", rest=np.eye(4), tip=True)])
    bounds = [(-0.5, 0.5)] * 3
    bounds[axis] = ends
    width = ends[1] - ends[0]
    if odd_axis(bounds) != axis:
        bounds = [(width / 2 - 0.1, width / 2 + 0.1) if k == axis else 2.0 for k in range(3)]
        bounds = [ends if k == axis else (0.0 if width > 1 else 1.5) for k in range(3)]
    goal = sy.RotationGoal("tip", np.eye(3), bounds=bounds)
    vector = np.zeros(3)
    vector[axis] = angle
    pose = sy.Pose(body, Rotation.from_rotvec(vector).as_quat())
    errors = sy.IK(body, goal, "lm").solve(start=pose)
    turn = math.remainder(angle - sum(ends) / 2, 2 * math.pi)
    if abs(turn) <= width / 2:
        assert errors.steps == 0
    assert errors.reached
    found, _ = swing_twist(errors.pose.matrix("tip"), axis)
    assert abs(math.remainder(found - sum(ends) / 2, 2 * math.pi)) <= width / 2 + errors.ik.tolerance[1]


@SOME
@given(seed=st.integers(0, 2**31 - 2), cone=st.floats(0.01, 3.0))
def test_an_axis_stays_within_its_cone(seed, cone):
    rng = np.random.default_rng(seed)
    axis, direction, point = rng.normal(size=(3, 3))
    start = ARM.random_pose(seed)
    for goal in (sy.DirectionGoal("tool", axis, direction, cone=cone), sy.AimGoal("tool", point, axis=axis, cone=cone)):
        solution = sy.solve(ARM, goal, "lm", start=start)
        way = direction if goal.kind == "direction" else point - solution.pose.position("tool")
        u = solution.pose.matrix("tool") @ (axis / np.linalg.norm(axis))
        angle = math.atan2(np.linalg.norm(np.cross(u, way)), u @ way)
        assert solution.reached
        assert angle <= cone + solution.ik.tolerance[1]
        first = sy.solve(ARM, goal, "lm", start=solution.pose)
        assert first.steps == 0


def test_a_cone_keeps_the_roll():
    """The axis may be off by the cone; the top of the tool still points up as far as the axis allows."""
    goal = sy.AimGoal("tool", (1.0, 0.3, 0.5), axis=(0, 0, 1), top=(1, 0, 0), up=(0, 0, 1), cone=0.3)
    solution = sy.solve(ARM, goal, "lm")
    assert solution.reached
    R = solution.pose.matrix("tool")
    u, top = R[:, 2], R[:, 0]
    level = np.array([0, 0, 1]) - u[2] * u
    assert math.atan2(np.linalg.norm(np.cross(top, level)), top @ level) < 2e-3


@pytest.mark.parametrize(
    "bounds",
    [
        0.1, (0.1, 0.1), (0.1,) * 6, (0, 0, -0.1), (0, 0, math.nan), (0, 0, (1, 0)), (0, 0, (math.nan, 1)), "abc",
        (None, None, None), (math.inf,) * 3, (0, 0, "no"), (0, 0, (0, 1, 2)), (0, 0, (math.inf, math.inf)),
        (0, 0, True), {"x": 1},
    ],
)  # fmt: skip
def test_bounds_that_cannot_be_used(bounds):
    with pytest.raises(sy.InputError, match="bounds"):
        sy.PositionGoal("tool", (0.4, 0.1, 0.5), bounds=bounds)


def test_other_values_that_cannot_be_used():
    with pytest.raises(sy.InputError, match="bounds_frame"):
        sy.PositionGoal("tool", bounds=(0, 0, 1), bounds_frame="world")
    with pytest.raises(sy.InputError, match="radians"):
        sy.RotationGoal("tool", bounds=(0, 0, 90))
    for cone in (-0.1, math.nan, math.pi, "wide", True):
        with pytest.raises(sy.InputError, match="cone"):
            sy.DirectionGoal("tool", direction=(0, 0, 1), cone=cone)


def test_forms_of_bounds():
    free = (-math.inf, math.inf)
    assert as_bounds((0.1, None, (None, 0.2)), 3).tolist() == [[-0.1, 0.1], [*free], [-math.inf, 0.2]]
    assert as_bounds(np.array([[0.0, 1.0]] * 3), 3).tolist() == [[0.0, 1.0]] * 3
    assert as_bounds(np.array([0.1, np.inf, 0.0]), 3).tolist() == [[-0.1, 0.1], [*free], [0.0, 0.0]]
    turns = sy.RotationGoal("tool", bounds=((0, None), (-math.pi, math.pi), 7e-2)).ranges
    assert turns.tolist() == [[0.0, math.pi], [*free], [-0.07, 0.07]]


def test_solvers_that_cannot_say_so():
    slot = sy.PositionGoal("tool", (0.4, 0.1, 0.5), bounds=(0, None, 0))
    for name in ("fabrik", "ccd", "particles", "two-bone", "segments", "hinges"):
        with pytest.raises(sy.errors.UnsupportedError, match=r"bounds|cone"):
            sy.IK(ARM, slot, name)
    with pytest.raises(sy.errors.UnsupportedError, match="cone"):
        sy.IK(ARM, sy.DirectionGoal("tool", direction=(0, 0, 1), cone=0.2), "aim")
    for name in ("lm", "dls", "pinv", "sdls", "transpose", "full-body"):
        assert sy.solve(ARM, slot, name).reached


GOALS = [
    sy.PositionGoal("tool", (0.4, 0.1, 0.5), bounds=(0, None, (0, 0.1)), bounds_frame="tool"),
    sy.RotationGoal("tool", Rotation.from_euler("x", 100, degrees=True), bounds=(0.1, (None, 0.2), None)),
    sy.PoseGoal("tool", (0.4, 0.1, 0.5), Rotation.identity(), bounds=(0, 0, 0, 0.2, 0.2, None)),
    sy.DirectionGoal("tool", (1, 0, 0), (0, 0, -1), cone=0.3),
    sy.AimGoal("tool", (1, 0, 0.5), cone=0.3),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_copies_files_and_texts_keep_bounds(goal, tmp_path):
    sy.write_goals([goal], tmp_path / "goals.toml")
    (read,) = sy.read_goals(tmp_path / "goals.toml", ARM)
    for other in (read, copy.deepcopy(goal), pickle.loads(pickle.dumps(goal)), goal.at_priority(0)):
        assert other.needs == goal.needs == "rows"
        for a, b in zip(other.terms, goal.terms, strict=True):
            assert (a.kind, a.numbers, a.takes) == (b.kind, b.numbers, b.takes)
    assert "bounds=" in repr(goal) or "cone=" in repr(goal)


def test_batches_and_tracks_are_the_solves():
    goal = sy.PoseGoal(
        "tool", (0.4, 0.1, 0.5), Rotation.from_euler("x", 180, degrees=True), bounds=(0.02,) * 5 + (None,)
    )
    ik = sy.IK(ARM, goal, "lm")
    targets = np.stack([ARM.random_pose(k).transform("tool") for k in range(20)])
    for one, T in zip(ik.solve_many({"tool": targets}), targets, strict=True):
        single = ik.solve({"tool": T})
        assert np.array_equal(one.pose.q, single.pose.q)
    path = np.repeat(goal.target[None], 80, axis=0)
    path[:, 0, 3] += 0.1 * np.sin(np.linspace(0, 6, 80))
    for solver in ("lm", "full-body"):
        track = sy.IK(ARM, goal, solver).track({"tool": path}, start=sy.solve(ARM, goal).pose)
        assert track.reached.all()
        assert max(float(np.abs(b - a).max()) for a, b in pairwise(track.motion.q)) < 0.2


def test_a_lower_goal_moves_a_body_within_its_bounds():
    """The tool is drawn along a slot by a lower goal, to its end, and not across."""
    slot = sy.PositionGoal("tool", (0.4, 0.0, 0.5), bounds=(0, (-0.1, 0.2), 0), name="slot")
    far = sy.PositionGoal("tool", (0.4, 0.6, 0.6), priority=1, name="far")
    solution = sy.solve(ARM, [slot, far], "full-body")
    np.testing.assert_allclose(solution.pose.position("tool"), (0.4, 0.2, 0.5), atol=3e-4)
    near = sy.PositionGoal("tool", (0.4, 0.1, 0.6), priority=1, name="far")
    np.testing.assert_allclose(
        sy.solve(ARM, [slot, near], "full-body").pose.position("tool"), (0.4, 0.1, 0.5), atol=3e-4
    )


def test_misses_speak_of_the_bounds():
    goal = sy.PositionGoal("tool", (2.4, 0.0, 0.5), bounds=(0.3, None, None))
    solution = sy.solve(ARM, goal)
    assert solution.status is sy.Status.UNREACHABLE
    text = " ".join(solution.explain())
    assert "outside its bounds" in text
    assert "2.1 m from 'joint1'" in text
    assert f"{1e3 * solution.errors[0].position:.3g} mm" in text or "m outside" in text
    assert sy.solve(ARM, goal, "full-body").status is sy.Status.UNREACHABLE
