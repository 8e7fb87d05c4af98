"""Levenberg-Marquardt for one end effector on a serial chain of hinges and slides: the arm, in registers.

The same method as ``levenberg`` with the same settings, written for six rows: forward kinematics keeps the frame in
registers, and J Jᵀ + λ is factorised without an array. The formulas are in ``arm_step``.

A step follows the curve of the goal, not its tangent alone (geodesic acceleration, Transtrum & Sethna 2012): with the
factors that are there already, the equations are solved once more for -r″/2, r″ being how the goal would accelerate
along the step. That takes two cross products for each joint and saves an eighth to a quarter of all steps. Damping that
is constant stays what it is by name, damped least squares.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, entry, inline
from synovia.kernels.compiler.views import stack
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.reach import prove_arm_unreachable
from synovia.kernels.goals.residuals import target_frame
from synovia.kernels.jacobian.active_set import PUSHES
from synovia.kernels.jacobian.arm_step import (
    add_column,
    clamp,
    diagonal6,
    dot6,
    free_column,
    hinge_column,
    joint_frame,
)
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
from synovia.kernels.math.trigonometry import BLOCK, PI, remove_whole_turns, sincos_block
from synovia.kernels.math.vectors import add, cross, dot, load, scale, store, sub
from synovia.kernels.search.descent import FALLS, INSIDE, falls_slowly
from synovia.kernels.search.multistart import multistart
from synovia.kernels.search.restarts import random_scalars
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
            X[0, j] = remove_whole_turns(q[tree.ints[first + j, FIRST_Q]]) if first + j < n else F(0)
        sincos_block(X, S, C)
        for j in range(min(BLOCK, n - first)):
            i = first + j
            G, g = load_rotation(tree.fixed, i, ORIENTATION), load(tree.fixed, i, ORIGIN)
            shift = F(0)
            if tree.ints[i, KIND] == HINGE:
                G = turn_z(G, S[0, j], C[0, j])
            else:
                shift = q[tree.ints[i, FIRST_Q]]
            R, p = joint_frame(R, p, G, g, shift)
            store(axes, i, AXIS, column(R, 2))
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
    """Write the Jacobian without the joints that are held at a limit; return J Jᵀ + λ, its lower triangle (21)."""
    wp, reach = problem.goal_data[0, POSITION_WEIGHT] / problem.reach, problem.reach
    slack = PUSHES * (abs(e[0]) + abs(e[1]) + abs(e[2]) + abs(e[3]) + abs(e[4]) + abs(e[5]))
    A = diagonal6(F, damping)
    for i in range(problem.tree.ints.shape[0]):
        z = load(axes, i, AXIS)
        if problem.tree.ints[i, KIND] == HINGE:
            u, w = hinge_column(z, load(axes, i, PIVOT), p, wp, wr)
        else:
            u, w = scale(wp * reach, z), (F(0), F(0), F(0))
        x = q[problem.variables[i, BLOCK_Q]]
        u, w = free_column(F, x, problem.limits[i, LOWER], problem.limits[i, UPPER], u, w, e, slack)
        store(axes, i, LINEAR, u)
        store(axes, i, ANGULAR, w)
        A = add_column(A, u, w)
    return A


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
    t = pull = twist = (F(0), F(0), F(0))
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
    factors = factor6(arm_normal(problem, q, axes, p, e, wr, damping))
    y = finish6(factors, e)
    if problem.params[ERROR_DAMPING] > F(0):
        pull, twist = arm_bend(problem, axes, wr, y)
        z = finish6(factors, (pull[0], pull[1], pull[2], twist[0], twist[1], twist[2]))
        straight2 = max(dot6(y, e) - damping * dot6(y, y), F(0))  # |Jᵀ y|², as (J Jᵀ + λ) y = e
        bent2 = dot(pull, (z[0], z[1], z[2])) + dot(twist, (z[3], z[4], z[5])) - damping * dot6(z, z)
        k = F(1) if bent2 <= MOST_BENT * straight2 else math.sqrt(MOST_BENT * straight2 / bent2)
        y = (y[0] + k * z[0], y[1] + k * z[1], y[2] + k * z[2], y[3] + k * z[3], y[4] + k * z[4], y[5] + k * z[5])
    for i in range(tree.ints.shape[0]):
        d = column_dot(axes, i, y)
        if tree.ints[i, KIND] != HINGE:
            d *= problem.reach
        at = problem.variables[i, BLOCK_Q]
        q[at] = clamp(q[at] + d, problem.limits[i, LOWER], problem.limits[i, UPPER])


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q until the goal holds, the error stops falling fast enough, or the steps are spent."""
    T, t = target_frame(targets, 0)
    wp, weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach, problem.goal_data[0, ROTATION_WEIGHT]
    placed = problem.goals[0, PARTS] & POSITION
    turns = problem.goals[0, PARTS] & ROTATION
    most2 = (INSIDE * problem.tolerance) ** 2
    most_turned2 = (INSIDE * problem.tolerance_angle) ** 2
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
        slowly, mark = falls_slowly(problem, k, lowest, mark)
        if slowly or k == problem.max_steps or stopped(work.watch, problem.columns):
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
            problem.params[DAMPING] + problem.params[ERROR_DAMPING] * (dot(d, d) + dot(w, w)),
        )
    copy(work.trial, q)
    return k, lowest


@entry
def arm(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``multistart``."""
    return multistart(
        attempt, random_scalars, prove_arm_unreachable, ints, floats, targets, starts, out, scratch, warm, first
    )
