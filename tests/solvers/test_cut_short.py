"""Attempts that a limit cuts short: no answer is worse in an upper level than what an earlier attempt has found."""

import numpy as np
import pytest

import synovia as sy
from synovia.ik.interrupts import set_deadline
from synovia.kernels.layout import COLD, MOST_WORK, STOPPED_BY, TRIES

pytestmark = pytest.mark.compiled
BODY = sy.bundled("humanoid")
ENDS = ("left_hand", "right_hand", "left_foot", "right_foot", "head")
EQUAL = 1e-8  # reaches and radians, relative to 1 + error


def problem(seed):
    """Return a humanoid with goals in two to four levels that can seldom hold together, their targets, and a start."""
    rng = np.random.default_rng([2027, seed])
    far, goals, targets = rng.uniform(0.6, 1.6), [], []
    for level, end in enumerate(rng.permutation(ENDS)[: rng.integers(2, 5)].tolist()):
        pose = BODY.random_pose(int(rng.integers(2**31)))
        place = far * rng.uniform(0.5, 1.2) * pose.position(end)
        turned = [pose.rotation(end)] if rng.random() < 0.4 else []
        targets.append((end, place, *turned))
        goals.append((sy.PoseGoal if turned else sy.PositionGoal)(end, place, *turned, priority=level))
    ik = sy.IK(BODY, goals, "full-body", root="free" if rng.random() < 0.3 else "fixed")
    return ik, targets, ik.skeleton.random_pose(int(rng.integers(2**31)))


def errors(ik, targets, q):
    """Return the error of each level at joint values, reaches and radians; what is within the tolerance is equal."""
    pose, out = sy.Pose(ik.skeleton, q), []
    least = min(ik.tolerance[0] / ik.problem.reach, ik.tolerance[1])
    for end, place, *turned in targets:
        error = np.linalg.norm(pose.position(end) - place) / ik.problem.reach
        for rotation in turned:
            error = np.hypot(error, (pose.rotation(end) * rotation.inv()).magnitude())
        out.append(max(error, least))
    return out


def assert_no_worse(found, before):
    """Compare errors of levels, the highest first: the first that differs must be lower."""
    for own, other in zip(found, before, strict=True):
        if own < other - EQUAL * (1.0 + other):
            return
        assert own <= other + EQUAL * (1.0 + other), (found, before)


def attempts(ik, start, *, most=None, work=np.inf, seconds=None):
    """Return how many attempts were made, whether the last was cut short, and the best pose, before it is polished."""
    problem = ik.problem
    workspace, out = problem.new_workspace(), problem.new_rows(1)
    problem.writer.fill(None, workspace)
    floats = problem.floats.copy()
    floats[MOST_WORK] = work
    if seconds is not None:
        set_deadline(workspace.scratch, seconds)
    ints = problem.settings(attempts=most)
    problem.kernel(ints, floats, workspace.table, start.q.copy().reshape(1, -1), out, workspace.scratch, COLD, 0)
    return int(out[0, TRIES]), out[0, STOPPED_BY] != 0.0, out[0, problem.places]


@pytest.mark.parametrize("seed", range(60))
def test_a_cut_attempt_never_replaces_a_better_one(seed):
    ik, targets, start = problem(seed)
    rng, usual = np.random.default_rng(seed), float(ik.problem.floats[MOST_WORK])
    limits = [{"work": usual * x} for x in 10.0 ** rng.uniform(-3, -0.5, 4)]
    limits += [{"seconds": x} for x in 10.0 ** rng.uniform(-4, -2, 2)]
    for limit in limits:
        made, cut, q = attempts(ik, start, **limit)
        if not cut or made < 2:
            continue
        count, _, completed = attempts(ik, start, most=made - 1)
        assert count == made - 1
        before = errors(ik, targets, completed)
        assert_no_worse(errors(ik, targets, q), before)
        if "work" in limit:  # also once it is polished
            ik.problem.floats[MOST_WORK] = limit["work"]
            assert_no_worse(errors(ik, targets, ik.solve(start=start).q), before)
