"""Levenberg-Marquardt for one end effector on a serial chain of hinges and slides: the arm, in registers.

The same method as ``levenberg`` with the same settings, written for six rows: forward kinematics keeps the frame in
registers, the Jacobian's column of a joint is (z × (p - o), z), and J Jᵀ + λ is factorised without an array.

A step follows the curve of the goal, not its tangent alone (geodesic acceleration, Transtrum & Sethna 2012): with the
factors that are there already, -r″/2 is solved for once more, r″ being how the goal would accelerate along the step.
For a chain of joints that takes two cross products each, and a quarter of all steps are saved. Damping that is constant
stays what it is by name, damped least squares. In a step a turn that is far off weighs less than a small one; see
``turn_weight``.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, entry, inline
from synovia.kernels.compiler.views import stack
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.reach import prove_arm
from synovia.kernels.goals.residuals import target_frame
from synovia.kernels.jacobian.descent import PUSHES
from synovia.kernels.jacobian.levenberg import AIM, FALLS
from synovia.kernels.layout import (
    ANGULAR,
    AXIS,
    BLOCK_Q,
    DAMPING,
    ERROR_DAMPING,
    FIRST_Q,
    GOAL_ORIENTATION,
    GOAL_ORIGIN,
    HINGE,
    KIND,
    LINEAR,
    LOWER,
    ORIENTATION,
    ORIGIN,
    PARTS,
    PIVOT,
    POSITION,
    POSITION_WEIGHT,
    PROGRESS,
    ROTATION,
    ROTATION_WEIGHT,
    UPPER,
)
from synovia.kernels.math.linear import factor6, finish6
from synovia.kernels.math.rotations import (
    apply,
    column,
    identity,
    load_rotation,
    log_rotation,
    matmul,
    matmul_t,
    turn_z,
)
from synovia.kernels.math.trigonometry import BLOCK, PI, near, sincos_block
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, scale, store, sub
from synovia.kernels.search.multistart import drive
from synovia.kernels.search.restarts import scatter_numbers
from synovia.kernels.tree.problem import copy

SMALL_TURN = F(0.1)  # radians, up to which a turn counts by the radian in a step
MOST_BENT = F(0.25)  # squared share of a step that following the curve may add: where it asks for more it is no guide


@inline
def arm_forward(problem, q, axes):
    """Write AXIS and PIVOT of every joint in ``axes``, (n, 12); return the goal's world frame."""
    tree = problem.tree
    n = tree.ints.shape[0]
    X, S, C = stack(axes, 1, BLOCK), stack(axes, 1, BLOCK), stack(axes, 1, BLOCK)
    R = identity()
    p = (F(0), F(0), F(0))
    for first in range(0, n, BLOCK):
        for j in range(BLOCK):
            X[0, j] = near(q[tree.ints[first + j, FIRST_Q]]) if first + j < n else F(0)
        sincos_block(X, S, C)
        for j in range(min(BLOCK, n - first)):
            i = first + j
            G = load_rotation(tree.fixed, i, ORIENTATION)
            if tree.ints[i, KIND] == HINGE:
                G = turn_z(G, S[0, j], C[0, j])
            p = add(p, apply(R, load(tree.fixed, i, ORIGIN)))
            R = matmul(R, G)
            z = column(R, 2)
            if tree.ints[i, KIND] != HINGE:
                p = axpy(q[tree.ints[i, FIRST_Q]], z, p)
            store(axes, i, AXIS, z)
            store(axes, i, PIVOT, p)
    return matmul(R, load_rotation(problem.goal_data, 0, GOAL_ORIENTATION)), add(
        p, apply(R, load(problem.goal_data, 0, GOAL_ORIGIN))
    )


@inline
def turn_weight(weight, turned2):
    """Return the weight in a step of a turn that is off by the root of ``turned2``: less where it is far off.

    Half a turn then counts as much as the reach, the largest errors of both. By the radian alone, turns would rule the
    damping, and six hinges take a sixth more steps. Small ones do count so: near a singular pose, where they would be
    damped away, a track would jump.
    """
    return weight / min(max(F(1), math.sqrt(turned2) / SMALL_TURN), PI)


@inline
def arm_normal(problem, q, axes, p, e, wr, damping):
    """Write the Jacobian without the joints that are held at a limit (6-11 of each row); return J Jᵀ + λ (21)."""
    wp, reach = problem.goal_data[0, POSITION_WEIGHT] / problem.reach, problem.reach
    n = problem.tree.ints.shape[0]
    o = F(0)
    slack = PUSHES * (abs(e[0]) + abs(e[1]) + abs(e[2]) + abs(e[3]) + abs(e[4]) + abs(e[5]))
    a00 = a11 = a22 = a33 = a44 = a55 = damping
    a10 = a20 = a21 = a30 = a31 = a32 = a40 = a41 = a42 = a43 = a50 = a51 = a52 = a53 = a54 = o
    for i in range(n):
        z = load(axes, i, AXIS)
        if problem.tree.ints[i, KIND] == HINGE:
            u = scale(wp, cross(z, sub(p, load(axes, i, PIVOT))))
            w = scale(wr, z)
        else:
            u = scale(wp * reach, z)
            w = (o, o, o)
        x = q[problem.variables[i, BLOCK_Q]]
        g = u[0] * e[0] + u[1] * e[1] + u[2] * e[2] + w[0] * e[3] + w[1] * e[4] + w[2] * e[5]
        if ((x <= problem.limits[i, LOWER]) & (g < -slack)) | ((x >= problem.limits[i, UPPER]) & (g > slack)):
            u = (o, o, o)
            w = (o, o, o)
        store(axes, i, LINEAR, u)
        store(axes, i, ANGULAR, w)
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
    return a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55


@inline
def dot6(x, y):
    """Return x·y."""
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3] + x[4] * y[4] + x[5] * y[5]


@inline
def column_dot(axes, i, y):
    """Return the product of the Jacobian's column i with y."""
    u, w = load(axes, i, LINEAR), load(axes, i, ANGULAR)
    return dot6((u[0], u[1], u[2], w[0], w[1], w[2]), y)


@inline
def arm_bend(problem, axes, wr, y):
    """Return half of what the goal, and its turn, would be off the tangent after the step Jᵀ y, weighted: -r″/2.

    A joint that moves after others is carried by their turn t: its own part c of the goal's velocity and w of its turn
    change at the rates (2 t + w) × c and t × w.
    """
    t = (F(0), F(0), F(0))
    pull = (F(0), F(0), F(0))
    twist = (F(0), F(0), F(0))
    for i in range(problem.tree.ints.shape[0]):
        d = column_dot(axes, i, y)
        w = scale(d if problem.tree.ints[i, KIND] == HINGE else F(0), load(axes, i, AXIS))
        twist = add(twist, cross(t, w))
        pull = add(pull, cross(add(add(t, t), w), scale(d, load(axes, i, LINEAR))))
        t = add(t, w)
    return scale(F(-0.5), pull), scale(F(-0.5) * wr, twist)


@inline
def arm_step(problem, q, axes, p, e, wr, damping):
    """Take the step dq = Jᵀ (J Jᵀ + λ)⁻¹ (e - r″/2) without the joints that are held at a limit, and clamp."""
    tree = problem.tree
    n = tree.ints.shape[0]
    factors = factor6(arm_normal(problem, q, axes, p, e, wr, damping))
    y = finish6(factors, e)
    if problem.own[ERROR_DAMPING] > F(0):
        pull, twist = arm_bend(problem, axes, wr, y)
        z = finish6(factors, (pull[0], pull[1], pull[2], twist[0], twist[1], twist[2]))
        straight2 = max(dot6(y, e) - damping * dot6(y, y), F(0))  # |Jᵀ y|², as (J Jᵀ + λ) y = e
        bent2 = dot(pull, (z[0], z[1], z[2])) + dot(twist, (z[3], z[4], z[5])) - damping * dot6(z, z)
        k = F(1) if bent2 <= MOST_BENT * straight2 else math.sqrt(MOST_BENT * straight2 / bent2)
        y = (y[0] + k * z[0], y[1] + k * z[1], y[2] + k * z[2], y[3] + k * z[3], y[4] + k * z[4], y[5] + k * z[5])
    for i in range(n):
        d = column_dot(axes, i, y)
        if tree.ints[i, KIND] != HINGE:
            d *= problem.reach
        at = problem.variables[i, BLOCK_Q]
        q[at] = min(max(q[at] + d, problem.limits[i, LOWER]), problem.limits[i, UPPER])


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q until the goal holds, the error stops falling fast enough, or the steps are spent."""
    T, t = target_frame(targets, 0)
    wp, weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach, problem.goal_data[0, ROTATION_WEIGHT]
    placed = problem.goals[0, PARTS] & POSITION
    turns = problem.goals[0, PARTS] & ROTATION
    most2 = (AIM * problem.tolerance) ** 2
    most_turned2 = (AIM * problem.tolerance_angle) ** 2
    mark = F(0)
    lowest = F(0)
    for k in range(problem.max_steps + 1):
        R, p = arm_forward(problem, q, work.frames)
        d = sub(t, p)
        w = log_rotation(matmul_t(T, R)) if turns else (F(0), F(0), F(0))
        far2, turned2 = dot(d, d) if placed else F(0), dot(w, w)
        cost = wp * wp * far2 + weight * weight * turned2  # as the goal counts it: a miss is settled so
        if k == 0 or cost < FALLS * lowest:
            lowest = cost
            copy(q, work.trial)
        if (far2 <= most2) & (turned2 <= most_turned2):
            return k, cost
        if k % problem.patience == 0:
            if k > 0 and lowest > problem.own[PROGRESS] * mark:
                break
            mark = lowest
        if k == problem.max_steps or stopped(work.watch, problem.columns):
            break
        wr = turn_weight(weight, turned2)
        d = scale(wp, d)
        w = scale(wr, w)
        arm_step(
            problem,
            q,
            work.frames,
            p,
            (d[0], d[1], d[2], w[0], w[1], w[2]),
            wr,
            problem.own[DAMPING] + problem.own[ERROR_DAMPING] * (dot(d, d) + dot(w, w)),
        )
    copy(work.trial, q)
    return k, lowest


@entry
def arm(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``multistart``."""
    return drive(attempt, scatter_numbers, prove_arm, ints, floats, targets, starts, out, scratch, warm, first)
