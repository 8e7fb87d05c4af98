"""One step of Levenberg-Marquardt for thirty-two arms side by side; see ``arm``.

Arrays are [number, lane]; each loop over lanes is straight-line code, which LLVM turns into vector instructions. The
type of the arrays decides the precision: every constant is wrapped in ``K``.
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import inline
from synovia.kernels.layout import (
    DAMPING,
    ERROR_DAMPING,
    GOAL_ORIENTATION,
    GOAL_ORIGIN,
    HINGE,
    KIND,
    LOWER,
    ORIENTATION,
    ORIGIN,
    PARTS,
    POSITION_WEIGHT,
    ROTATION,
    ROTATION_WEIGHT,
    UPPER,
)
from synovia.kernels.math.linear import solve6_of
from synovia.kernels.math.rotations import apply, load_rotation, matmul, matmul_t, turn_z
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, scale, sub

LANES = 32  # 8 are too few to vectorise, 64 no longer fit in the nearest cache
BACK = 1e-6  # cos²(θ/2) below which an error is taken as this close to half a turn
FORWARD = 0x7FFFFFFF  # a row number that is known not to count from the end


@inline
def lane_sincos(K, x):
    """Return (sin x, cos x) as ``sincos`` does, in the type K."""
    t = x * K(0.6366197723675814)
    n = np.int32(t + (K(0.5) if t >= K(0) else K(-0.5)))
    m = K(n)
    r = x - m * K(1.5707963267341256) - m * K(6.077100506303966e-11) - m * K(2.0222662487959506e-21)
    z = r * r
    s = K(-2.50507477628578072866e-8) + z * K(1.58962301576546568060e-10)
    s = K(-1.98412698295895385996e-4) + z * (K(2.75573136213857245213e-6) + z * s)
    s = r + r * z * (K(-1.66666666666666307295e-1) + z * (K(8.33333333332211858878e-3) + z * s))
    c = K(2.08757008419747316778e-9) + z * K(-1.13585365213876817300e-11)
    c = K(2.48015872888517045348e-5) + z * (K(-2.75573141792967388112e-7) + z * c)
    c = K(1) - K(0.5) * z + z * z * (K(4.16666666666665929218e-2) + z * (K(-1.38888888888730564116e-3) + z * c))
    odd = (n & np.int32(1)) != 0
    a = c if odd else s
    b = s if odd else c
    a = -a if (n & np.int32(2)) != 0 else a
    b = -b if ((n + np.int32(1)) & np.int32(2)) != 0 else b
    return a, b


@inline
def lane_rotation(X, r, l):
    """Return the matrix in rows r to r + 8 of lane l."""
    return (
        X[r, l],
        X[r + 1, l],
        X[r + 2, l],
        X[r + 3, l],
        X[r + 4, l],
        X[r + 5, l],
        X[r + 6, l],
        X[r + 7, l],
        X[r + 8, l],
    )


@inline
def lane_vector(X, r, l):
    """Return the vector in rows r to r + 2 of lane l."""
    return X[r, l], X[r + 1, l], X[r + 2, l]


@inline
def put_vector(X, r, l, v):
    """Write a vector to rows r to r + 2 of lane l."""
    X[r, l] = v[0]
    X[r + 1, l] = v[1]
    X[r + 2, l] = v[2]


@inline
def put_rotation(X, r, l, A):
    """Write a matrix to rows r to r + 8 of lane l."""
    put_vector(X, r, l, (A[0], A[1], A[2]))
    put_vector(X, r + 3, l, (A[3], A[4], A[5]))
    put_vector(X, r + 6, l, (A[6], A[7], A[8]))


@inline
def as_type(K, v):
    """Return a vector in the type K."""
    return K(v[0]), K(v[1]), K(v[2])


@inline
def as_type_9(K, A):
    """Return a matrix in the type K."""
    return K(A[0]), K(A[1]), K(A[2]), K(A[3]), K(A[4]), K(A[5]), K(A[6]), K(A[7]), K(A[8])


@inline
def lane_forward(problem, Q, P, axes):
    """Write the last joint's frame (P: rotation 9, origin 3), and axis and origin of every joint (axes: 6 each)."""
    K = P.dtype.type
    tree = problem.tree
    for r in range(12):
        one = K(1) if r == 0 or r == 4 or r == 8 else K(0)
        for l in range(LANES):
            P[r, l] = one
    for i in range(tree.ints.shape[0]):
        G = as_type_9(K, load_rotation(tree.fixed, i, ORIENTATION))
        g = as_type(K, load(tree.fixed, i, ORIGIN))
        turns = K(1) if tree.ints[i, KIND] == HINGE else K(0)
        a = (6 * i) & FORWARD
        for l in range(LANES):
            R = lane_rotation(P, 0, l)
            p = add(lane_vector(P, 9, l), apply(R, g))
            R = matmul(R, G)
            x = Q[i, l]
            s, c = lane_sincos(K, turns * x)
            z = (R[2], R[5], R[8])
            p = axpy((K(1) - turns) * x, z, p)
            put_rotation(P, 0, l, turn_z(R, s, c))
            put_vector(P, 9, l, p)
            put_vector(axes, a, l, z)
            put_vector(axes, a + 3, l, p)


@inline
def lane_errors(problem, P, goal, E):
    """Write the weighted error (E: 6), squared distance and angle, and the cost; P's origin becomes the goal's."""
    K = P.dtype.type
    G = as_type_9(K, load_rotation(problem.goal_data, 0, GOAL_ORIENTATION))
    g = as_type(K, load(problem.goal_data, 0, GOAL_ORIGIN))
    wp, wr = K(problem.goal_data[0, POSITION_WEIGHT] / problem.reach), K(problem.goal_data[0, ROTATION_WEIGHT])
    placed = K(1) if wp > K(0) else K(0)
    turned = K(1) if problem.goals[0, PARTS] & ROTATION else K(0)
    for l in range(LANES):
        R = lane_rotation(P, 0, l)
        p = add(lane_vector(P, 9, l), apply(R, g))
        put_vector(P, 9, l, p)
        d = scale(placed, sub(lane_vector(goal, 9, l), p))
        M = matmul_t(lane_rotation(goal, 0, l), matmul(R, G))
        trace = M[0] + M[4] + M[8]
        half = K(0.25) * (trace + K(1))  # cos²(θ/2)
        k = turned * K(0.5) / math.sqrt(half if half > K(BACK) else K(BACK))
        w = scale(k, (M[7] - M[5], M[2] - M[6], M[3] - M[1]))
        ww = dot(w, w)
        E[6, l] = dot(d, d)
        E[7, l] = ww if trace > K(0) else turned * (K(3) - trace)
        d = scale(wp, d)
        w = scale(wr, w)
        put_vector(E, 0, l, d)
        put_vector(E, 3, l, w)
        E[8, l] = dot(d, d) + dot(w, w)


@inline
def lane_normal(problem, Q, P, axes, E, J, S):
    """Write the Jacobian without joints that are held at a limit (J), and J Jᵀ + λ (S: 21, lower triangle)."""
    K = P.dtype.type
    constant, factor = K(problem.own[DAMPING]), K(problem.own[ERROR_DAMPING])
    wp, wr, reach = (
        K(problem.goal_data[0, POSITION_WEIGHT] / problem.reach),
        K(problem.goal_data[0, ROTATION_WEIGHT]),
        K(problem.reach),
    )
    for r in range(21):
        diagonal = r == 0 or r == 2 or r == 5 or r == 9 or r == 14 or r == 20
        for l in range(LANES):
            S[r, l] = constant + factor * E[8, l] if diagonal else K(0)
    for i in range(problem.tree.ints.shape[0]):
        low, high = K(problem.limits[i, LOWER]), K(problem.limits[i, UPPER])
        turns = K(1) if problem.tree.ints[i, KIND] == HINGE else K(0)
        moves = (K(1) - turns) * reach
        a = (6 * i) & FORWARD
        for l in range(LANES):
            z = lane_vector(axes, a, l)
            arm = cross(z, sub(lane_vector(P, 9, l), lane_vector(axes, a + 3, l)))
            u = scale(wp, axpy(turns, arm, scale(moves, z)))
            w = scale(wr * turns, z)
            x = Q[i, l]
            g = dot(u, lane_vector(E, 0, l)) + dot(w, lane_vector(E, 3, l))
            free = K(0) if ((x <= low) & (g < K(0))) | ((x >= high) & (g > K(0))) else K(1)
            u = scale(free, u)
            w = scale(free, w)
            put_vector(J, a, l, u)
            put_vector(J, a + 3, l, w)
            S[0, l] += u[0] * u[0]
            S[1, l] += u[1] * u[0]
            S[2, l] += u[1] * u[1]
            S[3, l] += u[2] * u[0]
            S[4, l] += u[2] * u[1]
            S[5, l] += u[2] * u[2]
            S[6, l] += w[0] * u[0]
            S[7, l] += w[0] * u[1]
            S[8, l] += w[0] * u[2]
            S[9, l] += w[0] * w[0]
            S[10, l] += w[1] * u[0]
            S[11, l] += w[1] * u[1]
            S[12, l] += w[1] * u[2]
            S[13, l] += w[1] * w[0]
            S[14, l] += w[1] * w[1]
            S[15, l] += w[2] * u[0]
            S[16, l] += w[2] * u[1]
            S[17, l] += w[2] * u[2]
            S[18, l] += w[2] * w[0]
            S[19, l] += w[2] * w[1]
            S[20, l] += w[2] * w[2]


@inline
def lane_step(problem, Q, E, J, S):
    """Take the step dq = Jᵀ (J Jᵀ + λ)⁻¹ e in every lane, and clamp."""
    K = Q.dtype.type
    for l in range(LANES):
        A = (
            S[0, l], S[1, l], S[2, l], S[3, l], S[4, l], S[5, l], S[6, l], S[7, l], S[8, l], S[9, l], S[10, l],
            S[11, l], S[12, l], S[13, l], S[14, l], S[15, l], S[16, l], S[17, l], S[18, l], S[19, l], S[20, l],
        )  # fmt: skip
        y = solve6_of(K(1), A, (E[0, l], E[1, l], E[2, l], E[3, l], E[4, l], E[5, l]))
        put_vector(S, 21, l, (y[0], y[1], y[2]))
        put_vector(S, 24, l, (y[3], y[4], y[5]))
    for i in range(problem.tree.ints.shape[0]):
        low, high = K(problem.limits[i, LOWER]), K(problem.limits[i, UPPER])
        unit = K(1) if problem.tree.ints[i, KIND] == HINGE else K(problem.reach)
        a = (6 * i) & FORWARD
        for l in range(LANES):
            d = dot(lane_vector(J, a, l), lane_vector(S, 21, l)) + dot(lane_vector(J, a + 3, l), lane_vector(S, 24, l))
            x = Q[i, l] + unit * d
            x = low if x < low else x
            Q[i, l] = high if x > high else x
