"""Finish a missed full-body problem: polish the pose until no level improves without making an upper one worse.

The levels are polished one after the other, highest first. Then longer steps, and random starts (see
``search.finish``), look for a better pose.

At a saddle, such as a chain that points straight away from its target, the gradient is zero. The pose can leave a
saddle along a column in whose direction the error falls, on every side that the limits allow. A minimum has no such
column, so it is returned unchanged.

Random starts are ranked by the errors of all levels, so a level may stay in a minimum that suits the levels below.
Therefore the last search considers only the missed upper levels, as if they were solved again from the answer.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, apart, device
from synovia.kernels.compiler.views import matrix, vector
from synovia.kernels.compiler.watch import begin_work, halted, interrupted
from synovia.kernels.goals.clearance import forget_contacts
from synovia.kernels.goals.reach import at_bound
from synovia.kernels.hierarchy.descent import descend_levels, open_hierarchy
from synovia.kernels.hierarchy.largest_move import is_near_start, restore_pose, save_pose
from synovia.kernels.hierarchy.polish import MAX_LOSS, UPPER_LOSS, has_gained, refine
from synovia.kernels.hierarchy.step import (
    EQUAL_ERRORS,
    apply_step,
    evaluate_levels,
    is_better_pose,
    smallest_tolerance,
)
from synovia.kernels.layout import (
    BOX_LOWER,
    BOX_UPPER,
    COST,
    FALLS,
    FINALISTS,
    LARGEST_MOVE,
    LEVEL,
    NO_GAIN,
    NO_POSTURE,
    OTHERS,
    POSE_MORE,
    REACHED,
    SPENT,
    STALLED,
    STATUS,
    STEPS,
    STOP_REASON,
    STOPPED_BY,
    WINNER,
)
from synovia.kernels.loops.ties import has_priorities
from synovia.kernels.search.finish import BEST, Refinement, cost_of, search_elsewhere, store_best
from synovia.kernels.search.multistart import meets_goals, set_followers
from synovia.kernels.search.polish import SADDLE_STEP
from synovia.kernels.tree.chart import INFINITE, write_bounds
from synovia.kernels.tree.problem import copy, open_row
from synovia.kernels.tree.variables import draw, start_random

PASSES = 6  # largest number of passes over all levels
BEFORE = 1  # row of the stored poses for the pose before a polish; finalists use this row only later
MIN_GAIN = F(1e-8)  # smallest gain of a level, relative to 1 + error, for which another pose replaces the best
COARSE_STEPS = 15  # largest number of steps from a random start: enough to rank the minima
EQUAL_COST = F(0)  # relative difference of costs below which two coarse descents found the same minimum
ERROR_STEP = F(1e-3)  # errors (length scales, radians) of coarse descents are rounded down to multiples of this
MAX_ERROR_STEPS = F(1e4)  # number of these multiples that are distinguished; larger errors are equal
UPPER_GAIN = F(1e-7)  # smallest gain of an upper level, relative to 1 + error, for which another pose replaces the best
UPPER_WEIGHT = F(1e-4)  # weight of the error of an upper level relative to the level above
CLEAR_GAIN = F(0.9995)  # factor by which an error must fall for a pose elsewhere to replace the best


@device
def error_falls_along(problem, work, targets, q, h, count, v):
    """Return whether column v can move, and each move that its limits allow improves the first ``count`` levels.

    ``saved_pose`` holds q, and ``best`` holds the errors of q.
    """
    free = 0
    for side in range(2):
        restore_pose(problem, q, h.saved_pose)
        write_bounds(problem, q, work.box)
        step = SADDLE_STEP if side == 0 else -SADDLE_STEP
        if step < work.box[v, BOX_LOWER] or step > work.box[v, BOX_UPPER]:
            continue
        free += 1
        for i in range(work.dq.shape[0]):
            work.dq[i] = F(0)
        work.dq[v] = step
        apply_step(problem, q, work.dq)
        evaluate_levels(problem, work, targets, q, h)
        if not has_gained(h, count, MAX_LOSS, EQUAL_ERRORS, EQUAL_ERRORS):
            return False
    return free > 0


@apart
def leave_saddle(problem, work, targets, q, h, count, sign):
    """Move q, stored in ``saved_pose``, a little along all columns where the error falls; ``sign`` flips the step.

    The step is random, but the same every time.

    Returns:
        Whether there is such a column.
    """
    for v in range(work.dq.shape[0]):
        h.v[FALLS, v] = F(error_falls_along(problem, work, targets, q, h, count, v))
    restore_pose(problem, q, h.saved_pose)
    write_bounds(problem, q, work.box)
    start_random(problem, work, 0)
    found = False
    for v in range(work.dq.shape[0]):
        step = sign * SADDLE_STEP * (F(2) * draw(work) - F(1)) * h.v[FALLS, v]
        work.dq[v] = min(max(step, work.box[v, BOX_LOWER]), work.box[v, BOX_UPPER])
        found = found or h.v[FALLS, v] > F(0)
    if found:
        apply_step(problem, q, work.dq)
    return found


@device
def try_longer_steps(problem, work, targets, q, h, count):
    """Return whether a descent of the first ``count`` levels finds a better pose than q, and move q there.

    If q is a saddle, the descent also starts a little to both sides of it. ``saved_pose`` holds q, and ``saved_errors``
    holds the errors of q.
    """
    for side in range(3):
        if halted(work.watch):
            break
        copy(h.saved_errors, h.best)
        if side > 0 and not leave_saddle(problem, work, targets, q, h, count, F(1) if side == 1 else F(-1)):
            return False
        descend_levels(problem, work, targets, q, h, count)
        for last in range(1, count + 1):
            refine(problem, work, targets, q, h, last)
        evaluate_levels(problem, work, targets, q, h)
        copy(h.saved_errors, h.best)
        if has_gained(h, count, UPPER_LOSS, MIN_GAIN, MIN_GAIN):
            return True
        restore_pose(problem, q, h.saved_pose)
    return False


@device
def improve_upper_levels(problem, work, targets, q, h):
    """Return whether a descent of only the upper levels finds a better pose than q, and move q there.

    Its steps are longer than those of ``refine``, so it can leave a minimum for a lower one. Losses of lower levels are
    ignored. Finally all levels are tried together, as they are when the answer is solved again.
    """
    evaluate_levels(problem, work, targets, q, h)
    copy(h.errors, h.saved_errors)
    save_pose(problem, q, h.saved_pose)
    levels = problem.levels.shape[0] - 1
    for k in range(1, levels + 1):
        h.state[NO_POSTURE] = F(k < levels)
        found = try_longer_steps(problem, work, targets, q, h, k if k < levels else levels + 1)  # posture last
        h.state[NO_POSTURE] = F(0)
        if found:
            return True
    return False


@device
def refine_all(problem, work, targets, q, h):
    """Polish the highest level, then the first two levels, and so on to the posture; repeat while q moves.

    Returns:
        (steps taken, whether all levels converged).
    """
    steps = 0
    converged = True
    for k in range(PASSES):
        converged = True
        moved = False
        for count in range(1, problem.levels.shape[0] + 1):
            taken, done, has_moved = refine(problem, work, targets, q, h, count)
            steps += taken
            converged = converged and done
            moved = moved or has_moved
        if k == PASSES - 1 or halted(work.watch):
            break
        if not moved and not improve_upper_levels(problem, work, targets, q, h):
            break
    return steps, converged and not halted(work.watch)


@apart
def keep_better(problem, work, targets, other, q, h):
    """Write another pose to q if it is better in the first level where they differ by more than the tolerance."""
    evaluate_levels(problem, work, targets, q, h)
    copy(h.errors, h.best)
    evaluate_levels(problem, work, targets, other, h)
    if is_better_pose(h, problem.levels.shape[0] - 1, smallest_tolerance(problem)):
        for i in range(q.shape[0]):
            q[i] = other[i]


@apart
def polish_levels(problem, work, targets, q, h):
    """Polish all levels of q; if the watch ends the polish early, q is no worse than before.

    Polishing an upper level disturbs the levels below, which are polished after it.

    Returns:
        (steps taken, whether all levels converged).
    """
    before = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + POSE_MORE)[BEFORE]
    copy(q, before)
    steps, converged = refine_all(problem, work, targets, q, h)
    if halted(work.watch):
        keep_better(problem, work, targets, before, q, h)
    return steps, converged


@device
def is_better(problem, work, targets, start, q, h):
    """Return whether q meets all goals, or is better than the start in the first level where they differ."""
    evaluate_levels(problem, work, targets, start, h)
    copy(h.errors, h.best)
    worst = evaluate_levels(problem, work, targets, q, h)
    return worst <= F(1) or has_gained(h, problem.levels.shape[0], UPPER_LOSS, MIN_GAIN, MIN_GAIN)


@algorithm
def first_polish(problem, work, targets, q):
    """Polish q; if the start is as good, write the start to q, so that solving an answer again returns it unchanged.

    If q comes from a restart, the start is polished too. With a largest move, q stays unchanged, and counts as
    converged if it is near the start.

    Returns:
        (steps taken, 1 if q converged, else 0).
    """
    h = open_hierarchy(problem, work)
    start = vector(work.watch, OTHERS, q.shape[0])
    if problem.params[LARGEST_MOVE] < INFINITE:
        return 0, F(is_near_start(problem, q, start))
    steps, converged = polish_levels(problem, work, targets, q, h)
    if halted(work.watch):
        keep_better(problem, work, targets, start, q, h)
        return steps, F(0)
    better = is_better(problem, work, targets, start, q, h)
    stored = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + POSE_MORE)
    if stored[0, q.shape[0] + 1] > F(0) and not better:  # the answer comes from a restart
        copy(q, stored[BEFORE])
        copy(start, q)
        taken, converged = refine_all(problem, work, targets, q, h)
        steps += taken
        if halted(work.watch):
            keep_better(problem, work, targets, start, q, h)
            keep_better(problem, work, targets, stored[BEFORE], q, h)
            return steps, F(0)
        better = is_better(problem, work, targets, start, q, h)
    if not better:
        copy(start, q)
    return steps, F(converged)


@algorithm
def polish(problem, work, targets, q):
    """Polish all levels of q; return (steps, 1 if all converged, else 0)."""
    taken, converged = refine_all(problem, work, targets, q, open_hierarchy(problem, work))
    return taken, F(converged)


@algorithm
def coarse_descent(problem, work, targets, q):
    """Descend from q; return (steps, cost). The cost ranks poses by rounded errors, highest level first."""
    h = open_hierarchy(problem, work)
    taken, _ = descend_levels(problem, work, targets, q, h, problem.levels.shape[0])
    evaluate_levels(problem, work, targets, q, h)
    cost = F(0)
    weight = F(1)
    for k in range(problem.levels.shape[0] - 1):
        cost += weight * min(math.floor(h.errors[k] / ERROR_STEP), MAX_ERROR_STEPS - F(1))
        weight /= MAX_ERROR_STEPS
    return taken, cost


@apart
def is_clearly_better_than(problem, work, targets, q, other):
    """Return 1 if q is clearly better than another pose in a level and not worse in any level above it, else 0."""
    h = open_hierarchy(problem, work)
    met = smallest_tolerance(problem)
    evaluate_levels(problem, work, targets, other, h)
    copy(h.errors, h.best)
    evaluate_levels(problem, work, targets, q, h)
    for k in range(problem.levels.shape[0] - 1):
        error, lowest = max(h.errors[k], met), max(h.best[k], met)
        if error < CLEAR_GAIN * lowest:
            return 1
        if not error <= lowest + EQUAL_ERRORS * (F(1) + lowest):
            return 0
    return 0


@algorithm
def is_clearly_better(problem, work, targets, q):
    """Return 1 if q is clearly better than the stored best pose."""
    other = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + POSE_MORE)[BEST]
    return is_clearly_better_than(problem, work, targets, q, other), F(0)


@algorithm
def is_better_answer(problem, work, targets, q):
    """Return 1 if q, the answer of an attempt, is clearly better than the best one so far.

    The costs of attempts are sums over levels, so a gain of a lower level could outweigh a loss of an upper level.
    """
    return is_clearly_better_than(problem, work, targets, q, work.best), F(0)


@device
def evaluate_best(problem, work, targets, h, nq):
    """Write the errors of the stored best pose to ``best``; return the number of levels up to the first missed one."""
    evaluate_levels(problem, work, targets, matrix(work.watch, OTHERS, FINALISTS + 1, nq + POSE_MORE)[BEST], h)
    copy(h.errors, h.best)
    met = smallest_tolerance(problem)
    count = 1
    while count < problem.levels.shape[0] - 1 and h.best[count - 1] <= met:
        count += 1
    return count


@algorithm
def upper_descent(problem, work, targets, q):
    """Descend from q in the levels up to the first that the best pose misses; return (steps, cost of these levels)."""
    h = open_hierarchy(problem, work)
    count = evaluate_best(problem, work, targets, h, q.shape[0])
    h.state[NO_POSTURE] = F(1)
    taken, _ = descend_levels(problem, work, targets, q, h, count)
    h.state[NO_POSTURE] = F(0)
    evaluate_levels(problem, work, targets, q, h)
    cost = F(0)
    weight = F(1)
    for k in range(count):
        cost += weight * h.errors[k]
        weight *= UPPER_WEIGHT
    return taken, cost


@algorithm
def is_better_above(problem, work, targets, q):
    """Return 1 if q is better than the stored best pose in the levels up to the first that the best pose misses."""
    h = open_hierarchy(problem, work)
    count = evaluate_best(problem, work, targets, h, q.shape[0])
    evaluate_levels(problem, work, targets, q, h)
    return F(has_gained(h, count, EQUAL_ERRORS, UPPER_GAIN, UPPER_GAIN)), F(0)


UPPER_LEVELS = Refinement(upper_descent, polish, polish, is_better_above, COARSE_STEPS, EQUAL_COST, 1)


@device
def lower_levels_missed_above(problem, work, targets, q, errors):
    """Return whether the first missed level has levels below it, and another pose may reduce the error of this level.

    Errors of the levels below are overwritten. Frames are at q.
    """
    level = problem.levels.shape[0] - 2
    for g in range(problem.goals.shape[0]):
        if errors[2 * g] > problem.tolerance or errors[2 * g + 1] > problem.tolerance_angle:
            level = min(level, int(problem.goals[g, LEVEL]))
    if level == problem.levels.shape[0] - 2:
        return False
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, LEVEL] > level:
            errors[2 * g] = F(0)
            errors[2 * g + 1] = F(0)
    return not at_bound(problem, work.frames, targets, errors)


@device
def polish_again(problem, work, targets, q, row):
    """Polish the pose of a row that the work limit cut short; return whether it converged."""
    forget_contacts(problem.clear)
    taken, converged = polish_levels(problem, work, targets, q, open_hierarchy(problem, work))
    row[STEPS] += taken
    set_followers(problem, q)
    row[COST] = cost_of(coarse_descent, problem, work, targets, q)
    row[STOPPED_BY] = NO_GAIN if converged else max(work.watch[STOP_REASON], F(0))
    return converged


@apart
def search_upper_levels(problem, work, out, search):
    """Polish the rows that the work limit cut short; with ``search``, seek better poses for the missed upper levels.

    The search uses random starts. It compares poses by the missed upper levels only.
    """
    for b in range(out.shape[0]):
        row = out[b]
        if row[STATUS] == REACHED or interrupted(work.watch) or problem.columns == 0:
            continue
        q, errors, targets = open_row(problem, row)
        begin_work(work.watch, problem.most_work)
        if row[STOPPED_BY] == SPENT and has_priorities(problem) and not polish_again(problem, work, targets, q, row):
            continue
        if row[STOPPED_BY] != NO_GAIN or problem.attempts == 1 or not search:
            continue
        if meets_goals(problem, work, targets, q, errors):
            continue
        if not lower_levels_missed_above(problem, work, targets, q, errors):
            continue
        row[STATUS] = STALLED  # classification proves again which goals are out of reach
        forget_contacts(problem.clear)
        store_best(work, q)
        cost, before = row[COST], row[WINNER]
        converged = search_elsewhere(UPPER_LEVELS, problem, work, targets, errors, q, row, F(1), False)
        row[COST] = cost if row[WINNER] == before else cost_of(coarse_descent, problem, work, targets, q)
        if not converged > F(0) or interrupted(work.watch):
            row[STOPPED_BY] = max(work.watch[STOP_REASON], F(0))
