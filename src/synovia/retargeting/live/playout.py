"""A jitter buffer for samples of a live source: packets may be late, lost, duplicated or out of order."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.geometry import Array

SAMPLES: Final = 16  # largest number of buffered samples
_BEYOND: Final = 1.5  # number of ticks for which motion is extrapolated beyond the newest sample
_HASTE: Final = 0.05  # largest relative difference between the playout clock's rate and that of the ticks
_GAIN: Final = 0.05  # fraction of the clock error that is corrected in each tick
_FAR: Final = 0.25  # seconds: larger clock errors reset the clock
_EXACT: Final = 1e-9  # seconds: samples that are this close to the tick are not interpolated
_SAME: Final = 1e-9  # seconds: samples that are this close to each other are duplicates
_STRAY: Final = 1.0  # seconds: a sample that is farther from the newest sample belongs to another clock
_AGREE: Final = 3  # after this number of consecutive samples of another clock, that clock is followed
_RECENT: Final = 64  # duplicates are searched for among this number of last samples


class Playout:
    """Samples with time stamps of a source, played one frame late at the rate of the ticks.

    The playout clock runs up to 5 % faster or slower than the ticks, so that the newest sample stays one frame ahead of
    it. Joint values are interpolated between samples. If the next sample is missing, the motion is extrapolated for up
    to one and a half ticks.

    Args:
        skeleton: The skeleton of the source.
        rate: Ticks per second.

    Attributes:
        counts: Number of dropped samples, by reason: "doubled", "out of order" or "too many".
        behind: Time from the last tick to the newest sample, seconds.
    """

    def __init__(self, skeleton: Skeleton, rate: float) -> None:
        """Start without samples."""
        self._h = 1.0 / rate
        t = skeleton.tables
        self._turns = t.places[~t.is_number, None] + np.arange(4)
        self.counts: Counter[str] = Counter()
        self.reset()

    def reset(self) -> None:
        """Discard all samples, but keep the counts."""
        self._times: list[float] = []
        self._samples: list[Array] = []
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._now: float | None = None  # time of the last tick on the source's clock
        self._newest = -math.inf
        self._fresh, self._quiet = False, math.inf  # whether a sample came since the last tick; seconds since the last
        self._strays, self._stray = 0, -math.inf
        self.behind = 0.0

    def put(self, sample: Array, time: float) -> bool:
        """Add joint values (nq,) with their time, seconds; if they are dropped, count the reason and return False."""
        if self._is_stray(time):
            self.counts["out of order"] += 1
            return False
        if any(abs(time - other) <= _SAME for other in self._recent):
            self.counts["doubled"] += 1
            return False
        if self._now is not None and time < self._now - self._h:
            self.counts["out of order"] += 1
            return False
        at = bisect_left(self._times, time)
        self._times.insert(at, time)
        self._samples.insert(at, sample)
        self._recent.append(time)
        self._newest = max(self._newest, time)
        self._fresh, self._quiet = True, 0.0
        if len(self._times) > SAMPLES:
            del self._times[0], self._samples[0]
            self.counts["too many"] += 1
        return True

    def _is_stray(self, time: float) -> bool:
        """Return whether a time stamp belongs to another clock; after several such samples, follow that clock."""
        if not self._recent or abs(time - self._newest) <= _STRAY:
            self._strays = 0
            return False
        if self._quiet > _STRAY and time > self._newest:
            return False  # the source returns after a pause
        goes_on = 0.0 < time - self._stray <= _STRAY
        self._strays, self._stray = self._strays + 1 if goes_on else 1, time
        if self._strays < _AGREE:
            return True
        self.reset()
        return False

    def advance(self) -> tuple[Array | None, bool]:
        """Advance by one tick; return the joint values (None without any), and whether the clock was reset."""
        self._quiet += self._h
        if not self._times:
            return None, False
        newest = self._times[-1]
        ahead = -math.inf if self._now is None else self._now + self._h
        off = newest - self._h - ahead
        restarted = self._fresh and not abs(off) <= _FAR
        if restarted:
            self._now = newest - self._h
            old = bisect_left(self._times, self._now - _FAR)  # number of samples that precede the gap
            del self._times[:old], self._samples[:old]
        else:
            self._now = min(
                ahead + min(max(_GAIN * off, -_HASTE * self._h), _HASTE * self._h), newest + _BEYOND * self._h
            )
        self._fresh = False
        self.behind = newest - self._now
        return self._at(self._now), restarted

    def _at(self, now: float) -> Array:
        """Return the joint values at a time; before the oldest sample, return that sample."""
        times, samples = self._times, self._samples
        k = bisect_left(times, now - _EXACT)
        if k < len(times) and times[k] <= now + _EXACT:
            out = samples[k]
        elif k == 0:
            return samples[0]
        elif len(times) == 1 or (k == len(times) and times[-1] - times[-2] > _BEYOND * self._h):
            out = samples[k - 1]
        else:
            first = min(k, len(times) - 1) - 1
            share = (now - times[first]) / (times[first + 1] - times[first])
            out = self._between(samples[first], samples[first + 1], share)
        gone = min(k - 1, len(times) - 2)  # two samples are enough to interpolate
        if gone > 0:
            del times[:gone], samples[:gone]
        return out

    def _between(self, a: Array, b: Array, share: float) -> Array:
        """Interpolate or extrapolate joint values linearly, and quaternions along the shorter arc (slerp)."""
        out: Array = a + share * (b - a)
        if len(self._turns):
            x, y = a[self._turns], b[self._turns]
            dots = np.sum(x * y, axis=1, keepdims=True)
            y = np.where(dots < 0.0, -y, y)
            angle = np.arccos(np.minimum(np.abs(dots), 1.0))
            sine = np.maximum(np.sin(angle), 1e-12)
            near = angle < 1e-6
            s = np.where(near, 1.0 - share, np.sin((1.0 - share) * angle) / sine)
            t = np.where(near, share, np.sin(share * angle) / sine)
            mixed = s * x + t * y
            out[self._turns] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
        return out
