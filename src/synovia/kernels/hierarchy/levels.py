"""Solve a hierarchy of least-squares problems within bounds: lower levels never change the levels above.

Level k minimises |A_k x - e_k|² over steps x within bounds that keep A_j x for all j < k. This is the hierarchy of
Kanoun, Lamiraux & Wieber (2011), solved level by level with an active set as in Escande, Mansard & Wieber (2014). All
minima of a level have the same A_k x. So a lower level may release a bound that an upper level activated, if no row
above changes. Without releases (``releases`` off), a column that reaches a bound stays there: saturation in the null
space (Flacco & De Luca 2015).

Each level moves in the complement of the basis of all rows above: x ← x + W S⁺ (e - A x), S = A W, W the projector.
Damping acts only in that complement, so it never affects upper levels. The last level is the posture: of all remaining
steps it takes the one nearest to a reference, in the norm of the columns' weights (Δθ = Δθ_ref + J⁺(Δp - J Δθ_ref)).
"""

import numpy as np

from synovia.kernels.compiler.jit import F, apart, apart_dot, device, entry, inline
from synovia.kernels.hierarchy.basis import (
    add_row,
    extend_basis,
    fix_column,
    fix_pinned,
    open_levels,
    pin_column,
    project_out,
    rebuild_basis,
    release_column,
    reset_column,
    reset_columns,
)
from synovia.kernels.layout import (
    ACTIVE_SIDE,
    BASIS_COUNT,
    BASIS_STALE,
    DIRECTION,
    FREE_COUNT,
    GRADIENT,
    PERMANENT,
    POSE_COLUMN,
    REFERENCE,
    RELEASES,
    SOLVES,
    STEP,
    STEP_LOWER,
    STEP_STIFFNESS,
    STEP_UPPER,
)
from synovia.kernels.math.linear import solve_part

MAX_CHANGES = 200  # largest number of changes of the active set in one level, in addition to one per column
MAX_RELEASES = 2.0  # largest number of releases of the same bound in one level; more could cycle
MULTIPLIER_NOISE = F(1e-10)  # smaller multipliers, relative to the largest gradient, are rounding
TOUCHING = F(1e-9)  # distance (radians or length scales) from a bound that counts as touching
MOVE_NOISE = F(1e-14)  # smaller moves towards a bound (radians, length scales) are rounding


@apart_dot
def level_residual(h, first, last):
    """Write the residual s = e - G x of the rows of a level; return its squared length."""
    n = h.v.shape[1]
    total = F(0)
    for i in range(first, last):
        s = h.e[i]
        for k in range(n):
            s -= h.G[i, k] * h.v[STEP, k]
        h.s[i] = s
        total += s * s
    return total


@apart
def residual_gradient(h, first, last):
    """Write GRADIENT = Gᵀ s of rows ``first`` to ``last``."""
    n = h.v.shape[1]
    for k in range(n):
        h.v[GRADIENT, k] = F(0)
    for i in range(first, last):
        add_row(h.v, GRADIENT, h.s[i], h.G, i, n)


@apart_dot
def level_direction(h, first, last, base, count, damping):
    """Write the direction p = Qᵀ (LᵀL + λ)⁻¹ Lᵀ s of a level with the rows L Q.

    Q is rows ``base`` to ``count`` of the basis, s the residual of the level, and λ the ``damping``.
    """
    r = count - base
    n = h.v.shape[1]
    for a in range(r):
        for b in range(a + 1):
            h.A[a, b] = F(0)
        h.c[a] = F(0)
    for i in range(first, last):
        for a in range(r):
            u = h.L[i, a]
            h.c[a] += u * h.s[i]
            for b in range(a + 1):
                h.A[a, b] += u * h.L[i, b]
    for a in range(r):
        h.A[a, a] += damping
    solve_part(h.A, h.c, r)
    for k in range(n):
        h.v[DIRECTION, k] = F(0)
    for a in range(r):
        add_row(h.v, DIRECTION, h.c[a], h.B, base + a, int(h.state[FREE_COUNT]))


@apart
def advance_to_bound(h, max_move):
    """Step along the direction to its end, to the first bound, or until a column has moved by ``max_move``.

    Returns:
        (1 if a bound was reached, 2 if ``max_move`` shortened the step, else 0; the column that reached its bound).
    """
    h.state[SOLVES] += F(1)
    free = int(h.state[FREE_COUNT])
    longest = F(0)
    for k in range(free):
        if h.v[ACTIVE_SIDE, k] != F(0):
            h.v[DIRECTION, k] = F(0)  # pinned columns do not move
        longest = max(longest, abs(h.v[DIRECTION, k]) / h.v[STEP_STIFFNESS, k])
    cut = longest > max_move
    share = max_move / longest if cut else F(1)
    hit = -1
    for k in range(free):
        p = h.v[DIRECTION, k]
        x = h.v[STEP, k]
        if p > MOVE_NOISE and x + share * p > h.v[STEP_UPPER, k]:
            share = max(h.v[STEP_UPPER, k] - x, F(0)) / p
            hit = k
        elif p < -MOVE_NOISE and x + share * p < h.v[STEP_LOWER, k]:
            share = min(h.v[STEP_LOWER, k] - x, F(0)) / p
            hit = k
    for k in range(free):
        h.v[STEP, k] += share * h.v[DIRECTION, k]
    if hit >= 0:
        return 1, hit
    return (2 if cut else 0), hit


@inline
def side_of(h, k):
    """Return the side of the bound to which the direction leads column k."""
    return F(1) if h.v[DIRECTION, k] > F(0) else F(-1)


@apart
def release_bounds(h, scale, release_all):
    """Release the bounds whose multiplier in GRADIENT points inward: all, or only the worst; return their number."""
    worst = -MULTIPLIER_NOISE * scale
    which = -1
    count = 0
    k = int(h.state[FREE_COUNT])
    n = h.v.shape[1]
    while k < n:
        push = h.v[ACTIVE_SIDE, k] * h.v[GRADIENT, k]
        if push < -MULTIPLIER_NOISE * scale and h.v[RELEASES, k] < MAX_RELEASES and h.v[PERMANENT, k] == F(0):
            if release_all:
                h.v[RELEASES, k] += F(1)
                release_column(h, k)  # swaps column k with the first fixed column, which has been checked
                count += 1
            elif push < worst:
                worst = push
                which = k
        k += 1
    if which >= 0:
        h.v[RELEASES, which] += F(1)
        release_column(h, which)
        count = 1
    return count


@apart
def bound_multipliers(h):
    """Project GRADIENT onto the complement of the basis; its entries at fixed columns become the bounds' multipliers.

    Returns:
        The largest entry before the projection.
    """
    n = h.v.shape[1]
    scale = F(0)
    for k in range(n):
        scale = max(scale, abs(h.v[GRADIENT, k]))
    project_out(h.v, GRADIENT, h.B, int(h.state[BASIS_COUNT]), int(h.state[FREE_COUNT]), n)
    return scale


@apart
def add_level_rows(h, first, last):
    """Extend the basis by the rows of a level; return the number of rows of the basis."""
    base = int(h.state[BASIS_COUNT])
    count = base
    for i in range(first, last):
        for a in range(min(last - first, h.v.shape[1])):
            h.L[i, a] = F(0)
        count = extend_basis(h.B, h.G, h.L, i, int(h.state[FREE_COUNT]), base, count, F(0))
    return count


@apart
def solve_level(h, first, last, damping, error_damping, max_move, releases):
    """Move x to the minimum of the level of rows ``first`` to ``last``.

    The damping is λ = ``damping`` + ``error_damping`` |s|², where s is the residual of the level.
    """
    n = h.v.shape[1]
    for k in range(n):
        h.v[RELEASES, k] = F(0)
    count = -1
    for change in range(n + MAX_CHANGES):
        if count < 0:
            rebuild_basis(h, first)
            count = add_level_rows(h, first, last)
        total = level_residual(h, first, last)
        level_direction(h, first, last, int(h.state[BASIS_COUNT]), count, damping + error_damping * total)
        ended, hit = advance_to_bound(h, max_move)
        if ended == 1:
            count = pin_column(h, hit, side_of(h, hit), first, last, count)
            continue
        fix_pinned(h)
        if ended == 0 and int(h.state[FREE_COUNT]) < n:
            again = h.state[BASIS_STALE] != F(0)
            rebuild_basis(h, first)
            level_residual(h, first, last)
            residual_gradient(h, first, last)
            scale = bound_multipliers(h)
            if releases and release_bounds(h, scale, change == 0) > 0:
                count = -1
                continue
            if again:
                count = add_level_rows(h, first, last)
        if h.state[BASIS_STALE] == F(0):
            h.state[BASIS_COUNT] = F(count)
        return
    fix_pinned(h)  # otherwise the levels below would treat pinned columns as free


@apart
def solve_posture(h, damping, max_move, releases):
    """Move x by 1 / (1 + damping) of the difference to the reference, as far as the levels above allow."""
    n = h.v.shape[1]
    for k in range(n):
        h.v[RELEASES, k] = F(0)
    for change in range(n + MAX_CHANGES):
        rebuild_basis(h, h.G.shape[0])
        free = int(h.state[FREE_COUNT])
        for k in range(free):
            h.v[DIRECTION, k] = (h.v[REFERENCE, k] - h.v[STEP, k]) / (F(1) + damping)
        project_out(h.v, DIRECTION, h.B, int(h.state[BASIS_COUNT]), free, free)
        ended, hit = advance_to_bound(h, max_move)
        if ended == 1:
            pin_column(h, hit, side_of(h, hit), 0, 0, int(h.state[BASIS_COUNT]))
            continue
        fix_pinned(h)
        if ended == 0 and int(h.state[FREE_COUNT]) < n:
            rebuild_basis(h, h.G.shape[0])
            for k in range(n):
                h.v[GRADIENT, k] = h.v[REFERENCE, k] - h.v[STEP, k]
            scale = bound_multipliers(h)
            if releases and release_bounds(h, scale, change == 0) > 0:
                continue
        return


@apart
def fix_at_bounds(h):
    """Fix the columns whose step begins at a bound, if the gradient of all rows or the reference points outwards."""
    m, n = h.G.shape
    level_residual(h, 0, m)
    residual_gradient(h, 0, m)
    for k in range(n - 1, -1, -1):
        x = h.v[STEP, k]
        if h.v[STEP_UPPER, k] - x <= TOUCHING and (h.v[GRADIENT, k] > F(0) or h.v[REFERENCE, k] > x):
            fix_column(h, k, F(1))
        elif h.v[STEP_LOWER, k] - x >= -TOUCHING and (h.v[GRADIENT, k] < F(0) or h.v[REFERENCE, k] < x):
            fix_column(h, k, F(-1))


@device
def solve_levels(h, edges, count, damping, error_damping, posture_damping, max_move, releases):
    """Write the step of the first ``count`` levels; level k has rows edges[k] to edges[k + 1], the posture is last."""
    h.state[SOLVES] = F(0)
    h.state[BASIS_COUNT] = F(0)
    h.state[BASIS_STALE] = F(0)
    for k in range(min(count, edges.shape[0] - 1)):
        if edges[k + 1] > edges[k]:
            solve_level(h, np.int64(edges[k]), np.int64(edges[k + 1]), damping, error_damping, max_move, releases)
    if count >= edges.shape[0]:
        solve_posture(h, posture_damping, max_move, releases)


@entry
def solve_hierarchy(A, e, edges, bounds, scratch, step, damping, error_damping, max_move, releases):
    """Write the step of a hierarchy given as matrices; for tests and benchmarks.

    Args:
        A: (m, n) rows of all levels.
        e: (m,) right sides.
        edges: (levels + 1,) first row of each level, then m.
        bounds: (4, n) lower bound, upper bound, reference and stiffness of each column.
        scratch: Scratch memory of ``levels_size(m, n)`` values.
        step: (n,) the step; written.
        damping: Constant part of the damping.
        error_damping: Factor of the squared error in the damping.
        max_move: Largest change of a column.
        releases: Whether lower levels may release bounds that upper levels activated.

    Returns:
        The number of linear systems solved.
    """
    m, n = A.shape
    h = open_levels(scratch, m, n)
    for i in range(m):
        h.e[i] = e[i]
        h.constrains[i] = F(1)
        for k in range(n):
            h.G[i, k] = A[i, k]
    for k in range(n):
        reset_column(h, k, bounds[0, k], bounds[1, k])
        h.v[REFERENCE, k], h.v[STEP_STIFFNESS, k] = bounds[2, k], bounds[3, k]
    reset_columns(h)
    solve_levels(h, edges, edges.shape[0], damping, error_damping, F(0), max_move, releases)
    for k in range(n):
        step[int(h.v[POSE_COLUMN, k])] = h.v[STEP, k]
    return h.state[SOLVES]
