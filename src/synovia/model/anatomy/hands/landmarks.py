"""The 21 landmarks of a hand, in the order of MediaPipe and MANO: the points of each finger, and the palm's frame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, as_numbers, cross

COUNT: Final = 21
WRIST: Final = 0
# Points of each finger from base to tip: the knuckle first; of a thumb the joint at the wrist
FINGER_POINTS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "thumb": (1, 2, 3, 4),
        "index": (5, 6, 7, 8),
        "middle": (9, 10, 11, 12),
        "ring": (13, 14, 15, 16),
        "little": (17, 18, 19, 20),
    }
)
KNUCKLES: Final = tuple(points[0] for finger, points in FINGER_POINTS.items() if finger != "thumb")
_FANNED: Final = (1.0, 1.0 / 3.0, -1.0 / 3.0, -1.0)  # of the knuckles: weights of the slope of a line through them
_STRAIGHT: Final = 0.1  # fingers bend less than this, summed over four of them, radians: they tell no side


def palm_of(points: Any, side: str | None = None) -> Array:
    """Return the frame of the palm of 21 landmarks in each frame, with the axes of ``Hand.frame``.

    The origin is the mean of the four knuckles, y points there from the wrist, and z out of the palm: at right angles
    to y and to the line of the knuckles. x = y × z, which is on the thumb's side of a right hand.

    Args:
        points: The landmarks, (T, 21, 3), in any unit; NaN where one was not seen.
        side: ``"left"`` or ``"right"``, which decides where z points; None to find it, see ``side_of``.

    Returns:
        Frames (T, 4, 4) in the axes of the points; NaN where the wrist or a knuckle was not seen, or they are in line.
        Knuckles that are never seen are left out.

    Raises:
        InputError: If the shape is wrong, or there is no such side.
    """
    places = hand_points(points)
    if side is not None and side not in SIDES:
        raise InputError("side", value=side, expected="'left', 'right' or None")
    along, out = _plane(places)
    out = out if (side or side_of(places)) == "right" else -out
    frames = np.zeros((len(places), 4, 4))
    frames[:, :3, 0], frames[:, :3, 1], frames[:, :3, 2] = np.cross(along, out), along, out
    frames[:, :3, 3], frames[:, 3, 3] = places[:, _knuckles(places)].mean(1), 1.0
    frames[np.isnan(frames[:, :3]).any((1, 2)), :3] = np.nan
    return frames


def palm_frame(points: Array, side: str) -> Array:
    """Return the frame of the palm of one frame of landmarks, (4, 4), as ``palm_of``, at a fraction of its time.

    Args:
        points: The landmarks, (21, 3); wrist and knuckles are seen.
        side: ``"left"`` or ``"right"``.

    Returns:
        The frame; NaN where wrist and knuckles are in line.
    """
    wx, wy, wz = points[WRIST].tolist()
    places: list[list[float]] = [points[k].tolist() for k in KNUCKLES]
    mean = [sum(place[i] for place in places) / len(places) for i in range(3)]
    across = [sum(c * place[i] for c, place in zip(_FANNED, places, strict=True)) for i in range(3)]
    along = _unit_of(mean[0] - wx, mean[1] - wy, mean[2] - wz)
    out = _unit_of(*_cross_of(across, along))
    if side == "left":
        out = (-out[0], -out[1], -out[2])
    x = _cross_of(along, out)
    return np.array([*zip(x, along, out, mean, strict=True), (0.0, 0.0, 0.0, 1.0)])


def side_of(points: Any) -> str:
    """Return whether 21 landmarks are those of a left or a right hand: fingers bend to the side of the palm.

    All frames count together: the sum of the sines of the angles by which segments of the four fingers bend.
    Straight fingers tell nothing; then the tip of the thumb, which is on the side of the palm too, decides.

    Args:
        points: The landmarks, (T, 21, 3), in any unit; NaN where one was not seen.

    Raises:
        InputError: If the shape is wrong.
    """
    places = hand_points(points)
    along, out = _plane(places)
    bends = np.cross(along, out)  # the axis about which the fingers of a right hand bend
    total = 0.0
    for finger, rows in FINGER_POINTS.items():
        if finger != "thumb":
            ways = np.concatenate([along[:, None], _unit(np.diff(places[:, rows], axis=1))], axis=1)
            total += float(np.nansum(np.sum(np.cross(ways[:, :-1], ways[:, 1:]) * bends[:, None], axis=-1)))
    if abs(total) < _STRAIGHT * max(int(np.isfinite(along[:, 0]).sum()), 1):
        tips = places[:, FINGER_POINTS["thumb"][-1]] - places[:, _knuckles(places)].mean(1)
        total = float(np.nansum(np.sum(tips * out, axis=-1)))
    return "right" if total >= 0.0 else "left"


def hand_points(points: Any) -> Array:
    """Return 21 landmarks as numbers, (T, 21, 3), NaN where one was not seen.

    Raises:
        InputError: If the shape is wrong.
    """
    places = as_numbers(points, (-1, COUNT, 3), "points", finite=False)
    return np.where(np.isfinite(places).all(2, keepdims=True), places, np.nan)


def palm_axes(wrist: Array, knuckles: Array) -> tuple[Array, Array]:
    """Return the direction from a wrist to the knuckles, and the normal that leaves the palm of a right hand.

    The normal is at right angles to the line of the knuckles (by least squares). Both are (..., 3), NaN where the
    points are in line.

    Args:
        wrist: Places of the wrist, (..., 3).
        knuckles: Places of two knuckles or more, (..., K, 3), from the index finger to the little finger.
    """
    along = _unit(knuckles.mean(-2) - wrist)
    count = knuckles.shape[-2]
    across = np.sum(np.linspace(1.0, -1.0, count)[:, None] * knuckles, axis=-2)
    return along, _unit(cross(across, along))


def _plane(places: Array) -> tuple[Array, Array]:
    """Return the axes of the palm in each frame, as ``palm_axes``."""
    return palm_axes(places[:, WRIST], places[:, _knuckles(places)])


def _knuckles(places: Array) -> list[int]:
    """Return the knuckles that are seen in some frame; all if these are fewer than two."""
    seen = [k for k in KNUCKLES if np.isfinite(places[:, k]).any()]
    return seen if len(seen) > 1 else list(KNUCKLES)


def _cross_of(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Return the cross product of two vectors."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _unit_of(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return a vector of length 1; NaN for one without length."""
    length = math.sqrt(x * x + y * y + z * z)
    return (x / length, y / length, z / length) if length > 0.0 else (math.nan, math.nan, math.nan)


def _unit(v: Array) -> Array:
    """Return vectors (..., 3) of length 1; NaN for those without length."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return v / np.where(length > 0.0, length, np.nan)
