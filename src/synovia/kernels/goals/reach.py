"""Prove goals unreachable by distance bounds, which are cheap and hold for any joint limits."""

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, inline
from synovia.kernels.goals.frames import goal_offset, row_target, target_frame
from synovia.kernels.goals.residuals import goal_error
from synovia.kernels.layout import (
    COLUMN,
    FREE,
    GOAL_ROW,
    KIND,
    LOWER,
    OFFSET,
    PARENT,
    PARTS,
    POSITION,
    RATIO,
    ROTATION,
    SLIDE,
    TRANSLATION_COLUMN,
    UPPER,
    VARIABLE,
)
from synovia.kernels.math.rotations import apply, origin_of, rotation_of
from synovia.kernels.math.vectors import add, norm, sub


@inline
def slide_range(problem, row):
    """Return the largest distance of a slide from its zero; infinite without limits."""
    k = problem.tree.ints[row, VARIABLE]
    a, b = problem.tree.couple[row, RATIO], problem.tree.couple[row, OFFSET]
    return max(abs(a * problem.limits[k, LOWER] + b), abs(a * problem.limits[k, UPPER] + b))


@inline
def root_goal(problem, row):
    """Return the position goal at the origin of a free root, -1 without one."""
    if problem.tree.ints[row, TRANSLATION_COLUMN] >= 0 and problem.tree.ints[row, PARENT] < 0:
        for g in range(problem.goals.shape[0]):
            if problem.goals[g, GOAL_ROW] == row and problem.goals[g, PARTS] & POSITION:
                if norm(goal_offset(problem, g)) <= F(1e-12) * problem.reach:
                    return g
    return -1


@device
def least_distance(problem, frames, targets, row, tip, point):
    """Return a lower bound of the distance between ``point`` and the tip of a chain, over all postures.

    The tip is at distance ``tip`` from joint ``row``. A negative bound proves nothing. A free root without a target of
    its own reaches every point; with one, the root is taken at its target.

    With segments of lengths d, a chain from a fixed base reaches the distances from max(0, 2 max(d) - sum(d)) to
    sum(d); limits can only shrink that range. Slides lengthen the sum. They remove the hole around the base, and so do
    free joints and joints that are held between others, whose segments may make an angle.
    """
    total = tip
    longest = tip
    has_hole = True
    base = -1  # the moving joint nearest to the root so far
    pending = F(0)  # length of the segments above it
    while row >= 0:
        kind = problem.tree.ints[row, KIND]
        if problem.tree.ints[row, TRANSLATION_COLUMN] >= 0:
            g = root_goal(problem, row)
            if g < 0:
                return F(-np.inf)
            _, origin = target_frame(targets, g)
            total += pending
            longest = max(longest, pending)
            away = norm(sub(point, origin))
            nearest = F(2) * longest - total if has_hole else F(0)
            return max(away - total, nearest - away) - problem.tolerance  # the root may miss its target by that much
        if problem.tree.ints[row, COLUMN] >= 0:
            if base >= 0:
                total += pending
                longest = max(longest, pending)
            if kind == SLIDE:
                has_hole = False
                total += slide_range(problem, row)
            base = row
            pending = norm(origin_of(problem.tree.fixed, row))
            if kind == FREE:
                pending += held_shift(problem, frames, row)
                has_hole = False
        else:
            segment = norm(origin_of(problem.tree.fixed, row)) + held_shift(problem, frames, row)
            has_hole = False
            if base >= 0:
                pending += segment
            else:
                total += segment
        row = problem.tree.ints[row, PARENT]
    if base < 0 or not total < np.inf:
        return F(-np.inf)
    origin = rest_origin(problem, frames, base) if problem.tree.ints[base, KIND] == SLIDE else origin_of(frames, base)
    away = norm(sub(point, origin))
    nearest = F(2) * longest - total if has_hole else F(0)
    return max(away - total, nearest - away)


@inline
def rest_origin(problem, frames, row):
    """Return the origin of a joint before its own motion, in the world."""
    a = problem.tree.ints[row, PARENT]
    p = origin_of(problem.tree.fixed, row)
    return p if a < 0 else add(origin_of(frames, a), apply(rotation_of(frames, a), p))


@inline
def held_shift(problem, frames, row):
    """Return the distance of a held slide or free joint from its rest position."""
    return norm(sub(origin_of(frames, row), rest_origin(problem, frames, row)))


@inline
def moves(problem, row):
    """Return whether joint ``row`` or an ancestor can move."""
    while row >= 0:
        if problem.tree.ints[row, COLUMN] >= 0 or problem.tree.ints[row, TRANSLATION_COLUMN] >= 0:
            return True
        row = problem.tree.ints[row, PARENT]
    return False


@inline
def missed(problem, frames, targets, g):
    """Return whether the position or the rotation of goal g is missed."""
    d, w = goal_error(problem, frames, targets, g)
    far = problem.goals[g, PARTS] & POSITION and norm(d) > problem.tolerance
    turned = problem.goals[g, PARTS] & ROTATION and norm(w) > problem.tolerance_angle
    return far or turned


@algorithm
def prove_unreachable(problem, work, targets, q):
    """Return (1, 0) if a goal is beyond the reach of its chain or inside its hole, else (0, 0). work.frames are at q.

    A goal with a rotation is also tested at its joint, whose target position then follows. A missed position or
    rotation that no joint moves is unreachable.
    """
    frames = work.frames
    for g in range(problem.goals.shape[0]):
        if not moves(problem, problem.goals[g, GOAL_ROW]):
            if missed(problem, frames, targets, g):
                return 1, F(0)
            continue
        if not problem.goals[g, PARTS] & POSITION:
            continue
        _, t = target_frame(targets, g)
        offset = goal_offset(problem, g)
        row = problem.goals[g, GOAL_ROW]
        slack = problem.tolerance + F(1e-12) * (problem.reach + norm(t))
        if least_distance(problem, frames, targets, row, norm(offset), t) > slack:
            return 1, F(0)
        if problem.goals[g, PARTS] & ROTATION:
            slack += problem.tolerance_angle * norm(offset)
            if least_distance(problem, frames, targets, row, F(0), row_target(problem, targets, g)) > slack:
                return 1, F(0)
    return 0, F(0)


@device
def at_bound(problem, frames, targets, errors):
    """Return whether each error is within the tolerance of its lower bound, so that other postures cannot gain."""
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, GOAL_ROW]
        if row >= 0 and not moves(problem, row):
            continue
        bound = F(0)
        if problem.goals[g, PARTS] & POSITION:
            _, t = target_frame(targets, g)
            bound = max(bound, least_distance(problem, frames, targets, row, norm(goal_offset(problem, g)), t))
        if errors[2 * g] > bound + problem.tolerance or errors[2 * g + 1] > problem.tolerance_angle:
            return False
    return True


@algorithm
def prove_arm_unreachable(problem, work, targets, q):
    """Return (1, 0) if the goal of an arm is unreachable, else (0, 0): ``prove_unreachable`` with less to compile."""
    if not problem.goals[0, PARTS] & POSITION:
        return 0, F(0)
    tree = problem.tree
    _, t = target_frame(targets, 0)
    total = F(0)
    longest = F(0)
    travel = F(0)
    for i in range(tree.ints.shape[0]):
        if i > 0:
            bone = norm(origin_of(tree.fixed, i))
            total += bone
            longest = max(longest, bone)
        if tree.ints[i, KIND] == SLIDE:
            travel += max(abs(problem.limits[i, LOWER]), abs(problem.limits[i, UPPER]))
    origin = origin_of(tree.fixed, 0)
    tip = norm(goal_offset(problem, 0))
    slack = problem.tolerance + F(1e-12) * (problem.reach + norm(t))
    for step in range(2):  # the goal itself, then the joint that carries it
        if step == 1:
            if not problem.goals[0, PARTS] & ROTATION:
                break
            t = row_target(problem, targets, 0)
            slack += problem.tolerance_angle * tip
            tip = F(0)
        away = norm(sub(t, origin))
        hole = F(2) * max(longest, tip) - total - tip
        if away > total + tip + travel + slack or (travel == F(0) and away < hole - slack):
            return 1, F(0)
    return 0, F(0)
