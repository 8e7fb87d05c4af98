"""Linear systems with a matrix that may be singular, such as J Jᵀ of a straight arm, by pivoted elimination."""

import numpy as np

from synovia.kernels.compiler.jit import F, device_dot

SMALLEST_PIVOT = F(1e-12)  # fraction of the largest pivot; for A = J Jᵀ, about 1e-6 of J's largest singular value


@device_dot
def solve_semidefinite(A, b, order, n):
    """Solve A x = b for a symmetric positive semi-definite (n, n) block A with b in its range.

    Eliminate symmetrically, the largest pivot first, without damping. When all remaining pivots are rounding errors,
    set their unknowns to zero, which also solves the system. Both triangles of A are read and overwritten, and x
    replaces b. The row numbers of A in the order of their pivots are written to ``order`` (n,), as floats.

    Returns:
        The rank.
    """
    for i in range(n):
        order[i] = F(i)
    rank = 0
    least = F(0)
    for r in range(n):
        best = r
        for i in range(r + 1, n):
            if A[np.int64(order[i]), np.int64(order[i])] > A[np.int64(order[best]), np.int64(order[best])]:
                best = i
        order[r], order[best] = order[best], order[r]
        p = np.int64(order[r])
        if r == 0:
            least = SMALLEST_PIVOT * A[p, p]
        if not A[p, p] > max(least, F(1e-300)):
            break
        rank = r + 1
        for k in range(r + 1, n):
            i = np.int64(order[k])
            f = A[i, p] / A[p, p]
            b[i] -= f * b[p]
            for j in range(r + 1, n):
                c = np.int64(order[j])
                A[i, c] -= f * A[p, c]
    for r in range(n - 1, -1, -1):
        p = np.int64(order[r])
        if r >= rank:
            b[p] = F(0)
            continue
        s = b[p]
        for k in range(r + 1, rank):
            i = np.int64(order[k])
            s -= A[p, i] * b[i]
        b[p] = s / A[p, p]
    return rank
