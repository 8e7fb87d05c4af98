"""Triangles of boxes, cylinders, ellipsoids and capsules."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from synovia.model.geometry import Array
from synovia.surface.base import Faces


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
    """Return the ball of radius 1, which all balls share."""
    angle = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 14)[1:-1]
    return _lathe(np.cos(angle), np.sin(angle), (-1.0, 1.0), 24)


def _lathe(radii: Array, heights: Array, ends: tuple[float, float], sides: int) -> tuple[Array, Faces]:
    """Return a closed surface about z: rings of these radii and heights, from below, and a point at each end."""
    around = np.linspace(0.0, 2.0 * math.pi, sides, endpoint=False)
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(sides)], axis=1)
    rings = radii[:, None, None] * circle + heights[:, None, None] * (0.0, 0.0, 1.0)
    vertices = np.concatenate([rings.reshape(-1, 3), [(0.0, 0.0, ends[0]), (0.0, 0.0, ends[1])]])
    i = np.arange(sides)
    j = np.roll(i, -1)
    below = sides * np.arange(len(radii) - 1)[:, None]
    a, b, c, d = below + i, below + j, below + sides + j, below + sides + i  # corners of the quads between two rings
    low, high = np.full(sides, len(vertices) - 2), np.full(sides, len(vertices) - 1)
    top = sides * (len(radii) - 1)
    corners = [(a, b, c), (a, c, d), (low, j, i), (high, top + i, top + j)]
    return vertices, np.concatenate([np.stack(three, axis=-1).reshape(-1, 3) for three in corners])
