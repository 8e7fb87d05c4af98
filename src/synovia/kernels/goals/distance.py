"""Distance goal: |p - o| stays within bounds, where o is the target or a point on another joint."""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, second_frame, unit_weight
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, NUMBERS, SECOND, TARGET_PARTS
from synovia.kernels.math.vectors import norm, normalize, scale, sub


@inline
def ends(problem, frames, targets, h):
    """Return (p, p - o)."""
    g = problem.general.ints[h, GOAL]
    _, p = goal_frame(problem, frames, g)
    _, o = target_frame(targets, g)
    if problem.general.ints[h, TARGET_PARTS] == 0:
        _, o = second_frame(problem, frames, h)
    return p, sub(p, o)


@inline
def bounds(problem, frames, targets, h):
    """Return the bounds of the distance, relative to its present value."""
    data = problem.general.data
    far = norm(ends(problem, frames, targets, h)[1])
    return data[h, NUMBERS] - far, data[h, NUMBERS + 1] - far


@device
def rows(problem, q, frames, targets, h, J):
    """Write the Jacobian row: δ|p - o| = n·(δp - δo), n = (p - o) / |p - o|, a fixed n where p = o."""
    f = problem.general
    p, apart = ends(problem, frames, targets, h)
    k, w = f.ints[h, FIRST], unit_weight(problem, h)
    n = normalize(apart, (F(0), F(0), F(1)))
    add_wrench_row(problem, q, frames, problem.goals[f.ints[h, GOAL], GOAL_ROW], p, scale(w, n), NOTHING, J, k)
    add_wrench_row(problem, q, frames, f.ints[h, SECOND], sub(p, apart), scale(-w, n), NOTHING, J, k)
