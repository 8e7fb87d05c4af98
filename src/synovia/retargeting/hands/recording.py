"""A recorded hand: 21 points over time with gaps filled; its side, palm and unit, pinches, and points as joints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.hands.palms import palms_of
from synovia.clips.points import confidence_of
from synovia.errors import InputError
from synovia.model import Joint, Kind
from synovia.model.anatomy.feet import frames_text, runs
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, KNUCKLES, WRIST, hand_points, palms_and_side_of
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, dimensions, magnitudes
from synovia.model.motion import Motion

_SHORT: Final = 0.3  # seconds: in gaps up to this length, points are filled in and keep some weight
_FILLED: Final = 0.5  # weight of points that were filled in
_PALM: Final = 0.09  # metres from an adult's wrist to the knuckle of the middle finger
_METRES: Final = (0.04, 0.15)  # metres: if this length is within this range, points are in metres
_LEAST: Final = 2  # least number of knuckles that define the palm together with the wrist
_MIDDLE: Final = FINGER_POINTS["middle"][0]
_NAMES: Final = {
    WRIST: "wrist", **{k: f"{finger} {n}" for finger, rows in FINGER_POINTS.items() for n, k in enumerate(rows)}
}  # fmt: skip
# parent of each point: the point before it on the finger; the wrist for the first point of a finger
_ABOVE: Final = {
    k: rows[n - 1] if n else WRIST for rows in FINGER_POINTS.values() for n, k in enumerate(rows)
}  # fmt: skip
CLOSED: Final = 0.02  # metres: recorded tips touch below this distance
OPEN: Final = 0.025  # metres: touching tips are apart again from this distance on
AWAY: Final = 0.04  # metres: if recorded tips are farther apart, tips of the hand that nearly touch are a false pinch
CLEAR: Final = 0.012  # metres: distance that tips of the hand keep to avoid a false pinch
ONSET: Final = 0.15  # seconds in which a pinch closes or opens


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A recorded hand.

    Attributes:
        places: The points, (T, 21, 3), in their own unit; gaps are filled.
        trust: Weight of each point, (T, 21): 1 where it was seen, 0 in long gaps.
        side: ``"left"`` or ``"right"``.
        palms: Frames of the palm, (T, 4, 4), with the axes of ``Hand.frame``.
        metre: Length units of the points per metre.
        notes: Sentences about values that were filled in or guessed.
        others: Frames in which the fingers clearly bend as on a hand of the other side.
    """

    places: Array
    trust: Array
    side: str
    palms: Array
    metre: float
    notes: tuple[str, ...]
    others: tuple[int, ...] = ()

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.places)

    def local(self) -> Array:
        """Return the points (T, 21, 3) in the frame of the palm."""
        R, p = self.palms[:, :3, :3], self.palms[:, :3, 3]
        x, y, z = np.moveaxis(self.places - p[:, None], -1, 0)
        axes = np.moveaxis(R[:, None], -1, 0)
        # fixed order of summation, because matrix products differ between machines
        return np.stack([x * at[..., 0] + y * at[..., 1] + z * at[..., 2] for at in axes], axis=-1)

    def known(self, finger: str) -> bool:
        """Return whether each point of a finger was seen in some frame."""
        return bool((self.trust[:, FINGER_POINTS[finger]] > 0.0).any(0).all())


def read_recording(points: Any, confidence: Any, side: str | None, fps: float) -> Recording:
    """Return a recording of 21 points over time.

    Args:
        points: (T, 21, 3), or (21, 3) for one frame; NaN where a point was not seen.
        confidence: (T, 21), (T,) or (21,), 0 for not seen; None for equal weights.
        side: ``"left"`` or ``"right"``; None to find it.
        fps: Frames per second, for the length of gaps.

    Raises:
        InputError: If shapes or values cannot be used, or too little of the palm is seen.
    """
    if side is not None and side not in SIDES:
        raise InputError("source_side", value=side, expected="'left', 'right' or None")
    given = np.asarray(points)[None] if dimensions(points) == 2 else points
    places = hand_points(given)
    if len(places) == 0:
        raise InputError("points", value=places.shape, expected=f"(T, {COUNT}, 3) with a frame or more")
    weights = _confidence(confidence, len(places))
    seen = np.isfinite(places[:, :, 0]) & (weights > 0.0)
    notes = list[str]()
    trust = np.where(seen, weights / max(float(weights.max()), 1e-300), 0.0)
    known: NDArray[np.bool_] = np.asarray(seen.any(0), np.bool_)
    if not known[WRIST] or known[list(KNUCKLES)].sum() < _LEAST:
        raise InputError(
            "points", value="wrist or knuckles never seen", expected=f"the wrist and {_LEAST} knuckles in some frames"
        )
    places, trust = _filled(places, seen, trust, _SHORT * fps, notes)
    shown = places if known.all() else np.where(known[None, :, None], places, np.nan)
    palms, found, others = palms_and_side_of(shown, side)
    if side is not None and side != found and len(places) > 1:
        notes.append(f"by its shape, the recorded hand would be a {found} one")
    if np.isnan(palms).any():
        frame = int(np.flatnonzero(np.isnan(palms).any((1, 2)))[0])
        raise InputError("points", where=f"frame {frame}", value="wrist and knuckles in line", expected="a palm")
    middle = _MIDDLE if known[_MIDDLE] else next(k for k in KNUCKLES if known[k])
    length = float(np.median(magnitudes(places[:, middle] - places[:, WRIST])))
    if not length > 0.0:
        raise InputError("points", value="a knuckle at the wrist", expected="a palm that has a length")
    metre = 1.0 if _METRES[0] <= length <= _METRES[1] else length / _PALM
    return Recording(places, trust, side or found, palms, metre, tuple(notes), others)


def _confidence(confidence: Any, count: int) -> Array:
    """Return the confidence of each point in each frame, (T, 21)."""
    if confidence is not None and np.shape(confidence) == (count,) and count != COUNT:
        confidence = np.repeat(np.asarray(confidence, np.float64)[:, None], COUNT, axis=1)
    return np.array(confidence_of(confidence, count, COUNT))


def _filled(
    places: Array, seen: NDArray[np.bool_], trust: Array, short: float, notes: list[str]
) -> tuple[Array, Array]:
    """Return the points with gaps interpolated, and their weights; append sentences about gaps to ``notes``.

    Interpolation is in the axes of the palm, so that a hidden finger moves with the hand.
    """
    if seen.all():
        return places, trust
    places, trust = np.where(seen[:, :, None], places, np.nan), trust.copy()
    palms = palms_of(places, [WRIST, *KNUCKLES], SIDES[0])
    turns, origins = (np.eye(3)[None], np.zeros((1, 3))) if palms is None else palms.everywhere(len(places))
    local = (places - origins[:, None]) @ turns
    times = np.arange(len(places))
    unseen = list[int]()
    for k in range(COUNT):
        there = seen[:, k]
        if there.all():
            continue
        if not there.any():
            unseen.append(k)
            continue
        for axis in range(3):
            local[~there, k, axis] = np.interp(times[~there], times[there], local[there, k, axis])
        edges = np.flatnonzero(np.diff(np.concatenate([[True], there, [True]]).astype(np.int8)))
        for first, end in edges.reshape(-1, 2).tolist():
            inner = first > 0 and end < len(places)
            trust[first:end, k] = _FILLED if inner and end - first <= short else 0.0
    places = np.where(seen[:, :, None], places, local @ np.swapaxes(turns, 1, 2) + origins[:, None])
    gone = np.flatnonzero(~seen.any(1))
    if len(gone):
        notes.append(f"the hand is not seen in {frames_text(tuple(gone.tolist()))}")
    elif not seen.all():
        notes.append(f"points are missing in {frames_text(tuple(np.flatnonzero(~seen.all(1)).tolist()))}")
    middle = np.nanmean(places, axis=1) if unseen else np.zeros(0)
    for k in unseen:
        places[:, k] = middle
    return places, trust


def with_points(motion: Motion, points: Array) -> Motion:
    """Return a motion with 21 more joints, which are at the points of a hand.

    Args:
        motion: The motion.
        points: Positions of the points in the world of the motion, (T, 21, 3).
    """
    body = motion.skeleton
    taken, joints = set(body.joint_names), list(body.joints)
    names = {k: name if name not in taken else f"recorded {name}" for k, name in _NAMES.items()}
    q = [np.array(motion.q)]
    for k in range(COUNT):
        above = _ABOVE.get(k)
        place = points[:, k] - (points[:, above] if above is not None else 0.0)
        rest = np.eye(4)
        rest[:3, 3] = place[0]  # as in the first frame: lines are drawn between joints that are apart at rest
        joints.append(Joint(names[k], None if above is None else names[above], Kind.FREE, rest))
        q.append(np.concatenate([place - place[0], np.tile((0.0, 0.0, 0.0, 1.0), (len(points), 1))], axis=1))
    return Motion(body.with_joints(joints), np.concatenate(q, axis=1), motion.fps, name=motion.name)


def closed_frames(apart: Array) -> NDArray[np.bool_]:
    """Return a mask of where recorded tips touch, (T, F), with hysteresis; ``apart``: distances (T, F), metres."""
    out = np.zeros(apart.shape, bool)
    for f in range(apart.shape[1]):
        low, high = apart[:, f] < CLOSED, apart[:, f] >= OPEN
        for first, end in runs(~high):
            begun = np.flatnonzero(low[first:end])
            if len(begun):
                out[first + int(begun[0]) : end, f] = True
    return out


def closing_shares(closed: NDArray[np.bool_], fps: float) -> Array:
    """Return how far each pinch is closed, (T, F), from 0 to 1; it closes smoothly before contact, and opens after."""
    width = max(1.0, ONSET * fps)
    out = np.zeros(closed.shape)
    for f in range(closed.shape[1]):
        for first, end in runs(closed[:, f]):
            part = slice(max(first - math.ceil(width), 0), end + math.ceil(width))
            times = np.arange(len(closed))[part]
            off = np.maximum(np.maximum(first - times, times - (end - 1)), 0) / width
            u = np.clip(1.0 - off, 0.0, 1.0)
            out[part, f] = np.maximum(out[part, f], u * u * (3.0 - 2.0 * u))
    return out
