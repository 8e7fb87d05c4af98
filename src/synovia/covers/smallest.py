"""Find the capsule of smallest volume around points.

A capsule around points has a line, a radius R and two ends. Points at the height z and the distance d from the line are
inside if the lower end is at most z + √(R² - d²), and the upper one at least z - √(R² - d²). So the line determines R
and the ends, and the volume is a function of only the line, that is, of four parameters. Lines along many directions
near the middle of the points are tried, and the best line is improved by the Nelder-Mead method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

import numpy as np

from synovia.model.geometry import Array

_DIRECTIONS: Final = 32
_CENTRED: Final = 12  # iterations towards the smallest circle around the points, projected along each direction
_OUTER: Final = 96  # number of directions whose extreme points determine the line; all points determine the ends
_TRIES: Final = (120, 60)  # function evaluations of the search with large and with small steps
_ROOM: Final = 1e-9  # fraction of the size added to the radius, so that rounding leaves no point outside


@dataclass(frozen=True, slots=True, eq=False)
class Pill:
    """A capsule: the ends of its axis, (3,), and its radius."""

    a: Array
    b: Array
    radius: float

    @property
    def volume(self) -> float:
        """Volume of the capsule."""
        length = math.dist(self.a.tolist(), self.b.tolist())
        return math.pi * self.radius**2 * (length + 4.0 / 3.0 * self.radius)

    def touches(self, other: Pill) -> bool:
        """Return whether two capsules may overlap, by their bounding spheres."""
        apart = math.dist((self.a + self.b).tolist(), (other.a + other.b).tolist())
        lengths = math.dist(self.a.tolist(), self.b.tolist()) + math.dist(other.a.tolist(), other.b.tolist())
        return apart <= lengths + 2.0 * (self.radius + other.radius)

    def distances(self, points: Array) -> Array:
        """Return the signed distances of points (n, 3); negative inside."""
        way = self.b - self.a
        square = float(way @ way)
        rel = points - self.a
        t = np.clip(rel @ way / square, 0.0, 1.0) if square > 0.0 else np.zeros(len(points))
        return np.linalg.norm(rel - t[:, None] * way, axis=1) - self.radius


def smallest_pill(points: Array, *, fine: bool = True) -> Pill:
    """Return a capsule around points with nearly the smallest volume.

    Args:
        points: The points, (n, 3), at least one.
        fine: Whether to improve the line by a search; otherwise the best line of a fixed set is used.
    """
    middle = points.mean(axis=0)
    own = points - middle
    size = float(np.abs(own).max())
    if size == 0.0:
        return Pill(middle, middle, 0.0)
    own = own / size
    outer = _farthest(own)
    directions = np.concatenate([np.linalg.eigh(outer.T @ outer)[1].T, _hemisphere(_DIRECTIONS)])
    centers = _centers(outer, directions)
    volumes = _volumes(outer, directions, centers)
    best = int(volumes.argmin())
    d, c = directions[best], centers[best]
    if fine:
        d, c = _improved(outer, d, c)
    a, b, radius = _ends(own, d, c)
    return Pill(middle + size * a, middle + size * b, size * radius)


def _farthest(points: Array) -> Array:
    """Return the extreme points along a fixed set of directions."""
    along = _hemisphere(_OUTER) @ points.T
    outer: Array = points[np.unique([along.argmax(axis=1), along.argmin(axis=1)])]
    return outer


@cache
def _hemisphere(count: int) -> Array:
    """Return directions spread evenly over a hemisphere, (count, 3)."""
    k = np.arange(count) + 0.5
    z: Array = k / count
    angle = math.pi * (1.0 + math.sqrt(5.0)) * k
    return np.stack([np.sqrt(1.0 - z * z) * np.cos(angle), np.sqrt(1.0 - z * z) * np.sin(angle), z], axis=1)


def _across(d: Array) -> Array:
    """Return two unit vectors normal to each direction, (m, 2, 3)."""
    other = np.eye(3)[np.abs(d).argmin(axis=1)]
    u: Array = np.cross(d, other)
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v: Array = np.cross(d, u)
    return np.stack([u, v], axis=1)


def _centers(points: Array, directions: Array) -> Array:
    """Return points of lines along directions (m, 3) with nearly the smallest largest distance from the points.

    References:
        M. Bădoiu, K. Clarkson, "Smaller core-sets for balls", SODA 2003.
    """
    across = _across(directions)
    seen = np.einsum("mki,ni->mnk", across, points)
    center = 0.5 * (seen.min(axis=1) + seen.max(axis=1))
    at = np.arange(len(directions))
    for step in range(_CENTRED):
        rel = seen - center[:, None]
        far = (rel * rel).sum(axis=2).argmax(axis=1)
        center += rel[at, far] / (step + 4.0)
    return np.einsum("mk,mki->mi", center, across)


def _volumes(points: Array, d: Array, c: Array) -> Array:
    """Return the volumes, divided by π, of the capsules around points along lines with directions d through c."""
    z = points @ d.T - (c * d).sum(axis=1)
    square = (points * points).sum(axis=1)[:, None] - 2.0 * points @ c.T + (c * c).sum(axis=1)
    apart = np.maximum(square - z * z, 0.0)
    wide = apart.max(axis=0)
    half = np.sqrt(wide - apart)
    length = np.maximum((z - half).max(axis=0) - (z + half).min(axis=0), 0.0)
    return wide * (length + 4.0 / 3.0 * np.sqrt(wide))


def _improved(points: Array, d: Array, c: Array) -> tuple[Array, Array]:
    """Search for the best line from a start line; return its direction and a point on it."""
    from scipy import optimize

    minimize: Any = cast("Any", optimize).minimize

    u, v = _across(d[None])[0]

    def line(x: Array) -> tuple[Array, Array]:
        turned = d + x[0] * u + x[1] * v
        return turned / math.sqrt(float(turned @ turned)), c + x[2] * u + x[3] * v

    def volume(x: Array) -> float:
        turned, center = line(x)
        return float(_volumes(points, turned[None], center[None])[0])

    x: Array = np.zeros(4)
    for step, tries in zip((0.1, 0.02), _TRIES, strict=True):
        simplex = np.concatenate([x[None], x + step * np.eye(4)])
        options = {"initial_simplex": simplex, "maxfev": tries, "xatol": 1e-4, "fatol": 1e-6}
        found: Any = minimize(volume, x, method="Nelder-Mead", options=options)
        x = np.asarray(found.x, np.float64)
    return line(x)


def _ends(points: Array, d: Array, c: Array) -> tuple[Array, Array, float]:
    """Return the ends and the radius of the capsule around points along a line."""
    rel = points - c
    z = rel @ d
    apart = np.linalg.norm(rel - z[:, None] * d, axis=1)
    radius = float(apart.max())
    half = np.sqrt(np.maximum(radius * radius - apart * apart, 0.0))
    low, high = float((z + half).min()), float((z - half).max())
    if low > high:
        low = high = 0.5 * (low + high)
    return c + low * d, c + high * d, radius + _ROOM
