"""Distance goal: |p - o| stays within bounds, where o is the target or a point on another joint."""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, other_frame, unit_weight
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, NUMBERS, OTHER_ROW, TARGET_PARTS
from synovia.kernels.math.vectors import norm, normalize, scale, sub


@inline
def ends(problem, frames, targets, term):
    """Return the goal's point p and the vector p - o, in the world."""
    g = problem.general.ints[term, GOAL]
    _, p = goal_frame(problem, frames, g)
    _, o = target_frame(targets, g)
    if problem.general.ints[term, TARGET_PARTS] == 0:
        _, o = other_frame(problem, frames, term)
    return p, sub(p, o)


@inline
def bounds(problem, frames, targets, term):
    """Return the bounds of the distance, relative to its present value."""
    data = problem.general.data
    far = norm(ends(problem, frames, targets, term)[1])
    return data[term, NUMBERS] - far, data[term, NUMBERS + 1] - far


@device
def rows(problem, q, frames, targets, term, J):
    """Write the Jacobian row: δ|p - o| = n·(δp - δo) with n = (p - o) / |p - o|, or with a fixed n if p = o."""
    general = problem.general
    p, apart = ends(problem, frames, targets, term)
    k, w = general.ints[term, FIRST], unit_weight(problem, term)
    n = normalize(apart, (F(0), F(0), F(1)))
    add_wrench_row(problem, q, frames, problem.goals[general.ints[term, GOAL], GOAL_ROW], p, scale(w, n), NOTHING, J, k)
    add_wrench_row(problem, q, frames, general.ints[term, OTHER_ROW], sub(p, apart), scale(-w, n), NOTHING, J, k)
