"""The search for the lowest minimum: a miss is solved from random starts too, and left for one that is clearly better.

A descent ends in the minimum nearest to its start. Where the target is out of reach that may be far from the best pose.
So each random start is sketched by a few steps, and the ``FINALISTS`` with the lowest costs are taken to the end. The
start of the problem comes first: its answer is left only for a cost that is lower by a factor. The random starts are
the same ones every time, so an answer that is asked for again stays.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.views import bits, matrix
from synovia.kernels.compiler.watch import halted
from synovia.kernels.layout import FINALISTS, OTHERS, STATE, STATUS, STEPS, TRIES, UNREACHABLE
from synovia.kernels.search.multistart import follow
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import seed_state

MOST = 25  # attempts beyond those that looked for a pose that reaches
ALIKE = F(1e-3)  # of a cost: sketches that differ by less are taken for the same minimum, where nothing else is said


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
def cost_of_finalist(work, k, q):
    """Return the cost that the sketch of finalist k came to."""
    return matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + 2)[k, q.shape[0]]


@inline
def left(problem, row):
    """Return how many attempts a miss may still take: what is proved out of reach has had one, all else has had all.

    None where nothing moves.
    """
    if problem.columns == 0:
        return 0
    most = min(MOST, problem.attempts - 1)
    return max(0, most + 1 - int(row[TRIES])) if row[STATUS] == UNREACHABLE else most


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


@device
def sketch_others(sketch, scatter, problem, work, targets, q, row, alike):
    """Sketch from random starts and keep the finalists; the row counts attempts and steps.

    q is kept (see ``keep``) and overwritten. Sketches whose costs differ by no more than the share ``alike`` count as
    one.

    Returns:
        Number of finalists, each with its cost and attempt behind its joint values.
    """
    keep(work, q)
    count = 0
    for _ in range(left(problem, row)):
        if halted(work.watch):
            break
        take_back(work, q)
        attempt = int(row[TRIES])
        seed_state(bits(work.watch, STATE, 1), problem.seed, attempt)
        perform(scatter, problem, work, targets, q)
        follow(problem, q)
        taken, cost = perform(sketch, problem, work, targets, q)
        follow(problem, q)
        row[TRIES] += F(1)
        row[STEPS] += F(taken)
        count = put_in(work, count, q, cost, attempt, alike)
    return count
