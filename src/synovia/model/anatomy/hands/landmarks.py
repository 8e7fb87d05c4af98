"""The 21 landmarks of a hand, in the order of MediaPipe and MANO: points of fingers, side, and frame of the palm."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.errors import InputError
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, Bools, as_numbers, cross, magnitudes

COUNT: Final = 21
WRIST: Final = 0
# landmarks of each finger from base to tip; the first is the knuckle, for a thumb the joint at the wrist
FINGER_POINTS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "thumb": (1, 2, 3, 4),
        "index": (5, 6, 7, 8),
        "middle": (9, 10, 11, 12),
        "ring": (13, 14, 15, 16),
        "little": (17, 18, 19, 20),
    }
)
_FINGERS: Final = tuple(points for finger, points in FINGER_POINTS.items() if finger != "thumb")
KNUCKLES: Final = tuple(points[0] for points in _FINGERS)
# sum of the sines of bends beyond the knuckles that clearly shows a side, as only knuckles can bend far back
_CLEARLY: Final = 1.0
_STRAIGHT: Final = 0.1  # radians, summed over four fingers: fingers that bend less do not show the side


def palm_of(points: Any, side: str | None = None) -> Array:
    """Return the frame of the palm for 21 landmarks in each frame, with the axes of ``Hand.frame``.

    The origin is the mean of the four knuckles. y points from the wrist to the origin, and z out of the palm:
    perpendicular to y and to the line of the knuckles. x = y × z is on the thumb's side of a right hand.

    Args:
        points: The landmarks, (T, 21, 3), in any unit; NaN for hidden landmarks.
        side: ``"left"`` or ``"right"``, which determines the direction of z; None to find the side, see ``side_of``.

    Returns:
        Frames (T, 4, 4) in the axes of the points; NaN if the wrist or a knuckle is hidden, or if they are in line.
        Knuckles that are hidden in all frames are ignored.

    Raises:
        InputError: If the shape is wrong, or there is no such side.
    """
    places = hand_points(points)
    if side is not None and side not in SIDES:
        raise InputError("side", value=side, expected="'left', 'right' or None")
    palm = _plane(places)
    return _frames(*palm, side or _bent_to(places, _bends(places, *palm[:2]), *palm))


class Palms(NamedTuple):
    """The palm of 21 landmarks in each frame.

    Attributes:
        frames: Frames of the palm, (T, 4, 4), see ``palm_of``.
        side: Side of the hand, see ``side_of``.
        others: Frames in which the fingers clearly bend as on a hand of the other side.
    """

    frames: Array
    side: str
    others: tuple[int, ...]


def palms_and_side_of(places: Array, side: str | None = None) -> Palms:
    """Return palms and side for landmarks from ``hand_points``, (T, 21, 3); ``palm_of`` describes ``side``."""
    palm = _plane(places)
    bends = _bends(places, *palm[:2])
    found = _bent_to(places, bends, *palm)
    chosen = side or found
    inner = bends[:, 1]
    others = np.flatnonzero((-inner if chosen == "right" else inner) > _CLEARLY)
    return Palms(_frames(*palm, chosen), found, tuple(others.tolist()))


def side_of(points: Any) -> str:
    """Return the side of a hand with 21 landmarks, ``"left"`` or ``"right"``: fingers bend towards the palm.

    The sum of the sines of the bends of four fingers, over all frames, shows the side. If the fingers are straight, the
    tip of the thumb shows it, because it is also on the palm's side.

    Args:
        points: The landmarks, (T, 21, 3), in any unit; NaN for hidden landmarks.

    Raises:
        InputError: If the shape is wrong.
    """
    places = hand_points(points)
    palm = _plane(places)
    return _bent_to(places, _bends(places, *palm[:2]), *palm)


def _bends(places: Array, along: Array, out: Array) -> Array:
    """Return the bends of the four fingers towards a right hand's palm, at the knuckles and beyond, (T, 2).

    The bends are sums of sines; hidden segments count as straight. ``along`` and ``out`` are the axes of the palm from
    ``_plane``.
    """
    bends = cross(along, out)  # axis about which the fingers of a right hand bend
    first = np.broadcast_to(along[:, None, None], (len(places), len(_FINGERS), 1, 3))
    ways = np.concatenate([first, _unit(np.diff(places[:, _FINGERS], axis=2))], axis=2)
    sines = cross(ways[:, :, :-1], ways[:, :, 1:])
    each = np.nansum(np.einsum("tfki,ti->tfk", sines, bends), axis=1)
    return np.stack([each[:, 0], each[:, 1:].sum(1)], axis=1)


def _bent_to(places: Array, bends: Array, along: Array, out: Array, origin: Array) -> str:
    """Return the side of a hand (see ``side_of``) from the results of ``_bends``, (T, 2), and of ``_plane``."""
    total = float(bends.sum())
    if abs(total) < _STRAIGHT * max(int(np.isfinite(along[:, 0]).sum()), 1):
        tips = places[:, FINGER_POINTS["thumb"][-1]] - origin
        total = float(np.nansum(np.sum(tips * out, axis=-1)))
    return "right" if total >= 0.0 else "left"


def hand_points(points: Any) -> Array:
    """Return 21 landmarks as an array, (T, 21, 3), with NaN for hidden landmarks.

    Raises:
        InputError: If the shape is wrong.
    """
    places = as_numbers(points, (-1, COUNT, 3), "points", finite=False)
    finite = np.isfinite(places)
    seen: Bools = finite[..., 0] & finite[..., 1] & finite[..., 2]
    if not seen.all():
        places[~seen] = np.nan
    return places


def palm_axes(wrist: Array, knuckles: Array) -> tuple[Array, Array]:
    """Return the direction from wrist to knuckles, and the normal out of a right hand's palm, (..., 3) each.

    The normal is perpendicular to the line of the knuckles, by least squares. Both are NaN if the points are in line.

    Args:
        wrist: Positions of the wrist, (..., 3).
        knuckles: Positions of two or more knuckles, (..., K, 3), from the index finger to the little finger.
    """
    along = _unit(knuckles.mean(-2) - wrist)
    count = knuckles.shape[-2]
    across = np.sum(np.linspace(1.0, -1.0, count)[:, None] * knuckles, axis=-2)
    return along, _unit(cross(across, along))


def _plane(places: Array) -> tuple[Array, Array, Array]:
    """Return the axes of the palm (see ``palm_axes``) and the mean of the knuckles in each frame, (T, 3) each."""
    knuckles = places[:, _knuckles(places)]
    return *palm_axes(places[:, WRIST], knuckles), knuckles.mean(1)


def _frames(along: Array, out: Array, origin: Array, side: str) -> Array:
    """Return the frames (T, 4, 4) of a palm from its axes, origin and side; NaN where these are unknown."""
    out = out if side == "right" else -out
    frames = np.zeros((len(along), 4, 4))
    frames[:, :3, 0], frames[:, :3, 1], frames[:, :3, 2] = cross(along, out), along, out
    frames[:, :3, 3], frames[:, 3, 3] = origin, 1.0
    frames[np.isnan(frames[:, :3]).any((1, 2)), :3] = np.nan
    return frames


def _knuckles(places: Array) -> list[int]:
    """Return the knuckles that are visible in some frame; if fewer than two are, return all."""
    seen = [k for k in KNUCKLES if np.isfinite(places[:, k]).any()]
    return seen if len(seen) > 1 else list(KNUCKLES)


def _unit(v: Array) -> Array:
    """Return unit vectors (..., 3); NaN for zero vectors."""
    length = magnitudes(v)
    return v / np.where(length > 0.0, length, np.nan)[..., None]
