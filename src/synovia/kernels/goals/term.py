"""Terms of general goals: access to their values, and functions that several kinds of terms share.

A term is a row of the tables of general goals; functions take its index as ``term``. Each kind has its own file in
this folder, with these functions:

``error``         the error as lengths d and angles w; a single value is the first component
``rows``          add minus the derivative of the weighted error to the Jacobian rows, which are zero
``bounds``        instead of ``error``, for a value within bounds: the bounds relative to the present value
``start_target``  the target (R, p) that keeps the start; without this function, the frame of the goal

``general`` calls them by the number of the kind. The two kinds in ``center_of_mass`` have prefixes: ``centre_``,
``support_``.
"""

import math

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.goals.frames import add_wrench_row, frame_on
from synovia.kernels.layout import (
    FIRST,
    GOAL,
    GOAL_ROW,
    LENGTHS,
    OTHER_ORIENTATION,
    OTHER_ORIGIN,
    OTHER_ROW,
    TIP_POINT,
    TIP_ROW,
    WEIGHT,
)
from synovia.kernels.math.rotations import PI, apply, load_rotation, origin_of, rotation_of
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, norm, perpendicular, scale, sub

PARALLEL = F(1e-12)  # sine below which two directions count as equal or opposite
NEVER = F(math.inf)
NOTHING = (F(0), F(0), F(0))


@inline
def unit(i):
    """Return axis i of the world."""
    return F(i == 0), F(i == 1), F(i == 2)


@inline
def other_frame(problem, frames, term):
    """Return the world frame (R, p) that a term has on its other joint."""
    general = problem.general
    R, p = load_rotation(general.data, term, OTHER_ORIENTATION), load(general.data, term, OTHER_ORIGIN)
    return frame_on(frames, general.ints[term, OTHER_ROW], R, p)


@inline
def tip_point(problem, frames, term):
    """Return the tip of the limb of a term, in the world."""
    row, p = problem.general.ints[term, TIP_ROW], load(problem.general.data, term, TIP_POINT)
    return p if row < 0 else add(origin_of(frames, row), apply(rotation_of(frames, row), p))


@inline
def unit_weight(problem, term):
    """Return the factor from the error of a term to its residual: the weight; for lengths, over the length scale."""
    w = problem.general.data[term, WEIGHT]
    return w / problem.reach if problem.general.ints[term, LENGTHS] > 0 else w


@inline
def turn_between(u, d):
    """Return the smallest rotation vector from the unit vector u to the direction d, 0 if d is 0.

    Opposite directions rotate about a fixed perpendicular of u.
    """
    c = cross(u, d)
    s = norm(c)
    x = dot(u, d)
    if s > PARALLEL * abs(x):
        return scale(math.atan2(s, x) / s, c)
    return scale(PI, perpendicular(u)) if x < F(0) else NOTHING


@inline
def turn_rows(problem, q, frames, term, u, p, by, about, J):
    """Write the Jacobian rows of a direction u at the point p: (1 - u uᵀ) ω + u (``about``·ω) + ``by`` × v.

    ω is the angular velocity of the goal's joint, and v the velocity of p. ``about``·ω is the rate of the roll about u;
    ``about`` is 0 if the goal leaves the roll free. ``by`` × v is the rotation rate of the direction to the target,
    which does not change the roll.
    """
    general = problem.general
    w, row, k = general.data[term, WEIGHT], problem.goals[general.ints[term, GOAL], GOAL_ROW], general.ints[term, FIRST]
    rolls = F(1) if dot(about, about) > F(0) else F(0)
    for i in range(3):
        e, free = unit(i), sub(about, u)
        torque = (w * (e[0] + free[0] * u[i]), w * (e[1] + free[1] * u[i]), w * (e[2] + free[2] * u[i]))
        add_wrench_row(problem, q, frames, row, p, scale(w, cross(axpy(-rolls * u[i], u, e), by)), torque, J, k + i)
