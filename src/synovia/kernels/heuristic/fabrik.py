"""FABRIK on trees of any joints: forward and backward reaching with joint limits inside (Aristidou & Lasenby 2011).

Inward, from the targets to the root: each joint is placed on the line to its neighbour at the bone's length,

    p_i ← d_k + L_ik (p_i - d_k) / |p_i - d_k|,

and a joint with several branches (a sub-base) at the weighted centroid of what its branches want; branches without a
goal do not vote. A joint between two that stand where they are goes to the circle about both (``spheres``), a root with
a target of its own to that. Outward, from the root, joints turn within their limits and bones keep their lengths
(``forward_pass``): limits hold in every iteration, and the answer is joint values.
"""

from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline
from synovia.kernels.goals.reach import root_goal
from synovia.kernels.goals.residuals import target_frame
from synovia.kernels.heuristic.forward_pass import hearing, reach_out, vote
from synovia.kernels.heuristic.loop import iterate_from
from synovia.kernels.heuristic.poles import face_poles
from synovia.kernels.heuristic.straight import lay_straight, look_far
from synovia.kernels.layout import (
    BALL,
    CHILD,
    COLUMN,
    GOAL_ORIENTATION,
    GOAL_ORIGIN,
    GOAL_ROW,
    IN_PLACE,
    KIND,
    ORIENTATION,
    ORIGIN,
    PARENT,
    PARTS,
    PLACE,
    POSITION,
    POSITION_WEIGHT,
    ROTATION,
    SHIFT_COLUMN,
    SIBLING,
    SLIDE,
    VARIABLE,
    WEIGHT_SUM,
)
from synovia.kernels.math.rotations import apply, load_rotation, matmul, matmul_t
from synovia.kernels.math.spheres import bend_at_rest, nearest_on_circle
from synovia.kernels.math.vectors import TINY, add, axpy, dot, load, norm, scale, store, sub
from synovia.kernels.search.finish import solve_and_finish
from synovia.kernels.tree.branches import list_branches, parent_of_point
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_general, open_problem, open_work
from synovia.kernels.tree.variables import is_limited


@inline
def pulled(d, p, length):
    """Return the point at a bone's length from d, towards p."""
    u = sub(p, d)
    size2 = dot(u, u)
    if size2 < TINY:
        return p
    return axpy(length / size2**0.5, u, d)


@device
def stands(problem, points):
    """Mark the rows whose origins nothing moves: those above them are held, and they neither slide nor walk."""
    tree = problem.tree
    for i in range(tree.ints.shape[0]):
        a = tree.ints[i, PARENT]
        held = a < 0 or (points[a, IN_PLACE] == F(1) and tree.ints[a, COLUMN] < 0)
        moves = tree.ints[i, SHIFT_COLUMN] >= 0 or (tree.ints[i, KIND] == SLIDE and tree.ints[i, COLUMN] >= 0)
        points[i, IN_PLACE] = F(1) if held and not moves else F(0)


@inline
def turns_freely(problem, a, b):
    """Return whether rows a and b are balls without limits; others rarely reach the nearest point of the circle."""
    for i in (a, b):
        k = problem.tree.ints[i, VARIABLE]
        if problem.tree.ints[i, KIND] != BALL or k < 0 or is_limited(problem.limits, k):
            return False
    return True


@inline
def has_its_place(problem, points, j):
    """Return whether the place of point j follows from a target alone: a goal's, or a row's that only carries one."""
    n = problem.tree.ints.shape[0]
    if j >= n:
        return True
    g = int(points[j, CHILD]) - n
    if (
        g < 0
        or points[n + g, SIBLING] >= F(0)
        or problem.tree.ints[j, KIND] == SLIDE
        or problem.tree.ints[j, SHIFT_COLUMN] >= 0
    ):
        return False
    at_origin = norm(load(problem.goal_data, g, GOAL_ORIGIN)) == F(0)
    return (problem.goals[g, PARTS] & POSITION) > 0 and (at_origin or (problem.goals[g, PARTS] & ROTATION) > 0)


@device
def neighbour(problem, frames, points, j, place, length):
    """Return where the joint that carries point j wants to be when j is at its place.

    On the line to where it was; or on the circle, if it is between a joint that stands and a point that has its place.
    """
    tree = problem.tree
    n = tree.ints.shape[0]
    a = parent_of_point(problem, j)
    p = load(frames, a, ORIGIN)
    b = tree.ints[a, PARENT]
    alone = int(points[a, CHILD]) == j and points[j, SIBLING] < F(0) and length > F(0)
    if not (b >= 0 and alone and points[b, IN_PLACE] == F(1) and turns_freely(problem, a, b)):
        return pulled(place, p, length)
    if not has_its_place(problem, points, j):
        return pulled(place, p, length)
    base = load(tree.fixed, a, ORIGIN)
    tip = load(tree.fixed, j, ORIGIN) if j < n else load(problem.goal_data, j - n, GOAL_ORIGIN)
    along = add(base, apply(load_rotation(tree.fixed, a, ORIENTATION), tip))
    R = load_rotation(tree.fixed, b, ORIENTATION)
    if tree.ints[b, PARENT] >= 0:
        R = matmul(load_rotation(frames, tree.ints[b, PARENT], ORIENTATION), R)
    o = load(frames, b, ORIGIN)
    return nearest_on_circle(o, norm(base), place, length, p, bend_at_rest(R, base, along, o, place))


@device
def wanted(problem, frames, targets, points):
    """Inward pass: write where each joint's origin wants to be, and with how many votes."""
    tree = problem.tree
    n = tree.ints.shape[0]
    for i in range(n):
        store(points, i, PLACE, (F(0), F(0), F(0)))
        points[i, WEIGHT_SUM] = F(0)
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, GOAL_ROW]
        what = problem.goals[g, PARTS]
        if row < 0 or not what & POSITION:
            continue
        w = problem.goal_data[g, POSITION_WEIGHT] * problem.goal_data[g, POSITION_WEIGHT]
        T, t = target_frame(targets, g)
        store(points, n + g, PLACE, t)
        points[n + g, WEIGHT_SUM] = w
        offset = load(problem.goal_data, g, GOAL_ORIGIN)
        if what & ROTATION:  # the joint's own place follows from the wanted frame
            place = sub(t, apply(matmul_t(T, load_rotation(problem.goal_data, g, GOAL_ORIENTATION)), offset))
        else:
            place = neighbour(problem, frames, points, n + g, t, norm(offset))
        vote(points, row, place, w)
    for i in range(n - 1, -1, -1):
        votes = points[i, WEIGHT_SUM]
        if votes <= F(0):
            continue
        place = scale(F(1) / votes, load(points, i, PLACE))
        a = tree.ints[i, PARENT]
        if a < 0:  # a root that walks goes where it should be, whatever its branches want
            g = root_goal(problem, i)
            if g >= 0:
                _, place = target_frame(targets, g)
        store(points, i, PLACE, place)
        if a >= 0:
            length = norm(sub(load(frames, i, ORIGIN), load(frames, a, ORIGIN)))
            vote(points, a, neighbour(problem, frames, points, i, place, length), votes)


@algorithm
def iterate(problem, work, targets, q):
    """One iteration: inward, or straight at a target beyond reach, then outward; return the largest turn (radians)."""
    wanted(problem, work.frames, targets, work.points)
    lay_straight(problem, work, targets)
    return reach_out(problem, work, targets, q), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Prepare the passes, then iterate."""
    n = problem.tree.ints.shape[0]
    forward(problem.tree, q, work.frames)
    look_far(problem, work, targets)
    list_branches(problem, work.points)
    hearing(problem, work.points)
    stands(problem, work.points)
    for g in range(problem.goals.shape[0]):
        work.points[n + g, WEIGHT_SUM] = F(0)
    return iterate_from(iterate, problem, work, targets, q)


@entry
def fabrik(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``search.finish``."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt, problem, work, targets, starts, out, warm, first)


@algorithm
def attempt_general(problem, work, targets, q):
    """Bring the places where they should be, then the poles."""
    return face_poles(attempt, problem, work, targets, q)


@entry
def fabrik_general(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems with poles; see ``search.finish``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt_general, problem, work, targets, starts, out, warm, first)
