"""Pole goal: the bend plane of a limb contains a point. See ``math.bend`` for the angle and its derivatives."""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, second_frame, third_point
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, SECOND, THIRD, WEIGHT
from synovia.kernels.math.bend import bend_of
from synovia.kernels.math.vectors import scale


@inline
def limb(problem, frames, targets, h):
    """Return root, middle and tip of the limb of term h, and its pole, in the world."""
    g = problem.general.ints[h, GOAL]
    _, m = goal_frame(problem, frames, g)
    _, pole = target_frame(targets, g)
    return second_frame(problem, frames, h)[1], m, third_point(problem, frames, h), pole


@inline
def error(problem, frames, targets, h):
    """Return the angle from the bend plane to the pole, faded to 0 where one of them is undefined."""
    bend = bend_of(*limb(problem, frames, targets, h))
    return NOTHING, (bend.fade * bend.angle, F(0), F(0))


@device
def rows(problem, q, frames, targets, h, J):
    """Write the Jacobian row from the motion of root, middle and tip.

    The fade is a weight and is not differentiated; otherwise a limb could straighten to lower its error.
    """
    f = problem.general
    r, m, t, pole = limb(problem, frames, targets, h)
    bend = bend_of(r, m, t, pole)
    k, w, row = f.ints[h, FIRST], f.data[h, WEIGHT] * bend.fade, problem.goals[f.ints[h, GOAL], GOAL_ROW]
    if w > F(0):
        add_wrench_row(problem, q, frames, f.ints[h, SECOND], r, scale(w, bend.at_root), NOTHING, J, k)
        add_wrench_row(problem, q, frames, row, m, scale(w, bend.at_middle), NOTHING, J, k)
        add_wrench_row(problem, q, frames, f.ints[h, THIRD], t, scale(w, bend.at_tip), NOTHING, J, k)
