"""Systems whose matrix may be singular, as J Jᵀ of a straight arm: factorisation with the largest pivot first."""

import numpy as np

from synovia.kernels.compiler.jit import F, device_dot

RANK = F(1e-12)  # of the largest pivot: singular values below a millionth of the largest count as zero


@device_dot
def solve_semidefinite(A, b, order, n):
    """Solve A x = b in place for a symmetric positive semi-definite (n, n) block A with b in its range.

    A is given by both triangles and overwritten. Symmetric elimination, the largest pivot first. It ends when no pivot
    is left that is more than rounding: the unknowns that remain are set to zero, which is a solution too. Nothing is
    damped.

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
            least = RANK * A[p, p]
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
