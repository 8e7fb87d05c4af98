"""Vector-Jacobian products of answers: from a gradient by joint values to the gradient by the targets.

An answer that meets its goals moves with them by dq = J⁺ de, in the joints that no limit holds. So a gradient v by the
joint values becomes (J Jᵀ)⁻¹ J v by the residuals, and this times the weights by the targets. An answer that misses is
a minimum: dq = H⁻¹ d(Jᵀe), with the Hessian H of the free joints, second derivatives included.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, entry, inline
from synovia.kernels.goals.residuals import goal_error, jacobian, residual
from synovia.kernels.jacobian.active_set import length, remove_direction
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    FIRST_RESIDUAL,
    HELD,
    LOWER,
    PARTS,
    POSITION,
    POSITION_WEIGHT,
    ROTATION,
    ROTATION_WEIGHT,
    SCALAR,
    SWING_X,
    SWING_X_BACK,
    SWING_Y,
    SWING_Y_BACK,
    UPPER,
    VELOCITY,
)
from synovia.kernels.math.bounded import solve_free
from synovia.kernels.math.linear import gram, gram_t, solve_ldl, times
from synovia.kernels.math.rotations import load_quat
from synovia.kernels.math.swing_twist import normals, split, to_limit_frame
from synovia.kernels.math.vectors import TINY, axpy, cross, dot, load, scale
from synovia.kernels.search.polish import bounded_gradient, hessian
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_problem, open_work
from synovia.kernels.tree.variables import is_limited, step_unit

FLOOR = F(1e-14)  # added to the diagonal of a system, relative to its largest entry: keeps singular poses finite
SINGULAR = F(1e-8)  # a pose may be singular, or an answer undetermined, if a pivot is below this part of the largest
UNSURE = 2  # mark of an answer that needs the full analysis of ``ik.derivative``
WEAK = F(1e-7)  # a limit may be left if its multiplier, relative to the residual, is below this
CLOSE = F(1e-5)  # distance from a bound (radians, length scales) that counts as touching
STATIONARY = F(1e-6)  # a miss counts as a minimum if its gradient, relative to the residual, is below this


@device
def column_length(J, v):
    """Return the largest entry of column v of J."""
    m = F(0)
    for i in range(J.shape[0]):
        m = max(m, abs(J[i, v]))
    return m


@apart
def hold_touching(problem, q, J, v):
    """Remove, from J and v, the directions beyond limits that q touches; return 1 if one of them moves a goal.

    An answer that meets its goals leaves such a limit on one side only.
    """
    kink = 0
    for k in range(problem.variables.shape[0]):
        at, c = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            near = CLOSE * step_unit(problem.limits, k, problem.reach)
            if q[at] >= problem.limits[k, UPPER] - near or q[at] <= problem.limits[k, LOWER] + near:
                if column_length(J, c) > F(0):
                    kink = 1
                v[c] = F(0)
                J[:, c] = F(0)
        elif is_limited(problem.limits, k):
            swing, n, side, t = normals(problem.limits, k, load_quat(q, at), CLOSE)
            w = (v[c], v[c + 1], v[c + 2])
            if swing == 1:
                kink = 1
                w = axpy(-dot(w, n), n, w)
                remove_direction(J, c, n)
                t = axpy(-dot(t, n), n, t)
                size = dot(t, t)
                t = scale(F(1) / math.sqrt(size), t) if size > TINY else t
            if side != 0:
                kink = 1
                w = axpy(-dot(w, t), t, w)
                remove_direction(J, c, t)
            v[c], v[c + 1], v[c + 2] = w
    return kink


@device
def pivots_vanish(A, n):
    """Return whether a pivot of a factor of ``solve_ldl`` is tiny; the diagonal holds the inverse pivots."""
    least, most = F(math.inf), F(0)
    for i in range(n):
        least, most = min(least, A[i, i]), max(most, A[i, i])
    return not least > SINGULAR * most


@device
def trace(J):
    """Return the sum of the squares of J."""
    s = F(0)
    for i in range(J.shape[0]):
        for k in range(J.shape[1]):
            s += J[i, k] * J[i, k]
    return s


@apart
def pull_met(problem, work, q, targets, v):
    """For an answer that meets its goals, write the gradient by its residuals to work.e; return its mark."""
    jacobian(problem, q, work.frames, targets, work.J)
    kink = hold_touching(problem, q, work.J, v)
    m, n = work.J.shape
    floor = FLOOR * (trace(work.J) + F(1e-300))
    if m <= n:
        gram(work.J, work.A, floor)
        times(work.J, v, work.e)
        solve_ldl(work.A, work.e, m)
        return UNSURE if pivots_vanish(work.A, m) else kink
    gram_t(work.J, work.A, floor)
    copy(v, work.dq)
    solve_ldl(work.A, work.dq, n)
    times(work.J, work.dq, work.e)
    return UNSURE if pivots_vanish(work.A, n) else kink


@device
def to_box_row(problem, box, v, out):
    """Convert a gradient from angular velocities of limited balls to the directions of the box (``tree.chart``)."""
    copy(v, out)
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            c = problem.variables[k, BLOCK_COLUMN]
            w = (v[c], v[c + 1], v[c + 2])
            for i in range(c, c + 3):
                out[i] = dot(w, load(box, i, VELOCITY))


@device
def from_box(problem, box, y, out):
    """Convert a step from the directions of the box (``tree.chart``) to angular velocities of limited balls."""
    copy(y, out)
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            c = problem.variables[k, BLOCK_COLUMN]
            w = (F(0), F(0), F(0))
            for i in range(c, c + 3):
                w = axpy(y[i], load(box, i, VELOCITY), w)
            out[c], out[c + 1], out[c + 2] = w


@device
def at_seam(problem, q, box):
    """Return whether q is held at a swing limit where its ellipse changes half-angles, and with them its curvature."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] == SCALAR or not is_limited(problem.limits, k):
            continue
        if box[problem.variables[k, BLOCK_COLUMN], HELD] == F(0):
            continue
        sx, sy, _ = split(to_limit_frame(problem.limits, k, load_quat(q, problem.variables[k, BLOCK_Q])))
        if abs(sx) <= CLOSE and problem.limits[k, SWING_X] != problem.limits[k, SWING_X_BACK]:
            return True
        if abs(sy) <= CLOSE and problem.limits[k, SWING_Y] != problem.limits[k, SWING_Y_BACK]:
            return True
    return False


@apart
def pull_missed(problem, work, q, targets, v):
    """For an answer that misses (a minimum), write the gradient by its residuals to work.e; return its mark.

    v becomes H⁻¹ v, the motion that the gradient by any parameter of the error depends on.
    """
    residual(problem, q, work.frames, targets, work.e)
    size = length(work.e)
    left, _ = bounded_gradient(problem, work, targets, q)
    kink = UNSURE if left > STATIONARY * size else 0
    hessian(problem, work, targets, q)
    for i in range(work.g.shape[0]):
        touches = work.box[i, BOX_UPPER] <= CLOSE or work.box[i, BOX_LOWER] >= -CLOSE
        if touches and abs(work.g[i]) <= WEAK * size:
            kink = UNSURE
        if work.box[i, HELD] != F(0):
            work.box[i, BOX_LOWER] = work.box[i, BOX_UPPER] = F(0)
    to_box_row(problem, work.box, v, work.g)
    if not solve_free(work.H, FLOOR, work.g, work.box, work.K, work.dq) or at_seam(problem, q, work.box):
        kink = UNSURE
    most, least = F(0), F(math.inf)
    for i in range(work.g.shape[0]):
        if work.box[i, HELD] == F(0):
            most, least = max(most, work.K[i, i]), min(least, work.K[i, i])
    times(work.J, work.dq, work.e)
    from_box(problem, work.box, work.dq, v)
    return kink if least > SINGULAR * most else UNSURE


@device
def write_target_gradient(problem, frames, targets, y, missed, out):
    """Write the gradient by the target of each goal: by its position, then by a rotation vector in the world.

    A target that rotates by w changes the error φ by Jₗ⁻¹(φ) w, with the left Jacobian Jₗ of the exponential map.
    """
    for g in range(problem.goals.shape[0]):
        parts, k = problem.goals[g, PARTS], problem.goals[g, FIRST_RESIDUAL]
        for i in range(6):
            out[6 * g + i] = F(0)
        if parts & POSITION:
            for i in range(3):
                out[6 * g + i] = problem.goal_data[g, POSITION_WEIGHT] / problem.reach * y[k + i]
            k += 3
        if parts & ROTATION:
            u = scale(problem.goal_data[g, ROTATION_WEIGHT], load_vector(y, k))
            if missed:
                _, w = goal_error(problem, frames, targets, g)
                turned = cross(w, u)
                u = axpy(left_factor(dot(w, w)), cross(w, turned), axpy(F(0.5), turned, u))
            out[6 * g + 3], out[6 * g + 4], out[6 * g + 5] = u


@inline
def load_vector(y, k):
    """Return three values of y as a vector."""
    return y[k], y[k + 1], y[k + 2]


@inline
def left_factor(squared):
    """Return the factor 1/θ² - (1 + cos θ) / (2 θ sin θ) of [φ]² in the inverse left Jacobian; it begins at 1/12."""
    if squared < F(1e-4):
        return F(1) / F(12) + squared / F(720)
    half = F(0.5) * math.sqrt(squared)
    return (F(1) - half / math.tan(half)) / squared


@entry
def pull_back(ints, floats, targets, q, scratch, v, marks, out):
    """Write the gradients by the targets of a batch of answers, given gradients by their joint values.

    Args:
        ints: Integers of the packed problem: positions and rotations in the world, on one level, without a posture.
        floats: Floats of the packed problem.
        targets: (B, goals, 16) complete targets.
        q: (B, nq) answers.
        scratch: Scratch memory of the problem.
        v: (B, columns) gradients by the Jacobian columns (radians, length scales); overwritten, at misses by the motion
            that ``pull_missed`` describes.
        marks: (B, 2) 1 for an answer that misses a goal, else 0; then, written, 1 where the answer is at a switch of
            its active limits, UNSURE where it may be singular, undetermined or no minimum, else 0.
        out: (B, 6 goals) gradients by the position (length units) and the rotation (radians) of each target; written.
    """
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    for b in range(q.shape[0]):
        forward(problem.tree, q[b], work.frames)
        if marks[b, 0] != F(0):
            marks[b, 1] = F(pull_missed(problem, work, q[b], targets[b], v[b]))
        else:
            marks[b, 1] = F(pull_met(problem, work, q[b], targets[b], v[b]))
        write_target_gradient(problem, work.frames, targets[b], work.e, marks[b, 0] != F(0), out[b])
    return 0
