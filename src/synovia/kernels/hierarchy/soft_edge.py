"""Soft IK: soften the edge of reach, where joint angles change with the square root of the target's distance.

A target near the full length L of a chain, or beyond, is moved closer. With a share s, a target at the distance
far > (1 - s) L moves to (1 - s) L + s L (1 - exp(-(far - (1 - s) L) / (s L))). This distance has a continuous slope and
stays below L. The final check measures the distance to the original target.
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
def chain_length(problem, g):
    """Return (length of the chain of goal g; row of the moving joint nearest to the root).

    The length is the distance along the bones from that joint to the goal. The row is -1, and the length is undefined,
    if no joint moves or if a slide or a free joint can lengthen the chain.
    """
    row = problem.goals[g, GOAL_ROW]
    total = norm(goal_offset(problem, g))
    length = total
    base = -1
    while row >= 0:
        if problem.tree.ints[row, TRANSLATION_COLUMN] >= 0:
            return length, -1
        if problem.tree.ints[row, COLUMN] >= 0:
            kind = problem.tree.ints[row, KIND]
            if kind != HINGE and kind != BALL:
                return length, -1
            base = row
            length = total
        total += norm(origin_of(problem.tree.fixed, row))
        row = problem.tree.ints[row, PARENT]
    return length, base


@device
def soften(problem, frames, targets, share, e):
    """Replace the position residuals in e by the residuals to the softened targets.

    ``share`` is the fraction (0 to 1) of the length of a chain in which targets are softened.

    Returns:
        The largest of these residuals in units of the tolerance, 0 without a softened target. Callers use the maximum
        of this value and the true error, so that a descent does not stop at a pose that meets a goal by chance.
    """
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        if not problem.goals[g, PARTS] & POSITION:
            continue
        length, base = chain_length(problem, g)
        if base < 0:
            continue
        _, t = target_frame(targets, g)
        d = sub(t, origin_of(frames, base))
        far = norm(d)
        edge, width = (F(1) - share) * length, share * length
        if far > edge:
            softened_far = edge + width * (F(1) - math.exp((edge - far) / width))
            correction = scale(problem.goal_data[g, POSITION_WEIGHT] / problem.reach * (softened_far / far - F(1)), d)
            k = problem.goals[g, FIRST_RESIDUAL]
            for i in range(3):
                e[k + i] += correction[i]
            left = norm((e[k], e[k + 1], e[k + 2])) * problem.reach / problem.goal_data[g, POSITION_WEIGHT]
            worst = max(worst, left / problem.tolerance)
    return worst
