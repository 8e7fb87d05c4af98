"""The answers of many problems, and of targets over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.geometry import Array
from synovia.ik.solution import Solution
from synovia.ik.status import Status
from synovia.motion import Motion
from synovia.skeleton import Pose

if TYPE_CHECKING:
    from synovia.ik.ik import IK

_STATUS, _STEPS, _HEAD = 0, 1, 6  # see kernels.problem


class Solutions:
    """The answers of B problems as arrays; item b is the ``Solution`` of problem b."""

    def __init__(self, ik: IK, rows: Array, starts: Array) -> None:
        """Keep the kernel's table of answers, and where each problem started (or one start for all)."""
        self.ik = ik
        self._rows = rows
        self._starts = starts

    def _start(self, b: int) -> Pose:
        """Return where problem b started."""
        return Pose.trusted(self.ik.skeleton, self._starts[min(b, len(self._starts) - 1)])

    def __len__(self) -> int:
        """Return the number of problems."""
        return len(self._rows)

    def __getitem__(self, b: int) -> Solution:
        """Return the answer of one problem."""
        if not isinstance(b, (int, np.integer)) or not -len(self) <= b < len(self):
            raise InputError(f"no answer {b!r}", expected=f"0 to {len(self) - 1}")
        return Solution(self.ik, self._rows, self._start(b % len(self)), b=b, follows=self._follows(b % len(self)))

    def _follows(self, b: int) -> bool:
        """Return whether problem b is a frame that follows another."""
        del b
        return False

    def __iter__(self) -> Iterator[Solution]:
        """Yield the answers."""
        return (self[b] for b in range(len(self)))

    @property
    def status(self) -> NDArray[np.int64]:
        """Status of each problem, (B,), numbers of ``Status``."""
        return self._rows[:, _STATUS].astype(np.int64)

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Whether each problem's goals all hold, (B,)."""
        return self.status == Status.REACHED

    @property
    def steps(self) -> NDArray[np.int64]:
        """Steps taken, (B,)."""
        return self._rows[:, _STEPS].astype(np.int64)

    @property
    def q(self) -> Array:
        """Joint values, (B, nq)."""
        return self._rows[:, _HEAD : _HEAD + self.ik.skeleton.nq].copy()

    @property
    def errors(self) -> Array:
        """Position (length units) and angle (radians) by which each goal is missed, (B, goals, 2)."""
        first = _HEAD + self.ik.skeleton.nq
        g = len(self.ik.goals)
        return self._rows[:, first : first + 2 * g].reshape(-1, g, 2).copy()

    def __repr__(self) -> str:
        """Return how many were reached."""
        return f"<{type(self).__name__}: {int(self.reached.sum())} of {len(self)} reached>"


class Tracked(Solutions):
    """The answers of targets over time, frame by frame."""

    def __init__(self, ik: IK, rows: Array, start: Array, fps: float, jumped: NDArray[np.bool_]) -> None:
        """Keep the answers, the start of the first frame, the rate, and which frames do not follow from the last."""
        super().__init__(ik, rows, start)
        self.fps = fps
        self._jumped = jumped

    def _start(self, b: int) -> Pose:
        """Return where frame b started: where the one before ended."""
        return super()._start(0) if b == 0 else Solution(self.ik, self._rows, b=b - 1).pose

    def _follows(self, b: int) -> bool:
        """Return whether it is not the first frame."""
        return b > 0

    @property
    def motion(self) -> Motion:
        """The poses as a motion."""
        return Motion(self.ik.skeleton, self.q, self.fps)

    @property
    def missed(self) -> tuple[int, ...]:
        """Frames in which a goal is missed."""
        return tuple(np.flatnonzero(~self.reached).tolist())

    @property
    def jumps(self) -> tuple[int, ...]:
        """Frames after the first that were solved from another start than the frame before."""
        return tuple(np.flatnonzero(self._jumped).tolist())
