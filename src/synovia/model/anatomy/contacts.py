"""Contacts: when points of feet stand, and how high the ground is there, in a whole clip or as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array, Bools

Spans = list[tuple[int, int]]
FASTEST: Final = 0.75  # leg lengths per second; a faster foot does not stand
LOW: Final = 5.0  # percentile of a point's heights that is the ground of a point that never stands
# quantile of heights and speeds below which a foot may be in contact; less than a walking foot's share
_QUANTILE: Final = 0.34
_GAP: Final = 0.06  # seconds; a shorter gap in a contact is noise
_FEW: Final = 3  # a gap of fewer frames is noise at any frame rate
_HERE: Final = 0.01  # distance below which two positions are the same, as a fraction of the extent of the point's path
_AROUND: Final = 0.012  # seconds added at both ends of a contact, which lasts longer than its still frames
_LEVEL: Final = 0.05  # leg lengths: a point up to this height above its lowest positions is on the ground
# leg lengths per second; a slower point on the ground is in contact, regardless of the quantile of speeds
_STILL: Final = 0.1
_LOWEST: Final = 0.02  # quantile of heights that defines the ground of still points
_SPAN: Final = 0.03  # seconds before and after a frame over which this speed is measured
_SHORTEST: Final = 0.05  # seconds; a shorter contact is a foot that swings low

# As it happens, the next contact is not known; pairs are those at which a point starts and stops to stand
_NOW_LOW: Final = (0.06, 0.12)  # leg lengths above the ground
_NOW_SLOW: Final = (0.25, 0.4)  # leg lengths per second
_NOW_SPAN: Final = 0.025  # seconds over which a speed is measured
_TIPTOE: Final = (0.25, 0.03)  # leg lengths, seconds: a point that is slow for this time below this height also stands
_RESTS: Final = (0.12, 0.15)  # leg lengths per second, seconds: a point slower for this time stands at any height


@dataclass(frozen=True, eq=False, slots=True)
class Contacts:
    """When some points of feet stand.

    Args:
        stands: Mask of the frames in which each point stands, (T, n).
    """

    stands: Bools

    @property
    def spans(self) -> list[Spans]:
        """The contacts (first frame, end) of each point."""
        return [runs(column) for column in self.stands.T]

    @property
    def any(self) -> Bools:
        """Mask of the frames in which one of the points stands, (T,)."""
        return np.asarray(self.stands.any(axis=1))

    def of(self, counts: Sequence[int]) -> Bools:
        """Return when each foot stands, on any of its points, (T, feet), for the numbers of points of the feet."""
        firsts = np.cumsum([0, *counts[:-1]])
        return np.logical_or.reduceat(self.stands, firsts, axis=1) if len(counts) else self.stands[:, :0]

    def ground(self, heights: Array) -> Array:
        """Return the height of the ground below each point, (n,), from heights (T, n) of points of the same feet.

        It is the median while the point stands, and a low percentile of a point that never does.
        """
        out = np.percentile(heights, LOW, axis=0)
        for k in np.flatnonzero(self.stands.any(axis=0)).tolist():
            out[k] = np.median(heights[self.stands[:, k], k])
        return out


def find_contacts(places: Array, up: Array, fps: float, leg: float | None = None, *, causal: bool = False) -> Contacts:
    """Find when points touch the ground: they are low and slow relative to their other frames, or still on the ground.

    A long stand at the beginning uses up the quantile of slow frames, so being still on the ground is enough. Short
    gaps are closed, and then each contact is extended a little. The mean speed around a frame is also small when a foot
    in the air reverses, so at least one of the two adjacent steps has to be slow as well.

    Args:
        places: World positions of the points, (T, n, 3).
        up: Direction away from the ground, (3,).
        fps: Frames per second.
        leg: Length of a leg, which limits speeds and heights; None for feet that may slide at any speed, and touch the
            ground for a moment.
        causal: Whether contacts are found as they happen, from the frames until then; see ``ContactWatch``.
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
    """Return a mask of frames in which points (T, n, 3) are still on the ground, (T, n), relative to leg length."""
    span, frames = max(1, round(_SPAN * fps)), np.arange(len(places))
    after, before = np.minimum(frames + span, len(places) - 1), np.maximum(frames - span, 0)
    speed = np.linalg.norm(places[after] - places[before], axis=-1) * (fps / (after - before))[:, None]
    return (speed <= _STILL * leg) & (height <= np.quantile(height, _LOWEST, axis=0) + _LEVEL * leg)


def _without_gaps(flags: Bools, least: int, places: Array) -> Bools:
    """Close gaps of fewer frames than ``least`` if the point is at the same place before and after."""
    out = flags.copy()
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    for first, last in runs(~flags):
        if not (last - first < least and first > 0 and last < len(flags)):
            continue
        if np.linalg.norm(places[last] - places[first - 1]) < _HERE * extent:
            out[first:last] = True
    return out


class ContactWatch:
    """Finds which points stand as it happens.

    A point stands as soon as it is low and slow, and until it is clearly higher or faster.

    Args:
        grounds: Height of each point while it stands, (n,).
        up: Direction away from the ground, (3,).
        leg: Length of a leg.
        fps: Frames per second.

    Attributes:
        stands: Mask of the points that stand, (n,).
    """

    def __init__(self, grounds: Array, up: Array, leg: float, fps: float) -> None:
        """Convert the thresholds to length units and frames."""
        self._up, self._high = up, grounds[:, None] + np.array(_NOW_LOW) * leg
        span = max(1, round(_NOW_SPAN * fps))
        self._fast = np.array(_NOW_SLOW) * leg * span / fps
        self._before = np.zeros((span, len(grounds), 3))
        self._tiptoe = grounds + _TIPTOE[0] * leg
        self._still = _RESTS[0] * leg * span / fps
        self._long = max(1, round(_TIPTOE[1] * fps)), max(1, round(_RESTS[1] * fps))
        self.reset()

    def reset(self) -> None:
        """Discard the last frames."""
        n = len(self._high)
        self._seen = 0
        self._slow = np.zeros((2, n), np.int64)  # number of frames each point has been slow, and still
        self._away: Bools = np.zeros(n, bool)  # points that stand although they are high
        self.stands: Bools = np.zeros(n, bool)

    def look(self, places: Array) -> Bools:
        """Return which points stand in the next frame, (n,), for their positions (n, 3)."""
        span = len(self._before)
        k = self._seen % span
        way = places - self._before[k] if self._seen >= span else np.full_like(places, np.inf)
        self._before[k] = places
        self._seen += 1
        moved, height = np.sqrt(np.sum(way * way, axis=1)), places @ self._up
        last = self.stands.astype(np.intp)
        low = height < self._high[np.arange(len(last)), last]
        self._slow = np.where([moved < self._fast[0], moved < self._still], self._slow + 1, 0)
        waited = ((self._slow[0] >= self._long[0]) & (height < self._tiptoe)) | (self._slow[1] >= self._long[1])
        self._away = ~low & (waited | self._away)
        self.stands = (moved < self._fast[last]) & (low | self._away)
        self._away &= self.stands
        return self.stands
