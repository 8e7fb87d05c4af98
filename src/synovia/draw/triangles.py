"""Rasterize triangles: find the triangle that each sample of an image sees, and the point on the triangle.

Each triangle is divided into the rows of samples that it covers, and each row into samples. All steps work on arrays of
many triangles at once. The nearest triangle wins a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.camera import Camera
from synovia.model.geometry import Array

_MOST: Final = 4_000_000  # largest number of samples to process at once, to limit memory

Numbers = NDArray[np.intp]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """The samples of a part of an image that see a triangle.

    Args:
        at: Indices of the samples, row by row, (n,).
        faces: The triangle that each sample sees, (n,).
        shares: Barycentric weights of the triangle's corners, (n, 3), sum 1.
        depth: Depths, (n,), length units.
    """

    at: Numbers
    faces: Numbers
    shares: Floats
    depth: Floats


def hits_of(vertices: Array, faces: Numbers, camera: Camera, size: tuple[int, int]) -> Hits:
    """Return the nearest triangle in each sample of an image.

    Args:
        vertices: World positions, (v, 3).
        faces: Vertices of the triangles, (f, 3). Both sides are visible.
        camera: The camera; its pixels are the samples.
        size: Width and height, samples.
    """
    width, height = size
    seen = _seen(vertices, faces, camera, size)
    best = np.full(width * height, -np.inf, np.float32)
    winner = np.full(width * height, -1, np.intp)
    for face, at, value in _samples(seen, width):
        np.maximum.at(best, at, value)
        won = value >= best[at]
        winner[at[won]] = face[won]
    at = np.flatnonzero(winner >= 0)
    face = winner[at]
    x, y = (at % width + 0.5), (at // width + 0.5)
    shares = _shares(seen.x[:, face], seen.y[:, face], seen.area[face], x, y)
    value = seen.slopes[0, face] + seen.slopes[1, face] * x + seen.slopes[2, face] * y
    if camera.perspective:
        shares = shares * seen.near[:, face] / value
        value = 1.0 / value
    return Hits(at, seen.faces[face], shares.T.astype(np.float32), value if camera.perspective else -value)


def depths_of(
    vertices: Array, faces: Numbers, camera: Camera, size: tuple[int, int], *, farthest: bool = False
) -> Floats:
    """Return the depth of the nearest or the farthest triangle in each sample of an image, (h, w).

    Args:
        vertices: World positions, (v, 3).
        faces: Vertices of the triangles, (f, 3). Both sides are visible.
        camera: A camera without perspective; its pixels are the samples.
        size: Width and height, samples.
        farthest: Whether to return the depth of the farthest triangle.

    Returns:
        The depths, length units; without a triangle, infinity, or minus infinity for the farthest triangle.
    """
    width, height = size
    extreme = np.maximum if farthest else np.minimum
    out = np.full(width * height, -np.inf if farthest else np.inf, np.float32)
    for _, at, value in _samples(_seen(vertices, faces, camera, size), width):
        extreme.at(out, at, -value)
    return out.reshape(height, width)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The triangles that cover rows of samples of an image.

    Nearness is linear over the image: it is the inverse of the depth with perspective, else the negative depth.

    Args:
        faces: Indices of the triangles, (n,).
        x: Columns of their corners, (3, n).
        y: Rows of their corners, (3, n).
        area: Twice their areas, positive if the corners are in clockwise order on the image, (n,).
        near: Nearness of the corners, (3, n).
        slopes: Constant, x and y coefficients of the nearness, (3, n).
        top: The first row, (n,).
        rows: The number of rows, (n,).
    """

    faces: Numbers
    x: Array
    y: Array
    area: Array
    near: Array
    slopes: Array
    top: Numbers
    rows: Numbers


def _seen(vertices: Array, faces: Numbers, camera: Camera, size: tuple[int, int]) -> _Seen:
    """Return the triangles that cover rows of samples of an image."""
    width, height = size
    pixels, depth, _ = camera.project(vertices)
    corners = np.ascontiguousarray(faces.T)
    columns, rows = np.ascontiguousarray(pixels.T)
    x, y = columns[corners], rows[corners]
    low = np.minimum(np.minimum(y[0], y[1]), y[2])
    high = np.maximum(np.maximum(y[0], y[1]), y[2])
    top = np.maximum(np.ceil(low - 0.5), 0.0).astype(np.intp)
    count = np.minimum(np.ceil(high - 0.5), height).astype(np.intp) - top
    area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
    on = (count > 0) & (np.abs(area) > 1e-9) & ((x > 0.0).any(axis=0)) & ((x < width).any(axis=0))
    behind = depth <= camera.nearest
    if behind.any():
        on &= ~behind[corners].any(axis=0)
    kept = np.flatnonzero(on)
    x, y, area, corners = x[:, kept], y[:, kept], area[kept], corners[:, kept]
    near = (1.0 / depth if camera.perspective else -depth)[corners]
    return _Seen(kept, x, y, area, near, _slopes(x, y, near, area), top[kept], count[kept])


def _samples(seen: _Seen, width: int) -> Iterator[tuple[Numbers, Numbers, Floats]]:
    """Yield the samples inside triangles in portions: index of the triangle, index of the sample, and nearness."""
    for some in _portions(seen):
        face, y, left, count = _spans(seen, some, width)
        start = seen.slopes[0, face] + seen.slopes[2, face] * (y + 0.5) + 0.5 * seen.slopes[1, face]
        first = np.cumsum(count) - count
        step = np.arange(int(count.sum()))
        x = step - np.repeat(first - left, count)
        value = np.repeat(start, count) + np.repeat(seen.slopes[1, face], count) * x
        yield np.repeat(face, count), np.repeat(y * width - first + left, count) + step, value.astype(np.float32)


def _slopes(x: Array, y: Array, values: Array, area: Array) -> Array:
    """Return the constant, x and y coefficients, (3, n), of values that are linear over triangles."""
    a, b = values[1] - values[0], values[2] - values[0]
    across = (a * (y[2] - y[0]) - b * (y[1] - y[0])) / area
    down = (b * (x[1] - x[0]) - a * (x[2] - x[0])) / area
    return np.stack([values[0] - across * x[0] - down * y[0], across, down])


def _shares(corner_x: Array, corner_y: Array, area: Array, x: Floats, y: Floats) -> Floats:
    """Return the barycentric weights of the corners of triangles at points, (3, n)."""
    dx, dy = x - corner_x[0], y - corner_y[0]
    second = (dx * (corner_y[2] - corner_y[0]) - dy * (corner_x[2] - corner_x[0])) / area
    third = ((corner_x[1] - corner_x[0]) * dy - (corner_y[1] - corner_y[0]) * dx) / area
    return np.clip(np.stack([1.0 - second - third, second, third]), 0.0, 1.0)


def _portions(seen: _Seen) -> list[slice]:
    """Return slices that divide triangles into portions of about ``_MOST`` samples, counted in their bounding boxes."""
    if not len(seen.faces):
        return []
    cost = np.cumsum(seen.rows * (np.ptp(seen.x, axis=0) + 1.0))
    ends = np.searchsorted(cost, np.arange(_MOST, float(cost[-1]), _MOST)).tolist()
    return [slice(a, b) for a, b in pairwise(sorted({0, *ends, len(seen.rows)}))]


def _spans(seen: _Seen, some: slice, width: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the rows of samples inside triangles: index of the triangle, row, first column and number of columns.

    On one side, all rows end at the long edge from the top to the bottom corner. On the other side, they end at the
    edge from the top to the middle corner, then at the edge from the middle to the bottom corner.
    """
    order = np.argsort(seen.y[:, some], axis=0)
    x, y = (np.take_along_axis(values[:, some], order, axis=0) for values in (seen.x, seen.y))
    rise = np.stack([y[1] - y[0], y[2] - y[1], y[2] - y[0]])
    slope = np.stack([x[1] - x[0], x[2] - x[1], x[2] - x[0]]) / np.where(rise > 0.0, rise, 1.0)
    at_zero = x[[0, 1, 0]] - y[[0, 1, 0]] * slope

    rows, total = seen.rows[some], int(seen.rows[some].sum())
    place = np.repeat(np.arange(len(rows)), rows)
    row = np.arange(total) - np.repeat(np.cumsum(rows) - rows - seen.top[some], rows)
    middle = row + 0.5
    lower = (middle >= y[1, place]).astype(np.intp)
    long = at_zero[2, place] + middle * slope[2, place]
    short = at_zero[lower, place] + middle * slope[lower, place]
    first = np.clip(np.ceil(np.minimum(long, short) - 0.5), 0, width).astype(np.intp)
    count = np.clip(np.ceil(np.maximum(long, short) - 0.5), 0, width).astype(np.intp) - first
    on = count > 0
    return place[on] + some.start, row[on], first[on], count[on]
