"""The end of a miss: a descent to where nothing improves the pose, and the search for a better one elsewhere.

An attempt stops when its error no longer falls fast enough, which is right while other starts may reach the goals. The
answer of a miss must also stay where it is when the same problem is solved again from there. So each pose that missed
is polished until it rests.

A descent ends in the minimum nearest to its start, and where the target is out of reach that may be far from the best
pose. So a miss is solved from random starts too. Each of these is sketched by a few steps, and the ``FINALISTS`` with
the lowest costs are polished. The start of the problem comes first: its answer is left only for one that is clearly
better. The random starts are the same ones every time, so an answer that is solved again stays.

Solvers bring up to four algorithms, in the form that ``multistart`` describes:

``sketch``  descends roughly from q, by ``problem.max_steps`` steps at most; by none it leaves frames and residual at q
``polish``  descends to rest; returns (steps, 1 if q rests). None: the sketch is repeated until it gains nothing
``settle``  the first polish, which may also read the start of the problem (see ``put_start``). None: like ``polish``
``better``  returns 1 if q is clearly better than the pose that is kept. None: if its cost is lower by a factor
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, apart, device, inline, perform
from synovia.kernels.compiler.views import bits, matrix
from synovia.kernels.compiler.watch import begin_work, halted, interrupted
from synovia.kernels.goals.reach import at_bound, prove_unreachable
from synovia.kernels.layout import (
    COST,
    FINALISTS,
    FINISH,
    NO_GAIN,
    OTHERS,
    REACHED,
    STATE,
    STATUS,
    STEPS,
    STOP_REASON,
    STOPPED_BY,
    TRIES,
    UNREACHABLE,
    WINNER,
)
from synovia.kernels.search.multistart import meets_goals, set_followers, solve_rows
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.problem import copy, open_row, with_steps
from synovia.kernels.tree.variables import seed_state

LOWER = F(0.999)  # of a cost: a pose is left only for one that is lower by this factor
MOST = 25  # attempts beyond those that looked for a pose that reaches
ALIKE = F(1e-3)  # of a cost: sketches that differ by less are taken for the same minimum
SKETCH_STEPS = 20  # of the heuristics, from a random start: enough to tell which poses are worth more


@inline
def keep(work, q):
    """Keep the best pose so far while others are tried."""
    copy(q, matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + 2)[FINALISTS])


@inline
def take_back(work, q):
    """Write to q the pose that is kept."""
    kept = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + 2)
    for i in range(q.shape[0]):
        q[i] = kept[FINALISTS, i]


@inline
def take_finalist(work, k, q):
    """Write finalist k to q; return its attempt."""
    finalists = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + 2)
    for i in range(q.shape[0]):
        q[i] = finalists[k, i]
    return finalists[k, q.shape[0] + 1]


@inline
def put_start(work, start, attempt):
    """Leave the start of the problem, and the attempt that led to q, in the place of the first finalist."""
    place = matrix(work.watch, OTHERS, FINALISTS + 1, start.shape[0] + 2)
    copy(start, place[0])
    place[0, start.shape[0] + 1] = attempt


@inline
def attempts_left(problem, row):
    """Return how many attempts a miss may still take: what is proved out of reach has had one, all else has had all.

    None where nothing moves.
    """
    if problem.columns == 0:
        return 0
    most = min(MOST, problem.attempts - 1)
    return max(0, most + 1 - int(row[TRIES])) if row[STATUS] == UNREACHABLE else most


@apart
def cost_of(sketch, problem, work, targets, q):
    """Return the cost of q as the sketch counts it."""
    return perform(sketch, with_steps(problem, 0), work, targets, q)[1]


@device
def put_in(work, count, q, cost, attempt, alike):
    """Put a sketch among the finalists, which are in the order of their costs; return how many there are.

    One whose cost is no number is left out.
    """
    finalists, nq = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + 2), q.shape[0]
    place = count if cost < F(math.inf) else FINALISTS
    for k in range(count):
        if abs(cost - finalists[k, nq]) <= alike * cost:
            return count
    while place > 0 and finalists[place - 1, nq] > cost:
        place -= 1
    if place == FINALISTS:
        return count
    count = min(count + 1, FINALISTS)
    for k in range(count - 1, place, -1):
        copy(finalists[k - 1], finalists[k])
    copy(q, finalists[place])
    finalists[place, nq] = cost
    finalists[place, nq + 1] = F(attempt)
    return count


@apart
def sketch_others(sketch, problem, work, targets, q, row, alike):
    """Sketch from random starts and keep the finalists; the row counts attempts and steps.

    q is kept and overwritten. Sketches whose costs differ by no more than the share ``alike`` count as one.

    Returns:
        Number of finalists, each with its cost and attempt behind its joint values.
    """
    keep(work, q)
    count = 0
    for _ in range(attempts_left(problem, row)):
        if halted(work.watch):
            break
        take_back(work, q)
        attempt = int(row[TRIES])
        seed_state(bits(work.watch, STATE, 1), problem.seed, attempt)
        perform(random_start, problem, work, targets, q)
        set_followers(problem, q)
        taken, cost = perform(sketch, problem, work, targets, q)
        set_followers(problem, q)
        row[TRIES] += F(1)
        row[STEPS] += F(taken)
        count = put_in(work, count, q, cost, attempt, alike)
    return count


@apart
def polished(sketch, polish, problem, work, targets, q, row):
    """Bring q to rest; return whether it rests. The row counts the steps."""
    if polish is not None:
        taken, rests = perform(polish, problem, work, targets, q)
        row[STEPS] += taken
        row[FINISH] = taken
        set_followers(problem, q)
        return rests > 0
    steps = problem.attempts * problem.max_steps - np.int64(row[STEPS])
    cost = cost_of(sketch, problem, work, targets, q)
    rests = False
    while steps > 0 and not halted(work.watch):
        taken, now = perform(sketch, with_steps(problem, min(problem.max_steps, steps)), work, targets, q)
        set_followers(problem, q)
        row[STEPS] += taken
        steps -= taken
        rests = not (now < LOWER * cost or halted(work.watch))  # one that was cut short shows nothing
        cost = now if now < cost else cost
        if rests:
            break
    row[COST] = cost
    return rests


@apart
def look_elsewhere(sketch, polish, better, steps, alike, problem, work, targets, errors, q, row, rests):
    """Leave q for a pose that is clearly better, if random starts lead to one; return whether it rests."""
    lowest = cost_of(sketch, problem, work, targets, q)
    few = with_steps(problem, min(problem.max_steps, steps))
    count = sketch_others(sketch, few, work, targets, q, row, alike)
    finish = row[FINISH]
    best = finish
    for k in range(count):
        if halted(work.watch):
            break
        attempt = take_finalist(work, k, q)
        ended = polished(sketch, polish, problem, work, targets, q, row)
        reached = meets_goals(problem, work, targets, q, errors)
        if better is None:
            cost = cost_of(sketch, problem, work, targets, q)
            found = cost < LOWER * lowest
            if reached or found:
                lowest = cost
        else:
            found = perform(better, problem, work, targets, q)[0] > 0
        if reached or found:
            rests = ended
            best = row[FINISH]
            row[WINNER] = attempt
            keep(work, q)
        if reached:
            break
    take_back(work, q)
    row[COST] = lowest
    row[FINISH] = best
    return rests


@apart
def finish_rows(sketch, polish, settle, better, steps, alike, problem, work, starts, out, first, last, searches):
    """Polish the rows that missed, from row ``first`` to before ``last``; with ``searches`` look elsewhere too.

    A sketch takes at most so many ``steps``; ``alike`` is explained at ``sketch_others``.
    """
    for b in range(first, last):
        row = out[b]
        if row[STATUS] == REACHED:
            continue
        q, errors, kept = open_row(problem, row)
        begin_work(work.watch, problem.most_work)
        put_start(work, starts[min(b, starts.shape[0] - 1)], row[WINNER])
        if settle is None:
            rests = polished(sketch, polish, problem, work, kept, q, row)
        else:
            rests = polished(sketch, settle, problem, work, kept, q, row)
        if (
            not meets_goals(problem, work, kept, q, errors)
            and searches
            and attempts_left(problem, row) > 0
            and not at_bound(problem, work.frames, kept, errors)
        ):
            rests = look_elsewhere(sketch, polish, better, steps, alike, problem, work, kept, errors, q, row, rests)
        ended = max(row[STOPPED_BY], work.watch[STOP_REASON], F(0))
        if polish is None:  # attempts that come to rest slowly: those that the work left out might have gone on
            rests = rests and ended == F(0)
        row[STOPPED_BY] = NO_GAIN if rests and not interrupted(work.watch) else ended


@inline
def solve_and_finish(attempt, problem, work, targets, starts, out, warm, first):
    """Solve rows by attempts that come to rest slowly (see ``solve_rows``), and finish those that missed."""
    code = solve_rows(attempt, random_start, prove_unreachable, problem, work, targets, starts, out, warm, first)
    if code >= 0 and code & 1:  # in a track that has begun (warm) the loop ended at the first miss, and stays near it
        finish_rows(
            attempt, None, None, None, SKETCH_STEPS, ALIKE, problem, work, starts, out, first, code >> 1,
            not warm or code >> 1 == 1,
        )  # fmt: skip
    return code
