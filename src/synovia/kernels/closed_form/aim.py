"""Aim in closed form: one joint, or a chain that shares the rotation, points an axis at a target.

The axis a passes through a point at e from the joint's centre, and the target is at d from that centre. A rotation of
the joint can bring the point e + s a of the axis to the target if |e + s a| = |d|, a quadratic equation in s. The
smallest such rotation takes e + s a to d. For a hinge the same holds for the components normal to its axis. A rotation
about d keeps the aim; the roll about d brings the up direction of the joint as near as possible to a given one.

In a chain, each joint from the root on takes its share of the rotation that aims the axis about this joint. The last
joint takes the rest.
"""

import math

import numpy as np

from synovia.kernels.closed_form.blend import blend_answer, load_start, solve_in_order
from synovia.kernels.closed_form.nearest_aim import lever, nearest_aim
from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.general import aim_vectors
from synovia.kernels.goals.residuals import residual
from synovia.kernels.layout import (
    BLEND,
    BLOCK_Q,
    COUNT,
    GOAL,
    GOAL_ROW,
    HINGE,
    KIND,
    LOWER,
    ROTATION,
    SHARES,
    TARGET_PARTS,
    TOP_AXIS,
    TWIST,
    UP,
    UPPER,
    VARIABLE,
)
from synovia.kernels.math.rotations import (
    apply,
    apply_t,
    column,
    frame_of,
    load_quat,
    quat_apply,
    quat_exp,
    quat_log,
    quat_mul,
    rotation_of,
    store_quat,
)
from synovia.kernels.math.subproblems import turn_to, turned
from synovia.kernels.math.two_segments import FLAT, nearest_turn, turn_about, turn_onto
from synovia.kernels.math.vectors import cross, dot, norm, perpendicular, reject, scale, sub
from synovia.kernels.search.multistart import Begins, Search
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.ball import ball_rest_rotation, nearest_allowed_swivel, no_wrist, rotate_ball, turned_ball
from synovia.kernels.tree.branches import moving_row
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_general, open_work
from synovia.kernels.tree.variables import clamp_block


@inline
def aim_error(z, e, a, d, angle):
    """Return the angle between the axis and the direction of the target after a turn of a hinge."""
    ray, way = turned(z, a, angle), sub(d, turned(z, e, angle))
    return math.atan2(norm(cross(ray, way)), dot(ray, way))


@device
def aim_hinge(problem, q, row, z, e, a, d, share):
    """Rotate a hinge by the fraction ``share`` of the angle that aims the axis, seen along the hinge, within limits."""
    k = problem.tree.ints[row, VARIABLE]
    at = problem.variables[k, BLOCK_Q]
    level = reject(d, z)
    point = lever(reject(e, z), reject(a, z), level)
    if norm(point) <= FLAT * problem.reach or norm(level) <= FLAT * problem.reach:
        return
    low, high = problem.limits[k, LOWER] - q[at], problem.limits[k, UPPER] - q[at]
    turn, found = nearest_turn(turn_to(z, point, level), F(0), low, high)
    if not found:
        turn = low if aim_error(z, e, a, d, low) <= aim_error(z, e, a, d, high) else high
    q[at] += share * turn
    clamp_block(problem.variables, problem.limits, k, q)


@device
def roll_of(problem, targets, term, R, G, turn, line):
    """Return the roll about the line of sight that brings the joint's top nearest to up, plus the setting ``twist``.

    The up direction is given by the goal, else by the settings.
    """
    if problem.general.ints[term, TARGET_PARTS] & ROTATION:
        up, top = column(target_frame(targets, problem.general.ints[term, GOAL])[0], 2), column(G, 1)
    else:
        up = (problem.params[UP], problem.params[UP + 1], problem.params[UP + 2])
        top = apply(R, (problem.params[TOP_AXIS], problem.params[TOP_AXIS + 1], problem.params[TOP_AXIS + 2]))
    top = quat_apply(turn, top)
    if norm(reject(top, line)) <= FLAT or norm(reject(up, line)) <= FLAT:
        return F(0)
    return turn_to(line, top, up) + problem.params[TWIST]


@device
def aim_within_limits(problem, frames, q, row, turn, a, e, d):
    """Set a ball to the allowed rotation whose axis points nearest to a target.

    ``turn`` is the rotation in the world that would aim the axis, but exceeds the limits.
    """
    k = problem.tree.ints[row, VARIABLE]
    at = problem.variables[k, BLOCK_Q]
    R, base = rotation_of(frames, row), ball_rest_rotation(problem, frames, q, row)
    wanted = turned_ball(problem, frames, q, row, turn)
    q0 = load_quat(q, at)
    x, y, z, w = nearest_aim(problem.limits, k, q0, wanted, apply_t(R, a), apply_t(R, e), apply_t(base, d))
    side = F(1) if x * q0[0] + y * q0[1] + z * q0[2] + w * q0[3] >= F(0) else F(-1)
    store_quat(q, at, (side * x, side * y, side * z, side * w))


@device
def aim_one(problem, work, targets, q, term, row, share, last):
    """Rotate one joint by its share of the aiming rotation; work.frames are at q, before and after."""
    G, _ = goal_frame(problem, work.frames, problem.general.ints[term, GOAL])
    R, o = frame_of(work.frames, row)
    a = column(G, 2)
    e, d = aim_vectors(problem, work.frames, targets, term, o)
    if norm(d) <= FLAT * problem.reach:
        return  # the target is at the joint: every direction aims
    if problem.tree.ints[row, KIND] == HINGE:
        aim_hinge(problem, q, row, column(R, 2), e, a, d, share)
    else:
        turn = turn_onto(lever(e, a, d), d, apply(R, perpendicular(apply_t(R, a))))
        inside = True
        if last:
            line = scale(F(1) / norm(d), d)
            roll = roll_of(problem, targets, term, R, G, turn, line)
            roll, inside = nearest_allowed_swivel(problem, work.frames, q, row, turn, line, no_wrist(), roll)
            turn = quat_mul(turn_about(line, roll), turn)
        else:
            turn = quat_exp(scale(share, quat_log(turn)))
        if inside:
            rotate_ball(problem, work.frames, q, row, turn)
        else:
            aim_within_limits(problem, work.frames, q, row, turn, a, e, d)
    forward(problem.tree, q, work.frames)


@device
def aim_chain(problem, work, targets, q, term):
    """Aim a goal term with its chain, from the root on: each joint takes its part of the remaining rotation."""
    count = np.int64(problem.params[COUNT])
    left = F(0)
    for i in range(count):
        left += problem.params[SHARES + i]
    for i in range(count - 1, -1, -1):
        row = moving_row(problem, problem.goals[problem.general.ints[term, GOAL], GOAL_ROW], i)
        aim_one(problem, work, targets, q, term, row, problem.params[SHARES + i] / left, i == 0)
        left -= problem.params[SHARES + i]


@algorithm
def attempt(problem, work, targets, q):
    """Aim each goal's chain, from the start pose or, in a track, the last answer; then blend with the first start."""
    load_start(problem, work, q)
    forward(problem.tree, q, work.frames)
    for row in range(problem.tree.ints.shape[0]):  # parents first
        for term in range(problem.general.ints.shape[0]):
            g = problem.general.ints[term, GOAL]
            if moving_row(problem, problem.goals[g, GOAL_ROW], 0) == row:
                aim_chain(problem, work, targets, q, term)
    blend_answer(problem, work, q, problem.params[BLEND])
    cost, _ = residual(problem, q, work.frames, targets, work.e)
    return 1, cost


@algorithm
def prove(problem, work, targets, q):
    """Return 0, for no proof. A descent finds whether a limit, or a target near the axis, prevents the aim."""
    return 0, F(0)


SEARCH = Search(attempt, random_start, prove)


@entry
def aim_joint(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems, one after the other; see ``search.multistart``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_in_order(SEARCH, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
