"""Aim goal: the z axis u of a frame at p points at a target point t, and its y axis v upwards, if ``up`` is given.

With d = t - p, the error is the smallest rotation from u to d. A shift δp rotates d by δp × d / |d|². With an up
direction a, the z axis of the target, the error has a component along u, too: the roll φ, the angle about u from v to
a. With a cone about the direction (see ``cone``), the error is the roll alone.

Let w = a - (a·u) u. A rotation ω of the frame rotates v by ω·u about u, and w by (ω·w) (u·a) / |w|². If
u is nearly vertical, w is undefined, so the roll fades to 0 smoothly.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, turn_between, turn_rows
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, NUMBERS, ROTATION, TARGET_PARTS, WEIGHT
from synovia.kernels.math.bend import smoothstep
from synovia.kernels.math.rotations import column
from synovia.kernels.math.vectors import TINY, axpy, cross, dot, norm, reject, scale, sub

TOUCHING = F(1e-6)  # fraction of the length scale: the direction of a nearer target is undefined
ROLL_ONLY = NUMBERS  # parameter of the term: 1 if a cone bounds the direction, so that only the roll remains; else 0
STEEP = F(0.2)  # sine of the angle between axis and up below which the roll fades


@inline
def upward(problem, R, targets, term):
    """Return w, the part of the up direction normal to the axis, and the weight of the roll (0 to 1; 0 without up)."""
    if problem.general.ints[term, TARGET_PARTS] & ROTATION == 0:
        return NOTHING, F(0)
    w = reject(column(target_frame(targets, problem.general.ints[term, GOAL])[0], 2), column(R, 2))
    size2 = dot(w, w)
    return w, smoothstep(math.sqrt(size2) / STEEP) if size2 > TINY else F(0)


@inline
def error(problem, frames, targets, term):
    """Return the rotation onto the direction of the target plus the roll, 0 if the target is at p."""
    g = problem.general.ints[term, GOAL]
    R, p = goal_frame(problem, frames, g)
    d = sub(target_frame(targets, g)[1], p)
    if not norm(d) > TOUCHING * problem.reach:
        return NOTHING, NOTHING
    u, v = column(R, 2), column(R, 1)
    w, fade = upward(problem, R, targets, term)
    roll = fade * math.atan2(dot(u, cross(v, w)), dot(v, w)) if fade > F(0) else F(0)
    return NOTHING, axpy(roll, u, NOTHING if problem.general.data[term, ROLL_ONLY] > F(0) else turn_between(u, d))


@device
def rows(problem, q, frames, targets, term, J):
    """Write the three Jacobian rows."""
    g = problem.general.ints[term, GOAL]
    R, p = goal_frame(problem, frames, g)
    d = sub(target_frame(targets, g)[1], p)
    size2 = dot(d, d)
    if size2 > TOUCHING * TOUCHING * problem.reach * problem.reach:
        u, (w, fade) = column(R, 2), upward(problem, R, targets, term)
        about = NOTHING
        if fade > F(0):
            up = column(target_frame(targets, g)[0], 2)
            about = scale(fade, axpy(-dot(u, up) / dot(w, w), w, u))
        if problem.general.data[term, ROLL_ONLY] > F(0):
            along, k = scale(problem.general.data[term, WEIGHT], u), problem.general.ints[term, FIRST]
            for i in range(3):
                row = problem.goals[g, GOAL_ROW]
                add_wrench_row(problem, q, frames, row, p, NOTHING, scale(along[i], about), J, k + i)
            return
        turn_rows(problem, q, frames, term, u, p, scale(F(1) / size2, d), about, J)


@inline
def start_target(problem, frames, term):
    """Return the target that keeps the start: a point on the axis, one length scale away, and the y axis as up."""
    R, p = goal_frame(problem, frames, problem.general.ints[term, GOAL])
    turned = (R[2], R[0], R[1], R[5], R[3], R[4], R[8], R[6], R[7])  # columns z, x, y of R
    return turned, axpy(problem.reach, column(R, 2), p)


@inline
def aim_vectors(problem, frames, targets, term, o):
    """Return the vectors from o to a point of the axis, and from o to the target of the axis."""
    g = problem.general.ints[term, GOAL]
    return sub(goal_frame(problem, frames, g)[1], o), sub(target_frame(targets, g)[1], o)
