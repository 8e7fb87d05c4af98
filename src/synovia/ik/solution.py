"""What came out of a solve, and why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from synovia.errors import UnsolvedError
from synovia.ik.status import Status
from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.model.notebook import Pictured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synovia.goals import Goal
    from synovia.ik.ik import IK
    from synovia.ik.reasons import Reason

_STATUS, _STEPS, _TRIES, _WINNER, _FINISH, _CUT, _HEAD = 0, 1, 2, 3, 5, 6, 7  # see kernels.tree.problem
STATUS, WINNER, CUT, HEAD = _STATUS, _WINNER, _CUT, _HEAD
INTERRUPTED = (1.0, 2.0)  # what a deadline or a signal leaves at ``CUT``, see kernels.compiler.watch
_EVERY_STATUS = tuple(Status)


class GoalError(NamedTuple):
    """How far a goal was missed: ``position`` in the file's length unit, ``angle`` in radians; 0 if unasked.

    For a ``CustomGoal``, ``position`` is the length of its residual, in the residual's own unit.
    """

    position: float
    angle: float


class Frame(NamedTuple):
    """What a solution knows of the track that it is a frame of.

    Args:
        follows: Whether another frame came before it.
        held: The option of ``track`` that made a miss of it, ``"smoothness"`` or ``"velocity"``.
    """

    follows: bool
    held: str | None


class Solution(Pictured):
    """The answer of a solve. A miss is a normal answer: the best pose that was met, and why it is not better.

    Everything but the status is unpacked when it is asked for.
    """

    __slots__ = ("_b", "_ik", "_pose", "_reasons", "_rows", "frame", "start")

    def __init__(self, ik: IK, rows: Array, start: Pose | None = None, b: int = 0, frame: Frame | None = None) -> None:
        """Keep row b of a kernel's table of answers, and what it is in a track."""
        self._ik = ik
        self._rows = rows
        self._b = b
        self._pose: Pose | None = None
        self._reasons: Sequence[Reason] | None = None
        self.start = start
        self.frame = frame

    @property
    def _row(self) -> Array:
        """The kernel's row of the answer."""
        return self._rows[self._b]

    @property
    def status(self) -> Status:
        """How the solve ended."""
        return _EVERY_STATUS[int(self._rows[self._b, _STATUS])]

    @property
    def reached(self) -> bool:
        """Whether every goal holds."""
        return self.status is Status.REACHED

    @property
    def pose(self) -> Pose:
        """The pose: the solution, or the best that was met. Inside the limits."""
        pose = self._pose
        if pose is None:
            skeleton = self._ik.skeleton
            q = self._rows[self._b, self._ik.places]
            if len(self._rows) > 1:  # a pose that is kept shall not keep the whole batch
                q = q.copy()
            self._pose = pose = Pose.trusted(skeleton, q, True)
        return pose

    @property
    def q(self) -> Array:
        """Joint values, (nq,), read-only: those of the pose, in less time than by way of it."""
        q = self._rows[self._b, self._ik.places]
        q.setflags(False)  # pyright: ignore[reportCallIssue]  # by place, which its types leave out: a name takes longer
        return q

    @property
    def goals(self) -> Sequence[Goal]:
        """The goals, in the order of ``errors``."""
        return self._ik.goals

    @property
    def rows(self) -> tuple[int, ...]:
        """Joint of each goal, a row of the pose's skeleton; -1 for goals of the whole body."""
        return self._ik.rows

    @property
    def hangs(self) -> tuple[tuple[int, ...], ...]:
        """All joints that each goal hangs on, rows of the pose's skeleton, its own first."""
        return self._ik.hangs

    @property
    def errors(self) -> tuple[GoalError, ...]:
        """How far each goal is missed, in the order of the goals."""
        first = _HEAD + self._ik.skeleton.nq
        values = self._row[first : first + 2 * len(self._ik.goals)].tolist()
        return tuple(GoalError(*pair) for pair in zip(values[::2], values[1::2], strict=True))

    @property
    def targets(self) -> Array:
        """The transforms that the goals were to meet, (goals, 4, 4): in the world, or in the other joint's frame.

        Of a normal, as of a plane, the z axis counts. What a goal does not ask for is as in the unit frame.
        """
        first = _HEAD + self._ik.skeleton.nq + 2 * len(self._ik.goals)
        return self._row[first:].reshape(-1, 4, 4).copy()

    @property
    def frames(self) -> Array:
        """World frames of the goals' points, (goals, 4, 4): of the centre of mass for balance, the unit for rest."""
        out = np.tile(np.eye(4), (len(self.goals), 1, 1))
        for i, (goal, row) in enumerate(zip(self.goals, self.rows, strict=True)):
            if row >= 0:
                out[i] = self.pose.transform(row) @ goal.offset
            elif goal.measures:
                out[i, :3, 3] = self.pose.center_of_mass()
        return out

    @property
    def steps(self) -> int:
        """Steps taken in all attempts together."""
        return int(self._row[_STEPS])

    @property
    def attempts(self) -> int:
        """Attempts made."""
        return int(self._row[_TRIES])

    @property
    def attempt(self) -> int:
        """The attempt that led to the pose; 0 is the one from the start."""
        return int(self._row[_WINNER])

    @property
    def finish_steps(self) -> int:
        """How many of ``steps`` were the last descent of a miss (Jacobian family, or ``finish="lm"``)."""
        return int(self._row[_FINISH])

    @property
    def interrupted(self) -> bool:
        """Whether a deadline cut the solve short: the pose is the best until then, and no two runs need agree on it."""
        return self._row[_CUT] in INTERRUPTED

    @property
    def start_clamped(self) -> tuple[str, ...]:
        """Joints whose start value was outside its limits and was brought inside before solving."""
        return () if self.start is None else self._ik.outside(self.start)

    @property
    def missed(self) -> tuple[int, ...]:
        """Places of the goals that are not met, in the order of the goals."""
        most, most_angle = self._ik.tolerance
        own = [goal.own_tolerance or most for goal in self.goals]
        return tuple(i for i, error in enumerate(self.errors) if error.position > own[i] or error.angle > most_angle)

    @property
    def active_limits(self) -> tuple[str, ...]:
        """Joints that stand at a limit."""
        return self._ik.at_limits(self.pose)

    def explain(self) -> list[str]:
        """Return sentences that say what came out and, for a miss, by how much and what stands in the way."""
        from synovia.ik.explain import explain

        return explain(self)

    @property
    def reasons(self) -> Sequence[Reason]:
        """Why each missed goal is missed, found by trying it otherwise; only for solvers with strict priorities.

        Which goals it lost to, which limit costs most, and how far its target would have to move for all to hold.
        """
        if self._reasons is None and self.interrupted:  # more time might show that there are none
            self._reasons = ()
        if self._reasons is None:
            from synovia.ik.reasons import reasons

            self._reasons = reasons(self) if self._ik.solver.ranks else ()
        return self._reasons

    def raise_for_status(self) -> Solution:
        """Return the solution itself if every goal holds.

        Raises:
            UnsolvedError: With the explanation, otherwise.
        """
        if not self.reached:
            raise UnsolvedError(" ".join(self.explain()))
        return self

    def __str__(self) -> str:
        """Return status, steps and the error of each goal on one line, and whether a miss looks like millimetres."""
        parts = [
            f"{goal.label} " + ", ".join(_shown(self._ik, goal, error))
            for goal, error in zip(self.goals, self.errors, strict=True)
            if goal.measures or goal.own_tolerance is not None
        ]
        by = f" ({self.finish_steps} by {finish})" if self.finish_steps and (finish := self._ik.solver.finish) else ""
        line = f"{self.status.name.lower().replace('_', ' ')} in {self.steps} steps{by}; " + "; ".join(parts)
        if self.reached:
            return line
        from synovia.ik.explain import unit_hint

        hint = unit_hint(self)
        return line if hint is None else f"{line}; {hint}"

    def __repr__(self) -> str:
        """Return the same line in brackets."""
        return f"<Solution {self}>"


def _shown(ik: IK, goal: Goal, error: GoalError) -> list[str]:
    """Return a goal's errors as people read them: millimetres where the unit is known, degrees."""
    parts: list[str] = []
    if goal.own_tolerance is not None:
        parts.append(f"{error.position:.3g}")
    if goal.measures & 1:
        parts.append(length_text(error.position, ik.skeleton.meters_per_unit))
    if goal.measures & 2:
        parts.append(f"{math.degrees(error.angle):.3g} deg")
    return parts


def length_text(length: float, meters_per_unit: float | None) -> str:
    """Return a length in mm or m where the unit is known, else in units."""
    if meters_per_unit is None:
        return f"{length:.4g} {'unit' if length == 1.0 else 'units'}"
    meters = length * meters_per_unit
    return f"{1000 * meters:.3g} mm" if meters < 1.0 else f"{meters:.3g} m"


def mark_cut(rows: Array) -> None:
    """Give rows of answers that were cut short the status that says so, unless they reach their goals."""
    rows[np.isin(rows[:, CUT], INTERRUPTED) & (rows[:, STATUS] != Status.REACHED), STATUS] = Status.MAX_STEPS


def rows_of(ik: IK, count: int) -> Array:
    """Return an empty table of answers."""
    return np.empty((count, _HEAD + ik.skeleton.nq + 18 * len(ik.goals)))
