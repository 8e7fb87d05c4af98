"""The end of a miss, for methods that creep: the best pose is taken up again until that gains nothing.

An attempt stops when the error no longer falls fast enough, which is right while other starts may reach the goals. The
answer of a miss must also stay where it is when it is asked for again from there, so it has to be one that the method
itself gives back, or the one where all steps that the attempts were allowed are spent. Other starts may end at a better
one (see ``lowest``); not in a track that has begun.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.watch import begin_work, halted
from synovia.kernels.goals.reach import at_bound
from synovia.kernels.goals.residuals import measure
from synovia.kernels.layout import COST, CUT, ENDED, REACHED, RESTED, STATUS, STEPS, WINNER
from synovia.kernels.search.lowest import ALIKE, cost_of_finalist, keep, left, sketch_others, take_back, take_finalist
from synovia.kernels.search.multistart import follow
from synovia.kernels.search.restarts import scatter
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_any, open_problem, open_row, open_work, with_steps

KEPT = F(0.999)  # a pose is left only for one whose squared error is lower by this factor
SKETCH_STEPS = 20  # from a random start: enough to tell which poses are worth more


@inline
def finish(attempt, ints, floats, out, scratch, warm, first, code):
    """Take up again the rows that ``multistart`` missed; see ``finish_rows``."""
    return finish_rows(attempt, open_problem(ints, floats), open_work(ints, scratch), out, warm, first, code)


@inline
def finish_any(attempt, ints, floats, out, scratch, warm, first, code):
    """Take up again the rows that ``drive_any`` missed; see ``finish_rows``."""
    return finish_rows(attempt, open_any(ints, floats), open_work(ints, scratch), out, warm, first, code)


@device
def take_up(attempt, problem, work, targets, q, cost, row):
    """Attempt again from q until that gains nothing, or all steps are spent.

    Returns:
        (cost, which is ``cost`` at first; whether the last attempt gained nothing).
    """
    rests = False
    steps = problem.attempts * problem.max_steps - np.int64(row[STEPS])
    while steps > 0 and not halted(work.watch):
        taken, now = perform(attempt, with_steps(problem, min(problem.max_steps, steps)), work, targets, q)
        follow(problem, q)
        row[STEPS] += taken
        steps -= taken
        gained = now < KEPT * cost
        cost = min(now, cost)
        if not gained:
            rests = True
            break
    return cost, rests


@device
def look_elsewhere(attempt, problem, work, targets, q, row, rests):
    """Leave q for a pose that is clearly better, if random starts lead to one; return whether it rests."""
    few = with_steps(problem, min(problem.max_steps, SKETCH_STEPS))
    count = sketch_others(attempt, scatter, few, work, targets, q, row, ALIKE)
    for k in range(count):
        if halted(work.watch):
            break
        winner = take_finalist(work, k, q)
        cost, ended = take_up(attempt, problem, work, targets, q, cost_of_finalist(work, k, q), row)
        if cost < KEPT * row[COST]:
            rests = ended
            row[COST] = cost
            row[WINNER] = winner
            keep(work, q)
    take_back(work, q)
    return rests


@device
def finish_rows(attempt, problem, work, out, warm, first, code):
    """Take up again the rows that missed, from row ``first`` to those done, and return the code of ``multistart``."""
    if code < 0 or code & 1 == 0:
        return code
    for b in range(first, code >> 1):
        row = out[b]
        if row[STATUS] == REACHED:
            continue
        q, errors, targets = open_row(problem, row)
        begin_work(work.watch, problem.most_work)
        row[COST], rests = take_up(attempt, problem, work, targets, q, row[COST], row)
        if left(problem, row) > 0 and not (warm and b > 0):
            forward(problem.tree, q, work.frames)
            measure(problem, q, work.frames, targets, errors)
            if not at_bound(problem, work.frames, targets, errors):
                rests = look_elsewhere(attempt, problem, work, targets, q, row, rests)
        row[CUT] = max(row[CUT], work.watch[ENDED])
        if rests and row[CUT] == F(0):
            row[CUT] = RESTED
    return code
