"""Children of each joint as linked lists, so that a pass over the tree visits each bone once.

Points are the rows of the tree, followed by the goals. A point has these columns in ``points``: its first child
(CHILD), its next sibling (SIBLING), and the span of its subtree in depth-first order (ENTER to LEAVE).
"""

import numpy as np

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import CHILD, ENTER, GOAL_ROW, LEAVE, PARENT, PARTS, SIBLING, VARIABLE


@inline
def parent_of_point(problem, j):
    """Return the parent row of point j. A point is a row, or the number of rows plus a goal."""
    n = problem.tree.ints.shape[0]
    return problem.tree.ints[j, PARENT] if j < n else problem.goals[j - n, GOAL_ROW]


@inline
def moving_row(problem, row, n):
    """Return the n-th moving row (from 0) on the path from ``row`` to the root; -1 if there are fewer."""
    row = np.int64(row)
    while row >= 0 and (problem.tree.ints[row, VARIABLE] < 0 or n > 0):
        n -= 1 if problem.tree.ints[row, VARIABLE] >= 0 else 0
        row = np.int64(problem.tree.ints[row, PARENT])
    return row


@device
def link_children(problem, points):
    """Write the first child and the next sibling of each point, and the span of its subtree."""
    tree = problem.tree
    n = tree.ints.shape[0]
    last = n + problem.goals.shape[0]
    for j in range(last):
        points[j, CHILD] = F(-1)
        points[j, SIBLING] = F(-1)
        points[j, ENTER] = F(-1)
        points[j, LEAVE] = F(-1)
    for j in range(last - 1, -1, -1):
        a = parent_of_point(problem, j)
        has_target = j < n or problem.goals[j - n, PARTS] != 0  # a goal without a target pose is left out
        if a >= 0 and has_target:
            points[j, SIBLING] = points[a, CHILD]
            points[a, CHILD] = j
    count = 0
    for root in range(n):
        if tree.ints[root, PARENT] >= 0:
            continue
        j = root
        while j >= 0:
            points[j, ENTER] = count
            count += 1
            deeper = int(points[j, CHILD])
            while deeper < 0:
                points[j, LEAVE] = count
                if j == root:
                    break
                deeper = int(points[j, SIBLING])
                if deeper < 0:
                    j = parent_of_point(problem, j)
            j = deeper


@inline
def is_ancestor(points, i, j):
    """Return whether joint i is an ancestor of point j or is j itself."""
    return points[i, ENTER] <= points[j, ENTER] < points[i, LEAVE]


@inline
def next_point(problem, points, i, j, deeper):
    """Return the point after j in the subtree of joint i, -1 at its end. Skip the children of j unless ``deeper``."""
    if deeper and points[j, CHILD] >= F(0):
        return int(points[j, CHILD])
    while points[j, SIBLING] < F(0):
        j = parent_of_point(problem, j)
        if j == i:
            return -1
    return int(points[j, SIBLING])
