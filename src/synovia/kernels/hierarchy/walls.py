"""One-sided goals as walls: a step may go up to where they would be violated, and no farther.

A goal that holds has no rows, so a lower level would step through it and be thrown back at the next step, for ever.
Here its row a·x stands in its level all the time, less a column z of its own with the bounds that the goal leaves:
a·x - z = 0, z in [what is lacking, what may be lost]. While z is between its bounds the row asks nothing; at one of
them it is a row like any other, with the multiplier of that bound (the slack of Escande, Mansard & Wieber 2014).

A support polygon has two walls, the nearest edge and the nearer of those beside it: at a corner one alone would be left
through the other.
"""

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.center_of_mass import add_centre_row, centre_of_mass, vector_to_support
from synovia.kernels.goals.general import SUPPORT, bounded_row, bounds, is_bounded
from synovia.kernels.goals.term import NEVER, NOTHING, unit_weight
from synovia.kernels.hierarchy.basis import LOWER, PLACE, SEALED, SIDE, STEP, STIFF, UPPER, WISH
from synovia.kernels.layout import FIRST, KIND, NUMBERS, VERTEX, VERTICES
from synovia.kernels.math.vectors import cross, dot, load, norm, normalize, scale, sub

STEEP = F(1e3)  # of a row along its own column: what a wall leaves free costs next to nothing
TOUCHES = F(1e-9)  # of the reach: outside a polygon by less is rounding


@inline
def wall_count(general):
    """Return the number of columns for walls: one for every general goal, two for a polygon."""
    if general is None:
        return 0
    count = general.ints.shape[0]
    for h in range(general.ints.shape[0]):
        count += int(general.ints[h, KIND] == SUPPORT)
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
    d, corner = vector_to_support(f.vertices, f.ints[h, VERTEX], n, load(f.data, h, NUMBERS), c)
    if norm(d) <= near:
        return first, second
    if corner:
        return -1, -1
    return (first, -1) if follows else (-1, second)


@apart
def put_walls(general, problem, frames, edges):
    """Choose the edges on which the walls of polygons stand at a pose."""
    if general is None:
        return
    k = 0
    for h in range(general.ints.shape[0]):
        edges[k] = F(-1)
        if general.ints[h, KIND] == SUPPORT:
            c = centre_of_mass(general.masses, frames)
            first, second = two_edges(general, h, c, TOUCHES * problem.reach)
            edges[k], edges[k + 1] = F(first), F(second)
            k += 1
        k += 1


@device
def wall(problem, q, frames, targets, h, edge):
    """Return the least and the most by which the number of term h may change, and whether a wall stands for it."""
    f = problem.general
    if is_bounded(f.ints[h, KIND]):
        low, high = bounds(problem, q, frames, targets, h)
        return low, high, True
    if f.ints[h, KIND] == SUPPORT and edge >= F(0):
        depth, _ = edge_of(f, h, centre_of_mass(f.masses, frames), int(edge))
        return -depth, NEVER, True
    return F(0), F(0), False


@inline
def clear(J, k):
    """Let row k be zeros."""
    for v in range(J.shape[1]):
        J[k, v] = F(0)


@apart
def wall_rows(general, problem, q, frames, targets, edges, J):
    """Write the rows of one-sided goals, whether they are violated or not; after ``jacobian``."""
    if general is None:
        return
    place = 0
    for h in range(general.ints.shape[0]):
        kind, k = general.ints[h, KIND], general.ints[h, FIRST]
        if kind == SUPPORT:
            c = centre_of_mass(general.masses, frames)
            walled = edges[place] >= F(0) or edges[place + 1] >= F(0)
            for side in range(2 if walled else 0):
                clear(J, k + side)
                edge = edges[place + side]
                if edge >= F(0):
                    _, inward = edge_of(general, h, c, int(edge))
                    add_centre_row(problem, q, frames, scale(unit_weight(problem, h), inward), J, k + side)
            place += 2
            continue
        place += 1
        if is_bounded(kind):
            clear(J, k)
            bounded_row(problem, q, frames, targets, h, J)


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
def stand_walls(general, problem, q, frames, targets, h, first):
    """Write the columns of the walls, from ``first`` on, and what their rows ask for."""
    if general is None:
        return
    place = 0
    for i in range(general.ints.shape[0]):
        w = unit_weight(problem, i)
        row = general.ints[i, FIRST]
        sides = 2 if general.ints[i, KIND] == SUPPORT else 1
        for side in range(sides):
            low, high, stands = wall(problem, q, frames, targets, i, h.edges[place + side])
            stand_wall(h, first + place + side, row + side, w * low, w * high, stands)
        if sides == 2 and h.edges[place] + h.edges[place + 1] > F(-2):  # an edge that does not stand asks for nothing
            h.e[row + (0 if h.edges[place] < F(0) else 1)] = F(0)
        place += sides
