"""Limbs on a tree: their joints, their frames in the world, and their motion.

A limb consists of the two nearest moving joints above a goal: a root that rotates about any axis, and a middle joint
that is a hinge or ball. With a rotation goal the joint nearest to the goal takes the rotation, and the two joints above
are the limb.
"""

import math
from typing import NamedTuple

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.general import POLE
from synovia.kernels.layout import (
    BLOCK_Q,
    GOAL,
    GOAL_ROW,
    HINGE,
    KIND,
    LOWER,
    PARTS,
    POSITION,
    ROTATION,
    UPPER,
    VARIABLE,
)
from synovia.kernels.math.rotations import (
    PI,
    apply,
    apply_t,
    column,
    matmul,
    matmul_t,
    matrix_quat,
    origin_of,
    quat_apply,
    quat_mul,
    rotation_of,
)
from synovia.kernels.math.two_segments import (
    FLAT,
    bend_normal,
    distance_curve,
    distance_range,
    elbow_side,
    signed_angle,
    turn_about,
)
from synovia.kernels.math.vectors import norm, perpendicular, reject, sub
from synovia.kernels.tree.ball import Wrist, ball_rest_rotation, no_wrist, rotate_ball
from synovia.kernels.tree.branches import moving_row
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.turn import add_direction, turn_joint, zero_covariance
from synovia.kernels.tree.variables import clamp_block

SWEEPS = 200  # largest number of sweeps over root and middle joint, if limits rule out the closed form
STILL = F(1e-11)  # radians: smaller rotations end the sweeps


class Limb(NamedTuple):
    """A limb in the world frame."""

    tip: np.int64  # row of the joint that takes the target rotation; -1 without a rotation goal
    mid: np.int64
    root: np.int64
    A: tuple[float, float, float]  # position of the root
    U: tuple[float, float, float]  # vector from root to mid
    V: tuple[float, float, float]  # vector from mid to tip
    n: tuple[float, float, float]  # axis of the bend
    t: tuple[float, float, float]  # target of the tip
    lower: float  # smallest change of the bend (radians) from the present one
    upper: float  # largest change


@device
def limb_of(problem, frames, targets, q, g):
    """Return the limb of goal g. For a rotation goal, the target frame gives the position of the tip joint."""
    R, C = goal_frame(problem, frames, g)
    T, t = target_frame(targets, g)
    row = problem.goals[g, GOAL_ROW]
    tip, first = np.int64(-1), 0
    if problem.goals[g, PARTS] & ROTATION:
        tip, first = moving_row(problem, row, 0), 1
        held = origin_of(frames, tip)
        t = sub(t, apply(matmul_t(T, R), sub(C, held)))
        C = held
    mid, root = moving_row(problem, row, first), moving_row(problem, row, first + 1)
    A, B = origin_of(frames, root), origin_of(frames, mid)
    U, V = sub(B, A), sub(C, B)
    R_mid = rotation_of(frames, mid)
    k = problem.tree.ints[mid, VARIABLE]
    if problem.tree.ints[mid, KIND] == HINGE:
        x = q[problem.variables[k, BLOCK_Q]]
        lower, upper = problem.limits[k, LOWER] - x, problem.limits[k, UPPER] - x
        return Limb(tip, mid, root, A, U, V, column(R_mid, 2), t, lower, upper)
    v = apply_t(R_mid, V)
    n = bend_normal(U, V, apply(ball_rest_rotation(problem, frames, q, mid), v), apply(R_mid, perpendicular(v)))
    return Limb(tip, mid, root, A, U, V, n, t, -PI, PI)


@device
def bend_joint(problem, frames, q, limb, turn):
    """Turn the middle joint by ``turn`` about the axis of the bend, within its limits.

    Returns:
        The rotation of the joint, a quaternion in the world frame.
    """
    if problem.tree.ints[limb.mid, KIND] == HINGE:
        at = problem.variables[problem.tree.ints[limb.mid, VARIABLE], BLOCK_Q]
        q[at] += turn
        clamp_block(problem.variables, problem.limits, problem.tree.ints[limb.mid, VARIABLE], q)
        return turn_about(limb.n, turn)
    new = rotate_ball(problem, frames, q, limb.mid, turn_about(limb.n, turn))
    return matrix_quat(matmul_t(new, rotation_of(frames, limb.mid)))


@device
def wrist_of(problem, frames, targets, q, limb, g, moved):
    """Return the target rotation of the tip of goal g's limb after the joints above rotated it by ``moved``."""
    if limb.tip < 0:
        return no_wrist()
    R, _ = goal_frame(problem, frames, g)
    T, _ = target_frame(targets, g)
    wanted = matmul(matmul_t(T, R), rotation_of(frames, limb.tip))
    before = quat_mul(moved, matrix_quat(ball_rest_rotation(problem, frames, q, limb.tip)))
    return Wrist(limb.tip, before, matrix_quat(wanted))


@inline
def pole_of(problem, targets, mid):
    """Return whether the middle joint has a pole, and the position of the pole."""
    if problem.general is not None:
        for term in range(problem.general.ints.shape[0]):
            g = problem.general.ints[term, GOAL]
            if problem.general.ints[term, KIND] == POLE and problem.goals[g, GOAL_ROW] == mid:
                return True, target_frame(targets, g)[1]
    return False, (F(0), F(0), F(0))


@device
def pole_swivel(problem, limb, targets, aimed, line, twist):
    """Return the swivel that points the bend at its pole, plus ``twist``, and whether the limb has a pole.

    The swivel is an angle (radians) about the line from root to tip. A pole on the line has no direction; then the
    bend plane keeps its place.
    """
    found, pole = pole_of(problem, targets, limb.mid)
    to = reject(sub(pole, limb.A), line)
    if not found or norm(to) <= FLAT * problem.reach:
        return F(0), found
    elbow = elbow_side(quat_apply(aimed, limb.U), quat_apply(aimed, limb.n), line, limb.upper > -limb.lower)
    turn = signed_angle(elbow, to, line) + twist
    return turn - F(2) * PI * math.floor(turn / (F(2) * PI) + F(0.5)), True


@inline
def tip_of(problem, frames, limb, g):
    """Return the position of the tip of goal g's limb."""
    return origin_of(frames, limb.tip) if limb.tip >= 0 else goal_frame(problem, frames, g)[1]


@device
def descend_limb(problem, work, q, limb, goal_at, g):
    """Rotate root and middle joint alternately towards a position, within their limits, until they stop moving."""
    for _ in range(SWEEPS):
        most = F(0)
        for row in (limb.root, limb.mid):
            forward(problem.tree, q, work.frames)
            o = origin_of(work.frames, row)
            C = tip_of(problem, work.frames, limb, g)
            M = add_direction(zero_covariance(), F(1), sub(C, o), sub(goal_at, o))
            most = max(most, turn_joint(problem, q, row, rotation_of(work.frames, row), M, F(0), F(0))[1])
        if most < STILL:
            break
    forward(problem.tree, q, work.frames)


@algorithm
def prove_limbs(problem, work, targets, q):
    """Return 1 if a target is too far from its limb's root, or too near to it, for the limits of the bend."""
    for g in range(problem.goals.shape[0]):
        if not problem.goals[g, PARTS] & POSITION:
            continue
        limb = limb_of(problem, work.frames, targets, q, g)
        nearest, farthest = distance_range(distance_curve(limb.U, limb.V, limb.n, limb.lower, limb.upper))
        away = norm(sub(limb.t, limb.A))
        slack = problem.tolerance + F(1e-12) * (problem.reach + away)
        if limb.tip >= 0:
            slack += problem.tolerance_angle * norm(sub(target_frame(targets, g)[1], limb.t))
        if away > farthest + slack or away < nearest - slack:
            return 1, F(0)
    return 0, F(0)
