"""Plane goal: a point p stays on the side of the plane through t to which the normal n points.

The height n·(p - t) has the lower bound 0 and no upper bound. The error is max(0, n·(t - p)), so it is 0 in front of
the plane.
"""

from synovia.kernels.compiler.jit import device, inline
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NEVER, NOTHING, unit_weight
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW
from synovia.kernels.math.rotations import column
from synovia.kernels.math.vectors import dot, scale, sub


@inline
def bounds(problem, frames, targets, term):
    """Return the bounds of the height over the plane, relative to its present value."""
    g = problem.general.ints[term, GOAL]
    _, p = goal_frame(problem, frames, g)
    T, t = target_frame(targets, g)
    return dot(column(T, 2), sub(t, p)), NEVER


@device
def rows(problem, q, frames, targets, term, J):
    """Write the Jacobian row: the height changes by n·δp."""
    general = problem.general
    g, k = general.ints[term, GOAL], general.ints[term, FIRST]
    _, p = goal_frame(problem, frames, g)
    n = scale(unit_weight(problem, term), column(target_frame(targets, g)[0], 2))
    add_wrench_row(problem, q, frames, problem.goals[g, GOAL_ROW], p, n, NOTHING, J, k)
