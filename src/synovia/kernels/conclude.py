"""What a miss means: the last descent of the Jacobian family, and the verdict of every solver.

Kept apart from the solvers' own kernels: a solve that reaches its goals never loads it, and is compiled once for
all.
"""

import math

import numpy as np

from synovia.kernels._jit import F, device, entry
from synovia.kernels.descent import largest
from synovia.kernels.drive import follow
from synovia.kernels.forward import forward
from synovia.kernels.goals import measure, residual
from synovia.kernels.linear import times_t
from synovia.kernels.problem import (
    CONFLICT,
    CUT,
    FINISH,
    LIMITED,
    REACHED,
    STALLED,
    STATUS,
    STEPS,
    STEPS_SPENT,
    UNREACHABLE,
    open_any,
    open_problem,
    open_row,
    open_work,
)
from synovia.kernels.settle import come_to_rest, drop_held, pull
from synovia.kernels.watch import ENDED, SPENT, begin_work

SETTLE_STEPS = 200
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
        first = problem.goals[g, 2]
        last = first + problem.goals[g, 4]
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
    left, multiplier = pull(problem, work, targets, q)
    drop_held(work)
    small = STATIONARY * math.sqrt(cost)
    missed, strongest = strongest_pull(problem, work, targets, errors, q)
    if missed > 1 and strongest > small and left < max(CANCELS * strongest, small):
        return CONFLICT
    if multiplier > small and left < max(CANCELS * multiplier, small):
        return LIMITED
    return STEPS_SPENT if spent else STALLED


@device
def judge_rows(problem, work, out, settles):
    """Settle the rows of the answer that missed (with ``settles``: by descent to a minimum) and write their status."""
    for b in range(out.shape[0]):
        row = out[b]
        status = np.int64(row[STATUS])
        if status == REACHED:
            continue
        q, errors, targets = open_row(problem, row)
        spent = row[STEPS] >= problem.attempts * problem.max_steps or row[CUT] == SPENT
        begin_work(work.watch, problem.most_work)
        if settles:
            taken, still = come_to_rest(problem, work, targets, q, SETTLE_STEPS)
            row[STEPS] += taken
            row[FINISH] = taken
            spent = still == 0
            row[CUT] = max(row[CUT], work.watch[ENDED])
        follow(problem, q)
        forward(problem.tree, q, work.frames)
        if measure(problem, q, work.frames, targets, errors) <= F(1):
            row[STATUS] = REACHED
        elif status != UNREACHABLE:
            row[STATUS] = verdict(problem, work, targets, errors, q, spent)


@entry
def conclude(ints, floats, out, scratch, settles):
    """Tell what a miss of positions and rotations means; see ``judge_rows``."""
    judge_rows(open_problem(ints, floats), open_work(ints, scratch), out, settles)


@entry
def conclude_any(ints, floats, out, scratch, settles):
    """Tell what a miss of any goals means; see ``judge_rows``."""
    judge_rows(open_any(ints, floats), open_work(ints, scratch), out, settles)
