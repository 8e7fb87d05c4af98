"""The linear algebra of a hierarchy: rows of all levels, columns held at bounds, and a basis of the upper levels' rows.

Columns are permuted: free columns come first, so that every sum over them is a plain loop, and columns that are fixed
at a bound come last. The basis is orthonormal over the free columns, but its rows have entries for all columns. So the
projection of a gradient leaves the multiplier of the bound at each fixed column.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.compiler.jit import F, apart, apart_dot, device, device_dot, inline
from synovia.kernels.compiler.views import matrix, vector

# Rows of ``Levels.v``, one number a column: the step so far and its bounds; the reference of the posture; the active
# bound (-1 lower, 0 none, 1 upper); gradient; direction of the next move; column of the pose; stiffness; how often the
# level released the bound; 1 if the bound stays active for the whole step.
STEP, LOWER, UPPER, REFERENCE, ACTIVE_SIDE, GRADIENT, DIRECTION, POSE_COLUMN, STIFFNESS, RELEASES, PERMANENT = range(11)
VECTORS = 11
# Entries of ``Levels.state``: number of free columns, of basis rows, whether the basis must be rebuilt, systems solved,
# number of rows in ``R``, whether columns are pinned (see ``pin_column``), and whether the posture is switched off.
FREE_COUNT, BASIS_COUNT, BASIS_STALE, SOLVES, STIFF_COUNT, ANY_PINNED, NO_POSTURE = 0, 1, 2, 3, 4, 5, 6
STATES = 7
INDEPENDENT = F(1e-9)  # relative length of a row's remainder above which the row is independent of the basis
ZERO_ROW = F(1e-12)  # length of a row (reaches or radians a radian) that is rounding
DEPENDENT_COLUMN = F(1e-6)  # squared remainder of a unit vector below which the basis already holds its column
STIFF_SHARE = F(0.1)  # squared remainder of a row of ``R`` below which it is an error of finite differences
REORTHOGONALIZE = F(1e-2)  # relative remainder of a row below which it is orthogonalised again


class Levels(NamedTuple):
    """Scratch memory of a step of the hierarchy: m rows, n columns. ``v`` and ``state`` are described above.

    Functions of this folder take it as ``h``. A column is a column of the Jacobian or a slack (see ``inequalities``).

    ``G``: rows of all levels, scaled by the columns' stiffness and permuted.
    ``e``: right side of each row. ``s``: residual e - G x of the step x.
    ``B``: orthonormal basis. ``L``: rows of the current level in that basis. ``A``, ``c``: linear system of the level.
    ``best``, ``errors``: error of each level, then of the posture, at the best pose and at the current pose.
    ``dampings``: damping of each level, then of the posture, while polishing. ``damping_floors``: their lower bounds.
    ``constrains``: 1 if a row constrains the levels below; 0 if its level constrains them only by ``R``.
    ``active_bounds``: by column of the pose, the bound that the last step of a level ended at (-1, 1), or 0.
    ``saved_errors``: errors to compare with later. ``saved_pose``: a pose, by variable.
    ``edges``: edge of the support polygon of each slack column (see ``inequalities``).
    ``R``: rows along directions that second derivatives make stiff (see ``newton``). Their squared length is the
    stiffness, relative to the least that counts.
    """

    G: NDArray[np.float64]
    e: NDArray[np.float64]
    s: NDArray[np.float64]
    B: NDArray[np.float64]
    L: NDArray[np.float64]
    A: NDArray[np.float64]
    c: NDArray[np.float64]
    R: NDArray[np.float64]
    best: NDArray[np.float64]
    errors: NDArray[np.float64]
    dampings: NDArray[np.float64]
    damping_floors: NDArray[np.float64]
    constrains: NDArray[np.float64]
    saved_errors: NDArray[np.float64]
    edges: NDArray[np.float64]
    saved_pose: NDArray[np.float64]
    active_bounds: NDArray[np.float64]
    v: NDArray[np.float64]
    state: NDArray[np.float64]


def levels_size(m: int, n: int) -> int:
    """Return the number of float64 that ``open_levels`` needs."""
    d = max(m, n)
    return m * n + 2 * m + (n + 1) * n + d * n + d * d + d + n * n + 7 * (m + 1) + 5 * n + VECTORS * n + STATES


@inline
def open_levels(scratch, m, n):
    """Return the arrays of ``Levels``, cut from scratch memory."""
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
        vector(scratch, a9, STATES),
    )


@device
def reset_columns(h):
    """Make all columns free; the basis has no rows of R."""
    h.state[FREE_COUNT] = F(h.v.shape[1])
    h.state[STIFF_COUNT] = F(0)
    h.state[ANY_PINNED] = F(0)


@device
def reset_column(h, k, low, high):
    """Set the bounds of column k, and its step to the value within them that is nearest to zero."""
    h.v[LOWER, k], h.v[UPPER, k] = low, high
    h.v[STEP, k] = min(max(F(0), low), high)
    h.v[ACTIVE_SIDE, k] = F(0)
    h.v[PERMANENT, k] = F(0)
    h.v[POSE_COLUMN, k] = F(k)


@device_dot
def dot_rows(A, i, B, j, n):
    """Return the dot product of two rows over the first n columns."""
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
def project_out(A, i, B, count, free, n):
    """Subtract from A[i] its projection onto the first ``count`` rows of B."""
    for c in range(count):
        u = dot_rows(A, i, B, c, free)
        add_row(A, i, -u, B, c, n)


@apart_dot
def extend_basis(B, G, L, i, free, base, count, least):
    """Extend the basis B by row i of G; L[i] stores the row's coordinates in the basis rows from ``base`` on.

    Modified Gram-Schmidt with reorthogonalisation. Products are over the free columns.

    Returns:
        The number of rows of the basis. It stays ``count`` if the row depends on the basis: if its squared remainder is
        below ``least``.
    """
    n = B.shape[1]
    whole = dot_rows(G, i, G, i, free)
    for c in range(base, count):
        L[i, c - base] = F(0)
    if count >= free or not whole > ZERO_ROW * ZERO_ROW:
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
        if left > REORTHOGONALIZE * REORTHOGONALIZE * before or left <= least:
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
def rebuild_basis(h, last):
    """Rebuild the basis of the first ``last`` rows of G and all rows of R over the free columns, if it is stale."""
    if h.state[BASIS_STALE] == F(0):
        return
    count = 0
    free = int(h.state[FREE_COUNT])
    for i in range(last):
        if h.constrains[i] != F(0):
            count = extend_basis(h.B, h.G, h.L, i, free, count, count, F(0))
    for i in range(int(h.state[STIFF_COUNT])):
        count = extend_basis(h.B, h.R, h.L, i, free, count, count, STIFF_SHARE)
    h.state[BASIS_COUNT] = F(count)
    h.state[BASIS_STALE] = F(0)


@device
def swap_columns(h, i, j):
    """Swap two columns."""
    if i == j:
        return
    for r in range(h.G.shape[0]):
        h.G[r, i], h.G[r, j] = h.G[r, j], h.G[r, i]
    for r in range(int(h.state[STIFF_COUNT])):
        h.R[r, i], h.R[r, j] = h.R[r, j], h.R[r, i]
    for r in range(VECTORS):
        h.v[r, i], h.v[r, j] = h.v[r, j], h.v[r, i]


@apart
def fix_column(h, i, side):
    """Fix column i at its lower (-1) or upper (1) bound."""
    last = int(h.state[FREE_COUNT]) - 1
    h.v[ACTIVE_SIDE, i] = side
    h.v[STEP, i] = h.v[UPPER, i] if side > F(0) else h.v[LOWER, i]
    swap_columns(h, i, last)
    h.state[FREE_COUNT] = F(last)
    h.state[BASIS_STALE] = F(1)


@apart
def pin_column(h, i, side):
    """Pin column i at its bound for the rest of a level: add its unit vector to the basis, without a rebuild.

    If the basis already contains it, only rounding moved the column, and it is fixed at once.
    """
    free = int(h.state[FREE_COUNT])
    count = int(h.state[BASIS_COUNT])
    for k in range(free):
        h.B[count, k] = F(k == i)
    for _ in range(2):
        project_out(h.B, count, h.B, count, free, free)
    left = dot_rows(h.B, count, h.B, count, free)
    h.v[ACTIVE_SIDE, i] = side
    h.v[STEP, i] = h.v[UPPER, i] if side > F(0) else h.v[LOWER, i]
    h.state[ANY_PINNED] = F(1)
    if left < DEPENDENT_COLUMN or count + 1 >= free:
        fix_pinned(h)
        return
    size = F(1) / math.sqrt(left)
    for k in range(free):
        h.B[count, k] *= size
    h.state[BASIS_COUNT] = F(count + 1)


@device
def fix_pinned(h):
    """Fix all pinned columns at their bounds."""
    k = int(h.state[FREE_COUNT]) - 1
    while k >= 0 and h.state[ANY_PINNED] != F(0):
        if h.v[ACTIVE_SIDE, k] != F(0):
            fix_column(h, k, h.v[ACTIVE_SIDE, k])
        k -= 1
    h.state[ANY_PINNED] = F(0)


@apart
def release_column(h, i):
    """Release column i from its bound."""
    first = int(h.state[FREE_COUNT])
    h.v[ACTIVE_SIDE, i] = F(0)
    swap_columns(h, i, first)
    h.state[FREE_COUNT] = F(first + 1)
    h.state[BASIS_STALE] = F(1)
