"""Second derivatives of the residuals: the part of the Hessian that Gauss-Newton (JᵀJ) leaves out.

At a minimum with a residual, JᵀJ is not the curvature of the cost. For a chain stretched towards an unreachable target,
it is singular in the very directions that turn the chain to the target, so Gauss-Newton steps converge slowly or never.
"""

import math

from synovia.kernels import layout
from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals import within
from synovia.kernels.goals.cone import AIMS, HALF_ANGLE
from synovia.kernels.goals.custom import CURVATURE, write_custom
from synovia.kernels.goals.frames import goal_frame, rate
from synovia.kernels.goals.general import CONE, WITHIN
from synovia.kernels.goals.residuals import goal_error
from synovia.kernels.goals.term import NOTHING, unit_weight
from synovia.kernels.math.rotations import apply, column, matmul, origin_of, quat_exp, quat_matrix, rotation_of
from synovia.kernels.math.vectors import TINY, add, axpy, cross, dot, norm, normalize, scale, sub
from synovia.kernels.tree.forward import translation_axes

STEP = F(1e-5)  # step of central differences, radians or length units
AXES = 6  # largest number of axes of one joint: three rotations, then three translations


@inline
def axis_of(problem, q, frames, row, c):
    """Return (column, 1 for a rotation and 0 for a translation, scaled axis in the world) of axis c of a joint.

    The column is -1 if the joint has no such axis or is held. Translations are per length scale.
    """
    tree = problem.tree
    kind, v = tree.ints[row, layout.KIND], tree.ints[row, layout.COLUMN]
    translation = tree.ints[row, layout.TRANSLATION_COLUMN]
    R = rotation_of(frames, row)
    z = column(R, 2)
    if kind == layout.HINGE:
        return (v if c == 0 else -1), 1, scale(rate(problem, row), z)
    if kind == layout.SLIDE:
        return (v if c == 3 else -1), 0, scale(rate(problem, row), z)
    if (kind == layout.BALL or kind == layout.FREE) and c < 3:
        return (v + c if v >= 0 else -1), 1, column(R, c)
    if kind == layout.FREE and translation >= 0:
        A = translation_axes(tree, row, q, R)
        return translation + c - 3, 0, scale(problem.reach, column(A, c - 3))
    return -1, 0, z


@device
def curvature(problem, q, frames, targets, H):
    """Write H, the Hessian of e·e / 2 minus JᵀJ, over all columns and ignoring limits.

    With r = p - o and i the joint nearer to the root, ∂²p/∂qi∂qj = zi × (zj × r), symmetrised for two axes of one ball.
    For rotations, the Hessian by a rotation vector from the left is c 1 + (1 - c) u uᵀ, c = (θ/2) cot(θ/2). Two small
    rotations compose to the rotation vector zi δi + zj δj + (zi × zj) δi δj / 2 (Baker, Campbell, Hausdorff).
    """
    H[:, :] = F(0)
    tree = problem.tree
    for g in range(problem.goals.shape[0]):
        parts = problem.goals[g, layout.PARTS]
        if parts == 0:
            continue  # general goals keep only JᵀJ, except bounds, cones and custom goals, which are added separately
        d, w = goal_error(problem, frames, targets, g)
        wp = problem.goal_data[g, layout.POSITION_WEIGHT] / problem.reach
        wr = problem.goal_data[g, layout.ROTATION_WEIGHT]
        f = scale(wp * wp if parts & layout.POSITION else F(0), d)
        turn = wr * wr if parts & layout.ROTATION else F(0)
        angle = norm(w)
        u = scale(F(1) / angle, w) if angle > TINY else (F(0), F(0), F(0))
        half = F(0.5) * angle
        bend = turn * ((half / math.tan(half) if half > F(1e-4) else F(1) - half * half / F(3)) - F(1))
        w = scale(turn, w)
        _, p = goal_frame(problem, frames, g)
        j = problem.goals[g, layout.GOAL_ROW]
        while j >= 0:
            arm = sub(p, origin_of(frames, j))
            for b in range(AXES):
                vb, turns_b, zb = axis_of(problem, q, frames, j, b)
                if vb < 0:
                    continue
                moved = cross(zb, arm) if turns_b == 1 else zb
                i = j
                while i >= 0:
                    for a in range(AXES):
                        va, turns_a, za = axis_of(problem, q, frames, i, a)
                        if va < 0 or turns_a == 0 or (i == j and turns_b == 0):
                            continue
                        second = cross(za, moved)
                        if i == j:
                            back = cross(zb, cross(za, arm))
                            second = scale(F(0.5), (second[0] + back[0], second[1] + back[1], second[2] + back[2]))
                        h = -dot(f, second)
                        if turns_b == 1:
                            h += bend * (dot(za, zb) - dot(u, za) * dot(u, zb))
                            if i != j:
                                h -= F(0.5) * dot(w, cross(za, zb))
                        H[va, vb] += h
                        if i != j:
                            H[vb, va] += h
                    i = tree.ints[i, layout.PARENT]
            j = tree.ints[j, layout.PARENT]
    add_bounds_curvature(problem.general, problem, q, frames, targets, H)
    write_custom(problem.general, problem, CURVATURE, q, H)


@device
def add_bounds_curvature(general, problem, q, frames, targets, H):
    """Add the second derivatives of goals with bounds and cones, for their values that are outside.

    The gradient (force F at p, torque N) of the error of such a term depends only on its frame. For an axis b and an
    axis a that is not nearer to the tip, ∂²/∂qa∂qb is the effect on a of the change of (F, N) as b moves the frame,
    which central differences give.
    """
    if general is None:
        return
    for term in range(general.ints.shape[0]):
        kind = general.ints[term, layout.KIND]
        if kind == WITHIN or kind == CONE:
            add_term_curvature(general, problem, q, frames, targets, term, H)


@device
def outside(general, term, at):
    """Return how far the values of a goal are outside its bounds or cone; for ``at``, see ``within.placed``."""
    if general.ints[term, layout.KIND] == WITHIN:
        return within.outside(general, term, at)
    u, d = axis_and_direction(general, term, at)
    return min(general.data[term, HALF_ANGLE] - math.atan2(norm(cross(d, u)), dot(d, u)), F(0)), F(0), F(0)


@inline
def axis_and_direction(general, term, at):
    """Return the axis u and the direction d of a cone."""
    _, t, R, p = at
    return column(R, 2), sub(t, p) if general.data[term, AIMS] > F(0) else t


@device
def gradient(general, term, at, i):
    """Return the derivatives of value i of a goal by the velocity of p, and by the angular velocity; see ``cone``."""
    if general.ints[term, layout.KIND] == WITHIN:
        return within.gradient(general, term, at, i)
    u, d = axis_and_direction(general, term, at)
    m = normalize(cross(d, u), NOTHING)
    size2 = dot(d, d)
    return scale(F(1) / size2, cross(m, d)) if general.data[term, AIMS] > F(0) and size2 > TINY else NOTHING, m


@device
def pull(general, term, at):
    """Return the gradient of half the squared error of a goal: a force, and a torque at p."""
    if general.ints[term, layout.KIND] == WITHIN:
        return within.pull(general, term, at)
    e = outside(general, term, at)[0]
    force, torque = gradient(general, term, at, 0)
    return scale(-e, force), scale(-e, torque)


@device
def add_term_curvature(general, problem, q, frames, targets, term, H):
    """Add the curvature of one goal with bounds or a cone."""
    weight = unit_weight(problem, term)
    T, t, R, p = within.placed(problem, frames, targets, term)
    e = outside(general, term, (T, t, R, p))
    if e[0] == F(0) and e[1] == F(0) and e[2] == F(0):
        return
    j = problem.goals[general.ints[term, layout.GOAL], layout.GOAL_ROW]
    while j >= 0:
        o = origin_of(frames, j)
        for b in range(AXES):
            vb, turns_b, zb = axis_of(problem, q, frames, j, b)
            if vb < 0:
                continue
            h = STEP / norm(zb)
            ahead = pull_after(general, term, (T, t, R, p), o, turns_b, scale(h, zb))
            behind = pull_after(general, term, (T, t, R, p), o, turns_b, scale(-h, zb))
            k = F(0.5) / h
            force, torque = scale(k, sub(ahead[0], behind[0])), scale(k, sub(ahead[1], behind[1]))
            spun, moved = (zb, cross(zb, sub(p, o))) if turns_b == 1 else (NOTHING, zb)
            for i in range(3):
                if e[i] != F(0):  # subtract JᵀJ
                    f, w = gradient(general, term, (T, t, R, p), i)
                    x = dot(f, moved) + dot(w, spun)
                    force, torque = axpy(-x, f, force), axpy(-x, w, torque)
            force, torque = scale(weight * weight, force), scale(weight * weight, torque)
            i = j
            while i >= 0:
                arm = sub(p, origin_of(frames, i))
                for a in range(AXES):
                    va, turns_a, za = axis_of(problem, q, frames, i, a)
                    if va < 0:
                        continue
                    x = dot(za, add(torque, cross(arm, force))) if turns_a == 1 else dot(za, force)
                    if i != j:
                        H[va, vb] += x
                        H[vb, va] += x
                    else:
                        H[va, vb] += F(0.5) * x
                        H[vb, va] += F(0.5) * x
                i = problem.tree.ints[i, layout.PARENT]
        j = problem.tree.ints[j, layout.PARENT]


@device
def pull_after(general, term, at, o, turns, z):
    """Return the gradient (force, torque) of a term after its frame has rotated about z through o, or moved along z.

    The torque is about the position of p before this motion.
    """
    T, t, R, p = at
    if turns == 1:
        turn = quat_matrix(quat_exp(z))
        moved = add(o, apply(turn, sub(p, o)))
        R = matmul(turn, R)
    else:
        moved = add(p, z)
    force, torque = pull(general, term, (T, t, R, moved))
    return force, add(torque, cross(sub(moved, p), force))
