"""FABRIK on trees of any joints: forward and backward reaching with joint limits inside (Aristidou & Lasenby 2011).

Inward, from the targets to the root: each joint is placed on the line to its neighbour at the bone's length,

    p_i ← d_k + L_ik (p_i - d_k) / |p_i - d_k|,

and a joint with several branches (a sub-base) at the weighted centroid of what its branches want; branches without a
goal do not vote. Outward, from the root: the parent's world frame is known, so each joint takes the turn within its
limits that best points its bones at the wanted places, and its children stand where forward kinematics puts them. So
bones never stretch, limits hold in every iteration, and the answer is joint values.
"""

from synovia.kernels._jit import F, algorithm, device, entry, inline
from synovia.kernels.branches import FIRST, carries, following, list_branches
from synovia.kernels.drive import drive
from synovia.kernels.finish import KEPT, finish
from synovia.kernels.forward import BALL, FREE, HINGE, SLIDE, forward, joint_frame
from synovia.kernels.goals import goal_frame, residual, target_frame
from synovia.kernels.levenberg import AIM
from synovia.kernels.problem import POSITION, ROTATION, copy
from synovia.kernels.reach import out_of_bounds, prove
from synovia.kernels.rotations import (
    apply,
    apply_t,
    column,
    identity,
    load_quat,
    load_rotation,
    matmul,
    matmul_t,
    quat_matrix,
    store_rotation,
)
from synovia.kernels.scatter import scatter
from synovia.kernels.turn import no_wish, slide_to, turn_joint, wish_direction, wish_frame
from synovia.kernels.variables import is_limited, nudge, seed_state
from synovia.kernels.vectors import TINY, axpy, dot, load, norm, scale, store, sub

STILL = F(1e-9)  # largest turn of an iteration (radians) that counts as none
NUDGE = F(1e-3)  # radians: enough to leave a straight line, too little to be seen
LEVER = F(1e-6)  # of the reach: a point nearer to a hinge's axis is not moved by it
WRIST = 3  # degrees of freedom above a goal that serve its rotation
# Columns of ``points``: wanted place (0-2), votes (3), for goals: top row of the wrist (4); see ``branches`` (5-8)
PLACE, VOTES, TOP = 0, 3, 4
# Places among the solver's own settings
PROGRESS = 0


@inline
def pulled(d, p, length):
    """Return the point at a bone's length from d, towards p."""
    u = sub(p, d)
    size2 = dot(u, u)
    if size2 < TINY:
        return p
    return axpy(length / size2**0.5, u, d)


@device
def wrists(problem, points):
    """Write, for each goal, the highest row whose turn serves its rotation: three degrees of freedom, counted up."""
    tree = problem.tree
    n = tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, 1]
        top = row
        freedom = 0
        while row >= 0 and freedom < WRIST:
            if tree.ints[row, 5] >= 0:
                freedom += 1 if tree.ints[row, 0] == HINGE else (0 if tree.ints[row, 0] == SLIDE else 3)
                top = row
            row = tree.ints[row, 1]
        points[n + g, TOP] = top


@device
def wanted(problem, frames, targets, points):
    """Inward pass: write where each joint's origin wants to be, and with how many votes."""
    tree = problem.tree
    n = tree.ints.shape[0]
    for i in range(n):
        store(points, i, PLACE, (F(0), F(0), F(0)))
        points[i, VOTES] = F(0)
    for g in range(problem.goals.shape[0]):
        row = problem.goals[g, 1]
        what = problem.goals[g, 0]
        if row < 0 or not what & POSITION:
            continue
        w = problem.goal_data[g, 0] * problem.goal_data[g, 0]
        T, t = target_frame(targets, g)
        store(points, n + g, PLACE, t)
        points[n + g, VOTES] = w
        offset = load(problem.goal_data, g, 11)
        if what & ROTATION:  # the joint's own place follows from the wanted frame
            place = sub(t, apply(matmul_t(T, load_rotation(problem.goal_data, g, 2)), offset))
        else:
            place = pulled(t, load(frames, row, 9), norm(offset))
        vote(points, row, place, w)
    for i in range(n - 1, -1, -1):
        votes = points[i, VOTES]
        if votes <= F(0):
            continue
        place = scale(F(1) / votes, load(points, i, PLACE))
        store(points, i, PLACE, place)
        a = tree.ints[i, 1]
        if a >= 0:
            p = load(frames, a, 9)
            vote(points, a, pulled(place, p, norm(sub(load(frames, i, 9), p))), votes)


@inline
def vote(points, i, place, w):
    """Add a candidate for the place of joint i."""
    store(points, i, PLACE, axpy(w, place, load(points, i, PLACE)))
    points[i, VOTES] += w


@device
def bones_wish(problem, frames, targets, points, i, R, o):
    """Return M (see ``turn``) of what joint i carries; R, o is its world frame with the value it had.

    The nearest carried points with a lever count: a point on the axis of a hinge would leave its turn undecided, so
    there the next joint outward speaks. A joint that cannot point its bone anywhere (a hinge, a ball with a limit)
    also hears the goals themselves: by bones alone a seven-hinge arm reached none of 60 targets, with the goals all.
    """
    tree = problem.tree
    n = tree.ints.shape[0]
    M = no_wish()
    W = load_rotation(frames, i, 0)
    p = load(frames, i, 9)
    hinge = tree.ints[i, 0] == HINGE
    j = int(points[i, FIRST])
    while j >= 0:
        deeper = False
        if points[j, VOTES] > F(0):
            here = load(frames, j, 9) if j < n else load(points, j, 9)
            d = apply(R, apply_t(W, sub(here, p)))  # rigid below this joint
            across = axpy(-dot(d, column(R, 2)), column(R, 2), d) if hinge else d
            deeper = not norm(across) > LEVER * problem.reach  # ask the joints that hang on it
            if not deeper:
                M = wish_direction(M, points[j, VOTES], d, sub(load(points, j, PLACE), o))
        j = following(problem, points, i, j, deeper)
    if hinge or is_limited(problem.limits, tree.ints[i, 5]):
        for g in range(problem.goals.shape[0]):
            if points[n + g, VOTES] > F(0) and carries(points, i, n + g):
                d = apply(R, apply_t(W, sub(load(points, n + g, 9), p)))
                M = wish_direction(M, points[n + g, VOTES], d, sub(load(points, n + g, PLACE), o))
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, 0] & ROTATION and i >= points[n + g, TOP] and carries(points, i, n + g):
            G = matmul(R, matmul(transposed(W), goal_rotation(problem, frames, g)))
            T, _ = target_frame(targets, g)
            w = problem.goal_data[g, 1] * problem.reach
            M = wish_frame(M, w * w, G, T)
    return M


@inline
def transposed(A):
    """Return Aᵀ."""
    return A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8]


@inline
def goal_rotation(problem, frames, g):
    """Return the world rotation of goal g."""
    R, _ = goal_frame(problem, frames, g)
    return R


@device
def reach_out(problem, work, targets, q):
    """Outward pass: turn every joint towards the wanted places, root first; return the largest turn (radians)."""
    tree = problem.tree
    frames, points = work.frames, work.points
    n = tree.ints.shape[0]
    for g in range(problem.goals.shape[0]):
        _, p = goal_frame(problem, frames, g)
        store(points, n + g, 9, p)
    most = F(0)
    for i in range(n):
        a = tree.ints[i, 1]
        if a < 0:
            R, o = joint_frame(tree, i, q, identity(), (F(0), F(0), F(0)))
        else:
            R, o = joint_frame(tree, i, q, load_rotation(frames, a, 0), load(frames, a, 9))
        k, kind = tree.ints[i, 5], tree.ints[i, 0]
        if k >= 0:
            if tree.ints[i, 4] >= 0 and points[i, VOTES] > F(0):
                before = matmul_t(R, quat_matrix(load_quat(q, tree.ints[i, 2] + 3)))
                lack = sub(load(points, i, PLACE), o)
                for c in range(3):
                    axis = (before[c], before[c + 3], before[c + 6])
                    by = slide_to(problem, q, k - 3 + c, dot(axis, lack))
                    o = axpy(by, axis, o)
                    most = max(most, abs(by) / problem.reach)
            if kind == SLIDE:
                ratio = tree.couple[i, 0]
                if ratio != F(0) and points[i, VOTES] > F(0):
                    axis = column(R, 2)
                    by = ratio * slide_to(problem, q, k, dot(axis, sub(load(points, i, PLACE), o)) / ratio)
                    o = axpy(by, axis, o)
                    most = max(most, abs(by) / problem.reach)
            elif kind == HINGE or kind == BALL or kind == FREE:
                R, moved = turn_joint(problem, q, i, R, bones_wish(problem, frames, targets, points, i, R, o), F(0))
                most = max(most, moved)
        store_rotation(frames, i, 0, R)
        store(frames, i, 9, o)
    if problem.coupled:
        forward(tree, q, frames)
    return most


@device
def stretch_out(problem, work, targets):
    """Straight-line rule: where the target of the only goal is beyond reach, every bone wants to point at it."""
    if problem.goals.shape[0] != 1 or not problem.goals[0, 0] & POSITION:
        return False
    _, t = target_frame(targets, 0)
    row = problem.goals[0, 1]
    tip = norm(load(problem.goal_data, 0, 11))
    return out_of_bounds(problem, work.frames, row, tip, t, F(0)) and farther(problem, work, t, row, tip)


@inline
def farther(problem, work, t, row, tip):
    """Return whether a place is beyond the sum of the lengths (and not inside the hole) of the chain to a row."""
    total = tip
    base = row
    while row >= 0:
        base = row
        if problem.tree.ints[row, 1] >= 0:
            total += norm(load(problem.tree.fixed, row, 9))
        row = problem.tree.ints[row, 1]
    return norm(sub(t, load(work.frames, base, 9))) > total


@algorithm
def attempt(problem, work, targets, q):
    """Iterate until every goal holds, the error stops falling fast enough, or the iterations are spent."""
    n = problem.tree.ints.shape[0]
    mark = F(0)
    lowest = F(0)
    best = F(0)
    nudged = False
    forward(problem.tree, q, work.frames)
    straight = stretch_out(problem, work, targets)
    wrists(problem, work.points)
    list_branches(problem, work.points)
    for g in range(problem.goals.shape[0]):
        work.points[n + g, VOTES] = F(0)
    for k in range(problem.max_steps + 1):
        cost, worst = residual(problem, work.frames, targets, work.e)
        lowest = cost if k == 0 else min(cost, lowest)
        if k == 0 or cost < KEPT * best:
            best = cost
            copy(q, work.trial)
        if worst <= AIM:
            return k, cost
        if k % problem.patience == 0:
            if k > 0 and lowest > problem.own[PROGRESS] * mark:
                break
            mark = lowest
        if k == problem.max_steps:
            break
        wanted(problem, work.frames, targets, work.points)
        if straight:
            _, t = target_frame(targets, 0)
            for i in range(n):
                store(work.points, i, PLACE, t)
        if reach_out(problem, work, targets, q) < STILL:
            if nudged:
                break
            nudged = True  # on one line with its target nothing bends: leave the line, the same way every time
            seed_state(work.state, problem.seed, 0)
            nudge(problem.variables, problem.limits, q, work.state, NUDGE, problem.reach)
            forward(problem.tree, q, work.frames)
    copy(work.trial, q)
    return k, best


@entry
def fabrik(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``drive`` and, for those that miss, ``finish``."""
    code = drive(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)
    return finish(attempt, ints, floats, out, scratch, first, code)
