"""Finish a missed problem: polish its pose until it converges, and search for a better pose from random starts.

An attempt stops when its error falls too slowly, because another start may reach the goals. But solving a missed
problem again from its answer must return this answer. So each missed pose is polished.

A descent ends in the minimum nearest to its start. If the target is out of reach, a much better pose may exist
elsewhere. So a coarse descent of a few steps runs from each of several random starts, and the ``FINALISTS`` with the
lowest costs are polished. The first answer is replaced only by a clearly better one. The random starts are the same
every time, so solving an answer again returns it. A close miss of a single goal may have few answers that are hard to
find, so it gets several such rounds.

A solver passes a ``Refinement``, whose algorithms have the form that ``multistart`` describes.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from synovia.kernels.compiler.jit import F, apart, device, inline, perform
from synovia.kernels.compiler.views import matrix
from synovia.kernels.compiler.watch import begin_work, halted, interrupted
from synovia.kernels.goals.clearance import forget_contacts
from synovia.kernels.goals.general import CONE, WITHIN
from synovia.kernels.goals.reach import at_bound
from synovia.kernels.layout import (
    COST,
    FINALISTS,
    FINISH,
    KIND,
    NO_GAIN,
    OTHERS,
    POSE_MORE,
    REACHED,
    STATUS,
    STEPS,
    STOP_REASON,
    STOPPED_BY,
    TRIES,
    UNREACHABLE,
    WINNER,
)
from synovia.kernels.search.multistart import meets_goals, set_followers
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.problem import copy, open_row, with_steps
from synovia.kernels.tree.variables import start_random

CLEARLY_LOWER = F(0.999)  # factor by which a cost must fall for its pose to replace the best one
MAX_RESTARTS = 25  # largest number of coarse descents of one missed problem and round
CLOSE_MISS = F(0.03)  # length scales, radians: a single missed goal with a smaller error gets several rounds
LOOSE_ROUNDS = 4  # rounds for a miss of a goal with bounds or a cone
SAME_MINIMUM = F(1e-3)  # two coarse descents found the same minimum if their costs differ by less than this fraction
BEST = FINALISTS  # row of the stored poses that holds the best one


class Refinement(NamedTuple):
    """Algorithms and settings with which a solver finishes misses.

    ``coarse``: descends by at most ``problem.max_steps`` steps; with no steps it only updates frames and residual.
    ``polish``: descends to a minimum; returns (steps, 1 if it converged). None: repeat ``coarse`` until it converges.
    ``first_polish``: polishes the first answer; may read the start of the problem (see ``store_start``).
    ``is_better``: returns 1 if q is clearly better than the stored best pose. None: compare the costs.
    ``steps``: largest number of steps of a coarse descent.
    ``tolerance``: relative difference of costs below which two coarse descents found the same minimum.
    ``rounds``: largest number of searches for a close miss; more than one only if the cost is the squared error.
    """

    coarse: Any
    polish: Any
    first_polish: Any
    is_better: Any
    steps: int
    tolerance: float
    rounds: int


@inline
def store_best(work, q):
    """Store q as the best pose."""
    copy(q, matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + POSE_MORE)[BEST])


@inline
def load_pose(work, k, q):
    """Write stored pose k to q; return the number of its attempt."""
    stored = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + POSE_MORE)
    for i in range(q.shape[0]):
        q[i] = stored[k, i]
    return stored[k, q.shape[0] + 1]


@inline
def store_start(work, start, attempt):
    """Store the start of the problem, and the attempt that led to q, in the row of the first finalist."""
    stored = matrix(work.watch, OTHERS, FINALISTS + 1, start.shape[0] + POSE_MORE)
    copy(start, stored[0])
    stored[0, start.shape[0] + 1] = attempt


@inline
def restarts_left(problem, row, again):
    """Return how many restarts a missed problem may still take in the first round; with ``again``, in a later one.

    A problem that was proved unreachable had one attempt; any other problem had all its attempts. A problem without
    columns has no restarts.
    """
    if problem.columns == 0:
        return 0
    most = min(MAX_RESTARTS, problem.attempts - 1)
    return max(0, most + 1 - int(row[TRIES])) if row[STATUS] == UNREACHABLE and not again else most


@device
def least_rounds(general):
    """Return the least number of rounds for a missed problem."""
    if general is not None:
        for term in range(general.ints.shape[0]):
            if general.ints[term, KIND] == WITHIN or general.ints[term, KIND] == CONE:
                return LOOSE_ROUNDS
    return 1


@apart
def cost_of(coarse, problem, work, targets, q):
    """Return the cost of q as the coarse descent defines it."""
    return perform(coarse, with_steps(problem, 0), work, targets, q)[1]


@device
def insert_finalist(work, count, q, cost, attempt, tolerance):
    """Insert q into the finalists, which are sorted by cost; return their number. A cost of NaN is left out."""
    finalists, nq = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + POSE_MORE), q.shape[0]
    place = count if cost < F(math.inf) else FINALISTS
    for k in range(count):
        if abs(cost - finalists[k, nq]) <= tolerance * cost:
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
def coarse_restarts(coarse, problem, work, targets, q, row, tolerance, again):
    """Run the coarse descent from random starts and store the finalists; add its attempts and steps to the row.

    q is stored as the best pose and then overwritten. Two poses whose costs differ by at most ``tolerance``
    (relative) count as one. ``again``: whether this is a further round.

    Returns:
        Number of finalists.
    """
    store_best(work, q)
    count = 0
    for _ in range(restarts_left(problem, row, again)):
        if halted(work.watch):
            break
        load_pose(work, BEST, q)
        attempt = int(row[TRIES])
        start_random(problem, work, attempt)
        perform(random_start, problem, work, targets, q)
        set_followers(problem, q)
        taken, cost = perform(coarse, problem, work, targets, q)
        set_followers(problem, q)
        row[TRIES] += F(1)
        row[STEPS] += F(taken)
        count = insert_finalist(work, count, q, cost, attempt, tolerance)
    return count


@apart
def run_polish(coarse, polish, problem, work, targets, q, row):
    """Polish q; return whether it converged. The steps are added to the row."""
    if polish is not None:
        taken, converged = perform(polish, problem, work, targets, q)
        row[STEPS] += taken
        row[FINISH] = taken
        set_followers(problem, q)
        return converged > 0
    steps = problem.attempts * problem.max_steps - np.int64(row[STEPS])
    cost = cost_of(coarse, problem, work, targets, q)
    converged = False
    while steps > 0 and not halted(work.watch):
        taken, new_cost = perform(coarse, with_steps(problem, min(problem.max_steps, steps)), work, targets, q)
        set_followers(problem, q)
        row[STEPS] += taken
        steps -= taken
        converged = not (new_cost < CLEARLY_LOWER * cost or halted(work.watch))  # halted descents prove nothing
        cost = new_cost if new_cost < cost else cost
        if converged:
            break
    row[COST] = cost
    return converged


@inline
def replaces_best(is_better, coarse, problem, work, targets, q, reached, lowest):
    """Return whether q replaces the best pose, and the new lowest cost; ``reached``: whether q reaches its goals."""
    if is_better is None:
        cost = cost_of(coarse, problem, work, targets, q)
        found = cost < CLEARLY_LOWER * lowest
        return reached or found, cost if reached or found else lowest
    found = perform(is_better, problem, work, targets, q)[0] > 0
    return reached or found, lowest


@apart
def search_elsewhere(refinement, problem, work, targets, errors, q, row, converged, again):
    """Replace q by a clearly better pose if random starts lead to one; return whether the answer converged.

    ``again``: whether this is a further round.
    """
    coarse, polish = refinement.coarse, refinement.polish
    lowest = cost_of(coarse, problem, work, targets, q)
    shorter = with_steps(problem, min(problem.max_steps, refinement.steps))
    count = coarse_restarts(coarse, shorter, work, targets, q, row, refinement.tolerance, again)
    finish = row[FINISH]
    for k in range(count):
        if halted(work.watch):
            break
        attempt = load_pose(work, k, q)
        ended = run_polish(coarse, polish, problem, work, targets, q, row)
        reached = meets_goals(problem, work, targets, q, errors)
        better, lowest = replaces_best(refinement.is_better, coarse, problem, work, targets, q, reached, lowest)
        if better:
            converged = ended
            finish = row[FINISH]
            row[WINNER] = attempt
            store_best(work, q)
        if reached:
            break
    load_pose(work, BEST, q)
    row[COST] = lowest
    row[FINISH] = finish
    return converged


@apart
def finish_rows(refinement, problem, work, starts, out, first, last, search):
    """Polish the missed rows from ``first`` to ``last`` - 1; with ``search`` try random starts too."""
    for b in range(first, last):
        row = out[b]
        if row[STATUS] == REACHED:
            continue
        q, errors, targets = open_row(problem, row)
        begin_work(work.watch, problem.most_work)
        forget_contacts(problem.clear)
        store_start(work, starts[min(b, starts.shape[0] - 1)], row[WINNER])
        converged = run_polish(refinement.coarse, refinement.first_polish, problem, work, targets, q, row)
        if (
            not meets_goals(problem, work, targets, q, errors)
            and search
            and restarts_left(problem, row, False) > 0
            and not at_bound(problem, work.frames, targets, errors)
        ):
            least = least_rounds(problem.general)
            for k in range(max(refinement.rounds, least)):
                converged = search_elsewhere(refinement, problem, work, targets, errors, q, row, converged, k > 0)
                alone = problem.goals.shape[0] == 1 and problem.general is None
                far = not alone or row[COST] > CLOSE_MISS * CLOSE_MISS
                if (far and k + 1 >= least) or halted(work.watch) or meets_goals(problem, work, targets, q, errors):
                    break
        ended = max(row[STOPPED_BY], work.watch[STOP_REASON], F(0))
        if refinement.polish is None:  # the work limit may have cut short a slow attempt
            converged = converged and ended == F(0)
        row[STOPPED_BY] = NO_GAIN if converged and not interrupted(work.watch) else ended
