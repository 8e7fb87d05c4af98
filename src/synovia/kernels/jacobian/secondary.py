"""Secondary objectives: a function H of the pose, to be minimised in the null space of the goals, and its gradient.

Preferred angles with stiffness: Σ αi (qi - qi,opt)², for a ball the squared angle to its preferred rotation. Distance
from the middle of the range (Liégeois 1977): Σ (qi - mid)² / half². Margins: the same sum, of the distances beyond a
softer range inside the limits. Manipulability (Yoshikawa 1985): -log √det(J Jᵀ).
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.custom import JACOBIAN, custom_gradient, write_custom
from synovia.kernels.jacobian.shared import write_built_in
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    CENTRE_WEIGHT,
    GRADIENT_WEIGHT,
    LOWER,
    MANIPULABILITY_WEIGHT,
    MARGIN,
    MARGIN_WEIGHT,
    POSTURE_WEIGHT,
    PREFERRED,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
    STIFFNESS,
    TWIST_LOWER,
    TWIST_UPPER,
    UPPER,
)
from synovia.kernels.math.linear import gram, gram_t, solve_ldl
from synovia.kernels.math.rotations import load_quat, quat_conj, quat_log, quat_mul
from synovia.kernels.math.swing_twist import half_angles, split, to_limit_frame
from synovia.kernels.math.vectors import dot
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.variables import displace, is_limited, rotated, step_unit

DIFFERENCE = F(1e-5)  # step (radians or length scales) of central differences of a ball's range cost
JACOBIAN_DIFFERENCE = F(1e-4)  # step (radians or length scales) of central differences of the Jacobian
FLOOR = F(1e-12)  # added to J Jᵀ, so that its logarithm is finite at a singular pose
IDENTITY = (F(0), F(0), F(0), F(1))  # preferred rotation of every ball
THIN = F(1e-6)  # half ranges (radians, length units) below this have no cost


@inline
def range_cost(params, x):
    """Return (H, ∂H/∂x) of a joint at x in its range: 0 is the middle, -1 and 1 are the limits."""
    beyond = max(F(0), abs(x) - (F(1) - params[MARGIN]))
    return (
        params[CENTRE_WEIGHT] * x * x + params[MARGIN_WEIGHT] * beyond * beyond,
        F(2) * params[CENTRE_WEIGHT] * x + math.copysign(F(2) * params[MARGIN_WEIGHT] * beyond, x),
    )


@apart
def ball_range_cost(params, limit, k, q):
    """Return H of a limited ball: the swing relative to its ellipse, the twist relative to its interval."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    a, b = half_angles(limit, k, sx, sy)
    a, b = max(a, THIN), max(b, THIN)
    swing, _ = range_cost(params, math.sqrt((sx / a) * (sx / a) + (sy / b) * (sy / b)))
    half = F(0.5) * (limit[k, TWIST_UPPER] - limit[k, TWIST_LOWER])
    if half < THIN:
        return swing
    turned, _ = range_cost(params, (twist - limit[k, TWIST_LOWER]) / half - F(1))
    return swing + turned


@device
def range_gradient(problem, q, gradient):
    """Add the gradient of the range and margin objectives; return their sum."""
    params, limits = problem.params, problem.limits
    total = F(0)
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            half = F(0.5) * (limits[k, UPPER] - limits[k, LOWER])
            if THIN < half < F(1e30):
                h, slope = range_cost(params, (q[at] - limits[k, LOWER]) / half - F(1))
                total += h
                gradient[v] += slope * step_unit(limits, k, problem.reach) / half
        elif is_limited(limits, k):
            p = load_quat(q, at)
            total += ball_range_cost(params, limits, k, p)
            for c in range(3):
                for side in range(2):
                    sign = F(1) - F(2) * side
                    cost = ball_range_cost(params, limits, k, rotated(p, c, sign * DIFFERENCE))
                    gradient[v + c] += sign * cost / (F(2) * DIFFERENCE)
    return total


@inline
def add_spring(problem, q, k, alpha, value, rotation, gradient):
    """Add the gradient of α |offset|² at variable k; return α |offset|².

    The offset of a scalar is its distance from ``value`` (radians, length scales). The offset of a ball is the rotation
    vector from ``rotation``.
    """
    at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
    if problem.variables[k, BLOCK] == SCALAR:
        x = (q[at] - value) / step_unit(problem.limits, k, problem.reach)
        gradient[v] += F(2) * alpha * x
        return alpha * x * x
    offset = quat_log(quat_mul(quat_conj(rotation), load_quat(q, at)))
    for c in range(3):
        gradient[v + c] += F(2) * alpha * offset[c]
    return alpha * dot(offset, offset)


@device
def posture_gradient(problem, q, gradient):
    """Add the gradient of Σ αi (qi - qi,opt)², with αi from stiffness and from rest goals; return the sum."""
    total = F(0)
    for k in range(problem.variables.shape[0]):
        alpha = problem.params[POSTURE_WEIGHT] * problem.preferences[k, STIFFNESS]
        if alpha > F(0):
            total += add_spring(problem, q, k, alpha, problem.preferences[k, PREFERRED], IDENTITY, gradient)
        alpha, rest = problem.posture[k, REST_WEIGHT], problem.posture[k]
        if alpha > F(0):
            total += add_spring(problem, q, k, alpha, rest[REST_Q], load_quat(rest, REST_Q), gradient)
    return total


@apart
def update_frames(problem, work, targets, q):
    """Write frames at q and the Jacobian of all goals except custom ones."""
    forward(problem.tree, q, work.frames)
    write_built_in(problem, work, targets, q)


@apart
def log_volume(work):
    """Return log √det(J Jᵀ), or log √det(Jᵀ J) if J has fewer columns than rows."""
    if work.J.shape[0] <= work.J.shape[1]:
        gram(work.J, work.A, FLOOR)
    else:
        gram_t(work.J, work.A, FLOOR)
    for i in range(work.y.shape[0]):
        work.y[i] = F(0)
    solve_ldl(work.A, work.y, work.y.shape[0])  # leaves 1 / D on the diagonal
    total = F(0)
    for i in range(work.A.shape[0]):
        total -= F(0.5) * math.log(max(work.A[i, i], F(1e-300)))
    return total


@device
def manipulability_gradient(problem, work, targets, q, gradient):
    """Add -κ times the gradient of log √det(J Jᵀ), by central differences of J along each column."""
    kappa = problem.params[MANIPULABILITY_WEIGHT]
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        parts = 1 if problem.variables[k, BLOCK] == SCALAR else 3
        for c in range(parts):
            p = load_quat(q, at) if parts == 3 else (q[at], F(0), F(0), F(0))
            rise = F(0)
            for side in range(2):
                displace(problem, q, k, c, JACOBIAN_DIFFERENCE * (F(1) - F(2) * side))
                update_frames(problem, work, targets, q)
                rise += (F(1) - F(2) * side) * log_volume(work)
                for i in range(parts + (parts == 3)):
                    q[at + i] = p[i]
            gradient[v + c] -= kappa * F(0.5) * rise / JACOBIAN_DIFFERENCE


@device
def largest_curvature(problem):
    """Return an upper estimate of the second derivatives of H, without manipulability."""
    curvature = problem.params[GRADIENT_WEIGHT]  # the second derivative of a user's objective is assumed to be 1
    curvature = max(curvature, F(2) * (problem.params[CENTRE_WEIGHT] + problem.params[MARGIN_WEIGHT]))
    for k in range(problem.variables.shape[0]):
        alpha = problem.params[POSTURE_WEIGHT] * problem.preferences[k, STIFFNESS]
        curvature = max(curvature, F(2) * (alpha + problem.posture[k, REST_WEIGHT]))
    return curvature


@device
def has_objectives(problem):
    """Return whether a problem has secondary objectives."""
    return problem.params[MANIPULABILITY_WEIGHT] != F(0) or largest_curvature(problem) > F(0)


@apart
def write_gradient(problem, work, targets, q, gradient):
    """Write ∇H by column (radians and length scales) and return H; frames and J are at q afterwards."""
    for v in range(gradient.shape[0]):
        gradient[v] = F(0)
    total = posture_gradient(problem, q, gradient)
    if problem.params[CENTRE_WEIGHT] != F(0) or problem.params[MARGIN_WEIGHT] != F(0):
        total += range_gradient(problem, q, gradient)
    if problem.params[MANIPULABILITY_WEIGHT] != F(0):
        manipulability_gradient(problem, work, targets, q, gradient)
    if problem.params[GRADIENT_WEIGHT] != F(0):
        total += custom_gradient(problem, q, gradient)
    update_frames(problem, work, targets, q)
    if problem.params[MANIPULABILITY_WEIGHT] != F(0):
        total -= problem.params[MANIPULABILITY_WEIGHT] * log_volume(work)
    write_custom(problem.general, problem, JACOBIAN, q, work.J)
    return total
