"""Data of a live body for its page: the newest pose, recent figures, and a recording."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from synovia.errors import UnsupportedError
from synovia.ik import Status
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.retargeting import LiveRetarget
from synovia.servo import Tick
from synovia.text import Report

EACH: Final = 0.2  # seconds between two updates of the figures
_JUDGED: Final = 5.0  # seconds between two reports
_SPAN: Final = 2.0  # seconds over which rates are averaged
_LONGEST: Final = 600.0  # seconds; longest recording
_QUIET: Final = 1.0  # seconds without a tick after which the source counts as silent


@dataclass(frozen=True, slots=True)
class Figures:
    """Recent figures of a live body.

    Args:
        source: Samples of the source per second; None if unknown.
        ticks: Ticks per second.
        delay: Seconds from the played sample to the newest sample; None if the samples have no time stamps.
        status: Status of the last tick; None before the first tick, or after a second without ticks.
        learning: Whether the calibration of the source is being learned.
        ended: Whether no more poses will arrive.
        limited: The limit that restricts a joint, by joint.
        speeds: Velocity of the limited joints as a fraction of their limit, by joint.
        report: Report on the whole motion; None if unknown.
        recorded: Length of the recording, seconds.
    """

    source: float | None = None
    ticks: float = 0.0
    delay: float | None = None
    status: Status | None = None
    learning: bool = False
    ended: bool = False
    limited: dict[str, str] = field(default_factory=dict[str, str])
    speeds: dict[str, float] = field(default_factory=dict[str, float])
    report: Report | None = None
    recorded: float = 0.0


class Feed:
    """Receives the poses of a live body in one thread, and provides them to pages in other threads.

    Args:
        skeleton: The given body.
        clock: Returns the time in seconds.
    """

    def __init__(self, skeleton: Skeleton, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without poses."""
        self.skeleton = skeleton
        self._clock, self._lock = clock, threading.Lock()
        self._live: LiveRetarget | None = None
        self._pose: Pose = skeleton.rest_pose()
        self._marks: deque[tuple[float, int, int]] = deque()  # time, number of ticks and number of samples
        self._ticks, self._last, self._looked = 0, -np.inf, -np.inf
        self._figures, self._judging = Figures(), threading.Lock()
        self._reported: tuple[float, Report | None] = -np.inf, None
        self._ended = False
        self._recording = False
        self._rows: list[Array] = []
        self._recorded: Pose | None = None  # last pose of the recording

    def follow(self, live: LiveRetarget) -> None:
        """Also read figures from a live body: rate and delay of its source, limits, and its report."""
        self._live = live

    def send(self, pose: Pose) -> None:
        """Receive a pose; called by the thread that moves the body."""
        now = self._clock()
        with self._lock:
            self._pose, self._last, self._ended = pose, now, False
            self._ticks += 1
            if self._recording:
                self._record(pose)
            if now - self._looked >= EACH:
                self._looked = now
                self._figures = self._look(pose, now)

    def end(self) -> None:
        """Record that no more poses will arrive."""
        with self._lock:
            self._ended = True

    def _look(self, pose: Pose, now: float) -> Figures:
        """Return current figures: rates over the recent ticks; delay, status and limits from the newest pose."""
        live = self._live
        marks = self._marks
        marks.append((now, self._ticks, 0 if live is None else live.samples))
        while len(marks) > 2 and now - marks[0][0] > _SPAN:
            marks.popleft()
        span = max(now - marks[0][0], 1e-9)
        ticks, samples = (float(marks[-1][k] - marks[0][k]) / span for k in (1, 2))
        if not isinstance(pose, Tick):
            return Figures(ticks=ticks)
        return Figures(
            source=None if live is None else samples,
            ticks=ticks,
            delay=pose.behind,
            status=pose.status,
            learning=live is not None and live.calibration is None,
            limited=pose.limited,
            speeds=pose.speeds,
        )

    @property
    def pose(self) -> Pose:
        """The newest pose; the rest pose before the first pose."""
        return self._pose

    def figures(self) -> Figures:
        """Return the latest figures; after a second without ticks, the tick rate is 0 and the status is None."""
        report = self._report()
        with self._lock:
            found, quiet = self._figures, self._clock() - self._last > _QUIET
            recorded = max(len(self._rows) - 1, 0) / self.rate
            return Figures(
                source=found.source, ticks=0.0 if quiet else found.ticks, delay=found.delay,
                status=None if quiet else found.status, learning=found.learning, ended=self._ended,
                limited={} if quiet else found.limited, speeds=found.speeds, report=report, recorded=recorded,
            )  # fmt: skip

    def _report(self) -> Report | None:
        """Return a report that is at most some seconds old; None without a live body. It takes the time of a page."""
        live = self._live
        if live is not None:
            with self._judging:
                if (now := self._clock()) - self._reported[0] >= _JUDGED:
                    self._reported = now, live.report()
        return self._reported[1]

    # --- recording -------------------------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Frames per second of a recording: the rate of the ticks."""
        return 60.0 if self._live is None else self._live.rate

    def record(self, *, on: bool) -> None:
        """Begin or end a recording; after ten minutes, no more poses are added."""
        with self._lock:
            if on and not self._recording:
                self._rows, self._recorded = [], None
            self._recording = on

    def _record(self, pose: Pose) -> None:
        """Add a pose to the recording; restart the recording if the skeleton has changed."""
        if self._recorded is not None and pose.skeleton is not self._recorded.skeleton:
            self._rows = []
        self._recorded = pose
        if len(self._rows) <= _LONGEST * self.rate:
            self._rows.append(pose.q.copy())

    @property
    def recording(self) -> bool:
        """Whether poses are recorded."""
        return self._recording

    def clip(self) -> Motion:
        """Return the recording.

        Raises:
            UnsupportedError: If there is no recording.
        """
        with self._lock:
            if self._recorded is None or not self._rows:
                raise UnsupportedError("nothing is recorded", hint="switch Record on while the source moves")
            return Motion(self._recorded.skeleton, np.array(self._rows), self.rate, name="live")
