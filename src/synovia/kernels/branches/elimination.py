"""The equations of a closed loop of six joints, and their determinant.

With Z the motions of the joints a ... f, and G the fixed transforms between them, the loop is

    Za Ga Zb Gb Zc Gc Zd Gd Ze Ge Zf Gf = 1.

Zf leaves its own axis in place: a point p and a direction l. So the last two columns of

    Gc Zd Gd Ze Ge = Zc⁻¹ Gb⁻¹ Zb⁻¹ Ga⁻¹ Za⁻¹ Gf⁻¹

do not depend on f. Raghavan & Roth combine them to 14 equations: p, l, p·p, p·l, p×l and (p·p) l - 2 (p·l) p. Both
sides are linear in the products of (s, c, 1) of the joints, with sine s and cosine c; a slide has (x², x, 1) instead.
Values at three places of each joint give the coefficients for any chain.

The left side has nine products of d and e. Six vectors that are orthogonal to eight of them (without the constant)
eliminate d and e. In the six equations left, c is hidden: for a fixed c they are polynomials of degree 2 in u and v,
the tangents of half the angles of a and b (or the slides themselves). With each equation times u there are twelve for
twelve products, and their determinant vanishes at each solution. It is a trigonometric polynomial of degree 8 in c.

References:
    Raghavan & Roth (1993), *Inverse kinematics of the general 6R manipulator and related linkages*; Manocha & Canny
    (1994), *Efficient inverse kinematics for general 6R manipulators*.
"""

import math

from synovia.kernels.branches.memory import ROWS, SAMPLES
from synovia.kernels.compiler.jit import F, apart_dot, device, device_dot, inline
from synovia.kernels.math.rotations import PI, apply, apply_t, column, frame_of
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, cross, dot, scale, sub

HALF3 = F(math.sqrt(0.75))
COSINES, SINES = (F(1), F(-0.5), F(-0.5)), (F(0), HALF3, -HALF3)  # three equal angles, where a hinge is sampled
PLACES = (F(0), F(1), F(-1))  # where a slide is sampled
LEAST_PIVOT = F(1e-300)
DEPENDENT = F(1e-13)  # a row counts as a combination of others if it is below this fraction of the largest row


@inline
def sample_point(slide, k, p, side):
    """Return p moved by a joint at its sample value k; moved back if ``side`` is -1."""
    if slide:
        return p[0], p[1], p[2] + side * PLACES[k]
    c, s = COSINES[k], side * SINES[k]
    return c * p[0] - s * p[1], s * p[0] + c * p[1], p[2]


@inline
def sample_direction(slide, k, l, side):
    """Return the direction l, moved as ``sample_point`` moves points."""
    return l if slide else sample_point(False, k, l, side)


@inline
def put_rows(V, i, p, l):
    """Write the 14 values of a point p and a direction l, see the module, to row i of V."""
    pp, pl = dot(p, p), dot(p, l)
    m = cross(p, l)
    n = sub(scale(pp, l), scale(F(2) * pl, p))
    V[i, 0], V[i, 1], V[i, 2] = p[0], p[1], p[2]
    V[i, 3], V[i, 4], V[i, 5] = l[0], l[1], l[2]
    V[i, 6], V[i, 7] = pp, pl
    V[i, 8], V[i, 9], V[i, 10] = m[0], m[1], m[2]
    V[i, 11], V[i, 12], V[i, 13] = n[0], n[1], n[2]


@inline
def to_coefficients(V, i, step, slide):
    """Replace three rows of V, with samples of a joint, by the coefficients of (s, c, 1), or of (x², x, 1) for a slide.

    The rows are i, i + ``step`` and i + 2 ``step``.
    """
    for r in range(ROWS):
        f0, f1, f2 = V[i, r], V[i + step, r], V[i + 2 * step, r]
        if slide:
            V[i, r], V[i + step, r], V[i + 2 * step, r] = F(0.5) * (f1 + f2) - f0, F(0.5) * (f1 - f2), f0
        else:
            third = F(1) / F(3)
            V[i, r] = (f1 - f2) / (F(2) * HALF3)
            V[i + step, r] = third * (F(2) * f0 - f1 - f2)
            V[i + 2 * step, r] = third * (f0 + f1 + f2)


@inline
def right_inverse(loop, i, p):
    """Return the point p in the frame after the fixed transform i."""
    R, o = frame_of(loop, i)
    return apply_t(R, sub(p, o))


@device
def write_pair(loop, slides, Y):
    """Write the coefficients of the nine products of d and e, (9, 14)."""
    Rc, oc = frame_of(loop, 2)
    Rd, od = frame_of(loop, 3)
    Re, oe = frame_of(loop, 4)
    z = column(Re, 2)
    for j in range(3):
        pe = add(od, apply(Rd, sample_point(slides[4] != F(0), j, oe, F(1))))
        le = apply(Rd, sample_direction(slides[4] != F(0), j, z, F(1)))
        for i in range(3):
            p = add(oc, apply(Rc, sample_point(slides[3] != F(0), i, pe, F(1))))
            l = apply(Rc, sample_direction(slides[3] != F(0), i, le, F(1)))
            put_rows(Y, 3 * i + j, p, l)
    for j in range(3):
        to_coefficients(Y, j, 3, slides[3] != F(0))
    for i in range(3):
        to_coefficients(Y, 3 * i, 1, slides[4] != F(0))


@device
def write_triple(loop, slides, X):
    """Write the coefficients of the 27 products of a, b and c, (27, 14)."""
    Rf, of = frame_of(loop, 5)
    p0 = apply_t(Rf, scale(F(-1), of))
    l0 = Rf[6], Rf[7], Rf[8]
    Ra, _ = frame_of(loop, 0)
    Rb, _ = frame_of(loop, 1)
    a_slides, b_slides = slides[0] != F(0), slides[1] != F(0)
    for i in range(3):
        p1 = right_inverse(loop, 0, sample_point(a_slides, i, p0, F(-1)))
        l1 = apply_t(Ra, sample_direction(a_slides, i, l0, F(-1)))
        for j in range(3):
            p2 = right_inverse(loop, 1, sample_point(b_slides, j, p1, F(-1)))
            l2 = apply_t(Rb, sample_direction(b_slides, j, l1, F(-1)))
            for k in range(3):
                p, l = sample_point(False, k, p2, F(-1)), sample_point(False, k, l2, F(-1))
                put_rows(X, 9 * i + 3 * j + k, p, l)
    for i in range(9):
        to_coefficients(X, i, 9, a_slides)
    for i in range(3):
        for k in range(3):
            to_coefficients(X, 9 * i + k, 3, b_slides)
    for i in range(9):
        to_coefficients(X, 3 * i, 1, False)


@device_dot
def write_orthogonal(Y, N):
    """Write six vectors (6, 14) orthogonal to the first eight rows of Y, which are overwritten (Householder).

    If rows are dependent, more than six vectors are orthogonal to them; six arbitrary ones are written.

    Returns:
        Number of independent rows.
    """
    rank = 0
    largest = F(0)
    for k in range(8):
        size = F(0)
        for r in range(rank, ROWS):
            size += Y[k, r] * Y[k, r]
        size = math.sqrt(size)
        largest = max(largest, size)
        if size <= DEPENDENT * largest:
            continue
        head = Y[k, rank] + (size if Y[k, rank] >= F(0) else -size)
        square = head * head + size * size - Y[k, rank] * Y[k, rank]
        unit = math.sqrt(F(2) / square)
        Y[rank, rank] = head * unit
        for r in range(rank + 1, ROWS):
            Y[rank, r] = Y[k, r] * unit
        for j in range(k + 1, 8):
            t = F(0)
            for r in range(rank, ROWS):
                t += Y[rank, r] * Y[j, r]
            for r in range(rank, ROWS):
                Y[j, r] -= t * Y[rank, r]
        rank += 1
    for i in range(6):
        for r in range(ROWS):
            N[i, r] = F(0)
            if rank < 8 and r >= rank:
                _, N[i, r] = sincos(F(i * i + 2) * F(r + 3) + F(r))  # arbitrary numbers
        if rank == 8:
            N[i, 8 + i] = F(1)
        for k in range(rank - 1, -1, -1):
            t = F(0)
            for r in range(k, ROWS):
                t += Y[k, r] * N[i, r]
            for r in range(k, ROWS):
                N[i, r] -= t * Y[k, r]
    return rank


@device_dot
def write_equations(N, X, slides, E):
    """Write the six equations, (6, 27): coefficients of the products (u², u, 1) x (v², v, 1) x (sine, cosine, 1)."""
    for e in range(6):
        for m in range(27):
            t = F(0)
            for r in range(ROWS):
                t += N[e, r] * X[m, r]
            E[e, m] = t
        if slides[0] == F(0):
            to_half_angle(E, e, 0, 9)
        if slides[1] == F(0):
            for i in range(3):
                to_half_angle(E, e, 9 * i, 3)


@inline
def to_half_angle(E, e, first, step):
    """Change equation e, a row of E, from an angle to u = tan(angle / 2), and multiply it by 1 + u².

    The coefficients of (sine, cosine, 1) become those of (u², u, 1). There are ``step`` of each: they begin in the
    columns ``first``, ``first + step`` and ``first + 2 * step``.
    """
    for i in range(first, first + step):
        s, c, one = E[e, i], E[e, i + step], E[e, i + 2 * step]
        E[e, i], E[e, i + step], E[e, i + 2 * step] = one - c, F(2) * s, one + c


@apart_dot
def factor(E, sc, A, M):
    """Write the factors L and U of the last nine columns of the 12x12 matrix at an angle; return the determinant.

    The first three columns are eliminated from both copies of the equations at once.

    Args:
        E: The equations.
        sc: (sine, cosine) of the angle of c.
        A: Scratch memory, (6, 9).
        M: Factors, (9, 9); written.
    """
    s, c = sc
    for e in range(6):
        for m in range(9):
            A[e, m] = s * E[e, 3 * m] + c * E[e, 3 * m + 1] + E[e, 3 * m + 2]
    det = F(1)
    for k in range(3):
        p, most = k, abs(A[k, k])
        for i in range(k + 1, 6):
            if abs(A[i, k]) > most:
                p, most = i, abs(A[i, k])
        if p != k:
            for j in range(k, 9):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        det *= A[k, k]
        inverse = F(1) / A[k, k] if most > LEAST_PIVOT else F(0)
        for i in range(k + 1, 6):
            t = A[i, k] * inverse
            A[i, k] = F(0)
            for j in range(k + 1, 9):
                A[i, j] -= t * A[k, j]
    for i in range(3):
        for j in range(9):
            M[i, j] = A[3 + i, 3 + j] if j < 6 else F(0)
            M[3 + i, j] = A[i, j]
            M[6 + i, j] = A[3 + i, j] if j >= 3 else F(0)
    for k in range(9):
        p, most = k, abs(M[k, k])
        for i in range(k + 1, 9):
            if abs(M[i, k]) > most:
                p, most = i, abs(M[i, k])
        if p != k:
            det = -det
            for j in range(9):
                M[k, j], M[p, j] = M[p, j], M[k, j]
        det *= M[k, k]
        inverse = F(1) / M[k, k] if most > LEAST_PIVOT else F(0)
        for i in range(k + 1, 9):
            t = M[i, k] * inverse
            if t != F(0):
                for j in range(k + 1, 9):
                    M[i, j] -= t * M[k, j]
    return det


@device
def sample_determinant(E, A, M, samples):
    """Write the determinant at equal steps of the angle of c to ``samples``."""
    for i in range(SAMPLES):
        samples[i] = factor(E, sincos(F(2) * PI * F(i) / F(SAMPLES)), A, M)


@device
def null_vector(M, x):
    """Write the vector that the factors in M map nearest to zero: one step of inverse iteration."""
    for i in range(9):
        x[i] = F(1)
    for i in range(8, -1, -1):
        for j in range(i + 1, 9):
            x[i] -= M[i, j] * x[j]
        d = M[i, i]
        if abs(d) < F(1e-14):
            d = F(1e-14) if d >= F(0) else F(-1e-14)
        x[i] /= d
        if abs(x[i]) > F(1e100):  # only the direction counts
            for j in range(9):
                x[j] *= F(1e-100)
