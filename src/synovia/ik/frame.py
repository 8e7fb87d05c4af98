"""Solve one problem from given poses: frames of a track or clip, ticks of a live body, trials of a diagnosis."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch, clear, new_scratch, set_deadline
from synovia.ik.obstacles import Places
from synovia.ik.targets import Targets
from synovia.kernels.layout import (
    ATTEMPTS,
    COLD,
    GIVEN,
    MISSED,
    MOST_WORK,
    PROPOSED_FIRST,
    ROWS_AT,
    TRANSFORM_WIDTH,
    WARM,
)
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.problem import References

Recovery = Literal["none", "polish", "search"]
"""Treatment of a miss: none; ``"polish"`` improves its pose; ``"search"`` also looks globally for a better pose."""


class Frames(NamedTuple):
    """Consecutive frames of a track.

    Args:
        table: Targets, (T, goals, 17).
        first: Start of the first frame, (1, nq); for ``along``, memory for the starts of all frames, (T, nq).
        rows: Rows of results, (T, n); changed in place.
        targets: The targets in the table, for error messages.
    """

    table: Array
    first: Array
    rows: Array
    targets: Targets | None


class FrameSolver:
    """Solves a problem from given poses, with its own scratch memory. For one thread at a time.

    Frames share only what the caller sets: the settings and the obstacle places. Each call gets its start, its targets
    and its posture. (In a track, closed forms also store their branch in the scratch memory.)

    Args:
        problem: The problem.
        attempts: Attempts of a frame; None for the setting of the solver.
        steps: Largest number of steps of an attempt; None for the setting of the solver.
        patience: Number of steps without progress after which an attempt ends; None for the setting of the solver.
        all_work: Whether to remove the solver's limit of the work for a frame.

    Attributes:
        problem: The problem.
        has_restarts: Whether the solver makes more attempts than this frame solver makes for a frame.
    """

    def __init__(
        self,
        problem: CompiledProblem,
        *,
        attempts: int | None = None,
        steps: int | None = None,
        patience: int | None = None,
        all_work: bool = False,
    ) -> None:
        """Allocate memory and read the settings of the solver."""
        self.problem = problem
        self._scratch = new_scratch(problem.scratch_size)
        self._all, self._floats = problem.ints, problem.floats
        if problem.begun is not None:  # learned poses are for restarts only; a frame begins at its own start
            self._all, self._floats = problem.begun[0].copy(), problem.begun[1]
            self._all[PROPOSED_FIRST] = 0
        self._usual = problem.settings(self._all, attempts=attempts, steps=steps, patience=patience)
        self.has_restarts = bool(self._all[ATTEMPTS] > self._usual[ATTEMPTS])
        self._own = False  # whether the floats are a private copy, which may be changed
        self._references: References | None = None
        self._unsolved: Ints | None = None
        if all_work:
            self._changeable[MOST_WORK] = np.inf

    def until(self, watch: Watch) -> AbstractContextManager[None]:
        """Apply the deadline of a watch to the calls inside a ``with`` statement."""
        return watch.over(self._scratch)

    def table(self, count: int = 1) -> Array:
        """Return a table of the goals' own targets, (count, goals, 17), in which all targets are marked as given."""
        out = np.repeat(self.problem.writer.own, count, axis=0)
        out[:, :, GIVEN] = [goal.takes for goal in self.problem.goals]
        return out

    # Settings that differ from frame to frame

    def put(self, places: Places, b: int = 0) -> None:
        """Move obstacles to their places in problem b of ``places``."""
        places.put(self._changeable, b)

    def postures(self, poses: Array) -> Array:
        """Return postures (tables of the rest goals), (n, k, 5), whose references are poses (n, nq)."""
        return self._posture.tables(poses)

    def stay_near(self, posture: Array) -> None:
        """Use a posture (k, 5), an item of ``postures``, for the rest goals in the following frames."""
        self._posture.put(posture)

    @property
    def _changeable(self) -> Array:
        """The float array of the problem, as a private copy that is made at first use."""
        if not self._own:
            self._floats, self._own = self._floats.copy(), True
        return self._floats

    @property
    def _posture(self) -> References:
        """The rest goals, as ``References`` that change the private copy of the problem's float array."""
        if self._references is None:
            self._references = References(self.problem.ints, self._changeable, self.problem.reduced)
        return self._references

    # Calls

    def solve(
        self,
        table: Array,
        start: Array,
        row: Array | None = None,
        *,
        posture: Array | None = None,
        recover: Recovery = "none",
        deadline: float | None = None,
    ) -> Array:
        """Solve one frame, and return its row of results.

        Args:
            table: Targets, (1, goals, 17).
            start: Joint values within the limits, (1, nq).
            row: Memory for the results, (1, n); None for new memory.
            posture: An item of ``postures``, (k, 5). None keeps the posture of the previous frame; at first, the goals'
                own.
            recover: How to improve a miss.
            deadline: Seconds after which the best pose so far is returned.

        Raises:
            InputError: If a target cannot be used.
        """
        problem, scratch = self.problem, self._scratch
        row = problem.new_rows(1) if row is None else row
        if posture is not None:
            self.stay_near(posture)
        try:
            if deadline is not None:
                set_deadline(scratch, deadline)
            call = partial(problem.call, self._usual, self._floats, table, start, row, scratch, COLD, 0)
            code = call()
            if code < 0:
                code = problem.checked_call(call, table, None)
            if code & MISSED and recover != "none":
                self.improve(start, row, search=recover == "search")
        finally:
            if deadline is not None:
                clear(scratch)
        return row

    def improve(self, start: Array, row: Array, *, search: bool = False) -> None:
        """Polish a miss and write its status.

        Args:
            start: The start of the frame, (1, nq).
            row: Row of results of the frame, (1, n); changed in place.
            search: Whether to search globally for a better pose; otherwise only near the pose of the row.
        """
        self.problem.polish_misses(start, row, self._scratch, search, self._floats)

    def follow(self, track: Frames, frames: range, *, known: int = 0, restarts: bool = False) -> tuple[int, bool]:
        """Solve consecutive frames, each from the previous solution, up to the first miss.

        Args:
            track: All frames.
            frames: The frames to solve; the frames before them are already solved.
            known: First frame that is passed to the kernel, at or before the first frame to solve.
            restarts: Whether to make all attempts of the solver, restarts included.

        Returns:
            (frame after the last solved frame, whether the last solved frame is a miss).

        Raises:
            InputError: If a target cannot be used.
        """
        problem, part = self.problem, slice(known, frames.stop)
        ints, table, rows = self._all if restarts else self._usual, track.table[part], track.rows[part]
        given = ints, self._floats, table, track.first, rows, self._scratch, WARM, frames.start - known
        call = partial(problem.kernel, *given)
        code = problem.checked_call(call, track.table, track.targets, many=True, first=known)
        return known + (code >> ROWS_AT), bool(code & MISSED)

    def along(self, track: Frames, clip: Array, frames: range) -> tuple[int, bool]:
        """Solve consecutive frames along a clip, up to the first miss.

        Frame t starts at the pose t of the clip, changed in the same way as the previous frame was. This pose is also
        the reference of rest goals. Other goals without a target keep the pose of the start.

        Args:
            track: All frames; the first one is not solved.
            clip: Poses of the clip, (T, nq).
            frames: The frames to solve; the frames before them are already solved.

        Returns:
            (frame after the last solved frame, whether the last solved frame is a miss).

        Raises:
            InputError: If a target cannot be used.
        """
        return self._along(self._usual, track, clip, frames)

    def start_along(self, track: Frames, clip: Array, frame: int) -> None:
        """Write the start of a frame for ``along``, without solving the frame."""
        if self._unsolved is None:
            self._unsolved = self.problem.settings(self._usual, attempts=0)
        self._along(self._unsolved, track, clip, range(frame, frame + 1))

    def _along(self, ints: Ints, track: Frames, clip: Array, frames: range) -> tuple[int, bool]:
        """Solve frames as ``along`` does, with given integers of the packed problem."""
        problem, part = self.problem, slice(frames.start - 1, frames.stop)
        table, starts, rows = track.table[part], track.first[part], track.rows[part]
        before = self.postures(clip[part.start : frames.start])[0]

        def call() -> int:
            starts[1:] = clip[frames.start : frames.stop]
            self.stay_near(before)
            return problem.kernel(ints, self._floats, table, starts, rows, self._scratch, WARM, 1)

        code = problem.checked_call(call, track.table, track.targets, first=part.start)
        return part.start + (code >> ROWS_AT), bool(code & MISSED)

    def attempt(self, table: Array, start: Array, row: Array, *, usual: bool = False) -> bool:
        """Solve one frame of a track from another start (1, nq), and return whether the frame is a miss.

        Make one attempt, or with ``usual`` the attempts of this frame solver.
        """
        ints = self._usual if usual else self.problem.settings(self._all, attempts=1)
        return bool(self.problem.kernel(ints, self._floats, table, start, row, self._scratch, WARM, 0) & MISSED)

    def each(self, table: Array, starts: Array, targets: Targets | None = None) -> Array:
        """Solve independent problems and return their rows of results, (B, n), without improving misses.

        Args:
            table: Targets, (B, goals, 17).
            starts: Joint values within the limits, (B, nq) or (1, nq).
            targets: The targets in the table, for error messages.

        Raises:
            InputError: If a target cannot be used.
        """
        problem, rows = self.problem, self.problem.new_rows(len(table))
        given = self._usual, self._floats, table, np.ascontiguousarray(starts), rows, self._scratch, COLD, 0
        problem.checked_call(partial(problem.kernel, *given), table, targets, many=True)
        return rows

    def remember(self) -> Array:
        """Return a copy of the scratch memory, for ``restore``."""
        return self._scratch.copy()

    def restore(self, memory: Array) -> None:
        """Restore the scratch memory that ``remember`` returned."""
        self._scratch[:] = memory


def complete(ik: CompiledProblem, table: Array, rows: Array) -> Array:
    """Return the table of targets; missing targets are those that a first solve read from its start."""
    out = table.copy()
    given = np.array([goal.pose_parts for goal in ik.goals])
    plain = given > 0
    out[:, plain, :TRANSFORM_WIDTH] = ik.targets_in(rows)[:, plain]
    out[:, plain, GIVEN] = given[plain]
    return out
