"""Small symmetric linear systems: loops for any size, and an unrolled factorisation for six unknowns."""

from synovia.kernels.compiler.jit import F, apart_dot, device_dot, inline


@device_dot
def gram(J, A, damping):
    """Write A = J Jᵀ + damping 1, lower triangle."""
    m, n = J.shape
    for i in range(m):
        for j in range(i + 1):
            s = F(0)
            for k in range(n):
                s += J[i, k] * J[j, k]
            A[i, j] = s
        A[i, i] += damping


@device_dot
def gram_t(J, A, damping):
    """Write A = Jᵀ J + damping 1, lower triangle."""
    m, n = J.shape
    for i in range(n):
        for j in range(i + 1):
            A[i, j] = F(0)
        A[i, i] = damping
    for k in range(m):
        for i in range(n):
            u = J[k, i]
            if u != F(0):
                for j in range(i + 1):
                    A[i, j] += u * J[k, j]


@device_dot
def transpose(A):
    """Transpose a square matrix in place."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j], A[j, i] = A[j, i], A[i, j]


@device_dot
def solve_ldl(A, b, n):
    """Solve A x = b in place for the first n unknowns by A = L D Lᵀ, without square roots.

    A is symmetric positive definite, given by its lower triangle, and overwritten with the factors. If rounding makes a
    pivot zero or negative, its unknown becomes 0.
    """
    for i in range(n):
        for j in range(i):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            A[i, j] = s  # holds L[i, j] D[j] until the row is done
        d = A[i, i]
        for j in range(i):
            u = A[i, j]
            A[i, j] = u * A[j, j]  # the diagonal holds 1 / D
            d -= u * A[i, j]
        A[i, i] = F(1) / d if d > F(1e-300) else F(0)
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= A[i, k] * b[k]
        b[i] = s
    for i in range(n - 1, -1, -1):
        s = b[i] * A[i, i]
        for k in range(i + 1, n):
            s -= A[k, i] * b[k]
        b[i] = s


@apart_dot
def solve_part(A, b, n):
    """Call ``solve_ldl``. This function is compiled once, not into each caller."""
    solve_ldl(A, b, n)


@device_dot
def times(J, x, out):
    """Write out = J x."""
    for i in range(J.shape[0]):
        s = F(0)
        for k in range(J.shape[1]):
            s += J[i, k] * x[k]
        out[i] = s


@device_dot
def times_t(J, x, out):
    """Write out = Jᵀ x."""
    for k in range(J.shape[1]):
        out[k] = F(0)
    for i in range(J.shape[0]):
        u = x[i]
        for k in range(J.shape[1]):
            out[k] += J[i, k] * u


@inline
def factor6(one, a):
    """Return the factors of a 6x6 symmetric positive definite A = L D Lᵀ; a is its lower triangle row by row (21).

    The code is unrolled, so that all values stay in registers: seven times faster than loops. ``one`` sets the float
    type.

    Returns:
        L below its diagonal of ones, row by row (15), then the inverses of D (6).
    """
    a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55 = a
    d0 = one / a00
    l10, l20, l30, l40, l50 = a10 * d0, a20 * d0, a30 * d0, a40 * d0, a50 * d0
    d1 = one / (a11 - l10 * a10)
    u21, u31, u41, u51 = a21 - l20 * a10, a31 - l30 * a10, a41 - l40 * a10, a51 - l50 * a10
    l21, l31, l41, l51 = u21 * d1, u31 * d1, u41 * d1, u51 * d1
    d2 = one / (a22 - l20 * a20 - l21 * u21)
    u32 = a32 - l30 * a20 - l31 * u21
    u42 = a42 - l40 * a20 - l41 * u21
    u52 = a52 - l50 * a20 - l51 * u21
    l32, l42, l52 = u32 * d2, u42 * d2, u52 * d2
    d3 = one / (a33 - l30 * a30 - l31 * u31 - l32 * u32)
    u43 = a43 - l40 * a30 - l41 * u31 - l42 * u32
    u53 = a53 - l50 * a30 - l51 * u31 - l52 * u32
    l43, l53 = u43 * d3, u53 * d3
    d4 = one / (a44 - l40 * a40 - l41 * u41 - l42 * u42 - l43 * u43)
    u54 = a54 - l50 * a40 - l51 * u41 - l52 * u42 - l53 * u43
    l54 = u54 * d4
    d5 = one / (a55 - l50 * a50 - l51 * u51 - l52 * u52 - l53 * u53 - l54 * u54)
    return l10, l20, l21, l30, l31, l32, l40, l41, l42, l43, l50, l51, l52, l53, l54, d0, d1, d2, d3, d4, d5


@inline
def finish6(f, b):
    """Solve A x = b with the factors f of ``factor6``."""
    l10, l20, l21, l30, l31, l32, l40, l41, l42, l43, l50, l51, l52, l53, l54, d0, d1, d2, d3, d4, d5 = f
    y0, b1, b2, b3, b4, b5 = b
    y1 = b1 - l10 * y0
    y2 = b2 - l20 * y0 - l21 * y1
    y3 = b3 - l30 * y0 - l31 * y1 - l32 * y2
    y4 = b4 - l40 * y0 - l41 * y1 - l42 * y2 - l43 * y3
    y5 = b5 - l50 * y0 - l51 * y1 - l52 * y2 - l53 * y3 - l54 * y4
    x5 = y5 * d5
    x4 = y4 * d4 - l54 * x5
    x3 = y3 * d3 - l43 * x4 - l53 * x5
    x2 = y2 * d2 - l32 * x3 - l42 * x4 - l52 * x5
    x1 = y1 * d1 - l21 * x2 - l31 * x3 - l41 * x4 - l51 * x5
    x0 = y0 * d0 - l10 * x1 - l20 * x2 - l30 * x3 - l40 * x4 - l50 * x5
    return x0, x1, x2, x3, x4, x5
