"""The descent of a full body: damped steps of all levels until every goal is met.

Poses are compared level by level: errors of a lower level count only if the errors above are equal. So this descent
has a loop of its own, not that of ``search.descent``.
"""

from synovia.kernels.compiler.jit import F, apart, inline
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.clearance import measured_work
from synovia.kernels.hierarchy.basis import open_levels
from synovia.kernels.hierarchy.inequalities import contact_slacks, slack_count
from synovia.kernels.hierarchy.largest_move import save_pose
from synovia.kernels.hierarchy.step import (
    EQUAL_ERRORS,
    combined_error,
    evaluate_levels,
    is_better_pose,
    smallest_tolerance,
    take_step,
)
from synovia.kernels.layout import LARGEST_MOVE, NO_POSTURE, REST_STEP
from synovia.kernels.loops.closing import CLOSED, close_again, keep_pose, remember_start
from synovia.kernels.search.descent import INSIDE, falls_slowly
from synovia.kernels.tree.chart import INFINITE
from synovia.kernels.tree.problem import copy

PATIENCE = 2  # steps without improvement before the damping grows
MIN_DAMPING, INCREASE, DECREASE = F(1e-2), F(10), F(0.3)
LOOSE = F(0.2)  # largest closure error (radians or length scales) of loops between two steps
LOOSE_SHARE = F(10)  # largest closure error relative to the errors of the goals; both fall with the square of the step
MAX_DAMPING = F(1e6)  # largest damping: if so short a step does not improve the pose, no step does


@inline
def open_hierarchy(problem, work):
    """Return the scratch memory of the hierarchy, with the posture switched on."""
    h = open_levels(work.solver_scratch, work.J.shape[0], work.J.shape[1] + slack_count(problem))
    h.state[NO_POSTURE] = F(0)
    return h


@inline
def work_of_levels(problem):
    """Return the estimated work of a step of all levels (see ``watch``), without the work of pairs of shapes."""
    m, v = F(problem.residuals), F(problem.columns) + F(contact_slacks(problem.clear))
    return F(4) * F(problem.tree.ints.shape[0]) + m * v / F(4) + m * v * v / F(512)


@inline
def evaluate_closed(problem, work, targets, q, h, exactly):
    """Evaluate q after a step by ``evaluate_levels``; if the closure error is too large, close the loops first.

    The next step also reduces the closure error, so closing the loops after each step would do the same work twice.
    The loops are closed if their closure error makes the errors of the goals meaningless, if the goals are met, or if
    ``exactly`` is true. If a pose cannot be closed, q returns to the last closed pose.

    Returns:
        (the largest error in units of its tolerance, the closure error of the loops).
    """
    worst = evaluate_levels(problem, work, targets, q, h)
    if problem.loops.ints.shape[0] == 0:
        return worst, F(0)
    lack = h.errors[0]
    below = F(0)
    for k in range(1, problem.levels.shape[0] - 1):
        below += h.errors[k]
    if not lack <= (CLOSED if exactly or worst <= F(1) else min(LOOSE_SHARE * below, LOOSE)):
        close_again(problem.loops, problem, q, problem.params[LARGEST_MOVE] < INFINITE)
        keep_pose(problem.loops, q)
        worst = evaluate_levels(problem, work, targets, q, h)
        lack = F(0)
    h.errors[0] = F(0)
    return worst, lack


@apart
def descend_levels(problem, work, targets, q, h, count):
    """Descend from q until every goal is met, the error falls too slowly, or the steps are spent.

    Only the first ``count`` levels take part; the posture is the last level. With a posture the descent goes on until
    no column moves by more than ``REST_STEP`` in a step.

    Returns:
        (steps, combined error of the best pose); q is that pose.
    """
    levels = problem.levels.shape[0] - 1
    limited_move = problem.params[LARGEST_MOVE] < INFINITE
    keep_pose(problem.loops, q)
    met_error = F(0)
    if limited_move:  # at the bounds of the largest move, levels gain tiny amounts for many steps
        save_pose(problem, q, h.saved_pose)
        remember_start(problem.loops, problem, q)
        met_error = smallest_tolerance(problem)
    earlier = F(0)
    size = F(0)
    open_by = F(0)  # closure error of the best pose
    damping = F(0)
    worse_steps = 0
    cost_of_step = work_of_levels(problem)
    met = False  # whether the best pose meets all goals
    for k in range(problem.max_steps + 1):
        worst, lack = evaluate_closed(problem, work, targets, q, h, False)
        reached = worst <= INSIDE and count > levels
        if k == 0 or reached != met:
            better = k == 0 or reached
        elif reached:  # within the tolerance only the posture is compared
            better = h.errors[levels] < h.best[levels] - EQUAL_ERRORS
        else:
            better = is_better_pose(h, count, met_error)
        if better:
            copy(h.errors, h.best)
            copy(q, work.trial)
            met, open_by = reached, lack
            damping *= DECREASE
            worse_steps = 0
        else:
            worse_steps += 1
            if worse_steps == PATIENCE:  # the steps were too long: take shorter steps from the best pose
                worse_steps = 0
                damping = max(INCREASE * damping, MIN_DAMPING)
                copy(work.trial, q)
                reached = evaluate_closed(problem, work, targets, q, h, False)[0] <= INSIDE and count > levels
        if reached and (h.errors[levels] == F(0) or (k > 0 and size <= problem.params[REST_STEP])):
            break
        if limited_move:  # the largest move, not slow convergence, limits the fall of the error
            if damping > MAX_DAMPING:
                break
        elif not met:
            slowly, earlier = falls_slowly(problem, k, combined_error(problem, h.best, count), earlier)
            if slowly:
                break
        if k == problem.max_steps or stopped(work.watch, cost_of_step + measured_work(problem.clear)):
            break
        size = take_step(problem, work, targets, q, h, count, damping)
    copy(work.trial, q)
    if open_by > CLOSED:
        evaluate_closed(problem, work, targets, q, h, True)
        copy(h.errors, h.best)
    return k, combined_error(problem, h.best, count)
