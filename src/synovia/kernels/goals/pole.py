"""Pole goal: the bend plane of a limb contains a point. See ``math.bend`` for the angle and its derivatives."""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, other_frame, tip_point
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, OTHER_ROW, TIP_ROW, WEIGHT
from synovia.kernels.math.bend import bend_of
from synovia.kernels.math.vectors import scale


@inline
def limb(problem, frames, targets, term):
    """Return root, middle and tip of the limb of a term, and its pole, in the world."""
    g = problem.general.ints[term, GOAL]
    _, m = goal_frame(problem, frames, g)
    _, pole = target_frame(targets, g)
    return other_frame(problem, frames, term)[1], m, tip_point(problem, frames, term), pole


@inline
def error(problem, frames, targets, term):
    """Return the angle from the bend plane to the pole, faded to 0 where the plane or the pole has no direction."""
    bend = bend_of(*limb(problem, frames, targets, term))
    return NOTHING, (bend.fade * bend.angle, F(0), F(0))


@device
def rows(problem, q, frames, targets, term, J):
    """Write the Jacobian row from the motion of root, middle and tip.

    The fade is a weight and is not differentiated; otherwise a limb could straighten to lower its error.
    """
    general = problem.general
    r, m, t, pole = limb(problem, frames, targets, term)
    bend = bend_of(r, m, t, pole)
    k, w = general.ints[term, FIRST], general.data[term, WEIGHT] * bend.fade
    row = problem.goals[general.ints[term, GOAL], GOAL_ROW]
    if w > F(0):
        add_wrench_row(problem, q, frames, general.ints[term, OTHER_ROW], r, scale(w, bend.at_root), NOTHING, J, k)
        add_wrench_row(problem, q, frames, row, m, scale(w, bend.at_middle), NOTHING, J, k)
        add_wrench_row(problem, q, frames, general.ints[term, TIP_ROW], t, scale(w, bend.at_tip), NOTHING, J, k)
