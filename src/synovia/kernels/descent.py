"""Damped least squares with an active set: the step of the Jacobian family and of every solver's settling."""

import math

from synovia.kernels._jit import F, device
from synovia.kernels.curvature import curvature
from synovia.kernels.forward import forward
from synovia.kernels.goals import jacobian, residual, to_units
from synovia.kernels.linear import gram, gram_t, solve_ldl, times_t, transpose
from synovia.kernels.problem import copy
from synovia.kernels.rotations import load_quat
from synovia.kernels.swing_twist import normals
from synovia.kernels.variables import SCALAR, is_limited, step
from synovia.kernels.vectors import TINY, axpy, dot, scale

NEAR = F(1e-7)  # radians or reaches from a limit within which it counts as touched
LARGEST_TURN = F(1.0)  # radians in one step; the linear model says little beyond
SETTLED = F(1e-12)  # relative fall of the cost below which descent has ended
QUIET = 4  # such steps in a row
FLAT = F(1e-12)  # gradient against residual below which nothing is left but rounding
CLOSE = F(1e-5)  # Newton step (radians, reaches) whose gain drowns in rounding: there the gradient decides
ROUNDING = F(1e-13)  # of a cost
SHORT = F(1e-15)  # step (radians, reaches) below which descent has ended


@device
def remove_direction(J, v, n):
    """Take the direction n out of the three columns from v on: J ← J (1 - n nᵀ)."""
    for i in range(J.shape[0]):
        k = J[i, v] * n[0] + J[i, v + 1] * n[1] + J[i, v + 2] * n[2]
        J[i, v] -= k * n[0]
        J[i, v + 1] -= k * n[1]
        J[i, v + 2] -= k * n[2]


@device
def hold_at_limits(problem, q, J, g):
    """Freeze what stands at a limit and would be pushed further out: its directions leave J and the gradient g = Jᵀe.

    A direction is free again as soon as the gradient points inward: this is the active set of the step.

    Returns:
        The largest multiplier (the part of the gradient that a limit holds back) and the variable that it belongs to,
        or -1.
    """
    most = F(0)
    where = -1
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, 1], problem.variables[k, 2]
        held = F(0)
        if problem.variables[k, 0] == SCALAR:
            slack = NEAR if problem.limits[k, 10] != F(0) else NEAR * problem.reach
            up = q[at] >= problem.limits[k, 1] - slack and g[v] > F(0)
            down = q[at] <= problem.limits[k, 0] + slack and g[v] < F(0)
            if up or down:
                held = abs(g[v])
                g[v] = F(0)
                J[:, v] = F(0)
        elif is_limited(problem.limits, k):
            swing, n, side, t = normals(problem.limits, k, load_quat(q, at), NEAR)
            w = (g[v], g[v + 1], g[v + 2])
            if swing == 1 and dot(w, n) > F(0):
                held = dot(w, n)
                w = axpy(-held, n, w)
                remove_direction(J, v, n)
                t = axpy(-dot(t, n), n, t)  # what is left of the twist along the edge of the swing
                size = dot(t, t)
                t = scale(F(1) / math.sqrt(size), t) if size > TINY else t
            out = side * dot(w, t)
            if out > F(0):
                held = max(held, out)
                w = axpy(-side * out, t, w)
                remove_direction(J, v, t)
            g[v], g[v + 1], g[v + 2] = w
        if held > most:
            most = held
            where = k
    return most, where


@device
def damped_step(work, damping):
    """Write dq = Jᵀ (J Jᵀ + λ)⁻¹ e, or the same vector as (Jᵀ J + λ)⁻¹ Jᵀ e where that system is smaller."""
    if work.J.shape[0] <= work.J.shape[1]:
        gram(work.J, work.A, damping)
        copy(work.e, work.y)
        solve_ldl(work.A, work.y)
        times_t(work.J, work.y, work.dq)
    else:
        gram_t(work.J, work.A, damping)
        times_t(work.J, work.e, work.dq)
        solve_ldl(work.A, work.dq)


@device
def largest(a):
    """Return the largest absolute value of a vector."""
    m = F(0)
    for i in range(a.shape[0]):
        m = max(m, abs(a[i]))
    return m


@device
def linearise(problem, work, q):
    """Write J at the frames of q, and the gradient g = Jᵀe, with the active limits taken out of both.

    Returns:
        Largest multiplier and its variable, as ``hold_at_limits``.
    """
    jacobian(problem, q, work.frames, work.J)
    times_t(work.J, work.e, work.g)
    return hold_at_limits(problem, q, work.J, work.g)


@device
def hessian(problem, work, targets, q):
    """Write H: what the Jacobian leaves out of the Hessian, without the directions that limits hold; dq is overwritten.

    The same directions leave rows and columns as left J: P H P, each P from a gradient of its own.
    """
    curvature(problem, q, work.frames, targets, work.H)
    for _ in range(2):
        jacobian(problem, q, work.frames, work.J)
        times_t(work.J, work.e, work.dq)
        hold_at_limits(problem, q, work.H, work.dq)
        transpose(work.H)


@device
def newton_step(work, damping):
    """Write dq = (H + Jᵀ J + λ)⁻¹ g; return whether that matrix is positive definite, or else no step downhill."""
    gram_t(work.J, work.K, damping)
    for i in range(work.H.shape[0]):
        for j in range(i + 1):
            work.K[i, j] += work.H[i, j]
    copy(work.g, work.dq)
    solve_ldl(work.K, work.dq)
    for i in range(work.K.shape[0]):
        if not work.K[i, i] > F(0):
            return False
    return True


@device
def settle(problem, work, targets, q, most):
    """Descend from q to a local minimum: Newton's method, damped so that each step lowers the cost.

    The damping follows the gain ratio (Nielsen 1999). Here an attempt that failed becomes an answer that does not
    change when it is asked for again. With many columns JᵀJ stands for the Hessian.

    Returns:
        (steps taken, 1 if q is stationary or reached, else 0).
    """
    damping = F(1e-3)
    grow = F(2)
    quiet = 0
    full = work.H.shape[0] > 0
    forward(problem.tree, q, work.frames)
    cost, worst = residual(problem, work.frames, targets, work.e)
    for k in range(most):
        if worst <= F(1):
            return k, 1
        if full:
            hessian(problem, work, targets, q)
        linearise(problem, work, q)
        if largest(work.g) <= FLAT * math.sqrt(cost):
            return k, 1
        accepted = False
        for _ in range(40):
            extra = damping * max(F(1), cost)
            downhill = True
            if full:
                downhill = newton_step(work, extra)
            else:
                damped_step(work, extra)
            size = largest(work.dq)
            if downhill and size < SHORT:
                return k, 1
            if downhill:
                shrink = min(F(1), LARGEST_TURN / size)
                expected = F(0)
                for v in range(work.dq.shape[0]):
                    expected += work.dq[v] * (extra * work.dq[v] + work.g[v])
                to_units(problem, work.dq)
                copy(q, work.trial)
                step(problem.variables, problem.limits, work.trial, work.dq, shrink)
                forward(problem.tree, work.trial, work.frames)
                new_cost, new_worst = residual(problem, work.frames, targets, work.e)
                polishes = full and size < CLOSE and new_cost <= cost * (F(1) + ROUNDING)
                if new_cost < cost or polishes:
                    accepted = True
                    gain = (cost - new_cost) / max(expected, F(1e-300))
                    h = F(2) * gain - F(1)
                    if not polishes:
                        damping = max(damping * max(F(1) / F(3), F(1) - h * h * h), F(1e-12))
                    grow = F(2)
                    quiet = quiet + 1 if cost - new_cost < SETTLED * cost else 0
                    cost, worst = new_cost, new_worst
                    copy(work.trial, q)
                    break
            damping *= grow
            grow *= F(2)
            forward(problem.tree, q, work.frames)
            residual(problem, work.frames, targets, work.e)
        if not accepted or quiet >= QUIET:
            forward(problem.tree, q, work.frames)
            residual(problem, work.frames, targets, work.e)
            return k + 1, 1
    return most, 0
