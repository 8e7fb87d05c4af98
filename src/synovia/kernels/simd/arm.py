"""Levenberg-Marquardt for many targets of one arm in lockstep: thirty-two problems side by side, one in each lane.

The method is that of ``jacobian.arm`` along the tangent alone, by the same formulas (``jacobian.arm_step``), over
arrays [number, lane]: one instruction of the processor works on several problems. A lane whose problem ends takes up
the next one, or the next attempt of the same, from the same random pose as ``multistart`` would.

The rotation's error is 2 sin(θ/2) about the axis of the turn, without an arctangent. Other steps end elsewhere within
the tolerance, or in another of the poses that reach. Every answer is verified in double precision. A problem that the
lanes do not reach in a few attempts is left to the scalar kernel, with its proofs and its verdict.
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, device, entry, inline, perform
from synovia.kernels.compiler.views import bits, stack
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.frames import target_frame
from synovia.kernels.goals.residuals import all_given, complete_targets, first_invalid_target, measure
from synovia.kernels.layout import (
    BLOCK_Q,
    COST,
    FINISH,
    LOWER,
    REACHED,
    STATE,
    STATUS,
    STEPS,
    STOPPED_BY,
    TRIES,
    UPPER,
    WINNER,
)
from synovia.kernels.math.trigonometry import PI, sincos
from synovia.kernels.search.descent import INSIDE, falls_slowly
from synovia.kernels.search.multistart import set_followers
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.simd.arm_step import (
    ERROR_WIDTH,
    FAR2,
    LANE_COST,
    LANES,
    TURNED2,
    lane_errors,
    lane_forward,
    lane_normal,
    lane_step,
)
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_problem, open_row, open_work
from synovia.kernels.tree.variables import seed_state

JOINTS = 16  # most that a lane can hold
AXES = 6 * JOINTS
TRIALS = 8  # attempts in lanes; few problems need more, and those that cannot be reached should not hold up a lane
LEFT = -1  # status of a row that is left to the scalar kernel
ROW, STEP, TRY, TAKEN = (
    0,
    1,
    2,
    3,
)  # integers of a lane: its problem (-1: none), steps of the attempt, attempt, all steps
COLD = 4  # numbers of a lane: cost at the last look, lowest cost


@inline
def chord2(angle):
    """Return (2 sin(angle / 2))², and more than any rotation has from half a turn on: what lanes take for an angle."""
    if angle >= PI:
        return F(5)
    s, _ = sincos(F(0.5) * angle)
    return F(4) * s * s


@device
def take_up(problem, q, lanes, state, Q, l):
    """Put an attempt that starts at q into lane l."""
    for i in range(problem.variables.shape[0]):
        Q[i, l] = q[problem.variables[i, BLOCK_Q]]
    lanes[STEP, l] = 0
    state[1, l] = np.inf


@device
def begin(problem, work, targets, starts, out, b, lanes, state, Q, goal, l):
    """Put problem b into lane l; return the goal whose target is refused, or -1."""
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
        goal[r, l] = T[r]
    for r in range(3):
        goal[9 + r, l] = t[r]
    lanes[ROW, l] = b
    lanes[TRY, l] = 0
    lanes[TAKEN, l] = 0
    row[STATUS] = LEFT
    take_up(problem, q, lanes, state, Q, l)
    return -1


@device
def restart(problem, work, starts, out, lanes, state, Q, l):
    """Put the next attempt of its problem into lane l; return whether there is one."""
    lanes[TRY, l] += 1
    lanes[TAKEN, l] += lanes[STEP, l]
    tries = np.int64(lanes[TRY, l])
    if tries >= min(problem.attempts, TRIALS):
        return False
    b = np.int64(lanes[ROW, l])
    q, _, kept = open_row(problem, out[b])
    copy(starts[min(b, starts.shape[0] - 1)], q)
    seed_state(bits(work.watch, STATE, 1), problem.seed, tries)
    perform(random_scalars, problem, work, kept, q)
    take_up(problem, q, lanes, state, Q, l)
    return True


@device
def answer(problem, work, out, lanes, Q, cost, l):
    """Write the answer of lane l, if it holds in double precision."""
    row = out[np.int64(lanes[ROW, l])]
    q, errors, kept = open_row(problem, row)
    for i in range(problem.variables.shape[0]):
        q[problem.variables[i, BLOCK_Q]] = min(max(F(Q[i, l]), problem.limits[i, LOWER]), problem.limits[i, UPPER])
    set_followers(problem, q)
    forward(problem.tree, q, work.frames)
    if measure(problem, q, work.frames, kept, errors) <= F(1):
        row[STATUS] = REACHED
        row[STEPS] = lanes[TAKEN, l] + lanes[STEP, l]
        row[TRIES] = lanes[TRY, l] + 1
        row[WINNER] = lanes[TRY, l]
        row[COST] = cost
        row[FINISH] = F(0)
        row[STOPPED_BY] = F(0)


@entry
def arm_simd(ints, floats, targets, starts, out, scratch, like):
    """Solve rows of problems in lanes of the type of ``like``; rows with status LEFT are for ``arm`` to solve.

    Returns:
        The number of rows that are left, or -1 - row for the first target that is refused.
    """
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    Q, axes, J = stack(like, JOINTS, LANES), stack(like, AXES, LANES), stack(like, AXES, LANES)
    P, goal, E = stack(like, 12, LANES), stack(like, 12, LANES), stack(like, ERROR_WIDTH, LANES)
    S, Y = stack(like, 21, LANES), stack(like, 6, LANES)
    state, lanes = stack(like, 2, LANES), stack(ints, COLD, LANES)
    far2 = (INSIDE * problem.tolerance) ** 2
    turned2 = chord2(INSIDE * problem.tolerance_angle)
    following = 0
    live = 0
    for l in range(LANES):
        lanes[ROW, l] = -1
        for i in range(JOINTS):
            Q[i, l] = 0
        for r in range(12):
            goal[r, l] = 0
        if following < out.shape[0]:
            if begin(problem, work, targets, starts, out, following, lanes, state, Q, goal, l) >= 0:
                return -1 - following
            following += 1
            live += 1
    while live > 0:
        if stopped(work.watch, LANES * problem.columns):
            for b in range(following, out.shape[0]):
                out[b, STATUS] = LEFT
            break
        lane_forward(problem, Q, P, axes)
        lane_errors(problem, P, goal, E)
        for l in range(LANES):
            if lanes[ROW, l] < 0:
                continue
            k = lanes[STEP, l]
            cost = E[LANE_COST, l]
            reached = (E[FAR2, l] <= far2) & (E[TURNED2, l] <= turned2)
            state[1, l] = min(state[1, l], cost)
            ended = k == problem.max_steps
            slowly, state[0, l] = falls_slowly(problem, k, state[1, l], state[0, l])
            ended |= slowly
            ended |= not cost < math.inf
            if not reached and not ended:
                lanes[STEP, l] = k + 1
                continue
            for r in range(ERROR_WIDTH):  # what comes next is not stepped before it is looked at
                E[r, l] = 0
            if reached:
                answer(problem, work, out, lanes, Q, cost, l)
            elif restart(problem, work, starts, out, lanes, state, Q, l):
                continue
            lanes[ROW, l] = -1
            live -= 1
            if following < out.shape[0]:
                if begin(problem, work, targets, starts, out, following, lanes, state, Q, goal, l) >= 0:
                    return -1 - following
                following += 1
                live += 1
        lane_normal(problem, Q, P, axes, E, J, S)
        lane_step(problem, Q, E, J, S, Y)
    left = 0
    for b in range(out.shape[0]):
        if out[b, STATUS] < F(0):
            left += 1
    return left
