"""Contact: the normal of a sole points along a wanted normal. Its point is a position goal, its full pose a pose goal.

With u the z axis of the goal's frame and n that of the target, the error is the rotation vector of the smallest turn:

    w = θ (u × n) / |u × n|,  θ = atan2(|u × n|, u·n)

The turn about u is free, so that a foot may pivot. Where the sole turns by δω, its normal moves by δω × u, so that the
rows are those of 1 - u uᵀ; a shift changes nothing.
"""

from synovia.kernels.compiler.jit import device, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, turn_between, turn_rows
from synovia.kernels.layout import GOAL
from synovia.kernels.math.rotations import column


@inline
def error(problem, frames, targets, h):
    """Return the smallest turn of the normal onto the wanted one."""
    g = problem.general.ints[h, GOAL]
    R, _ = goal_frame(problem, frames, g)
    T, _ = target_frame(targets, g)
    return NOTHING, turn_between(column(R, 2), column(T, 2))


@device
def rows(problem, q, frames, h, J):
    """Write the three rows of the turn."""
    R, p = goal_frame(problem, frames, problem.general.ints[h, GOAL])
    turn_rows(problem, q, frames, h, column(R, 2), p, NOTHING, J)
