"""Signed distances of pairs of shapes: formulas for simple shapes, iterations for the others.

If shapes overlap, the distance is minus the shortest displacement that separates them. The normal n is a unit vector
from the second shape B to the first A, and the nearest points are a = b + distance n. Moving A by t along n adds t to
the distance.

A sphere is a capsule of length 0. If cores have radii, the distance of the shapes is that of the cores minus the radii,
also if the cores overlap.

References:
    C. Ericson, *Real-Time Collision Detection*, 2005, 5.1.9: the nearest points of two segments.
"""

import math

from synovia.kernels.collision.cylinders import depth_of_cylinders
from synovia.kernels.collision.epa import deepest
from synovia.kernels.collision.gjk import apart
from synovia.kernels.collision.support import margin, middle_of_farthest, points_of
from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.layout import (
    BOX,
    CAPSULE,
    CONTACT_NORMAL,
    CYLINDER,
    FIRST_SHAPE,
    FIRST_WITNESS,
    GAP_SIZE,
    HALF_LENGTH,
    HALF_SIZES,
    HALF_SPACE,
    ORIENTATION,
    ORIGIN,
    RADIUS,
    SECOND_SHAPE,
    SECOND_WITNESS,
    SHAPE_KIND,
    SPHERE,
)
from synovia.kernels.math.rotations import apply, apply_t, column, load_rotation
from synovia.kernels.math.vectors import add, axpy, cross, dot, load, norm, perpendicular, scale, store, sub

PARALLEL = F(1e-20)  # squared sine of the angle between segments that count as parallel
CLOSE = F(1e-9)  # fraction of the size: nearer segments use the normal of both axes, as their difference is rounding
# Work in the units of ``watch``: for a formula; for a step of separate shapes, and for each point of a hull; for the
# depth of cylinders; for a corner of a polytope inside overlapping shapes, and for each earlier corner. The values are
# ratios of measured times, which are similar for all shapes of a kind: 3.3 is 65 ns.
WORK_OF_FORMULA, WORK_OF_STEP, WORK_OF_POINT, WORK_OF_CYLINDERS = F(3.5), F(3.3), F(0.05), F(250)
WORK_OF_CORNER, WORK_OF_FACES = F(5.5), F(0.25)


@inline
def within(x, low, high):
    """Return x, clamped to an interval."""
    return min(max(x, low), high)


@device
def segments(c, u, h, v, k):
    """Return the distance between two segments, the normal, and the parameter of the nearest point on the first.

    The first segment goes from -h u to h u, the second from c - k v to c + k v; u and v are unit vectors. For parallel
    segments, the nearest point is the middle of the part along which they are nearest.

    Returns:
        The distance, the unit vector from the second to the first, and the parameter on the first.
    """
    b, f, g = dot(u, v), dot(u, c), dot(v, c)
    n = cross(u, v)
    sine2 = dot(n, n)
    if sine2 <= PARALLEL:
        # the part of the first segment that faces the second
        low, high = f - abs(b) * k, f + abs(b) * k
        low, high = (max(low, -h), min(high, h)) if low <= h and high >= -h else (within(f, -h, h), within(f, -h, h))
        s = F(0.5) * (low + high)
        t = within(b * s - g, -k, k)
        s = within(f + b * t, -h, h)
        level = False
    else:
        s = within(dot(cross(c, v), n) / sine2, -h, h)
        t = b * s - g
        level = abs(s) < h and abs(t) < k
        if abs(t) > k:
            t = within(t, -k, k)
            s = within(f + b * t, -h, h)
    way = sub(scale(s, u), axpy(t, v, c))
    length = norm(way)
    size = h + k + norm(c)
    if level and length <= CLOSE * size:
        n = scale(F(1) / math.sqrt(sine2), n)
        along = dot(n, c)
        n = scale(F(-1), n) if along > F(0) else n
        return abs(along), n, s
    if length <= F(1e-300):
        if sine2 > PARALLEL:
            return F(0), scale(F(1) / math.sqrt(sine2), n), s
        return F(0), perpendicular(u if h > F(0) else v), s
    return length, scale(F(1) / length, way), s


@device
def point_box(p, hx, hy, hz):
    """Return signed distance and outward normal of a point p and a box in its own frame."""
    x, y, z = p
    inner = max(abs(x) - hx, abs(y) - hy, abs(z) - hz)
    if inner > F(0):
        way = (x - within(x, -hx, hx), y - within(y, -hy, hy), z - within(z, -hz, hz))
        big = max(abs(way[0]), abs(way[1]), abs(way[2]))
        way = scale(F(1) / big, way)
        length = norm(way)
        return big * length, scale(F(1) / length, way)
    if abs(x) - hx == inner:
        return inner, (math.copysign(F(1), x), F(0), F(0))
    if abs(y) - hy == inner:
        return inner, (F(0), math.copysign(F(1), y), F(0))
    return inner, (F(0), F(0), math.copysign(F(1), z))


@device
def point_cylinder(p, h, r):
    """Return signed distance and outward normal of a point p and a cylinder in its own frame."""
    x, y, z = p
    across = math.hypot(x, y)
    ux, uy = (x / across, y / across) if across > F(0) else (F(1), F(0))
    along, out = abs(z) - h, across - r
    up = math.copysign(F(1), z)
    if along > F(0) and out > F(0):
        length = math.hypot(along, out)
        return length, (ux * out / length, uy * out / length, up * along / length)
    if along > out:
        return along, (F(0), F(0), up)
    return out, (ux, uy, F(0))


@inline
def middle(x, h, k):
    """Return the middle of the intersection of the intervals x - h to x + h and -k to k, minus x."""
    return F(0.5) * (max(x - h, -k) + min(x + h, k)) - x


@device
def parallel_cylinders(p, h, r, k, t):
    """Return signed distance, normal and point from a cylinder at the origin to one at p, both along z.

    The first cylinder has the half length h and the radius r, the second one k and t. The set of all differences is
    also a cylinder, with the sums of both half lengths and of both radii.
    """
    d, n = point_cylinder(p, h + k, r + t)
    across = math.hypot(p[0], p[1])
    ux, uy = (p[0] / across, p[1] / across) if across > F(0) else (F(1), F(0))
    out = middle(across, r, t) if n[0] == F(0) and n[1] == F(0) else -r
    up = middle(p[2], h, k) if n[2] == F(0) else -math.copysign(h, p[2])
    return d, n, (out * ux, out * uy, up)


@device
def of_ordered(solids, i, j, enough, memory):
    """Return signed distance, normal, and nearest point of shape i relative to its origin; kind of i <= kind of j.

    A distance larger than ``enough`` may be overestimated. ``memory`` is scratch memory: corners, faces and edges. The
    last value is the work, see ``watch``.
    """
    shapes, _ = solids
    corners, faces, edges = memory
    kind, other = shapes[i, SHAPE_KIND], shapes[j, SHAPE_KIND]
    c = sub(load(shapes, j, ORIGIN), load(shapes, i, ORIGIN))
    R, S = load_rotation(shapes, i, ORIENTATION), load_rotation(shapes, j, ORIENTATION)
    ra, rb = margin(solids, i), margin(solids, j)
    if other == HALF_SPACE:
        n = column(S, 2)
        p = middle_of_farthest(solids, i, scale(F(-1), n))
        return dot(n, sub(p, c)) - ra, n, axpy(-ra, n, p), WORK_OF_FORMULA + F(2) * WORK_OF_POINT * points_of(shapes, i)
    if other <= CAPSULE:
        h = shapes[i, HALF_LENGTH] if kind == CAPSULE else F(0)
        k = shapes[j, HALF_LENGTH] if other == CAPSULE else F(0)
        u = column(R, 2)
        length, n, s = segments(c, u, h, column(S, 2), k)
        return length - ra - rb, n, axpy(s, u, scale(-ra, n)), WORK_OF_FORMULA
    if kind == SPHERE and (other == BOX or other == CYLINDER):
        p = apply_t(S, scale(F(-1), c))
        if other == BOX:
            hx, hy, hz = load(shapes, j, HALF_SIZES)
            d, n = point_box(p, hx, hy, hz)
        else:
            d, n = point_cylinder(p, shapes[j, HALF_LENGTH], shapes[j, RADIUS])
        n = apply(S, n)
        return d - ra, n, scale(-ra, n), WORK_OF_FORMULA
    if kind == CYLINDER and other == CYLINDER:
        n = cross(column(R, 2), column(S, 2))
        if dot(n, n) <= PARALLEL:
            p = apply_t(S, scale(F(-1), c))
            h, k = shapes[i, HALF_LENGTH], shapes[j, HALF_LENGTH]
            d, n, p = parallel_cylinders(p, h, shapes[i, RADIUS], k, shapes[j, RADIUS])
            return d, apply(S, n), apply(S, p), WORK_OF_FORMULA
    free, v, p, steps = apart(solids, i, j, c, enough + ra + rb, corners)
    supports = WORK_OF_POINT * (points_of(shapes, i) + points_of(shapes, j))
    work = WORK_OF_FORMULA + F(steps) * (WORK_OF_STEP + supports)
    if free:
        d = norm(v)
        n = scale(F(1) / d, v)
        return d - ra - rb, n, axpy(-ra, n, p), work
    if other == CYLINDER and kind != BOX and min(shapes[j, HALF_LENGTH], shapes[j, RADIUS]) > F(0):
        h = shapes[i, HALF_LENGTH] if kind != SPHERE else F(0)
        first = column(R, 2), h, shapes[i, RADIUS] - ra
        second = column(S, 2), shapes[j, HALF_LENGTH], shapes[j, RADIUS]
        depth, n, p = depth_of_cylinders(first, second, scale(F(-1), c))
        return -depth - ra, n, axpy(-ra, n, p), work + WORK_OF_CYLINDERS
    solid, depth, n, q, count = deepest(solids, i, j, c, corners, faces, edges)
    if solid:
        p = q
    work += F(count) * (WORK_OF_CORNER + supports + WORK_OF_FACES * F(count))
    return -depth - ra - rb, n, axpy(-ra, n, p), work


@device
def put_contact(solids, i, j, enough, contacts, row, memory):
    """Write the contact of shapes i and j to a row; a distance larger than ``enough`` may be overestimated.

    Returns:
        The work, see ``watch``.
    """
    shapes, _ = solids
    swap = shapes[i, SHAPE_KIND] > shapes[j, SHAPE_KIND]
    a, b = (j, i) if swap else (i, j)
    d, n, p, work = of_ordered(solids, a, b, enough, memory)
    p = add(p, load(shapes, a, ORIGIN))
    q = axpy(-d, n, p)
    if swap:
        p, q, n = q, p, scale(F(-1), n)
    contacts[row, GAP_SIZE] = d
    store(contacts, row, CONTACT_NORMAL, n)
    store(contacts, row, FIRST_WITNESS, p)
    store(contacts, row, SECOND_WITNESS, q)
    return work


@entry
def distances(shapes, vertices, pairs, contacts, corners, faces, edges):
    """Write the contacts of pairs of shapes.

    Args:
        shapes: All shapes in the world, see ``layout``.
        vertices: Points of hulls, each in the frame of its shape.
        pairs: Rows of both shapes of each pair; at most one of them is a half-space.
        contacts: One row for each pair.
        corners: Scratch memory.
        faces: Scratch memory.
        edges: Scratch memory.
    """
    solids = (shapes, vertices)
    for k in range(pairs.shape[0]):
        i, j = pairs[k, FIRST_SHAPE], pairs[k, SECOND_SHAPE]
        put_contact(solids, i, j, F(math.inf), contacts, k, (corners, faces, edges))
