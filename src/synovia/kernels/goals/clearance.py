"""Clearance goals: links of the body stay apart from each other, and from obstacles.

The error of a goal is its distance plus the tolerance, minus the gap of the nearest pair of shapes. So a goal that is
met within the tolerance keeps its whole distance. Each residual row of a goal has a slot, which stores the contact of a
pair. Of the pairs that are near, the nearest get the slots, and a pair keeps its slot as long as it is one of the
nearest. So a row belongs to the same pair from one pose to the next.

Links are compared by their bounding spheres, then the shapes of near links by the spheres of the shapes. The bounded
shapes of obstacles are the leaves of a binary tree of boxes, which is stored as a heap: node k has the children 2k and
2k + 1. So distant shapes cost little.

The gap of a pair with the normal n, from the second shape to the first, changes by n·(v_a - v_b), where v_a and v_b are
the velocities of the nearest points.

A flat contact has further points (see ``collision.flat``) in the free slots. Their rows bound the step, but they add
nothing to the error, because the gap of the nearest pair is smaller. All points of the contact move with the shape that
carries them, and the normal moves with the other shape. If the contact were measured again at another pose, its nearest
points could be at another corner.
"""

import math

from synovia.kernels.collision.distance import points_of, put_contact
from synovia.kernels.collision.flat import FOUND, flat_points
from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.frames import add_wrench_row
from synovia.kernels.goals.term import NOTHING
from synovia.kernels.layout import (
    AVOIDING,
    BALL_CENTER,
    BALL_RADIUS,
    BOUNDLESS,
    CARRIED_NORMAL,
    CARRIED_POINT,
    CLEAR_DISTANCE,
    CLEAR_GOAL,
    CLEAR_ROW,
    CLEAR_WEIGHT,
    CONTACT_CARRIER,
    CONTACT_FEATURE,
    CONTACT_IDLE,
    CONTACT_NORMAL,
    CONTACT_ROWS,
    CONTACT_SHAPES,
    CORNER,
    EXTENT,
    FIRST_BOUNDLESS,
    FIRST_LINK_PAIR,
    FIRST_NODE,
    FIRST_OBSTACLE,
    FIRST_OF_LINK,
    FIRST_SHAPE,
    FIRST_SLOT,
    FIRST_WITNESS,
    FLAT_FEATURE,
    FLAT_GAP,
    GAP_SIZE,
    HALF_SIZES,
    HALF_SPACE,
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
    SECOND_SHAPE,
    SECOND_WITNESS,
    SHAPE_KIND,
    SHAPE_WIDTH,
    SHAPES_OF_LINK,
    SLOTS,
    SPHERE,
)
from synovia.kernels.math.rotations import (
    apply,
    apply_t,
    column,
    load_rotation,
    matmul,
    origin_of,
    rotation_of,
    store_frame,
)
from synovia.kernels.math.vectors import add, axpy, dot, load, norm, scale, store, sub

WORK_OF_PAIR = F(3)  # work of placing both shapes of a pair
WORK_OF_FLAT, WORK_OF_POINT = F(15), F(0.15)  # work of finding the points of a flat contact, and for each hull point
NEAR = F(0.01)  # length scales: a pair has a row only if its gap is below the distance of the goal plus this value


@inline
def point_on(frames, row, p):
    """Return the world position of a point p in the frame of a row; row -1 is the world."""
    return p if row < 0 else add(origin_of(frames, row), apply(rotation_of(frames, row), p))


@inline
def place_shape(clear, frames, shape, row, to):
    """Write a shape of a row, placed in the world, to row ``to`` of ``clear.placed``."""
    for k in range(HALF_SIZES, SHAPE_WIDTH):
        clear.placed[to, k] = clear.shapes[shape, k]
    R, p = load_rotation(clear.shapes, shape, ORIENTATION), load(clear.shapes, shape, ORIGIN)
    if row >= 0:
        W = rotation_of(frames, row)
        R, p = matmul(W, R), add(origin_of(frames, row), apply(W, p))
    store_frame(clear.placed, to, R, p)


@device
def measure_pair(clear, frames, first, second, enough, contacts, slot):
    """Write the contact of two shapes, each given as (shape, row), to a slot; see ``put_contact``."""
    i, row = first
    j, other = second
    place_shape(clear, frames, i, row, 0)
    place_shape(clear, frames, j, other, 1)
    solids = (clear.placed, clear.points)
    work = put_contact(solids, 0, 1, enough, contacts, slot, (clear.corners, clear.faces, clear.edges))
    clear.state[MEASURED] += WORK_OF_PAIR + work
    contacts[slot, CONTACT_ROWS], contacts[slot, CONTACT_ROWS + 1] = F(row), F(other)
    contacts[slot, CONTACT_SHAPES], contacts[slot, CONTACT_SHAPES + 1] = F(i), F(j)
    contacts[slot, CONTACT_IDLE], contacts[slot, CONTACT_FEATURE], contacts[slot, CONTACT_CARRIER] = F(0), F(0), F(-1)


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
    """Return the row with the largest gap among the first ``count`` rows of ``found``."""
    far = 0
    for k in range(1, count):
        if found[k, GAP_SIZE] > found[far, GAP_SIZE]:
            far = k
    return far


@device
def consider(clear, frames, t, first, second, count, limit):
    """Measure a pair of shapes if it may be among the nearest pairs of goal t, and then add it to ``found``.

    ``first`` and ``second`` are (shape, row). ``count`` is the number of pairs in ``found``, and pairs with a gap of
    ``limit`` or more are ignored.

    Returns:
        (new number of nearest pairs, the gap above which a pair is not among them).
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
    measure_pair(clear, frames, first, second, limit, clear.found, count)  # ``found`` has one row more than slots
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
    """Consider the pairs of shapes of two links; return the values of ``consider``."""
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
    """Consider the pairs of the shapes of link a and all obstacles of goal t; return the values of ``consider``."""
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
        feature = clear.contacts[slot, CONTACT_FEATURE]
        for k in range(count):
            same = clear.found[k, CONTACT_SHAPES] == i and clear.found[k, CONTACT_SHAPES + 1] == j
            if i >= F(0) and same and clear.found[k, CONTACT_FEATURE] == feature:
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


@inline
def point_of(frames, row, p):
    """Return the coordinates of a world point in the frame of a row; the inverse of ``point_on``."""
    return p if row < 0 else apply_t(rotation_of(frames, row), sub(p, origin_of(frames, row)))


@device
def carry(contacts, k, frames, side, p, n):
    """Store p in the frame of one shape of contact k (``side``), and the normal n in the frame of the other shape."""
    row, other = int(contacts[k, CONTACT_ROWS + side]), int(contacts[k, CONTACT_ROWS + 1 - side])
    contacts[k, CONTACT_CARRIER] = F(side)
    store(contacts, k, CARRIED_POINT, point_of(frames, row, p))
    store(contacts, k, CARRIED_NORMAL, n if other < 0 else apply_t(rotation_of(frames, other), n))


@device
def put_carried(contacts, k, frames):
    """Write contact k at other frames: its normal, and the carried point as the point of both shapes."""
    side = int(contacts[k, CONTACT_CARRIER])
    row, other = int(contacts[k, CONTACT_ROWS + side]), int(contacts[k, CONTACT_ROWS + 1 - side])
    p, n = point_on(frames, row, load(contacts, k, CARRIED_POINT)), load(contacts, k, CARRIED_NORMAL)
    store(contacts, k, CONTACT_NORMAL, n if other < 0 else apply(rotation_of(frames, other), n))
    store(contacts, k, FIRST_WITNESS, p)
    store(contacts, k, SECOND_WITNESS, p)


@device
def add_flat_points(clear, frames, nearest, count, most, limit):
    """Add further points of the contact ``nearest``, if it is flat, to the ``count`` contacts found, up to ``most``.

    Returns:
        The new number of contacts.
    """
    found = clear.found
    i, j = int(found[nearest, CONTACT_SHAPES]), int(found[nearest, CONTACT_SHAPES + 1])
    if count >= most or clear.shapes[i, SHAPE_KIND] == SPHERE or clear.shapes[j, SHAPE_KIND] == SPHERE:
        return count
    place_shape(clear, frames, i, int(found[nearest, CONTACT_ROWS]), 0)
    place_shape(clear, frames, j, int(found[nearest, CONTACT_ROWS + 1]), 1)
    n, gap = load(found, nearest, CONTACT_NORMAL), found[nearest, GAP_SIZE]
    points = load(found, nearest, FIRST_WITNESS), load(found, nearest, SECOND_WITNESS)
    solids = (clear.placed, clear.points)
    clear.state[MEASURED] += WORK_OF_FLAT + WORK_OF_POINT * (points_of(clear.shapes, i) + points_of(clear.shapes, j))
    further, side, beyond = flat_points(solids, 0, 1, n, points, limit, clear.corners)
    if further > 0:
        carry(found, nearest, frames, side, axpy(beyond if side == 0 else -beyond, n, points[side]), n)
    for k in range(FOUND, FOUND + min(further, most - count)):
        for c in range(KEPT_CONTACT_WIDTH):
            found[count, c] = found[nearest, c]
        carry(found, count, frames, side, load(clear.corners, k, CORNER), n)
        found[count, GAP_SIZE] = max(clear.corners[k, FLAT_GAP], gap)
        found[count, CONTACT_FEATURE] = clear.corners[k, FLAT_FEATURE]
        put_carried(found, count, frames)
        count += 1
    return count


@device
def find_contacts(clear, problem, frames, t):
    """Write the nearest contacts of goal t to its slots; write none while clearance is ignored."""
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
    for k in range(count):
        count = add_flat_points(clear, frames, k, count, clear.ints[t, SLOTS], limit)
    sort_into_slots(clear, t, count)


@inline
def lacking(clear, problem, t, slot):
    """Return the clearance error of a slot: distance of goal t plus the tolerance minus the gap; negative if met."""
    return clear.data[t, CLEAR_DISTANCE] + problem.tolerance - clear.contacts[slot, GAP_SIZE]


@inline
def has_contact(clear, slot):
    """Return whether a slot holds a contact."""
    return clear.contacts[slot, CONTACT_SHAPES] >= F(0)


@inline
def is_nearest(clear, slot):
    """Return whether a slot holds the nearest points of a pair."""
    return has_contact(clear, slot) and clear.contacts[slot, CONTACT_FEATURE] == F(0)


@apart
def forget_contacts(clear):
    """Empty all slots, so that the slot of each pair depends only on the pose; stop ignoring clearance."""
    if clear is None:
        return
    if clear.state.shape[0] > 0:
        clear.state[IGNORED], clear.state[MEASURED] = F(0), F(0)
    for slot in range(clear.contacts.shape[0]):
        clear.contacts[slot, CONTACT_SHAPES] = F(-1)


@apart
def ignore_contacts(clear, ignored):
    """Ignore clearance goals, or stop ignoring them."""
    if clear is not None:
        clear.state[IGNORED] = F(ignored)


@inline
def keeps_clear(clear):
    """Return whether there are clearance goals; without them, a solve skips the functions below."""
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
            lack = max(F(0), lacking(clear, problem, t, slot)) if is_nearest(clear, slot) else F(0)
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
            if is_nearest(clear, slot):
                lack = max(lack, lacking(clear, problem, t, slot))
        goal = clear.ints[t, CLEAR_GOAL]
        if t > 0 and clear.ints[t - 1, CLEAR_GOAL] == goal:  # a goal with two distances has two rows in this table
            lack = max(lack, errors[2 * goal])
        errors[2 * goal] = lack
        worst = max(worst, lack / problem.tolerance)
    return worst


@apart
def mark_idle(clear, forces, share):
    """Mark contacts as idle if their force is at most ``share`` of the largest force; mark none if share is negative.

    ``forces`` has the force of each residual row.
    """
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
    """Measure the contacts that are not idle at other frames; slots keep their pairs, flat contacts their points."""
    if clear is None:
        return
    for slot in range(clear.contacts.shape[0]):
        if not has_contact(clear, slot) or clear.contacts[slot, CONTACT_IDLE] != F(0):
            continue
        if clear.contacts[slot, CONTACT_CARRIER] >= F(0):
            put_carried(clear.contacts, slot, frames)
        else:
            i, j = int(clear.contacts[slot, CONTACT_SHAPES]), int(clear.contacts[slot, CONTACT_SHAPES + 1])
            row, other = int(clear.contacts[slot, CONTACT_ROWS]), int(clear.contacts[slot, CONTACT_ROWS + 1])
            measure_pair(clear, frames, (i, row), (j, other), F(math.inf), clear.contacts, slot)


@apart
def clearance_rows(clear, problem, q, frames, J):
    """Write the Jacobian rows of all contacts that are not idle, missed or not, into rows of J, which must be zero."""
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
