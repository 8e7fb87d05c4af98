"""Goals as residuals with a Jacobian.

A goal's frame is fixed on a joint; its error is the vector from there to the target, and the rotation vector (SO(3)
logarithm) that turns it onto the target, both in the world: right up to half a turn. What else a goal can ask for is
in ``general``; a problem that was opened without it compiles none of that.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.custom import JACOBIAN, write_custom
from synovia.kernels.goals.frames import climb, goal_frame, is_refused, put_given, set_target, target_frame
from synovia.kernels.goals.general import (
    all_general_given,
    complete_general,
    general_jacobian,
    general_residual,
    measure_general,
    refused_general,
    replace_general,
)
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    FIRST_RESIDUAL,
    GIVEN,
    GOAL_ROW,
    IS_ANGLE,
    PARTS,
    POSITION,
    POSITION_WEIGHT,
    ROTATION,
    ROTATION_WEIGHT,
    SCALAR,
)
from synovia.kernels.math.rotations import angle_of, identity, log_rotation, matmul_t
from synovia.kernels.math.vectors import dot, norm, scale, sub

INFINITE = F(math.inf)


@device
def first_invalid_target(problem, targets):
    """Return the first goal whose given target is not finite or no rigid transform, or -1: the check at the door."""
    for g in range(problem.goals.shape[0]):
        if is_refused(problem, targets, g, problem.goals[g, PARTS] & int(targets[g, GIVEN])):
            return g
    return refused_general(problem.general, problem, targets)


@inline
def all_given(problem, targets):
    """Return whether every goal is given all that it asks for, so that the start's frames are not needed."""
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] & int(targets[g, GIVEN]) != problem.goals[g, PARTS]:
            return False
    return all_general_given(problem.general, targets)


@device
def complete_targets(problem, frames, targets, kept):
    """Write the targets that hold (kept): the given ones, and the place at the start for what is not given.

    What a goal does not ask for is left as the unit frame has it.
    """
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] & int(targets[g, GIVEN]) == problem.goals[g, PARTS]:
            set_target(kept, g, identity(), (F(0), F(0), F(0)))
        else:
            R, p = goal_frame(problem, frames, g)
            set_target(kept, g, R, p)
    complete_general(problem.general, problem, frames, targets, kept)
    write_given_targets(problem, targets, kept)


@device
def write_given_targets(problem, targets, kept):
    """Write the targets that are given over those that are kept."""
    for g in range(problem.goals.shape[0]):
        put_given(targets, kept, g, problem.goals[g, PARTS] & int(targets[g, GIVEN]))
    replace_general(problem.general, targets, kept)


@inline
def goal_error(problem, frames, targets, g):
    """Return (vector to the target, rotation vector onto the target) of goal g, in the world."""
    R, p = goal_frame(problem, frames, g)
    T, t = target_frame(targets, g)
    return sub(t, p), log_rotation(matmul_t(T, R))


@device
def residual(problem, q, frames, targets, e):
    """Write the weighted residuals at q, whose frames these are, lengths in units of the reach.

    Returns:
        (cost e·e, the largest error in units of its tolerance: at most 1 when every goal holds, infinite where an
        error is no number).
    """
    cost = F(0)
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        what = problem.goals[g, PARTS]
        k = problem.goals[g, FIRST_RESIDUAL]
        d, w = goal_error(problem, frames, targets, g)
        if what & POSITION:
            worst = max(worst, norm(d) / problem.tolerance)
            d = scale(problem.goal_data[g, POSITION_WEIGHT] / problem.reach, d)
            e[k], e[k + 1], e[k + 2] = d
            cost += dot(d, d)
            k += 3
        if what & ROTATION:
            worst = max(worst, norm(w) / problem.tolerance_angle)
            w = scale(problem.goal_data[g, ROTATION_WEIGHT], w)
            e[k], e[k + 1], e[k + 2] = w
            cost += dot(w, w)
    more, farthest = general_residual(problem.general, problem, q, frames, targets, e)
    cost += more
    return cost, max(worst, farthest) if cost < INFINITE else INFINITE


@device
def measure(problem, q, frames, targets, errors):
    """Write each goal's distance (length units) and angle (radians); return the largest in units of its tolerance.

    Where an error is no number, that is infinite: a comparison with NaN would let it pass.
    """
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        what = problem.goals[g, PARTS]
        R, p = goal_frame(problem, frames, g)
        T, t = target_frame(targets, g)
        errors[2 * g] = norm(sub(t, p)) if what & POSITION else F(0)
        errors[2 * g + 1] = angle_of(matmul_t(T, R)) if what & ROTATION else F(0)
        worst = max(worst, errors[2 * g] / problem.tolerance, errors[2 * g + 1] / problem.tolerance_angle)
    worst = max(worst, measure_general(problem.general, problem, q, frames, targets, errors))
    total = F(0)
    for g in range(problem.goals.shape[0]):
        total += errors[2 * g] + errors[2 * g + 1]
    return worst if total < INFINITE else INFINITE


@device
def jacobian(problem, q, frames, targets, J):
    """Write the Jacobian of all goals; minus the derivative of ``residual``."""
    geometric_jacobian(problem, q, frames, targets, J)
    write_custom(problem.general, problem, JACOBIAN, q, J)


@device
def geometric_jacobian(problem, q, frames, targets, J):
    """Write the Jacobian of all goals but custom ones by cross products.

    Columns of lengths are per reach, like the residuals. Joints that are no ancestors of a goal keep columns of zeros.
    """
    J[:, :] = F(0)
    for g in range(problem.goals.shape[0]):
        what = problem.goals[g, PARTS]
        if what != 0:
            _, p = goal_frame(problem, frames, g)
            wp, wr = problem.goal_data[g, POSITION_WEIGHT] / problem.reach, problem.goal_data[g, ROTATION_WEIGHT]
            climb(problem, q, frames, problem.goals[g, GOAL_ROW], p, what, problem.goals[g, FIRST_RESIDUAL], wp, wr, J)
    general_jacobian(problem.general, problem, q, frames, targets, J)


@device
def to_units(problem, dq):
    """Turn a step in the solvers' units into one in the units of q: lengths were counted in reaches."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] == SCALAR and problem.limits[k, IS_ANGLE] == F(0):
            dq[problem.variables[k, BLOCK_COLUMN]] *= problem.reach
