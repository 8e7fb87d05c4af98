"""A recording of the body at an even rate, also over times at which nothing moved and the page slept."""

from __future__ import annotations

import threading
from typing import Final

from synovia.model import Pose
from synovia.model.geometry import Array

RATE: Final = 30.0  # frames a second
_MOST: Final = 30 * 60 * 10  # frames; ten minutes


class Recording:
    """Poses at even times; a pose holds until the next one comes.

    A body whose skeleton becomes another one, because its root moves otherwise, begins anew.
    """

    def __init__(self) -> None:
        """Record nothing."""
        self.on = False
        self._lock = threading.Lock()
        self._rows: list[Array] = []
        self._begun = 0.0
        self._last: Pose | None = None

    @property
    def seconds(self) -> float:
        """How long it is."""
        return max(len(self._rows) - 1, 0) / RATE

    def start(self, pose: Pose, now: float) -> None:
        """Begin anew with a pose.

        Args:
            pose: The pose.
            now: Seconds of a clock that only goes forward.
        """
        with self._lock:
            self.on = True
            self._begin(pose, now)

    def stop(self, now: float) -> None:
        """End; the last pose held until now."""
        with self._lock:
            self._fill(now)
            self.on = False

    def take(self, pose: Pose, now: float) -> None:
        """Note that the body has a pose from now on."""
        with self._lock:
            if not self.on:
                return
            if self._last is None or pose.skeleton is not self._last.skeleton:
                self._begin(pose, now)
                return
            self._fill(now)
            self._last = pose

    def rows(self, now: float) -> list[Array]:
        """Return joint values at even times, (nq,) each, up to now."""
        with self._lock:
            if self.on:
                self._fill(now)
            return list(self._rows)

    def _begin(self, pose: Pose, now: float) -> None:
        self._rows, self._begun, self._last = [pose.q.copy()], now, pose

    def _fill(self, now: float) -> None:
        """Let the last pose hold until now."""
        if self._last is not None:
            due = min(int((now - self._begun) * RATE + 1e-6) + 1, _MOST)
            self._rows += [self._last.q.copy()] * max(due - len(self._rows), 0)
