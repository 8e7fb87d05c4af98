"""What a body would like beside its goals, as one function H of the pose that is to be small, and its gradient.

Preferred angles with stiffness: Σ αi (qi - qi,opt)², for a ball the squared angle to its preferred rotation. Distance
from the middle of the range (Liégeois 1977): Σ (qi - mid)² / half². Margins: the same from where a soft range ends
inside the hard one. Manipulability: -log √det(J Jᵀ) (Yoshikawa 1985), whose gradient is that of √det(J Jᵀ) over it.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.custom import JACOBIAN, custom_gradient, write_custom
from synovia.kernels.jacobian.shared import write_built_in
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    CENTRE_WEIGHT,
    GRADIENT_WEIGHT,
    IS_ANGLE,
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
from synovia.kernels.math.rotations import (
    load_quat,
    quat_conj,
    quat_exp,
    quat_log,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.swing_twist import half_angles, split, to_limit_frame
from synovia.kernels.math.vectors import dot
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.variables import is_limited

NUDGE = F(1e-5)  # radians or reaches, for central differences of a ball's range
NUDGE_J = F(1e-4)  # the same for the Jacobian's
FLOOR = F(1e-12)  # added to J Jᵀ, so that the logarithm of a singular pose is a number
THIN = F(1e-6)  # half of the smallest range (radians, length units) that has a middle


@inline
def price(params, x):
    """Return (H, ∂H/∂x) of a joint at x, its place in its range: 0 in the middle, -1 and 1 at the ends."""
    over = max(F(0), abs(x) - (F(1) - params[MARGIN]))
    return (
        params[CENTRE_WEIGHT] * x * x + params[MARGIN_WEIGHT] * over * over,
        F(2) * params[CENTRE_WEIGHT] * x + math.copysign(F(2) * params[MARGIN_WEIGHT] * over, x),
    )


@device
def ball_price(params, limit, k, q):
    """Return H of a limited ball: its swing as a fraction of the ellipse, its twist as one of its interval."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    a, b = half_angles(limit, k, sx, sy)
    a, b = max(a, THIN), max(b, THIN)
    swing, _ = price(params, math.sqrt((sx / a) * (sx / a) + (sy / b) * (sy / b)))
    half = F(0.5) * (limit[k, TWIST_UPPER] - limit[k, TWIST_LOWER])
    if half < THIN:
        return swing
    turned, _ = price(params, (twist - limit[k, TWIST_LOWER]) / half - F(1))
    return swing + turned


@inline
def nudged(q, c, h):
    """Return q · exp(h e_c)."""
    return quat_mul(q, quat_exp((h * F(c == 0), h * F(c == 1), h * F(c == 2))))


@device
def range_gradient(problem, q, gradient):
    """Add what limits cost; return H."""
    params, limits = problem.params, problem.limits
    total = F(0)
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            half = F(0.5) * (limits[k, UPPER] - limits[k, LOWER])
            if THIN < half < F(1e30):
                h, slope = price(params, (q[at] - limits[k, LOWER]) / half - F(1))
                unit = F(1) if limits[k, IS_ANGLE] != F(0) else problem.reach
                total += h
                gradient[v] += slope * unit / half
        elif is_limited(limits, k):
            p = load_quat(q, at)
            total += ball_price(params, limits, k, p)
            for c in range(3):
                for side in range(2):
                    sign = F(1) - F(2) * side
                    gradient[v + c] += sign * ball_price(params, limits, k, nudged(p, c, sign * NUDGE)) / (F(2) * NUDGE)
    return total


@inline
def from_preferred(problem, q, k):
    """Return how far variable k is from its preferred value, in the columns' units: a number (0, 0, x), or a turn."""
    at = problem.variables[k, BLOCK_Q]
    if problem.variables[k, BLOCK] != SCALAR:
        return quat_log(load_quat(q, at))
    unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else problem.reach
    return F(0), F(0), (q[at] - problem.preferences[k, PREFERRED]) / unit


@inline
def from_reference(problem, q, k):
    """Return how far variable k is from what rest goals ask, in the same form."""
    at = problem.variables[k, BLOCK_Q]
    if problem.variables[k, BLOCK] != SCALAR:
        return quat_log(quat_mul(quat_conj(load_quat(problem.posture[k], REST_Q)), load_quat(q, at)))
    unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else problem.reach
    return F(0), F(0), (q[at] - problem.posture[k, REST_Q]) / unit


@inline
def pull_back(problem, k, alpha, away, gradient):
    """Add the gradient of α |away|² at variable k; return its value."""
    v = problem.variables[k, BLOCK_COLUMN]
    if problem.variables[k, BLOCK] == SCALAR:
        gradient[v] += F(2) * alpha * away[2]
    else:
        for c in range(3):
            gradient[v + c] += F(2) * alpha * away[c]
    return alpha * dot(away, away)


@device
def posture_gradient(problem, q, gradient):
    """Add Σ αi (qi - qi,opt)², αi from the joint's stiffness and from rest goals; return H."""
    total = F(0)
    for k in range(problem.variables.shape[0]):
        alpha = problem.params[POSTURE_WEIGHT] * problem.preferences[k, STIFFNESS]
        if alpha > F(0):
            total += pull_back(problem, k, alpha, from_preferred(problem, q, k), gradient)
        if problem.posture[k, REST_WEIGHT] > F(0):
            total += pull_back(problem, k, problem.posture[k, REST_WEIGHT], from_reference(problem, q, k), gradient)
    return total


@device
def write_frames(problem, work, targets, q):
    """Write frames at q, and the Jacobian of all goals but custom ones."""
    forward(problem.tree, q, work.frames)
    write_built_in(problem, work, targets, q)


@device
def log_volume(work):
    """Return log √det(J Jᵀ), with fewer columns than rows log √det(Jᵀ J)."""
    if work.J.shape[0] <= work.J.shape[1]:
        gram(work.J, work.A, FLOOR)
    else:
        gram_t(work.J, work.A, FLOOR)
    for i in range(work.y.shape[0]):
        work.y[i] = F(0)
    solve_ldl(work.A, work.y)  # leaves 1 / D on the diagonal
    total = F(0)
    for i in range(work.A.shape[0]):
        total -= F(0.5) * math.log(max(work.A[i, i], F(1e-300)))
    return total


@device
def nudge(problem, q, k, c, h):
    """Move part c of variable k by h (radians, reaches), whatever its limits."""
    at = problem.variables[k, BLOCK_Q]
    if problem.variables[k, BLOCK] == SCALAR:
        q[at] += h if problem.limits[k, IS_ANGLE] != F(0) else h * problem.reach
    else:
        store_quat(q, at, quat_normalize(nudged(load_quat(q, at), c, h)))


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
                nudge(problem, q, k, c, NUDGE_J * (F(1) - F(2) * side))
                write_frames(problem, work, targets, q)
                rise += (F(1) - F(2) * side) * log_volume(work)
                for i in range(parts + (parts == 3)):
                    q[at + i] = p[i]
            gradient[v + c] -= kappa * F(0.5) * rise / NUDGE_J


@device
def stiffest(problem):
    """Return the largest second derivative of H that is known beforehand; manipulability has none."""
    bend = problem.params[GRADIENT_WEIGHT]  # a user's term is taken to bend by one
    bend = max(bend, F(2) * (problem.params[CENTRE_WEIGHT] + problem.params[MARGIN_WEIGHT]))
    for k in range(problem.variables.shape[0]):
        bend = max(
            bend,
            F(2)
            * (problem.params[POSTURE_WEIGHT] * problem.preferences[k, STIFFNESS] + problem.posture[k, REST_WEIGHT]),
        )
    return bend


@device
def write_gradient(problem, work, targets, q, gradient):
    """Write ∇H by column (radians and reaches) and return H; frames and J are left as at q."""
    for v in range(gradient.shape[0]):
        gradient[v] = F(0)
    total = posture_gradient(problem, q, gradient)
    if problem.params[CENTRE_WEIGHT] != F(0) or problem.params[MARGIN_WEIGHT] != F(0):
        total += range_gradient(problem, q, gradient)
    if problem.params[MANIPULABILITY_WEIGHT] != F(0):
        manipulability_gradient(problem, work, targets, q, gradient)
    if problem.params[GRADIENT_WEIGHT] != F(0):
        total += custom_gradient(problem, q, gradient)
    write_frames(problem, work, targets, q)
    if problem.params[MANIPULABILITY_WEIGHT] != F(0):
        total -= problem.params[MANIPULABILITY_WEIGHT] * log_volume(work)
    write_custom(problem.general, problem, JACOBIAN, q, work.J)
    return total
