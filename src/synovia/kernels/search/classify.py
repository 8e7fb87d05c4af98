"""What a miss means: the last descent of the Jacobian family, and the verdict of every solver.

Kept apart from the solvers' own kernels: a solve that reaches its goals never loads it, and is compiled once for
all.
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, entry
from synovia.kernels.compiler.watch import begin_work, halted
from synovia.kernels.goals.reach import at_bound
from synovia.kernels.goals.residuals import measure, residual, to_units
from synovia.kernels.jacobian.descent import LARGEST_TURN, damped_step, largest, linearise
from synovia.kernels.layout import (
    CONFLICT,
    CUT,
    ENDED,
    FINISH,
    FIRST_RESIDUAL,
    LIMITED,
    REACHED,
    RESIDUALS,
    RESTED,
    SPENT,
    STALLED,
    STATUS,
    STEPS,
    STEPS_SPENT,
    UNREACHABLE,
    WINNER,
)
from synovia.kernels.math.linear import times_t
from synovia.kernels.search.lowest import ALIKE, keep, left, sketch_others, take_back, take_finalist
from synovia.kernels.search.multistart import follow
from synovia.kernels.search.polish import LOWER, come_to_rest, drop_held, pull
from synovia.kernels.search.restarts import scatter
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_any, open_problem, open_row, open_work
from synovia.kernels.tree.variables import step

SETTLE_STEPS = 200
SKETCH_STEPS = 12  # from a random start: enough to tell which minima are worth more
CURVED, LESS, MORE = F(0.6), F(0.7), F(4)  # damping, of the root of the cost, and its changes
STATIONARY = F(1e-5)  # gradient against residual below which a pose cannot be improved to first order
CANCELS = F(1e-3)  # what is left of gradients against their sizes below which they hold each other


@device
def strongest_pull(problem, work, targets, errors, q):
    """Return (number of missed goals, the largest gradient that one of them has alone); e is overwritten."""
    missed = 0
    pull = F(0)
    goals = problem.goals.shape[0]
    for g in range(goals):
        if errors[2 * g] <= problem.tolerance and errors[2 * g + 1] <= problem.tolerance_angle:
            continue
        missed += 1
        first = problem.goals[g, FIRST_RESIDUAL]
        last = first + problem.goals[g, RESIDUALS]
        residual(problem, q, work.frames, targets, work.e)
        work.e[:first] = F(0)
        work.e[last:] = F(0)
        times_t(work.J, work.e, work.dq)
        pull = max(pull, largest(work.dq))
    return missed, pull


@device
def verdict(problem, work, targets, errors, q, spent):
    """Return the status of a pose that misses a goal and is not proved unreachable: the first that applies."""
    cost, _ = residual(problem, q, work.frames, targets, work.e)
    unheld, multiplier = pull(problem, work, targets, q)
    drop_held(work)
    small = STATIONARY * math.sqrt(cost)
    missed, strongest = strongest_pull(problem, work, targets, errors, q)
    if missed > 1 and strongest > small and unheld < max(CANCELS * strongest, small):
        return CONFLICT
    if multiplier > small and unheld < max(CANCELS * multiplier, small):
        return LIMITED
    return STEPS_SPENT if spent else STALLED


@algorithm
def sketch(problem, work, targets, q):
    """Descend roughly: damped least squares, in which the damping stands for the curvature of what is missed.

    A chain that points at a target d away resists each turn by d times its lever: that grows with the root of the cost.
    """
    share = CURVED
    lowest = F(0)
    for k in range(SKETCH_STEPS + 1):
        forward(problem.tree, q, work.frames)
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if k == 0 or cost < lowest:
            lowest = cost
            share *= LESS
            copy(q, work.trial)
        else:
            share *= MORE
            copy(work.trial, q)
            forward(problem.tree, q, work.frames)
            residual(problem, q, work.frames, targets, work.e)
        if k == SKETCH_STEPS or worst <= F(1):
            break
        linearise(problem, work, targets, q)
        damped_step(work, share * math.sqrt(lowest))
        size = largest(work.dq)
        to_units(problem, work.dq)
        step(problem.variables, problem.limits, q, work.dq, min(F(1), LARGEST_TURN / max(size, F(1e-300))))
    copy(work.trial, q)
    forward(problem.tree, q, work.frames)
    return k, lowest


@device
def look_elsewhere(problem, work, targets, q, row, still):
    """Leave a minimum for a clearly lower one, if random starts lead to it; return whether q is stationary."""
    lowest, worst = residual(problem, q, work.frames, targets, work.e)
    count = sketch_others(sketch, scatter, problem, work, targets, q, row, ALIKE)
    for k in range(count):
        if halted(work.watch):
            break
        attempt = take_finalist(work, k, q)
        taken, ended = come_to_rest(problem, work, targets, q, SETTLE_STEPS)
        row[STEPS] += taken
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if worst <= F(1) or cost < LOWER * lowest:
            lowest = cost
            still = ended
            row[WINNER] = attempt
            row[FINISH] = taken
            keep(work, q)
    take_back(work, q)
    return still


@device
def judge_rows(problem, work, out, settles, searches):
    """Settle the rows of the answer that missed (with ``settles``: by descent to a minimum) and write their status.

    With ``searches`` minima elsewhere count too, see ``lowest``.
    """
    for b in range(out.shape[0]):
        row = out[b]
        status = np.int64(row[STATUS])
        if status == REACHED:
            continue
        q, errors, targets = open_row(problem, row)
        spent = row[CUT] == SPENT or (row[CUT] != RESTED and row[STEPS] >= problem.attempts * problem.max_steps)
        begin_work(work.watch, problem.most_work)
        if settles:
            taken, still = come_to_rest(problem, work, targets, q, SETTLE_STEPS)
            row[STEPS] += taken
            row[FINISH] = taken
            follow(problem, q)
            forward(problem.tree, q, work.frames)
            measure(problem, q, work.frames, targets, errors)
            if searches and left(problem, row) > 0 and not at_bound(problem, work.frames, targets, errors):
                still = look_elsewhere(problem, work, targets, q, row, still)
            spent = still == 0
            row[CUT] = max(row[CUT], work.watch[ENDED])
        follow(problem, q)
        forward(problem.tree, q, work.frames)
        if measure(problem, q, work.frames, targets, errors) <= F(1):
            row[STATUS] = REACHED
        elif status != UNREACHABLE:
            row[STATUS] = verdict(problem, work, targets, errors, q, spent)


@entry
def conclude(ints, floats, out, scratch, settles, searches):
    """Tell what a miss of positions and rotations means; see ``judge_rows``."""
    judge_rows(open_problem(ints, floats), open_work(ints, scratch), out, settles, searches)


@entry
def conclude_any(ints, floats, out, scratch, settles, searches):
    """Tell what a miss of any goals means; see ``judge_rows``."""
    judge_rows(open_any(ints, floats), open_work(ints, scratch), out, settles, searches)
