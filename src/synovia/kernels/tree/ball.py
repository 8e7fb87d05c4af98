"""Set ball joints in closed form: rotate a ball in the world, or swivel a limb about a line until its limits hold.

A limb is the pair of segments from a root joint to a tip. Its root and its wrist (the joint at the tip) are balls.
"""

from typing import NamedTuple

import numpy as np

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import BLOCK_Q, VARIABLE
from synovia.kernels.math.rotations import (
    PI,
    load_quat,
    matmul,
    matmul_t,
    matrix_quat,
    quat_conj,
    quat_matrix,
    quat_mul,
    quat_normalize,
    rotation_of,
    store_quat,
)
from synovia.kernels.math.swing_twist import excess, project
from synovia.kernels.math.two_segments import turn_about
from synovia.kernels.tree.variables import is_limited

SCAN_STEPS = 36  # number of samples of the half turn on each side in the search for an allowed swivel
HALVINGS = 48  # number of bisections at the edge of an allowed range
ON_LIMIT = F(1e-11)  # largest excess over a limit (radians) that counts as inside


@inline
def ball_rest_rotation(problem, frames, q, row):
    """Return the world rotation of a ball joint before its own motion."""
    at = problem.variables[problem.tree.ints[row, VARIABLE], BLOCK_Q]
    return matmul_t(rotation_of(frames, row), quat_matrix(load_quat(q, at)))


@inline
def turned_ball(problem, frames, q, row, turn):
    """Return the quaternion of a ball joint after a rotation in the world by the quaternion ``turn``.

    Of the two quaternions of the new rotation, return the one nearer to the present value.
    """
    at = problem.variables[problem.tree.ints[row, VARIABLE], BLOCK_Q]
    old = load_quat(q, at)
    base = matrix_quat(ball_rest_rotation(problem, frames, q, row))
    new = quat_normalize(quat_mul(quat_mul(quat_conj(base), quat_mul(turn, base)), old))
    if new[0] * old[0] + new[1] * old[1] + new[2] * old[2] + new[3] * old[3] < F(0):
        return -new[0], -new[1], -new[2], -new[3]
    return new


@device
def rotate_ball(problem, frames, q, row, turn):
    """Rotate a ball joint in the world by a quaternion, project it into its limit, and return its world rotation.

    ``frames`` are the world frames before the rotation.
    """
    k = problem.tree.ints[row, VARIABLE]
    base = ball_rest_rotation(problem, frames, q, row)
    new = turned_ball(problem, frames, q, row, turn)
    if is_limited(problem.limits, k):
        new = project(problem.limits, k, new)
    store_quat(q, problem.variables[k, BLOCK_Q], new)
    return matmul(base, quat_matrix(new))


class Wrist(NamedTuple):
    """The ball at the tip of a limb, and its target rotation in the world."""

    row: np.int64  # row of the ball, -1 without a wrist
    before: tuple[float, float, float, float]  # world rotation of the ball before its own motion, at swivel angle 0
    wanted: tuple[float, float, float, float]  # target rotation in the world


@inline
def no_wrist():
    """Return a wrist that has no target."""
    return Wrist(np.int64(-1), (F(0), F(0), F(0), F(1)), (F(0), F(0), F(0), F(1)))


@inline
def wrist_motion(wrist, swivel):
    """Return the joint quaternion that gives the wrist its target rotation after a swivel of the limb."""
    return quat_mul(quat_conj(quat_mul(swivel, wrist.before)), wrist.wanted)


@inline
def limit_excess(problem, frames, q, row, aimed, line, wrist, angle):
    """Return how far (radians) the root or the wrist exceeds its limit after a swivel of the limb.

    The arguments are those of ``nearest_allowed_swivel``; ``angle`` is the swivel, radians.
    """
    swivel = turn_about(line, angle)
    out = F(0)
    k = problem.tree.ints[row, VARIABLE]
    if is_limited(problem.limits, k):
        out = excess(problem.limits, k, turned_ball(problem, frames, q, row, quat_mul(swivel, aimed)))
    if wrist.row >= 0:
        k = problem.tree.ints[wrist.row, VARIABLE]
        if is_limited(problem.limits, k):
            out = max(out, excess(problem.limits, k, wrist_motion(wrist, swivel)))
    return out


@device
def nearest_allowed_swivel(problem, frames, q, row, aimed, line, wrist, wanted):
    """Return the allowed swivel nearest to ``wanted`` (radians), and whether one was found.

    A swivel is allowed if it keeps root and wrist within their limits, which leave only some arcs of the full circle.
    Search in steps of 5 degrees to both sides of ``wanted``, then bisect the edge of the first arc down to rounding.
    Arcs narrower than a step may be missed.

    Args:
        problem: The problem.
        frames: World frames at q.
        q: Joint values.
        row: Row of the root.
        aimed: Quaternion of a world rotation of the root, before the swivel.
        line: Unit axis of the swivel, from root to tip.
        wrist: The wrist and its target rotation, or ``no_wrist()``.
        wanted: Preferred swivel, radians.
    """
    for i in range(SCAN_STEPS + 1):
        for side in (F(1), F(-1)):
            angle = wanted + side * F(i) * PI / F(SCAN_STEPS)
            if limit_excess(problem, frames, q, row, aimed, line, wrist, angle) <= ON_LIMIT:
                outside = angle - side * PI / F(SCAN_STEPS)
                if i > 0:
                    for _ in range(HALVINGS):
                        middle = F(0.5) * (angle + outside)
                        if limit_excess(problem, frames, q, row, aimed, line, wrist, middle) <= ON_LIMIT:
                            angle = middle
                        else:
                            outside = middle
                return angle, True
    return wanted, False
