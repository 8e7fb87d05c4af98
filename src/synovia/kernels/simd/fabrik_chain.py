"""FABRIK for many targets of one chain of unlimited balls in lockstep: thirty-two chains at once, one in each lane.

The points move as in ``fabrik_chain``, bone for bone; what differs is their order in memory, [number, lane], so that
one instruction of the processor moves several chains. A bone waits for the one before it: alone such a chain leaves
most of the processor idle, thirty-two fill it.

A lane whose chain has arrived takes up the next target. Joint values and the verdict come from forward kinematics in
double precision, whatever the lanes work in. A chain that does not arrive in its first attempt is left to the scalar
kernel, with its proofs, restarts and answers.
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.views import matrix, stack
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.residuals import all_given, complete_targets, first_invalid_target, measure, target_frame
from synovia.kernels.heuristic.fabrik_chain import lay_out, placed, turn_joints
from synovia.kernels.layout import (
    BEST,
    BONE,
    COST,
    FINISH,
    PLACE,
    POSITION_WEIGHT,
    PROGRESS,
    REACHED,
    STATUS,
    STEPS,
    STOPPED_BY,
    TRIES,
    WINNER,
)
from synovia.kernels.math.vectors import dot, load, norm, store, sub
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.search.multistart import set_followers
from synovia.kernels.simd.arm import LEFT
from synovia.kernels.simd.arm_step import FORWARD, LANES, as_type, lane_vector, put_vector
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_problem, open_row, open_work

ROW, STEP, LOOK = 0, 1, 2  # integers of a lane: its problem (-1: none), iterations, the iteration of the next look
NOW, LOWEST, MARK = 0, 1, 2  # numbers of a lane: squared error now, the lowest, the lowest at the last look
SINGLE_AIM = F(0.95)  # of the tolerance, in single precision: rounding of a thousand bones adds a fiftieth of it


@inline
def pull(P, V, i, length):
    """Bring point i of every lane to a bone's length from V, on the line to where it is, and V there too."""
    K = P.dtype.type
    k = (3 * i) & FORWARD
    for l in range(LANES):
        v = placed(K, lane_vector(V, 0, l), lane_vector(P, k, l), length)
        put_vector(V, 0, l, v)
        put_vector(P, k, l, v)


@inline
def iterate_lanes(points, n, P, V, root, goal):
    """Move the points of every lane once backward, from its target, and once forward, from the root; V is the tip."""
    K = P.dtype.type
    for l in range(LANES):
        put_vector(V, 0, l, lane_vector(goal, 0, l))
    for i in range(n - 1, 0, -1):
        pull(P, V, i, K(points[i, BONE]))
    for l in range(LANES):
        put_vector(V, 0, l, root)
    # the tip is at its target already: the last point counts as there
    k = (3 * n) & FORWARD
    for l in range(LANES):
        put_vector(P, k, l, lane_vector(goal, 0, l))
    for i in range(n):
        pull(P, V, i + 1, K(points[i, BONE]))


@inline
def lane_costs(V, goal, state):
    """Write the squared distance of every lane's tip from its target, and the lowest so far."""
    for l in range(LANES):
        d = sub(lane_vector(goal, 0, l), lane_vector(V, 0, l))
        cost = dot(d, d)
        state[NOW, l] = cost
        low = state[LOWEST, l]
        state[LOWEST, l] = cost if cost < low else low


@device
def answer(problem, work, row, steps, cost):
    """Write the answer whose points are the best ones, after so many iterations, if it holds in double precision."""
    q, errors, kept = open_row(problem, row)
    if steps > 0:
        turn_joints(problem, work, q)
    set_followers(problem, q)
    forward(problem.tree, q, work.frames)
    if measure(problem, q, work.frames, kept, errors) <= F(1):
        weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach
        row[STATUS] = REACHED
        row[STEPS] = steps
        row[TRIES] = F(1)
        row[WINNER] = F(0)
        row[COST] = cost * weight * weight
        row[FINISH] = F(0)
        row[STOPPED_BY] = F(0)


@device
def begin(problem, work, targets, starts, out, b, total, most2, lanes, state, P, goal, l):
    """Put problem b into lane l, unless its start is the answer or its target is out of reach.

    Returns:
        The goal whose target is refused, or -1.
    """
    refused = first_invalid_target(problem, targets[b])
    if refused >= 0:
        return refused
    K = P.dtype.type
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
    if cost <= most2:
        answer(problem, work, row, 0, cost)
        return -1
    if norm(sub(t, load(work.points, 0, PLACE))) > total:
        return -1
    for i in range(n + 1):
        put_vector(P, 3 * i, l, as_type(K, load(work.points, i, PLACE)))
    put_vector(goal, 0, l, as_type(K, t))
    state[LOWEST, l] = cost
    state[MARK, l] = cost
    lanes[ROW, l] = b
    lanes[STEP, l] = 0
    lanes[LOOK, l] = min(problem.patience, problem.max_steps)
    return -1


@inline
def goes_on(problem, lanes, state, l):
    """Return whether a lane that has not arrived goes on: a look every few iterations, as in ``fabrik_chain``."""
    k = lanes[STEP, l]
    if k >= problem.max_steps or not state[NOW, l] < math.inf:
        return False
    if state[LOWEST, l] > problem.params[PROGRESS] * state[MARK, l]:
        return False
    state[MARK, l] = state[LOWEST, l]
    lanes[LOOK, l] = min(k + problem.patience, problem.max_steps)
    return True


@entry
def fabrik_simd(ints, floats, targets, starts, out, scratch, room):
    """Solve rows of problems in lanes of the type of ``room``; rows with status LEFT are for ``fabrik_chain`` to solve.

    ``room`` is memory for the points: 3 (joints + 1) numbers a lane.

    Returns:
        The number of rows that are left, or -1 - row for the first target that is refused.
    """
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    K = room.dtype.type
    n = problem.tree.ints.shape[0]
    P = matrix(room, 0, 3 * (n + 1), LANES)
    V, goal, state = stack(room, 3, LANES), stack(room, 3, LANES), stack(room, 3, LANES)
    lanes = stack(ints, 3, LANES)
    q, _, _ = open_row(problem, out[0])
    copy(starts[0], q)
    total = lay_out(problem, work, q)
    root = as_type(K, load(work.points, 0, PLACE))
    most2 = (INSIDE * problem.tolerance) ** 2
    near2 = most2 if F(K(INSIDE)) == INSIDE else (SINGLE_AIM * problem.tolerance) ** 2
    for l in range(LANES):
        lanes[ROW, l] = -1
        lanes[STEP, l] = 0
        lanes[LOOK, l] = 0
        state[LOWEST, l] = 0
        put_vector(goal, 0, l, root)
        put_vector(V, 0, l, root)
        for i in range(n + 1):
            put_vector(P, 3 * i, l, root)
    following = 0
    live = 0
    while following < out.shape[0] or live > 0:
        if stopped(work.watch, LANES * n):
            for b in range(following, out.shape[0]):
                out[b, STATUS] = LEFT
            break
        lane_costs(V, goal, state)
        for l in range(LANES):
            arrived = state[NOW, l] <= near2
            if arrived or lanes[STEP, l] >= lanes[LOOK, l]:
                b = np.int64(lanes[ROW, l])
                if b >= 0 and arrived:
                    for i in range(n + 1):
                        p = lane_vector(P, 3 * i, l)
                        store(work.points, i, BEST, (F(p[0]), F(p[1]), F(p[2])))
                    answer(problem, work, out[b], lanes[STEP, l], F(state[NOW, l]))
                if b < 0 or arrived or not goes_on(problem, lanes, state, l):
                    live -= b >= 0
                    lanes[ROW, l] = -1
                    while following < out.shape[0] and lanes[ROW, l] < 0:
                        if (
                            begin(
                                problem, work, targets, starts, out, following, total, most2, lanes, state, P, goal, l
                            )
                            >= 0
                        ):
                            return -1 - following
                        following += 1
                    live += lanes[ROW, l] >= 0
            lanes[STEP, l] += 1
        iterate_lanes(work.points, n, P, V, root, goal)
    left = 0
    for b in range(out.shape[0]):
        if out[b, STATUS] < F(0):
            left += 1
    return left
