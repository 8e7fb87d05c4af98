"""Strict priorities within bounds: every level takes the best step that leaves all levels above it as they are.

Level k minimises |A_k x - e_k|² over the steps x between their bounds with A_j x unchanged for all j < k: the hierarchy
of Kanoun, Lamiraux & Wieber (2011), solved level by level by an active set as in Escande, Mansard & Wieber (2014). The
minimum of a level determines A_k x, so those equations are its whole set of minima, bounds included: a bound that an
upper level ran into may be let go again by a lower one, where that changes no row above. Without that (``releases``
off) it is saturation in the null space (Flacco & De Luca 2015): a joint that is at a limit stays there.

Each level moves in the complement of the basis of all rows above: x ← x + W S⁺ (e - A x), S = A W, W the projector. It
is damped there, so damping never leaks upwards. The last level is the posture: of all steps that are left the one
nearest to a wish, in the norm that the columns' weights make (Δθ = Δθ_ref + J⁺(Δp - J Δθ_ref)).
"""

import numpy as np

from synovia.kernels.compiler.jit import F, apart, apart_dot, device, entry
from synovia.kernels.hierarchy.basis import (
    BENT,
    FREE,
    GRADIENT,
    LOCKED,
    LOWER,
    MOVE,
    PINNED,
    PLACE,
    SEALED,
    SIDE,
    SOLVES,
    STALE,
    STEP,
    STIFF,
    TRIES,
    UPPER,
    WISH,
    add_row,
    extend,
    harden,
    let_go,
    lock,
    open_levels,
    pin,
    take_out,
)
from synovia.kernels.math.linear import solve_part

CHANGES = 200  # most changes of the active set in one level, beside one for each column
CHANCES = 2.0  # times that one level lets go of the same bound; more would run in a circle
WRONG = F(1e-10)  # multiplier, of the largest gradient, that is rounding
SLIP = F(1e-14)  # move (radians, reaches) towards a bound that is rounding


@apart_dot
def missing(h, first, last):
    """Write s = e - G x of the rows of a level; return its squared length."""
    n = h.v.shape[1]
    total = F(0)
    for i in range(first, last):
        s = h.e[i]
        for k in range(n):
            s -= h.G[i, k] * h.v[STEP, k]
        h.s[i] = s
        total += s * s
    return total


@apart_dot
def level_move(h, first, last, base, count, damping):
    """Write the move p = Qᵀ (LᵀL + λ)⁻¹ Lᵀ s of a level whose rows are L Q; Q is rows base to count of the basis."""
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
        h.v[MOVE, k] = F(0)
    for a in range(r):
        add_row(h.v, MOVE, h.c[a], h.B, base + a, int(h.now[FREE]))


@apart
def advance(h, most):
    """Walk along the move to its end, the first bound, or until a column has gone ``most``; hold what hits its bound.

    Returns:
        1 if a bound was hit, 2 if the move was cut short, else 0.
    """
    free = int(h.now[FREE])
    longest = F(0)
    for k in range(free):
        if h.v[SIDE, k] != F(0):
            h.v[MOVE, k] = F(0)  # pinned
        longest = max(longest, abs(h.v[MOVE, k]) / h.v[STIFF, k])
    cut = longest > most
    share = most / longest if cut else F(1)
    hit = -1
    for k in range(free):
        p = h.v[MOVE, k]
        x = h.v[STEP, k]
        if p > SLIP and x + share * p > h.v[UPPER, k]:
            share = max(h.v[UPPER, k] - x, F(0)) / p
            hit = k
        elif p < -SLIP and x + share * p < h.v[LOWER, k]:
            share = min(h.v[LOWER, k] - x, F(0)) / p
            hit = k
    for k in range(free):
        h.v[STEP, k] += share * h.v[MOVE, k]
    if hit >= 0:
        pin(h, hit, F(1) if h.v[MOVE, hit] > F(0) else F(-1))
        return 1
    return 2 if cut else 0


@apart
def release(h, scale, every):
    """Let go of the bounds whose multiplier in GRADIENT pulls inward, the worst or all; return how many."""
    worst = -WRONG * scale
    which = -1
    count = 0
    k = int(h.now[FREE])
    n = h.v.shape[1]
    while k < n:
        push = h.v[SIDE, k] * h.v[GRADIENT, k]
        if push < -WRONG * scale and h.v[TRIES, k] < CHANCES and h.v[SEALED, k] == F(0):
            if every:
                h.v[TRIES, k] += F(1)
                let_go(h, k)  # swaps with the first that is held, which has been looked at
                count += 1
            elif push < worst:
                worst = push
                which = k
        k += 1
    if which >= 0:
        h.v[TRIES, which] += F(1)
        let_go(h, which)
        count = 1
    return count


@apart
def multipliers(h, count):
    """Take what the rows above hold out of GRADIENT; its held columns are then the bounds' multipliers.

    Returns:
        The largest entry that it had.
    """
    n = h.v.shape[1]
    scale = F(0)
    for k in range(n):
        scale = max(scale, abs(h.v[GRADIENT, k]))
    take_out(h.v, GRADIENT, h.B, count, int(h.now[FREE]), n)
    return scale


@apart
def own_rows(h, first, last):
    """Extend the basis by the rows of a level; return how many it then has."""
    base = int(h.now[LOCKED])
    count = base
    for i in range(first, last):
        for a in range(min(last - first, h.v.shape[1])):
            h.L[i, a] = F(0)
        count = extend(h.B, h.G, h.L, i, int(h.now[FREE]), base, count, F(0))
    return count


@apart
def solve_level(h, first, last, damping, scaled, most, releases):
    """Move x to the minimum of the level of rows first to last; λ = damping + scaled |s|²."""
    n = h.v.shape[1]
    for k in range(n):
        h.v[TRIES, k] = F(0)
    for change in range(n + CHANGES):
        lock(h, first)
        count = own_rows(h, first, last)
        total = missing(h, first, last)
        level_move(h, first, last, int(h.now[LOCKED]), count, damping + scaled * total)
        h.now[SOLVES] += F(1)
        ended = advance(h, most)
        if ended == 1:
            continue
        harden(h)
        if ended == 0 and int(h.now[FREE]) < n:
            again = h.now[STALE] != F(0)
            lock(h, first)
            missing(h, first, last)
            for k in range(n):
                h.v[GRADIENT, k] = F(0)
            for i in range(first, last):
                add_row(h.v, GRADIENT, h.s[i], h.G, i, n)
            scale = multipliers(h, int(h.now[LOCKED]))
            if releases and release(h, scale, change == 0) > 0:
                continue
            if again:
                count = own_rows(h, first, last)
        if h.now[STALE] == F(0):
            h.now[LOCKED] = F(count)
        return
    harden(h)  # or the levels below would take what is pinned for free


@apart
def solve_posture(h, damping, most, releases):
    """Move x as near to the wish as the levels above leave room for, or by 1 / (1 + λ) of the way."""
    n = h.v.shape[1]
    for k in range(n):
        h.v[TRIES, k] = F(0)
    for change in range(n + CHANGES):
        lock(h, h.G.shape[0])
        free = int(h.now[FREE])
        for k in range(free):
            h.v[MOVE, k] = (h.v[WISH, k] - h.v[STEP, k]) / (F(1) + damping)
        take_out(h.v, MOVE, h.B, int(h.now[LOCKED]), free, free)
        h.now[SOLVES] += F(1)
        ended = advance(h, most)
        if ended == 1:
            continue
        harden(h)
        if ended == 0 and int(h.now[FREE]) < n:
            lock(h, h.G.shape[0])
            for k in range(n):
                h.v[GRADIENT, k] = h.v[WISH, k] - h.v[STEP, k]
            scale = multipliers(h, int(h.now[LOCKED]))
            if releases and release(h, scale, change == 0) > 0:
                continue
        return


@device
def solve_levels(h, edges, count, damping, scaled, slow, most, releases):
    """Write the step of the first ``count`` levels, rows edges[k] to edges[k + 1] being level k, the posture the last.

    λ of the posture is ``slow``.
    """
    h.now[SOLVES] = F(0)
    h.now[LOCKED] = F(0)
    h.now[STALE] = F(0)
    for k in range(min(count, edges.shape[0] - 1)):
        if edges[k + 1] > edges[k]:
            solve_level(h, np.int64(edges[k]), np.int64(edges[k + 1]), damping, scaled, most, releases)
    if count >= edges.shape[0]:
        solve_posture(h, slow, most, releases)


@entry
def solve_hierarchy(A, e, edges, bounds, scratch, step, damping, scaled, most, releases):
    """Write the step of a hierarchy given as plain matrices: rows (m, n), bounds (4, n) lower, upper, wish, stiffness.

    Returns:
        The number of systems solved.
    """
    m, n = A.shape
    h = open_levels(scratch, m, n)
    for i in range(m):
        h.e[i] = e[i]
        h.holds[i] = F(1)
        for k in range(n):
            h.G[i, k] = A[i, k]
    for k in range(n):
        h.v[STEP, k] = F(0)
        h.v[SIDE, k] = F(0)
        h.v[SEALED, k] = F(0)
        h.v[LOWER, k], h.v[UPPER, k], h.v[WISH, k], h.v[STIFF, k] = (
            bounds[0, k],
            bounds[1, k],
            bounds[2, k],
            bounds[3, k],
        )
        h.v[PLACE, k] = F(k)
    h.now[FREE] = F(n)
    h.now[BENT] = F(0)
    h.now[PINNED] = F(0)
    solve_levels(h, edges, edges.shape[0], damping, scaled, F(0), most, releases)
    for k in range(n):
        step[int(h.v[PLACE, k])] = h.v[STEP, k]
    return h.now[SOLVES]
