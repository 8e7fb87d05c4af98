"""The ground under points: the highest surface of obstacles on a vertical line, with its normal.

A vertical line meets a convex solid in one interval of heights, so each kind of shape has a closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.model.geometry import Array, align_z
from synovia.model.shapes.solids import Box, Capsule, ConvexHull, Cylinder, HalfSpace, PointCloud, Shape, Solid, Sphere

Spans = tuple[
    Array, Array, Array
]  # begin and end along the line, (n,), nan beside the solid; outward normal at the end
_FLAT: Final = 1e-12  # a direction component below this runs along a face; of a hull's size: the hull is flat


@dataclass(frozen=True, eq=False)
class Ground:
    """The surface under some points.

    Args:
        heights: Height of the surface under each point, along the upward direction, (n,); -inf where nothing is below.
        normals: Unit normal of the surface there, (n, 3); the upward direction where nothing is below.
        obstacles: Name of the obstacle, for each point; None where nothing is below.

    Example:
        >>> import synovia as sy
        >>> step = sy.World({"step": sy.Box(center=(0, 0, 0.1), size=(1, 1, 0.2))}, up="z")
        >>> ground = step.ground([(0, 0, 1), (2, 0, 1)])
        >>> isinstance(ground, sy.Ground), ground.obstacles
        (True, ('step', None))
    """

    heights: Array
    normals: Array
    obstacles: tuple[str | None, ...]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self.heights.setflags(write=False)
        self.normals.setflags(write=False)


def ground_under(shapes: Sequence[Shape], points: Array, up: Array) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return the height of the ground under points, (n,), its normal, (n, 3), and the row of its shape, (n,).

    Solids that overlap or touch on a line count as one piece. The ground is the top of the highest piece that begins at
    or below the point: the surface below a point in the open, and the way out for a point inside. Where no piece does,
    the height is -inf and the row -1.

    Args:
        shapes: The shapes, in the world.
        points: The points, (n, 3).
        up: Unit vector that points up, (3,).
    """
    count = len(points)
    own = points @ up
    spans: list[Spans] = []
    rows: list[int] = []
    flat = points - np.outer(own, up)  # lines begin at height 0, so that places along them are heights
    for row, shape in enumerate(shapes):
        if isinstance(shape, Solid) and not _may_meet(shape, flat, up):
            continue
        parts = _cloud(shape, flat, up) if isinstance(shape, PointCloud) else [line_spans(shape, flat, up)]
        spans += parts
        rows += [row] * len(parts)
    best, normals = np.full(count, -np.inf), np.tile(up, (count, 1))
    owner = np.full(count, -1)
    if not spans:
        return best, normals, owner
    low, high = (np.array([span[k] for span in spans]) for k in (0, 1))
    low = np.where(np.isfinite(high) | (high == np.inf), low, np.inf)  # beside the solid: begins above every point
    high = np.where(np.isnan(high), -np.inf, high)
    low = np.where(np.isnan(low), np.inf, low)
    order = np.argsort(low, axis=0, kind="stable")
    for line in order:  # from the lowest beginning upwards, all points at once
        at = (line, np.arange(count))
        begins, ends = low[at], high[at]
        joins = begins <= best  # it touches the piece below
        takes = (begins < np.inf) & (joins | (begins <= own)) & (ends > best)
        for k in np.flatnonzero(takes):
            normals[k] = spans[line[k]][2][k]
            owner[k] = rows[line[k]]
        best = np.where(takes, ends, best)
    return best, normals, owner


def _may_meet(solid: Solid, points: Array, way: Array) -> bool:
    """Return whether one of the lines meets the sphere around a solid."""
    extent = solid.extent()
    if extent == np.inf:
        return True
    off = points - solid.place()[:3, 3]
    across = off - np.outer(off @ way, way)
    return bool((np.sum(across * across, axis=1) <= (1.0 + 1e-9) * extent * extent).any())


def line_spans(solid: Shape, points: Array, way: Array) -> Spans:
    """Return where lines through points are inside a solid: begin and end, (n,), and the outward normal at the end.

    Args:
        solid: The solid.
        points: Points of the lines, (n, 3).
        way: Unit vector along all lines, (3,). Places on a line count from its point.
    """
    if not isinstance(solid, Solid):
        raise InputError("solid", value=type(solid), expected="a convex shape")
    if isinstance(solid, HalfSpace):
        return _half_space(solid, points, way)
    place = solid.place()
    R = place[:3, :3]
    low, high, normal = _OWN[type(solid)](solid, (points - place[:3, 3]) @ R, way @ R)
    misses = ~(low <= high)
    low[misses] = high[misses] = np.nan
    return low, high, normal @ R.T


def _half_space(solid: HalfSpace, points: Array, way: Array) -> Spans:
    """Return where lines are behind a plane."""
    slope = float(solid.normal @ way)
    depth = (solid.point - points) @ solid.normal
    normals = np.tile(solid.normal, (len(points), 1))
    if abs(slope) < _FLAT:
        inside = depth >= 0.0
        return np.where(inside, -np.inf, np.nan), np.where(inside, np.inf, np.nan), normals
    at, ends = depth / slope, np.full(len(points), np.inf)
    return (-ends, at, normals) if slope > 0.0 else (at, ends, normals)


def _sphere(solid: Any, points: Array, way: Array) -> Spans:
    """Return the spans of a sphere about the origin."""
    return _ball(np.zeros(3), solid.radius, points, way)


def _ball(center: Array, radius: float, points: Array, way: Array) -> Spans:
    """Return the spans of a sphere."""
    off = points - center
    middle = -(off @ way)
    across = off + middle[:, None] * way
    square = radius * radius - np.sum(across * across, axis=1)
    half = np.sqrt(np.where(square >= 0.0, square, np.nan))
    return middle - half, middle + half, (across + half[:, None] * way) / max(radius, 1e-300)


def _slab(half: float, points: Array, way: Array, axis: int) -> Spans:
    """Return where lines are between two planes across an axis."""
    normal = np.zeros((len(points), 3))
    if abs(way[axis]) < _FLAT:
        inside = np.abs(points[:, axis]) <= half
        return np.where(inside, -np.inf, np.nan), np.where(inside, np.inf, np.nan), normal
    normal[:, axis] = np.sign(way[axis])
    middle, size = -points[:, axis] / way[axis], half / abs(way[axis])
    return middle - size, middle + size, normal


def _tube(radius: float, points: Array, way: Array) -> Spans:
    """Return where lines are inside an endless cylinder along z."""
    steep = float(way[0] ** 2 + way[1] ** 2)
    normal = np.zeros((len(points), 3))
    if steep < _FLAT**2:
        inside = np.sum(points[:, :2] ** 2, axis=1) <= radius * radius
        return np.where(inside, -np.inf, np.nan), np.where(inside, np.inf, np.nan), normal
    middle = -(points[:, :2] @ way[:2]) / steep
    across = points[:, :2] + middle[:, None] * way[:2]
    square = (radius * radius - np.sum(across * across, axis=1)) / steep
    half = np.sqrt(np.where(square >= 0.0, square, np.nan))
    normal[:, :2] = (across + half[:, None] * way[:2]) / max(radius, 1e-300)
    return middle - half, middle + half, normal


def _both(one: Spans, other: Spans) -> Spans:
    """Return the spans of what two solids share."""
    first = ~(one[1] > other[1])
    high = np.where(first, one[1], other[1])
    high[np.isnan(other[1])] = np.nan
    return np.maximum(one[0], other[0]), high, np.where(first[:, None], one[2], other[2])


def _box(solid: Any, points: Array, way: Array) -> Spans:
    """Return the spans of a box in its own frame."""
    x, y, z = (_slab(float(half), points, way, k) for k, half in enumerate(0.5 * solid.size))
    return _both(_both(x, y), z)


def _cylinder(solid: Any, points: Array, way: Array) -> Spans:
    """Return the spans of a cylinder in its own frame."""
    return _both(_tube(solid.radius, points, way), _slab(0.5 * solid.length, points, way, 2))


def _capsule(solid: Any, points: Array, way: Array) -> Spans:
    """Return the spans of a capsule in its own frame: those of its cylinder and its two spheres together."""
    half = float(np.linalg.norm(solid.b - solid.a)) / 2.0
    ends = [_ball(np.array((0.0, 0.0, z)), solid.radius, points, way) for z in (half, -half)]
    parts = [_both(_tube(solid.radius, points, way), _slab(half, points, way, 2)), *ends]
    parts = [(np.where(low <= high, low, np.nan), np.where(low <= high, high, np.nan), n) for low, high, n in parts]
    low = np.fmin.reduce([part[0] for part in parts])
    highs = np.array([part[1] for part in parts])
    last = np.argmax(np.where(np.isnan(highs), -np.inf, highs), axis=0)
    at = np.arange(len(points))
    return low, highs[last, at], np.array([part[2] for part in parts])[last, at]


def _hull(solid: Any, points: Array, way: Array) -> Spans:
    """Return the spans of a hull in its own frame: between the planes of its faces."""
    from scipy.spatial import ConvexHull as Hull

    corners = solid.corners()
    count = len(points)
    middle = corners.mean(0)
    sizes, axes = np.linalg.svd(corners - middle, full_matrices=True)[1:]
    rank = int((sizes > _FLAT * max(float(sizes[0]), 1e-300)).sum()) if len(corners) > 1 else 0
    if rank == 3:
        faces = Hull(corners).equations
        return _between(faces[:, :3], faces[:, 3], points, way)
    normal = np.tile(way, (count, 1))
    none = np.full(count, np.nan)
    if rank < 2 or abs(float(axes[2] @ way)) < _FLAT:  # a line, or a plate that stands on its edge
        return none, none.copy(), normal
    face = axes[2] * np.sign(axes[2] @ way)
    at = ((middle - points) @ face) / float(face @ way)
    on = (points + at[:, None] * way - middle) @ axes[:2].T
    edges = Hull((corners - middle) @ axes[:2].T).equations
    inside = ((on @ edges[:, :2].T + edges[:, 2]) <= _FLAT * float(sizes[0])).all(axis=1)
    at = np.where(inside, at, np.nan)
    return at, at.copy(), np.tile(face, (count, 1))


def _between(normals: Array, offsets: Array, points: Array, way: Array) -> Spans:
    """Return where lines are behind all planes ``normals @ x + offsets = 0``."""
    slope = normals @ way
    depth = -(points @ normals.T + offsets)  # (n, planes), above 0 behind the plane
    level = np.abs(slope) < _FLAT
    outside = (depth[:, level] < 0.0).any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = depth / slope
    high = np.where(slope >= _FLAT, at, np.inf)
    low = np.where(slope <= -_FLAT, at, -np.inf).max(axis=1)
    face = np.argmin(high, axis=1)
    end = high[np.arange(len(points)), face]
    low[outside] = np.nan
    return low, end, normals[face]


def _cloud(cloud: PointCloud, points: Array, way: Array) -> list[Spans]:
    """Return spans of the spheres of a cloud, as few as the lines meet: span k of a line is its k-th sphere."""
    from scipy.spatial import cKDTree

    axes = align_z(way)[:, :2]
    near: Any = cKDTree(cloud.points @ axes).query_ball_point(points @ axes, cloud.radius)
    most = max((len(rows) for rows in near), default=0)
    out: list[Spans] = []
    for k in range(most):
        has = np.array([k < len(rows) for rows in near])
        rows = np.array([rows[k] if k < len(rows) else 0 for rows in near], int)
        low, high, normal = _ball(cloud.points[rows], cloud.radius, points, way)
        out.append((np.where(has, low, np.nan), np.where(has, high, np.nan), normal))
    return out


_OWN: Final[dict[type, Callable[[Any, Array, Array], Spans]]] = {
    Sphere: _sphere, Box: _box, Cylinder: _cylinder, Capsule: _capsule, ConvexHull: _hull,
}  # fmt: skip
