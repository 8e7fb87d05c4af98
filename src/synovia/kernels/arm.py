"""Levenberg-Marquardt for one end effector on a serial chain of hinges and slides: the arm, in registers.

The same method as ``levenberg`` with the same settings, written for six rows: forward kinematics keeps the frame in
registers, the Jacobian's column of a joint is (z × (p - o), z), and J Jᵀ + λ is factorised without an array.
"""

from synovia.kernels._borrow import stack
from synovia.kernels._jit import F, algorithm, entry, inline
from synovia.kernels.drive import drive
from synovia.kernels.forward import HINGE
from synovia.kernels.goals import target_frame
from synovia.kernels.levenberg import AIM, DAMPING, ERROR_DAMPING, FALLS, PROGRESS
from synovia.kernels.linear import solve6
from synovia.kernels.problem import POSITION, ROTATION, copy
from synovia.kernels.reach import prove_arm
from synovia.kernels.rotations import (
    apply,
    column,
    identity,
    load_rotation,
    log_rotation,
    matmul,
    matmul_t,
    turn_z,
)
from synovia.kernels.scatter import scatter_numbers
from synovia.kernels.trigonometry import BLOCK, near, sincos_block
from synovia.kernels.vectors import add, axpy, cross, dot, load, scale, store, sub


@inline
def arm_forward(problem, q, axes):
    """Write axis and origin of every joint (n, 12: 0-2 and 3-5); return the goal's world frame."""
    tree = problem.tree
    n = tree.ints.shape[0]
    X, S, C = stack(axes, 1, BLOCK), stack(axes, 1, BLOCK), stack(axes, 1, BLOCK)
    R = identity()
    p = (F(0), F(0), F(0))
    for first in range(0, n, BLOCK):
        for j in range(BLOCK):
            X[0, j] = near(q[tree.ints[first + j, 2]]) if first + j < n else F(0)
        sincos_block(X, S, C)
        for j in range(min(BLOCK, n - first)):
            i = first + j
            G = load_rotation(tree.fixed, i, 0)
            if tree.ints[i, 0] == HINGE:
                G = turn_z(G, S[0, j], C[0, j])
            p = add(p, apply(R, load(tree.fixed, i, 9)))
            R = matmul(R, G)
            z = column(R, 2)
            if tree.ints[i, 0] != HINGE:
                p = axpy(q[tree.ints[i, 2]], z, p)
            store(axes, i, 0, z)
            store(axes, i, 3, p)
    return matmul(R, load_rotation(problem.goal_data, 0, 2)), add(p, apply(R, load(problem.goal_data, 0, 11)))


@inline
def arm_step(problem, q, axes, p, e, damping):
    """Take the step dq = Jᵀ (J Jᵀ + λ)⁻¹ e without the joints that are held at a limit, and clamp."""
    wp, wr, reach = problem.goal_data[0, 0] / problem.reach, problem.goal_data[0, 1], problem.reach
    n = problem.tree.ints.shape[0]
    o = F(0)
    a00 = a11 = a22 = a33 = a44 = a55 = damping
    a10 = a20 = a21 = a30 = a31 = a32 = a40 = a41 = a42 = a43 = a50 = a51 = a52 = a53 = a54 = o
    for i in range(n):
        z = load(axes, i, 0)
        if problem.tree.ints[i, 0] == HINGE:
            u = scale(wp, cross(z, sub(p, load(axes, i, 3))))
            w = scale(wr, z)
        else:
            u = scale(wp * reach, z)
            w = (o, o, o)
        x = q[problem.variables[i, 1]]
        g = u[0] * e[0] + u[1] * e[1] + u[2] * e[2] + w[0] * e[3] + w[1] * e[4] + w[2] * e[5]
        if ((x <= problem.limits[i, 0]) & (g < o)) | ((x >= problem.limits[i, 1]) & (g > o)):
            u = (o, o, o)
            w = (o, o, o)
        store(axes, i, 6, u)
        store(axes, i, 9, w)
        a00 += u[0] * u[0]
        a10 += u[1] * u[0]
        a11 += u[1] * u[1]
        a20 += u[2] * u[0]
        a21 += u[2] * u[1]
        a22 += u[2] * u[2]
        a30 += w[0] * u[0]
        a31 += w[0] * u[1]
        a32 += w[0] * u[2]
        a33 += w[0] * w[0]
        a40 += w[1] * u[0]
        a41 += w[1] * u[1]
        a42 += w[1] * u[2]
        a43 += w[1] * w[0]
        a44 += w[1] * w[1]
        a50 += w[2] * u[0]
        a51 += w[2] * u[1]
        a52 += w[2] * u[2]
        a53 += w[2] * w[0]
        a54 += w[2] * w[1]
        a55 += w[2] * w[2]
    A = a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55
    y = solve6(A, e)
    for i in range(n):
        u, w = load(axes, i, 6), load(axes, i, 9)
        d = u[0] * y[0] + u[1] * y[1] + u[2] * y[2] + w[0] * y[3] + w[1] * y[4] + w[2] * y[5]
        if problem.tree.ints[i, 0] != HINGE:
            d *= reach
        at = problem.variables[i, 1]
        q[at] = min(max(q[at] + d, problem.limits[i, 0]), problem.limits[i, 1])


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q until the goal holds, the error stops falling fast enough, or the steps are spent."""
    T, t = target_frame(targets, 0)
    wp, wr = problem.goal_data[0, 0] / problem.reach, problem.goal_data[0, 1]
    placed = problem.goals[0, 0] & POSITION
    turns = problem.goals[0, 0] & ROTATION
    most2 = (AIM * problem.tolerance) ** 2
    most_turned2 = (AIM * problem.tolerance_angle) ** 2
    mark = F(0)
    lowest = F(0)
    for k in range(problem.max_steps + 1):
        R, p = arm_forward(problem, q, work.frames)
        d = sub(t, p)
        w = log_rotation(matmul_t(T, R)) if turns else (F(0), F(0), F(0))
        far2, turned2 = dot(d, d) if placed else F(0), dot(w, w)
        d = scale(wp, d)
        w = scale(wr, w)
        cost = dot(d, d) + dot(w, w)
        if k == 0 or cost < FALLS * lowest:
            lowest = cost
            copy(q, work.trial)
        if (far2 <= most2) & (turned2 <= most_turned2):
            return k, cost
        if k % problem.patience == 0:
            if k > 0 and lowest > problem.own[PROGRESS] * mark:
                break
            mark = lowest
        if k == problem.max_steps:
            break
        arm_step(
            problem,
            q,
            work.frames,
            p,
            (d[0], d[1], d[2], w[0], w[1], w[2]),
            problem.own[DAMPING] + problem.own[ERROR_DAMPING] * cost,
        )
    copy(work.trial, q)
    return k, lowest


@entry
def arm(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``drive``."""
    return drive(attempt, scatter_numbers, prove_arm, ints, floats, targets, starts, out, scratch, warm, first)
