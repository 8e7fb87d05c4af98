"""Live poses that know what comes: the program of whole clips, run over windows of the last poses."""

from __future__ import annotations

import math
from collections import deque
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.model.change import blend, smooth
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.retargeting.live.calibration import LiveCalibration
from synovia.retargeting.retarget import followed

_PAST: Final = 1.0  # seconds of poses before a window, so that contacts and steps begin in it


class Known(NamedTuple):
    """A pose of the target that knows later ones.

    Args:
        q: Joint values of the target, (nq,).
        source: Joint values of the source, (nq,).
        gone: Limbs that are not seen.
        first: Whether no pose was before it.
        stands: Roles of the feet that stand.
        missed: Whether one of them misses its place.
    """

    q: Array
    source: Array
    gone: frozenset[str]
    first: bool
    stands: tuple[str, ...]
    missed: bool


class Ahead:
    """Follows poses that come one by one, each when later ones are known, by the program of ``retarget``.

    Half the look-ahead is computed at once, from a window that begins a second earlier and ends with the last pose.
    Where windows overlap, the target moves over from one to the next. With the look-ahead of a whole clip, there is one
    window, and the answer is that of ``retarget``.

    Args:
        calibration: The two bodies; its floor and bends, unless they are found in all poses at the end.
        rate: Poses per second.
        seconds: The look-ahead; infinite to wait for the end.
        options: Options of ``retarget``; a bone on the floor moves with the body.
    """

    def __init__(self, calibration: LiveCalibration, rate: float, seconds: float, **options: Any) -> None:
        """Begin without poses."""
        self._pair, self._body, self._rate = calibration.pairing, calibration.target, rate
        known = (calibration.floor, calibration.bends) if math.isfinite(seconds) else None
        self._options = SimpleNamespace(**options, known=known, velocity=None, world=None, root_motion=None)
        self._count = max(1, round(seconds * rate)) if math.isfinite(seconds) else None
        self.reset()

    def reset(self) -> None:
        """Discard all poses."""
        self._heard: list[tuple[Array, frozenset[str]]] = []
        self._done = 0  # poses at the front that have been returned
        self._first = True
        self._ready: deque[tuple[Array, tuple[str, ...], bool]] = deque()
        self._last: Array | None = None  # joint values of the last pose that is ready
        self._later = np.zeros((0, 0))  # joint values of the poses after those that are ready, from the same window

    @property
    def waiting(self) -> int:
        """Number of poses that wait for later ones."""
        return len(self._heard) - self._done

    def add(self, q: Array, gone: frozenset[str]) -> None:
        """Add joint values (nq,) of the source, and the limbs that are not seen."""
        self._heard.append((q, gone))

    def next(self, *, ended: bool = False) -> Known | None:
        """Return the next pose, None if it has to wait for later ones; they will not come if the source has ended."""
        waiting = self.waiting
        if not waiting or not (ended or (self._count is not None and waiting > self._count)):
            return None
        if not self._ready:
            self._compute(waiting if ended or self._count is None else (self._count + 1) // 2)
        q, stands, missed = self._ready.popleft()
        found = Known(q, *self._heard[self._done], self._first, stands, missed)
        self._done, self._first = self._done + 1, False
        past = round(_PAST * self._rate)
        if self._done > 2 * past and self._count is not None:
            del self._heard[: self._done - past]
            self._done = past
        return found

    def _compute(self, count: int) -> None:
        """Follow all poses in one window, and keep the next ones."""
        clip = Motion(self._pair.source.skeleton, np.array([q for q, _ in self._heard]), self._rate)
        answer = followed(clip, self._pair, self._body, self._options)
        begin, missed = self._done, frozenset(answer.missed_frames)
        q = np.array(answer.motion.q[begin:])
        if self._last is not None:
            t = answer.motion.skeleton.tables
            for turn in (slice(at, at + 4) for at in t.places[~t.is_number].tolist()):
                q[:, turn] *= 1.0 if q[0, turn] @ self._last[turn] >= 0.0 else -1.0
        over = min(len(self._later), count)
        if over:
            share = np.asarray(smooth(np.linspace(0.0, 1.0, over + 2)[1:-1]))
            q[:over] = blend(answer.motion.skeleton, self._later[:over], q[:over], share)
        for k in range(begin, begin + count):
            stands = [role for role, spans in answer.contacts.items() if any(a <= k < b for a, b in spans)]
            self._ready.append((q[k - begin], tuple(stands), k in missed))
        self._later, self._last = q[count:], q[count - 1]
