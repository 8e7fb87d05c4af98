"""What each joint carries, as lists: a pass over a tree then looks at each bone once, however long the chains are.

Points are the rows of the tree and, after them, its goals. Columns of ``points``: the first point that a row carries,
the next one beside it, and the span of a row's subtree in depth-first order.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import CHILD, ENTER, GOAL_ROW, LEAVE, PARENT, PARTS, SIBLING


@inline
def parent_of_point(problem, j):
    """Return the row that carries point j (a row, or the number of rows plus a goal)."""
    n = problem.tree.ints.shape[0]
    return problem.tree.ints[j, PARENT] if j < n else problem.goals[j - n, GOAL_ROW]


@device
def list_branches(problem, points):
    """Write, for each row, the first point that it carries, each point's next sibling, and the span of its subtree.

    So that an iteration looks at each bone once: chains of a thousand joints cost a hundred times those of ten.
    """
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
        asks = j < n or problem.goals[j - n, PARTS] != 0  # a goal for no place is no point
        if a >= 0 and asks:
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
    """Return whether joint i is an ancestor of point j, or the point itself."""
    return points[i, ENTER] <= points[j, ENTER] < points[i, LEAVE]


@inline
def next_point(problem, points, i, j, deeper):
    """Return the point after j in the subtree of joint i, below j itself only with ``deeper``; -1 after the last."""
    if deeper and points[j, CHILD] >= F(0):
        return int(points[j, CHILD])
    while points[j, SIBLING] < F(0):
        j = parent_of_point(problem, j)
        if j == i:
            return -1
    return int(points[j, SIBLING])
