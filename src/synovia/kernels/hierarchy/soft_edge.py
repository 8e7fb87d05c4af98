"""The edge of reach, softened: a chain that is drawn straight turns its joints by the root of the distance.

Over the last part of a chain's reach, and beyond it, a target counts as nearer than it is: with reach R and part s, one
at distance d > (1 - s) R as if it were at (1 - s) R + s R (1 - exp(-(d - (1 - s) R) / (s R))), which stays below R and
has no corner. The miss that this leaves is a miss.
"""

import math

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.goals.frames import target_frame
from synovia.kernels.layout import (
    BALL,
    COLUMN,
    FIRST_RESIDUAL,
    GOAL_ORIGIN,
    GOAL_ROW,
    HINGE,
    KIND,
    ORIGIN,
    PARENT,
    PARTS,
    POSITION,
    POSITION_WEIGHT,
    SHIFT_COLUMN,
)
from synovia.kernels.math.vectors import load, norm, scale, sub


@device
def span(problem, g):
    """Return (reach of goal g's chain, the joint that it counts from); -1 where slides or a free root have no edge."""
    row = problem.goals[g, GOAL_ROW]
    total = norm(load(problem.goal_data, g, GOAL_ORIGIN))
    reach = total
    base = -1
    while row >= 0:
        if problem.tree.ints[row, SHIFT_COLUMN] >= 0:
            return reach, -1
        if problem.tree.ints[row, COLUMN] >= 0:
            kind = problem.tree.ints[row, KIND]
            if kind != HINGE and kind != BALL:
                return reach, -1
            base = row
            reach = total
        total += norm(load(problem.tree.fixed, row, ORIGIN))
        row = problem.tree.ints[row, PARENT]
    return reach, base


@device
def soften(problem, frames, targets, part, e):
    """Take from the residuals of positions what lies in the last part of reach.

    Returns:
        The largest of those errors in units of the tolerance: a goal that holds by chance, on the way from one softened
        place to the next, does not stop there.
    """
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        if not problem.goals[g, PARTS] & POSITION:
            continue
        reach, base = span(problem, g)
        if base < 0:
            continue
        _, t = target_frame(targets, g)
        d = sub(t, load(frames, base, ORIGIN))
        far = norm(d)
        begins, width = (F(1) - part) * reach, part * reach
        if far > begins:
            near = begins + width * (F(1) - math.exp((begins - far) / width))
            back = scale(problem.goal_data[g, POSITION_WEIGHT] / problem.reach * (near / far - F(1)), d)
            k = problem.goals[g, FIRST_RESIDUAL]
            for i in range(3):
                e[k + i] += back[i]
            left = norm((e[k], e[k + 1], e[k + 2])) * problem.reach / problem.goal_data[g, POSITION_WEIGHT]
            worst = max(worst, left / problem.tolerance)
    return worst
