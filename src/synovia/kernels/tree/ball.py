"""Ball joints set at once: to a turn in the world, within their limits, and swivelled about a line until inside."""

from typing import NamedTuple

import numpy as np

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import BLOCK_Q, ORIENTATION, VARIABLE
from synovia.kernels.math.rotations import (
    PI,
    load_quat,
    load_rotation,
    matmul,
    matmul_t,
    matrix_quat,
    quat_conj,
    quat_matrix,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.swing_twist import excess, project
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.tree.variables import is_limited

FEEL = 36  # steps of half a turn when a swivel inside the limits is sought
HALVINGS = 48
INSIDE = F(1e-11)  # radians beyond a limit that count as on it


@inline
def ball_rest_rotation(problem, frames, q, row):
    """Return the world rotation of a ball joint before its own motion."""
    at = problem.variables[problem.tree.ints[row, VARIABLE], BLOCK_Q]
    return matmul_t(load_rotation(frames, row, ORIENTATION), quat_matrix(load_quat(q, at)))


@inline
def turned(problem, frames, q, row, turn):
    """Return the quaternion of a ball joint after a turn (quaternion) in the world; on the side of the one before."""
    at = problem.variables[problem.tree.ints[row, VARIABLE], BLOCK_Q]
    old = load_quat(q, at)
    base = matrix_quat(ball_rest_rotation(problem, frames, q, row))
    new = quat_normalize(quat_mul(quat_mul(quat_conj(base), quat_mul(turn, base)), old))
    if new[0] * old[0] + new[1] * old[1] + new[2] * old[2] + new[3] * old[3] < F(0):
        return -new[0], -new[1], -new[2], -new[3]
    return new


@device
def rotate_ball(problem, frames, q, row, turn):
    """Turn a ball joint in the world by a quaternion, then to the nearest allowed rotation; return its world rotation.

    ``frames`` are those before the turn.
    """
    k = problem.tree.ints[row, VARIABLE]
    base = ball_rest_rotation(problem, frames, q, row)
    new = turned(problem, frames, q, row, turn)
    if is_limited(problem.limits, k):
        new = project(problem.limits, k, new)
    store_quat(q, problem.variables[k, BLOCK_Q], new)
    return matmul(base, quat_matrix(new))


class Wrist(NamedTuple):
    """The ball at the end of a limb that is to take a rotation in the world."""

    row: np.int64  # -1: there is none
    before: tuple[float, float, float, float]  # its world rotation without its own motion, at no swivel
    wanted: tuple[float, float, float, float]  # in the world


@inline
def no_wrist():
    """Return a hand that asks for nothing."""
    return Wrist(np.int64(-1), (F(0), F(0), F(0), F(1)), (F(0), F(0), F(0), F(1)))


@inline
def own_turn(hand, swivel):
    """Return the quaternion of the hand's own motion after the limb was swivelled."""
    return quat_mul(quat_conj(quat_mul(swivel, hand.before)), hand.wanted)


@inline
def beyond(problem, frames, q, row, aimed, line, hand, angle):
    """Return by how much root and hand are beyond their limits after a turn and a swivel about a line (radians)."""
    s, c = sincos(F(0.5) * angle)
    swivel = (s * line[0], s * line[1], s * line[2], c)
    out = F(0)
    k = problem.tree.ints[row, VARIABLE]
    if is_limited(problem.limits, k):
        out = excess(problem.limits, k, turned(problem, frames, q, row, quat_mul(swivel, aimed)))
    if hand.row >= 0:
        k = problem.tree.ints[hand.row, VARIABLE]
        if is_limited(problem.limits, k):
            out = max(out, excess(problem.limits, k, own_turn(hand, swivel)))
    return out


@device
def nearest_allowed_swivel(problem, frames, q, row, aimed, line, hand, wanted):
    """Return (the swivel about a line nearest to the wanted one that keeps root and hand inside, whether one does).

    The limits of balls leave arcs of the circle of swivels; they are felt for in steps of 5 degrees to both sides, and
    the edge that is met is halved down to rounding.
    """
    for i in range(FEEL + 1):
        for side in (F(1), F(-1)):
            angle = wanted + side * F(i) * PI / F(FEEL)
            if beyond(problem, frames, q, row, aimed, line, hand, angle) <= INSIDE:
                outside = angle - side * PI / F(FEEL)
                if i > 0:
                    for _ in range(HALVINGS):
                        middle = F(0.5) * (angle + outside)
                        if beyond(problem, frames, q, row, aimed, line, hand, middle) <= INSIDE:
                            angle = middle
                        else:
                            outside = middle
                return angle, True
    return wanted, False
