"""The linear algebra of a hierarchy: rows of all levels, columns held at bounds, and a basis of the upper levels' rows.

Columns are permuted: free columns come first, so that every sum over them is a plain loop, and columns that are fixed
at a bound come last. The basis is orthonormal over the free columns, but its rows have entries for all columns. So the
projection of a gradient leaves the multiplier of the bound at each fixed column.
"""

import math

from synovia.kernels.compiler.jit import F, apart, apart_dot, device, device_dot, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.layout import (
    ACTIVE_SIDE,
    ANY_PINNED,
    BASIS_COUNT,
    BASIS_STALE,
    FREE_COUNT,
    GRADIENT,
    LEVELS,
    PERMANENT,
    POSE_COLUMN,
    STEP,
    STEP_LOWER,
    STEP_UPPER,
    STIFF_COUNT,
    VECTORS,
    size_of_all,
)

INDEPENDENT = F(1e-9)  # relative length of a row's remainder above which the row is independent of the basis
ZERO_ROW = F(1e-12)  # rows shorter than this (length scales or radians per radian) are rounding
DEPENDENT_COLUMN = F(1e-6)  # squared remainder of a unit vector below which the basis already contains its column
STIFF_SHARE = F(0.1)  # smallest squared remainder of a used row of ``R``; smaller ones are errors of finite differences
REORTHOGONALIZE = F(1e-2)  # relative remainder of a row below which it is orthogonalised again


Levels = record("Levels", LEVELS)
_NUMBERS = ("rows", "columns", "levels", "basis", "larger")
_open = cutter(Levels, LEVELS, _NUMBERS)


def _numbers(m, n):
    """Return the sizes of the tables of ``Levels`` for m rows and n columns."""
    return m, n, m + 1, n + 1, max(m, n)


_compiled_numbers = inline(_numbers)


def levels_size(m: int, n: int) -> int:
    """Return the number of float64 values that ``open_levels`` needs."""
    return size_of_all(LEVELS, dict(zip(_NUMBERS, _numbers(m, n), strict=True)))


@inline
def open_levels(scratch, m, n):
    """Return the scratch memory of a step of the hierarchy with m rows and n columns: the tables of ``layout.LEVELS``.

    Functions of this folder take it as ``h``. A column is a column of the Jacobian or a slack (see ``inequalities``).
    """
    return _open(scratch, _compiled_numbers(m, n))


@device
def reset_columns(h):
    """Make all columns free, and remove the rows of R from the basis."""
    h.state[FREE_COUNT] = F(h.v.shape[1])
    h.state[STIFF_COUNT] = F(0)
    h.state[ANY_PINNED] = F(0)


@device
def reset_column(h, k, low, high):
    """Set the bounds of column k, and its step to the value within them that is nearest to zero."""
    h.v[STEP_LOWER, k], h.v[STEP_UPPER, k] = low, high
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
    """Rebuild the basis, if it is stale, from the first ``last`` rows of G and all rows of R over the free columns."""
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
    h.v[STEP, i] = h.v[STEP_UPPER, i] if side > F(0) else h.v[STEP_LOWER, i]
    swap_columns(h, i, last)
    h.state[FREE_COUNT] = F(last)
    h.state[BASIS_STALE] = F(1)


@apart_dot
def pin_column(h, i, side, first, last, count):
    """Pin column i at its bound for the rest of a level: add its unit vector to the basis, without a rebuild.

    Rows BASIS_COUNT to ``count`` of the basis belong to the level (``add_level_rows``). A reflection makes all but one
    of them orthogonal to the unit vector, and a subtraction does the same for the last one (downdating of a QR
    factorisation, Golub & Van Loan, Matrix Computations, 12.5). If the basis already contains the unit vector, only
    rounding moved the column, and the column is fixed at once.

    Args:
        h: See ``open_levels``.
        i: The column.
        side: -1 for its lower bound, 1 for its upper bound.
        first: First row of the level.
        last: Last row of the level plus 1; ``first`` for a level without rows in the basis.
        count: Number of rows of the basis, including those of the level.

    Returns:
        The new number of rows of the basis; -1 if the rows of the level must be added again.
    """
    free = int(h.state[FREE_COUNT])
    base = int(h.state[BASIS_COUNT])
    B, L, r = h.B, h.L, count - base
    h.v[ACTIVE_SIDE, i] = side
    h.v[STEP, i] = h.v[STEP_UPPER, i] if side > F(0) else h.v[STEP_LOWER, i]
    h.state[ANY_PINNED] = F(1)
    for k in range(free):
        B[count, k] = F(k == i)
    for _ in range(2):
        project_out(B, count, B, base, free, free)
    left = dot_rows(B, count, B, count, free)
    if left < DEPENDENT_COLUMN or base + 1 >= free:
        fix_pinned(h)
        return -1
    size = F(1) / math.sqrt(left)
    for k in range(free):
        B[count, k] *= size
    held = F(0)  # squared length of the part of the vector that the rows of the level span
    for a in range(r):
        h.c[a] = dot_rows(B, base + a, B, count, free)
        held += h.c[a] * h.c[a]
    keeps = F(1) - held > REORTHOGONALIZE
    if r > 0 and keeps and held > F(0):
        part = -math.copysign(math.sqrt(held), h.c[0])
        h.c[0] -= part
        per = F(1) / abs(part * h.c[0])  # 2 / |c|² of the reflection
        reflect_level(h, base, r, free, per)
        for j in range(first, last):
            total = F(0)
            for a in range(r):
                total += L[j, a] * h.c[a]
            for a in range(r):
                L[j, a] -= per * total * h.c[a]
        add_row(B, base, -part, B, count, free)
        size = math.sqrt(dot_rows(B, base, B, base, free))
        for k in range(free):
            B[base, k] /= size
        for j in range(first, last):
            L[j, 0] *= size
    for k in range(free):
        B[base, k], B[count, k] = B[count, k], B[base, k]
    for j in range(first, last if r > 1 and keeps else first):
        moved = L[j, 0]
        for a in range(r - 1):
            L[j, a] = L[j, a + 1]
        L[j, r - 1] = moved
    h.state[BASIS_COUNT] = F(base + 1)
    return count + 1 if keeps or r == 0 else -1


@device_dot
def reflect_level(h, base, r, free, per):
    """Subtract ``per`` c cᵀ B from the r rows of B from ``base`` on; GRADIENT is overwritten."""
    for k in range(free):
        h.v[GRADIENT, k] = F(0)
    for a in range(r):
        add_row(h.v, GRADIENT, h.c[a], h.B, base + a, free)
    for a in range(r):
        add_row(h.B, base + a, -per * h.c[a], h.v, GRADIENT, free)


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
