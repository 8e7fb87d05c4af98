"""The straight-line rule: if the only target is out of reach, every bone points at it (Aristidou & Lasenby 2011).

For balls without limits this is the best pose. With a hinge or a limit the ordinary passes end nearer to the target.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import goal_offset, target_frame
from synovia.kernels.goals.reach import least_distance, root_goal
from synovia.kernels.layout import BLOCK, GOAL_ROW, PARENT, PARTS, PLACE, POSITION, STRAIGHT, TURN, VARIABLE
from synovia.kernels.math.rotations import origin_of
from synovia.kernels.math.vectors import norm, store, sub
from synovia.kernels.tree.variables import is_limited


@device
def aim_straight(problem, work, targets):
    """Set the place of every joint to the target that is out of reach; return whether there is such a target."""
    if problem.tree.ints.shape[0] == 0:  # the first row of ``points`` is then that of a goal
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
def unreachable_goal(problem, work, targets):
    """Return the goal that is out of reach if it is the only goal except for a root's own target; -1 otherwise.

    work.frames are at the start.
    """
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
    tip = norm(goal_offset(problem, found))
    _, t = target_frame(targets, found)
    far = least_distance(problem, work.frames, targets, row, tip, t) > F(0)
    return (
        found if far and turns_freely_to(problem, row) and is_beyond_bones(problem, work, targets, t, row, tip) else -1
    )


@inline
def turns_freely_to(problem, row):
    """Return whether the moving joints of the chain to a row are all balls without limits."""
    while row >= 0:
        k = problem.tree.ints[row, VARIABLE]
        if k >= 0 and (problem.variables[k, BLOCK] != TURN or is_limited(problem.limits, k)):
            return False
        row = problem.tree.ints[row, PARENT]
    return True


@inline
def is_beyond_bones(problem, work, targets, t, row, tip):
    """Return whether a target is farther from the base of the chain to a row than the sum of the chain's bones."""
    total = tip
    base = row
    while row >= 0:
        base = row
        if problem.tree.ints[row, PARENT] >= 0:
            total += norm(origin_of(problem.tree.fixed, row))
        row = problem.tree.ints[row, PARENT]
    origin = origin_of(work.frames, base)
    g = root_goal(problem, base)
    if g >= 0:
        _, origin = target_frame(targets, g)
    return norm(sub(t, origin)) > total
