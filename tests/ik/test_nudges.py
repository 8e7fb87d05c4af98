"""Where a solver without restarts stops before its target, a nudge finds better poses, and never worse ones."""

import numpy as np

import synovia as sy
from synovia.ik.nudges import Nudges

ARM = sy.bundled("arm7")


def nudged(ik, target, found):
    """Return a solution after all nudges that are worth trying, and how many there were."""
    nudges, tried = Nudges(ik.problem), 0
    nudges.begin()
    while nudges.left:
        found, tried = nudges.improved(found, lambda q: ik.solve(target, q, follow=True)), tried + 1
    return found, tried


def test_nudges_reach_targets_where_the_solver_alone_stops():
    ik = sy.IK(ARM, sy.PositionGoal("tool"), sy.DampedLeastSquares(attempts=1))
    reached = 0
    for seed in range(60):
        target = ARM.random_pose(1000 + seed).position("tool")
        stuck = ik.solve(target, ARM.random_pose(seed), follow=True)
        better, _ = nudged(ik, target, stuck)
        assert better.errors[0].position <= stuck.errors[0].position
        reached += stuck.missed != () and better.reached
    assert reached


def test_a_target_beyond_the_reach_is_given_up():
    ik = sy.IK(ARM, sy.PositionGoal("tool"), sy.DampedLeastSquares(attempts=1))
    found = ik.solve((9.0, 0.0, 0.0), "rest", follow=True)
    better, tried = nudged(ik, (9.0, 0.0, 0.0), found)
    assert tried <= 5
    np.testing.assert_allclose(better.errors[0].position, found.errors[0].position, atol=ik.tolerance[0])


def test_nothing_is_tried_where_the_solver_leaves_such_points_by_itself():
    for solver in (sy.FullBody(), sy.LevenbergMarquardt(attempts=4)):
        ik = sy.IK(ARM, sy.PositionGoal("tool"), solver)
        miss = ik.solve((9.0, 0.0, 0.0))
        assert nudged(ik, (9.0, 0.0, 0.0), miss) == (miss, 1)
