"""FABRIK as published, on positions only: one chain of unlimited balls, one position goal (Aristidou & Lasenby 2011).

The points move as in the paper's Algorithm 1: backward from the target, then forward from the root (the paper calls
them forward and backward reaching). At the end each bone takes the smallest rotation from its old direction to the
direction of its points. The forward kinematics of these joint values gives the points. Two bones need no iteration
(``spheres``).
``fabrik`` does the same on any tree, with limits.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, perform
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.frames import goal_frame, goal_offset, target_frame
from synovia.kernels.heuristic.loop import nudge, solve_and_finish
from synovia.kernels.layout import BEST, BONE, FIRST_Q, PLACE, POSITION_WEIGHT
from synovia.kernels.math.rotations import (
    apply,
    apply_t,
    identity,
    load_quat,
    matmul,
    origin_of,
    quat_apply,
    quat_between,
    quat_matrix,
    quat_mul,
    quat_normalize,
    rotation_of,
    store_quat,
)
from synovia.kernels.math.spheres import bend_at_rest, nearest_on_circle
from synovia.kernels.math.vectors import TINY, add, axpy, dot, load, norm, store, sub
from synovia.kernels.search.descent import INSIDE, STILL, falls_slowly
from synovia.kernels.search.finish import CLEARLY_LOWER
from synovia.kernels.search.multistart import Begins
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work

# Columns of ``points``: the point (0-2), the length of the bone from it to the next (3), the best point so far (4-6)


@inline
def placed(K, p, towards, length):
    """Return the point at a bone's length from p on the line to ``towards`` (equations 3 and 6 of the paper).

    If p and ``towards`` are the same point, return that point.

    The function computes in the type K and without a branch, so that ``simd.fabrik_chain`` can also use it.
    """
    u = sub(towards, p)
    size2 = dot(u, u)
    apart = size2 > K(TINY)
    share = length / math.sqrt(size2 if apart else K(1))
    return axpy(share if apart else K(1), u, p)


@device
def lay_out(problem, work, q):
    """Write the points of the chain at q, the tip last, and the lengths between them; return their sum."""
    n = problem.tree.ints.shape[0]
    forward(problem.tree, q, work.frames)
    total = F(0)
    for i in range(n):
        store(work.points, i, PLACE, origin_of(work.frames, i))
    _, tip = goal_frame(problem, work.frames, 0)
    store(work.points, n, PLACE, tip)
    for i in range(n):
        last = i == n - 1
        work.points[i, BONE] = norm(goal_offset(problem, 0) if last else origin_of(problem.tree.fixed, i + 1))
        total += work.points[i, BONE]
    return total


@device
def iterate(points, n, root, t):
    """Move the points once backward, from the target, and once forward, from the root."""
    p = t
    store(points, n, PLACE, p)
    for i in range(n - 1, 0, -1):
        p = placed(F, p, load(points, i, PLACE), points[i, BONE])
        store(points, i, PLACE, p)
    p = root
    for i in range(n):
        p = placed(F, p, load(points, i + 1, PLACE), points[i, BONE])
        store(points, i + 1, PLACE, p)


@device
def place_elbow(problem, work, t):
    """Place the middle of two bones, between the root and the target, on the circle about both; then the tip."""
    points, tree = work.points, problem.tree
    root = load(points, 0, PLACE)
    R, A = rotation_of(tree.fixed, 0), rotation_of(tree.fixed, 1)
    base = origin_of(tree.fixed, 1)
    tip_at_rest = add(base, apply(A, goal_offset(problem, 0)))
    side = bend_at_rest(R, base, tip_at_rest, root, t)
    p = nearest_on_circle(root, points[0, BONE], t, points[1, BONE], load(points, 1, PLACE), side)
    store(points, 1, PLACE, p)
    store(points, 2, PLACE, placed(F, p, t, points[1, BONE]))


@device
def turn_joints(problem, work, q):
    """Rotate the joints in q so that they lie on the best points; each rotation is the smallest possible."""
    tree = problem.tree
    n = tree.ints.shape[0]
    R = identity()
    for i in range(n):
        at = tree.ints[i, FIRST_Q]
        R = matmul(R, rotation_of(tree.fixed, i))
        bone = goal_offset(problem, 0) if i == n - 1 else origin_of(tree.fixed, i + 1)
        old = load_quat(q, at)
        wanted = apply_t(R, sub(load(work.points, i + 1, BEST), load(work.points, i, BEST)))
        new = quat_normalize(quat_mul(quat_between(quat_apply(old, bone), wanted), old))
        store_quat(q, at, new)
        R = matmul(R, quat_matrix(new))


@algorithm
def attempt(problem, work, targets, q):
    """Iterate until the goal is met, the error falls too slowly, or the iterations are spent."""
    n = problem.tree.ints.shape[0]
    points = work.points
    _, t = target_frame(targets, 0)
    total = lay_out(problem, work, q)
    root = load(points, 0, PLACE)
    most = INSIDE * problem.tolerance
    best = F(0)
    lowest = F(0)
    earlier = F(0)
    nudged = False
    before = load(points, n, PLACE)
    far = norm(sub(t, root)) > total
    for k in range(problem.max_steps + 1):
        tip = load(points, n, PLACE)
        error = sub(t, tip)
        cost = dot(error, error)
        lowest = cost if k == 0 else min(cost, lowest)
        if k == 0 or cost < CLEARLY_LOWER * best:
            best = cost
            for i in range(n + 1):
                store(points, i, BEST, load(points, i, PLACE))
        if cost <= most * most or k == problem.max_steps or stopped(work.watch, n):
            break
        if far and k > 0:
            break  # the straight line is the best pose
        slowly, earlier = falls_slowly(problem, k, lowest, earlier)
        if slowly:
            break
        if far:
            for i in range(n):
                store(points, i + 1, PLACE, placed(F, load(points, i, PLACE), t, points[i, BONE]))
            continue
        if n == 2:
            place_elbow(problem, work, t)
        else:
            iterate(points, n, root, t)
        moved = sub(load(points, n, PLACE), before)
        before = load(points, n, PLACE)
        if dot(moved, moved) <= (STILL * problem.reach) * (STILL * problem.reach):
            if nudged:
                break
            nudged = True
            perform(nudge, problem, work, targets, q)
            lay_out(problem, work, q)  # restart from the pose off the line
    if k > 0:
        turn_joints(problem, work, q)
    weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach
    return k, best * weight * weight


@entry
def fabrik_chain(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems of one chain; see ``search.multistart``."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
