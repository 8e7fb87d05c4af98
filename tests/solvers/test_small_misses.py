"""Misses of one joint, whose best pose is plain to see: where a single call looks for it, and where a track stays."""

import numpy as np
import pytest
from scipy.optimize import minimize

import synovia as sy

SOLVERS = ("lm", "dls", "full-body", "fabrik", "ccd", "particles")
DESCENTS = ("lm", "dls", "full-body")  # those that go downhill; the others take the nearer end by a formula
END = 3.0  # of the hinge to both sides: what lies behind it is nearer to one end, and farther by the other way round


def pointer():
    """Return a hinge with an arm of length one."""
    rest = np.eye(4)
    rest[0, 3] = 1.0
    return sy.Skeleton(
        [
            sy.Joint("hinge", kind=sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-END, END)),
            sy.Joint("tip", "hinge", rest=rest, tip=True),
        ]
    )


BODY = pointer()


def at(angle, length=1.0):
    """Return a place on a circle about the hinge."""
    return length * np.array([np.cos(angle), np.sin(angle), 0.0])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_single_miss_ends_at_the_nearer_end_wherever_it_starts(solver, side):
    ik = sy.IK(BODY, sy.PositionGoal("tip"), solver)
    solution = ik.solve({"tip": at(side * 3.2)}, [side * 2.9])
    assert solution.q[0] == pytest.approx(-side * END, abs=1e-3)
    assert solution.status is sy.Status.LIMITED
    many = ik.solve_many({"tip": np.array([at(side * 3.2)] * 2)}, [[0.4], [-2.9]])
    np.testing.assert_allclose(many.q[:, 0], -side * END, atol=1e-3)


@pytest.mark.parametrize("solver", DESCENTS)
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_track_that_has_begun_stays_at_its_end(solver, side):
    """Though the other end comes nearer: it would be a jump; and comes back with the target."""
    angles = side * np.array([2.7, 2.8, 2.9, 3.0, 3.1, 3.2, 3.25, 3.2, 3.0, 2.8])
    clip = sy.IK(BODY, sy.PositionGoal("tip"), solver).track({"tip": np.array([at(x) for x in angles])}, [side * 2.6])
    np.testing.assert_allclose(clip.q[:, 0], side * np.minimum(np.abs(angles), END), atol=2e-3)
    assert list(np.flatnonzero(~clip.reached)) == [4, 5, 6, 7]
    assert clip.jumps == ()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_track_whose_first_frame_misses_begins_where_a_single_call_ends(solver):
    clip = sy.IK(BODY, sy.PositionGoal("tip"), solver).track({"tip": np.array([at(3.2)] * 3)}, [2.9])
    np.testing.assert_allclose(clip.q[:, 0], -END, atol=1e-3)
    assert not clip.reached.any()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("angle", [0.3, -2.0, 2.99])
def test_a_place_beyond_the_arm_is_proved_out_of_reach_and_pointed_at(solver, angle):
    solution = sy.IK(BODY, sy.PositionGoal("tip"), solver).solve({"tip": at(angle, 1.7)}, [0.1])
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.q[0] == pytest.approx(angle, abs=2e-3)


@pytest.mark.parametrize("solver", DESCENTS)
def test_goals_that_pull_to_two_sides_are_a_conflict(solver):
    """Half-way between, and by their weights."""
    goals = [sy.PositionGoal("tip", at(0.4), name="a"), sy.PositionGoal("tip", at(1.0), weight=4.0, name="b")]
    solution = sy.IK(BODY, goals, solver).solve(start=[0.0])
    assert solution.status is sy.Status.CONFLICT
    angles = np.linspace(0, 1.5, 15001)
    cost = (2 - 2 * np.cos(angles - 0.4)) + 4 * (2 - 2 * np.cos(angles - 1.0))
    assert solution.q[0] == pytest.approx(angles[np.argmin(cost)], abs=2e-3)


def with_fingers(fingers):
    """Return an arm of three stiff hinges, each with a value that it prefers, with or without a coupled pair beside."""
    rest = np.eye(4)
    rest[0, 3] = 0.5
    joints = [
        sy.Joint(
            f"h{i}", f"h{i - 1}" if i else None, sy.Kind.HINGE, rest, axis=(0, 0, 1), stiffness=1.0 + i,
            preferred=0.3 - 0.2 * i,
        )
        for i in range(3)
    ]  # fmt: skip
    joints.append(sy.Joint("tip", "h2", rest=rest, tip=True))
    if fingers:
        joints.append(sy.Joint("lead", "h0", sy.Kind.HINGE, rest, axis=(0, 1, 0)))
        joints.append(sy.Joint("led", "lead", sy.Kind.HINGE, rest, axis=(0, 1, 0), mimic=sy.Mimic("lead", 0.5, 0.1)))
        joints.append(sy.Joint("led too", "lead", sy.Kind.HINGE, rest, axis=(1, 0, 0), mimic=sy.Mimic("lead", -2.0)))
    return sy.Skeleton(joints)


@pytest.mark.parametrize("solver", ["lm", "dls", "ccd", "fabrik"])
def test_what_joints_prefer_is_the_same_beside_coupled_joints(solver):
    """A pair that no goal moves changes nothing, wherever its numbers are packed."""
    answers = []
    for fingers in (False, True):
        body = with_fingers(fingers)
        ik = sy.IK(body, sy.PositionGoal("tip"), sy.solvers[solver](attempts=1))
        start = body.rest_pose().with_values({"h0": 0.5, "h1": -0.6, "h2": 0.9})
        answers.append(ik.solve({"tip": (1.1, 0.7, 0.0)}, start))
    assert answers[0].reached
    for name in ("h0", "h1", "h2"):
        assert answers[1].pose[name] == pytest.approx(answers[0].pose[name], abs=1e-6)


def test_frames_that_a_velocity_holds_back_are_late_and_others_are_not():
    """A pointer that may turn a tenth of a radian a frame follows a jump in the time that it needs."""
    ik = sy.IK(BODY, sy.PositionGoal("tip"))
    angles = np.array([0.0, 0.0, 0.55, 0.55, 0.55, 0.55, 0.55, 0.55, 0.55, 0.55])
    targets = np.array([at(x) for x in angles])
    clip = ik.track({"tip": targets}, [0.0], velocity=3.0, fps=30.0)
    assert np.abs(np.diff(clip.q[:, 0])).max() <= 0.1 + 1e-9
    assert clip.late == clip.missed_frames
    assert set(clip.late) <= set(range(1, 8))
    assert len(clip.late) >= 4
    assert clip.smoothed_off == ()
    targets[5] = (5.0, 0.0, 0.0)
    assert 5 not in ik.track({"tip": targets}, [0.0], velocity=3.0, fps=30.0).late
    assert ik.track({"tip": targets[:2]}, [0.0], velocity=3.0, fps=30.0).late == ()


def planar(bones, limit):
    """Return hinges about z in a row, bones of length one, and a tip."""
    rest = np.eye(4)
    rest[0, 3] = 1.0
    joints = []
    for i in range(bones):
        above = f"h{i - 1}" if i else None
        at_end = rest if i else np.eye(4)
        joints.append(sy.Joint(f"h{i}", above, sy.Kind.HINGE, at_end, axis=(0, 0, 1), limit=sy.Interval(-limit, limit)))
    return sy.Skeleton([*joints, sy.Joint("tip", f"h{bones - 1}", rest=rest, tip=True)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [3.0, 0.9])
def test_a_lower_level_does_what_the_level_above_leaves_it(seed, limit):
    """A place of the middle holds, and the tip comes as near to where it cannot go as SciPy brings it from anywhere."""
    rng = np.random.default_rng(seed)
    body = planar(4, limit)
    middle = body.random_pose(seed + 1).position("h2")
    far = at(rng.uniform(-np.pi, np.pi), rng.uniform(4.2, 6.0))
    goals = [sy.PositionGoal("h2", middle, name="held"), sy.PositionGoal("tip", far, priority=1, name="wanted")]
    solution = sy.IK(body, goals, "full-body").solve()
    assert np.linalg.norm(solution.pose.position("h2") - middle) < 4e-4
    found = np.linalg.norm(solution.pose.position("tip") - far)

    def places(q):
        turns = np.cumsum(q)
        steps = np.column_stack([np.cos(turns), np.sin(turns)])
        return steps[:2].sum(axis=0), steps.sum(axis=0)

    held = {"type": "eq", "fun": lambda q: places(q)[0] - middle[:2]}
    best = np.inf
    for start in range(6):
        q = body.random_pose(100 + start).q
        tried = minimize(
            lambda q: ((places(q)[1] - far[:2]) ** 2).sum(), q, bounds=[(-limit, limit)] * 4, constraints=held
        )
        if tried.success and np.abs(places(tried.x)[0] - middle[:2]).max() < 1e-5:
            best = min(best, np.sqrt(tried.fun))
    assert np.isfinite(best)
    assert found <= best + 2e-3
    assert (np.abs(solution.q) <= limit + 1e-12).all()
