"""Misses of one joint, whose best pose is plain to see: where a single call looks for it, and where a track stays."""

import numpy as np
import pytest

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
