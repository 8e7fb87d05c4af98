"""Points and shapes: how far points are from a shape, and points that are spread over its boundary."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array
from synovia.model.shapes.solids import Box, Capsule, ConvexHull, Cylinder, Solid, Sphere

_CHUNK: Final = 2_000_000  # pairs of a point and a triangle at once


def distances_to(shape: Solid, points: Array) -> Array:
    """Return the signed distances of points (n, 3) from a shape in the same frame; negative inside."""
    place = shape.place()
    own = (points - place[:3, 3]) @ place[:3, :3]
    return _DISTANCES[type(shape)](shape, own)


def points_on(shape: Solid, count: int, rng: np.random.Generator) -> Array:
    """Return random points of the boundary of a shape, (count, 3), uniform by area."""
    place = shape.place()
    return _POINTS[type(shape)](shape, count, rng) @ place[:3, :3].T + place[:3, 3]


def area_of(shape: Solid) -> float:
    """Return the area of the boundary of a shape."""
    x, y, z, r = shape.sizes()
    if isinstance(shape, Box):
        return 8.0 * (x * y + y * z + z * x)
    if isinstance(shape, Cylinder):
        return 2.0 * math.pi * r * (r + 2.0 * z)
    if isinstance(shape, ConvexHull):
        return float(_areas(_hull(shape)[0]).sum())
    return 4.0 * math.pi * r * (r + z)


def near_triangles(points: Array, corners: Array) -> Array:
    """Return the distances of points (n, 3) from the nearest of triangles (f, 3, 3).

    References:
        C. Ericson, *Real-Time Collision Detection*, 2005, 5.1.5.
    """
    out = np.empty(len(points))
    step = max(1, _CHUNK // max(len(corners), 1))
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    ab, ac, bc = b - a, c - a, c - b
    n = np.cross(ab, ac)
    square = (n * n).sum(axis=1)
    proper = square > 0.0
    for first in range(0, len(points), step):
        p = points[first : first + step, None]
        rel = p - a
        found = np.minimum(_near_edge(rel, ab), np.minimum(_near_edge(rel, ac), _near_edge(p - b, bc)))
        with np.errstate(invalid="ignore", divide="ignore"):
            x = (np.cross(rel, ac) * n).sum(axis=2) / square
            y = (np.cross(ab, rel) * n).sum(axis=2) / square
            above = (rel * n).sum(axis=2) ** 2 / square
        inside = proper & (x >= 0.0) & (y >= 0.0) & (x + y <= 1.0)
        out[first : first + step] = np.where(inside, np.minimum(above, found), found).min(axis=1)
    return np.sqrt(out)


def windings(points: Array, samples: Array, normals: Array) -> Array:
    """Return how often a surface winds around points (n, 3): about 1 inside a closed surface, 0 outside.

    Each sample stands for a piece of the surface, which is seen from a point under the solid angle n·r / |r|³.

    Args:
        points: The points; farther from the surface than the samples from each other.
        samples: Points of the surface, (m, 3).
        normals: Normals there, as long as the area that each sample stands for, (m, 3).

    References:
        G. Barill et al., "Fast winding numbers for soups and clouds", ACM Trans. Graph. 37(4), 2018, equation 6.
    """
    out = np.empty(len(points))
    step = max(1, _CHUNK // max(len(samples), 1))
    along = (samples * normals).sum(axis=1)
    squares = (samples * samples).sum(axis=1)
    for first in range(0, len(points), step):
        p = points[first : first + step]
        away = np.maximum((p * p).sum(axis=1)[:, None] - 2.0 * p @ samples.T + squares, 1e-12 * squares.max())
        out[first : first + step] = ((along - p @ normals.T) / (away * np.sqrt(away))).sum(axis=1) / (4.0 * math.pi)
    return out


def in_triangles(corners: Array, count: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Return random points of triangles (f, 3, 3), uniform by area, (count, 3), and the numbers of their triangles."""
    total = np.cumsum(_areas(corners))
    chosen: Array = rng.random(count) * (total[-1] or 1.0)
    face = np.minimum(np.searchsorted(total, chosen), len(corners) - 1).astype(np.int64)
    x: Array = rng.random((count, 1))
    y: Array = rng.random((count, 1))
    over = x + y > 1.0
    x, y = np.where(over, 1.0 - x, x), np.where(over, 1.0 - y, y)
    p: Array = corners[face, 0]
    return p + x * (corners[face, 1] - p) + y * (corners[face, 2] - p), face


def _areas(corners: Array) -> Array:
    """Return the areas of triangles (f, 3, 3)."""
    return 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)


def _near_edge(rel: Array, way: Array) -> Array:
    """Return the squared distances of points from edges that begin at the origin."""
    square = (way * way).sum(axis=1)
    t = np.clip((rel * way).sum(axis=2) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
    left = rel - t[:, :, None] * way
    return (left * left).sum(axis=2)


def _hull(shape: Solid) -> tuple[Array, Array]:
    """Return the triangles of a hull in its own frame, (f, 3, 3), and the planes of its faces, (f, 4)."""
    from scipy.spatial import ConvexHull as Hull

    points = shape.corners()
    if len(points) < 4:
        return np.stack([points[[0, k % len(points), (k + 1) % len(points)]] for k in range(1, 3)]), np.empty((0, 4))
    hull = Hull(points, qhull_options="QJ")  # joggled, so that flat ones have faces, too
    return points[hull.simplices], hull.equations


def _from_core(shape: Any, p: Array) -> Array:
    """Return the distances from a sphere or capsule."""
    half = shape.sizes()[2]
    rest = p - np.clip(p[:, 2:], -half, half) * (0.0, 0.0, 1.0)
    return np.linalg.norm(rest, axis=1) - shape.radius


def _from_box(shape: Any, p: Array) -> Array:
    """Return the distances from a box."""
    out = np.abs(p) - 0.5 * shape.size
    return np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)


def _from_cylinder(shape: Any, p: Array) -> Array:
    """Return the distances from a cylinder."""
    out = np.stack([np.hypot(p[:, 0], p[:, 1]) - shape.radius, np.abs(p[:, 2]) - 0.5 * shape.length], axis=1)
    return np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)


def _from_hull(shape: Any, p: Array) -> Array:
    """Return the distances from a convex hull."""
    triangles, planes = _hull(shape)
    out = (p @ planes[:, :3].T + planes[:, 3]).max(axis=1, initial=-math.inf) if len(planes) else np.ones(len(p))
    beyond = out > 0.0
    out[beyond] = near_triangles(p[beyond], triangles)
    return out


def _on_core(shape: Any, count: int, rng: np.random.Generator) -> Array:
    """Return points of a sphere or capsule: equal steps of height have equal areas."""
    r, half = shape.radius, shape.sizes()[2]
    z = (2.0 * rng.random(count) - 1.0) * (half + r)
    beyond = np.maximum(np.abs(z) - half, 0.0)
    across = np.sqrt(np.maximum(r * r - beyond * beyond, 0.0))
    angle = 2.0 * math.pi * rng.random(count)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1)


def _on_box(shape: Any, count: int, rng: np.random.Generator) -> Array:
    """Return points of a box."""
    size = shape.size
    area = np.array([size[1] * size[2], size[2] * size[0], size[0] * size[1]])
    axis = rng.choice(3, count, p=area / area.sum() if area.sum() > 0.0 else None)
    unit = rng.random((count, 3)) - 0.5
    unit[np.arange(count), axis] = np.where(rng.random(count) < 0.5, -0.5, 0.5)
    return unit * size


def _on_cylinder(shape: Any, count: int, rng: np.random.Generator) -> Array:
    """Return points of a cylinder."""
    r, length = shape.radius, shape.length
    ends = rng.random(count) * (r + length) < r
    share: Array = np.where(ends, np.sqrt(rng.random(count)), 1.0)
    across = r * share
    z = np.where(ends, np.where(rng.random(count) < 0.5, -0.5, 0.5), rng.random(count) - 0.5) * length
    angle = 2.0 * math.pi * rng.random(count)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1)


def _on_hull(shape: Any, count: int, rng: np.random.Generator) -> Array:
    """Return points of a convex hull."""
    return in_triangles(_hull(shape)[0], count, rng)[0]


_DISTANCES: Final[dict[type[Solid], Callable[[Any, Array], Array]]] = {
    Sphere: _from_core,
    Capsule: _from_core,
    Box: _from_box,
    Cylinder: _from_cylinder,
    ConvexHull: _from_hull,
}
_POINTS: Final[dict[type[Solid], Callable[[Any, int, np.random.Generator], Array]]] = {
    Sphere: _on_core,
    Capsule: _on_core,
    Box: _on_box,
    Cylinder: _on_cylinder,
    ConvexHull: _on_hull,
}
