"""General goals: everything beyond positions and rotations in the world, by the number of each kind of term.

Every function that others call takes ``problem.general`` as its first argument: where that is None it does nothing, and
the rest of it is not even compiled.
"""

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals import aim, contact, direction, distance, plane, pole, relative
from synovia.kernels.goals import center_of_mass as mass
from synovia.kernels.goals import range as value_range
from synovia.kernels.goals.custom import CUSTOM, custom_length, custom_residual
from synovia.kernels.goals.frames import goal_frame, is_refused, put_given, set_target, target_frame
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

# The kinds of terms, in the order of ``TERMS``, the names by which goals ask for them; the last is ``custom.CUSTOM``
AIM, POLE, DISTANCE, PLANE, RANGE, CENTRE, SUPPORT, RELATIVE, CONTACT, DIRECTION = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
TERMS = ("aim", "pole", "distance", "plane", "range", "centre", "support", "relative", "contact", "direction", "custom")


@inline
def is_bounded(kind):
    """Return whether a kind keeps one number within bounds, and asks for nothing there."""
    return kind == DISTANCE or kind == PLANE or kind == RANGE


@device
def bounds(problem, q, frames, targets, h):
    """Return the least and the most by which the number of term h may change."""
    kind = problem.general.ints[h, KIND]
    if kind == DISTANCE:
        return distance.bounds(problem, frames, targets, h)
    if kind == PLANE:
        return plane.bounds(problem, frames, targets, h)
    return value_range.bounds(problem, q, h)


@device
def error(problem, q, frames, targets, h):
    """Return the error of term h: lengths d and angles w; a lone number stands first."""
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
    """Write how the number of term h grows, whether it is within its bounds or not."""
    kind = problem.general.ints[h, KIND]
    if kind == DISTANCE:
        distance.rows(problem, q, frames, targets, h, J)
    elif kind == PLANE:
        plane.rows(problem, q, frames, targets, h, J)
    else:
        value_range.rows(problem, q, frames, h, J)


@device
def rows(problem, q, frames, targets, h, J):
    """Write the rows of term h over zeros."""
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
    """Return (e, d) of a term that points an axis: from o to a point of the axis, and from o to where it should go."""
    if problem.general.ints[h, KIND] == DIRECTION:
        return direction.aim_vectors(problem, targets, h)
    return aim.aim_vectors(problem, frames, targets, h, o)


@device
def kept(problem, frames, h):
    """Return the target (R, p) that term h has when none is given: it keeps the start as it is."""
    kind = problem.general.ints[h, KIND]
    if kind == AIM:
        return aim.kept(problem, frames, h)
    if kind == CENTRE:
        return mass.centre_kept(problem, frames, h)
    if kind == RELATIVE:
        return relative.kept(problem, frames, h)
    if kind == DIRECTION:
        return direction.kept(problem, frames, h)
    return goal_frame(problem, frames, problem.general.ints[h, GOAL])


@device
def refused_general(general, problem, targets):
    """Return the first goal whose given target cannot be used, or -1."""
    if general is None:
        return -1
    for h in range(general.ints.shape[0]):
        g = general.ints[h, GOAL]
        given = general.ints[h, TARGET_PARTS] & int(targets[g, GIVEN])
        if is_refused(problem, targets, g, given):
            return g
        if general.ints[h, KIND] == DIRECTION and given and direction.refused(targets, g):
            return g
    return -1


@device
def all_general_given(general, targets):
    """Return whether every term is given all that it takes."""
    if general is None:
        return True
    for h in range(general.ints.shape[0]):
        takes = general.ints[h, TARGET_PARTS]
        if takes & int(targets[general.ints[h, GOAL], GIVEN]) != takes:
            return False
    return True


@device
def complete_general(general, problem, frames, targets, whole):
    """Write the targets that keep the start as it is, where not all of a target is given."""
    if general is None:
        return
    for h in range(general.ints.shape[0]):
        g, takes = general.ints[h, GOAL], general.ints[h, TARGET_PARTS]
        if takes & int(targets[g, GIVEN]) != takes:
            R, p = target_frame(whole, g)
            S, s = kept(problem, frames, h)
            set_target(whole, g, S if takes & ROTATION else R, s if takes & POSITION else p)


@device
def replace_general(general, targets, whole):
    """Write the targets that are given over those that are kept."""
    if general is None:
        return
    for h in range(general.ints.shape[0]):
        g = general.ints[h, GOAL]
        put_given(targets, whole, g, general.ints[h, TARGET_PARTS] & int(targets[g, GIVEN]))


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
    """Write distance and angle of the errors of general goals; return the largest in units of its tolerance."""
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
    """Write the rows of general goals over zeros."""
    if general is None:
        return
    if general.masses.shape[0] > 0:
        mass.sum_branches(problem.tree, general.masses, frames)
    for h in range(general.ints.shape[0]):
        rows(problem, q, frames, targets, h, J)
