"""Soft IK: soften the edge of reach, where joint angles change with the square root of the target's distance.

A target near the end of a chain's reach R, or beyond, is moved closer. With a share s, a target at the distance
d > (1 - s) R moves to (1 - s) R + s R (1 - exp(-(d - (1 - s) R) / (s R))). This is smooth and stays below R. The
remaining distance counts as a miss.
"""

import math

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.goals.frames import goal_offset, target_frame
from synovia.kernels.layout import (
    BALL,
    COLUMN,
    FIRST_RESIDUAL,
    GOAL_ROW,
    HINGE,
    KIND,
    PARENT,
    PARTS,
    POSITION,
    POSITION_WEIGHT,
    TRANSLATION_COLUMN,
)
from synovia.kernels.math.rotations import origin_of
from synovia.kernels.math.vectors import norm, scale, sub


@device
def chain_reach(problem, g):
    """Return (reach of the chain of goal g, in length units; row of its first moving joint).

    The reach is the distance along the bones from that joint to the goal. The row is -1 if nothing moves, or if slides
    or a free root extend the reach.
    """
    row = problem.goals[g, GOAL_ROW]
    total = norm(goal_offset(problem, g))
    reach = total
    base = -1
    while row >= 0:
        if problem.tree.ints[row, TRANSLATION_COLUMN] >= 0:
            return reach, -1
        if problem.tree.ints[row, COLUMN] >= 0:
            kind = problem.tree.ints[row, KIND]
            if kind != HINGE and kind != BALL:
                return reach, -1
            base = row
            reach = total
        total += norm(origin_of(problem.tree.fixed, row))
        row = problem.tree.ints[row, PARENT]
    return reach, base


@device
def soften(problem, frames, targets, share, e):
    """Replace the position residuals in e by those to the softened targets.

    ``share`` is the part of the reach, from 0 to 1, in which targets are softened.

    Returns:
        The largest of these residuals in units of the tolerance. So a descent does not stop where a goal is met by
        chance on the way to its softened target.
    """
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        if not problem.goals[g, PARTS] & POSITION:
            continue
        reach, base = chain_reach(problem, g)
        if base < 0:
            continue
        _, t = target_frame(targets, g)
        d = sub(t, origin_of(frames, base))
        far = norm(d)
        edge, width = (F(1) - share) * reach, share * reach
        if far > edge:
            softened = edge + width * (F(1) - math.exp((edge - far) / width))
            back = scale(problem.goal_data[g, POSITION_WEIGHT] / problem.reach * (softened / far - F(1)), d)
            k = problem.goals[g, FIRST_RESIDUAL]
            for i in range(3):
                e[k + i] += back[i]
            left = norm((e[k], e[k + 1], e[k + 2])) * problem.reach / problem.goal_data[g, POSITION_WEIGHT]
            worst = max(worst, left / problem.tolerance)
    return worst
