"""Direction goal: the z axis u of a frame points along the direction d of the target, which has any length except 0.

The error is the smallest rotation from u to d. Translations have no effect.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, turn_between, turn_rows
from synovia.kernels.layout import GOAL
from synovia.kernels.math.rotations import column
from synovia.kernels.math.vectors import dot, norm, scale

SMALLEST = F(1e-200)  # smallest squared length of a direction; with a shorter one, squares of small angles underflow


@inline
def is_invalid(targets, g):
    """Return whether the target has no direction."""
    d = target_frame(targets, g)[1]
    return not dot(d, d) > SMALLEST


@inline
def error(problem, frames, targets, term):
    """Return the rotation of the axis onto the direction."""
    g = problem.general.ints[term, GOAL]
    R, _ = goal_frame(problem, frames, g)
    return NOTHING, turn_between(column(R, 2), target_frame(targets, g)[1])


@device
def rows(problem, q, frames, term, J):
    """Write the three Jacobian rows."""
    R, p = goal_frame(problem, frames, problem.general.ints[term, GOAL])
    turn_rows(problem, q, frames, term, column(R, 2), p, NOTHING, NOTHING, J)


@inline
def start_target(problem, frames, term):
    """Return the target that keeps the start: the present direction of the axis."""
    R, _ = goal_frame(problem, frames, problem.general.ints[term, GOAL])
    return R, column(R, 2)


@inline
def aim_vectors(problem, targets, term):
    """Return the vectors of ``aim.aim_vectors`` for an axis through the joint and a point far along the direction."""
    d = target_frame(targets, problem.general.ints[term, GOAL])[1]
    return NOTHING, scale(problem.reach / norm(d), d)
