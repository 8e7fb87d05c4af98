"""Compute distances of points from a shape, and random points on its boundary."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array
from synovia.model.shapes.distances import from_points
from synovia.model.shapes.solids import Solid

_CHUNK: Final = 2_000_000  # largest number of point-sample pairs in one batch


def distances_to(shape: Solid, points: Array) -> Array:
    """Return the signed distances of points (n, 3) from a shape in the same frame; negative inside."""
    return from_points(shape, points)[0]


def points_on(shape: Solid, count: int, rng: np.random.Generator) -> Array:
    """Draw random points on the boundary of a shape, (count, 3), nearly uniform by area.

    The points are drawn on the shape's triangles, and moved to the nearest boundary points.
    """
    drawn = in_triangles(_triangles(shape), count, rng)[0]
    distances, normals = from_points(shape, drawn)
    return drawn - distances[:, None] * normals


def area_of(shape: Solid) -> float:
    """Return the area of the triangles of a shape, which approximates its surface area."""
    return float(_areas(_triangles(shape)).sum())


def _triangles(shape: Solid) -> Array:
    """Return the triangles of a shape, (f, 3, 3); for a shape without triangles, one degenerate triangle."""
    parts = [vertices[faces] for vertices, faces, _ in shape.triangles()]
    return np.concatenate(parts) if parts else np.tile(shape.place()[:3, 3], (1, 3, 1))


def windings(points: Array, samples: Array, normals: Array) -> Array:
    """Return the winding numbers of a surface about points (n, 3): about 1 inside a closed surface, 0 outside.

    Each sample represents a piece of the surface. Its solid angle is n·r / |r|³, with r from the point to the sample.

    Args:
        points: The points; their distances from the surface must be larger than the sample spacing.
        samples: Points of the surface, (m, 3).
        normals: Normals at the samples, (m, 3); their lengths are the areas that the samples represent.

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
    """Draw random points, (count, 3), uniformly by area in triangles (f, 3, 3); also return their triangle indices."""
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
