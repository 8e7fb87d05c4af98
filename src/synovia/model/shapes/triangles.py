"""Triangles of boxes, cylinders, ellipsoids, capsules, hulls and clouds of spheres."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array

Faces = NDArray[np.int64]  # indices of the vertices of triangles, (f, 3)
Part = tuple[Array, Faces, bool]  # vertices, triangles, and whether to shade the triangles flat
# largest number of spheres of a point cloud that are shown; larger clouds are sampled evenly
MOST_SPHERES: Final = 50_000
_ROUND: Final = 200  # largest number of spheres that are drawn round; in larger clouds, spheres are icosahedra
_FLAT: Final = 1e-9  # fraction of the size of a hull: largest thickness of a flat hull
_GOLDEN: Final = (1.0 + 5.0**0.5) / 2.0
_ICOSAHEDRON: Final = np.array(
    [np.roll((0.0, u, v * _GOLDEN), k) for k in range(3) for u in (-1.0, 1.0) for v in (-1.0, 1.0)]
) / np.hypot(1.0, _GOLDEN)


def box(size: Array) -> tuple[Array, Faces]:
    """Return a box about the origin with these edge lengths, (3,)."""
    corners = np.array(list(np.ndindex(2, 2, 2)), np.float64) - 0.5
    quads = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)], np.int64)
    return corners * size, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def cylinder(radius: float, length: float) -> tuple[Array, Faces]:
    """Return a cylinder about the origin, along z."""
    return _lathe(np.array([radius, radius]), np.array([-0.5, 0.5]) * length, (-0.5 * length, 0.5 * length), 32)


def capsule(radius: float, length: float) -> tuple[Array, Faces]:
    """Return a capsule about the origin, along z: a cylinder of this length with hemispheres at its ends."""
    angle = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 14)[1:-1]
    heights = radius * np.sin(angle) + np.where(angle < 0.0, -0.5, 0.5) * length
    end = 0.5 * length + radius
    return _lathe(radius * np.cos(angle), heights, (-end, end), 24)


def ball(radii: Array) -> tuple[Array, Faces]:
    """Return an ellipsoid about the origin with these semi-axes, (3,)."""
    vertices, faces = _unit_ball()
    return vertices * radii, faces.copy()


@cache
def _unit_ball() -> tuple[Array, Faces]:
    """Return the unit ball; cached, because all balls use it."""
    angle = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 14)[1:-1]
    return _lathe(np.cos(angle), np.sin(angle), (-1.0, 1.0), 24)


def _lathe(radii: Array, heights: Array, ends: tuple[float, float], sides: int) -> tuple[Array, Faces]:
    """Return a closed surface of revolution about z: rings of these radii and heights, upwards, and both end points."""
    around = np.linspace(0.0, 2.0 * math.pi, sides, endpoint=False)
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(sides)], axis=1)
    rings = radii[:, None, None] * circle + heights[:, None, None] * (0.0, 0.0, 1.0)
    vertices = np.concatenate([rings.reshape(-1, 3), [(0.0, 0.0, ends[0]), (0.0, 0.0, ends[1])]])
    i = np.arange(sides)
    j = np.roll(i, -1)
    below = sides * np.arange(len(radii) - 1)[:, None]
    # corners of the quadrilaterals between two rings
    a, b, c, d = below + i, below + j, below + sides + j, below + sides + i
    low, high = np.full(sides, len(vertices) - 2), np.full(sides, len(vertices) - 1)
    top = sides * (len(radii) - 1)
    corners = [(a, b, c), (a, c, d), (low, j, i), (high, top + i, top + j)]
    return vertices, np.concatenate([np.stack(three, axis=-1).reshape(-1, 3) for three in corners])


def hull_faces(points: Array) -> Faces:
    """Return the triangles of the convex hull of points, (f, 3): one layer for a flat hull, and none for a line."""
    from scipy.spatial import ConvexHull as Hull
    from scipy.spatial import QhullError

    size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    axes: Array
    _, spread, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
    if len(points) < 3 or spread[1] <= _FLAT * size:
        return np.empty((0, 3), np.int64)
    if len(points) > 3 and spread[2] > _FLAT * size:
        try:
            return np.array(Hull(points).simplices, np.int64)
        except (QhullError, ValueError):
            pass  # nearly flat hulls are computed below
    around: NDArray[np.int64] = np.array(Hull(points @ axes[:2].T).vertices, np.int64)
    middle, last = around[1:-1], around[2:]
    return np.stack([np.full(len(middle), around[0]), middle, last], axis=1)


def spheres(points: Array, radius: float) -> Part:
    """Return the triangles of equal spheres."""
    points = points[:: -(-len(points) // MOST_SPHERES)]
    if len(points) <= _ROUND:
        vertices, faces = ball(np.full(3, radius))
    else:
        vertices, faces = radius * _ICOSAHEDRON, hull_faces(_ICOSAHEDRON)
    starts = len(vertices) * np.arange(len(points))
    return (points[:, None] + vertices).reshape(-1, 3), (starts[:, None, None] + faces).reshape(-1, 3), False
