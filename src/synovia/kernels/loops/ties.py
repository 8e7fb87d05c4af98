"""Loops: closure errors of tied frames and of coupled joint values, and their Jacobian rows.

A loop ties a frame of one link to a frame of another link or to the world. The second origin may not move along some
axes of the first frame, or the distance of both origins is given. The relative rotation is free, none, about the z
axis, or such that both z axes are at right angles. A coupling ties joint values: a sum of their powers is constant.

All rows are closure errors: lengths in length scales, angles in radians. Rows that constrain a z axis are sines.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.frames import add_joint_row, add_wrench_row, frame_on
from synovia.kernels.layout import (
    ABOUT_AXIS,
    AT_DISTANCE,
    AT_RIGHT_ANGLE,
    FIRST_FRAME,
    FIRST_MONOMIAL,
    FIRST_Q,
    HINGE,
    KIND,
    MONOMIAL_ROW,
    MONOMIALS,
    NO_TURN,
    OFFSET,
    ORIGIN,
    POWER,
    RATIO,
    SECOND_FRAME,
    TIE_CONSTANT,
    TIE_DISTANCE,
    TIE_UNIT,
    TIED_FIRST,
    TIED_PLACE,
    TIED_ROW,
    TIED_SECOND,
    TIED_TURN,
)
from synovia.kernels.math.rotations import column, load_rotation, log_rotation, matmul_t, rotation_of
from synovia.kernels.math.vectors import cross, dot, load, norm, normalize, scale, sub

NOTHING = (F(0), F(0), F(0))
OPEN = F(1e-9)  # largest closure error of a closed pose (length scales or radians)
OPPOSITE = F(1)  # closure error of two axes in opposite directions, whose sine may be zero


@inline
def has_loops(loops):
    """Return whether the problem has loops whose tables were opened."""
    if loops is None:
        return False
    return loops.ints.shape[0] > 0


@inline
def has_priorities(problem):
    """Return whether the goals of a problem have several priority levels; the level of the loops is not counted."""
    return problem.levels.shape[0] - 1 - (1 if has_loops(problem.loops) else 0) > 1


@inline
def first_frame(loops, frames, t):
    """Return the world frame (R, p) of the first frame of loop t."""
    R, p = load_rotation(loops.data, t, FIRST_FRAME), load(loops.data, t, FIRST_FRAME + ORIGIN)
    return frame_on(frames, loops.ints[t, TIED_FIRST], R, p)


@inline
def second_frame(loops, frames, t):
    """Return the world frame (R, p) of the second frame of loop t."""
    R, p = load_rotation(loops.data, t, SECOND_FRAME), load(loops.data, t, SECOND_FRAME + ORIGIN)
    return frame_on(frames, loops.ints[t, TIED_SECOND], R, p)


@inline
def value_of(tree, q, row):
    """Return the value (radians or length) of the hinge or slide of a row."""
    return tree.couple[row, RATIO] * q[tree.ints[row, FIRST_Q]] + tree.couple[row, OFFSET]


@device
def coupling_lack(problem, q, t):
    """Return the closure error of coupling t (radians or length scales): its constant minus the sum of powers."""
    loops = problem.loops
    lack = loops.data[t, TIE_CONSTANT]
    for i in range(loops.ints[t, FIRST_MONOMIAL], loops.ints[t, FIRST_MONOMIAL] + loops.ints[t, MONOMIALS]):
        x = value_of(problem.tree, q, loops.monomials[i, MONOMIAL_ROW])
        term = loops.coefficients[i]
        for _ in range(loops.monomials[i, POWER]):
            term *= x
        lack -= term
    return lack / problem.reach if loops.data[t, TIE_UNIT] != F(0) else lack


@device
def coupling_row(problem, q, frames, t, k, J):
    """Add the Jacobian row of coupling t to row k."""
    loops = problem.loops
    unit = F(1) / problem.reach if loops.data[t, TIE_UNIT] != F(0) else F(1)
    for i in range(loops.ints[t, FIRST_MONOMIAL], loops.ints[t, FIRST_MONOMIAL] + loops.ints[t, MONOMIALS]):
        row, power = loops.monomials[i, MONOMIAL_ROW], loops.monomials[i, POWER]
        x = value_of(problem.tree, q, row)
        slope = unit * F(power) * loops.coefficients[i]
        for _ in range(power - 1):
            slope *= x
        along = scale(slope, column(rotation_of(frames, row), 2))
        force, torque = (NOTHING, along) if problem.tree.ints[row, KIND] == HINGE else (along, NOTHING)
        add_joint_row(problem, q, frames, row, force, torque, J, k)


@device
def frame_lack(problem, frames, t, e):
    """Write the closure errors of the two frames of loop t to its rows of e; return the largest."""
    loops = problem.loops
    place, turn, k = loops.ints[t, TIED_PLACE], loops.ints[t, TIED_TURN], loops.ints[t, TIED_ROW]
    A, a = first_frame(loops, frames, t)
    B, b = second_frame(loops, frames, t)
    between = sub(b, a)
    worst = F(0)
    if place == AT_DISTANCE:
        e[k] = (loops.data[t, TIE_DISTANCE] - norm(between)) / problem.reach
        worst = abs(e[k])
        k += 1
    else:
        for c in range(3):
            if place & (1 << c):
                e[k] = -dot(column(A, c), between) / problem.reach
                worst = max(worst, abs(e[k]))
                k += 1
    if turn == NO_TURN:
        w = log_rotation(matmul_t(A, B))
        for c in range(3):
            e[k + c] = w[c]
            worst = max(worst, abs(w[c]))
    elif turn == ABOUT_AXIS:
        z = column(B, 2)
        for c in range(2):
            e[k + c] = -dot(column(A, c), z)
            worst = max(worst, abs(e[k + c]))
        if dot(column(A, 2), z) < F(0):
            worst = max(worst, OPPOSITE)
    elif turn == AT_RIGHT_ANGLE:
        e[k] = -dot(column(A, 2), column(B, 2))
        worst = max(worst, abs(e[k]))
    return worst


@inline
def add_between(problem, q, frames, t, b, wrench, k, J):
    """Add to row k the Jacobian row of a wrench (force, torque) at b on the second link, minus that on the first."""
    force, torque = wrench
    first, second = problem.loops.ints[t, TIED_FIRST], problem.loops.ints[t, TIED_SECOND]
    add_wrench_row(problem, q, frames, second, b, force, torque, J, k)
    add_wrench_row(problem, q, frames, first, b, scale(F(-1), force), scale(F(-1), torque), J, k)


@device
def frame_rows(problem, q, frames, t, J):
    """Add the Jacobian rows of the two frames of loop t.

    The axes rotate with the first frame. So a row of the second origin is its motion relative to the point of the first
    link that is at the same place.
    """
    loops = problem.loops
    place, turn, k = loops.ints[t, TIED_PLACE], loops.ints[t, TIED_TURN], loops.ints[t, TIED_ROW]
    A, a = first_frame(loops, frames, t)
    B, b = second_frame(loops, frames, t)
    w = F(1) / problem.reach
    if place == AT_DISTANCE:
        along = normalize(sub(b, a), (F(0), F(0), F(1)))
        add_wrench_row(problem, q, frames, loops.ints[t, TIED_SECOND], b, scale(w, along), NOTHING, J, k)
        add_wrench_row(problem, q, frames, loops.ints[t, TIED_FIRST], a, scale(-w, along), NOTHING, J, k)
        k += 1
    else:
        for c in range(3):
            if place & (1 << c):
                add_between(problem, q, frames, t, b, (scale(w, column(A, c)), NOTHING), k, J)
                k += 1
    if turn == NO_TURN:
        for c in range(3):
            axis = (F(c == 0), F(c == 1), F(c == 2))
            add_between(problem, q, frames, t, b, (NOTHING, axis), k + c, J)
    elif turn == ABOUT_AXIS:
        z = column(B, 2)
        for c in range(2):  # x·z changes by (ω_b - ω_a)·(z × x)
            add_between(problem, q, frames, t, b, (NOTHING, cross(z, column(A, c))), k + c, J)
    elif turn == AT_RIGHT_ANGLE:
        z = column(B, 2)
        add_between(problem, q, frames, t, b, (NOTHING, cross(z, column(A, 2))), k, J)


@device
def lack_of(problem, q, frames, t, e):
    """Write the closure errors of loop t to its rows of e; return the largest."""
    if problem.loops.ints[t, MONOMIALS] > 0:
        k = problem.loops.ints[t, TIED_ROW]
        e[k] = coupling_lack(problem, q, t)
        return abs(e[k])
    return frame_lack(problem, frames, t, e)


@apart
def loop_residual(loops, problem, q, frames, e):
    """Write the closure errors of all loops to the first rows of e; return the largest, infinity for NaN."""
    if loops is None:
        return F(0)
    worst = F(0)
    total = F(0)
    for t in range(loops.ints.shape[0]):
        lack = lack_of(problem, q, frames, t, e)
        total += lack
        worst = max(worst, lack)
    return worst if total < F(math.inf) else F(math.inf)


@apart
def loop_rows(loops, problem, q, frames, J):
    """Write the Jacobian rows of the loops, minus the derivative of their residual, into zero rows of J."""
    if loops is None:
        return
    for t in range(loops.ints.shape[0]):
        if loops.ints[t, MONOMIALS] > 0:
            coupling_row(problem, q, frames, t, loops.ints[t, TIED_ROW], J)
        else:
            frame_rows(problem, q, frames, t, J)
