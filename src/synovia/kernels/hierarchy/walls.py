"""One-sided goals as walls: a step may go up to where they would be violated, and no farther.

A goal that holds has no rows, so a lower level would step through it and be thrown back at the next step, for ever.
Here its row a·x stands in its level all the time, less a column z of its own with the bounds that the goal leaves:
a·x - z = 0, z in [what is lacking, what may be lost]. While z is between its bounds the row asks nothing; at one of
them it is a row like any other, with the multiplier of that bound (the slack of Escande, Mansard & Wieber 2014).

A support polygon has two walls, the nearest edge and the nearer of those beside it: at a corner one alone would be left
through the other.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.frames import goal_frame, pull_up, target_frame
from synovia.kernels.goals.general import DISTANCE, PLANE, RANGE, SUPPORT, away_from
from synovia.kernels.goals.masses import centre_of_mass, outside_support, pull_centre
from synovia.kernels.goals.ranges import joint_value, pull_value
from synovia.kernels.hierarchy.basis import LOWER, PLACE, SEALED, SIDE, STEP, STIFF, UPPER, WISH
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, KIND, LENGTHS, NUMBERS, SECOND, VERTEX, VERTICES, WEIGHT
from synovia.kernels.math.rotations import column
from synovia.kernels.math.vectors import cross, dot, load, norm, normalize, scale, sub

STEEP = F(1e3)  # of a row along its own column: what a wall leaves free costs next to nothing
NEVER = F(np.inf)
TOUCHES = F(1e-9)  # of the reach: outside a polygon by less is rounding
NOTHING = (F(0), F(0), F(0))


@inline
def wall_count(further):
    """Return the number of columns for walls: one for every further goal, two for a polygon."""
    if further is None:
        return 0
    count = further.ints.shape[0]
    for h in range(further.ints.shape[0]):
        count += int(further.ints[h, KIND] == SUPPORT)
    return count


@device
def edge_of(f, h, c, i):
    """Return (how far inside edge i of the polygon a point is, the way inwards)."""
    up = load(f.data, h, NUMBERS)
    a = load(f.vertices, f.ints[h, VERTEX] + i, 0)
    b = load(f.vertices, f.ints[h, VERTEX] + (i + 1) % f.ints[h, VERTICES], 0)
    inward = normalize(cross(up, sub(b, a)), NOTHING)
    return dot(inward, sub(c, a)), inward


@device
def two_edges(f, h, c, near):
    """Return the edges of a polygon that stand as walls about a point, -1 for none, in the order in which they follow.

    Outside it is the nearest alone, as the others may be crossed there, and beside a corner none: what is lacking has
    two rows there. Within ``near`` that is rounding, and the place counts as inside.
    """
    n = f.ints[h, VERTICES]
    if n < 3:
        return -1, -1
    which = 0
    least, _ = edge_of(f, h, c, 0)
    for i in range(1, n):
        depth, _ = edge_of(f, h, c, i)
        if depth < least:
            which, least = i, depth
    before, after = (which + n - 1) % n, (which + 1) % n
    follows = edge_of(f, h, c, after)[0] < edge_of(f, h, c, before)[0]
    first, second = (which, after) if follows else (before, which)
    d, corner = outside_support(f.vertices, f.ints[h, VERTEX], n, load(f.data, h, NUMBERS), c)
    if norm(d) <= near:
        return first, second
    if corner:
        return -1, -1
    return (first, -1) if follows else (-1, second)


@apart
def put_walls(further, problem, frames, edges):
    """Choose the edges on which the walls of polygons stand at a pose."""
    if further is None:
        return
    k = 0
    for h in range(further.ints.shape[0]):
        edges[k] = F(-1)
        if further.ints[h, KIND] == SUPPORT:
            c = centre_of_mass(further.masses, frames)
            first, second = two_edges(further, h, c, TOUCHES * problem.reach)
            edges[k], edges[k + 1] = F(first), F(second)
            k += 1
        k += 1


@device
def wall(problem, q, frames, targets, h, edge):
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
        x = joint_value(problem, q, problem.goals[g, GOAL_ROW])
        return f.data[h, NUMBERS] - x, f.data[h, NUMBERS + 1] - x, (F(1), F(0), F(0))
    if kind == DISTANCE:
        apart_by = away_from(problem, frames, targets, h)
        far = norm(apart_by)
        n = normalize(apart_by, (F(0), F(0), F(1)))
        return f.data[h, NUMBERS] - far, f.data[h, NUMBERS + 1] - far, n
    if kind == SUPPORT and edge >= F(0):
        depth, way = edge_of(f, h, centre_of_mass(f.masses, frames), int(edge))
        return -depth, NEVER, way
    return F(0), F(0), NOTHING


@inline
def unit_weight(problem, further, h):
    """Return what one unit of what further goal h lacks counts in its row: a length is divided by the reach."""
    w = further.data[h, WEIGHT]
    return w / problem.reach if further.ints[h, LENGTHS] > 0 else w


@apart
def wall_rows(further, problem, q, frames, targets, edges, J):
    """Write the rows of one-sided goals, whether they are violated or not; after ``jacobian``."""
    if further is None:
        return
    place = 0
    for h in range(further.ints.shape[0]):
        kind, g, k = further.ints[h, KIND], further.ints[h, GOAL], further.ints[h, FIRST]
        w = unit_weight(problem, further, h)
        if kind == SUPPORT:
            walled = edges[place] >= F(0) or edges[place + 1] >= F(0)
            for side in range(2 if walled else 0):
                for v in range(J.shape[1]):
                    J[k + side, v] = F(0)
                _, _, n = wall(problem, q, frames, targets, h, edges[place + side])
                pull_centre(problem, q, frames, scale(w, n), J, k + side)
            place += 2
            continue
        place += 1
        _, _, n = wall(problem, q, frames, targets, h, F(-1))
        if dot(n, n) == F(0):
            continue
        for v in range(J.shape[1]):
            J[k, v] = F(0)
        if kind == RANGE:
            pull_value(
                problem,
                q,
                frames,
                problem.goals[g, GOAL_ROW],
                further.ints[h, LENGTHS] > 0,
                further.data[h, WEIGHT],
                J,
                k,
            )
            continue
        _, p = goal_frame(problem, frames, g)
        pull_up(problem, q, frames, problem.goals[g, GOAL_ROW], p, scale(w, n), NOTHING, J, k)
        if kind == DISTANCE:
            apart_by = away_from(problem, frames, targets, h)
            pull_up(problem, q, frames, further.ints[h, SECOND], sub(p, apart_by), scale(-w, n), NOTHING, J, k)


@apart
def stand_wall(h, k, row, low, high, stands):
    """Write column k of a wall, and what its row asks for where it stands."""
    for r in range(h.G.shape[0]):
        h.G[r, k] = F(0)
    if stands:
        h.G[row, k] = -STEEP
        h.e[row] = F(0)
        h.v[LOWER, k], h.v[UPPER, k] = low / STEEP, high / STEEP
    else:
        h.v[LOWER, k], h.v[UPPER, k] = F(0), F(0)
    h.v[STEP, k] = min(max(F(0), h.v[LOWER, k]), h.v[UPPER, k])
    h.v[WISH, k] = h.v[STEP, k]
    h.v[STIFF, k] = F(1e12)  # it is no move of a joint, however far it goes
    h.v[SIDE, k] = F(0)
    h.v[SEALED, k] = F(0)
    h.v[PLACE, k] = F(k)


@apart
def stand_walls(further, problem, q, frames, targets, h, first):
    """Write the columns of the walls, from ``first`` on, and what their rows ask for."""
    if further is None:
        return
    place = 0
    for i in range(further.ints.shape[0]):
        w = unit_weight(problem, further, i)
        row = further.ints[i, FIRST]
        sides = 2 if further.ints[i, KIND] == SUPPORT else 1
        for side in range(sides):
            low, high, n = wall(problem, q, frames, targets, i, h.edges[place + side])
            stand_wall(h, first + place + side, row + side, w * low, w * high, dot(n, n) > F(0))
        if sides == 2 and h.edges[place] + h.edges[place + 1] > F(-2):  # an edge that does not stand asks for nothing
            h.e[row + (0 if h.edges[place] < F(0) else 1)] = F(0)
        place += sides
