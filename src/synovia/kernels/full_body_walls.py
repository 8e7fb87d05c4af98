"""One-sided goals as walls: a step may go up to where they would be violated, and no farther.

A goal that holds has no rows, so a lower level would step through it and be thrown back at the next step, for ever.
Here its row a·x stands in its level all the time, less a column z of its own with the bounds that the goal leaves:
a·x - z = 0, z in [what is lacking, what may be lost]. While z is between its bounds the row asks nothing; at one of
them it is a row like any other, with the multiplier of that bound (the slack of Escande, Mansard & Wieber 2014).
"""

import numpy as np

from synovia.kernels._jit import F, apart, device, inline
from synovia.kernels.full_body_basis import LOWER, PLACE, SEALED, SIDE, STEP, STIFF, UPPER, WISH
from synovia.kernels.further import (
    DISTANCE,
    FIRST,
    GOAL,
    KIND,
    LENGTHS,
    NUMBERS,
    PLANE,
    RANGE,
    SECOND,
    SUPPORT,
    VERTEX,
    VERTICES,
    WEIGHT,
    away_from,
)
from synovia.kernels.masses import centre_of_mass, outside_support, pull_centre
from synovia.kernels.places import goal_frame, pull_up, target_frame
from synovia.kernels.ranges import joint_value, pull_value
from synovia.kernels.rotations import column
from synovia.kernels.vectors import axpy, cross, dot, load, norm, normalize, scale, sub

STEEP = F(1e3)  # of a row along its own column: what a wall leaves free costs next to nothing
NEVER = F(np.inf)
NOTHING = (F(0), F(0), F(0))


@inline
def wall_count(further):
    """Return the number of columns for walls: one for every further goal."""
    if further is None:
        return 0
    return further.ints.shape[0]


@device
def inside_support(f, h, c):
    """Return (distance to the nearest edge, the way from there inwards) of a point above the polygon; no way: 0."""
    up = load(f.data, h, NUMBERS)
    first, count = f.ints[h, VERTEX], f.ints[h, VERTICES]
    p = axpy(-dot(up, c), up, c)
    least = NEVER
    way = NOTHING
    for i in range(count if count > 2 else 0):
        a = load(f.vertices, first + i, 0)
        b = load(f.vertices, first + (i + 1) % count, 0)
        inward = normalize(cross(up, sub(b, a)), NOTHING)
        far = dot(inward, sub(p, a))
        if far < least:
            least, way = far, inward
    return least, way


@device
def wall(problem, q, frames, targets, h):
    """Return (least and most by which the residual of further goal h may change, force of its row); 0: no wall.

    Of a range the force is not that of its row, which ``pull_value`` writes: it only says that there is one.
    """
    f = problem.further
    kind, g = f.ints[h, KIND], f.ints[h, GOAL]
    if kind == PLANE:
        _, p = goal_frame(problem, frames, g)
        T, t = target_frame(targets, g)
        n = column(T, 2)
        return dot(n, sub(t, p)), NEVER, n
    if kind == RANGE:
        x = joint_value(problem, q, problem.goals[g, 1])
        return f.data[h, NUMBERS] - x, f.data[h, NUMBERS + 1] - x, (F(1), F(0), F(0))
    if kind == DISTANCE:
        apart_by = away_from(problem, frames, targets, h)
        far = norm(apart_by)
        n = normalize(apart_by, (F(0), F(0), F(1)))
        return f.data[h, NUMBERS] - far, f.data[h, NUMBERS + 1] - far, n
    if kind == SUPPORT:
        c = centre_of_mass(f.masses, frames)
        d = outside_support(f.vertices, f.ints[h, VERTEX], f.ints[h, VERTICES], load(f.data, h, NUMBERS), c)
        far = norm(d)
        if far > F(0):
            return far, NEVER, scale(F(1) / far, d)
        depth, way = inside_support(f, h, c)
        return -depth, NEVER, way
    return F(0), F(0), NOTHING


@inline
def unit_weight(problem, further, h):
    """Return what one unit of what further goal h lacks counts in its row: a length is divided by the reach."""
    w = further.data[h, WEIGHT]
    return w / problem.reach if further.ints[h, LENGTHS] > 0 else w


@apart
def wall_rows(further, problem, q, frames, targets, J):
    """Write the rows of one-sided goals, whether they are violated or not; after ``jacobian``."""
    if further is None:
        return
    for h in range(further.ints.shape[0]):
        _, _, n = wall(problem, q, frames, targets, h)
        if dot(n, n) == F(0):
            continue
        kind, g, k = further.ints[h, KIND], further.ints[h, GOAL], further.ints[h, FIRST]
        w = unit_weight(problem, further, h)
        for v in range(J.shape[1]):
            J[k, v] = F(0)
        if kind == SUPPORT:
            pull_centre(problem, q, frames, scale(w, n), J, k)
            continue
        if kind == RANGE:
            pull_value(
                problem, q, frames, problem.goals[g, 1], further.ints[h, LENGTHS] > 0, further.data[h, WEIGHT], J, k
            )
            continue
        _, p = goal_frame(problem, frames, g)
        pull_up(problem, q, frames, problem.goals[g, 1], p, scale(w, n), NOTHING, J, k)
        if kind == DISTANCE:
            apart_by = away_from(problem, frames, targets, h)
            pull_up(problem, q, frames, further.ints[h, SECOND], sub(p, apart_by), scale(-w, n), NOTHING, J, k)


@apart
def stand_walls(further, problem, q, frames, targets, h, first):
    """Write the columns of the walls, from ``first`` on, and what their rows ask for."""
    if further is None:
        return
    for i in range(further.ints.shape[0]):
        k = first + i
        low, high, n = wall(problem, q, frames, targets, i)
        w = unit_weight(problem, further, i)
        for r in range(h.G.shape[0]):
            h.G[r, k] = F(0)
        if dot(n, n) > F(0):
            row = further.ints[i, FIRST]
            h.G[row, k] = -STEEP
            h.e[row] = F(0)
            h.v[LOWER, k], h.v[UPPER, k] = w * low / STEEP, w * high / STEEP
        else:
            h.v[LOWER, k], h.v[UPPER, k] = F(0), F(0)
        h.v[STEP, k] = min(max(F(0), h.v[LOWER, k]), h.v[UPPER, k])
        h.v[WISH, k] = h.v[STEP, k]
        h.v[STIFF, k] = F(1e12)  # it is no move of a joint, however far it goes
        h.v[SIDE, k] = F(0)
        h.v[SEALED, k] = F(0)
        h.v[PLACE, k] = F(k)
