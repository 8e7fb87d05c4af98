"""General goals: all goals but positions and rotations in the world. This file calls the code of each kind of term.

Functions that take ``problem.general`` as their first argument do nothing if it is None, and their code for general
goals is then not compiled.
"""

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals import aim, contact, direction, distance, plane, pole, relative
from synovia.kernels.goals import center_of_mass as mass
from synovia.kernels.goals import range as value_range
from synovia.kernels.goals.custom import CUSTOM, custom_length, custom_residual
from synovia.kernels.goals.frames import goal_frame, is_invalid, set_target, target_frame, write_given
from synovia.kernels.goals.term import NOTHING
from synovia.kernels.layout import (
    ANGLES,
    FIRST,
    GIVEN,
    GOAL,
    KIND,
    LENGTHS,
    NUMBERS,
    POSITION,
    ROTATION,
    TARGET_PARTS,
    WEIGHT,
)
from synovia.kernels.math.vectors import dot, norm, scale

# The kinds of terms, in the order of their names in ``TERMS``; the last is ``custom.CUSTOM``
AIM, POLE, DISTANCE, PLANE, RANGE, CENTRE, SUPPORT, RELATIVE, CONTACT, DIRECTION = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
TERMS = ("aim", "pole", "distance", "plane", "range", "centre", "support", "relative", "contact", "direction", "custom")


@inline
def is_bounded(kind):
    """Return whether a kind keeps one number within bounds, so that its error is 0 between them."""
    return kind == DISTANCE or kind == PLANE or kind == RANGE


@device
def bounds(problem, q, frames, targets, h):
    """Return the bounds of the number of term h, relative to its present value."""
    kind = problem.general.ints[h, KIND]
    if kind == DISTANCE:
        return distance.bounds(problem, frames, targets, h)
    if kind == PLANE:
        return plane.bounds(problem, frames, targets, h)
    return value_range.bounds(problem, q, h)


@device
def error(problem, q, frames, targets, h):
    """Return the error of term h as lengths d and angles w; a single number is the first."""
    kind = problem.general.ints[h, KIND]
    if is_bounded(kind):
        low, high = bounds(problem, q, frames, targets, h)
        lacking = (max(low, F(0)) + min(high, F(0)), F(0), F(0))
        return (lacking, NOTHING) if problem.general.ints[h, LENGTHS] > 0 else (NOTHING, lacking)
    if kind == AIM:
        return aim.error(problem, frames, targets, h)
    if kind == POLE:
        return pole.error(problem, frames, targets, h)
    if kind == CENTRE:
        return mass.centre_error(problem, frames, targets, h)
    if kind == SUPPORT:
        return mass.support_error(problem, frames, h)
    if kind == RELATIVE:
        return relative.error(problem, frames, targets, h)
    if kind == DIRECTION:
        return direction.error(problem, frames, targets, h)
    return contact.error(problem, frames, targets, h)


@device
def bounded_row(problem, q, frames, targets, h, J):
    """Write the derivative of the number of term h, even if it is within its bounds."""
    kind = problem.general.ints[h, KIND]
    if kind == DISTANCE:
        distance.rows(problem, q, frames, targets, h, J)
    elif kind == PLANE:
        plane.rows(problem, q, frames, targets, h, J)
    else:
        value_range.rows(problem, q, frames, h, J)


@device
def rows(problem, q, frames, targets, h, J):
    """Add the Jacobian rows of term h to rows of zeros."""
    kind = problem.general.ints[h, KIND]
    if is_bounded(kind):
        low, high = bounds(problem, q, frames, targets, h)
        if low > F(0) or high < F(0):
            bounded_row(problem, q, frames, targets, h, J)
    elif kind == AIM:
        aim.rows(problem, q, frames, targets, h, J)
    elif kind == POLE:
        pole.rows(problem, q, frames, targets, h, J)
    elif kind == CENTRE:
        mass.centre_rows(problem, q, frames, h, J)
    elif kind == SUPPORT:
        mass.support_rows(problem, q, frames, h, J)
    elif kind == RELATIVE:
        relative.rows(problem, q, frames, targets, h, J)
    elif kind == CONTACT:
        contact.rows(problem, q, frames, h, J)
    elif kind == DIRECTION:
        direction.rows(problem, q, frames, h, J)


@inline
def aim_vectors(problem, frames, targets, h, o):
    """Return the vectors from o to a point of the axis of term h, and from o to the target of the axis."""
    if problem.general.ints[h, KIND] == DIRECTION:
        return direction.aim_vectors(problem, targets, h)
    return aim.aim_vectors(problem, frames, targets, h, o)


@device
def start_target(problem, frames, h):
    """Return the target (R, p) of term h that keeps the start as it is."""
    kind = problem.general.ints[h, KIND]
    if kind == AIM:
        return aim.start_target(problem, frames, h)
    if kind == CENTRE:
        return mass.centre_start_target(problem, frames, h)
    if kind == RELATIVE:
        return relative.start_target(problem, frames, h)
    if kind == DIRECTION:
        return direction.start_target(problem, frames, h)
    return goal_frame(problem, frames, problem.general.ints[h, GOAL])


@device
def first_invalid_general(general, problem, targets):
    """Return the first goal with an invalid target, or -1."""
    if general is None:
        return -1
    for h in range(general.ints.shape[0]):
        g = general.ints[h, GOAL]
        given = general.ints[h, TARGET_PARTS] & int(targets[g, GIVEN])
        if is_invalid(problem, targets, g, given):
            return g
        if general.ints[h, KIND] == DIRECTION and given and direction.is_invalid(targets, g):
            return g
    return -1


@device
def all_general_given(general, targets):
    """Return whether all terms are given all parts of their targets."""
    if general is None:
        return True
    for h in range(general.ints.shape[0]):
        takes = general.ints[h, TARGET_PARTS]
        if takes & int(targets[general.ints[h, GOAL], GIVEN]) != takes:
            return False
    return True


@device
def complete_general(general, problem, frames, targets, complete):
    """Write the targets that keep the start, for the parts of targets that are not given."""
    if general is None:
        return
    for h in range(general.ints.shape[0]):
        g, takes = general.ints[h, GOAL], general.ints[h, TARGET_PARTS]
        if takes & int(targets[g, GIVEN]) != takes:
            R, p = target_frame(complete, g)
            S, s = start_target(problem, frames, h)
            set_target(complete, g, S if takes & ROTATION else R, s if takes & POSITION else p)


@device
def write_given_general(general, targets, complete):
    """Copy the given parts of targets into ``complete``."""
    if general is None:
        return
    for h in range(general.ints.shape[0]):
        g = general.ints[h, GOAL]
        write_given(targets, complete, g, general.ints[h, TARGET_PARTS] & int(targets[g, GIVEN]))


@apart
def general_residual(general, problem, q, frames, targets, e):
    """Write the weighted residuals of general goals; return (their cost, the largest error in units of tolerance)."""
    if general is None:
        return F(0), F(0)
    cost = F(0)
    worst = F(0)
    for h in range(general.ints.shape[0]):
        if general.ints[h, KIND] == CUSTOM:
            more, far = custom_residual(problem, q, h, e)
            cost += more
            worst = max(worst, far)
            continue
        d, w = error(problem, q, frames, targets, h)
        worst = max(worst, norm(d) / problem.tolerance, norm(w) / problem.tolerance_angle)
        d, w = scale(general.data[h, WEIGHT] / problem.reach, d), scale(general.data[h, WEIGHT], w)
        cost += dot(d, d) + dot(w, w)
        k = general.ints[h, FIRST]
        for i in range(general.ints[h, LENGTHS]):
            e[k + i] = d[i]
        k += general.ints[h, LENGTHS]
        for i in range(general.ints[h, ANGLES]):
            e[k + i] = w[i]
    return cost, worst


@apart
def measure_general(general, problem, q, frames, targets, errors):
    """Write the error distance and angle of general goals; return the largest in units of its tolerance."""
    if general is None:
        return F(0)
    worst = F(0)
    for h in range(general.ints.shape[0]):
        g = general.ints[h, GOAL]
        if general.ints[h, KIND] == CUSTOM:
            errors[2 * g] = custom_length(problem, q, h)
            worst = max(worst, errors[2 * g] / general.data[h, NUMBERS])
            continue
        d, w = error(problem, q, frames, targets, h)
        if general.ints[h, LENGTHS] > 0:
            errors[2 * g] = norm(d)
        if general.ints[h, ANGLES] > 0:
            errors[2 * g + 1] = norm(w)
        worst = max(worst, norm(d) / problem.tolerance, norm(w) / problem.tolerance_angle)
    return worst


@apart
def general_jacobian(general, problem, q, frames, targets, J):
    """Add the Jacobian rows of general goals to rows of zeros."""
    if general is None:
        return
    if general.masses.shape[0] > 0:
        mass.sum_masses(problem.tree, general.masses, frames)
    for h in range(general.ints.shape[0]):
        rows(problem, q, frames, targets, h, J)
