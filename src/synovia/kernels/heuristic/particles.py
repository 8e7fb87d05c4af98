"""Joints as particles: position-based dynamics with joint limits (Jakobsen 2001; Müller et al. 2007).

Each goal's point has a particle, and so has each joint that a position goal depends on. Goals are pinned to their
targets (inverse mass w = 0), and the root to its position unless it can translate. Then the distance constraints are
met one after the other, as in a simulation of cloth, with n = (p_i - p_j) / |p_i - p_j|:

    p_i ← p_i - w_i / (w_i + w_j) (|p_i - p_j| - d) n,    p_j ← p_j + w_j / (w_i + w_j) (|p_i - p_j| - d) n

(Müller et al., eq. 10 and 11). Bones are such constraints, and so are the distances between the children of one joint,
which keep its branches in shape. After some rounds every joint rotates towards its particles within its limits
(``forward_pass``). The next iteration starts from the forward kinematics of these joints.
"""

from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, step
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.frames import goal_frame, row_target, target_frame
from synovia.kernels.goals.reach import root_goal
from synovia.kernels.heuristic.forward_pass import forward_pass, prepare_passes
from synovia.kernels.heuristic.loop import iterate_from, solve_and_finish
from synovia.kernels.heuristic.poles import attempt_with_poles
from synovia.kernels.heuristic.straight import aim_straight
from synovia.kernels.layout import (
    GOAL_NOW,
    GOAL_ROW,
    INVERSE_MASS,
    LENGTH,
    PARENT,
    PARTS,
    PLACE,
    POSITION,
    POSITION_WEIGHT,
    ROTATION,
    ROUNDS,
    SIBLING,
    TRANSLATION_COLUMN,
    WEIGHT_SUM,
)
from synovia.kernels.math.rotations import origin_of
from synovia.kernels.math.vectors import TINY, axpy, dot, load, norm, store, sub
from synovia.kernels.search.multistart import Begins
from synovia.kernels.tree.branches import parent_of_point
from synovia.kernels.tree.problem import open_general, open_work

# More columns of ``points``: inverse mass of the particle (12), length of the bone to its parent (13)
MIN_ROUNDS, MAX_ROUNDS = 4, 5000  # smallest and largest number of rounds
SPREAD = 20  # n² / SPREAD rounds for n bones: a correction spreads like heat, in rounds that grow with n²


@device
def rounds_of(problem):
    """Return the number of rounds of an iteration: the setting, or n² / 20 for the longest chain of n joints.

    Measured on 10 to 300 bones: with fewer rounds, each iteration of a long chain gains almost nothing.
    """
    if problem.params[ROUNDS] > F(0):
        return int(problem.params[ROUNDS])
    longest = 0
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, GOAL_ROW]
        joints = 0
        while row >= 0:
            joints += 1
            row = problem.tree.ints[row, PARENT]
        longest = max(longest, joints)
    return min(max(longest * longest // SPREAD, MIN_ROUNDS), MAX_ROUNDS)


@device
def place_particles(problem, work, targets):
    """Place a particle at every joint and goal, and pin the particles that have a target.

    Each row gets the sum of the weights of the position goals below it; if the sum is 0, its particle is not used.
    """
    tree, points = problem.tree, work.points
    n = tree.ints.shape[0]
    for i in range(n):
        store(points, i, PLACE, origin_of(work.frames, i))
        points[i, WEIGHT_SUM] = F(0)
        points[i, INVERSE_MASS] = F(1)
    for g in range(problem.goals.shape[0]):
        row, parts = problem.goals[g, GOAL_ROW], problem.goals[g, PARTS]
        points[n + g, WEIGHT_SUM] = F(0)
        if parts == 0:
            continue
        _, p = goal_frame(problem, work.frames, g)
        store(points, n + g, GOAL_NOW, p)
        if row < 0 or not parts & POSITION:
            continue
        points[n + g, WEIGHT_SUM] = problem.goal_data[g, POSITION_WEIGHT] * problem.goal_data[g, POSITION_WEIGHT]
        points[row, WEIGHT_SUM] += points[n + g, WEIGHT_SUM]
        _, t = target_frame(targets, g)
        store(points, n + g, PLACE, t)
        points[n + g, INVERSE_MASS] = F(0)
        if parts & ROTATION:  # the target frame determines the position of the goal's joint
            store(points, row, PLACE, row_target(problem, targets, g))
            points[row, INVERSE_MASS] = F(0)
    for i in range(n - 1, -1, -1):
        a = tree.ints[i, PARENT]
        if a >= 0:
            points[a, WEIGHT_SUM] += points[i, WEIGHT_SUM]
            continue
        g = root_goal(problem, i)
        if g >= 0:
            _, t = target_frame(targets, g)
            store(points, i, PLACE, t)
        if tree.ints[i, TRANSLATION_COLUMN] < 0 or g >= 0:
            points[i, INVERSE_MASS] = F(0)


@inline
def keep_distance(points, i, j, length):
    """Move particles i and j along their line to the distance ``length``, each by its share of the inverse masses."""
    w = points[i, INVERSE_MASS] + points[j, INVERSE_MASS]
    apart = sub(load(points, i, PLACE), load(points, j, PLACE))
    distance2 = dot(apart, apart)
    if w > F(0) and distance2 > TINY:
        distance = distance2**0.5
        k = (distance - length) / (w * distance)
        store(points, i, PLACE, axpy(-points[i, INVERSE_MASS] * k, apart, load(points, i, PLACE)))
        store(points, j, PLACE, axpy(points[j, INVERSE_MASS] * k, apart, load(points, j, PLACE)))


@inline
def point_of(problem, work, j):
    """Return the present position of point j, a row or a goal."""
    n = problem.tree.ints.shape[0]
    return origin_of(work.frames, j) if j < n else load(work.points, j, GOAL_NOW)


@device
def meet_constraints(problem, work, j):
    """Meet the constraints of point j: its bone, and its distance to the next child of the same joint."""
    points = work.points
    a = parent_of_point(problem, j)
    if a < 0 or points[j, WEIGHT_SUM] <= F(0):
        return
    keep_distance(points, j, a, points[j, LENGTH])
    sibling = int(points[j, SIBLING])
    while sibling >= 0 and points[sibling, WEIGHT_SUM] <= F(0):
        sibling = int(points[sibling, SIBLING])
    if sibling >= 0:
        keep_distance(points, j, sibling, norm(sub(point_of(problem, work, j), point_of(problem, work, sibling))))


@step
def iterate(problem, work, targets, q):
    """Pin the goals, meet the constraints in rounds, then rotate the joints; return the largest step (radians)."""
    points = work.points
    count = points.shape[0]
    place_particles(problem, work, targets)
    for j in range(count):
        a = parent_of_point(problem, j)
        if a >= 0 and points[j, WEIGHT_SUM] > F(0):  # with a sum of 0, no goal depends on the particle
            points[j, LENGTH] = norm(sub(point_of(problem, work, j), origin_of(work.frames, a)))
    for _ in range(0 if aim_straight(problem, work, targets) else rounds_of(problem)):
        for j in range(count - 1, -1, -1):
            meet_constraints(problem, work, j)
        for j in range(count):
            meet_constraints(problem, work, j)
        if stopped(work.watch, count):
            break
    return forward_pass(problem, work, targets, q), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Prepare the passes, then iterate."""
    prepare_passes(problem, work, targets, q)
    return iterate_from(iterate, problem, work, targets, q)


@algorithm
def attempt_with_limbs(problem, work, targets, q):
    """Meet the pose goals, then rotate limbs towards their poles."""
    return attempt_with_poles(attempt, problem, work, targets, q)


@entry
def particles(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems of positions, rotations and poles; see ``search.multistart``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt_with_limbs, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
