"""Cyclic coordinate descent on trees: each joint, from the tips to the root, takes the best rotation for its goals.

For a hinge with one position goal, this is the angle between the projections of effector and target onto the plane
normal to its axis. For a ball, it is the smallest rotation that points the effector at the target (Wang & Chen 1991;
Welman 1993). Several goals and orientations enter the optimum of one joint with their weights, so no step raises the
error. Coupled joints move together (``coupled``). Stiff joints rotate less away from their preferred value
(``turn.apply_stiffness``).

Poles come last: each limb rotates about the line from root to tip, which moves neither of them (``poles``).
"""

from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, step
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.heuristic.coupled import is_last_row, is_shared, move_together
from synovia.kernels.heuristic.loop import iterate_from, solve_and_finish
from synovia.kernels.heuristic.poles import attempt_with_poles
from synovia.kernels.layout import (
    CARRIER,
    FREE,
    GOAL_ROW,
    KIND,
    ORIGIN,
    PARENT,
    PARTS,
    POSITION,
    POSITION_WEIGHT,
    RATIO,
    ROTATION,
    ROTATION_WEIGHT,
    SLIDE,
    SMALLEST_TURN,
    STIFFNESS_FACTOR,
    TRANSLATION_COLUMN,
    VARIABLE,
)
from synovia.kernels.math.rotations import apply, column, frame_of, matmul, matmul_t, origin_of, store_frame
from synovia.kernels.math.vectors import add, axpy, dot, store, sub
from synovia.kernels.search.multistart import Begins
from synovia.kernels.tree.forward import forward, translation_axes
from synovia.kernels.tree.problem import open_general, open_work
from synovia.kernels.tree.turn import add_direction, add_frame, slide_to, turn_joint, zero_covariance


@inline
def effector(work, n, g):
    """Return the current world frame of goal g during the sweep."""
    return frame_of(work.points, n + g)


@inline
def carries(problem, work, i, g):
    """Return whether joint i moves pose goal g in this sweep."""
    n = problem.tree.ints.shape[0]
    return problem.goals[g, PARTS] != 0 and work.points[n + g, CARRIER] == i


@device
def place_effectors(problem, work):
    """Write the world frames of the pose goals, from work.frames; rows of poles are unchanged (see ``swivel``)."""
    n = problem.tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] == 0:
            continue
        R, p = goal_frame(problem, work.frames, g)
        store_frame(work.points, n + g, R, p)


@device
def goal_covariance(problem, work, targets, i, o):
    """Return the covariance M (see ``tree.turn``) of the goals that joint i, with origin o, moves."""
    n = problem.tree.ints.shape[0]
    M = zero_covariance()
    for g in range(problem.goals.shape[0]):
        if not carries(problem, work, i, g):
            continue
        R, p = effector(work, n, g)
        T, t = target_frame(targets, g)
        if problem.goals[g, PARTS] & POSITION:
            w = problem.goal_data[g, POSITION_WEIGHT] / problem.reach
            M = add_direction(M, w * w, sub(p, o), sub(t, o))
        if problem.goals[g, PARTS] & ROTATION:
            M = add_frame(M, problem.goal_data[g, ROTATION_WEIGHT] * problem.goal_data[g, ROTATION_WEIGHT], R, T)
    return M


@device
def slide_error(problem, work, targets, i, axis):
    """Return the displacement of joint i along an axis: the weighted mean of the errors of its position goals."""
    n = problem.tree.ints.shape[0]
    error = F(0)
    total = F(0)
    for g in range(problem.goals.shape[0]):
        if carries(problem, work, i, g) and problem.goals[g, PARTS] & POSITION:
            w = problem.goal_data[g, POSITION_WEIGHT] * problem.goal_data[g, POSITION_WEIGHT]
            _, p = effector(work, n, g)
            _, t = target_frame(targets, g)
            error += w * dot(axis, sub(t, p))
            total += w
    return error / total if total > F(0) else F(0)


@device
def turn_goals(problem, work, i, o, D):
    """Rotate the goals that joint i moves by D about o."""
    n = problem.tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        if carries(problem, work, i, g):
            R, p = effector(work, n, g)
            store_frame(work.points, n + g, matmul(D, R), add(o, apply(D, sub(p, o))))


@step
def sweep(problem, work, targets, q):
    """Move every joint once, from the tips to the root; return the largest step (radians or length scales)."""
    tree = problem.tree
    stiffness = problem.params[STIFFNESS_FACTOR]
    place_effectors(problem, work)
    n = tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] != 0:
            work.points[n + g, CARRIER] = problem.goals[g, GOAL_ROW]
    most = F(0)
    for i in range(n - 1, -1, -1):
        moved = F(0)
        k = tree.ints[i, VARIABLE]
        kind = tree.ints[i, KIND]
        R, o = frame_of(work.frames, i)
        if problem.coupled and k >= 0 and is_shared(problem, k):
            if is_last_row(problem, i):
                moved = move_together(problem, work, targets, q, k, problem.params[SMALLEST_TURN], stiffness)
        elif k >= 0 and kind == SLIDE:
            ratio = tree.couple[i, RATIO]
            axis = column(R, 2)
            if ratio != F(0):
                by = ratio * slide_to(problem, q, k, slide_error(problem, work, targets, i, axis) / ratio, stiffness)
                shift_goals(problem, work, i, axis, by)
                moved = abs(by) / problem.reach
        elif k >= 0:
            axes = translation_axes(tree, i, q, R) if kind == FREE else R  # axes before the joint's rotation
            M = goal_covariance(problem, work, targets, i, o)
            new, moved = turn_joint(problem, q, i, R, M, problem.params[SMALLEST_TURN], stiffness)
            if moved > F(0):
                turn_goals(problem, work, i, o, matmul_t(new, R))
            if tree.ints[i, TRANSLATION_COLUMN] >= 0:
                for c in range(3):
                    axis = column(axes, c)
                    by = slide_to(problem, q, k - 3 + c, slide_error(problem, work, targets, i, axis), stiffness)
                    shift_goals(problem, work, i, axis, by)
                    moved = max(moved, abs(by) / problem.reach)
        most = max(most, moved)
        if problem.coupled and moved > F(0):
            forward(tree, q, work.frames)
            place_effectors(problem, work)
        for g in range(problem.goals.shape[0]):
            if carries(problem, work, i, g):
                work.points[n + g, CARRIER] = tree.ints[i, PARENT]
    forward(tree, q, work.frames)
    return most, F(0)


@inline
def shift_goals(problem, work, i, axis, by):
    """Shift the goals that joint i moves along an axis."""
    n = problem.tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        if carries(problem, work, i, g):
            store(work.points, n + g, ORIGIN, axpy(by, axis, origin_of(work.points, n + g)))


@algorithm
def attempt(problem, work, targets, q):
    """Sweep until every goal is met or sweeps gain too little."""
    return iterate_from(sweep, problem, work, targets, q)


@algorithm
def attempt_with_limbs(problem, work, targets, q):
    """Meet the pose goals, then rotate limbs towards their poles."""
    return attempt_with_poles(attempt, problem, work, targets, q)


@entry
def ccd(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems of positions, rotations and poles; see ``search.multistart``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt_with_limbs, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
