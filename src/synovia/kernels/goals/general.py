"""General goals: all goals except positions and rotations in the world. This file calls the code of each kind of term.

Functions that take ``problem.general`` as their first argument do nothing if it is None, and their code for general
goals is then not compiled.
"""

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals import aim, cone, contact, direction, distance, plane, pole, relative, within
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

# The kinds of terms, in the order of their names in ``TERMS``; the first is ``custom.CUSTOM``
AIM, POLE, DISTANCE, PLANE, RANGE, CENTRE, SUPPORT, RELATIVE, CONTACT, DIRECTION = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
CONE, WITHIN = 11, 12
TERMS = (
    "custom", "aim", "pole", "distance", "plane", "range", "centre", "support", "relative", "contact", "direction",
    "cone", "within",
)  # fmt: skip


@inline
def is_bounded(kind):
    """Return whether a kind of term keeps one value within bounds, so that its error is 0 between the bounds."""
    return kind == DISTANCE or kind == PLANE or kind == RANGE or kind == CONE


@device
def bounds(problem, q, frames, targets, term):
    """Return the bounds of the value of a term, relative to its present value."""
    kind = problem.general.ints[term, KIND]
    if kind == DISTANCE:
        return distance.bounds(problem, frames, targets, term)
    if kind == PLANE:
        return plane.bounds(problem, frames, targets, term)
    if kind == CONE:
        return cone.bounds(problem, frames, targets, term)
    return value_range.bounds(problem, q, term)


@device
def error(problem, q, frames, targets, term):
    """Return the error of a term as lengths d and angles w; a single value is the first component."""
    kind = problem.general.ints[term, KIND]
    if is_bounded(kind):
        low, high = bounds(problem, q, frames, targets, term)
        lacking = (max(low, F(0)) + min(high, F(0)), F(0), F(0))
        return (lacking, NOTHING) if problem.general.ints[term, LENGTHS] > 0 else (NOTHING, lacking)
    if kind == AIM:
        return aim.error(problem, frames, targets, term)
    if kind == POLE:
        return pole.error(problem, frames, targets, term)
    if kind == CENTRE:
        return mass.centre_error(problem, frames, targets, term)
    if kind == SUPPORT:
        return mass.support_error(problem, frames, term)
    if kind == RELATIVE:
        return relative.error(problem, frames, targets, term)
    if kind == DIRECTION:
        return direction.error(problem, frames, targets, term)
    if kind == WITHIN:
        return within.error(problem, frames, targets, term)
    return contact.error(problem, frames, targets, term)  # CONTACT; custom terms are not measured here


@device
def bounded_row(problem, q, frames, targets, term, J):
    """Write the derivative of the value of a term, even if the value is within its bounds."""
    kind = problem.general.ints[term, KIND]
    if kind == DISTANCE:
        distance.rows(problem, q, frames, targets, term, J)
    elif kind == PLANE:
        plane.rows(problem, q, frames, targets, term, J)
    elif kind == CONE:
        cone.rows(problem, q, frames, targets, term, J)
    else:
        value_range.rows(problem, q, frames, term, J)


@device
def rows(problem, q, frames, targets, term, J):
    """Write the Jacobian rows of a term into its rows of J, which must be zero."""
    kind = problem.general.ints[term, KIND]
    if is_bounded(kind):
        low, high = bounds(problem, q, frames, targets, term)
        if low > F(0) or high < F(0):
            bounded_row(problem, q, frames, targets, term, J)
    elif kind == AIM:
        aim.rows(problem, q, frames, targets, term, J)
    elif kind == POLE:
        pole.rows(problem, q, frames, targets, term, J)
    elif kind == CENTRE:
        mass.centre_rows(problem, q, frames, term, J)
    elif kind == SUPPORT:
        mass.support_rows(problem, q, frames, term, J)
    elif kind == RELATIVE:
        relative.rows(problem, q, frames, targets, term, J)
    elif kind == CONTACT:
        contact.rows(problem, q, frames, term, J)
    elif kind == DIRECTION:
        direction.rows(problem, q, frames, term, J)
    elif kind == WITHIN:
        within.rows(problem, q, frames, targets, term, J)


@inline
def aim_vectors(problem, frames, targets, term, o):
    """Return the vectors from o to a point of the axis of a term, and from o to the target of the axis."""
    if problem.general.ints[term, KIND] == DIRECTION:
        return direction.aim_vectors(problem, targets, term)
    return aim.aim_vectors(problem, frames, targets, term, o)


@device
def start_target(problem, frames, term):
    """Return the target (R, p) of a term that keeps the start."""
    kind = problem.general.ints[term, KIND]
    if kind == AIM or (kind == CONE and cone.aims(problem, term)):
        return aim.start_target(problem, frames, term)
    if kind == CENTRE:
        return mass.centre_start_target(problem, frames, term)
    if kind == RELATIVE:
        return relative.start_target(problem, frames, term)
    if kind == DIRECTION or kind == CONE:
        return direction.start_target(problem, frames, term)
    return goal_frame(problem, frames, problem.general.ints[term, GOAL])


@device
def first_invalid_general(general, problem, targets):
    """Return the first goal with an invalid target, or -1."""
    if general is None:
        return -1
    for term in range(general.ints.shape[0]):
        g = general.ints[term, GOAL]
        given = general.ints[term, TARGET_PARTS] & int(targets[g, GIVEN])
        if is_invalid(targets, g, given):
            return g
        kind = general.ints[term, KIND]
        points = kind == DIRECTION or (kind == CONE and not cone.aims(problem, term))
        if points and given and direction.is_invalid(targets, g):
            return g
    return -1


@device
def all_general_given(general, targets):
    """Return whether the targets of all terms are complete."""
    if general is None:
        return True
    for term in range(general.ints.shape[0]):
        takes = general.ints[term, TARGET_PARTS]
        if takes & int(targets[general.ints[term, GOAL], GIVEN]) != takes:
            return False
    return True


@device
def complete_general(general, problem, frames, targets, complete):
    """Write targets that keep the start for all parts of targets that are not given."""
    if general is None:
        return
    for term in range(general.ints.shape[0]):
        g, takes = general.ints[term, GOAL], general.ints[term, TARGET_PARTS]
        if takes & int(targets[g, GIVEN]) != takes:
            R, p = target_frame(complete, g)
            S, s = start_target(problem, frames, term)
            set_target(complete, g, S if takes & ROTATION else R, s if takes & POSITION else p)


@device
def write_given_general(general, targets, complete):
    """Copy the given parts of targets into ``complete``."""
    if general is None:
        return
    for term in range(general.ints.shape[0]):
        g = general.ints[term, GOAL]
        write_given(targets, complete, g, general.ints[term, TARGET_PARTS] & int(targets[g, GIVEN]))


@inline
def has_terms(general):
    """Return whether there are general goals; without them, a solve skips the functions below."""
    return general.ints.shape[0] > 0


@inline
def general_residual(general, problem, q, frames, targets, e):
    """Write the weighted residuals of general goals; return (their cost, the largest error in units of tolerance)."""
    if general is None:
        return F(0), F(0)
    return _residual(general, problem, q, frames, targets, e) if has_terms(general) else (F(0), F(0))


@apart
def _residual(general, problem, q, frames, targets, e):
    cost = F(0)
    worst = F(0)
    for term in range(general.ints.shape[0]):
        if general.ints[term, KIND] == CUSTOM:
            more, far = custom_residual(problem, q, term, e)
            cost += more
            worst = max(worst, far)
            continue
        d, w = error(problem, q, frames, targets, term)
        worst = max(worst, norm(d) / problem.tolerance, norm(w) / problem.tolerance_angle)
        d, w = scale(general.data[term, WEIGHT] / problem.reach, d), scale(general.data[term, WEIGHT], w)
        cost += dot(d, d) + dot(w, w)
        k = general.ints[term, FIRST]
        for i in range(general.ints[term, LENGTHS]):
            e[k + i] = d[i]
        k += general.ints[term, LENGTHS]
        for i in range(general.ints[term, ANGLES]):
            e[k + i] = w[i]
    return cost, worst


@inline
def measure_general(general, problem, q, frames, targets, errors):
    """Write the error distance and angle of general goals; return the largest in units of its tolerance."""
    if general is None:
        return F(0)
    return _measure(general, problem, q, frames, targets, errors) if has_terms(general) else F(0)


@apart
def _measure(general, problem, q, frames, targets, errors):
    worst = F(0)
    for term in range(general.ints.shape[0]):
        g = general.ints[term, GOAL]
        if general.ints[term, KIND] == CUSTOM:
            errors[2 * g] = custom_length(problem, q, term)
            worst = max(worst, errors[2 * g] / general.data[term, NUMBERS])
            continue
        d, w = error(problem, q, frames, targets, term)
        if general.ints[term, LENGTHS] > 0:
            errors[2 * g] = norm(d)
        if general.ints[term, ANGLES] > 0 and not norm(w) <= errors[2 * g + 1]:  # the largest error of the goal's terms
            errors[2 * g + 1] = norm(w)
        worst = max(worst, norm(d) / problem.tolerance, norm(w) / problem.tolerance_angle)
    return worst


@inline
def general_jacobian(general, problem, q, frames, targets, J):
    """Write the Jacobian rows of all general goals into their rows of J, which must be zero."""
    if general is None:
        return
    if has_terms(general):
        _jacobian(general, problem, q, frames, targets, J)


@apart
def _jacobian(general, problem, q, frames, targets, J):
    if general.masses.shape[0] > 0:
        mass.sum_masses(problem.tree, general.masses, frames)
    for term in range(general.ints.shape[0]):
        rows(problem, q, frames, targets, term, J)
