"""Newton's method for an infeasible priority level, whose rows do not show which motions increase its error.

Consider an arm that is stretched towards a target out of reach. Bending the elbow makes the error larger, but only to
second order, so no row of the Jacobian forbids it. The second derivative does: the remaining residual acts on the hand
like a force, and this force times the change of the rows is a geometric stiffness C. With C the level maximises the
quadratic g·p - p·(GᵀG + C) p / 2 within the bounds, and levels below may not move along stiff directions. Without C,
poses at the edge of reach flicker. Pfeiffer, Escande & Rabiee (2018) add second derivatives to a hierarchy similarly.
C includes the constraint forces of the levels above, because their rows change with the step too.
"""

import math

from synovia.kernels.compiler.jit import F, apart, apart_dot
from synovia.kernels.goals.clearance import mark_idle, measure_again
from synovia.kernels.hierarchy.basis import add_row, dot_rows, extend_basis, fix_pinned, pin_column, rebuild_basis
from synovia.kernels.hierarchy.levels import (
    add_level_rows,
    advance_to_bound,
    bound_multipliers,
    level_residual,
    release_bounds,
    residual_gradient,
    side_of,
)
from synovia.kernels.hierarchy.step import update_frames, update_jacobian
from synovia.kernels.layout import (
    ACTIVE_SIDE,
    BASIS_COUNT,
    BASIS_STALE,
    BLOCK,
    BLOCK_COLUMN,
    DIRECTION,
    FREE_COUNT,
    GRADIENT,
    PERMANENT,
    POSE_COLUMN,
    RELEASES,
    SCALAR,
    STEP,
    STEP_STIFFNESS,
    STIFF_COUNT,
)
from synovia.kernels.math.linear import solve_part, times_t
from synovia.kernels.search.polish import hessian_to_box
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import displace

DIFFERENCE = F(3e-5)  # step of central differences of Jᵀs (radians or length scales); their error is about 1e-9
SOFT_STIFFNESS = F(1e-5)  # stiffness, relative to the force, below which a direction counts as free
TINY = F(1e-12)
IDLE_FORCE = F(1e-7)  # force of a contact, relative to the largest; with a smaller force, its stiffness is rounding
REGULARIZATION = F(1e-12)  # added to the diagonal of G Gᵀ, which dependent rows make singular
MAX_CHANGES = 40  # largest number of changes of the active set; the first set is that of the level without C
STRONG_MULTIPLIER = F(1e-7)  # multiplier, relative to the largest gradient, above which lower levels keep a bound
FORCE_NOISE = F(1e-10)  # if no gradient is left: smaller multipliers, relative to the force, are rounding


@apart
def constraint_forces(h, first, last):
    """Write to s the constraint forces of the rows above that balance the residual of a level: Gᵀ s = 0.

    The level has rows ``first`` to ``last``; before the call, s holds their residual. Entries of levels below become
    zero; ``A`` and ``c`` are overwritten.
    """
    free = int(h.state[FREE_COUNT])
    residual_gradient(h, first, last)
    for i in range(first):
        for j in range(i + 1):
            h.A[i, j] = h.constrains[i] * h.constrains[j] * dot_rows(h.G, i, h.G, j, free)
        h.A[i, i] += REGULARIZATION
        h.c[i] = -h.constrains[i] * dot_rows(h.G, i, h.v, GRADIENT, free)
    solve_part(h.A, h.c, first)
    for i in range(first):
        h.s[i] = h.c[i]
    for i in range(last, h.G.shape[0]):
        h.s[i] = F(0)


@apart
def geometric_stiffness(problem, work, targets, q, h):
    """Write H = -∂(Jᵀs)/∂q for fixed forces s, symmetrised, in the coordinates of the box.

    Central differences work for every kind of goal. Frames and J are at q afterwards.
    """
    n = work.H.shape[0]
    mark_idle(problem.clear, h.s, IDLE_FORCE)
    for k in range(problem.variables.shape[0]):
        for c in range(1 if problem.variables[k, BLOCK] == SCALAR else 3):
            for side in range(2):
                copy(q, work.trial)
                displace(problem, work.trial, k, c, DIFFERENCE if side == 0 else -DIFFERENCE)
                update_frames(problem, work.trial, work.frames)
                measure_again(problem.clear, work.frames)
                update_jacobian(problem, work.trial, work.frames, targets, work.J, h)
                times_t(work.J, h.s, work.dq if side == 0 else work.g)
            for j in range(n):
                work.H[problem.variables[k, BLOCK_COLUMN] + c, j] = F(0.5) * (work.g[j] - work.dq[j]) / DIFFERENCE
    update_frames(problem, q, work.frames)
    measure_again(problem.clear, work.frames)
    mark_idle(problem.clear, h.s, F(-1))
    update_jacobian(problem, q, work.frames, targets, work.J, h)
    times_t(work.J, h.s, work.dq)
    for i in range(n):
        for j in range(i):
            mean = F(0.5) * (work.H[i, j] + work.H[j, i])
            work.H[i, j] = mean
            work.H[j, i] = mean
    hessian_to_box(problem, work, q)


@apart_dot
def reduced_hessian(h, H, first, last, base):
    """Write into A the Hessian GᵀG + C of a level over the free columns, projected onto the basis's complement."""
    free = int(h.state[FREE_COUNT])
    for i in range(free):
        a = int(h.v[POSE_COLUMN, i])
        u = F(1) / h.v[STEP_STIFFNESS, i]
        for j in range(i + 1):
            b = int(h.v[POSE_COLUMN, j])
            is_slack = max(a, b) >= H.shape[0]
            h.A[i, j] = F(0) if is_slack else u * H[a, b] / h.v[STEP_STIFFNESS, j]
    for r in range(first, last):
        for i in range(free):
            u = h.G[r, i]
            for j in range(i + 1):
                h.A[i, j] += u * h.G[r, j]
    for i in range(free):
        for j in range(i):
            h.A[j, i] = h.A[i, j]
    for b in range(base):
        curvature = F(0)
        for i in range(free):
            h.c[i] = dot_rows(h.A, i, h.B, b, free)
            curvature += h.c[i] * h.B[b, i]
        for i in range(free):
            u = h.c[i] - F(0.5) * curvature * h.B[b, i]
            w = h.B[b, i]
            for j in range(free):
                h.A[i, j] -= u * h.B[b, j] + w * (h.c[j] - F(0.5) * curvature * h.B[b, j])


@apart
def pivoted_cholesky(h, kept, smallest):
    """Write rows R with Rᵀ R = A for pivots above ``smallest``: Cholesky with the largest pivot first.

    The new rows follow the first ``kept`` rows of R. Directions of negative curvature are left out.

    Returns:
        The number of rows of R.
    """
    free, n = int(h.state[FREE_COUNT]), h.v.shape[1]
    count = kept
    while count < n:
        p = -1
        pivot = smallest
        for i in range(free):
            if h.A[i, i] > pivot:
                pivot = h.A[i, i]
                p = i
        if p < 0:
            break
        u = F(1) / math.sqrt(pivot)
        for k in range(n):
            h.R[count, k] = F(0)
        for i in range(free):
            h.R[count, i] = u * h.A[p, i]
        for i in range(free):
            add_row(h.A, i, -h.R[count, i], h.R, count, free)
        h.A[p, p] = F(0)
        count += 1
    return count


@apart
def level_gradient(h, H, first, last):
    """Write GRADIENT = Gᵀ s - C x, the gradient of the level at the step x."""
    n = h.v.shape[1]
    level_residual(h, first, last)
    residual_gradient(h, first, last)
    for i in range(n):
        a = int(h.v[POSE_COLUMN, i])
        total = F(0)
        for j in range(n if a < H.shape[0] else 0):
            b = int(h.v[POSE_COLUMN, j])
            if b < H.shape[0]:
                total += H[a, b] * h.v[STEP, j] / h.v[STEP_STIFFNESS, j]
        h.v[GRADIENT, i] -= total / h.v[STEP_STIFFNESS, i]


@apart
def unlock_rows(h, first, last, kept, stiff):
    """Remove the constraints of the rows of an infeasible level if they span more directions than ``stiff``.

    If an error rotates with the body, its rows change but its length does not.
    """
    h.state[STIFF_COUNT] = F(kept)
    h.state[BASIS_STALE] = F(1)
    rebuild_basis(h, first)
    if add_level_rows(h, first, last) - int(h.state[BASIS_COUNT]) > stiff:
        for i in range(first, last):
            h.constrains[i] = F(0)


@apart
def newton_level(h, H, first, last, damping, max_move, force):
    """Move x to the optimum of an infeasible level with geometric stiffness H; extend R by its stiff directions."""
    n = h.v.shape[1]
    kept = int(h.state[STIFF_COUNT])
    soft = SOFT_STIFFNESS * force + TINY
    h.state[BASIS_STALE] = F(1)
    for k in range(n):
        h.v[RELEASES, k] = F(0)
    count = kept
    for change in range(MAX_CHANGES):
        h.state[STIFF_COUNT] = F(kept)
        rebuild_basis(h, first)
        base = int(h.state[BASIS_COUNT])
        free = int(h.state[FREE_COUNT])
        reduced_hessian(h, H, first, last, base)
        count = pivoted_cholesky(h, kept, soft)
        top = base
        for i in range(count - kept):
            for a in range(count - kept):
                h.L[kept + i, a] = F(0)
            top = extend_basis(h.B, h.R, h.L, kept + i, free, base, top, F(0))
        r = top - base
        level_gradient(h, H, first, last)
        for a in range(r):
            h.c[a] = dot_rows(h.B, base + a, h.v, GRADIENT, free)
            for b in range(a + 1):
                u = damping if a == b else F(0)
                for i in range(count - kept):
                    u += h.L[kept + i, a] * h.L[kept + i, b]
                h.A[a, b] = u
        solve_part(h.A, h.c, r)
        for k in range(n):
            h.v[DIRECTION, k] = F(0)
        for a in range(r):
            add_row(h.v, DIRECTION, h.c[a], h.B, base + a, free)
        h.state[STIFF_COUNT] = F(count)
        ended, hit = advance_to_bound(h, max_move)
        if ended == 1:
            pin_column(h, hit, side_of(h, hit), 0, 0, base)
            continue
        fix_pinned(h)
        if ended == 0 and int(h.state[FREE_COUNT]) < n:
            h.state[STIFF_COUNT] = F(kept)
            rebuild_basis(h, first)
            h.state[STIFF_COUNT] = F(count)
            level_gradient(h, H, first, last)
            scale = bound_multipliers(h)
            if release_bounds(h, scale, change == 0) > 0:
                continue
            for k in range(int(h.state[FREE_COUNT]), n):
                if h.v[ACTIVE_SIDE, k] * h.v[GRADIENT, k] > max(STRONG_MULTIPLIER * scale, FORCE_NOISE * force):
                    h.v[PERMANENT, k] = F(1)
        break
    fix_pinned(h)
    unlock_rows(h, first, last, kept, count - kept)
    for r in range(kept, count):
        for k in range(n):
            h.R[r, k] /= math.sqrt(soft)  # R in units of ``soft``, see ``rebuild_basis``
    h.state[STIFF_COUNT] = F(count)
    h.state[BASIS_STALE] = F(1)
