"""Residuals of goals and their Jacobian.

The frame of a goal is fixed on a joint. Its error is the vector to the target position and the rotation vector (SO(3)
logarithm) onto the target orientation, both in the world. All other goals are in ``general``; a kernel that opens its
problem without them compiles none of their code.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.goals.clearance import clearance_residual, clearance_rows, measure_clearance
from synovia.kernels.goals.custom import JACOBIAN, write_custom
from synovia.kernels.goals.frames import add_frame_rows, goal_frame, is_invalid, set_target, target_frame, write_given
from synovia.kernels.goals.general import (
    all_general_given,
    complete_general,
    first_invalid_general,
    general_jacobian,
    general_residual,
    measure_general,
    write_given_general,
)
from synovia.kernels.goals.term import NOTHING
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    FIRST_RESIDUAL,
    GIVEN,
    GOAL_ROW,
    PARTS,
    POSITION,
    POSITION_WEIGHT,
    ROTATION,
    ROTATION_WEIGHT,
    SCALAR,
)
from synovia.kernels.loops.ties import OPEN, loop_residual, loop_rows
from synovia.kernels.math.rotations import angle_of, identity, log_rotation, matmul_t
from synovia.kernels.math.vectors import dot, norm, scale, sub
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work
from synovia.kernels.tree.variables import step_unit

INFINITE = F(math.inf)


@device
def first_invalid_target(problem, targets):
    """Validate the targets: return the first goal whose target is not finite or not a rigid transform, or -1."""
    for g in range(problem.goals.shape[0]):
        if is_invalid(targets, g, problem.goals[g, PARTS] & int(targets[g, GIVEN])):
            return g
    return first_invalid_general(problem.general, problem, targets)


@inline
def all_given(problem, targets):
    """Return whether the targets of all goals are complete, so that the frames of the start are not needed."""
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] & int(targets[g, GIVEN]) != problem.goals[g, PARTS]:
            return False
    return all_general_given(problem.general, targets)


@device
def complete_targets(problem, frames, targets, complete):
    """Write the complete targets: the given parts, and the frames of the start for parts that are not given.

    If all parts that a goal uses are given, its other parts are identity: rotation 1, position 0.
    """
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] & int(targets[g, GIVEN]) == problem.goals[g, PARTS]:
            set_target(complete, g, identity(), (F(0), F(0), F(0)))
        else:
            R, p = goal_frame(problem, frames, g)
            set_target(complete, g, R, p)
    complete_general(problem.general, problem, frames, targets, complete)
    write_given_targets(problem, targets, complete)


@device
def write_given_targets(problem, targets, complete):
    """Copy the given parts of targets into ``complete``."""
    for g in range(problem.goals.shape[0]):
        write_given(targets, complete, g, problem.goals[g, PARTS] & int(targets[g, GIVEN]))
    write_given_general(problem.general, targets, complete)


@inline
def goal_error(problem, frames, targets, g):
    """Return (vector to the target, rotation vector to the target) of goal g in the world, 0 for an unused part."""
    parts = problem.goals[g, PARTS]
    if parts == 0:
        return NOTHING, NOTHING
    R, p = goal_frame(problem, frames, g)
    T, t = target_frame(targets, g)
    w = log_rotation(matmul_t(T, R)) if parts & ROTATION else NOTHING
    return sub(t, p) if parts & POSITION else NOTHING, w


@device
def residual(problem, q, frames, targets, e):
    """Write the weighted residuals at q, with lengths divided by the length scale. ``frames`` are those of q.

    Returns:
        (cost e·e, the largest error in units of its tolerance). The latter is at most 1 if all goals are reached, and
        infinite if an error is NaN.
    """
    cost = F(0)
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        parts = problem.goals[g, PARTS]
        k = problem.goals[g, FIRST_RESIDUAL]
        d, w = goal_error(problem, frames, targets, g)
        if parts & POSITION:
            worst = max(worst, norm(d) / problem.tolerance)
            d = scale(problem.goal_data[g, POSITION_WEIGHT] / problem.reach, d)
            e[k], e[k + 1], e[k + 2] = d
            cost += dot(d, d)
            k += 3
        if parts & ROTATION:
            worst = max(worst, norm(w) / problem.tolerance_angle)
            w = scale(problem.goal_data[g, ROTATION_WEIGHT], w)
            e[k], e[k + 1], e[k + 2] = w
            cost += dot(w, w)
    more, farthest = general_residual(problem.general, problem, q, frames, targets, e)
    of_gaps, least = clearance_residual(problem.clear, problem, frames, e)
    cost += more + of_gaps
    farthest = max(farthest, loop_residual(problem.loops, problem, q, frames, e) / OPEN)
    return cost, max(worst, farthest, least) if cost < INFINITE else INFINITE


@device
def measure(problem, q, frames, targets, errors):
    """Write each goal's distance (length units) and angle (radians); return the largest in units of its tolerance.

    If an error is NaN, return infinity, because a comparison with NaN would hide it.
    """
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        parts = problem.goals[g, PARTS]
        R, p = goal_frame(problem, frames, g)
        T, t = target_frame(targets, g)
        errors[2 * g] = norm(sub(t, p)) if parts & POSITION else F(0)
        errors[2 * g + 1] = angle_of(matmul_t(T, R)) if parts & ROTATION else F(0)
        worst = max(worst, errors[2 * g] / problem.tolerance, errors[2 * g + 1] / problem.tolerance_angle)
    worst = max(worst, measure_general(problem.general, problem, q, frames, targets, errors))
    worst = max(worst, measure_clearance(problem.clear, problem, frames, errors))
    total = F(0)
    for g in range(problem.goals.shape[0]):
        total += errors[2 * g] + errors[2 * g + 1]
    return worst if total < INFINITE else INFINITE


@device
def jacobian(problem, q, frames, targets, J):
    """Write the Jacobian of all goals: minus the derivative of ``residual``."""
    geometric_jacobian(problem, q, frames, targets, J)
    write_custom(problem.general, problem, JACOBIAN, q, J)


@device
def geometric_jacobian(problem, q, frames, targets, J):
    """Write the Jacobian of all goals except custom goals, by cross products.

    Translations are per length scale, like the residuals. Only ancestors of a goal have non-zero columns.
    """
    J[:, :] = F(0)
    for g in range(problem.goals.shape[0]):
        parts = problem.goals[g, PARTS]
        if parts != 0:
            _, p = goal_frame(problem, frames, g)
            wp, wr = problem.goal_data[g, POSITION_WEIGHT] / problem.reach, problem.goal_data[g, ROTATION_WEIGHT]
            add_frame_rows(
                problem, q, frames, problem.goals[g, GOAL_ROW], p, parts, problem.goals[g, FIRST_RESIDUAL], wp, wr, J
            )
    general_jacobian(problem.general, problem, q, frames, targets, J)
    clearance_rows(problem.clear, problem, q, frames, J)
    loop_rows(problem.loops, problem, q, frames, J)


@device
def to_units(problem, dq):
    """Convert a step from the units of the solvers, with lengths in length scales, to the units of q."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] == SCALAR:
            dq[problem.variables[k, BLOCK_COLUMN]] *= step_unit(problem.limits, k, problem.reach)


@entry
def evaluate_rows(ints, floats, targets, q, scratch, e, J, errors):
    """Write residuals, Jacobians and errors of the goals at each row of q (T, nq).

    ``e`` (T, residuals) and its negative derivative ``J`` (T, residuals, columns) are weighted, with lengths divided by
    the length scale; a J without rows is skipped. ``errors`` (T, 2 goals) are distance and angle; ``targets`` are
    (T, goals, 16).
    """
    problem = open_problem(ints, floats)
    work = open_work(ints, scratch)
    for t in range(q.shape[0]):
        forward(problem.tree, q[t], work.frames)
        residual(problem, q[t], work.frames, targets[t], e[t])
        measure(problem, q[t], work.frames, targets[t], errors[t])
        if J.shape[0] > 0:
            jacobian(problem, q[t], work.frames, targets[t], J[t])
