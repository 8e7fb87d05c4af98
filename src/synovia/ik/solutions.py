"""The answers of many problems, and of targets over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.ik.solution import CUT, INTERRUPTED, STATUS, Frame, Solution
from synovia.ik.status import Status
from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.model.motion import Motion

if TYPE_CHECKING:
    from synovia.facade import IK

_STEPS = 1  # see kernels.tree.problem


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
        return Solution(self.ik, self._rows, self._start(b % len(self)), b=b, frame=self._frame(b % len(self)))

    def _frame(self, b: int) -> Frame | None:
        """Return what problem b is in a track, None where it is in none."""
        del b
        return None

    def __iter__(self) -> Iterator[Solution]:
        """Yield the answers."""
        return (self[b] for b in range(len(self)))

    @property
    def status(self) -> NDArray[np.int64]:
        """Status of each problem, (B,), numbers of ``Status``."""
        return self._rows[:, STATUS].astype(np.int64)

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Whether each problem's goals all hold, (B,)."""
        return self.status == Status.REACHED

    @property
    def interrupted(self) -> NDArray[np.bool_]:
        """Whether a deadline cut each problem short, (B,); one that was not begun stays at its start."""
        return np.isin(self._rows[:, CUT], INTERRUPTED)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Steps taken, (B,)."""
        return self._rows[:, _STEPS].astype(np.int64)

    @property
    def q(self) -> Array:
        """Joint values, (B, nq)."""
        return self._rows[:, self.ik.places].copy()

    @property
    def errors(self) -> Array:
        """Position (length units) and angle (radians) by which each goal is missed, (B, goals, 2)."""
        first, g = self.ik.places.stop, len(self.ik.goals)
        return self._rows[:, first : first + 2 * g].reshape(-1, g, 2).copy()

    def __repr__(self) -> str:
        """Return how many were reached."""
        return f"<{type(self).__name__}: {int(self.reached.sum())} of {len(self)} reached>"


class Tracked(Solutions):
    """The answers of targets over time, frame by frame."""

    def __init__(
        self,
        ik: IK,
        rows: Array,
        start: Array,
        fps: float,
        jumped: NDArray[np.bool_],
        held: Sequence[str | None],
    ) -> None:
        """Keep the answers, the start of the first frame, the rate, and of each frame what is not in its row.

        That is whether it does not follow from the last, and the option of ``track`` that made a miss of it.
        """
        super().__init__(ik, rows, start)
        self.fps = fps
        self._jumped = jumped
        self._held = held

    def _start(self, b: int) -> Pose:
        """Return where frame b started: where the one before ended."""
        return super()._start(0) if b == 0 else Solution(self.ik, self._rows, b=b - 1).pose

    def _frame(self, b: int) -> Frame:
        """Return what is known of frame b."""
        return Frame(b > 0, None if self.reached[b] else self._held[b])

    @property
    def motion(self) -> Motion:
        """The poses as a motion."""
        return Motion(self.ik.skeleton, self.q, self.fps)

    @property
    def missed(self) -> tuple[int, ...]:
        """Frames in which a goal is missed."""
        return tuple(np.flatnonzero(~self.reached).tolist())

    @property
    def smoothed_off(self) -> tuple[int, ...]:
        """Frames that were reached until ``smoothness`` took out motion that they need."""
        return self._missed_by("smoothness")

    @property
    def late(self) -> tuple[int, ...]:
        """Frames that were reached until ``velocity`` held joints back."""
        return self._missed_by("velocity")

    def _missed_by(self, option: str) -> tuple[int, ...]:
        """Return the missed frames that an option of ``track`` made misses of."""
        return tuple(frame for frame in self.missed if self._held[frame] == option)

    @property
    def jumps(self) -> tuple[int, ...]:
        """Frames after the first that do not follow from the one before.

        They were solved from another start, a closed form went to another branch with a large step of the joints, or a
        joint turned by far more than the motion of its targets explains, as an elbow whose pole crosses the limb.
        """
        return tuple(np.flatnonzero(self._jumped).tolist())
