"""The forward pass of FABRIK and particles: from the root on, every joint rotates its bones towards new positions.

Each joint and each goal has a place: the position that the previous step computed for it. The parent's world frame is
known. So each joint takes the rotation within its limits that best points the joints and goals below it at their
places. Forward kinematics then gives the world frames of the joint's children.

Columns of ``points`` (rows of the tree, then its goals): place (0-2) and the sum of its weights (3); for goals, the row
of the wrist that is nearest to the root (4); the branches (5-8, see ``branches``). Goals have no children; their column
8 holds the row nearest to the tip that uses them directly, and columns 9-11 their position after the last iteration.
Column 9 of row 0 holds the goal that is out of reach, or -1 (``STRAIGHT``). Rows of general goals belong to ``swivel``.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import goal_frame, goal_offset, target_frame
from synovia.kernels.heuristic.coupled import is_shared, move_together
from synovia.kernels.heuristic.straight import unreachable_goal
from synovia.kernels.layout import (
    BALL,
    CHILD,
    DIRECT,
    FREE,
    GOAL_NOW,
    GOAL_ROW,
    HINGE,
    KIND,
    PARENT,
    PARTS,
    PLACE,
    RATIO,
    ROTATION,
    ROTATION_WEIGHT,
    SLIDE,
    STRAIGHT,
    TRANSLATION_COLUMN,
    VARIABLE,
    WEIGHT_SUM,
    WRIST_TOP,
)
from synovia.kernels.math.rotations import (
    apply,
    apply_t,
    column,
    matmul,
    origin_of,
    rotation_of,
    store_frame,
    transposed,
)
from synovia.kernels.math.vectors import add, axpy, dot, load, norm, store, sub
from synovia.kernels.tree.branches import is_ancestor, link_children, next_point
from synovia.kernels.tree.forward import forward, translation_axes, world_frame
from synovia.kernels.tree.turn import add_direction, add_frame, slide_to, turn_joint, zero_covariance
from synovia.kernels.tree.variables import is_limited

LEVER = F(1e-6)  # fraction of the length scale: points nearer to a hinge's axis do not determine the hinge
WRIST = 3  # number of degrees of freedom above a goal that serve its rotation


@inline
def is_unlimited_ball(problem, row):
    """Return whether a joint is a ball without a limit, which can point its bone in every direction."""
    k = problem.tree.ints[row, VARIABLE]
    turns = problem.tree.ints[row, KIND] == BALL or problem.tree.ints[row, KIND] == FREE
    return k >= 0 and turns and not is_limited(problem.limits, k)


@device
def is_driven_below(problem, row, g):
    """Return whether a row between goal g and ``row`` has the same variable, so that ``row`` adds no freedom."""
    i = problem.goals[g, GOAL_ROW] if problem.coupled else row
    while i != row:
        if problem.tree.ints[i, VARIABLE] == problem.tree.ints[row, VARIABLE]:
            return True
        i = problem.tree.ints[i, PARENT]
    return False


@device
def find_serving_joints(problem, points):
    """Write, for each goal, the joints that use the goal directly, and not only through the places of their bones.

    ``WRIST_TOP``: the row nearest to the root among the rows that serve the rotation of the goal, which are the first
    three degrees of freedom above the goal.

    ``DIRECT``: the first row from the goal to the root that is not an unlimited ball. This row and all rows above use
    the position of the goal. Above a hinge the rotation of an unlimited ball about its bone also matters, and the place
    of the bone does not determine it. ``link_children`` must run before.
    """
    tree = problem.tree
    n = tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, GOAL_ROW]
        top = row
        direct = -1
        freedom = 0
        lever = norm(goal_offset(problem, g)) > F(0)  # whether the goal's own joint moves the goal's position
        while row >= 0:
            if freedom < WRIST and tree.ints[row, VARIABLE] >= 0 and not is_driven_below(problem, row, g):
                freedom += 1 if tree.ints[row, KIND] == HINGE else (0 if tree.ints[row, KIND] == SLIDE else 3)
                top = row
            if lever and direct < 0 and not is_unlimited_ball(problem, row):
                direct = row
            lever = True  # the joints above move the goal
            row = tree.ints[row, PARENT]
        points[n + g, WRIST_TOP] = top
        points[n + g, DIRECT] = direct


@device
def prepare_passes(problem, work, targets, q):
    """Write work.frames at q, the branches, and the parts of ``points`` that stay the same in all iterations."""
    forward(problem.tree, q, work.frames)
    work.points[0, STRAIGHT] = unreachable_goal(problem, work, targets)
    link_children(problem, work.points)
    find_serving_joints(problem, work.points)


@inline
def add_candidate(points, i, place, w):
    """Add a candidate for the place of joint i with the weight w. FABRIK divides the sum by the sum of weights."""
    store(points, i, PLACE, axpy(w, place, load(points, i, PLACE)))
    points[i, WEIGHT_SUM] += w


@device
def bone_covariance(problem, frames, targets, points, i, R, o):
    """Return the covariance M (see ``tree.turn``) of the points below joint i.

    R, o is the world frame of the joint before its rotation. The nearest points below with a lever are used. A point on
    the axis of a hinge does not determine the hinge's rotation, so the points below that point are used instead. A
    joint that is not an unlimited ball, and every joint above such a joint, also uses the goals directly. With only
    bones, a seven-hinge arm reached none of 60 targets, and an unlimited ball above a hinge 6 of 100. With the goals,
    the arm reached all of them.
    """
    tree = problem.tree
    n = tree.ints.shape[0]
    M = zero_covariance()
    W = rotation_of(frames, i)
    p = origin_of(frames, i)
    hinge = tree.ints[i, KIND] == HINGE
    j = int(points[i, CHILD])
    while j >= 0:
        deeper = False
        if points[j, WEIGHT_SUM] > F(0):
            here = origin_of(frames, j) if j < n else load(points, j, GOAL_NOW)
            d = apply(R, apply_t(W, sub(here, p)))  # all points below the joint move with it
            across = axpy(-dot(d, column(R, 2)), column(R, 2), d) if hinge else d
            deeper = not norm(across) > LEVER * problem.reach  # use the points below instead
            if not deeper:
                M = add_direction(M, points[j, WEIGHT_SUM], d, sub(load(points, j, PLACE), o))
        j = next_point(problem, points, i, j, deeper)
    for g in range(problem.goals.shape[0]):
        if points[n + g, WEIGHT_SUM] > F(0) and i <= points[n + g, DIRECT] and is_ancestor(points, i, n + g):
            d = apply(R, apply_t(W, sub(load(points, n + g, GOAL_NOW), p)))
            M = add_direction(M, points[n + g, WEIGHT_SUM], d, sub(load(points, n + g, PLACE), o))
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] & ROTATION and i >= points[n + g, WRIST_TOP] and is_ancestor(points, i, n + g):
            A, _ = goal_frame(problem, frames, g)
            G = matmul(R, matmul(transposed(W), A))
            T, _ = target_frame(targets, g)
            w = problem.goal_data[g, ROTATION_WEIGHT] * problem.reach
            M = add_frame(M, w * w, G, T)
    return M


@device
def slide_error(problem, frames, points, i, R, o):
    """Return the displacement of slide i along its axis; R, o is its world frame before the displacement.

    The displacement is the weighted mean, along the axis, of the errors of the position goals below. The places of
    joints are ignored: they keep the lengths but not the directions of bones, and a slide moves its bones without a
    rotation.
    """
    n = problem.tree.ints.shape[0]
    axis = column(R, 2)
    W = rotation_of(frames, i)
    p = origin_of(frames, i)
    error = F(0)
    total = F(0)
    for g in range(problem.goals.shape[0]):
        w = points[n + g, WEIGHT_SUM]
        if w > F(0) and is_ancestor(points, i, n + g):
            d = apply(R, apply_t(W, sub(load(points, n + g, GOAL_NOW), p)))
            error += w * dot(axis, sub(load(points, n + g, PLACE), add(o, d)))
            total += w
    return error / total if total > F(0) else F(0)


@device
def forward_pass(problem, work, targets, q):
    """Move every joint towards the places, root first; return the largest step (radians or length scales).

    Joints that share a variable move together afterwards, towards the goals.
    """
    tree = problem.tree
    frames, points = work.frames, work.points
    n = tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] != 0:
            _, p = goal_frame(problem, frames, g)
            store(points, n + g, GOAL_NOW, p)
    most = F(0)
    for i in range(n):
        R, o = world_frame(tree, i, q, frames)
        k, kind = tree.ints[i, VARIABLE], tree.ints[i, KIND]
        if k >= 0 and not (problem.coupled and is_shared(problem, k)):
            if tree.ints[i, TRANSLATION_COLUMN] >= 0 and points[i, WEIGHT_SUM] > F(0):
                axes = translation_axes(tree, i, q, R)
                way = sub(load(points, i, PLACE), o)
                for c in range(3):
                    axis = column(axes, c)
                    by = slide_to(problem, q, k - 3 + c, dot(axis, way), F(0))
                    o = axpy(by, axis, o)
                    most = max(most, abs(by) / problem.reach)
            if kind == SLIDE:
                ratio = tree.couple[i, RATIO]
                if ratio != F(0) and points[i, WEIGHT_SUM] > F(0):
                    axis = column(R, 2)
                    by = ratio * slide_to(problem, q, k, slide_error(problem, frames, points, i, R, o) / ratio, F(0))
                    o = axpy(by, axis, o)
                    most = max(most, abs(by) / problem.reach)
            elif kind == HINGE or kind == BALL or kind == FREE:
                R, moved = turn_joint(
                    problem, q, i, R, bone_covariance(problem, frames, targets, points, i, R, o), F(0), F(0)
                )
                most = max(most, moved)
        store_frame(frames, i, R, o)
    if problem.coupled:
        forward(tree, q, frames)
        for k in range(problem.variables.shape[0]):
            if is_shared(problem, k):
                most = max(most, move_together(problem, work, targets, q, k, F(0), F(0)))
    return most
