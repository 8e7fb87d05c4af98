"""One step of a full body: write goals, posture and bounds into the hierarchy, solve it, and move the pose."""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.residuals import jacobian, residual
from synovia.kernels.hierarchy.basis import reset_column, reset_columns
from synovia.kernels.hierarchy.inequalities import (
    choose_edges,
    general_slacks,
    inequality_rows,
    write_contact_slacks,
    write_slacks,
)
from synovia.kernels.hierarchy.largest_move import enforce_largest_move, restrict_step
from synovia.kernels.hierarchy.levels import fix_at_bounds, solve_levels
from synovia.kernels.hierarchy.soft_edge import soften
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    DAMPING,
    ERROR_DAMPING,
    LARGEST_MOVE,
    LARGEST_STEP,
    NO_POSTURE,
    POSE_COLUMN,
    REFERENCE,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
    SOFT,
    STEP,
    STEP_STIFFNESS,
)
from synovia.kernels.loops.closing import close_again, keep_pose
from synovia.kernels.math.rotations import load_quat, quat_conj, quat_log, quat_mul
from synovia.kernels.math.swing_twist import split, to_limit_frame, twist_step
from synovia.kernels.tree.chart import INFINITE, ellipse_normal, move, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import is_limited, step_unit

POSTURE_DAMPING = F(10)  # damping of the posture, relative to the damping of the levels
EQUAL_ERRORS = F(1e-9)  # errors (length scales, radians) that differ by less are equal
LEVEL_WEIGHT = F(1e-2)  # weight of the squared error of a level relative to the level above
STAY_WEIGHT = F(0.01)  # weight of staying in place, relative to the largest weight of the posture


@apart
def update_frames(problem, q, frames):
    """Write the frames of q. This function is compiled once, not into each caller."""
    forward(problem.tree, q, frames)


@apart
def update_jacobian(problem, q, frames, targets, J, h):
    """Write the Jacobian of the goals, inequality rows included."""
    jacobian(problem, q, frames, targets, J)
    inequality_rows(problem.general, problem, q, frames, targets, h.edges, J)


@apart
def apply_step(problem, q, y):
    """Move q by the step y, and close its loops again; if they cannot be closed, q is unchanged."""
    keep_pose(problem.loops, q)
    move(problem, q, y, F(1))
    close_again(problem.loops, problem, q, problem.params[LARGEST_MOVE] < INFINITE)


@inline
def ball_reference(limit, k, q, wanted):
    """Return the step from rotation q to ``wanted`` in the coordinates of the ball (see ``chart``)."""
    if not is_limited(limit, k):
        return quat_log(quat_mul(quat_conj(q), wanted))
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    _, _, n, _ = ellipse_normal(limit, k, (sx, sy))
    ax, ay, turned = split(to_limit_frame(limit, k, wanted))
    dx, dy = ax - sx, ay - sy
    return dx * n[0] + dy * n[1], dy * n[0] - dx * n[1], twist_step(limit, k, twist, turned)


@apart
def write_references(problem, q, h):
    """Write the posture's reference and stiffness of every column; return the weighted distance to the posture.

    Without other goals a variable of relative weight w moves by w / (w + STAY_WEIGHT) of the difference, and all others
    stay. If upper levels are tried separately, there is no posture: they step as if there were no goals below.
    """
    largest = F(0)
    for k in range(problem.variables.shape[0]):
        largest = max(largest, problem.posture[k, REST_WEIGHT])
    if h.state[NO_POSTURE] != F(0):
        largest = F(0)
    total = F(0)
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        w = problem.posture[k, REST_WEIGHT] / largest if largest > F(0) else F(0)
        stiff = math.sqrt(w + STAY_WEIGHT) if largest > F(0) else F(1)
        share = w / (w + STAY_WEIGHT)
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) / step_unit(problem.limits, k, problem.reach)
            h.v[STEP_STIFFNESS, v] = stiff
            y = unit * (problem.posture[k, REST_Q] - q[at]) if w > F(0) else F(0)
            h.v[REFERENCE, v] = share * y
            total += w * y * y
            continue
        y = (F(0), F(0), F(0))
        if w > F(0):
            y = ball_reference(problem.limits, k, load_quat(q, at), load_quat(problem.posture[k], REST_Q))
        for c in range(3):
            h.v[STEP_STIFFNESS, v + c] = stiff
            h.v[REFERENCE, v + c] = share * y[c]
            total += w * y[c] * y[c]
    return math.sqrt(total)


@apart
def assemble_levels(problem, work, targets, q, h):
    """Write rows, bounds and references of a pose into h.

    Fix the columns at a bound if the gradient or the reference points outwards.
    """
    m, n = work.J.shape
    choose_edges(problem.general, problem, work.frames, h.edges)
    update_jacobian(problem, q, work.frames, targets, work.J, h)
    write_bounds(problem, q, work.box)
    if problem.params[LARGEST_MOVE] < INFINITE:
        restrict_step(problem, q, work.box, h.saved_pose)
    to_box(problem, work.box, work.J)
    reset_columns(h)
    for k in range(n):
        s = h.v[STEP_STIFFNESS, k]
        reset_column(h, k, s * min(work.box[k, BOX_LOWER], F(0)), s * max(work.box[k, BOX_UPPER], F(0)))
        h.v[REFERENCE, k] *= s
        s = F(1) / s
        for i in range(m):
            h.G[i, k] = s * work.J[i, k]
    for i in range(m):
        h.constrains[i] = F(1)
    write_slacks(problem.general, problem, q, work.frames, targets, h, n)
    write_contact_slacks(problem.clear, problem, h, n + general_slacks(problem.general))
    fix_at_bounds(h)


@apart
def evaluate_levels(problem, work, targets, q, h):
    """Write frames, residuals and the error of every level at q; return the largest error in units of its tolerance."""
    update_frames(problem, q, work.frames)
    _, worst = residual(problem, q, work.frames, targets, work.e)
    if problem.params[SOFT] > F(0):
        worst = max(worst, soften(problem, work.frames, targets, problem.params[SOFT], work.e))
    levels = problem.levels.shape[0] - 1
    for k in range(levels):
        total = F(0)
        for i in range(problem.levels[k], problem.levels[k + 1]):
            total += work.e[i] * work.e[i]
        h.errors[k] = math.sqrt(total)
    h.errors[levels] = write_references(problem, q, h)
    return worst


@inline
def smallest_tolerance(problem):
    """Return the error (length scales, radians) below which a level is met."""
    return min(problem.tolerance / problem.reach, problem.tolerance_angle)


@device
def is_better_pose(h, count, met_error):
    """Return whether the current pose is better than the best one, in the first of ``count`` levels where they differ.

    Errors below ``met_error`` are equal. A pose with an error of NaN is never better.
    """
    for k in range(count):
        error, lowest = max(h.errors[k], met_error), max(h.best[k], met_error)
        noise = EQUAL_ERRORS * (F(1) + lowest)
        if error < lowest - noise:
            return True
        if not error <= lowest + noise:
            return False
    return False


@device
def combined_error(problem, errors, count):
    """Return the errors of the first ``count`` levels as one number; each level weighs far less than the one above.

    A level within the tolerance counts as zero. Otherwise its last digits would outweigh the levels below.
    """
    met = smallest_tolerance(problem)
    cost = F(0)
    weight = F(1)
    for k in range(min(count, problem.levels.shape[0] - 1)):
        if errors[k] > met:
            cost += weight * errors[k] * errors[k]
        weight *= LEVEL_WEIGHT
    return cost


@device
def to_pose_step(work, h):
    """Write the hierarchy's step to dq, in the order and units of the pose's columns; return its largest component."""
    size = F(0)
    for k in range(h.v.shape[1]):
        v = int(h.v[POSE_COLUMN, k])
        if v >= work.dq.shape[0]:
            continue  # a slack column
        work.dq[v] = h.v[STEP, k] / h.v[STEP_STIFFNESS, k]
        size = max(size, abs(work.dq[v]))
    return size


@apart
def take_step(problem, work, targets, q, h, count, damping):
    """Move q by one step of the first ``count`` levels with the additional ``damping``; return its largest component.

    The loops of q may be open afterwards. Before the call, ``work`` must hold the frames and residuals of q.
    """
    copy(work.e, h.e)
    assemble_levels(problem, work, targets, q, h)
    solve_levels(
        h,
        problem.levels,
        count,
        problem.params[DAMPING] + damping,
        problem.params[ERROR_DAMPING],
        POSTURE_DAMPING * damping,
        problem.params[LARGEST_STEP],
        True,
    )
    size = to_pose_step(work, h)
    move(problem, q, work.dq, F(1))
    if problem.params[LARGEST_MOVE] < INFINITE:
        enforce_largest_move(problem, q, h.saved_pose)
    return size
