"""Contacts: frames in which points of feet are planted, and the height of the ground there; for clips or live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array, Bools

Spans = list[tuple[int, int]]
FASTEST: Final = 0.75  # leg lengths per second: faster feet are not planted
# percentile of a point's heights that counts as its ground if the point is never in contact
LOW: Final = 5.0
# quantile of heights and of speeds below which a foot may be in contact; less than the share of contact in a walk
_QUANTILE: Final = 0.34
_GAP: Final = 0.06  # seconds: shorter gaps in a contact are noise
_FEW: Final = 3  # frames: gaps that are shorter than this are noise at any frame rate
_HERE: Final = 0.01  # fraction of the extent of a point's path: positions that are nearer count as equal
# seconds by which a contact is extended at each end, because it lasts longer than the frames that look still
_AROUND: Final = 0.012
_LEVEL: Final = 0.05  # leg lengths: a point on the ground is at most this far above its lowest positions
# leg lengths per second: a point on the ground that is slower is in contact, whatever the quantile of speeds
_STILL: Final = 0.1
_LOWEST: Final = 0.02  # quantile of a point's heights that counts as its ground
_SPAN: Final = 0.03  # seconds before and after a frame over which the speed for ``_STILL`` is measured
_SHORTEST: Final = 0.05  # seconds: shorter contacts are feet that swing low

# thresholds of ``ContactWatch``; in each pair, the first one starts a contact and the second one ends it
_NOW_LOW: Final = (0.06, 0.12)  # leg lengths: height above the ground
_NOW_SLOW: Final = (0.25, 0.33)  # leg lengths per second: speed
_NOW_SPAN: Final = 0.025  # seconds over which the speed is measured
# leg lengths and seconds: a point that is lower than this, and slow for this time, is also in contact
_TIPTOE: Final = (0.25, 0.03)
# leg lengths per second and seconds: a point that is slower than this for this time is in contact at any height
_RESTS: Final = (0.12, 0.15)


@dataclass(frozen=True, eq=False, slots=True)
class Contacts:
    """Contacts of points of feet over time.

    Args:
        stands: Mask of the frames in which each point is in contact, (T, n).
    """

    stands: Bools

    @property
    def spans(self) -> list[Spans]:
        """The contacts of each point, each as (first frame, end)."""
        return [runs(column) for column in self.stands.T]

    @property
    def any(self) -> Bools:
        """Mask of the frames in which at least one point is in contact, (T,)."""
        return np.asarray(self.stands.any(axis=1))

    def of(self, counts: Sequence[int]) -> Bools:
        """Return a mask of frames with contact of each foot, (T, feet); ``counts``: number of points of each foot."""
        firsts = np.cumsum([0, *counts[:-1]])
        return np.logical_or.reduceat(self.stands, firsts, axis=1) if len(counts) else self.stands[:, :0]

    def ground(self, heights: Array) -> Array:
        """Return the height of the ground below each point, (n,), given heights (T, n) of points of the same feet.

        It is the median of the point's heights during contact; without contact, a low percentile of its heights.
        """
        out = np.percentile(heights, LOW, axis=0)
        for k in np.flatnonzero(self.stands.any(axis=0)).tolist():
            out[k] = np.median(heights[self.stands[:, k], k])
        return out


def find_contacts(places: Array, up: Array, fps: float, leg: float | None = None, *, causal: bool = False) -> Contacts:
    """Find when points touch the ground: they are low and slow relative to their other frames, or still on the ground.

    A long stand at the beginning may use up the quantile of slow frames. So a point that is still on the ground is in
    contact too. Short gaps are closed; then each contact is extended a little. When a foot in the air reverses, its
    mean speed around a frame is also small. So at least one of the two adjacent steps must be slow as well.

    Args:
        places: World positions of the points, (T, n, 3).
        up: Direction away from the ground, (3,).
        fps: Frames per second.
        leg: Length of a leg, to which limits of speed and height are relative; None for feet that may slide at any
            speed and touch the ground for a moment.
        causal: Whether contacts are found frame by frame without later frames, as in ``ContactWatch``.
    """
    if causal and leg is not None:
        watch = ContactWatch(np.percentile(places @ up, LOW, axis=0), up, leg, fps)
        return Contacts(np.array([watch.look(points).copy() for points in places]).reshape(places.shape[:2]))
    if len(places) < 2:
        return Contacts(np.zeros(places.shape[:2], bool))
    fastest = np.inf if leg is None else FASTEST * leg / fps
    height, speed = places @ up, np.linalg.norm(np.gradient(places, axis=0), axis=-1)
    slow = np.linalg.norm(np.diff(places, axis=0), axis=-1) <= fastest
    stands = (
        (height <= np.quantile(height, _QUANTILE, axis=0))
        & (speed <= np.minimum(np.quantile(speed, _QUANTILE, axis=0), fastest))
        & (np.pad(slow, ((1, 0), (0, 0))) | np.pad(slow, ((0, 1), (0, 0))))
    )
    if leg is not None:
        stands |= _still(places, height, fps, leg)
    least = max(_FEW, round(_GAP * fps))
    around = max(1, round(_AROUND * fps))
    for k in range(stands.shape[1]):
        stands[:, k] = _without_gaps(stands[:, k], least, places[:, k])
        for _ in range(around):
            wider = stands[:, k].copy()
            wider[1:] |= stands[:-1, k] & slow[:, k]
            wider[:-1] |= stands[1:, k] & slow[:, k]
            stands[:, k] = wider
        for first, end in runs(stands[:, k]) if leg is not None else ():
            if end - first < _SHORTEST * fps:
                stands[first:end, k] = False
    return Contacts(stands)


def _still(places: Array, height: Array, fps: float, leg: float) -> Bools:
    """Return a mask (T, n) of where points (T, n, 3) are still on the ground; limits are relative to the leg."""
    span, frames = max(1, round(_SPAN * fps)), np.arange(len(places))
    after, before = np.minimum(frames + span, len(places) - 1), np.maximum(frames - span, 0)
    speed = np.linalg.norm(places[after] - places[before], axis=-1) * (fps / (after - before))[:, None]
    return (speed <= _STILL * leg) & (height <= np.quantile(height, _LOWEST, axis=0) + _LEVEL * leg)


def _without_gaps(flags: Bools, least: int, places: Array) -> Bools:
    """Close gaps of fewer frames than ``least`` if the point is at the same place before and after the gap."""
    out = flags.copy()
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    for first, last in runs(~flags):
        if not (last - first < least and first > 0 and last < len(flags)):
            continue
        if np.linalg.norm(places[last] - places[first - 1]) < _HERE * extent:
            out[first:last] = True
    return out


class ContactWatch:
    """Finds contacts of points live: frame by frame, without later frames.

    A contact of a point begins when it is low and slow, and ends when it is clearly higher or faster.

    Args:
        grounds: Height of each point while it is planted, (n,).
        up: Direction away from the ground, (3,).
        leg: Length of a leg, length units.
        fps: Frames per second.

    Attributes:
        stands: Mask of the points that are in contact, (n,).
    """

    def __init__(self, grounds: Array, up: Array, leg: float, fps: float) -> None:
        """Convert the thresholds to length units and frames."""
        from synovia.kernels.pursuit import feet

        self._watch = feet.watch_contacts
        span = max(1, round(_NOW_SPAN * fps))
        self._up = up[None].astype(np.float64)
        highest = (*_NOW_LOW, _TIPTOE[0])
        self._thresholds = grounds[:, None] + leg * np.array(highest)
        motions = np.array((*_NOW_SLOW, _RESTS[0])) * leg * span / fps
        self._settings = np.array([*motions, *(max(1, round(time * fps)) for time in (_TIPTOE[1], _RESTS[1]))])
        self._before = np.empty((span, len(grounds), 3))
        self._state = np.empty((len(grounds), feet.WATCH_STATE))
        self._stands = self._state[:, feet.STANDS]
        self.reset()

    def reset(self) -> None:
        """Discard the previous frames."""
        self._seen = 0
        self._state[:], self._before[:] = 0.0, np.inf
        self.stands: Bools = np.zeros(len(self._state), bool)

    def look(self, places: Array) -> Bools:
        """Return a mask of the points that are in contact in the next frame, (n,), given their positions, (n, 3)."""
        k = self._seen % len(self._before)
        self._seen += 1
        self._watch(
            np.ascontiguousarray(places), self._before[k], self._up, self._thresholds, self._settings, self._state
        )
        self.stands = self._stands > 0.0
        return self.stands
