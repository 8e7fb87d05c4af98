"""Contact: a sole's normal, the z axis of the goal's frame, is that of the target; its point is a position goal."""

from synovia.kernels.compiler.jit import device, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, turn_between, turn_rows
from synovia.kernels.layout import GOAL
from synovia.kernels.math.rotations import column


@inline
def error(problem, frames, targets, h):
    """Return the smallest turn of the normal onto the wanted one."""
    g = problem.further.ints[h, GOAL]
    R, _ = goal_frame(problem, frames, g)
    T, _ = target_frame(targets, g)
    return NOTHING, turn_between(column(R, 2), column(T, 2))


@device
def rows(problem, q, frames, h, J):
    """Write the three rows of the turn."""
    R, p = goal_frame(problem, frames, problem.further.ints[h, GOAL])
    turn_rows(problem, q, frames, h, column(R, 2), p, NOTHING, J)
