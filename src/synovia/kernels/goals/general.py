"""Goals beyond a place in the world: aim, pole, distance, plane, range, balance, a relative place, alignment.

Each has an error: lengths d and angles w, some of one number alone. One-sided goals ask nothing inside. The rows of the
Jacobian are in ``general_rows``.

Every function that others call takes ``problem.further`` as its first argument: where that is None it does nothing, and
the rest of it is not even compiled.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import frame_on, goal_frame, is_refused, put_given, set_target, target_frame
from synovia.kernels.goals.masses import across, centre_of_mass, outside_support
from synovia.kernels.goals.ranges import joint_value
from synovia.kernels.layout import (
    ANGLES,
    FIRST,
    GIVEN,
    GOAL,
    GOAL_ROW,
    KIND,
    LENGTHS,
    NUMBERS,
    ORIENTATION,
    ORIGIN,
    POSITION,
    ROTATION,
    SECOND,
    SECOND_ORIENTATION,
    SECOND_ORIGIN,
    TAKES,
    THIRD,
    THIRD_POINT,
    VERTEX,
    VERTICES,
    WEIGHT,
)
from synovia.kernels.math.bend import bend_of
from synovia.kernels.math.rotations import PI, apply, column, load_rotation, log_rotation, matmul, matmul_t
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, norm, perpendicular, scale, sub

# Kinds
AIM, POLE, DISTANCE, PLANE, CENTRE, SUPPORT, RELATIVE, ALIGN, RANGE = 1, 2, 3, 4, 5, 6, 7, 8, 9
PARALLEL = F(1e-12)  # sine below which two directions count as one or as opposite
TOUCHING = F(1e-6)  # of the reach: nearer, there is no direction to aim in
NOTHING = (F(0), F(0), F(0))


@inline
def turn_between(u, d):
    """Return the rotation vector of the smallest turn that takes the unit vector u to direction d, 0 if it has none.

    Opposite directions are half a turn apart, about the same axis every time.
    """
    c = cross(u, d)
    s = norm(c)
    x = dot(u, d)
    if s > PARALLEL * abs(x):
        return scale(math.atan2(s, x) / s, c)
    return scale(PI, perpendicular(u)) if x < F(0) else (F(0), F(0), F(0))


@inline
def second_frame(problem, frames, h):
    """Return the world frame (R, p) on the second joint of further goal h."""
    data = problem.further.data
    return frame_on(
        frames,
        problem.further.ints[h, SECOND],
        load_rotation(data, h, SECOND_ORIENTATION),
        load(data, h, SECOND_ORIGIN),
    )


@inline
def third_point(problem, frames, h):
    """Return the point on the third joint of further goal h, in the world."""
    row, p = problem.further.ints[h, THIRD], load(problem.further.data, h, THIRD_POINT)
    return p if row < 0 else add(load(frames, row, ORIGIN), apply(load_rotation(frames, row, ORIENTATION), p))


@inline
def wanted_on_other(problem, frames, targets, h):
    """Return in the world the target (R, p) that is given in the frame of the second joint."""
    R, p = second_frame(problem, frames, h)
    T, t = target_frame(targets, problem.further.ints[h, GOAL])
    return matmul(R, T), add(p, apply(R, t))


@inline
def away_from(problem, frames, targets, h):
    """Return the vector to the goal's point from what it keeps its distance from: the target, or the second joint."""
    g = problem.further.ints[h, GOAL]
    _, p = goal_frame(problem, frames, g)
    _, o = target_frame(targets, g)
    if problem.further.ints[h, TAKES] == 0:
        _, o = second_frame(problem, frames, h)
    return sub(p, o)


@inline
def lacking(data, h, x):
    """Return what a number is short of its least (positive) or beyond its most (negative), 0 between."""
    return min(max(x, data[h, NUMBERS]), data[h, NUMBERS + 1]) - x


@device
def lack(problem, q, frames, targets, h):
    """Return the error of further goal h: lengths d and angles w; a lone number stands first."""
    f = problem.further
    kind, g = f.ints[h, KIND], f.ints[h, GOAL]
    R, p = goal_frame(problem, frames, g)
    T, t = target_frame(targets, g)
    if kind == AIM:
        d = sub(t, p)
        return NOTHING, turn_between(column(R, 2), d) if norm(d) > TOUCHING * problem.reach else NOTHING
    if kind == ALIGN:
        return NOTHING, turn_between(column(R, 2), column(T, 2))
    if kind == POLE:
        bend = bend_of(second_frame(problem, frames, h)[1], p, third_point(problem, frames, h), t)
        return NOTHING, (bend.share * bend.angle, F(0), F(0))
    if kind == DISTANCE:
        return (lacking(f.data, h, norm(away_from(problem, frames, targets, h))), F(0), F(0)), NOTHING
    if kind == RANGE:
        x = lacking(f.data, h, joint_value(problem, q, problem.goals[g, GOAL_ROW]))
        return ((x, F(0), F(0)), NOTHING) if f.ints[h, LENGTHS] > 0 else (NOTHING, (x, F(0), F(0)))
    if kind == PLANE:
        return (max(F(0), dot(column(T, 2), sub(t, p))), F(0), F(0)), NOTHING
    if kind == RELATIVE:
        T, t = wanted_on_other(problem, frames, targets, h)
        w = log_rotation(matmul_t(T, R)) if f.ints[h, ANGLES] > 0 else NOTHING
        return sub(t, p) if f.ints[h, LENGTHS] > 0 else NOTHING, w
    c = centre_of_mass(f.masses, frames)
    if kind == CENTRE:
        return sub(t, c), NOTHING
    up = load(f.data, h, NUMBERS)
    d, _ = outside_support(f.vertices, f.ints[h, VERTEX], f.ints[h, VERTICES], up, c)
    a, b = across(up)
    return (dot(a, d), dot(b, d), F(0)), NOTHING


@device
def stay(problem, frames, h):
    """Return the target (R, p) that further goal h has when none is given: what keeps the start as it is."""
    f = problem.further
    kind = f.ints[h, KIND]
    R, p = goal_frame(problem, frames, f.ints[h, GOAL])
    if kind == AIM:
        return R, axpy(problem.reach, column(R, 2), p)
    if kind == CENTRE:
        return R, centre_of_mass(f.masses, frames)
    if kind == RELATIVE:
        S, s = second_frame(problem, frames, h)
        back = (S[0], S[3], S[6], S[1], S[4], S[7], S[2], S[5], S[8])
        return matmul(back, R), apply(back, sub(p, s))
    return R, p


@device
def refused_further(further, problem, targets):
    """Return the first goal whose given target is no good, or -1."""
    if further is None:
        return -1
    for h in range(further.ints.shape[0]):
        g = further.ints[h, GOAL]
        if is_refused(problem, targets, g, further.ints[h, TAKES] & int(targets[g, GIVEN])):
            return g
    return -1


@device
def all_further_given(further, targets):
    """Return whether every further goal is given all that it takes."""
    if further is None:
        return True
    for h in range(further.ints.shape[0]):
        takes = further.ints[h, TAKES]
        if takes & int(targets[further.ints[h, GOAL], GIVEN]) != takes:
            return False
    return True


@device
def complete_further(further, problem, frames, targets, kept):
    """Write what keeps the start as it is, where not all of a target is given."""
    if further is None:
        return
    for h in range(further.ints.shape[0]):
        g, takes = further.ints[h, GOAL], further.ints[h, TAKES]
        if takes & int(targets[g, GIVEN]) != takes:
            R, p = target_frame(kept, g)
            S, s = stay(problem, frames, h)
            set_target(kept, g, S if takes & ROTATION else R, s if takes & POSITION else p)


@device
def replace_further(further, targets, kept):
    """Write the targets that are given over those that are kept."""
    if further is None:
        return
    for h in range(further.ints.shape[0]):
        g = further.ints[h, GOAL]
        put_given(targets, kept, g, further.ints[h, TAKES] & int(targets[g, GIVEN]))


@device
def further_residual(further, problem, q, frames, targets, e):
    """Write the weighted residuals of further goals; return (their cost, the largest error in units of tolerance)."""
    if further is None:
        return F(0), F(0)
    cost = F(0)
    worst = F(0)
    for h in range(further.ints.shape[0]):
        d, w = lack(problem, q, frames, targets, h)
        worst = max(worst, norm(d) / problem.tolerance, norm(w) / problem.tolerance_angle)
        d, w = scale(further.data[h, WEIGHT] / problem.reach, d), scale(further.data[h, WEIGHT], w)
        cost += dot(d, d) + dot(w, w)
        k = further.ints[h, FIRST]
        for i in range(further.ints[h, LENGTHS]):
            e[k + i] = d[i]
        k += further.ints[h, LENGTHS]
        for i in range(further.ints[h, ANGLES]):
            e[k + i] = w[i]
    return cost, worst


@device
def measure_further(further, problem, q, frames, targets, errors):
    """Write distance and angle that further goals lack; return the largest in units of its tolerance."""
    if further is None:
        return F(0)
    worst = F(0)
    for h in range(further.ints.shape[0]):
        g = further.ints[h, GOAL]
        d, w = lack(problem, q, frames, targets, h)
        if further.ints[h, LENGTHS] > 0:
            errors[2 * g] = norm(d)
        if further.ints[h, ANGLES] > 0:
            errors[2 * g + 1] = norm(w)
        worst = max(worst, norm(d) / problem.tolerance, norm(w) / problem.tolerance_angle)
    return worst
