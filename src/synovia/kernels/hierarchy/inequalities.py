"""One-sided goals (inequalities) in a hierarchy: rows with slack variables, so that steps stop where a goal would fail.

If a goal that is met had no rows in its level, a lower level would step across its bound, the next step would move
back, and so on.
So each one-sided goal keeps its row a·x in its level, with a slack column z: a·x - z = 0, where z lies between the
smallest and the largest allowed change of the goal's value. The row constrains the step only if z is at a bound; the
multiplier of that bound then belongs to the goal (the slack of Escande, Mansard & Wieber 2014).

A clearance goal has a slack column for each of its contacts; the bound is the remaining clearance of the pair.

A support polygon has two slack columns: one for the nearest edge, and one for the nearer of its two neighbours. With
only one, a step near a corner would leave the polygon across the other edge.
"""

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals import within
from synovia.kernels.goals.center_of_mass import add_centre_row, centre_of_mass, vector_to_support
from synovia.kernels.goals.clearance import has_contact, lacking
from synovia.kernels.goals.general import SUPPORT, WITHIN, bounded_row, bounds, is_bounded
from synovia.kernels.goals.term import NEVER, NOTHING, unit_weight
from synovia.kernels.hierarchy.basis import reset_column
from synovia.kernels.layout import (
    CLEAR_ROW,
    CLEAR_WEIGHT,
    FIRST,
    FIRST_SLOT,
    KIND,
    NUMBERS,
    REFERENCE,
    SLOTS,
    STEP,
    STEP_STIFFNESS,
    VERTEX,
    VERTICES,
)
from synovia.kernels.math.vectors import cross, dot, load, norm, normalize, scale, sub

SLACK_SCALE = F(1e3)  # entry of a slack column in its row: moving the slack then costs almost nothing
SLACK_STIFFNESS = F(1e12)  # so large that the largest move of a step, which is meant for joints, never limits a slack
TOUCHES = F(1e-9)  # fraction of the length scale: a point less far outside a polygon counts as inside


@inline
def slots(general, i):
    """Return the number of slack columns of general goal i: one for each of its rows, at most two for a polygon."""
    kind = general.ints[i, KIND]
    return 2 if kind == SUPPORT else 3 if kind == WITHIN else 1


@inline
def general_slacks(general):
    """Return the number of slack columns of all general goals."""
    if general is None:
        return 0
    count = 0
    for i in range(general.ints.shape[0]):
        count += slots(general, i)
    return count


@inline
def contact_slacks(clear):
    """Return the number of slack columns of all clearance goals."""
    if clear is None:
        return 0
    return clear.contacts.shape[0]


@inline
def slack_count(problem):
    """Return the number of slack columns: of general goals, then of clearance goals."""
    return general_slacks(problem.general) + contact_slacks(problem.clear)


@device
def edge_depth(general, i, c, edge):
    """Return the distance of point c inside an edge of polygon i, and the inward normal of that edge."""
    up = load(general.data, i, NUMBERS)
    a = load(general.vertices, general.ints[i, VERTEX] + edge, 0)
    b = load(general.vertices, general.ints[i, VERTEX] + (edge + 1) % general.ints[i, VERTICES], 0)
    inward = normalize(cross(up, sub(b, a)), NOTHING)
    return dot(inward, sub(c, a)), inward


@device
def nearest_edges(general, i, c, near):
    """Return the two edges of polygon i, in their order, that constrain point c; -1 for none.

    Inside, they are the nearest edge and its nearer neighbour. Outside, only the nearest edge constrains c, because the
    path inside may cross the others. Outside a corner, no edge constrains c: the violated goal has its own two rows. A
    point that is outside by at most ``near`` counts as inside.
    """
    n = general.ints[i, VERTICES]
    if n < 3:
        return -1, -1
    nearest = 0
    least, _ = edge_depth(general, i, c, 0)
    for edge in range(1, n):
        depth, _ = edge_depth(general, i, c, edge)
        if depth < least:
            nearest, least = edge, depth
    before, after = (nearest + n - 1) % n, (nearest + 1) % n
    nearest_first = edge_depth(general, i, c, after)[0] < edge_depth(general, i, c, before)[0]
    first, second = (nearest, after) if nearest_first else (before, nearest)
    d, corner = vector_to_support(general.vertices, general.ints[i, VERTEX], n, load(general.data, i, NUMBERS), c)
    if norm(d) <= near:
        return first, second
    if corner:
        return -1, -1
    return (first, -1) if nearest_first else (-1, second)


@apart
def choose_edges(general, problem, frames, edges):
    """Write the polygon edge of every slack column at a pose, -1 for none."""
    if general is None:
        return
    slot = 0
    for i in range(general.ints.shape[0]):
        edges[slot] = F(-1)
        if general.ints[i, KIND] == SUPPORT:
            c = centre_of_mass(general.masses, frames)
            first, second = nearest_edges(general, i, c, TOUCHES * problem.reach)
            edges[slot], edges[slot + 1] = F(first), F(second)
        slot += slots(general, i)


@device
def slack_bounds(problem, q, frames, targets, i, side, edge):
    """Return the bounds of a slack of general goal i, and whether it is in use: not if only one value is allowed."""
    general = problem.general
    if is_bounded(general.ints[i, KIND]):
        low, high = bounds(problem, q, frames, targets, i)
        return low, high, True
    if general.ints[i, KIND] == WITHIN and not (within.is_free(general, i, side) or within.is_exact(general, i, side)):
        lows, highs = within.bounds(general, i, within.placed(problem, frames, targets, i))
        return lows[side], highs[side], True
    if general.ints[i, KIND] == SUPPORT and edge >= F(0):
        depth, _ = edge_depth(general, i, centre_of_mass(general.masses, frames), int(edge))
        return -depth, NEVER, True
    return F(0), F(0), False


@inline
def clear_row(J, k):
    """Set row k to zero."""
    for v in range(J.shape[1]):
        J[k, v] = F(0)


@apart
def inequality_rows(general, problem, q, frames, targets, edges, J):
    """Write the rows of one-sided goals, violated or not; call ``jacobian`` before."""
    if general is None:
        return
    slot = 0
    for i in range(general.ints.shape[0]):
        row = general.ints[i, FIRST]
        if is_bounded(general.ints[i, KIND]):
            clear_row(J, row)
            bounded_row(problem, q, frames, targets, i, J)
        elif general.ints[i, KIND] == WITHIN:
            for side in range(3):
                clear_row(J, row + side)
            within.bounded_rows(problem, q, frames, targets, i, J)
        elif general.ints[i, KIND] == SUPPORT and (edges[slot] >= F(0) or edges[slot + 1] >= F(0)):
            c = centre_of_mass(general.masses, frames)
            for side in range(2):
                clear_row(J, row + side)
                edge = edges[slot + side]
                if edge >= F(0):
                    _, inward = edge_depth(general, i, c, int(edge))
                    add_centre_row(problem, q, frames, scale(unit_weight(problem, i), inward), J, row + side)
        slot += slots(general, i)


@apart
def write_slack(h, k, row, low, high, active):
    """Write slack column k with its bounds; if it is in use, the right side of its row becomes zero."""
    for r in range(h.G.shape[0]):
        h.G[r, k] = F(0)
    if active:
        h.G[row, k] = -SLACK_SCALE
        h.e[row] = F(0)
        reset_column(h, k, low / SLACK_SCALE, high / SLACK_SCALE)
    else:
        reset_column(h, k, F(0), F(0))
    h.v[REFERENCE, k] = h.v[STEP, k]
    h.v[STEP_STIFFNESS, k] = SLACK_STIFFNESS


@apart
def write_slacks(general, problem, q, frames, targets, h, first):
    """Write all slack columns, from column ``first`` on."""
    if general is None:
        return
    slot = 0
    for i in range(general.ints.shape[0]):
        w = unit_weight(problem, i)
        row = general.ints[i, FIRST]
        for side in range(slots(general, i)):
            low, high, active = slack_bounds(problem, q, frames, targets, i, side, h.edges[slot + side])
            write_slack(h, first + slot + side, row + side, w * low, w * high, active)
        if general.ints[i, KIND] == SUPPORT and h.edges[slot] + h.edges[slot + 1] > F(-2):
            h.e[row + (0 if h.edges[slot] < F(0) else 1)] = F(0)  # for the row of an unused edge, if there is one
        slot += slots(general, i)


@apart
def write_contact_slacks(clear, problem, h, first):
    """Write the slack columns of clearance goals, from column ``first`` on."""
    if clear is None:
        return
    for t in range(clear.ints.shape[0]):
        w, row = clear.data[t, CLEAR_WEIGHT] / problem.reach, clear.ints[t, CLEAR_ROW]
        for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
            active = has_contact(clear, slot)
            low = w * lacking(clear, problem, t, slot) if active else F(0)
            write_slack(h, first + slot, row, low, NEVER, active)
            row += 1
