"""Aim goal: the z axis u of a frame at p points at a target point t.

With d = t - p, the error is the smallest rotation from u to d. A shift δp turns d by δp × d / |d|².
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, turn_between, turn_rows
from synovia.kernels.layout import GOAL
from synovia.kernels.math.rotations import column
from synovia.kernels.math.vectors import axpy, dot, norm, scale, sub

TOUCHING = F(1e-6)  # of the reach: for a nearer target the direction is undefined


@inline
def error(problem, frames, targets, term):
    """Return the rotation onto the direction of the target; 0 if the target is at the point itself."""
    g = problem.general.ints[term, GOAL]
    R, p = goal_frame(problem, frames, g)
    d = sub(target_frame(targets, g)[1], p)
    return NOTHING, turn_between(column(R, 2), d) if norm(d) > TOUCHING * problem.reach else NOTHING


@device
def rows(problem, q, frames, targets, term, J):
    """Write the three Jacobian rows."""
    g = problem.general.ints[term, GOAL]
    R, p = goal_frame(problem, frames, g)
    d = sub(target_frame(targets, g)[1], p)
    size2 = dot(d, d)
    if size2 > TOUCHING * TOUCHING * problem.reach * problem.reach:
        turn_rows(problem, q, frames, term, column(R, 2), p, scale(F(1) / size2, d), J)


@inline
def start_target(problem, frames, term):
    """Return the target that keeps the start: a point on the axis, one reach away."""
    R, p = goal_frame(problem, frames, problem.general.ints[term, GOAL])
    return R, axpy(problem.reach, column(R, 2), p)


@inline
def aim_vectors(problem, frames, targets, term, o):
    """Return the vectors from o to a point of the axis, and from o to the target of the axis."""
    g = problem.general.ints[term, GOAL]
    return sub(goal_frame(problem, frames, g)[1], o), sub(target_frame(targets, g)[1], o)
