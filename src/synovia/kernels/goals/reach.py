"""Prove goals unreachable by distance bounds, which are cheap and hold for any joint limits."""

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, inline
from synovia.kernels.goals.frames import goal_offset, row_target, target_frame
from synovia.kernels.goals.general import WITHIN
from synovia.kernels.goals.residuals import goal_error
from synovia.kernels.goals.within import distances, outside, placed
from synovia.kernels.layout import (
    COLUMN,
    GOAL,
    GOAL_ROW,
    KIND,
    LENGTHS,
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
from synovia.kernels.math.rotations import apply, column, origin_of, rotation_of
from synovia.kernels.math.vectors import add, axpy, dot, norm, sub


@inline
def slide_limits(problem, row):
    """Return the limits of a slide, also if it follows another joint."""
    k = problem.tree.ints[row, VARIABLE]
    a, b = problem.tree.couple[row, RATIO], problem.tree.couple[row, OFFSET]
    u, v = a * problem.limits[k, LOWER] + b, a * problem.limits[k, UPPER] + b
    return min(u, v), max(u, v)


@inline
def slide_span(v, axis, low, high):
    """Return the smallest and the largest distance between two joints if the second is a slide.

    ``v`` leads from the first joint to the slide at the value zero; the slide then moves along ``axis`` by ``low`` to
    ``high``.
    """
    near = min(max(-dot(v, axis), low), high)
    return norm(axpy(near, axis, v)), max(norm(axpy(low, axis, v)), norm(axpy(high, axis, v)))


@inline
def root_goal(problem, row):
    """Return the position goal at the origin of a free root, -1 without one."""
    if problem.tree.ints[row, TRANSLATION_COLUMN] >= 0 and problem.tree.ints[row, PARENT] < 0:
        for g in range(problem.goals.shape[0]):
            if problem.goals[g, GOAL_ROW] == row and problem.goals[g, PARTS] & POSITION:
                if norm(goal_offset(problem, g)) <= F(1e-12) * problem.reach:
                    return g
    return -1


@inline
def next_moving(problem, row):
    """Return ``row`` or its nearest ancestor that can move, -1 without one."""
    while row >= 0:
        if problem.tree.ints[row, COLUMN] >= 0 or problem.tree.ints[row, TRANSLATION_COLUMN] >= 0:
            break
        row = problem.tree.ints[row, PARENT]
    return row


@device
def chain_span(problem, frames, targets, row, tip):
    """Return the base of a chain, and bounds of the distance of its tip from the base, over all postures.

    The tip is at distance ``tip`` from joint ``row``. A free root without a target of its own reaches every point; a
    root with a target is assumed to be at its target, which it may miss by the tolerance.

    The chain is a sequence of segments between the origins of its moving joints. Rigid parts between them (fixed and
    held joints, the translation of a free joint) belong to a segment, so its length is the distance in the current
    pose. A slide has a range of lengths. Let segment i have a length from a_i to b_i. Then the tip is at most Σ b_i
    from the base, and at least max(a_i + b_i) - Σ b_i. Limits of angles can only shrink this range.

    Returns:
        (base, smallest distance, largest distance).
    """
    everywhere = (F(0), F(0), F(0)), F(-np.inf), F(np.inf)
    total = tip
    widest = F(2) * tip
    above = next_moving(problem, row)
    if above < 0:
        return everywhere
    if above != row:  # held joints between the tip and the moving joint
        held = norm(sub(origin_of(frames, row), origin_of(frames, above)))
        total += held
        widest = max(widest, F(2) * held)
    row = above
    origin = origin_of(frames, row)
    slack = F(0)
    while row >= 0:
        if problem.tree.ints[row, TRANSLATION_COLUMN] >= 0:
            g = root_goal(problem, row)
            if g < 0:
                return everywhere
            _, origin = target_frame(targets, g)
            slack = problem.tolerance  # the root may miss its target by the tolerance
            break
        is_slide = problem.tree.ints[row, KIND] == SLIDE
        above = next_moving(problem, problem.tree.ints[row, PARENT])
        origin = rest_origin(problem, frames, row) if is_slide else origin_of(frames, row)
        v = sub(origin, origin_of(frames, above)) if above >= 0 else (F(0), F(0), F(0))
        if is_slide:
            low, high = slide_limits(problem, row)
            if not high - low < np.inf:
                return everywhere
            near, far = slide_span(v, column(rotation_of(frames, row), 2), low, high)
        else:
            far = norm(v)
            near = far
        total += far
        widest = max(widest, near + far)
        row = above
    return origin, widest - total - slack, total + slack


@device
def least_distance(problem, frames, targets, row, tip, point):
    """Return a lower bound of the distance between ``point`` and the tip of a chain, over all postures.

    The tip is at distance ``tip`` from joint ``row``. A negative bound proves nothing; see ``chain_span``.
    """
    origin, least, most = chain_span(problem, frames, targets, row, tip)
    away = norm(sub(point, origin))
    return max(away - most, least - away)


@inline
def rest_origin(problem, frames, row):
    """Return the world origin of a joint before its own motion."""
    a = problem.tree.ints[row, PARENT]
    p = origin_of(problem.tree.fixed, row)
    return p if a < 0 else add(origin_of(frames, a), apply(rotation_of(frames, a), p))


@inline
def missed(problem, frames, targets, g):
    """Return whether the position or the rotation of goal g is missed."""
    d, w = goal_error(problem, frames, targets, g)
    far = problem.goals[g, PARTS] & POSITION and norm(d) > problem.tolerance
    turned = problem.goals[g, PARTS] & ROTATION and norm(w) > problem.tolerance_angle
    return far or turned


@algorithm
def prove_unreachable(problem, work, targets, q):
    """Return (1, 0) if a goal is too far from the base of its chain, or too near, else (0, 0). work.frames are at q.

    A goal with a rotation is also tested at its joint, because the goal then determines the joint's position. A missed
    position or rotation that no joint moves is unreachable.
    """
    frames = work.frames
    for g in range(problem.goals.shape[0]):
        if next_moving(problem, problem.goals[g, GOAL_ROW]) < 0:
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
    return bounds_unreachable(problem.general, problem, frames, targets), F(0)


@device
def bounds_unreachable(general, problem, frames, targets):
    """Return 1 if no position within the bounds of a goal is in reach, else 0; see ``prove_unreachable``."""
    if general is None:
        return 0
    for term in range(general.ints.shape[0]):
        if general.ints[term, KIND] != WITHIN:
            continue
        g = general.ints[term, GOAL]
        row = problem.goals[g, GOAL_ROW]
        if next_moving(problem, row) < 0:
            e = norm(outside(general, term, placed(problem, frames, targets, term)))
            if e > (problem.tolerance if general.ints[term, LENGTHS] > 0 else problem.tolerance_angle):
                return 1
        elif general.ints[term, LENGTHS] > 0:
            T, t = target_frame(targets, g)
            base, least, most = chain_span(problem, frames, targets, row, norm(goal_offset(problem, g)))
            near, far = distances(general, term, (T, t), base)
            slack = problem.tolerance + F(1e-12) * (problem.reach + norm(t))
            if near > most + slack or far < least - slack:
                return 1
    return 0


@device
def at_bound(problem, frames, targets, errors):
    """Return whether each error is within the tolerance of its lower bound, so that no other pose can be better."""
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, GOAL_ROW]
        if row >= 0 and next_moving(problem, row) < 0:
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
    widest = F(0)
    for i in range(tree.ints.shape[0]):
        v = origin_of(tree.fixed, i) if i > 0 else (F(0), F(0), F(0))
        if tree.ints[i, KIND] == SLIDE:
            low, high = problem.limits[i, LOWER], problem.limits[i, UPPER]
            if not high - low < np.inf:
                return 0, F(0)
            near, far = slide_span(v, column(rotation_of(tree.fixed, i), 2), low, high)
        else:
            far = norm(v)
            near = far
        total += far
        widest = max(widest, near + far)
    origin = origin_of(tree.fixed, 0)
    tip = norm(goal_offset(problem, 0))
    slack = problem.tolerance + F(1e-12) * (problem.reach + norm(t))
    for step in range(2):  # test the goal itself, then its joint
        if step == 1:
            if not problem.goals[0, PARTS] & ROTATION:
                break
            t = row_target(problem, targets, 0)
            slack += problem.tolerance_angle * tip
            tip = F(0)
        away = norm(sub(t, origin))
        most = total + tip
        if away > most + slack or away < max(widest, F(2) * tip) - most - slack:
            return 1, F(0)
    return 0, F(0)
