"""What a body would like beside its goals, as one function H of the pose that is to be small, and its gradient.

Preferred angles with stiffness: Σ αi (qi - qi,opt)², for a ball the squared angle to its preferred rotation. Distance
from the middle of the range (Liégeois 1977): Σ (qi - mid)² / half². Margins: the same from where a soft range ends
inside the hard one. Manipulability: -log √det(J Jᵀ) (Yoshikawa 1985), whose gradient is that of √det(J Jᵀ) over it.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.jacobian.derivative import write_jacobian
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    CENTRE_WEIGHT,
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
def price(own, x):
    """Return (H, ∂H/∂x) of a joint at x, its place in its range: 0 in the middle, -1 and 1 at the ends."""
    over = max(F(0), abs(x) - (F(1) - own[MARGIN]))
    return (
        own[CENTRE_WEIGHT] * x * x + own[MARGIN_WEIGHT] * over * over,
        F(2) * own[CENTRE_WEIGHT] * x + math.copysign(F(2) * own[MARGIN_WEIGHT] * over, x),
    )


@device
def ball_price(own, limit, k, q):
    """Return H of a limited ball: its swing as a fraction of the ellipse, its twist as one of its interval."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    a, b = half_angles(limit, k, sx, sy)
    a, b = max(a, THIN), max(b, THIN)
    swing, _ = price(own, math.sqrt((sx / a) * (sx / a) + (sy / b) * (sy / b)))
    half = F(0.5) * (limit[k, TWIST_UPPER] - limit[k, TWIST_LOWER])
    if half < THIN:
        return swing
    turned, _ = price(own, (twist - limit[k, TWIST_LOWER]) / half - F(1))
    return swing + turned


@inline
def nudged(q, c, h):
    """Return q · exp(h e_c)."""
    return quat_mul(q, quat_exp((h * F(c == 0), h * F(c == 1), h * F(c == 2))))


@device
def range_wish(problem, q, wish):
    """Add what limits cost; return H."""
    own, limits = problem.own, problem.limits
    total = F(0)
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            half = F(0.5) * (limits[k, UPPER] - limits[k, LOWER])
            if THIN < half < F(1e30):
                h, slope = price(own, (q[at] - limits[k, LOWER]) / half - F(1))
                unit = F(1) if limits[k, IS_ANGLE] != F(0) else problem.reach
                total += h
                wish[v] += slope * unit / half
        elif is_limited(limits, k):
            p = load_quat(q, at)
            total += ball_price(own, limits, k, p)
            for c in range(3):
                for side in range(2):
                    sign = F(1) - F(2) * side
                    wish[v + c] += sign * ball_price(own, limits, k, nudged(p, c, sign * NUDGE)) / (F(2) * NUDGE)
    return total


@inline
def from_preferred(problem, q, k):
    """Return how far variable k is from its preferred value, in the columns' units: a number (0, 0, x), or a turn."""
    at = problem.variables[k, BLOCK_Q]
    if problem.variables[k, BLOCK] != SCALAR:
        return quat_log(load_quat(q, at))
    unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else problem.reach
    return F(0), F(0), (q[at] - problem.likes[k, PREFERRED]) / unit


@inline
def from_reference(problem, q, k):
    """Return how far variable k is from what rest goals ask, in the same form."""
    at = problem.variables[k, BLOCK_Q]
    if problem.variables[k, BLOCK] != SCALAR:
        return quat_log(quat_mul(quat_conj(load_quat(problem.posture[k], REST_Q)), load_quat(q, at)))
    unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else problem.reach
    return F(0), F(0), (q[at] - problem.posture[k, REST_Q]) / unit


@inline
def pull_back(problem, k, alpha, away, wish):
    """Add the gradient of α |away|² at variable k; return its value."""
    v = problem.variables[k, BLOCK_COLUMN]
    if problem.variables[k, BLOCK] == SCALAR:
        wish[v] += F(2) * alpha * away[2]
    else:
        for c in range(3):
            wish[v + c] += F(2) * alpha * away[c]
    return alpha * dot(away, away)


@device
def posture_wish(problem, q, wish):
    """Add Σ αi (qi - qi,opt)², αi from the joint's stiffness and from rest goals; return H."""
    total = F(0)
    for k in range(problem.variables.shape[0]):
        alpha = problem.own[POSTURE_WEIGHT] * problem.likes[k, STIFFNESS]
        if alpha > F(0):
            total += pull_back(problem, k, alpha, from_preferred(problem, q, k), wish)
        if problem.posture[k, REST_WEIGHT] > F(0):
            total += pull_back(problem, k, problem.posture[k, REST_WEIGHT], from_reference(problem, q, k), wish)
    return total


@device
def write_frames(problem, work, targets, q):
    """Write frames and Jacobian at q."""
    forward(problem.tree, q, work.frames)
    write_jacobian(problem, work, targets, q)


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
def volume_wish(problem, work, targets, q, wish):
    """Add -κ times the gradient of log √det(J Jᵀ), by central differences of J along each column."""
    kappa = problem.own[MANIPULABILITY_WEIGHT]
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
            wish[v + c] -= kappa * F(0.5) * rise / NUDGE_J


@device
def stiffest(problem):
    """Return the largest second derivative of H that is known beforehand; manipulability has none."""
    bend = F(2) * (problem.own[CENTRE_WEIGHT] + problem.own[MARGIN_WEIGHT])
    for k in range(problem.variables.shape[0]):
        bend = max(
            bend, F(2) * (problem.own[POSTURE_WEIGHT] * problem.likes[k, STIFFNESS] + problem.posture[k, REST_WEIGHT])
        )
    return bend


@device
def write_wish(problem, work, targets, q, wish):
    """Write ∇H by column (radians and reaches) and return H; frames and J are left as at q."""
    for v in range(wish.shape[0]):
        wish[v] = F(0)
    total = posture_wish(problem, q, wish)
    if problem.own[CENTRE_WEIGHT] != F(0) or problem.own[MARGIN_WEIGHT] != F(0):
        total += range_wish(problem, q, wish)
    if problem.own[MANIPULABILITY_WEIGHT] != F(0):
        volume_wish(problem, work, targets, q, wish)
    write_frames(problem, work, targets, q)
    if problem.own[MANIPULABILITY_WEIGHT] != F(0):
        total -= problem.own[MANIPULABILITY_WEIGHT] * log_volume(work)
    return total
