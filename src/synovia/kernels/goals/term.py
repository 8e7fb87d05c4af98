"""Terms of general goals: access to their numbers, and functions that several kinds of terms share.

Each kind has its own file in this folder, with these functions of a term h:

``error``         the error as lengths d and angles w; a single number is the first
``rows``          the Jacobian rows: minus the derivative of the weighted error
``bounds``        instead of ``error``, for a number within bounds: the bounds relative to its present value
``start_target``  the target (R, p) that keeps the start; without this function, the frame of the goal

``general`` calls them by the number of the kind.
"""

import math

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.goals.frames import add_wrench_row, frame_on
from synovia.kernels.layout import (
    FIRST,
    GOAL,
    GOAL_ROW,
    LENGTHS,
    SECOND,
    SECOND_ORIENTATION,
    SECOND_ORIGIN,
    THIRD,
    THIRD_POINT,
    WEIGHT,
)
from synovia.kernels.math.rotations import PI, apply, load_rotation, origin_of, rotation_of
from synovia.kernels.math.vectors import add, cross, dot, load, norm, perpendicular, scale

PARALLEL = F(1e-12)  # sine below which two directions count as equal or opposite
NEVER = F(math.inf)
NOTHING = (F(0), F(0), F(0))


@inline
def unit(i):
    """Return axis i of the world."""
    return F(i == 0), F(i == 1), F(i == 2)


@inline
def second_frame(problem, frames, h):
    """Return the world frame (R, p) on the second joint of term h."""
    f = problem.general
    R, p = load_rotation(f.data, h, SECOND_ORIENTATION), load(f.data, h, SECOND_ORIGIN)
    return frame_on(frames, f.ints[h, SECOND], R, p)


@inline
def third_point(problem, frames, h):
    """Return the point on the third joint of term h, in the world."""
    row, p = problem.general.ints[h, THIRD], load(problem.general.data, h, THIRD_POINT)
    return p if row < 0 else add(origin_of(frames, row), apply(rotation_of(frames, row), p))


@inline
def unit_weight(problem, h):
    """Return the factor from the error of term h to its residual: the weight, for lengths divided by the reach."""
    w = problem.general.data[h, WEIGHT]
    return w / problem.reach if problem.general.ints[h, LENGTHS] > 0 else w


@inline
def turn_between(u, d):
    """Return the smallest rotation vector from the unit vector u to the direction d, 0 if d is 0.

    Opposite directions turn about a fixed perpendicular of u.
    """
    c = cross(u, d)
    s = norm(c)
    x = dot(u, d)
    if s > PARALLEL * abs(x):
        return scale(math.atan2(s, x) / s, c)
    return scale(PI, perpendicular(u)) if x < F(0) else NOTHING


@inline
def turn_rows(problem, q, frames, h, u, p, by, J):
    """Write the Jacobian rows of a direction u at the point p: (1 - u uᵀ) ω + ``by`` × v.

    ω is the angular velocity of the goal's joint, of which rotation about u has no effect, and v the velocity of p.
    ``by`` is the vector by which v turns the direction to the target.
    """
    f = problem.general
    w, row, k = f.data[h, WEIGHT], problem.goals[f.ints[h, GOAL], GOAL_ROW], f.ints[h, FIRST]
    for i in range(3):
        e = unit(i)
        torque = (w * (e[0] - u[0] * u[i]), w * (e[1] - u[1] * u[i]), w * (e[2] - u[2] * u[i]))
        add_wrench_row(problem, q, frames, row, p, scale(w, cross(e, by)), torque, J, k + i)
