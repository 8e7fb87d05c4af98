"""Levenberg-Marquardt for a SIMD batch of targets of one arm (see ``batch``).

The method is that of ``jacobian.arm`` without geodesic acceleration, by the same formulas (``jacobian.arm_step``). If
the problem of a lane ends, the lane takes the next problem, or the next attempt of the same problem from the random
pose that ``multistart`` would use.

The arrays have one column per lane: ``Q`` joint values; ``P`` frame of the last joint, then of the goal; ``axes`` and
``J`` six values of each joint: its axis and a point on it, and its Jacobian column; ``goal`` the target frame; ``E``
errors; ``S`` the lower triangle of J Jᵀ + λ; ``Y`` the solution y of (J Jᵀ + λ) y = e.

The rotation error is 2 sin(θ/2) about the axis of the rotation, without an arctangent. So the steps differ from those
of ``arm``, and may end at another point within the tolerance, or in another pose that reaches the target.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from synovia.kernels.compiler.jit import F, device, entry, inline, perform
from synovia.kernels.compiler.views import stack
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.frames import target_frame
from synovia.kernels.goals.residuals import all_given, complete_targets, first_invalid_target
from synovia.kernels.layout import BLOCK_Q, LEFT, LOWER, REFUSED, STATUS, UPPER
from synovia.kernels.math.trigonometry import PI, sincos
from synovia.kernels.search.descent import INSIDE, falls_slowly
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.simd.arm_step import (
    ERROR_WIDTH,
    FAR2,
    LANE_COST,
    TURNED2,
    lane_errors,
    lane_forward,
    lane_normal,
    lane_step,
)
from synovia.kernels.simd.batch import LANES, count_left, leave_from, verify
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_problem, open_row, open_work
from synovia.kernels.tree.variables import start_random

JOINTS = 16  # largest number of joints of an arm
AXES = 6 * JOINTS
MOST_ATTEMPTS = 8  # largest number of attempts at a problem: few need more, and unreachable ones must not block a lane
ROW, STEP, ATTEMPT, TAKEN, COUNTERS = 0, 1, 2, 3, 4  # counters of a lane: problem (-1: none), step, attempt, all steps
MARK, LOWEST = 0, 1  # costs of a lane: lowest at the last check of progress, lowest so far


@inline
def chord2(angle):
    """Return (2 sin(angle / 2))², the measure of angles in this file; from π on, more than that of any rotation."""
    if angle >= PI:
        return F(5)
    s, _ = sincos(F(0.5) * angle)
    return F(4) * s * s


class Lanes(NamedTuple):
    """State of the lanes: counters (COUNTERS, lanes), costs (2, lanes), ``Q`` and ``goal`` (see above)."""

    counters: Any
    costs: Any
    Q: Any
    goal: Any


@device
def load_attempt(problem, q, lanes, l):
    """Load an attempt that starts at q into lane l."""
    for i in range(problem.variables.shape[0]):
        lanes.Q[i, l] = q[problem.variables[i, BLOCK_Q]]
    lanes.counters[STEP, l] = 0
    lanes.costs[LOWEST, l] = np.inf


@device
def load_problem(problem, work, targets, starts, out, b, lanes, l):
    """Load problem b into lane l; return the goal with an invalid target, or -1."""
    refused = first_invalid_target(problem, targets[b])
    if refused >= 0:
        return refused
    row = out[b]
    q, _, kept = open_row(problem, row)
    copy(starts[min(b, starts.shape[0] - 1)], q)
    if not all_given(problem, targets[b]):
        forward(problem.tree, q, work.frames)
    complete_targets(problem, work.frames, targets[b], kept)
    T, t = target_frame(kept, 0)
    for r in range(9):
        lanes.goal[r, l] = T[r]
    for r in range(3):
        lanes.goal[9 + r, l] = t[r]
    lanes.counters[ROW, l] = b
    lanes.counters[ATTEMPT, l] = 0
    lanes.counters[TAKEN, l] = 0
    row[STATUS] = LEFT
    load_attempt(problem, q, lanes, l)
    return -1


@device
def restart(problem, work, starts, out, lanes, l):
    """Load the next attempt of the problem of lane l; return whether there is one."""
    lanes.counters[ATTEMPT, l] += 1
    lanes.counters[TAKEN, l] += lanes.counters[STEP, l]
    tries = np.int64(lanes.counters[ATTEMPT, l])
    if tries >= min(problem.attempts, MOST_ATTEMPTS):
        return False
    b = np.int64(lanes.counters[ROW, l])
    q, _, kept = open_row(problem, out[b])
    copy(starts[min(b, starts.shape[0] - 1)], q)
    start_random(problem, work, tries)
    perform(random_scalars, problem, work, kept, q)
    load_attempt(problem, q, lanes, l)
    return True


@device
def write_answer(problem, work, out, counters, Q, cost, l):
    """Write the answer of lane l, if it meets the goals in double precision."""
    row = out[np.int64(counters[ROW, l])]
    q, _, _ = open_row(problem, row)
    for i in range(problem.variables.shape[0]):
        q[problem.variables[i, BLOCK_Q]] = min(max(F(Q[i, l]), problem.limits[i, LOWER]), problem.limits[i, UPPER])
    verify(problem, work, row, counters[TAKEN, l] + counters[STEP, l], F(counters[ATTEMPT, l]), F(cost))


@entry
def arm_simd(ints, floats, targets, starts, out, scratch, like):
    """Solve a batch of problems in the type of ``like``; ``arm`` solves the rows with status LEFT.

    ``search.multistart`` describes the other arguments. Only the type of ``like`` is used.

    Returns:
        The number of rows that are left, or REFUSED - row for the first invalid target.
    """
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    Q, axes, J = stack(like, JOINTS, LANES), stack(like, AXES, LANES), stack(like, AXES, LANES)
    P, goal, E = stack(like, 12, LANES), stack(like, 12, LANES), stack(like, ERROR_WIDTH, LANES)
    S, Y = stack(like, 21, LANES), stack(like, 6, LANES)
    costs, counters = stack(like, 2, LANES), stack(ints, COUNTERS, LANES)
    lanes = Lanes(counters, costs, Q, goal)
    far2 = (INSIDE * problem.tolerance) ** 2
    turned2 = chord2(INSIDE * problem.tolerance_angle)
    next_row = 0
    busy = 0
    for l in range(LANES):
        counters[ROW, l] = -1
        for i in range(JOINTS):
            Q[i, l] = 0
        for r in range(12):
            goal[r, l] = 0
        if next_row < out.shape[0]:
            if load_problem(problem, work, targets, starts, out, next_row, lanes, l) >= 0:
                return REFUSED - next_row
            next_row += 1
            busy += 1
    while busy > 0:
        if stopped(work.watch, LANES * problem.columns):
            leave_from(out, next_row)
            break
        lane_forward(problem, Q, P, axes)
        lane_errors(problem, P, goal, E)
        for l in range(LANES):
            if counters[ROW, l] < 0:
                continue
            k = counters[STEP, l]
            cost = E[LANE_COST, l]
            reached = (E[FAR2, l] <= far2) & (E[TURNED2, l] <= turned2)
            costs[LOWEST, l] = min(costs[LOWEST, l], cost)
            ended = k == problem.max_steps
            slowly, costs[MARK, l] = falls_slowly(problem, k, costs[LOWEST, l], costs[MARK, l])
            ended |= slowly
            ended |= not cost < math.inf
            if not reached and not ended:
                counters[STEP, l] = k + 1
                continue
            for r in range(ERROR_WIDTH):  # with zero errors, the next problem makes no step before its first check
                E[r, l] = 0
            if reached:
                write_answer(problem, work, out, counters, Q, cost, l)
            elif restart(problem, work, starts, out, lanes, l):
                continue
            counters[ROW, l] = -1
            busy -= 1
            if next_row < out.shape[0]:
                if load_problem(problem, work, targets, starts, out, next_row, lanes, l) >= 0:
                    return REFUSED - next_row
                next_row += 1
                busy += 1
        lane_normal(problem, Q, P, axes, E, J, S)
        lane_step(problem, Q, E, J, S, Y)
    return count_left(out)
