"""Damped least-squares steps with an active set of joint limits, for the Jacobian family and for polishing."""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.residuals import jacobian, to_units
from synovia.kernels.layout import BLOCK, BLOCK_COLUMN, BLOCK_Q, LOWER, SCALAR, UPPER
from synovia.kernels.math.linear import gram, gram_t, solve_ldl, times_t
from synovia.kernels.math.rotations import load_quat
from synovia.kernels.math.swing_twist import normals
from synovia.kernels.math.vectors import TINY, axpy, dot, scale
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import is_limited, step, step_unit

NEAR = F(1e-7)  # radians, length scales: a joint nearer to a limit than this counts as at the limit
PUSH_NOISE = F(1e-9)  # smaller pushes against a limit, relative to the residual or the step, are rounding
LARGEST_TURN = F(1.0)  # largest step (radians); the linear model is poor beyond it


@device
def remove_direction(J, v, n):
    """Remove the direction n from the three columns of J from v on: J ← J (1 - n nᵀ)."""
    for i in range(J.shape[0]):
        k = J[i, v] * n[0] + J[i, v + 1] * n[1] + J[i, v + 2] * n[2]
        J[i, v] -= k * n[0]
        J[i, v + 1] -= k * n[1]
        J[i, v + 2] -= k * n[2]


@device
def hold_at_limits(problem, q, J, g, slack, held_before):
    """Remove, from J and from the gradient g = Jᵀe, directions that would push a joint beyond its limit.

    These directions are the active set of the step. A direction leaves the set as soon as the gradient points inward.
    A push of at most ``slack`` counts as zero: many pushes are zero in exact arithmetic, and rounding gives them a
    sign.

    With ``held_before``, g is a solution for a J from which this function had already removed directions. These
    directions have no push in g, and stay removed.

    Returns:
        The largest multiplier (the part of the gradient that a limit holds back) and its variable, or -1.
    """
    most = F(0)
    where = -1
    least = -slack if held_before else slack
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        held = F(0)
        if problem.variables[k, BLOCK] == SCALAR:
            near = NEAR * step_unit(problem.limits, k, problem.reach)
            up = q[at] >= problem.limits[k, UPPER] - near and g[v] > slack
            down = q[at] <= problem.limits[k, LOWER] + near and g[v] < -slack
            if up or down:
                held = abs(g[v])
                g[v] = F(0)
                J[:, v] = F(0)
        elif is_limited(problem.limits, k):
            swing, n, side, t = normals(problem.limits, k, load_quat(q, at), NEAR)
            w = (g[v], g[v + 1], g[v + 2])
            if swing == 1 and dot(w, n) > least:
                held = dot(w, n)
                w = axpy(-held, n, w)
                remove_direction(J, v, n)
                t = axpy(-dot(t, n), n, t)  # the twist without its part along the normal of the swing limit
                size = dot(t, t)
                t = scale(F(1) / math.sqrt(size), t) if size > TINY else t
            out = side * dot(w, t)
            if side != 0 and out > least:
                held = max(held, out)
                w = axpy(-side * out, t, w)
                remove_direction(J, v, t)
            g[v], g[v + 1], g[v + 2] = w
        if held > slack and held > most:
            most = held
            where = k
    return most, where


@device
def damped_step(work, damping):
    """Write dq = Jᵀ (J Jᵀ + λ)⁻¹ e, or the same vector as (Jᵀ J + λ)⁻¹ Jᵀ e where that system is smaller."""
    if work.J.shape[0] <= work.J.shape[1]:
        gram(work.J, work.A, damping)
        copy(work.e, work.y)
        solve_ldl(work.A, work.y, work.y.shape[0])
        times_t(work.J, work.y, work.dq)
    else:
        gram_t(work.J, work.A, damping)
        times_t(work.J, work.e, work.dq)
        solve_ldl(work.A, work.dq, work.dq.shape[0])


@device
def largest(a):
    """Return the largest absolute value of a vector."""
    m = F(0)
    for i in range(a.shape[0]):
        m = max(m, abs(a[i]))
    return m


@device
def squared_length(a):
    """Return the squared length of a vector."""
    s = F(0)
    for i in range(a.shape[0]):
        s += a[i] * a[i]
    return s


@inline
def length(a):
    """Return the length of a vector."""
    return math.sqrt(squared_length(a))


@device
def linearise(problem, work, targets, q):
    """Write J at the frames of q and the gradient g = Jᵀe, without the directions that limits hold.

    Returns:
        The largest multiplier and its variable, as ``hold_at_limits`` returns them.
    """
    jacobian(problem, q, work.frames, targets, work.J)
    times_t(work.J, work.e, work.g)
    return hold_at_limits(problem, q, work.J, work.g, PUSH_NOISE * length(work.e), False)


@device
def apply_dq(problem, work, q, share):
    """Move q by ``share`` of dq (radians, length scales), within the limits; afterwards dq has the units of q."""
    to_units(problem, work.dq)
    step(problem.variables, problem.limits, q, work.dq, share)


@device
def damped_move(problem, work, targets, q, damping):
    """Move q by a damped step of at most LARGEST_TURN; return the largest part of the step before this clamp.

    Before the call, frames and residual are at q.
    """
    linearise(problem, work, targets, q)
    damped_step(work, damping)
    size = largest(work.dq)
    apply_dq(problem, work, q, min(F(1), LARGEST_TURN / max(size, F(1e-300))))
    return size
