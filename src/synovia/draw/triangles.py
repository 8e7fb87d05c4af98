"""Triangles to samples: which triangle each sample of an image sees, and where on it.

Each triangle is cut into the rows of samples that it covers, each row into samples; all are arrays, so NumPy does the
work of a whole body at once. The nearest triangle wins a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.camera import Camera
from synovia.model.geometry import Array

_MOST: Final = 4_000_000  # samples that are handled at once; more go in several portions

Numbers = NDArray[np.intp]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """The samples of a part of an image that see a triangle.

    Args:
        at: Numbers of the samples, row by row, (n,).
        faces: The triangle that each sees, (n,).
        shares: Weights of the triangle's corners there, (n, 3), sum 1.
        depth: Depths, (n,), length units.
    """

    at: Numbers
    faces: Numbers
    shares: Floats
    depth: Floats


def hits_of(vertices: Array, faces: Numbers, camera: Camera, size: tuple[int, int], *, farthest: bool = False) -> Hits:
    """Return what each sample of an image sees.

    Args:
        vertices: World positions, (v, 3).
        faces: Vertices of the triangles, (f, 3). Both sides are visible.
        camera: The camera; its pixels are the samples.
        size: Width and height, samples.
        farthest: Whether the farthest triangle wins a sample instead of the nearest.
    """
    width, height = size
    pixels, depth, _ = camera.project(vertices)
    # Over the image, the inverse of the depth is linear with perspective, and the depth without.
    near = 1.0 / depth if camera.perspective else -depth
    behind = depth <= camera.nearest
    kept = np.flatnonzero(~behind[faces].any(axis=1)) if behind.any() else np.arange(len(faces))
    corners = pixels[faces[kept]]
    low, high = corners.min(axis=1), corners.max(axis=1)
    top = np.maximum(np.ceil(low[:, 1] - 0.5), 0.0).astype(np.intp)
    rows = np.minimum(np.ceil(high[:, 1] - 0.5), height).astype(np.intp) - top
    seen = (rows > 0) & (high[:, 0] > 0.0) & (low[:, 0] < width)
    kept, corners, top, rows = kept[seen], corners[seen], top[seen], rows[seen]
    one, two, three = corners[:, 0], corners[:, 1], corners[:, 2]
    area = (two[:, 0] - one[:, 0]) * (three[:, 1] - one[:, 1]) - (two[:, 1] - one[:, 1]) * (three[:, 0] - one[:, 0])
    solid = np.abs(area) > 1e-9
    kept, corners, top, rows, area = kept[solid], corners[solid], top[solid], rows[solid], area[solid]
    if not len(kept):
        return Hits(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros((0, 3)), np.zeros(0))
    slopes = _slopes(corners, near[faces[kept]], area)

    best = np.full(width * height, -np.inf, np.float32)
    winner = np.full(width * height, -1, np.intp)
    sign = -1.0 if farthest else 1.0
    for some in _portions(rows, high[seen][solid] - low[seen][solid]):
        face, y, left, count = _spans(corners[some], area[some], top[some], rows[some], width)
        span = np.repeat(np.arange(len(face)), count)
        x = np.arange(len(span)) - np.repeat(np.cumsum(count) - count - left, count)
        face = some[face]
        start = slopes[face, 0] + slopes[face, 2] * (y + 0.5) + 0.5 * slopes[face, 1]
        value = (sign * (start[span] + slopes[face, 1][span] * x)).astype(np.float32)
        at = (y * width)[span] + x
        np.maximum.at(best, at, value)
        won = value >= best[at]
        winner[at[won]] = face[span[won]]
    at = np.flatnonzero(winner >= 0)
    face = winner[at]
    x, y = (at % width + 0.5), (at // width + 0.5)
    value = slopes[face, 0] + slopes[face, 1] * x + slopes[face, 2] * y
    shares = _shares(corners[face], area[face], x, y)
    if camera.perspective:
        shares = shares * near[faces[kept[face]]] / value[:, None]
        value = 1.0 / value
    return Hits(at, kept[face], shares.astype(np.float32), value if camera.perspective else -value)


def _slopes(corners: Array, values: Array, area: Array) -> Array:
    """Return constant, x and y coefficient of values (f, 3) at the corners (f, 3, 2) of triangles, (f, 3)."""
    (x0, y0), (x1, y1), (x2, y2) = (corners[:, k].T for k in range(3))
    a, b = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
    across = (a * (y2 - y0) - b * (y1 - y0)) / area
    down = (b * (x1 - x0) - a * (x2 - x0)) / area
    return np.stack([values[:, 0] - across * x0 - down * y0, across, down], axis=1)


def _shares(corners: Array, area: Array, x: Floats, y: Floats) -> Floats:
    """Return the weights of the corners of a triangle at points, (n, 3)."""
    (x0, y0), (x1, y1), (x2, y2) = (corners[:, k].T for k in range(3))
    second = ((x - x0) * (y2 - y0) - (y - y0) * (x2 - x0)) / area
    third = ((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)) / area
    return np.clip(np.stack([1.0 - second - third, second, third], axis=1), 0.0, 1.0)


def _portions(rows: Numbers, extent: Array) -> list[Numbers]:
    """Return triangles in portions of at most ``_MOST`` samples, by the boxes around them."""
    cost = np.cumsum(rows * (extent[:, 0] + 1.0))
    ends = np.searchsorted(cost, np.arange(_MOST, float(cost[-1]), _MOST)).tolist()
    edges = sorted({0, *ends, len(rows)})
    return [np.arange(a, b) for a, b in pairwise(edges)]


def _spans(
    corners: Array, area: Array, top: Numbers, rows: Numbers, width: int
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the rows of samples inside triangles: triangle, row, first column and number of columns of each."""
    face = np.repeat(np.arange(len(rows)), rows)
    y = np.arange(len(face)) - np.repeat(np.cumsum(rows) - rows - top, rows)
    middle = y + 0.5
    left, right = np.full(len(face), -np.inf), np.full(len(face), np.inf)
    for k in range(3):
        a, b = corners[:, k], corners[:, (k + 1) % 3]
        down = (b[:, 1] - a[:, 1]) * np.sign(area)
        level = down == 0.0
        slope = (b[:, 0] - a[:, 0]) / np.where(level, 1.0, b[:, 1] - a[:, 1])
        x = a[face, 0] + (middle - a[face, 1]) * slope[face]
        np.minimum(right, x, out=right, where=(down > 0.0)[face])
        np.maximum(left, x, out=left, where=(down < 0.0)[face])
    first = np.clip(np.ceil(left - 0.5), 0, width).astype(np.intp)
    count = np.clip(np.ceil(right - 0.5), 0, width).astype(np.intp) - first
    some = count > 0
    return face[some], y[some], first[some], count[some]
