"""Spans of parallel lines inside convex solids, in closed form, each in the solid's own frame.

A line intersects a convex solid in one interval. If a line misses the solid, ``low`` is above ``high``, or NaN.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array, align_z

# A line whose direction component is smaller runs along a face; a hull thinner than this fraction of its size is flat.
_FLAT: Final = 1e-12


class Spans(NamedTuple):
    """Spans of lines inside a solid.

    Args:
        low: Begin of the span on each line, (n,); NaN, or above ``high``, if the line misses the solid.
        high: End of the span on each line, (n,).
        normals: Outward normal at each end, (n, 3).
    """

    low: Array
    high: Array
    normals: Array


def below(points: Array, direction: Array) -> Spans:
    """Return the spans of lines below the plane z = 0."""
    normal = np.tile((0.0, 0.0, 1.0), (len(points), 1))
    if abs(direction[2]) < _FLAT:
        return _along(points[:, 2] <= 0.0, normal)
    at, ends = -points[:, 2] / direction[2], np.full(len(points), np.inf)
    return Spans(-ends, at, normal) if direction[2] > 0.0 else Spans(at, ends, normal)


def ball(center: Array, radius: float, points: Array, direction: Array) -> Spans:
    """Return the spans of lines inside a sphere."""
    off = points - center
    middle = -(off @ direction)
    across = off + middle[:, None] * direction
    square = radius * radius - np.sum(across * across, axis=1)
    half = np.sqrt(np.where(square >= 0.0, square, np.nan))
    return Spans(middle - half, middle + half, (across + half[:, None] * direction) / max(radius, 1e-300))


def slab(half: float, points: Array, direction: Array, axis: int) -> Spans:
    """Return the spans of lines between two planes normal to an axis."""
    normal = np.zeros((len(points), 3))
    if abs(direction[axis]) < _FLAT:
        return _along(np.abs(points[:, axis]) <= half, normal)
    normal[:, axis] = np.sign(direction[axis])
    middle, size = -points[:, axis] / direction[axis], half / abs(direction[axis])
    return Spans(middle - size, middle + size, normal)


def tube(radius: float, points: Array, direction: Array) -> Spans:
    """Return the spans of lines inside an infinite cylinder along z."""
    steep = float(direction[0] ** 2 + direction[1] ** 2)
    normal = np.zeros((len(points), 3))
    if steep < _FLAT**2:
        return _along(np.sum(points[:, :2] ** 2, axis=1) <= radius * radius, normal)
    middle = -(points[:, :2] @ direction[:2]) / steep
    across = points[:, :2] + middle[:, None] * direction[:2]
    square = (radius * radius - np.sum(across * across, axis=1)) / steep
    half = np.sqrt(np.where(square >= 0.0, square, np.nan))
    normal[:, :2] = (across + half[:, None] * direction[:2]) / max(radius, 1e-300)
    return Spans(middle - half, middle + half, normal)


def _along(inside: NDArray[np.bool_], normal: Array) -> Spans:
    """Return the spans of lines that run along a surface: the whole line if ``inside``, else nothing."""
    return Spans(np.where(inside, -np.inf, np.nan), np.where(inside, np.inf, np.nan), normal)


def both(one: Spans, other: Spans) -> Spans:
    """Return the spans of lines inside both of two solids."""
    first = ~(one.high > other.high)
    high = np.where(first, one.high, other.high)
    high[np.isnan(other.high)] = np.nan
    return Spans(np.maximum(one.low, other.low), high, np.where(first[:, None], one.normals, other.normals))


def capsule(radius: float, half: float, points: Array, direction: Array) -> Spans:
    """Return the spans of lines inside a capsule along z, from those inside its cylinder and its two spheres."""
    ends = [ball(np.array((0.0, 0.0, z)), radius, points, direction) for z in (half, -half)]
    parts = [both(tube(radius, points, direction), slab(half, points, direction, 2)), *ends]
    lows, highs, normals = (np.array(each) for each in zip(*parts, strict=True))
    hit = lows <= highs
    lows, highs = np.where(hit, lows, np.nan), np.where(hit, highs, np.nan)
    last = np.argmax(np.where(np.isnan(highs), -np.inf, highs), axis=0)
    at = np.arange(len(points))
    return Spans(np.fmin.reduce(lows), highs[last, at], normals[last, at])


def hull(corners: Array, points: Array, direction: Array) -> Spans:
    """Return the spans of lines inside the convex hull of corners, from the planes of its faces."""
    from scipy.spatial import ConvexHull as Hull

    count = len(points)
    middle = corners.mean(0)
    sizes, axes = np.linalg.svd(corners - middle, full_matrices=True)[1:]
    rank = int((sizes > _FLAT * max(float(sizes[0]), 1e-300)).sum()) if len(corners) > 1 else 0
    if rank == 3:
        faces = Hull(corners).equations
        return _between(faces[:, :3], faces[:, 3], points, direction)
    normal = np.tile(direction, (count, 1))
    none = np.full(count, np.nan)
    if rank < 2 or abs(float(axes[2] @ direction)) < _FLAT:  # the hull is a line, or a plate seen on its edge
        return Spans(none, none.copy(), normal)
    face = axes[2] * np.sign(axes[2] @ direction)
    at = ((middle - points) @ face) / float(face @ direction)
    on = (points + at[:, None] * direction - middle) @ axes[:2].T
    edges = Hull((corners - middle) @ axes[:2].T).equations
    inside = ((on @ edges[:, :2].T + edges[:, 2]) <= _FLAT * float(sizes[0])).all(axis=1)
    at = np.where(inside, at, np.nan)
    return Spans(at, at.copy(), np.tile(face, (count, 1)))


def _between(normals: Array, offsets: Array, points: Array, direction: Array) -> Spans:
    """Return the spans of lines behind all planes ``normals @ x + offsets = 0``."""
    slope = normals @ direction
    depth = -(points @ normals.T + offsets)  # (n, planes); positive behind a plane
    level = np.abs(slope) < _FLAT
    outside = (depth[:, level] < 0.0).any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = depth / slope
    high = np.where(slope >= _FLAT, at, np.inf)
    low = np.where(slope <= -_FLAT, at, -np.inf).max(axis=1)
    face = np.argmin(high, axis=1)
    end = high[np.arange(len(points)), face]
    low[outside] = np.nan
    return Spans(low, end, normals[face])


def balls(centers: Array, radius: float, points: Array, direction: Array) -> list[Spans]:
    """Return the spans of lines inside equal spheres; span k of a line is in the k-th sphere that it intersects."""
    from scipy.spatial import KDTree

    axes = align_z(direction)[:, :2]
    tree: Any = KDTree(centers @ axes)
    near: Any = tree.query_ball_point(points @ axes, radius)
    most = max((len(rows) for rows in near), default=0)
    out: list[Spans] = []
    for k in range(most):
        has = np.array([k < len(rows) for rows in near])
        rows = np.array([rows[k] if k < len(rows) else 0 for rows in near], int)
        low, high, normal = ball(centers[rows], radius, points, direction)
        out.append(Spans(np.where(has, low, np.nan), np.where(has, high, np.nan), normal))
    return out
