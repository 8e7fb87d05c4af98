"""Supports of shapes: the farthest point of a shape along a direction.

Spheres and capsules are a point or a segment, their core, and a radius around it. The core of every other shape is the
shape itself. All points here are relative to the origin of the shape.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FIRST_POINT,
    HALF_LENGTH,
    HALF_SIZES,
    HULL,
    ORIENTATION,
    POINTS,
    RADIUS,
    SHAPE_KIND,
    SPHERE,
)
from synovia.kernels.math.rotations import apply, apply_t, load_rotation
from synovia.kernels.math.vectors import dot, load, norm, scale, sub

LEVEL = F(1e-12)  # cosine below which a direction counts as normal to an edge or face
POINTS_OF_RIM = F(22)  # cost of the farthest point of a rim, in points of a hull


@inline
def margin(solids, i):
    """Return the radius around the core of a shape."""
    shapes, _ = solids
    kind = shapes[i, SHAPE_KIND]
    return shapes[i, RADIUS] if kind == SPHERE or kind == CAPSULE else F(0)


@inline
def is_curved(solids, i):
    """Return whether the core of a shape has a curved surface."""
    kind = solids[0][i, SHAPE_KIND]
    return kind == CYLINDER or kind == ELLIPSOID


@inline
def points_of(shapes, i):
    """Return the cost of the farthest point of a shape, in points of a hull; for a hull, its number of points."""
    kind = shapes[i, SHAPE_KIND]
    return shapes[i, POINTS] if kind == HULL else (POINTS_OF_RIM if kind == CYLINDER or kind == ELLIPSOID else F(0))


@inline
def on_ellipsoid(radii, d):
    """Return the farthest point of an ellipsoid along d, in its own frame; for a disc seen from above, the centre."""
    a, b, c = radii
    x, y, z = a * d[0], b * d[1], c * d[2]
    size = norm((x, y, z))
    k = F(1) / size if size > F(0) else F(0)
    return k * a * x, k * b * y, k * c * z


@device
def farthest(solids, i, d):
    """Return the point of the core of shape i that is farthest along d."""
    shapes, vertices = solids
    kind = shapes[i, SHAPE_KIND]
    if kind == SPHERE:
        return F(0), F(0), F(0)
    R = load_rotation(shapes, i, ORIENTATION)
    x, y, z = apply_t(R, d)
    if kind == HULL:
        first = int(shapes[i, FIRST_POINT])
        best, most = first, -math.inf
        for k in range(first, first + int(shapes[i, POINTS])):
            along = dot((x, y, z), load(vertices, k, 0))
            if along > most:
                best, most = k, along
        return apply(R, load(vertices, best, 0))
    if kind == BOX:
        hx, hy, hz = load(shapes, i, HALF_SIZES)
        return apply(R, (math.copysign(hx, x), math.copysign(hy, y), math.copysign(hz, z)))
    end = math.copysign(shapes[i, HALF_LENGTH], z)
    if kind == CAPSULE:
        return apply(R, (F(0), F(0), end))
    if kind == ELLIPSOID:
        return apply(R, on_ellipsoid(load(shapes, i, HALF_SIZES), (x, y, z)))
    across = math.hypot(x, y)
    k = shapes[i, RADIUS] / across if across > F(0) else F(0)
    return apply(R, (k * x, k * y, end))


@inline
def _side(half, along):
    """Return the coordinate of the end of an edge that is farthest along a direction, 0 if the edge is normal to it."""
    return F(0) if abs(along) <= LEVEL else math.copysign(half, along)


@device
def middle_of_farthest(solids, i, d):
    """Return the middle of the face, edge or corner of the core of shape i that is farthest along the unit vector d."""
    shapes, vertices = solids
    kind = shapes[i, SHAPE_KIND]
    R = load_rotation(shapes, i, ORIENTATION)
    x, y, z = apply_t(R, d)
    if kind == BOX:
        hx, hy, hz = load(shapes, i, HALF_SIZES)
        return apply(R, (_side(hx, x), _side(hy, y), _side(hz, z)))
    if kind == ELLIPSOID:
        return apply(R, on_ellipsoid(load(shapes, i, HALF_SIZES), (x, y, z)))
    if kind == CAPSULE or kind == CYLINDER:
        end = _side(shapes[i, HALF_LENGTH], z)
        across = math.hypot(x, y)
        if kind == CAPSULE or across <= LEVEL:
            return apply(R, (F(0), F(0), end))
        k = shapes[i, RADIUS] / across
        return apply(R, (k * x, k * y, end))
    if kind == HULL:
        top = farthest(solids, i, d)
        most, size, count = dot(top, d), F(0), 0
        first = int(shapes[i, FIRST_POINT])
        for k in range(first, first + int(shapes[i, POINTS])):
            size = max(size, dot(load(vertices, k, 0), load(vertices, k, 0)))
        size = LEVEL * math.sqrt(size)
        x, y, z = F(0), F(0), F(0)
        for k in range(first, first + int(shapes[i, POINTS])):
            p = apply(R, load(vertices, k, 0))
            if dot(p, d) >= most - size:
                x, y, z, count = x + p[0], y + p[1], z + p[2], count + 1
        return scale(F(1) / F(max(count, 1)), (x, y, z))
    return F(0), F(0), F(0)


@inline
def difference(solids, i, j, c, d):
    """Return the farthest point of A - B along d, and its point of A; c is the origin of B minus that of A."""
    a = farthest(solids, i, d)
    b = farthest(solids, j, (-d[0], -d[1], -d[2]))
    return sub(a, (b[0] + c[0], b[1] + c[1], b[2] + c[2])), a
