"""FABRIK for a SIMD batch of targets of one chain of unlimited balls (see ``batch``).

The points move as in ``heuristic.fabrik_chain``, bone for bone; only their order in memory differs. Each bone needs the
result of the bone before, so a single chain leaves most of the processor idle, and thirty-two chains use it fully. A
chain whose first attempt fails is left to the scalar kernel.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.views import matrix, stack
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.frames import target_frame
from synovia.kernels.goals.residuals import all_given, complete_targets, first_invalid_target
from synovia.kernels.heuristic.fabrik_chain import lay_out, placed, turn_joints
from synovia.kernels.layout import BEST, BONE, LEFT, PLACE, POSITION_WEIGHT, PROGRESS, REFUSED, STATUS
from synovia.kernels.math.vectors import dot, load, norm, store, sub
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.simd.batch import FORWARD, LANES, as_type, count_left, lane_vector, leave_from, put_vector, verify
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_problem, open_row, open_work

ROW, STEP, CHECK = 0, 1, 2  # counters of a lane: problem (-1: none), iterations, the iteration of the next check
NOW, LOWEST, MARK = 0, 1, 2  # squared errors of a lane: present, lowest so far, lowest at the last check
SINGLE_AIM = F(0.95)  # error (tolerances) to reach in single precision: rounding in a thousand bones adds a fiftieth


@inline
def pull(P, V, i, length):
    """Move point i of every lane to a bone's length from V, on the line to its old position; set V to the new point."""
    K = P.dtype.type
    k = (3 * i) & FORWARD
    for l in range(LANES):
        v = placed(K, lane_vector(V, 0, l), lane_vector(P, k, l), length)
        put_vector(V, 0, l, v)
        put_vector(P, k, l, v)


@inline
def iterate_lanes(points, n, P, V, root, goal):
    """Move the points of every lane once backward, from its target, and once forward, from the root; V gets the tip."""
    K = P.dtype.type
    for l in range(LANES):
        put_vector(V, 0, l, lane_vector(goal, 0, l))
    for i in range(n - 1, 0, -1):
        pull(P, V, i, K(points[i, BONE]))
    for l in range(LANES):
        put_vector(V, 0, l, root)
    # the backward pass leaves the last point at the target
    k = (3 * n) & FORWARD
    for l in range(LANES):
        put_vector(P, k, l, lane_vector(goal, 0, l))
    for i in range(n):
        pull(P, V, i + 1, K(points[i, BONE]))


@inline
def lane_costs(V, goal, costs):
    """Write the squared distance of every lane's tip from its target, and the lowest so far."""
    for l in range(LANES):
        d = sub(lane_vector(goal, 0, l), lane_vector(V, 0, l))
        cost = dot(d, d)
        costs[NOW, l] = cost
        low = costs[LOWEST, l]
        costs[LOWEST, l] = cost if cost < low else low


@device
def write_answer(problem, work, row, steps, cost):
    """Write the answer with the best points, if it meets the goals in double precision."""
    if steps > 0:
        turn_joints(problem, work, open_row(problem, row)[0])
    weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach
    verify(problem, work, row, steps, F(0), cost * weight * weight)


class Lanes(NamedTuple):
    """State of the lanes: counters and costs (3, lanes), points ``P`` and targets ``goal`` (3 rows per point).

    ``total``: length of the chain. ``most2``: squared distance within which a goal is met.
    """

    counters: Any
    costs: Any
    P: Any
    goal: Any
    total: float
    most2: float


@device
def load_problem(problem, work, targets, starts, out, b, lanes, l):
    """Load problem b into lane l, unless its start is the answer or its target is out of reach.

    Returns:
        The goal with an invalid target, or -1.
    """
    refused = first_invalid_target(problem, targets[b])
    if refused >= 0:
        return refused
    K = lanes.P.dtype.type
    n = problem.tree.ints.shape[0]
    row = out[b]
    row[STATUS] = LEFT
    q, _, kept = open_row(problem, row)
    copy(starts[min(b, starts.shape[0] - 1)], q)
    if starts.shape[0] > 1:
        lay_out(problem, work, q)
    elif not all_given(problem, targets[b]):
        forward(problem.tree, q, work.frames)
    complete_targets(problem, work.frames, targets[b], kept)
    _, t = target_frame(kept, 0)
    d = sub(t, load(work.points, n, PLACE))
    cost = dot(d, d)
    if cost <= lanes.most2:
        write_answer(problem, work, row, 0, cost)
        return -1
    if norm(sub(t, load(work.points, 0, PLACE))) > lanes.total:
        return -1
    for i in range(n + 1):
        put_vector(lanes.P, 3 * i, l, as_type(K, load(work.points, i, PLACE)))
    put_vector(lanes.goal, 0, l, as_type(K, t))
    lanes.costs[LOWEST, l] = cost
    lanes.costs[MARK, l] = cost
    lanes.counters[ROW, l] = b
    lanes.counters[STEP, l] = 0
    lanes.counters[CHECK, l] = min(problem.patience, problem.max_steps)
    return -1


@inline
def goes_on(problem, counters, costs, l):
    """Return whether a lane that misses its target continues; checked every few iterations, as in ``fabrik_chain``."""
    k = counters[STEP, l]
    if k >= problem.max_steps or not costs[NOW, l] < math.inf:
        return False
    if costs[LOWEST, l] > problem.params[PROGRESS] * costs[MARK, l]:
        return False
    costs[MARK, l] = costs[LOWEST, l]
    counters[CHECK, l] = min(k + problem.patience, problem.max_steps)
    return True


@entry
def fabrik_simd(ints, floats, targets, starts, out, scratch, memory):
    """Solve a batch of problems in the type of ``memory``; ``fabrik_chain`` solves the rows with status LEFT.

    ``memory`` holds the points: 3 (joints + 1) values per lane. ``search.multistart`` describes the other arguments.

    Returns:
        The number of rows that are left, or REFUSED - row for the first invalid target.
    """
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    K = memory.dtype.type
    n = problem.tree.ints.shape[0]
    P = matrix(memory, 0, 3 * (n + 1), LANES)
    V, goal, costs = stack(memory, 3, LANES), stack(memory, 3, LANES), stack(memory, 3, LANES)
    counters = stack(ints, 3, LANES)
    q, _, _ = open_row(problem, out[0])
    copy(starts[0], q)
    total = lay_out(problem, work, q)
    root = as_type(K, load(work.points, 0, PLACE))
    most2 = (INSIDE * problem.tolerance) ** 2
    lanes = Lanes(counters, costs, P, goal, total, most2)
    near2 = most2 if F(K(INSIDE)) == INSIDE else (SINGLE_AIM * problem.tolerance) ** 2
    for l in range(LANES):
        counters[ROW, l] = -1
        counters[STEP, l] = 0
        counters[CHECK, l] = 0
        costs[LOWEST, l] = 0
        put_vector(goal, 0, l, root)
        put_vector(V, 0, l, root)
        for i in range(n + 1):
            put_vector(P, 3 * i, l, root)
    next_row = 0
    busy = 0
    while next_row < out.shape[0] or busy > 0:
        if stopped(work.watch, LANES * n):
            leave_from(out, next_row)
            break
        lane_costs(V, goal, costs)
        for l in range(LANES):
            arrived = costs[NOW, l] <= near2
            if arrived or counters[STEP, l] >= counters[CHECK, l]:
                b = np.int64(counters[ROW, l])
                if b >= 0 and arrived:
                    for i in range(n + 1):
                        p = lane_vector(P, 3 * i, l)
                        store(work.points, i, BEST, (F(p[0]), F(p[1]), F(p[2])))
                    write_answer(problem, work, out[b], counters[STEP, l], F(costs[NOW, l]))
                if b < 0 or arrived or not goes_on(problem, counters, costs, l):
                    busy -= b >= 0
                    counters[ROW, l] = -1
                    while next_row < out.shape[0] and counters[ROW, l] < 0:
                        refused = load_problem(problem, work, targets, starts, out, next_row, lanes, l)
                        if refused >= 0:
                            return REFUSED - next_row
                        next_row += 1
                    busy += counters[ROW, l] >= 0
            counters[STEP, l] += 1
        iterate_lanes(work.points, n, P, V, root, goal)
    return count_left(out)
