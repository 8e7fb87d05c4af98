"""Clearance goals: links of the body stay apart from each other, and from obstacles.

The error of a goal is how much the nearest pair of shapes lacks to the distance of the goal plus the tolerance: so a
goal that is met within the tolerance keeps its whole distance. A pair adds a residual row only if it is near. The
nearest pairs have slots, one for each row, and a pair keeps its slot while it is among them: a row then means the same
from one pose to the next.

Links are compared by their bounding spheres, then the shapes of near links by theirs. The bounded shapes of obstacles
are the leaves of a binary tree of boxes, which is stored as a heap: node k has the children 2k and 2k + 1. So what is
far away costs little.

The gap of a pair with the normal n, from the second shape to the first, changes by n·(v_a - v_b), where v_a and v_b are
the velocities of the nearest points.
"""

import math

from synovia.kernels.collision.distance import put_contact
from synovia.kernels.collision.support import margin
from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.frames import add_wrench_row
from synovia.kernels.goals.term import NOTHING
from synovia.kernels.layout import (
    AVOIDING,
    BALL_CENTER,
    BALL_RADIUS,
    BOUNDLESS,
    BOX,
    CLEAR_DISTANCE,
    CLEAR_GOAL,
    CLEAR_ROW,
    CLEAR_WEIGHT,
    CONTACT_IDLE,
    CONTACT_NORMAL,
    CONTACT_ROWS,
    CONTACT_SHAPES,
    CYLINDER,
    EXTENT,
    FIRST_BOUNDLESS,
    FIRST_LINK_PAIR,
    FIRST_NODE,
    FIRST_OBSTACLE,
    FIRST_OF_LINK,
    FIRST_SHAPE,
    FIRST_SLOT,
    FIRST_WITNESS,
    GAP_SIZE,
    HALF_SIZES,
    HALF_SPACE,
    HULL,
    IGNORED,
    KEPT_CONTACT_WIDTH,
    LEAVES,
    LINK_PAIRS,
    LINK_ROW,
    MEASURED,
    NODE_LOWER,
    NODE_UPPER,
    ORIENTATION,
    ORIGIN,
    POINTS,
    SECOND_SHAPE,
    SECOND_WITNESS,
    SHAPE_KIND,
    SHAPE_WIDTH,
    SHAPES_OF_LINK,
    SLOTS,
)
from synovia.kernels.math.rotations import apply, column, load_rotation, matmul, origin_of, rotation_of, store_frame
from synovia.kernels.math.vectors import add, dot, load, norm, scale, sub

WORK_OF_BOX, WORK_OF_CYLINDER, WORK_OF_POINT = F(2), F(12), F(0.09)  # of one shape of a pair that is apart
WORK_OF_OVERLAP = F(10)  # factor for pairs that overlap
NEAR = F(0.01)  # reaches beyond its distance: pairs that are farther apart have no row


@inline
def point_on(frames, row, p):
    """Return the world position of a point of a row; row -1 is the world."""
    return p if row < 0 else add(origin_of(frames, row), apply(rotation_of(frames, row), p))


@inline
def place_shape(clear, frames, shape, row, to):
    """Copy a shape of a row to row ``to`` of the pair of shapes in the world."""
    for k in range(HALF_SIZES, SHAPE_WIDTH):
        clear.placed[to, k] = clear.shapes[shape, k]
    R, p = load_rotation(clear.shapes, shape, ORIENTATION), load(clear.shapes, shape, ORIGIN)
    if row >= 0:
        W = rotation_of(frames, row)
        R, p = matmul(W, R), add(origin_of(frames, row), apply(W, p))
    store_frame(clear.placed, to, R, p)


@device
def measure_pair(clear, frames, first, second, enough, contacts, slot):
    """Write the contact of two shapes, each given with its row, to a slot; see ``put_contact``."""
    i, row = first
    j, other = second
    place_shape(clear, frames, i, row, 0)
    place_shape(clear, frames, j, other, 1)
    solids = (clear.placed, clear.points)
    put_contact(solids, 0, 1, enough, contacts, slot, (clear.corners, clear.faces, clear.edges))
    contacts[slot, CONTACT_ROWS], contacts[slot, CONTACT_ROWS + 1] = F(row), F(other)
    contacts[slot, CONTACT_SHAPES], contacts[slot, CONTACT_SHAPES + 1] = F(i), F(j)
    contacts[slot, CONTACT_IDLE] = F(0)
    size = share_of_work(clear.shapes, i) + share_of_work(clear.shapes, j)
    overlap = contacts[slot, GAP_SIZE] < -margin(solids, 0) - margin(solids, 1)
    clear.state[MEASURED] += size * (WORK_OF_OVERLAP if overlap else F(1))


@inline
def share_of_work(shapes, i):
    """Return what a shape adds to the work of measuring a pair, see ``watch``; what formulas measure adds nothing."""
    kind = shapes[i, SHAPE_KIND]
    if kind == BOX:
        return WORK_OF_BOX
    if kind == CYLINDER:
        return WORK_OF_CYLINDER
    return WORK_OF_BOX + WORK_OF_POINT * shapes[i, POINTS] if kind == HULL else F(0)


@inline
def measured_work(clear):
    """Return the work of all pairs that were measured since the last call."""
    if clear is None:
        return F(0)
    if clear.state.shape[0] == 0:
        return F(0)
    work = clear.state[MEASURED]
    clear.state[MEASURED] = F(0)
    return work


@device
def farthest(found, count):
    """Return the row with the largest gap."""
    far = 0
    for k in range(1, count):
        if found[k, GAP_SIZE] > found[far, GAP_SIZE]:
            far = k
    return far


@device
def consider(clear, frames, t, first, second, count, limit):
    """Measure a pair of shapes if it may be among the nearest ones of goal t, of which ``found`` has ``count``.

    ``first`` and ``second`` are a shape and its row.

    Returns:
        (their new number, the gap above which a pair is not among the nearest).
    """
    i, row = first
    j, other = second
    p = point_on(frames, row, load(clear.shapes, i, ORIGIN))
    q = point_on(frames, other, load(clear.shapes, j, ORIGIN))
    if clear.shapes[j, SHAPE_KIND] == HALF_SPACE:
        n = column(load_rotation(clear.shapes, j, ORIENTATION), 2)
        least = dot(n, sub(p, q)) - clear.shapes[i, EXTENT]
    else:
        least = norm(sub(p, q)) - clear.shapes[i, EXTENT] - clear.shapes[j, EXTENT]
    if not least < limit:
        return count, limit
    slots = clear.ints[t, SLOTS]
    measure_pair(clear, frames, first, second, limit, clear.found, count)  # it has a row more than there are slots
    if not clear.found[count, GAP_SIZE] < limit:
        return count, limit
    if count < slots:
        count += 1
    else:
        far = farthest(clear.found, slots)
        for k in range(KEPT_CONTACT_WIDTH):
            clear.found[far, k] = clear.found[slots, k]
    if count == slots:
        limit = clear.found[farthest(clear.found, slots), GAP_SIZE]
    return count, limit


@inline
def gap_to_box(nodes, node, p):
    """Return the distance from a point to the box of a node, 0 inside."""
    low, high = load(nodes, node, NODE_LOWER), load(nodes, node, NODE_UPPER)
    x = max(low[0] - p[0], F(0), p[0] - high[0])
    y = max(low[1] - p[1], F(0), p[1] - high[1])
    z = max(low[2] - p[2], F(0), p[2] - high[2])
    return math.sqrt(x * x + y * y + z * z)


@device
def meet_links(clear, frames, t, a, b, count, limit):
    """Consider the pairs of shapes of two links; returns as ``consider``."""
    row, other = clear.links[a, LINK_ROW], clear.links[b, LINK_ROW]
    p, q = (
        point_on(frames, row, load(clear.balls, a, BALL_CENTER)),
        point_on(frames, other, load(clear.balls, b, BALL_CENTER)),
    )
    if norm(sub(p, q)) - clear.balls[a, BALL_RADIUS] - clear.balls[b, BALL_RADIUS] >= limit:
        return count, limit
    for i in range(clear.links[a, FIRST_OF_LINK], clear.links[a, FIRST_OF_LINK] + clear.links[a, SHAPES_OF_LINK]):
        for j in range(clear.links[b, FIRST_OF_LINK], clear.links[b, FIRST_OF_LINK] + clear.links[b, SHAPES_OF_LINK]):
            count, limit = consider(clear, frames, t, (i, row), (j, other), count, limit)
    return count, limit


@device
def meet_obstacles(clear, frames, t, a, count, limit):
    """Consider the pairs of the shapes of link a and all obstacles of goal t; returns as ``consider``."""
    row = clear.links[a, LINK_ROW]
    p, radius = point_on(frames, row, load(clear.balls, a, BALL_CENTER)), clear.balls[a, BALL_RADIUS]
    first = clear.links[a, FIRST_OF_LINK]
    last = first + clear.links[a, SHAPES_OF_LINK]
    start = clear.ints[t, FIRST_BOUNDLESS]
    for j in range(start, start + clear.ints[t, BOUNDLESS]):
        n = column(load_rotation(clear.shapes, j, ORIENTATION), 2)
        if dot(n, sub(p, load(clear.shapes, j, ORIGIN))) - radius < limit:
            for i in range(first, last):
                count, limit = consider(clear, frames, t, (i, row), (j, -1), count, limit)
    leaves, top, obstacle = clear.ints[t, LEAVES], clear.ints[t, FIRST_NODE], clear.ints[t, FIRST_OBSTACLE]
    node = 1 if leaves > 0 else 0
    while node > 0:
        if gap_to_box(clear.nodes, top + node, p) - radius < limit:
            if node < leaves:
                node *= 2
                continue
            for i in range(first, last):
                count, limit = consider(clear, frames, t, (i, row), (obstacle + node - leaves, -1), count, limit)
        while node & 1:  # the second child: its parent is done
            node >>= 1
        if node > 0:
            node += 1
    return count, limit


@device
def sort_into_slots(clear, t, count):
    """Move the contacts found for goal t to its slots; a pair that has a slot keeps it."""
    first, slots = clear.ints[t, FIRST_SLOT], clear.ints[t, SLOTS]
    for slot in range(first, first + slots):
        i, j = clear.contacts[slot, CONTACT_SHAPES], clear.contacts[slot, CONTACT_SHAPES + 1]
        clear.contacts[slot, CONTACT_SHAPES] = F(-1)
        for k in range(count):
            if i >= F(0) and clear.found[k, CONTACT_SHAPES] == i and clear.found[k, CONTACT_SHAPES + 1] == j:
                for c in range(KEPT_CONTACT_WIDTH):
                    clear.contacts[slot, c] = clear.found[k, c]
                clear.found[k, CONTACT_SHAPES] = F(-1)
                break
    slot = first
    for k in range(count):
        if clear.found[k, CONTACT_SHAPES] < F(0):
            continue
        while clear.contacts[slot, CONTACT_SHAPES] >= F(0):
            slot += 1
        for c in range(KEPT_CONTACT_WIDTH):
            clear.contacts[slot, c] = clear.found[k, c]


@device
def find_contacts(clear, problem, frames, t):
    """Write the nearest contacts of goal t to its slots; none while clearance is ignored."""
    if clear.state[IGNORED] != F(0):
        sort_into_slots(clear, t, 0)
        return
    limit = clear.data[t, CLEAR_DISTANCE] + problem.tolerance + NEAR * problem.reach
    count = 0
    start = clear.ints[t, FIRST_LINK_PAIR]
    for k in range(start, start + clear.ints[t, LINK_PAIRS]):
        a, b = clear.pairs[k, FIRST_SHAPE], clear.pairs[k, SECOND_SHAPE]
        count, limit = meet_links(clear, frames, t, a, b, count, limit)
    for a in range(clear.ints[t, AVOIDING]):
        if clear.links[a, LINK_ROW] >= 0:
            count, limit = meet_obstacles(clear, frames, t, a, count, limit)
    sort_into_slots(clear, t, count)


@inline
def lacking(clear, problem, t, slot):
    """Return how much the contact in a slot lacks to the distance of goal t plus the tolerance; negative if nothing."""
    return clear.data[t, CLEAR_DISTANCE] + problem.tolerance - clear.contacts[slot, GAP_SIZE]


@inline
def has_contact(clear, slot):
    """Return whether a slot holds a contact."""
    return clear.contacts[slot, CONTACT_SHAPES] >= F(0)


@apart
def forget_contacts(clear):
    """Empty all slots: which pair has which slot then depends on the pose alone. Clearance counts from now on."""
    if clear is None:
        return
    if clear.state.shape[0] > 0:
        clear.state[IGNORED], clear.state[MEASURED] = F(0), F(0)
    for slot in range(clear.contacts.shape[0]):
        clear.contacts[slot, CONTACT_SHAPES] = F(-1)


@apart
def ignore_contacts(clear, ignored):
    """Let clearance not count, or count again."""
    if clear is not None:
        clear.state[IGNORED] = F(ignored)


@inline
def keeps_clear(clear):
    """Return whether there are clearance goals: without any, a solve saves the calls that follow."""
    return clear.ints.shape[0] > 0


@inline
def clearance_residual(clear, problem, frames, e):
    """Find the contacts and write their residuals; return (their cost, the largest error in units of tolerance)."""
    if clear is None:
        return F(0), F(0)
    return _residual(clear, problem, frames, e) if keeps_clear(clear) else (F(0), F(0))


@apart
def _residual(clear, problem, frames, e):
    cost, worst = F(0), F(0)
    for t in range(clear.ints.shape[0]):
        find_contacts(clear, problem, frames, t)
        w, k = clear.data[t, CLEAR_WEIGHT] / problem.reach, clear.ints[t, CLEAR_ROW]
        for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
            lack = max(F(0), lacking(clear, problem, t, slot)) if has_contact(clear, slot) else F(0)
            e[k] = w * lack
            cost += e[k] * e[k]
            worst = max(worst, lack / problem.tolerance)
            k += 1
    return cost, worst


@inline
def measure_clearance(clear, problem, frames, errors):
    """Find the contacts and write the largest error of each goal; return the largest in units of the tolerance."""
    if clear is None:
        return F(0)
    return _measure(clear, problem, frames, errors) if keeps_clear(clear) else F(0)


@apart
def _measure(clear, problem, frames, errors):
    worst = F(0)
    for t in range(clear.ints.shape[0]):
        find_contacts(clear, problem, frames, t)
        lack = F(0)
        for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
            if has_contact(clear, slot):
                lack = max(lack, lacking(clear, problem, t, slot))
        goal = clear.ints[t, CLEAR_GOAL]
        if t > 0 and clear.ints[t - 1, CLEAR_GOAL] == goal:  # a goal with two distances has two rows
            lack = max(lack, errors[2 * goal])
        errors[2 * goal] = lack
        worst = max(worst, lack / problem.tolerance)
    return worst


@apart
def mark_idle(clear, forces, share):
    """Mark the contacts whose force is at most ``share`` of the largest one, by rows; with a negative share, none."""
    if clear is None:
        return
    largest = F(0)
    for i in range(forces.shape[0]):
        largest = max(largest, abs(forces[i]))
    for t in range(clear.ints.shape[0]):
        k = clear.ints[t, CLEAR_ROW]
        for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
            clear.contacts[slot, CONTACT_IDLE] = F(abs(forces[k]) <= share * largest)
            k += 1


@apart
def measure_again(clear, frames):
    """Measure the contacts that are not idle at other frames; each slot keeps its pair."""
    if clear is None:
        return
    for slot in range(clear.contacts.shape[0]):
        if has_contact(clear, slot) and clear.contacts[slot, CONTACT_IDLE] == F(0):
            i, j = int(clear.contacts[slot, CONTACT_SHAPES]), int(clear.contacts[slot, CONTACT_SHAPES + 1])
            row, other = int(clear.contacts[slot, CONTACT_ROWS]), int(clear.contacts[slot, CONTACT_ROWS + 1])
            measure_pair(clear, frames, (i, row), (j, other), F(math.inf), clear.contacts, slot)


@apart
def clearance_rows(clear, problem, q, frames, J):
    """Add the Jacobian rows of all contacts that are not idle, missed or not, to rows of zeros."""
    if clear is None:
        return
    for t in range(clear.ints.shape[0]):
        w, k = clear.data[t, CLEAR_WEIGHT] / problem.reach, clear.ints[t, CLEAR_ROW]
        for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
            if has_contact(clear, slot) and clear.contacts[slot, CONTACT_IDLE] == F(0):
                n = load(clear.contacts, slot, CONTACT_NORMAL)
                for side in range(2):
                    row = int(clear.contacts[slot, CONTACT_ROWS + side])
                    p = load(clear.contacts, slot, FIRST_WITNESS if side == 0 else SECOND_WITNESS)
                    force = scale(w if side == 0 else -w, n)
                    add_wrench_row(problem, q, frames, row, p, force, NOTHING, J, k)
            k += 1
