"""Compute the rotation of one joint that best aligns directions d with targets t (weights w): a Wahba problem.

Only the covariance M = Σ w d tᵀ (nine values, row by row) is needed. A rotation by φ about a unit axis u gives the
alignment (gain) Σ w t·d = A cos φ + B sin φ + const, where A = tr M - uᵀ M u and B = u · Σ w d × t. So the best angle
is atan2(B, A), which is accurate for all angles. A ball joint rotates about the axis of steepest gain, Σ w d × t; for a
single direction this is the smallest rotation. A frame R with target T adds w R Tᵀ to M, its three axes as directions.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import BLOCK_Q, HINGE, KIND, LOWER, PREFERRED, RATIO, STIFFNESS, UPPER, VARIABLE
from synovia.kernels.math.rotations import (
    PI,
    apply_t,
    column,
    load_quat,
    matmul,
    matmul_t,
    quat_exp,
    quat_matrix,
    quat_mul,
    quat_normalize,
    store_quat,
    turn_z,
)
from synovia.kernels.math.swing_twist import normals, project
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import axpy, dot, norm, perpendicular, scale
from synovia.kernels.tree.variables import is_limited

NOTHING = F(1e-12)  # fraction of the sum of weights times lengths: a rotation with a smaller gain is skipped
EDGE = F(1e-7)  # distance (radians) from its limit within which a ball slides along it


@inline
def apply_stiffness(step, x, preferred, stiffness):
    """Return the step of a stiff joint at x: full towards its preferred value, reduced away from this value.

    The part that leads away is divided by 1 + stiffness. It never becomes 0, so every target stays reachable.
    """
    lack = preferred - x
    whole = F(0)
    if lack * step > F(0):
        whole = step if abs(step) < abs(lack) else lack
    return whole + (step - whole) / (F(1) + stiffness)


@inline
def zero_covariance():
    """Return a covariance M of zeros."""
    return F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0)


@inline
def add_direction(M, w, d, t):
    """Return M + w d tᵀ: the covariance M with a direction d, its target t and its weight w added."""
    x, y, z = w * d[0], w * d[1], w * d[2]
    return (
        M[0] + x * t[0],
        M[1] + x * t[1],
        M[2] + x * t[2],
        M[3] + y * t[0],
        M[4] + y * t[1],
        M[5] + y * t[2],
        M[6] + z * t[0],
        M[7] + z * t[1],
        M[8] + z * t[2],
    )


@inline
def add_frame(M, w, R, T):
    """Return M + (w / 2) R Tᵀ: the covariance with the axes of R and their targets, those of T, added.

    The weight is halved because |T - R|² = 2 angle² for small angles.
    """
    for c in range(3):
        M = add_direction(M, F(0.5) * w, column(R, c), column(T, c))
    return M


@inline
def gain_axis(M):
    """Return Σ w d × t, the axis about which a rotation increases the alignment fastest, see ``dot_matrix``."""
    return M[5] - M[7], M[6] - M[2], M[1] - M[3]


@inline
def harmonic(M, u):
    """Return (A, B): a rotation by φ about the unit axis u gives the alignment A cos φ + B sin φ plus a constant."""
    Mu = (dot((M[0], M[1], M[2]), u), dot((M[3], M[4], M[5]), u), dot((M[6], M[7], M[8]), u))
    return M[0] + M[4] + M[8] - dot(u, Mu), dot(u, gain_axis(M))


@inline
def gain(A, B, angle):
    """Return A cos φ + B sin φ with φ = ``angle``, the alignment after a rotation, see ``harmonic``."""
    s, c = sincos(angle)
    return A * c + B * s


@inline
def hinge_angle(A, B, x, lower, upper):
    """Return the best value in [lower, upper] of a hinge at x, see ``harmonic``; of equal rotations, the nearest."""
    best = x + math.atan2(B, A)
    if best < lower and best + F(2) * PI <= upper:
        return best + F(2) * PI
    if best > upper and best - F(2) * PI >= lower:
        return best - F(2) * PI
    if best < lower or best > upper:
        return lower if gain(A, B, lower - x) > gain(A, B, upper - x) else upper
    return best


@inline
def slide_along_limit(limit, k, q, w):
    """Return the rotation vector w (moving frame) without its parts that leave limit k, if q touches the limit."""
    swing, n, side, t = normals(limit, k, q, EDGE)
    if swing == 1 and dot(w, n) > F(0):
        w = axpy(-dot(w, n), n, w)
    if side * dot(w, t) > F(0):
        w = axpy(-dot(w, t), t, w)
    return w


@device
def turn_ball(problem, k, q, at, R, M, smallest, stiffness):
    """Rotate the ball of variable k, at q[at], to align the directions of M, within its limit.

    R is its world rotation. Skip rotations below ``smallest`` (radians), and divide rotations away from rest by
    1 + ``stiffness``.

    Returns:
        (the new world rotation, the angle in radians before the effect of stiffness).
    """
    c = gain_axis(M)
    size = norm(c)
    far = abs(M[0]) + abs(M[4]) + abs(M[8])
    if size <= NOTHING * far or far <= F(0):
        if not M[0] + M[4] + M[8] < F(0) or far <= F(0):
            return R, F(0)
        # the directions are opposite to their targets: rotate about any axis normal to them
        c = perpendicular((M[0] + M[1] + M[2], M[3] + M[4] + M[5], M[6] + M[7] + M[8]))
        size = F(1)
    u = scale(F(1) / size, c)
    A, B = harmonic(M, u)
    angle = math.atan2(B, A)
    if angle <= smallest:
        return R, F(0)
    w = scale(angle, apply_t(R, u))
    old = load_quat(q, at)
    limited = is_limited(problem.limits, k)
    if limited:
        w = slide_along_limit(problem.limits, k, old, w)
    new = quat_normalize(quat_mul(old, quat_exp(w)))
    if stiffness > F(0) and new[3] * new[3] < old[3] * old[3]:  # farther from the rest: |cos(angle / 2)| is less
        new = quat_normalize(quat_mul(old, quat_exp(scale(F(1) / (F(1) + stiffness), w))))
    if limited:
        new = project(problem.limits, k, new)
    rest = matmul_t(R, quat_matrix(old))
    turned = matmul(rest, quat_matrix(new))
    if limited:
        D = matmul_t(turned, R)  # the projected rotation in the world, accepted only if it increases the gain
        if dot_matrix(D, M) < M[0] + M[4] + M[8]:
            return R, F(0)
    store_quat(q, at, new)
    return turned, norm(w)


@inline
def dot_matrix(D, M):
    """Return the alignment Σ w t·(D d) = Σ D[i, j] M[j, i] of all directions after the rotation D."""
    return (
        D[0] * M[0]
        + D[1] * M[3]
        + D[2] * M[6]
        + D[3] * M[1]
        + D[4] * M[4]
        + D[5] * M[7]
        + D[6] * M[2]
        + D[7] * M[5]
        + D[8] * M[8]
    )


@device
def turn_joint(problem, q, i, R, M, smallest, stiffness):
    """Turn the hinge, ball or free joint of row i to align the directions of M, within its limits.

    Skip rotations below ``smallest`` (radians). ``stiffness`` is a factor on the stiffness of the joint (see
    ``apply_stiffness``); 0 ignores it.

    Returns:
        (the new world rotation, the angle in radians before the effect of stiffness).
    """
    k = problem.tree.ints[i, VARIABLE]
    stiffness *= problem.preferences[k, STIFFNESS]
    at = problem.variables[k, BLOCK_Q]
    if problem.tree.ints[i, KIND] == HINGE:
        ratio = problem.tree.couple[i, RATIO]
        A, B = harmonic(M, column(R, 2))
        far = abs(M[0]) + abs(M[4]) + abs(M[8])
        if A * A + B * B <= (NOTHING * far) * (NOTHING * far) or ratio == F(0):
            return R, F(0)
        B = B if ratio > F(0) else -B
        size = abs(ratio)
        lower, upper = size * (problem.limits[k, LOWER] - q[at]), size * (problem.limits[k, UPPER] - q[at])
        step = hinge_angle(A, B, F(0), lower, upper) / size
        if abs(step) <= smallest:
            return R, F(0)
        done = apply_stiffness(step, q[at], problem.preferences[k, PREFERRED], stiffness)
        q[at] = min(max(q[at] + done, problem.limits[k, LOWER]), problem.limits[k, UPPER])
        s, c = sincos(done * ratio)
        return turn_z(R, s, c), abs(step)
    return turn_ball(problem, k, q, at, R, M, smallest, stiffness)


@inline
def slide_to(problem, q, k, by, stiffness):
    """Move scalar variable k by ``by``, reduced by stiffness and limits, and return its displacement."""
    at = problem.variables[k, BLOCK_Q]
    before = q[at]
    by = apply_stiffness(by, before, problem.preferences[k, PREFERRED], stiffness * problem.preferences[k, STIFFNESS])
    q[at] = min(max(before + by, problem.limits[k, LOWER]), problem.limits[k, UPPER])
    return q[at] - before
