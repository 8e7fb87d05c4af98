"""Contacts: when points of feet are planted, and the height of the ground there, in a clip or frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array, Bools

Spans = list[tuple[int, int]]
FASTEST: Final = 0.75  # leg lengths per second: feet that are faster are not planted
# percentile of the heights of a point without contact that counts as the height of its ground
LOW: Final = 5.0
# quantile of heights and speeds up to which a foot may be in contact; less than a walking foot's share of contact
_QUANTILE: Final = 0.34
_GAP: Final = 0.06  # seconds: shorter gaps in a contact are noise
_FEW: Final = 3  # frames: gaps of fewer frames are noise at any frame rate
_HERE: Final = 0.01  # fraction of the extent of a point's path: positions at a smaller distance are equal
# seconds by which a contact is extended at both ends, because it lasts longer than its still frames
_AROUND: Final = 0.012
_LEVEL: Final = 0.05  # leg lengths: a point less than this above its lowest positions is on the ground
# leg lengths per second: slower points on the ground are in contact, regardless of the quantile of speeds
_STILL: Final = 0.1
_LOWEST: Final = 0.02  # quantile of a point's heights that counts as its ground
_SPAN: Final = 0.03  # seconds before and after a frame over which the speed for ``_STILL`` is measured
_SHORTEST: Final = 0.05  # seconds: a shorter contact is a foot that swings low

# Thresholds of ``ContactWatch``: in each pair, the first one starts a contact, and the second one ends it
_NOW_LOW: Final = (0.06, 0.12)  # leg lengths above the ground: largest height
_NOW_SLOW: Final = (0.25, 0.4)  # leg lengths per second: largest speed
_NOW_SPAN: Final = 0.025  # seconds over which the speed is measured
# leg lengths, seconds: a point below this height that is slow for this time is also in contact
_TIPTOE: Final = (0.25, 0.03)
# leg lengths per second, seconds: a point that is slower for this time is in contact at any height
_RESTS: Final = (0.12, 0.15)


@dataclass(frozen=True, eq=False, slots=True)
class Contacts:
    """Contacts of some points of feet over time.

    Args:
        stands: Mask of the frames in which each point has contact, (T, n).
    """

    stands: Bools

    @property
    def spans(self) -> list[Spans]:
        """The contacts of each point, as (first frame, end)."""
        return [runs(column) for column in self.stands.T]

    @property
    def any(self) -> Bools:
        """Mask of the frames in which at least one point has contact, (T,)."""
        return np.asarray(self.stands.any(axis=1))

    def of(self, counts: Sequence[int]) -> Bools:
        """Return a mask of the frames in which each foot has contact, (T, feet); ``counts``: its number of points."""
        firsts = np.cumsum([0, *counts[:-1]])
        return np.logical_or.reduceat(self.stands, firsts, axis=1) if len(counts) else self.stands[:, :0]

    def ground(self, heights: Array) -> Array:
        """Return the height of the ground below each point, (n,), from heights (T, n) of points of the same feet.

        It is the median height during contact; for a point that never has contact, a low percentile of its heights.
        """
        out = np.percentile(heights, LOW, axis=0)
        for k in np.flatnonzero(self.stands.any(axis=0)).tolist():
            out[k] = np.median(heights[self.stands[:, k], k])
        return out


def find_contacts(places: Array, up: Array, fps: float, leg: float | None = None, *, causal: bool = False) -> Contacts:
    """Find when points touch the ground: they are low and slow relative to their other frames, or still on the ground.

    A long stand at the beginning may use up the quantile of slow frames, so a point that is still on the ground counts
    as well. Short gaps are closed, and then each contact is extended a little. The mean speed around a frame is also
    small when a foot in the air reverses, so at least one of the two adjacent steps has to be slow as well.

    Args:
        places: World positions of the points, (T, n, 3).
        up: Direction away from the ground, (3,).
        fps: Frames per second.
        leg: Length of a leg, which limits speeds and heights; None for feet that may slide at any speed, and touch the
            ground for a moment.
        causal: Whether to find contacts frame by frame, without later frames; see ``ContactWatch``.
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
    """Return a mask (T, n) of frames in which points (T, n, 3) are still on the ground, relative to the leg length."""
    span, frames = max(1, round(_SPAN * fps)), np.arange(len(places))
    after, before = np.minimum(frames + span, len(places) - 1), np.maximum(frames - span, 0)
    speed = np.linalg.norm(places[after] - places[before], axis=-1) * (fps / (after - before))[:, None]
    return (speed <= _STILL * leg) & (height <= np.quantile(height, _LOWEST, axis=0) + _LEVEL * leg)


def _without_gaps(flags: Bools, least: int, places: Array) -> Bools:
    """Close gaps of fewer frames than ``least`` if the point is at one place before and after the gap."""
    out = flags.copy()
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    for first, last in runs(~flags):
        if not (last - first < least and first > 0 and last < len(flags)):
            continue
        if np.linalg.norm(places[last] - places[first - 1]) < _HERE * extent:
            out[first:last] = True
    return out


class ContactWatch:
    """Finds contacts of points frame by frame, without later frames.

    A contact of a point begins when it is low and slow, and ends when it is clearly higher or faster.

    Args:
        grounds: Height of each point during contact, (n,).
        up: Direction away from the ground, (3,).
        leg: Length of a leg.
        fps: Frames per second.

    Attributes:
        stands: Mask of the points that have contact, (n,).
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
        """Return a mask of the points that have contact in the next frame, (n,), for their positions (n, 3)."""
        k = self._seen % len(self._before)
        self._seen += 1
        self._watch(
            np.ascontiguousarray(places), self._before[k], self._up, self._thresholds, self._settings, self._state
        )
        self.stands = self._stands > 0.0
        return self.stands
