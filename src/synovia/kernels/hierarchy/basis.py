"""What the levels of a hierarchy share: their rows, the columns that a limit holds, and a basis of what is spoken for.

Columns stand in an order of their own: those that may move come first, so that every sum over them is a plain loop, and
a column that a limit holds is swapped behind them. Rows are orthonormalised over the columns that may move, but carried
over all of them: what is left of a gradient at a held column is then that limit's multiplier.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.compiler.jit import F, apart, apart_dot, device, device_dot, inline
from synovia.kernels.compiler.views import matrix, vector

# Rows of ``Levels.v``, one number a column
STEP, LOWER, UPPER, WISH, SIDE, GRADIENT, MOVE, PLACE, STIFF, TRIES, SEALED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
VECTORS = 11
# Places in ``Levels.now``
FREE, LOCKED, STALE, SOLVES, BENT, PINNED, ALONE = 0, 1, 2, 3, 4, 5, 6
NOW = 7
INDEPENDENT = F(1e-9)  # part of a row, of its length, that must be left for it to count as another direction
VANISHES = F(1e-12)  # length of a row (reaches or radians a radian) that is rounding: nothing that moves changes it
LITTLE = F(1e-6)  # squared part of a column that must be left of it for its bound to join the basis
STIFF_PART = F(0.1)  # of the stiffness that counts: what is left of a direction below is rounding of differences
AGAIN = F(1e-2)  # part of a row below which what is left is made orthogonal once more


class Levels(NamedTuple):
    """Scratch memory of the levels of one step, n columns and m rows; ``v`` and ``now`` are named above.

    ``G``: the rows of all levels, columns weighted and in the present order.
    ``e``: what they ask for, ``s``: what of it is missing yet.
    ``B``: the orthonormal basis. ``L``: the rows of the level at hand in that basis. ``A``, ``c``: its system.
    ``lowest``, ``present``: the error of every level, and of the posture after them, at the best pose and at the last.
    ``dampings``: those of the levels, and of the posture, in the end of a miss. ``floors``: the least of them.
    ``holds``: 1 for the rows that hold the levels below, 0 for those of a level that second derivatives alone hold.
    ``pressed``: the bounds, by column of the pose, that the last step of a level ended at; 0 for none.
    ``aside``: errors to compare with later, ``began``: a pose to return to or to count from, by variable.
    ``edges``: the edge of a polygon on which each wall stands (see ``walls``).
    ``R``: directions in which only second derivatives hold a level (see ``newton``), as rows; their square is
    how stiff, in units of the least that counts.
    """

    G: NDArray[np.float64]
    e: NDArray[np.float64]
    s: NDArray[np.float64]
    B: NDArray[np.float64]
    L: NDArray[np.float64]
    A: NDArray[np.float64]
    c: NDArray[np.float64]
    R: NDArray[np.float64]
    lowest: NDArray[np.float64]
    present: NDArray[np.float64]
    dampings: NDArray[np.float64]
    floors: NDArray[np.float64]
    holds: NDArray[np.float64]
    aside: NDArray[np.float64]
    edges: NDArray[np.float64]
    began: NDArray[np.float64]
    pressed: NDArray[np.float64]
    v: NDArray[np.float64]
    now: NDArray[np.float64]


def levels_size(m: int, n: int) -> int:
    """Return how many float64 ``open_levels`` needs."""
    d = max(m, n)
    return m * n + 2 * m + (n + 1) * n + d * n + d * d + d + n * n + 7 * (m + 1) + 5 * n + VECTORS * n + NOW


@inline
def open_levels(scratch, m, n):
    """Return scratch memory cut into named parts."""
    d = max(m, n)
    a0 = np.int64(0)
    a1 = a0 + m * n
    a2 = a1 + 2 * m
    a3 = a2 + (n + 1) * n
    a4 = a3 + d * n
    a5 = a4 + d * d
    a6 = a5 + d
    a7 = a6 + n * n
    a8 = a7 + 7 * (m + 1) + 5 * n
    a9 = a8 + VECTORS * n
    return Levels(
        matrix(scratch, a0, m, n),
        vector(scratch, a1, m),
        vector(scratch, a1 + m, m),
        matrix(scratch, a2, n + 1, n),
        matrix(scratch, a3, d, n),
        matrix(scratch, a4, d, d),
        vector(scratch, a5, d),
        matrix(scratch, a6, n, n),
        vector(scratch, a7, m + 1),
        vector(scratch, a7 + m + 1, m + 1),
        vector(scratch, a7 + 2 * (m + 1), m + 1),
        vector(scratch, a7 + 3 * (m + 1), m + 1),
        vector(scratch, a7 + 4 * (m + 1), m + 1),
        vector(scratch, a7 + 5 * (m + 1), m + 1),
        vector(scratch, a7 + 6 * (m + 1), m + 1),
        matrix(scratch, a7 + 7 * (m + 1), n, 4),
        vector(scratch, a7 + 7 * (m + 1) + 4 * n, n),
        matrix(scratch, a8, VECTORS, n),
        vector(scratch, a9, NOW),
    )


@device_dot
def dot_rows(A, i, B, j, n):
    """Return the product of two rows over the first n columns."""
    s = F(0)
    for k in range(n):
        s += A[i, k] * B[j, k]
    return s


@device_dot
def add_row(A, i, u, B, j, n):
    """Write A[i] += u B[j] over the first n columns."""
    for k in range(n):
        A[i, k] += u * B[j, k]


@device
def take_out(A, i, B, count, free, n):
    """Write A[i] -= its part in the first rows of B."""
    for c in range(count):
        u = dot_rows(A, i, B, c, free)
        add_row(A, i, -u, B, c, n)


@apart_dot
def extend(B, G, L, i, free, base, count, least):
    """Add row i of G to the basis B, orthogonal to what is there; L[i] takes its parts in the rows from ``base`` on.

    Modified Gram-Schmidt, again where little is left. Products are over the columns that may move, the first ``free``.

    Returns:
        The number of rows of the basis: one more, or as many where the row depends on the others, which it does where
        less than ``least`` is left of its squared length.
    """
    n = B.shape[1]
    whole = dot_rows(G, i, G, i, free)
    for c in range(base, count):
        L[i, c - base] = F(0)
    if count >= free or not whole > VANISHES * VANISHES:
        for c in range(base, count):
            L[i, c - base] = dot_rows(G, i, B, c, free)
        return count
    for k in range(n):
        B[count, k] = G[i, k]
    before = whole
    left = whole
    least = max(least, INDEPENDENT * INDEPENDENT * whole)
    for _ in range(3):
        for c in range(count):
            u = dot_rows(B, count, B, c, free)
            add_row(B, count, -u, B, c, n)
            if c >= base:
                L[i, c - base] += u
        left = dot_rows(B, count, B, count, free)
        if left > AGAIN * AGAIN * before or left <= least:
            break
        before = left
    if left <= least:
        return count
    size = math.sqrt(left)
    for k in range(n):
        B[count, k] /= size
    L[i, count - base] = size
    return count + 1


@apart
def lock(h, last):
    """Make the basis of the first ``last`` rows anew, over the columns that may move now, where it no longer holds."""
    if h.now[STALE] == F(0):
        return
    count = 0
    free = int(h.now[FREE])
    for i in range(last):
        if h.holds[i] != F(0):
            count = extend(h.B, h.G, h.L, i, free, count, count, F(0))
    for i in range(int(h.now[BENT])):
        count = extend(h.B, h.R, h.L, i, free, count, count, STIFF_PART)
    h.now[LOCKED] = F(count)
    h.now[STALE] = F(0)


@device
def swap(h, i, j):
    """Swap two columns."""
    if i == j:
        return
    for r in range(h.G.shape[0]):
        h.G[r, i], h.G[r, j] = h.G[r, j], h.G[r, i]
    for r in range(int(h.now[BENT])):
        h.R[r, i], h.R[r, j] = h.R[r, j], h.R[r, i]
    for r in range(VECTORS):
        h.v[r, i], h.v[r, j] = h.v[r, j], h.v[r, i]


@apart
def hold(h, i, side):
    """Hold column i at its lower (-1) or upper (1) bound."""
    last = int(h.now[FREE]) - 1
    h.v[SIDE, i] = side
    h.v[STEP, i] = h.v[UPPER, i] if side > F(0) else h.v[LOWER, i]
    swap(h, i, last)
    h.now[FREE] = F(last)
    h.now[STALE] = F(1)


@apart
def pin(h, i, side):
    """Hold column i at its bound for the rest of a level: its unit vector joins the basis, which need not be made anew.

    Where the basis has it already, rounding alone has moved it, and it is held at once.
    """
    free = int(h.now[FREE])
    count = int(h.now[LOCKED])
    for k in range(free):
        h.B[count, k] = F(k == i)
    for _ in range(2):
        take_out(h.B, count, h.B, count, free, free)
    left = dot_rows(h.B, count, h.B, count, free)
    h.v[SIDE, i] = side
    h.v[STEP, i] = h.v[UPPER, i] if side > F(0) else h.v[LOWER, i]
    h.now[PINNED] = F(1)
    if left < LITTLE or count + 1 >= free:
        harden(h)
        return
    size = F(1) / math.sqrt(left)
    for k in range(free):
        h.B[count, k] *= size
    h.now[LOCKED] = F(count + 1)


@device
def harden(h):
    """Hold for good what is pinned."""
    k = int(h.now[FREE]) - 1
    while k >= 0 and h.now[PINNED] != F(0):
        if h.v[SIDE, k] != F(0):
            hold(h, k, h.v[SIDE, k])
        k -= 1
    h.now[PINNED] = F(0)


@apart
def let_go(h, i):
    """Let column i move again."""
    first = int(h.now[FREE])
    h.v[SIDE, i] = F(0)
    swap(h, i, first)
    h.now[FREE] = F(first + 1)
    h.now[STALE] = F(1)
