"""The straight-line rule: where the only target is beyond reach, every bone points at it (Aristidou & Lasenby 2011).

It is for balls without limits, where it is the best pose. A hinge, or a limit, keeps bones from lying straight; there
the ordinary passes end nearer to the target.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.reach import least_distance, root_goal
from synovia.kernels.goals.residuals import target_frame
from synovia.kernels.layout import (
    BLOCK,
    GOAL_ORIGIN,
    GOAL_ROW,
    ORIGIN,
    PARENT,
    PARTS,
    PLACE,
    POSITION,
    STRAIGHT,
    TURN,
    VARIABLE,
)
from synovia.kernels.math.vectors import load, norm, store, sub
from synovia.kernels.tree.variables import is_limited


@device
def look_far(problem, work, targets):
    """Find the goal beyond reach if it is the only one, but for a root's own target; work.frames are at the start."""
    work.points[0, STRAIGHT] = reaches_too_far(problem, work, targets)


@device
def lay_straight(problem, work, targets):
    """Let every joint want to be at the target beyond reach, if that is what there is; return whether."""
    if problem.tree.ints.shape[0] == 0:  # nothing moves: the first row of ``points`` is that of a goal
        return False
    straight = int(work.points[0, STRAIGHT])
    if straight < 0:
        return False
    _, t = target_frame(targets, straight)
    for i in range(problem.tree.ints.shape[0]):
        if root_goal(problem, i) < 0:
            store(work.points, i, PLACE, t)
    return True


@device
def reaches_too_far(problem, work, targets):
    """Return the goal that is beyond reach if it is the only one, but for a root's own target; -1 otherwise."""
    found = -1
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, GOAL_ROW]
        if row < 0 or problem.goals[g, PARTS] == 0 or root_goal(problem, row) == g:
            continue
        if found >= 0 or not problem.goals[g, PARTS] & POSITION:
            return -1
        found = g
    if found < 0:
        return -1
    row = problem.goals[found, GOAL_ROW]
    tip = norm(load(problem.goal_data, found, GOAL_ORIGIN))
    _, t = target_frame(targets, found)
    far = least_distance(problem, work.frames, targets, row, tip, t) > F(0)
    return found if far and turns_any_way(problem, row) and farther(problem, work, targets, t, row, tip) else -1


@inline
def turns_any_way(problem, row):
    """Return whether all that moves on the chain to a row are rotations without limits."""
    while row >= 0:
        k = problem.tree.ints[row, VARIABLE]
        if k >= 0 and (problem.variables[k, BLOCK] != TURN or is_limited(problem.limits, k)):
            return False
        row = problem.tree.ints[row, PARENT]
    return True


@inline
def farther(problem, work, targets, t, row, tip):
    """Return whether a place is beyond the sum of the lengths (and not inside the hole) of the chain to a row."""
    total = tip
    base = row
    while row >= 0:
        base = row
        if problem.tree.ints[row, PARENT] >= 0:
            total += norm(load(problem.tree.fixed, row, ORIGIN))
        row = problem.tree.ints[row, PARENT]
    origin = load(work.frames, base, ORIGIN)
    g = root_goal(problem, base)
    if g >= 0:
        _, origin = target_frame(targets, g)
    return norm(sub(t, origin)) > total
