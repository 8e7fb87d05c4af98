"""Fit capsules that contain the surface of a body: for each joint, one or more around its triangles.

A capsule is convex, so if it contains the corners of triangles, it contains the triangles. The cover has no gap: every
triangle is in a capsule of its joint. A joint starts with one capsule. If a capsule extends too far beyond the surface,
its triangles are divided in two, and each half gets its own capsule.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.covers.skin import Outside, Skin
from synovia.covers.smallest import Pill, smallest_pill
from synovia.model.geometry import Array
from synovia.model.shapes.solids import Capsule

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
    """Return the largest distance of a capsule beyond the surface and other capsules."""
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
