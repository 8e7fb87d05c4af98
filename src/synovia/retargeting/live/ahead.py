"""Live poses with look-ahead: the program for whole clips runs over windows of the last poses."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Generator, Sequence
from types import SimpleNamespace
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from synovia.model.change import blend, smooth
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.retargeting.follower import PoseFollower
from synovia.retargeting.live.calibration import LiveCalibration
from synovia.retargeting.retarget import stages

_PAST: Final = 1.0  # seconds of poses before a window, so that contacts and steps that are under way are known
_PARTS: Final = 8  # a window is computed over the last eighth of the look-ahead before its poses are needed


Sample = TypeVar("Sample")
Facts = TypeVar("Facts")


class Known(NamedTuple, Generic[Sample, Facts]):
    """A pose of the target that was computed with knowledge of later poses.

    Args:
        q: Joint values of the target, (nq,).
        sample: What was heard of the source.
        first: Whether no pose came before this one.
        facts: What else the window says about the pose.
    """

    q: Array
    sample: Sample
    first: bool
    facts: Facts


class Windows(Generic[Sample, Facts]):
    """Follows samples that come one by one; each waits until later ones are known, as part of a window.

    Poses for three eighths of the look-ahead are computed together, from a window that begins a second earlier and ends
    with the last sample. The work is spread over the ticks of the next eighth. Where windows overlap, the target blends
    from one result to the next. If the look-ahead is the whole clip, there is one window.

    Args:
        rate: Samples per second.
        seconds: The look-ahead, seconds; infinite to wait for the end.
    """

    def __init__(self, rate: float, seconds: float) -> None:
        """Start without samples."""
        self._rate = rate
        self._count = max(1, round(seconds * rate)) if math.isfinite(seconds) else None
        self.reset()

    def reset(self) -> None:
        """Discard all poses."""
        self._heard: list[Sample] = []
        self._done = 0  # number of poses at the front that have been returned
        self._first = True
        self._ready: deque[tuple[Array, Facts]] = deque()
        self._work: Generator[None, None, None] | None = None  # the window that is being computed
        self._stages, self._spent = 1, 0  # number of stages of the last window, and of this window so far
        self._last: Array | None = None  # joint values of the last pose that is ready
        self._later = np.zeros((0, 0))  # joint values of later poses, from the same window as the poses that are ready

    @property
    def waiting(self) -> int:
        """Number of poses that wait for later ones."""
        return len(self._heard) - self._done

    def add(self, sample: Sample) -> None:
        """Add what was heard of the source."""
        self._heard.append(sample)

    def next(self, *, ended: bool = False) -> Known[Sample, Facts] | None:
        """Return the next pose; None if it waits for later poses. If the source has ``ended``, none will come."""
        if self._count is not None and not ended:
            lead = self._count // _PARTS
            if self._work is None and self.waiting - len(self._ready) > self._count - lead:
                self._work = self._window(max(1, (self._count + 1) // 2 - lead))
            for _ in range(-(-self._stages // max(lead, 1))):
                self._go_on()
        if not self.waiting or not (ended or (self._count is not None and self.waiting > self._count)):
            return None
        while not self._ready:
            self._work = self._work or self._window(self.waiting)
            self._go_on()
        q, facts = self._ready.popleft()
        found = Known(q, self._heard[self._done], self._first, facts)
        self._done, self._first = self._done + 1, False
        past = round(_PAST * self._rate)
        if self._done > 2 * past and self._count is not None:
            del self._heard[: self._done - past]
            self._done = past
        return found

    def _go_on(self) -> None:
        """Compute the next stage of the window, if there is one."""
        if self._work is not None:
            self._spent += 1
            if next(self._work, self) is self:
                self._work, self._stages, self._spent = None, self._spent, 0

    @abstractmethod
    def _followed(self, heard: Sequence[Sample]) -> Generator[None, None, tuple[Motion, list[Facts]]]:
        """Follow the samples of a window, stage by stage; return the motion, and further facts of each frame."""

    def _window(self, count: int) -> Generator[None, None, None]:
        """Follow all stored samples as one window, stage by stage; then the next ``count`` poses are ready."""
        begin = self._done + len(self._ready)
        motion, facts = yield from self._followed(self._heard.copy())
        q, skeleton = np.array(motion.q[begin:]), motion.skeleton
        if self._last is not None:
            t = skeleton.tables
            for turn in (slice(at, at + 4) for at in t.places[~t.is_number].tolist()):
                q[:, turn] *= 1.0 if q[0, turn] @ self._last[turn] >= 0.0 else -1.0
        over = min(len(self._later), count)
        if over:
            share = np.asarray(smooth(np.linspace(0.0, 1.0, over + 2)[1:-1]))
            q[:over] = blend(skeleton, self._later[:over], q[:over], share)
        self._ready.extend(zip(q[:count], facts[begin:], strict=False))
        self._later, self._last = q[count:], q[count - 1]


class Standing(NamedTuple):
    """The planted feet of a pose: their roles, and whether one misses its place."""

    roles: tuple[str, ...]
    missed: bool


class Ahead(Windows[tuple[Array, frozenset[str]], Standing]):
    """Follows poses of a body, each with the limbs that are not seen, with the program of ``retarget``.

    Args:
        calibration: Calibration of the two bodies.
        follower: The follower that knows the calibration; with an infinite look-ahead, floor and bends are found in all
            poses instead.
        rate: Poses per second.
        seconds: The look-ahead, seconds; infinite to wait for the end.
        options: Options of ``retarget``; a bone on the floor moves with the body.
    """

    def __init__(
        self, calibration: LiveCalibration, follower: PoseFollower, rate: float, seconds: float, **options: Any
    ) -> None:
        """Start without poses."""
        self._pair, self._body = calibration.pairing, calibration.target
        known = follower if math.isfinite(seconds) else None
        self._options = SimpleNamespace(**options, known=known, velocity=None, root_motion=None)
        super().__init__(rate, seconds)

    def _followed(
        self, heard: Sequence[tuple[Array, frozenset[str]]]
    ) -> Generator[None, None, tuple[Motion, list[Standing]]]:
        """Retarget the poses of a window."""
        clip = Motion(self._pair.source.skeleton, np.array([q for q, _ in heard]), self._rate)
        answer = yield from stages(clip, self._pair, self._body, self._options, threads=1)
        missed, spans = frozenset(answer.missed_frames), answer.contacts.items()
        return answer.motion, [
            Standing(tuple(role for role, own in spans if any(a <= k < b for a, b in own)), k in missed)
            for k in range(len(heard))
        ]
