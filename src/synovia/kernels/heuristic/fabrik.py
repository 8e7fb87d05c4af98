"""FABRIK on trees of any joints: forward and backward reaching within joint limits (Aristidou & Lasenby 2011).

The backward pass goes from the targets to the root (the paper calls this forward reaching). It places each joint on the
line to its neighbour, at the length of the bone,

    p_i ← d_k + L_ik (p_i - d_k) / |p_i - d_k|.

A joint with several branches (a sub-base) moves to the weighted centroid of the positions that its branches propose;
branches without a goal propose none. A joint between two immobile joints moves to the circle about both (``spheres``).
A root with its own target moves to this target. In the forward pass, from the root, joints rotate within their limits
and bones keep their lengths (``forward_pass``). So limits hold in every iteration, and the answer is joint values.
"""

from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, step
from synovia.kernels.goals.frames import goal_offset, row_target, target_frame
from synovia.kernels.goals.reach import root_goal
from synovia.kernels.heuristic.forward_pass import add_candidate, forward_pass, prepare_passes
from synovia.kernels.heuristic.loop import iterate_from, solve_and_finish
from synovia.kernels.heuristic.poles import attempt_with_poles
from synovia.kernels.heuristic.straight import aim_straight
from synovia.kernels.layout import (
    BALL,
    CHILD,
    COLUMN,
    GOAL_ROW,
    IN_PLACE,
    KIND,
    PARENT,
    PARTS,
    PLACE,
    POSITION,
    POSITION_WEIGHT,
    ROTATION,
    SIBLING,
    SLIDE,
    TRANSLATION_COLUMN,
    VARIABLE,
    WEIGHT_SUM,
)
from synovia.kernels.math.rotations import apply, matmul, origin_of, rotation_of
from synovia.kernels.math.spheres import bend_at_rest, nearest_on_circle
from synovia.kernels.math.vectors import TINY, add, axpy, dot, load, norm, scale, store, sub
from synovia.kernels.search.multistart import Begins
from synovia.kernels.tree.branches import parent_of_point
from synovia.kernels.tree.problem import open_general, open_work
from synovia.kernels.tree.variables import is_limited


@inline
def on_line(d, p, length):
    """Return the point at a bone's length from d, towards p."""
    u = sub(p, d)
    size2 = dot(u, u)
    if size2 < TINY:
        return p
    return axpy(length / size2**0.5, u, d)


@device
def mark_immobile(problem, points):
    """Mark the rows with immobile origins: they do not slide or translate, and no row above them can move."""
    tree = problem.tree
    for i in range(tree.ints.shape[0]):
        a = tree.ints[i, PARENT]
        held = a < 0 or (points[a, IN_PLACE] == F(1) and tree.ints[a, COLUMN] < 0)
        shifts = tree.ints[i, TRANSLATION_COLUMN] >= 0 or (tree.ints[i, KIND] == SLIDE and tree.ints[i, COLUMN] >= 0)
        points[i, IN_PLACE] = F(1) if held and not shifts else F(0)


@inline
def turns_freely(problem, a, b):
    """Return whether rows a and b are unlimited balls; other joints rarely reach the nearest point of the circle."""
    for i in (a, b):
        k = problem.tree.ints[i, VARIABLE]
        if problem.tree.ints[i, KIND] != BALL or k < 0 or is_limited(problem.limits, k):
            return False
    return True


@inline
def has_fixed_place(problem, points, j):
    """Return whether point j is a goal, or a joint whose only child is a goal that fixes the joint's position."""
    n = problem.tree.ints.shape[0]
    if j >= n:
        return True
    g = int(points[j, CHILD]) - n
    if (
        g < 0
        or points[n + g, SIBLING] >= F(0)
        or problem.tree.ints[j, KIND] == SLIDE
        or problem.tree.ints[j, TRANSLATION_COLUMN] >= 0
    ):
        return False
    at_origin = norm(goal_offset(problem, g)) == F(0)
    return (problem.goals[g, PARTS] & POSITION) > 0 and (at_origin or (problem.goals[g, PARTS] & ROTATION) > 0)


@device
def carrier_place(problem, frames, points, j, place, length):
    """Return the position that point j proposes for its parent joint.

    It is on the line from ``place``, the new position of j, to the joint. If the joint is between an immobile joint and
    a point with a fixed position, it is on the circle about both.
    """
    tree = problem.tree
    n = tree.ints.shape[0]
    a = parent_of_point(problem, j)
    p = origin_of(frames, a)
    b = tree.ints[a, PARENT]
    alone = int(points[a, CHILD]) == j and points[j, SIBLING] < F(0) and length > F(0)
    if not (b >= 0 and alone and points[b, IN_PLACE] == F(1) and turns_freely(problem, a, b)):
        return on_line(place, p, length)
    if not has_fixed_place(problem, points, j):
        return on_line(place, p, length)
    base = origin_of(tree.fixed, a)
    tip = origin_of(tree.fixed, j) if j < n else goal_offset(problem, j - n)
    along = add(base, apply(rotation_of(tree.fixed, a), tip))
    R = rotation_of(tree.fixed, b)
    if tree.ints[b, PARENT] >= 0:
        R = matmul(rotation_of(frames, tree.ints[b, PARENT]), R)
    o = origin_of(frames, b)
    return nearest_on_circle(o, norm(base), place, length, p, bend_at_rest(R, base, along, o, place))


@device
def backward_pass(problem, frames, targets, points):
    """Write the new position (place) of each joint's origin, and the sum of the weights of its candidates."""
    tree = problem.tree
    n = tree.ints.shape[0]
    for i in range(n):
        store(points, i, PLACE, (F(0), F(0), F(0)))
        points[i, WEIGHT_SUM] = F(0)
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, GOAL_ROW]
        parts = problem.goals[g, PARTS]
        if row < 0 or not parts & POSITION:
            continue
        w = problem.goal_data[g, POSITION_WEIGHT] * problem.goal_data[g, POSITION_WEIGHT]
        _, t = target_frame(targets, g)
        store(points, n + g, PLACE, t)
        points[n + g, WEIGHT_SUM] = w
        if parts & ROTATION:  # the target frame determines the position of the goal's joint
            place = row_target(problem, targets, g)
        else:
            place = carrier_place(problem, frames, points, n + g, t, norm(goal_offset(problem, g)))
        add_candidate(points, row, place, w)
    for i in range(n - 1, -1, -1):
        weight = points[i, WEIGHT_SUM]
        if weight <= F(0):
            continue
        place = scale(F(1) / weight, load(points, i, PLACE))
        a = tree.ints[i, PARENT]
        if a < 0:  # a free root with a goal moves to the target of that goal
            g = root_goal(problem, i)
            if g >= 0:
                _, place = target_frame(targets, g)
        store(points, i, PLACE, place)
        if a >= 0:
            length = norm(sub(origin_of(frames, i), origin_of(frames, a)))
            add_candidate(points, a, carrier_place(problem, frames, points, i, place, length), weight)


@step
def iterate(problem, work, targets, q):
    """Run the backward pass (or aim at an unreachable target) and the forward pass; return the largest step."""
    backward_pass(problem, work.frames, targets, work.points)
    aim_straight(problem, work, targets)
    return forward_pass(problem, work, targets, q), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Prepare the passes, then iterate."""
    n = problem.tree.ints.shape[0]
    prepare_passes(problem, work, targets, q)
    mark_immobile(problem, work.points)
    for g in range(problem.goals.shape[0]):
        work.points[n + g, WEIGHT_SUM] = F(0)
    return iterate_from(iterate, problem, work, targets, q)


@algorithm
def attempt_with_limbs(problem, work, targets, q):
    """Meet the pose goals, then rotate limbs towards their poles."""
    return attempt_with_poles(attempt, problem, work, targets, q)


@entry
def fabrik(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems of positions, rotations and poles; see ``search.multistart``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt_with_limbs, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
