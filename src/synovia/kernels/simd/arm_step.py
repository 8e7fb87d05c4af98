"""One step of Levenberg-Marquardt for a SIMD batch of arms, by the formulas of ``jacobian.arm_step``.

Arrays are [value, lane] (see ``batch``). Their type K sets the precision: every constant is converted to K.
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import inline
from synovia.kernels.goals.frames import local_frame
from synovia.kernels.jacobian.arm_step import add_column, clamp, diagonal6, free_column, hinge_column, joint_frame
from synovia.kernels.layout import (
    DAMPING,
    ERROR_DAMPING,
    HINGE,
    KIND,
    LOWER,
    PARTS,
    POSITION_WEIGHT,
    ROTATION,
    ROTATION_WEIGHT,
    UPPER,
)
from synovia.kernels.math.linear import factor6, finish6
from synovia.kernels.math.rotations import apply, matmul, matmul_t, origin_of, rotation_of, turn_z
from synovia.kernels.math.trigonometry import near_quarter
from synovia.kernels.math.vectors import add, dot, scale, sub
from synovia.kernels.simd.batch import FORWARD, LANES, as_type, lane_vector, put_vector

BACK = 1e-6  # smallest cos²(θ/2) of a rotation error; avoids division by zero near half a turn

# Rows of the error: weighted errors (0-5), then these
FAR2, TURNED2, LANE_COST = 6, 7, 8  # squared distance, squared angle, weighted cost
ERROR_WIDTH = 9


@inline
def lane_sincos(K, x):
    """Return (sin x, cos x) by the method of ``sincos``, in the type K and without a branch."""
    t = x * K(0.6366197723675814)
    n = np.int32(t + (K(0.5) if t >= K(0) else K(-0.5)))
    s, c = near_quarter(K, x, n)
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
def put_rotation(X, r, l, A):
    """Write a matrix to rows r to r + 8 of lane l."""
    put_vector(X, r, l, (A[0], A[1], A[2]))
    put_vector(X, r + 3, l, (A[3], A[4], A[5]))
    put_vector(X, r + 6, l, (A[6], A[7], A[8]))


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
        G = as_type_9(K, rotation_of(tree.fixed, i))
        g = as_type(K, origin_of(tree.fixed, i))
        turns = K(1) if tree.ints[i, KIND] == HINGE else K(0)
        a = (6 * i) & FORWARD
        for l in range(LANES):
            x = Q[i, l]
            R, p = joint_frame(lane_rotation(P, 0, l), lane_vector(P, 9, l), G, g, (K(1) - turns) * x)
            s, c = lane_sincos(K, turns * x)
            put_rotation(P, 0, l, turn_z(R, s, c))
            put_vector(P, 9, l, p)
            put_vector(axes, a, l, (R[2], R[5], R[8]))
            put_vector(axes, a + 3, l, p)


@inline
def lane_errors(problem, P, goal, E):
    """Write the errors E, and replace the origin in P, that of the last joint, by the goal's origin.

    The rotation error is 2 sin(θ/2) about the axis of the rotation, without an arctangent.
    """
    K = P.dtype.type
    G, g = local_frame(problem, 0)
    G, g = as_type_9(K, G), as_type(K, g)
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
        E[FAR2, l] = dot(d, d)
        E[TURNED2, l] = ww if trace > K(0) else turned * (K(3) - trace)
        d = scale(wp, d)
        w = scale(wr, w)
        put_vector(E, 0, l, d)
        put_vector(E, 3, l, w)
        E[LANE_COST, l] = dot(d, d) + dot(w, w)


@inline
def lane_error(E, l):
    """Return the weighted error of lane l."""
    return E[0, l], E[1, l], E[2, l], E[3, l], E[4, l], E[5, l]


@inline
def lane_triangle(S, l):
    """Return the lower triangle (21 values) of lane l."""
    return (
        S[0, l], S[1, l], S[2, l], S[3, l], S[4, l], S[5, l], S[6, l], S[7, l], S[8, l], S[9, l], S[10, l],
        S[11, l], S[12, l], S[13, l], S[14, l], S[15, l], S[16, l], S[17, l], S[18, l], S[19, l], S[20, l],
    )  # fmt: skip


@inline
def put_triangle(S, l, a):
    """Write the lower triangle (21 values) of lane l."""
    put_vector(S, 0, l, (a[0], a[1], a[2]))
    put_vector(S, 3, l, (a[3], a[4], a[5]))
    put_vector(S, 6, l, (a[6], a[7], a[8]))
    put_vector(S, 9, l, (a[9], a[10], a[11]))
    put_vector(S, 12, l, (a[12], a[13], a[14]))
    put_vector(S, 15, l, (a[15], a[16], a[17]))
    put_vector(S, 18, l, (a[18], a[19], a[20]))


@inline
def put_column(K, x, low, high, E, J, S, a, l, u, w):
    """Write a column of lane l to rows a to a + 5 of J, unless its joint is held, and add it to S."""
    u, w = free_column(K, x, low, high, u, w, lane_error(E, l), K(0))
    put_vector(J, a, l, u)
    put_vector(J, a + 3, l, w)
    put_triangle(S, l, add_column(lane_triangle(S, l), u, w))


@inline
def lane_normal(problem, Q, P, axes, E, J, S):
    """Write J, the Jacobian without joints that are held at a limit, and S, the lower triangle of J Jᵀ + λ."""
    K = P.dtype.type
    wp, wr = K(problem.goal_data[0, POSITION_WEIGHT] / problem.reach), K(problem.goal_data[0, ROTATION_WEIGHT])
    reach = K(problem.reach)
    constant, factor = K(problem.params[DAMPING]), K(problem.params[ERROR_DAMPING])
    for l in range(LANES):
        put_triangle(S, l, diagonal6(K, constant + factor * E[LANE_COST, l]))
    for i in range(problem.tree.ints.shape[0]):
        low, high = K(problem.limits[i, LOWER]), K(problem.limits[i, UPPER])
        a = (6 * i) & FORWARD
        if problem.tree.ints[i, KIND] == HINGE:
            for l in range(LANES):
                z, pivot, p = lane_vector(axes, a, l), lane_vector(axes, a + 3, l), lane_vector(P, 9, l)
                u, w = hinge_column(z, pivot, p, wp, wr)
                put_column(K, Q[i, l], low, high, E, J, S, a, l, u, w)
        else:
            for l in range(LANES):
                u, w = scale(wp * reach, lane_vector(axes, a, l)), (K(0), K(0), K(0))
                put_column(K, Q[i, l], low, high, E, J, S, a, l, u, w)


@inline
def lane_step(problem, Q, E, J, S, Y):
    """Take the step dq = Jᵀ (J Jᵀ + λ)⁻¹ e in every lane, and clamp; Y is scratch memory.

    Unlike in ``jacobian.arm``, a step has no geodesic acceleration: it saved about a seventh of the steps, but each
    step took about a seventh longer.
    """
    K = Q.dtype.type
    for l in range(LANES):
        y = finish6(factor6(K(1), lane_triangle(S, l)), lane_error(E, l))
        put_vector(Y, 0, l, (y[0], y[1], y[2]))
        put_vector(Y, 3, l, (y[3], y[4], y[5]))
    for i in range(problem.tree.ints.shape[0]):
        low, high = K(problem.limits[i, LOWER]), K(problem.limits[i, UPPER])
        unit = K(1) if problem.tree.ints[i, KIND] == HINGE else K(problem.reach)
        a = (6 * i) & FORWARD
        for l in range(LANES):
            d = dot(lane_vector(J, a, l), lane_vector(Y, 0, l)) + dot(lane_vector(J, a + 3, l), lane_vector(Y, 3, l))
            Q[i, l] = clamp(Q[i, l] + unit * d, low, high)
