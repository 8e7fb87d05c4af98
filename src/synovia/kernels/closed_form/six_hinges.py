"""Common parts of the closed forms of arms of six hinges.

All turns are measured from the start pose. E1 ... E6 are the turns about the axes in the start pose, and D is the
motion that takes the goal's frame to its target: E1 E2 E3 E4 E5 E6 = D. Each closed form writes candidates: six joint
values that make these turns.
"""

import math

from synovia.kernels.closed_form.selection import open_branches
from synovia.kernels.compiler.jit import F, algorithm, device, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.residuals import residual
from synovia.kernels.layout import BLOCK_Q, LOWER, UPPER, VARIABLE
from synovia.kernels.math.rotations import PI, apply, column, matmul_t, origin_of, rotation_of
from synovia.kernels.math.subproblems import turned
from synovia.kernels.math.two_segments import nearest_turn
from synovia.kernels.math.vectors import add, axpy, cross, dot, sub
from synovia.kernels.tree.forward import forward

PROVEN = F(1e-12)  # larger squared errors (radians, length scales) are more than rounding


@inline
def base_row(problem):
    """Return the row of the arm's first joint; rows above it, such as a floating base, are held."""
    row = 0
    while problem.tree.ints[row, VARIABLE] < 0:
        row += 1
    return row


@inline
def axis(frames, i):
    """Return the direction of the axis of joint i."""
    return column(rotation_of(frames, i), 2)


@inline
def crossing(frames, i, j):
    """Return the point of joint i's axis that is nearest to joint j's axis, such as their intersection."""
    u, v = axis(frames, i), axis(frames, j)
    o = origin_of(frames, i)
    d = sub(origin_of(frames, j), o)
    n = cross(u, v)  # 1 - (u·v)² would be inaccurate for small angles
    return axpy(dot(cross(d, v), n) / dot(n, n), u, o)


@inline
def turned_about(z, o, angle, p):
    """Return the point p rotated about the axis z through o."""
    return add(o, turned(z, sub(p, o), angle))


@inline
def put_turns(problem, table, q, count, turns):
    """Write six turns as a candidate: joint values, shifted by multiples of 2π towards those of q, then clamped.

    ``turns`` and the variables are both in joint order.

    Returns:
        The squared distance from q, infinite if a turn had to be clamped.
    """
    away = F(0)
    base = base_row(problem)
    for i in range(6):
        k = problem.tree.ints[base + i, VARIABLE]
        x = q[problem.variables[k, BLOCK_Q]]
        low, high = problem.limits[k, LOWER], problem.limits[k, UPPER]
        turn, fits = nearest_turn(turns[i], F(0), low - x, high - x)
        table[6 * count + k] = min(max(x + turn, low), high)
        away += turn * turn if fits else F(math.inf)
    return away


@inline
def turn_cost(turn):
    """Return the square of a turn (radians²), reduced by multiples of 2π."""
    turn -= F(2) * PI * math.floor(turn / (F(2) * PI) + F(0.5))
    return turn * turn


@inline
def nearer_side(middle, half):
    """Return the sign, 1 or -1, for which middle ± half is the smaller turn."""
    return F(1) if turn_cost(middle + half) < turn_cost(middle - half) else F(-1)


@device
def motion_to_target(problem, work, targets, q):
    """Return D = (R, t), goal frame to target. Write work.frames at q; reset the flag for singular wrists."""
    forward(problem.tree, q, work.frames)
    open_branches(work).singular[0] = F(0)
    G, p = goal_frame(problem, work.frames, 0)
    T, x = target_frame(targets, 0)
    R = matmul_t(T, G)
    return R, sub(x, apply(R, p))


@algorithm
def prove_arm_branches(problem, work, targets, q):
    """Return 1 if q, the best branch, misses the goal by more than rounding: then none meets it.

    A singular wrist proves nothing, because its arbitrary turns may have been clamped.
    """
    cost, _ = residual(problem, q, work.frames, targets, work.e)
    return (1 if cost > PROVEN and open_branches(work).singular[0] == F(0) else 0), F(0)
