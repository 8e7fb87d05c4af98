"""Contact goal: the normal of a sole points along a target normal. Its position is an ordinary position residual.

With u the z axis of the goal's frame and n that of the target, the error is the smallest rotation vector from u to n:

    w = θ (u × n) / |u × n|,  θ = atan2(|u × n|, u·n)

The rotation about u is free, so a foot may pivot. A rotation δω of the sole moves its normal by δω × u, so minus the
derivative is 1 - u uᵀ near θ = 0; the gradient Jᵀe is exact for every θ. A translation has no effect.
"""

from synovia.kernels.compiler.jit import device, inline
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, turn_between, turn_rows
from synovia.kernels.layout import GOAL
from synovia.kernels.math.rotations import column


@inline
def error(problem, frames, targets, term):
    """Return the error: zero length, and the smallest rotation vector from the normal to the target normal."""
    g = problem.general.ints[term, GOAL]
    R, _ = goal_frame(problem, frames, g)
    T, _ = target_frame(targets, g)
    return NOTHING, turn_between(column(R, 2), column(T, 2))


@device
def rows(problem, q, frames, term, J):
    """Write the Jacobian of the rotation of ``error`` into three rows of J, which must be zero."""
    R, p = goal_frame(problem, frames, problem.general.ints[term, GOAL])
    turn_rows(problem, q, frames, term, column(R, 2), p, NOTHING, NOTHING, J)
