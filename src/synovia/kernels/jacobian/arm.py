"""Levenberg-Marquardt for an arm: one end effector on a serial chain of hinges and slides, in registers.

This is the method of ``levenberg`` with the same settings, written for six residuals. Forward kinematics keeps the
frame in registers, and J Jᵀ + λ is factorised without an array. ``arm_step`` has the formulas.

With error-scaled damping, a step includes geodesic acceleration (Transtrum & Sethna 2012): the same factors solve the
equations again for -r″/2, where r″ is the acceleration of the residual along the step. This takes two cross products
per joint and saves an eighth to a quarter of all steps.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, entry, inline
from synovia.kernels.compiler.views import stack
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.frames import local_frame, target_frame
from synovia.kernels.goals.reach import prove_arm_unreachable
from synovia.kernels.jacobian.active_set import PUSH_NOISE
from synovia.kernels.jacobian.arm_step import add_column, carried, clamp, diagonal6, dot6, free_column, hinge_column
from synovia.kernels.layout import (
    ANGULAR,
    AXIS,
    BLOCK_Q,
    DAMPING,
    ERROR_DAMPING,
    FIRST_Q,
    HINGE,
    KIND,
    LINEAR,
    LOWER,
    PARTS,
    PIVOT,
    POSITION,
    POSITION_WEIGHT,
    ROTATION,
    ROTATION_WEIGHT,
    UPPER,
)
from synovia.kernels.math.linear import factor6, finish6
from synovia.kernels.math.rotations import column, frame_of, identity, log_rotation, matmul_t, turn_z
from synovia.kernels.math.trigonometry import BLOCK, PI, remove_whole_turns, sincos_block
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, scale, store, sub
from synovia.kernels.search.descent import FALLS, INSIDE, falls_slowly
from synovia.kernels.search.multistart import Search, multistart
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.tree.problem import copy

SMALL_TURN = F(0.1)  # radians: smaller orientation errors have their full weight
MAX_CURVE_SHARE = F(0.25)  # largest squared acceleration relative to the squared step; larger ones are not reliable


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
            G, g = frame_of(tree.fixed, i)
            if tree.ints[i, KIND] == HINGE:
                G = turn_z(G, S[0, j], C[0, j])
            R, p = carried(R, p, G, g)
            if tree.ints[i, KIND] != HINGE:
                p = axpy(q[tree.ints[i, FIRST_Q]], column(R, 2), p)
            store(axes, i, AXIS, column(R, 2))
            store(axes, i, PIVOT, p)
    G, g = local_frame(problem, 0)
    return carried(R, p, G, g)


@inline
def rotation_weight(weight, angle2):
    """Return the weight of an orientation error in a step; ``angle2`` is the square of its angle.

    Large angles weigh less, so that half a turn weighs as much as the length scale. With a constant weight, orientation
    errors dominate the damping, and arms of six hinges take a sixth more steps. Small angles keep their full weight:
    otherwise they would be damped away near singular poses, and tracks would jump.
    """
    return weight / min(max(F(1), math.sqrt(angle2) / SMALL_TURN), PI)


@inline
def normal_matrix(problem, q, axes, p, e, wr, damping):
    """Write the Jacobian without the joints held at a limit; return the lower triangle (21) of J Jᵀ + λ."""
    wp, reach = problem.goal_data[0, POSITION_WEIGHT] / problem.reach, problem.reach
    slack = PUSH_NOISE * (abs(e[0]) + abs(e[1]) + abs(e[2]) + abs(e[3]) + abs(e[4]) + abs(e[5]))
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
    """Return the product of column i of the Jacobian with y."""
    u, w = load(axes, i, LINEAR), load(axes, i, ANGULAR)
    return dot6((u[0], u[1], u[2], w[0], w[1], w[2]), y)


@inline
def half_acceleration(problem, axes, wr, y):
    """Return -r″/2, the weighted acceleration (linear, angular) of the residual along the step Jᵀ y.

    Let t be the angular velocity of the joints before joint i. Joint i contributes c to the goal's velocity and w to
    the goal's angular velocity. These contributions change at the rates (2 t + w) × c and t × w.
    """
    t = linear = angular = (F(0), F(0), F(0))
    for i in range(problem.tree.ints.shape[0]):
        d = column_dot(axes, i, y)
        w = scale(d if problem.tree.ints[i, KIND] == HINGE else F(0), load(axes, i, AXIS))
        angular = add(angular, cross(t, w))
        linear = add(linear, cross(add(add(t, t), w), scale(d, load(axes, i, LINEAR))))
        t = add(t, w)
    return scale(F(-0.5), linear), scale(F(-0.5) * wr, angular)


@inline
def arm_step(problem, q, axes, p, e, wr, damping):
    """Move q by dq = Jᵀ (J Jᵀ + λ)⁻¹ (e - r″/2), without the joints held at a limit, and clamp it to the limits."""
    tree = problem.tree
    factors = factor6(F(1), normal_matrix(problem, q, axes, p, e, wr, damping))
    y = finish6(factors, e)
    if problem.params[ERROR_DAMPING] > F(0):
        linear, angular = half_acceleration(problem, axes, wr, y)
        z = finish6(factors, (linear[0], linear[1], linear[2], angular[0], angular[1], angular[2]))
        step2 = max(dot6(y, e) - damping * dot6(y, y), F(0))  # |Jᵀ y|², as (J Jᵀ + λ) y = e
        curve2 = dot(linear, (z[0], z[1], z[2])) + dot(angular, (z[3], z[4], z[5])) - damping * dot6(z, z)
        k = F(1) if curve2 <= MAX_CURVE_SHARE * step2 else math.sqrt(MAX_CURVE_SHARE * step2 / curve2)
        y = (y[0] + k * z[0], y[1] + k * z[1], y[2] + k * z[2], y[3] + k * z[3], y[4] + k * z[4], y[5] + k * z[5])
    for i in range(tree.ints.shape[0]):
        d = column_dot(axes, i, y)
        if tree.ints[i, KIND] != HINGE:
            d *= problem.reach
        at = problem.variables[i, BLOCK_Q]
        q[at] = clamp(q[at] + d, problem.limits[i, LOWER], problem.limits[i, UPPER])


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q until the goal is met, the error falls too slowly, or the steps are spent."""
    T, t = target_frame(targets, 0)
    wp, weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach, problem.goal_data[0, ROTATION_WEIGHT]
    has_position = problem.goals[0, PARTS] & POSITION
    has_rotation = problem.goals[0, PARTS] & ROTATION
    max_distance2 = (INSIDE * problem.tolerance) ** 2
    max_angle2 = (INSIDE * problem.tolerance_angle) ** 2
    earlier = F(0)
    lowest = F(0)
    for k in range(problem.max_steps + 1):
        R, p = arm_forward(problem, q, work.frames)
        d = sub(t, p)
        w = log_rotation(matmul_t(T, R)) if has_rotation else (F(0), F(0), F(0))
        distance2, angle2 = dot(d, d) if has_position else F(0), dot(w, w)
        cost = wp * wp * distance2 + weight * weight * angle2  # with the weights of the goal, as in polishing
        if k == 0 or cost < FALLS * lowest:
            lowest = cost
            copy(q, work.trial)
        if (distance2 <= max_distance2) & (angle2 <= max_angle2):
            return k, cost
        slowly, earlier = falls_slowly(problem, k, lowest, earlier)
        if slowly or k == problem.max_steps or stopped(work.watch, problem.columns):
            break
        wr = rotation_weight(weight, angle2)
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


SEARCH = Search(attempt, random_scalars, prove_arm_unreachable)


@entry
def arm(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with one goal on an arm; see ``search.multistart``."""
    return multistart(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)
