"""The end of a miss, for methods that creep: the best pose is taken up again until that gains nothing.

An attempt stops when the error no longer falls fast enough, which is right while other starts may reach the goals. The
answer of a miss must also stay where it is when it is asked for again from there, so it has to be one that the method
itself gives back, or the one where all steps that the attempts were allowed are spent.
"""

import numpy as np

from synovia.kernels._jit import F, device, inline, perform
from synovia.kernels.drive import follow
from synovia.kernels.problem import (
    COST,
    CUT,
    REACHED,
    STATUS,
    STEPS,
    open_any,
    open_problem,
    open_row,
    open_work,
    with_steps,
)
from synovia.kernels.watch import ENDED, begin_work, halted

KEPT = F(0.999)  # a pose is left only for one whose squared error is lower by this factor


@inline
def finish(attempt, ints, floats, out, scratch, first, code):
    """Take up again the rows that ``drive`` missed; see ``take_up``."""
    return take_up(attempt, open_problem(ints, floats), open_work(ints, scratch), out, first, code)


@inline
def finish_any(attempt, ints, floats, out, scratch, first, code):
    """Take up again the rows that ``drive_any`` missed; see ``take_up``."""
    return take_up(attempt, open_any(ints, floats), open_work(ints, scratch), out, first, code)


@device
def take_up(attempt, problem, work, out, first, code):
    """Take up again the rows that missed, from row ``first`` to those that were done; return the code of ``drive``."""
    if code < 0 or code & 1 == 0:
        return code
    for b in range(first, code >> 1):
        row = out[b]
        if row[STATUS] == REACHED:
            continue
        q, _, targets = open_row(problem, row)
        left = problem.attempts * problem.max_steps - np.int64(row[STEPS])
        begin_work(work.watch, problem.most_work)
        while left > 0 and not halted(work.watch):
            taken, cost = perform(attempt, with_steps(problem, min(problem.max_steps, left)), work, targets, q)
            follow(problem, q)
            row[STEPS] += taken
            left -= taken
            gained = cost < KEPT * row[COST]
            row[COST] = min(cost, row[COST])
            if not gained:
                break
        row[CUT] = max(row[CUT], work.watch[ENDED])
    return code
