"""Cone: the angle α between the z axis u of a frame at p and a direction d stays below a bound.

The direction is given by the target, or leads to a target point t: d = t - p. With m = d × u / |d × u|, the angle
changes by m·ω as the frame rotates, and by (m × d)·v / |d|² as p moves.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.aim import TOUCHING
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NEVER, NOTHING, unit_weight
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, NUMBERS
from synovia.kernels.math.rotations import column
from synovia.kernels.math.vectors import TINY, cross, dot, norm, normalize, perpendicular, scale, sub

HALF_ANGLE, AIMS = NUMBERS, NUMBERS + 1  # parameters: the bound (radians); 1 if the direction leads to a point, else 0


@inline
def aims(problem, term):
    """Return whether the direction leads to a target point."""
    return problem.general.data[term, AIMS] > F(0)


@inline
def ray(problem, frames, targets, term):
    """Return the axis u, its point p, and the direction d, which is 0 if the target point is at p."""
    g = problem.general.ints[term, GOAL]
    R, p = goal_frame(problem, frames, g)
    d = target_frame(targets, g)[1]
    if aims(problem, term):
        d = sub(d, p)
        if not norm(d) > TOUCHING * problem.reach:
            d = NOTHING
    return column(R, 2), p, d


@inline
def bounds(problem, frames, targets, term):
    """Return the bounds of the angle, relative to its present value."""
    u, _, d = ray(problem, frames, targets, term)
    return -NEVER, problem.general.data[term, HALF_ANGLE] - math.atan2(norm(cross(d, u)), dot(d, u))


@device
def rows(problem, q, frames, targets, term, J):
    """Write the Jacobian row."""
    general = problem.general
    g, w = general.ints[term, GOAL], unit_weight(problem, term)
    u, p, d = ray(problem, frames, targets, term)
    m = normalize(cross(d, u), perpendicular(u) if dot(d, u) < F(0) else NOTHING)
    size2 = dot(d, d)
    force = scale(w / size2, cross(m, d)) if aims(problem, term) and size2 > TINY else NOTHING
    row = problem.goals[g, GOAL_ROW]
    add_wrench_row(problem, q, frames, row, p, force, scale(w, m), J, general.ints[term, FIRST])
