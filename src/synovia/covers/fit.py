"""Fit capsules that contain the surface of a body: for each joint, one or more around its triangles.

A capsule is convex, so if it contains the corners of triangles, it contains the triangles. The cover has no gap: every
triangle is in a capsule of its joint. A joint starts with one capsule. If a capsule extends too far beyond the surface,
its triangles are divided in two, and each half gets its own capsule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from synovia.covers.skin import Outside, Skin
from synovia.model.geometry import Array
from synovia.model.shapes.solids import Capsule

_DIRECTIONS: Final = 32
_CENTRED: Final = 12  # iterations to find the smallest circle around the points projected along each direction
_OUTER: Final = 96  # number of directions: extreme points along them determine the line, all points its ends
_TRIES: Final = (120, 60)  # function evaluations of the search with large and with small steps
_ROOM: Final = 1e-9  # fraction of the size added to the radius, so that rounding leaves no point outside
OVERHANG: Final = 0.012  # fraction of the surface's extent: capsules that extend farther beyond the surface are divided
MOST: Final = 4  # largest number of capsules of a joint
_PROBES: Final = 200  # number of points on a capsule, to measure its overhang
_SAMPLES: Final = 30_000  # number of points of the surface, to measure overhangs
_CUTS: Final = (0.35, 0.5, 0.65)  # positions at which triangles may be divided, as fractions of their extent
_BETTER: Final = 0.95  # factor by which the overhang must shrink for a larger number of capsules to be used


class _Piece(NamedTuple):
    """Triangles of a joint, with the capsule around them."""

    faces: NDArray[np.int64]
    pill: Pill


def fit_capsules(skin: Skin, overhang: float, most: int = MOST) -> dict[int, list[Capsule]]:
    """Fit capsules that contain a surface; return them by joint row, in the frame of the joint.

    Args:
        skin: The surface.
        overhang: Length units by which a capsule may extend beyond the surface before it is divided.
        most: Largest number of capsules of a joint.
    """
    outside = Outside(skin, _SAMPLES, np.random.default_rng(0))
    found: dict[int, list[_Piece]] = {}
    for row in np.unique(skin.rows).tolist():
        found[row] = [_around(skin, np.flatnonzero(skin.rows == row))]

    def others(row: int) -> list[Pill]:
        return [piece.pill for other, pieces in found.items() if other != row for piece in pieces]

    outs = {row: _overhang(pieces[0].pill, others(row), outside) for row, pieces in found.items()}
    for row in sorted(outs, key=lambda row: -outs[row]):
        found[row] = _divided(skin, found[row][0], outside, others(row), overhang, most)
    inverse = np.linalg.inv(skin.frames).astype(np.float64)
    shapes: dict[int, list[Capsule]] = {}
    for row, pieces in found.items():
        pills = [piece.pill for piece in pieces]
        shapes[row] = [Capsule(a=pill.a, b=pill.b, radius=pill.radius).moved(inverse[row]) for pill in pills]
    return shapes


def _around(skin: Skin, faces: NDArray[np.int64], *, fine: bool = True) -> _Piece:
    """Return a piece: triangles of a joint, with a small capsule around them."""
    return _Piece(faces, smallest_pill(skin.corners[faces].reshape(-1, 3), fine=fine))


def _divided(
    skin: Skin, piece: _Piece, outside: Outside, others: list[Pill], overhang: float, most: int
) -> list[_Piece]:
    """Divide the piece of a joint while the largest overhang is too large and a division reduces it."""
    pieces, best, least = [piece], [piece], np.inf
    while True:
        outs = _overhangs(pieces, others, outside)
        if max(outs) < _BETTER * least:
            best, least = pieces, max(outs)
        if least <= overhang or len(pieces) == most:
            return best
        worst = int(np.argmax(outs))
        rest = [pieces[k] for k in range(len(pieces)) if k != worst]
        halves = _halves(skin, pieces[worst], outside, [*others, *(other.pill for other in rest)])
        if not halves:
            return best
        pieces = [*rest, *halves]


def _halves(skin: Skin, piece: _Piece, outside: Outside, others: list[Pill]) -> list[_Piece]:
    """Return the two halves of a piece with the smallest overhangs; none if the piece cannot be divided."""
    middles = skin.corners[piece.faces].mean(axis=1)
    rel = middles - middles.mean(axis=0)
    best: list[NDArray[np.int64]] = []
    least = np.inf
    for axis in np.linalg.eigh(rel.T @ rel)[1].T:
        along = middles @ axis
        low, high = float(along.min()), float(along.max())
        for cut in _CUTS:
            first = along < low + cut * (high - low)
            if first.all() or not first.any():
                continue
            halves = [_around(skin, piece.faces[side], fine=False) for side in (first, ~first)]
            outs = _overhangs(halves, others, outside)
            found = max(outs) + sum(outs)
            if found < least:
                best, least = [half.faces for half in halves], found
    return [_around(skin, half) for half in best]


def _overhangs(pieces: list[_Piece], others: list[Pill], outside: Outside) -> list[float]:
    """Return the overhang of each piece beyond the surface, the other pieces and other capsules."""
    pills = [piece.pill for piece in pieces]
    return [_overhang(pill, [*others, *pills[:k], *pills[k + 1 :]], outside) for k, pill in enumerate(pills)]


def _overhang(pill: Pill, others: list[Pill], outside: Outside) -> float:
    """Return the largest distance by which a capsule extends beyond the surface and other capsules."""
    probes = on_pill(pill)
    for other in others:
        if other.touches(pill):
            probes = probes[other.distances(probes) > 0.0]
    return outside.farthest(probes)


def on_pill(pill: Pill) -> Array:
    """Return points spread evenly over a capsule, (n, 3)."""
    k = np.arange(_PROBES) + 0.5
    way = pill.b - pill.a
    length = float(np.linalg.norm(way))
    d = way / length if length > 0.0 else np.array((0.0, 0.0, 1.0))
    u = np.cross(d, np.eye(3)[np.abs(d).argmin()])
    u /= np.linalg.norm(u)
    v = np.cross(d, u)
    r = pill.radius
    z = (k / _PROBES) * (length + 2.0 * r) - r  # equal height steps have equal areas
    beyond = np.where(z < 0.0, z, np.where(z > length, z - length, 0.0))
    across = np.sqrt(np.maximum(r * r - beyond * beyond, 0.0))
    angle = np.pi * (1.0 + np.sqrt(5.0)) * k
    return pill.a + z[:, None] * d + across[:, None] * (np.cos(angle)[:, None] * u + np.sin(angle)[:, None] * v)


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
    """For each direction, (m, 3), return a point of the line with nearly the smallest largest distance from the points.

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
    """Return the volumes, divided by π, of capsules around points, with axes along d through c, (m, 3) each."""
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
