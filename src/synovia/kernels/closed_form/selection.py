"""Selection among the branches of a closed form: choose the best one, or list all that meet the goals.

A closed form writes its candidates, values of all variables within their limits, to ``candidates`` of its scratch
memory: a flat table with ``width`` values for each. Forward kinematics then decides which of them meet the goals.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.residuals import all_given, complete_targets, first_invalid_target, measure, residual
from synovia.kernels.layout import BLOCK, BLOCK_Q, BRANCHES, COST, REACHED, REFUSED, SCALAR
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.search.multistart import set_followers
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_row, write_head
from synovia.kernels.tree.variables import block_size, step_unit

ALIKE = F(1e-6)  # branches nearer to each other than this (radians, length scales) count as one
BETTER = F(1) - F(1e-6)  # factor by which a cost must fall to replace the best; repeated calls return one pose


Branches = record("Branches", BRANCHES)
_open = cutter(Branches, BRANCHES, ())


@inline
def open_branches(work):
    """Return the scratch memory of a closed form: the tables of ``layout.BRANCHES``."""
    return _open(work.solver_scratch, ())


@inline
def width(problem):
    """Return the number of values of a candidate."""
    total = 0
    for k in range(problem.variables.shape[0]):
        total += block_size(problem.variables, k)
    return total


@device
def put_candidate(problem, q, table, i):
    """Write the variables in q as candidate i."""
    at = i * width(problem)
    for k in range(problem.variables.shape[0]):
        for c in range(block_size(problem.variables, k)):
            table[at] = q[problem.variables[k, BLOCK_Q] + c]
            at += 1


@device
def take_candidate(problem, q, table, i):
    """Write candidate i to the variables in q."""
    at = i * width(problem)
    for k in range(problem.variables.shape[0]):
        for c in range(block_size(problem.variables, k)):
            q[problem.variables[k, BLOCK_Q] + c] = table[at]
            at += 1
    set_followers(problem, q)


@inline
def variable_distance(problem, q, table, at, k):
    """Return the distance of variable k in q from a candidate that stores it at ``at``, in radians or length scales."""
    x = problem.variables[k, BLOCK_Q]
    if problem.variables[k, BLOCK] == SCALAR:
        return abs(q[x] - table[at]) * (F(1) / step_unit(problem.limits, k, problem.reach))
    c = abs(q[x] * table[at] + q[x + 1] * table[at + 1] + q[x + 2] * table[at + 2] + q[x + 3] * table[at + 3])
    return F(2) * math.acos(min(c, F(1)))


@device
def distance(problem, q, table, i):
    """Return the distance of candidate i from q: the root of the sum of squares (radians, length scales)."""
    at = i * width(problem)
    total = F(0)
    for k in range(problem.variables.shape[0]):
        d = variable_distance(problem, q, table, at, k)
        total += d * d
        at += block_size(problem.variables, k)
    return math.sqrt(total)


@inline
def try_candidate(problem, work, targets, q, table, i):
    """Write candidate i to q; return (cost, whether it meets the goals)."""
    take_candidate(problem, q, table, i)
    forward(problem.tree, q, work.frames)
    cost, worst = residual(problem, q, work.frames, targets, work.e)
    return cost, worst <= INSIDE


@device
def pick(problem, work, targets, q, table, count):
    """Write to q the nearest of ``count`` candidates that meets the goals, or else the one of lowest cost.

    q stays if it meets the goals itself, or if no candidate meets them or lowers the cost. Before the call, work.frames
    are at q.

    Returns:
        (cost, whether the goals are met).
    """
    lowest, worst = residual(problem, q, work.frames, targets, work.e)
    if worst <= INSIDE:
        return lowest, True
    copy(q, work.trial)
    best = 0
    near = F(math.inf)
    for i in range(count):
        away = distance(problem, q, table, i)
        if away < near:
            best, near = i, away
    if count > 0:  # the nearest candidate nearly always meets the goals
        cost, meets = try_candidate(problem, work, targets, q, table, best)
        if meets:
            return cost, True
    best = -1
    reached = False
    near = F(0)
    for i in range(count):
        away = distance(problem, work.trial, table, i)
        if reached and away >= near:
            continue
        cost, meets = try_candidate(problem, work, targets, q, table, i)
        if meets or (not reached and cost < BETTER * lowest):
            best, lowest, near, reached = i, cost, away, meets
    copy(work.trial, q)
    if best >= 0:
        take_candidate(problem, q, table, best)
    return lowest, reached


@device
def choose(problem, work, targets, q, table, count):
    """Write work.frames at q, then the best candidate to q (see ``pick``); return (1 step, cost)."""
    forward(problem.tree, q, work.frames)
    cost, _ = pick(problem, work, targets, q, table, count)
    return 1, cost


@inline
def nearest_left(order, count):
    """Return the first of ``count`` candidates with the lowest value in ``order``, -1 if none is finite."""
    best, lowest = -1, F(math.inf)
    for i in range(count):
        if order[i] < lowest:
            best, lowest = i, order[i]
    return best


@inline
def is_listed(problem, out, taken, table, i, away):
    """Return whether candidate i, at distance ``away`` from the start, equals a row that is already listed.

    The rows are ordered by distance, and equal rows have the same distance from the start.
    """
    b = taken - 1
    while b >= 0 and away - out[b, COST] <= ALIKE:
        q, _, _ = open_row(problem, out[b])
        if distance(problem, q, table, i) <= ALIKE:
            return True
        b -= 1
    return False


@inline
def list_branches(branches, problem, work, targets, starts, out):
    """List the branches of a closed form that uses the scratch memory of ``open_branches``, see ``list_candidates``."""
    return list_candidates(branches, open_branches(work), problem, work, targets, starts, out)


@device
def list_candidates(branches, memory, problem, work, targets, starts, out):
    """Write the candidates of the first problem that meet the goals to rows of the answer, the nearest first.

    ``branches(problem, work, targets, q)`` writes the candidates to ``memory`` and returns (their number,
    0). At most one candidate is tried for each row except the last row, which is scratch.
    Column ``COST`` of a row gets the distance from the start.

    Returns:
        Number of rows, or REFUSED - goal for an invalid target.
    """
    refused = first_invalid_target(problem, targets[0])
    if refused >= 0:
        return REFUSED - refused
    table, order = memory.candidates, memory.search  # the search memory is free: no more polynomials are solved
    start = starts[0]
    q, _, kept = open_row(problem, out[out.shape[0] - 1])
    if not all_given(problem, targets[0]):
        forward(problem.tree, start, work.frames)
    complete_targets(problem, work.frames, targets[0], kept)
    copy(start, q)
    count = min(perform(branches, problem, work, kept, q)[0], out.shape[0] - 1, order.shape[0])
    for i in range(count):
        order[i] = distance(problem, start, table, i)
    taken = 0
    for _ in range(count):
        i = nearest_left(order, count)
        if i < 0:
            break
        away = order[i]
        order[i] = F(math.inf)
        if is_listed(problem, out, taken, table, i, away):
            continue
        q, errors, shown = open_row(problem, out[taken])
        copy(start, q)
        take_candidate(problem, q, table, i)
        forward(problem.tree, q, work.frames)
        if measure(problem, q, work.frames, kept, errors) > F(1):
            continue
        for g in range(kept.shape[0]):
            copy(kept[g], shown[g])
        write_head(out[taken], F(REACHED), F(1), F(1), F(0), away, F(0))
        taken += 1
    return taken
