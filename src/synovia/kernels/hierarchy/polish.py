"""Polish levels by Newton steps, until a level improves no further without making a level above worse.

A step of a level disturbs the levels above to second order. So restoration steps repair those levels before the step
is compared. The first restoration steps keep the bounds active at which the step ended: leaving an active bound costs
the level more than the quadratic model predicts. If the pose is then no better, the step is repeated with more damping
and a smaller largest move. A level that is nearly flat would move far for almost no gain and disturb the levels below,
so it keeps some damping after it has converged.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.clearance import measured_work
from synovia.kernels.hierarchy.basis import fix_column
from synovia.kernels.hierarchy.descent import work_of_levels
from synovia.kernels.hierarchy.levels import level_residual, solve_level, solve_posture
from synovia.kernels.hierarchy.newton import constraint_forces, geometric_stiffness, newton_level, rebuild_basis
from synovia.kernels.hierarchy.step import EQUAL_ERRORS, apply_step, assemble_levels, evaluate_levels, to_pose_step
from synovia.kernels.layout import (
    ACTIVE_SIDE,
    BASIS_COUNT,
    BASIS_STALE,
    LARGEST_STEP,
    PERMANENT,
    POSE_COLUMN,
    SOLVES,
    STEP_LOWER,
    STEP_UPPER,
)
from synovia.kernels.tree.problem import copy, work_of_newton

MAX_STEPS = 300  # largest number of steps of each level
NEWTON_COST = F(5)  # work of a Newton step in this file, relative to ``search.polish``
MIN_GAIN, MAX_LOSS = (
    F(1e-13),
    F(1e-12),
)  # relative to 1 + error: smallest gain of the polished level, largest loss of a level above
UPPER_LOSS = F(1e-11)  # smaller losses of the levels above, over all steps, are rounding
MAX_RESTORATIONS = 5  # largest number of restoration steps of the levels above after one step of the last level
RESTORATIONS_AT_BOUNDS = 3  # number of restoration steps, from the first on, that keep the active bounds
# radians, length scales: within this distance a bound is active; above the 4e-6 by which limited swings stay below π
# (``swing_twist.FOLDED``), so that such a swing is at its bound
AT_BOUND = F(1e-5)
MIN_DAMPING, MAX_DAMPING = F(1e-4), F(1e7)  # if the short step with the largest damping does not help, no step does
INCREASE, DECREASE = F(10), F(0.2)
SHRINK, EXPAND = F(0.3), F(3)  # factors of the largest move after a rejected and an accepted step
UPPER_SHARE = F(1e-4)  # damping of the levels above, relative to the damping of the last level
SMALL_STEP = F(1e-6)  # shorter steps (radians, length scales) hardly disturb the levels below
MAX_KEPT_DAMPING = F(1)  # largest damping that a converged level keeps
MIN_STEP = F(1e-10)  # shorter steps (radians, length scales) are rounding
MISSED_ERROR = F(1e-7)  # error of a level (length scales, radians) above which it counts as infeasible
BASE_DAMPING = F(1e-12)


@device
def record_active_bounds(h):
    """Record the bounds at which a step ended."""
    for k in range(h.v.shape[1]):
        h.active_bounds[int(h.v[POSE_COLUMN, k])] = h.v[ACTIVE_SIDE, k]


@device
def fix_recorded_bounds(h, n):
    """Fix columns at their recorded bounds for a whole step, if the pose is still at them; the first n are joints.

    The coordinates of a ball rotate with the ball, so a recorded bound may have moved.
    """
    for k in range(h.v.shape[1] - 1, -1, -1):
        c = int(h.v[POSE_COLUMN, k])
        side = h.active_bounds[c]
        bound = h.v[STEP_UPPER, k] if side > F(0) else h.v[STEP_LOWER, k]
        if side != F(0) and (c >= n or abs(bound) <= AT_BOUND):
            h.v[PERMANENT, k] = F(1)
            if h.v[ACTIVE_SIDE, k] == F(0):
                fix_column(h, k, side)


@apart
def newton_step(problem, work, targets, q, h, count, max_move, at_bounds):
    """Move q by one step of the first ``count`` levels, with Newton's method for infeasible ones.

    The posture is the last level. The last of the ``count`` levels moves no column by more than ``max_move``. With
    ``at_bounds``, the recorded bounds stay active.

    Returns:
        The largest component of the step.
    """
    copy(work.e, h.e)
    assemble_levels(problem, work, targets, q, h)
    if at_bounds:
        fix_recorded_bounds(h, work.dq.shape[0])
    levels = problem.levels.shape[0] - 1
    has_hessian = work.H.shape[0] > 0
    h.state[SOLVES] = F(0)
    h.state[BASIS_COUNT] = F(0)
    h.state[BASIS_STALE] = F(1)
    for k in range(min(levels, count)):
        first, last = np.int64(problem.levels[k]), np.int64(problem.levels[k + 1])
        max_step = max_move if k == count - 1 else problem.params[LARGEST_STEP]
        damping = BASE_DAMPING + h.dampings[k]
        solve_level(h, first, last, damping, F(0), max_step, True)
        if not has_hessian or level_residual(h, first, last) <= MISSED_ERROR * MISSED_ERROR:
            continue
        rebuild_basis(h, first)
        constraint_forces(h, first, last)
        force = F(0)
        for i in range(h.s.shape[0]):
            force = max(force, abs(h.s[i]))
        geometric_stiffness(problem, work, targets, q, h)
        newton_level(h, work.H, first, last, damping, max_step, force)
    if count > levels:
        solve_posture(h, h.dampings[levels], max_move, True)
    size = to_pose_step(work, h)
    apply_step(problem, q, work.dq)
    return size


@device
def increase_damping(h, count):
    """Increase the damping of the last level, and of infeasible levels above; return the damping of the last level.

    Infeasible levels above would otherwise gain tiny amounts for many steps.
    """
    last = count - 1
    h.dampings[last] = max(INCREASE * h.dampings[last], MIN_DAMPING)
    for k in range(last):
        if h.best[k] > MISSED_ERROR:
            h.dampings[k] = max(h.damping_floors[k], UPPER_SHARE * h.dampings[last])
    return h.dampings[last]


@device
def decrease_damping(h, count, share):
    """Multiply the damping of every level by ``share``; values below MIN_DAMPING become zero, or their lower bound."""
    for k in range(count):
        less = share * h.dampings[k] if share > 0 else F(0)  # if share is 0, the old value may be infinite
        h.dampings[k] = max(less if less >= MIN_DAMPING else F(0), h.damping_floors[k])


@device
def has_gained(h, count, loss, gain, last_gain):
    """Return whether the last of ``count`` levels gained ``last_gain``, or a level above gained, and none above lost.

    A level above gained or lost if its error changed by more than ``gain`` or ``loss`` (relative to 1 + error), or
    lost if its error is NaN.
    """
    last = count - 1
    for k in range(last):
        size = F(1) + h.best[k]
        if h.errors[k] < h.best[k] - gain * size:
            return True
        if not h.errors[k] <= h.best[k] + loss * size:
            return False
    return h.errors[last] < h.best[last] - last_gain * (F(1) + h.best[last])


@device
def upper_levels_kept(h, count):
    """Return whether none of the first ``count`` levels lost more than MAX_LOSS."""
    for k in range(count):
        if not h.errors[k] <= h.best[k] + MAX_LOSS * (F(1) + h.best[k]):
            return False
    return True


@device
def update_best(h, count):
    """Store the errors as the best; levels above the last keep their lowest, so that small losses never add up."""
    for k in range(h.best.shape[0]):
        if k >= count - 1 or h.errors[k] < h.best[k]:
            h.best[k] = h.errors[k]


@apart
def refine(problem, work, targets, q, h, count):
    """Polish q until none of the first ``count`` levels gains without a loss of the levels above.

    The polish ends if the step is rounding, or if no damping, from 0 upwards, gives a step that improves the pose. So
    polishing the result again returns it unchanged.

    Returns:
        (steps taken, whether it converged: False if the steps were spent, whether q moved visibly).
    """
    evaluate_levels(problem, work, targets, q, h)
    copy(h.errors, h.best)
    copy(q, work.best)
    last = count - 1
    h.damping_floors[last] = F(0)
    decrease_damping(h, count, F(0))
    max_move = problem.params[LARGEST_STEP]
    is_posture = last == problem.levels.shape[0] - 1
    last_gain = EQUAL_ERRORS if is_posture else MIN_GAIN  # no level depends on the minimum of the posture
    undamped = True
    moved = False
    restorations = 0
    kept_damping = F(0)
    steps, converged = MAX_STEPS, False
    cost_of_step = work_of_levels(problem)
    if work.H.shape[0] > 0:
        cost_of_step += NEWTON_COST * work_of_newton(problem)
    for k in range(MAX_STEPS):
        if stopped(work.watch, cost_of_step + measured_work(problem.clear)):
            steps = k
            break
        if restorations == 0:
            size = newton_step(problem, work, targets, q, h, count, max_move, False)
            record_active_bounds(h)
        else:
            at_bounds = restorations <= RESTORATIONS_AT_BOUNDS
            size = newton_step(problem, work, targets, q, h, last, problem.params[LARGEST_STEP], at_bounds)
        if restorations == 0 and size < MIN_STEP:
            steps, converged = k, True
            break
        if restorations == 0 and size > SMALL_STEP:
            kept_damping = min(INCREASE * h.dampings[last], MAX_KEPT_DAMPING)
        worst = evaluate_levels(problem, work, targets, q, h)
        if worst <= F(1) or has_gained(h, count, MAX_LOSS, MAX_LOSS, last_gain):
            moved = moved or has_gained(h, count, EQUAL_ERRORS, EQUAL_ERRORS, EQUAL_ERRORS)
            update_best(h, count)
            copy(q, work.best)
            if worst <= F(1):
                return k, True, False
            restorations = 0
            undamped = False
            decrease_damping(h, count, DECREASE)
            max_move = min(EXPAND * max_move, problem.params[LARGEST_STEP])
            continue
        ends = size < MIN_STEP or upper_levels_kept(h, last)
        if ends and 0 < restorations <= RESTORATIONS_AT_BOUNDS and not upper_levels_kept(h, last):
            restorations, ends = RESTORATIONS_AT_BOUNDS, False  # restoration failed within the recorded bounds
        restorations += 1
        if ends or restorations > MAX_RESTORATIONS:
            restorations = 0
            copy(work.best, q)
            evaluate_levels(problem, work, targets, q, h)
            strongest = increase_damping(h, count)
            max_move *= SHRINK
            if strongest > MAX_DAMPING:
                if undamped:
                    steps, converged = k, True
                    break
                undamped = True
                kept_damping = F(0)
                decrease_damping(h, count, F(0))
                max_move = problem.params[LARGEST_STEP]
    copy(work.best, q)
    h.damping_floors[last] = kept_damping
    return steps, converged, moved
