"""Further points of a flat contact: a face that lies on a face, an edge or a row of corners.

The nearest points of such shapes jump from one corner to another when a shape tilts. So one pair of points does not
show how a shape may move: a step that lifts one corner pushes the next one in. All corners of the contact area show it.

Let n be the normal of the contact, from B to A. For all points a of A and b of B, n·(a - b) is at least the distance.
So the gap at a corner is never smaller than that of the nearest pair, and a bound for the corner excludes no pose that
keeps the distance. The contact area is the intersection of both faces, projected along n. Its corners are corners of
one face over the other face, and crossings of edges. One shape owns the normal, which is that of its face and rotates
with the shape. The other shape carries the points.

References:
    E. Catto, "Contact manifolds", GDC 2007.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.layout import (
    BOX,
    CAPSULE,
    CORNER,
    CORNER_FIRST,
    CYLINDER,
    EXTENT,
    FIRST_POINT,
    FLAT_APART,
    FLAT_FEATURE,
    FLAT_GAP,
    HALF_LENGTH,
    HALF_SIZES,
    HALF_SPACE,
    HULL,
    ORIENTATION,
    ORIGIN,
    POINTS,
    RADIUS,
    SHAPE_KIND,
)
from synovia.kernels.math.rotations import apply, apply_t, column, load_rotation
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, norm, perpendicular, reject, scale, store, sub

MOST_POINTS = 4  # largest number of points in addition to the nearest pair
MOST_SIDES = 16  # largest number of sides of a face
RIM, EIGHTH = 8, F(math.sqrt(0.5))  # number of corners of a cylinder's end; cosine and sine of 45°
ALIGNED = F(0.99)  # smallest cosine between the normal of the contact and the normal of the face that owns it
LEVEL = F(1e-9)  # fraction of the size of a hull: corners at most this deep belong to its face
TILT = F(0.15)  # largest slope from the farthest corner of a hull to another corner that takes part in a contact
BORDER = F(1e-9)  # fraction of an edge's length: a point less far beyond the edge counts as over the face
STEEP = F(0.3)  # cosine between the normals of contact and face below which the face carries no points
SAME = F(1e-6)  # fraction of the size of the area: nearer points count as one
SECOND, FOUND = MOST_SIDES, 2 * MOST_SIDES  # first rows of the corners of B and of the points in the scratch memory


@device
def box_face(shapes, i, d, corners, first):
    """Write the corners of the face of a box that faces along d; return its normal."""
    R, p = load_rotation(shapes, i, ORIENTATION), load(shapes, i, ORIGIN)
    along = apply_t(R, d)
    k = 0 if abs(along[0]) >= abs(along[1]) and abs(along[0]) >= abs(along[2]) else 1
    k = 2 if abs(along[2]) > abs(along[k]) else k
    n = scale(math.copysign(F(1), along[k]), column(R, k))
    a, b = (k + 1) % 3, (k + 2) % 3
    u, v = scale(shapes[i, HALF_SIZES + a], column(R, a)), scale(shapes[i, HALF_SIZES + b], column(R, b))
    middle = axpy(shapes[i, HALF_SIZES + k], n, p)
    for c in range(4):
        s, t = F(1 - (c & 2)), F(1 - 2 * ((c ^ (c >> 1)) & 1))
        store(corners, first + c, CORNER, axpy(s, u, axpy(t, v, middle)))
    return n


@device
def hull_face(solids, i, d, corners, first):
    """Write the corners of a hull that face along d; return their number, and whether they form a face.

    The corners of a face are in order around it. Without a face, four corners are written: the outermost ones on four
    sides of the farthest corner; some of them may coincide.
    """
    shapes, vertices = solids
    R, o = load_rotation(shapes, i, ORIENTATION), load(shapes, i, ORIGIN)
    n = apply_t(R, d)
    start, end = int(shapes[i, FIRST_POINT]), int(shapes[i, FIRST_POINT]) + int(shapes[i, POINTS])
    top, most = start, -math.inf
    for k in range(start, end):
        along = dot(n, load(vertices, k, 0))
        if along > most:
            top, most = k, along
    size = shapes[i, EXTENT]
    p = load(vertices, top, 0)
    x = perpendicular(n)
    y = cross(n, x)
    found, east, west, north, south = 0, top, top, top, top
    right, left, up, down = F(0), F(0), F(0), F(0)
    for k in range(start, end):
        drop = most - dot(n, load(vertices, k, 0))
        if drop > F(2) * TILT * size:
            continue
        away = sub(load(vertices, k, 0), p)
        s, t = dot(x, away), dot(y, away)
        if drop > TILT * math.sqrt(s * s + t * t) + LEVEL * size:
            continue
        if drop <= LEVEL * size and found < MOST_SIDES:
            store(corners, first + found, CORNER, add(o, apply(R, load(vertices, k, 0))))
            found += 1
        if s > right:
            right, east = s, k
        if s < left:
            left, west = s, k
        if t > up:
            up, north = t, k
        if t < down:
            down, south = t, k
    if found >= 3:
        sort_around(corners, first, found, apply(R, x), apply(R, y))
        return found, True
    for side in range(4):
        k = east if side == 0 else (west if side == 1 else (north if side == 2 else south))
        store(corners, first + side, CORNER, add(o, apply(R, load(vertices, k, 0))))
    return 4, False


@device
def sort_around(corners, first, count, x, y):
    """Sort corners of a convex face by their angle about their middle."""
    middle = (F(0), F(0), F(0))
    for k in range(first, first + count):
        middle = axpy(F(1) / F(count), load(corners, k, CORNER), middle)
    for k in range(first, first + count):
        p = load(corners, k, CORNER)
        angle = math.atan2(dot(y, sub(p, middle)), dot(x, sub(p, middle)))
        place = k
        while place > first and corners[place - 1, CORNER_FIRST] > angle:
            store(corners, place, CORNER, load(corners, place - 1, CORNER))
            corners[place, CORNER_FIRST] = corners[place - 1, CORNER_FIRST]
            place -= 1
        store(corners, place, CORNER, p)
        corners[place, CORNER_FIRST] = angle


@device
def face_along(solids, i, d, corners, first):
    """Write the corners of the face or edge of shape i that faces along the unit vector d, in the world.

    Returns:
        The number of corners; the normal of the face, zero without a face; how far the shape extends beyond the corners
        along d (the radius of a capsule).
    """
    shapes, _ = solids
    kind, none = shapes[i, SHAPE_KIND], (F(0), F(0), F(0))
    if kind == BOX:
        return 4, box_face(shapes, i, d, corners, first), F(0)
    if kind == HULL:
        count, flat = hull_face(solids, i, d, corners, first)
        return count, d if flat else none, F(0)
    if kind != CAPSULE and kind != CYLINDER:
        return 0, none, F(0)
    R, o = load_rotation(shapes, i, ORIENTATION), load(shapes, i, ORIGIN)
    u, h, r = column(R, 2), shapes[i, HALF_LENGTH], shapes[i, RADIUS]
    x = dot(u, d)
    across = norm(reject(d, u))
    if kind == CYLINDER and abs(x) >= across:
        n = scale(math.copysign(F(1), x), u)
        middle = axpy(h, n, o)
        s, t = r, F(0)
        for c in range(RIM):
            store(corners, first + c, CORNER, axpy(s, column(R, 0), axpy(t, column(R, 1), middle)))
            s, t = EIGHTH * (s - t), EIGHTH * (s + t)
        return RIM, n, F(0)
    if kind == CYLINDER:
        o = axpy(r / across, reject(d, u), o)
    store(corners, first, CORNER, axpy(h, u, o))
    store(corners, first + 1, CORNER, axpy(-h, u, o))
    return 2, none, r if kind == CAPSULE else F(0)


@device
def is_over(corners, first, count, p, n):
    """Return whether a point is over a convex face, along n."""
    left, right = True, True
    for k in range(count):
        a = load(corners, first + k, CORNER)
        e = sub(load(corners, first + (k + 1) % count, CORNER), a)
        side = dot(n, cross(e, sub(p, a)))
        slack = BORDER * dot(e, e)
        left, right = left and side >= -slack, right and side <= slack
    return left or right


@inline
def put_point(corners, count, p, gap, feature, limit):
    """Store a point whose gap is below the limit; return the number of points."""
    if not gap < limit or FOUND + count == corners.shape[0]:
        return count
    store(corners, FOUND + count, CORNER, p)
    corners[FOUND + count, FLAT_GAP], corners[FOUND + count, FLAT_FEATURE] = gap, F(feature)
    return count + 1


@device
def put_crossings(corners, carrier, owner, m, f, limit, count):
    """Store the points where the carrier's edges cross the edges of the owner, along m; return the number of points.

    ``carrier`` is (first row of its corners, their number, how far the shape extends beyond them); ``owner`` is (first
    row, number). m is the normal from the owner to the carrier, f that of the owner's face.
    """
    first, sides, beyond = carrier
    other, edges = owner
    base = load(corners, other, CORNER)
    for k in range(sides if sides > 2 else 1):
        a = load(corners, first + k, CORNER)
        u = sub(load(corners, first + (k + 1) % sides, CORNER), a)
        for c in range(edges):
            b = load(corners, other + c, CORNER)
            v = sub(load(corners, other + (c + 1) % edges, CORNER), b)
            w = cross(m, v)
            across = dot(u, w)
            if across * across <= BORDER * dot(u, u) * dot(v, v):
                continue  # the edges are parallel
            s = dot(sub(b, a), w) / across
            t = dot(sub(a, b), cross(m, u)) / -across
            if F(0) <= s <= F(1) and F(0) <= t <= F(1):
                p = axpy(s, u, a)
                gap = dot(sub(p, base), f) / dot(m, f) - beyond
                feature = 1 + 2 * MOST_SIDES + MOST_SIDES * k + c
                count = put_point(corners, count, p, gap, feature, limit)
    return count


@device
def keep_spread(corners, count, p, n):
    """Move at most ``MOST_POINTS`` points to the front that are far from p and from each other, seen along n.

    Returns:
        The number of these points.
    """
    size = F(0)
    for k in range(FOUND, FOUND + count):
        away = reject(sub(load(corners, k, CORNER), p), n)
        corners[k, FLAT_APART] = dot(away, away)
        size = max(size, corners[k, FLAT_APART])
    kept = 0
    while kept < min(count, MOST_POINTS):
        best = FOUND + kept
        for k in range(best, FOUND + count):
            if corners[k, FLAT_APART] > corners[best, FLAT_APART]:
                best = k
        if not corners[best, FLAT_APART] > SAME * SAME * size:
            break
        for c in range(corners.shape[1]):
            corners[best, c], corners[FOUND + kept, c] = corners[FOUND + kept, c], corners[best, c]
        chosen = load(corners, FOUND + kept, CORNER)
        kept += 1
        for k in range(FOUND + kept, FOUND + count):
            away = reject(sub(load(corners, k, CORNER), chosen), n)
            corners[k, FLAT_APART] = min(corners[k, FLAT_APART], dot(away, away))
    return kept


@apart
def flat_points(solids, i, j, n, points, limit, corners):
    """Write the further points of a contact to the scratch memory, from row ``FOUND`` on.

    Args:
        solids: The tables of all shapes in the world, and of the points of hulls.
        i: Row of the first shape A.
        j: Row of the second one B.
        n: Normal of the contact, from B to A.
        points: Nearest points of A and B.
        limit: Points are left out unless their gap is below this.
        corners: Scratch memory. A point has a position, its gap, and the number of its corner, from 1 on. The position
            may differ along n from that of the point on the carrying shape.

    Returns:
        The number of points; the side that carries them, 0 for A; how far its shape extends beyond its corners along n.
    """
    shapes, _ = solids
    back = scale(F(-1), n)
    count_a, face_a, beyond_a = face_along(solids, i, back, corners, 0)
    if shapes[j, SHAPE_KIND] == HALF_SPACE:
        count, o = 0, load(shapes, j, ORIGIN)
        for k in range(count_a):
            p = load(corners, k, CORNER)
            count = put_point(corners, count, p, dot(n, sub(p, o)) - beyond_a, 1 + k, limit)
        return keep_spread(corners, count, points[0], n), 0, beyond_a
    count_b, face_b, beyond_b = face_along(solids, j, n, corners, SECOND)
    first, second = dot(face_a, back), dot(face_b, n)
    if count_a == 0 or count_b == 0 or max(first, second) < ALIGNED:
        return 0, 0, F(0)
    side = 0 if second >= first - LEVEL else 1  # the side that carries the points; the other shape owns the normal
    m, f, g = (n, face_b, face_a) if side == 0 else (back, face_a, face_b)
    carrier, sides, beyond = (0, count_a, beyond_a) if side == 0 else (SECOND, count_b, beyond_b)
    owner, edges = (SECOND, count_b) if side == 0 else (0, count_a)
    count, base = 0, load(corners, owner, CORNER)
    for k in range(sides):
        p = load(corners, carrier + k, CORNER)
        if is_over(corners, owner, edges, p, n):
            gap = dot(sub(p, base), f) / dot(m, f) - beyond
            count = put_point(corners, count, p, gap, 1 + k, limit)
    steep = dot(g, m)
    if steep < -STEEP:
        top = load(corners, carrier, CORNER)
        for k in range(edges):
            p = load(corners, owner + k, CORNER)
            if is_over(corners, carrier, sides, p, n):
                gap = dot(sub(top, p), g) / steep
                count = put_point(corners, count, axpy(gap, m, p), gap, 1 + MOST_SIDES + k, limit)
    if steep < -STEEP or sides == 2:
        count = put_crossings(corners, (carrier, sides, beyond), (owner, edges), m, f, limit, count)
    return keep_spread(corners, count, points[side], n), side, beyond
