"""Solve the frames of a track in order, each from the pose of the previous frame, with restarts after a miss."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch, new_scratch
from synovia.ik.parallel import Progress
from synovia.ik.status import INTERRUPTED, Status, mark_interrupted
from synovia.ik.targets import Targets
from synovia.kernels.layout import (
    ATTEMPTS,
    COST,
    MAX_STEPS,
    MISSED,
    PATIENCE,
    PROPOSED_FIRST,
    ROWS_AT,
    STATUS,
    STEPS,
    STOPPED_BY,
    TRIES,
    WARM,
    WINNER,
)
from synovia.model.geometry import Array
from synovia.problem import Bends, References
from synovia.problem.bends import SIZES
from synovia.tracking.jumps import complete

Ints = NDArray[np.int32]
_REPORT: Final = 200  # least frames between two reports of progress
_STILL: Final = 1e-6  # radians, length units: largest joint change of a pose that did not move
_LONGER: Final = 10  # attempts; a frame gets the steps of so many before a restart
_SMALL_SIZES: Final = 2  # bends that are tried in a track; larger ones would be jumps
_BENT: Final = np.array(
    [0.02]
)  # sine of the angle between the bones of a limb that was straight, from which its side counts
_ASIDE: Final = 0.7  # a limb whose bend has a smaller part to its side has bent to another side


def solve_frames(
    ik: CompiledProblem,
    table: Array,
    first: Array,
    progress: Progress,
    *,
    targets: Targets,
    watch: Watch,
    starts: Array | None = None,
) -> Array:
    """Return rows of results of all frames, each started from the previous one.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        first: The start of the first frame, (1, nq).
        progress: Called with (frames done, all).
        targets: The targets in the table, for error messages.
        watch: When to stop.
        starts: A start for each frame, (T, nq), in place of the previous one.
    """
    track = _Track(ik, table, first, targets, starts)
    with watch.over(track.scratch):
        track.fill(progress)
    mark_interrupted(track.rows)
    return track.rows


class _Track:
    """The frames of a track.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        first: The start of the first frame, (1, nq).
        targets: The targets in the table, for error messages.
        starts: A start for each frame, (T, nq), in place of the previous one.
    """

    def __init__(
        self, ik: CompiledProblem, table: Array, first: Array, targets: Targets, starts: Array | None = None
    ) -> None:
        """Begin without a frame."""
        self._starts = starts
        self._references = None if ik.reduced.path is None else References(ik.ints, ik.floats, ik.reduced.variables)
        self._postures = np.empty(0)
        self._numbers = ik.floats if self._references is None else self._references.floats
        if ik.obstacle_places is not None and self._references is None:
            self._numbers = ik.floats.copy()
        if self._references is not None and ik.reduced.path is not None:
            self._postures = self._references.tables(ik.reduced.path)
        self.rows = ik.new_rows(len(table))
        self.scratch = new_scratch(ik.scratch_size)
        self._ik, self._table, self._first, self._targets = ik, table, first, targets
        self._all = ik.ints  # settings with all attempts
        if ik.begun is not None:  # a restart begins at the poses that were learned, but a frame at the one before it
            self._all, self._numbers = ik.begun[0].copy(), ik.begun[1]
            self._all[PROPOSED_FIRST] = 0
        self._single = self._all
        if not ik.method.supports_priorities:
            self._single = self._all.copy()
            self._single[ATTEMPTS], self._single[PATIENCE] = 1, ik.ints[MAX_STEPS]
            self._single[MAX_STEPS] *= min(_LONGER, int(ik.ints[ATTEMPTS]))

    def fill(self, progress: Progress) -> None:
        """Solve all frames.

        Normally an attempt ends early, because another start may be cheaper. In a track, another start is a jump. So a
        frame first gets the steps of several attempts, except with strict priorities.
        """
        if len(self.rows):
            self._solve_first()
            progress(1, len(self.rows))
        frame = 1
        while frame < len(self.rows):
            # A kernel first checks all targets of its part, again after a miss. Growing parts keep this linear in time.
            further = max(_REPORT, frame // 10)
            done, missed = self._run(self._single, 0, frame, min(frame + further, len(self.rows)))
            done, missed = self._bend(frame, done, missed)
            if missed and self._all[ATTEMPTS] > self._single[ATTEMPTS] and not self._interrupted(done - 1):
                missed = not self._polished(done - 1) and self._restarted(done - 1)
                _, missed = self._bend(done - 1, done, missed)
            if missed:
                self._classify(done - 1)
            frame = done
            progress(frame, len(self.rows))

    def _run(self, ints: Ints, known: int, frame: int, last: int) -> tuple[int, bool]:
        """Solve frames up to ``last`` or the first miss.

        Args:
            ints: Packed settings.
            known: First frame that the kernel is given.
            frame: First frame to solve.
            last: The frame after the last.

        Returns:
            (the frame after the last solved one, whether that one missed).
        """
        if self._starts is None and self._references is None and self._ik.obstacle_places is None:
            return self._run_part(ints, self._numbers, known, frame, last)
        for k in range(frame, last):
            floats, before = self._floats(k), max(k - 1, 0)
            if self._starts is None or k == 0:
                _, missed = self._run_part(ints, floats, before, k, k + 1)
            else:  # a kernel starts at the answer of the row before
                answer = self._values(before)
                self.rows[before, self._ik.places] = self._starts[k]
                _, missed = self._run_part(ints, floats, before, k, k + 1)
                self.rows[before, self._ik.places] = answer
            if missed:
                return k + 1, True
        return last, False

    def _run_part(self, ints: Ints, floats: Array, known: int, frame: int, last: int) -> tuple[int, bool]:
        """Solve frames in one call of the kernel, as ``_run`` does."""
        ik, part = self._ik, slice(known, last)
        given = (ints, floats, self._table[part], self._first, self.rows[part], self.scratch, WARM, frame - known)
        code = ik.settled(partial(ik.kernel, *given), self._table, self._targets, many=True, first=known)
        return known + (code >> ROWS_AT), bool(code & MISSED)

    def _start(self, frame: int) -> Array:
        """Return the joint values from which a frame starts, (nq,)."""
        if self._starts is not None:
            return self._starts[frame]
        return self._values(frame - 1) if frame else self._first[0]

    def _floats(self, frame: int) -> Array:
        """Return the numbers of the problem of a frame."""
        if self._references is not None:
            self._references.put(self._postures[frame])
        if self._ik.obstacle_places is not None:
            self._ik.obstacle_places.put(self._numbers, frame)
        return self._numbers

    def _solve_first(self) -> None:
        """Solve the first frame, which is not near the start."""
        if self._run(self._all, 0, 0, 1)[1]:
            self._classify(0)

        def again(starts: Array, _: object) -> Array:
            ik, row, floats = self._ik, self._ik.new_rows(1), self._floats(0)
            if ik.kernel(ik.one_attempt, floats, self._table[:1], starts, row, self.scratch, WARM, 0) & MISSED:
                ik.classify(starts, row, self.scratch, floats=floats)
            return row

        self._ik.bend_well(self._first, self.rows[:1], again)

    def _classify(self, frame: int) -> None:
        """Polish and classify a missed frame."""
        start = self._start(frame)[None]
        # with follow_finish the solver's own kernel has searched
        searches = frame == 0 and self._ik.solver.follow_finish is None
        self._ik.classify(start, self.rows[frame : frame + 1], self.scratch, searches, self._floats(frame))

    def _values(self, frame: int) -> Array:
        """Return a copy of the joint values of a frame, (nq,)."""
        return self.rows[frame, self._ik.places].copy()

    def _interrupted(self, frame: int) -> bool:
        """Return whether a frame was interrupted."""
        return bool(self.rows[frame, STOPPED_BY] in INTERRUPTED)

    def _bend(self, frame: int, done: int, missed: bool) -> tuple[int, bool]:
        """Solve the first frame again in which a straight limb bends to another side than its own, and end there.

        It starts from the pose before it, with that limb bent a little to its side. A restart counts as another side.

        Args:
            frame: First frame to look at.
            done: The frame after the last.
            missed: Whether that one missed.

        Returns:
            (frames done, whether the last of them missed).
        """
        bends = self._ik.bends
        if bends is None or self._interrupted(done - 1):
            return done, missed
        values = self.rows[frame - 1 : done, self._ik.places]
        shares = bends.shares(values[:-1], values[1:], _BENT)
        restarted = self.rows[frame:done, WINNER] > 0
        if shares is None:
            if not restarted.any():
                return done, missed
            shares = np.ones((done - frame, len(bends.places)))
        shares[restarted] = -1.0
        wrong = (shares < _ASIDE).any(axis=1)
        if not wrong.any():
            return done, missed
        k = int(np.flatnonzero(wrong)[0])
        at = frame + k
        missed = missed and at + 1 == done
        return at + 1, self._bend_frame(bends, at, (shares[k : k + 1] < _ASIDE).astype(np.float64), missed)

    def _bend_frame(self, bends: Bends, at: int, limbs: Array, missed: bool) -> bool:
        """Solve a frame again with some limbs bent at its start, and return whether it is still missed.

        Args:
            bends: The limbs.
            at: The frame.
            limbs: 1 for the limbs to bend, (1, k).
            missed: Whether the frame is missed.
        """
        before, best, memory = self._values(at - 1), self.rows[at].copy(), self.scratch.copy()
        now = bends.shares(before[None], best[self._ik.places][None], _BENT)
        share = -1.0 if best[WINNER] > 0 or now is None else float(now.min())
        for size in SIZES[:_SMALL_SIZES]:
            bent = bends.bent(before[None], size, limbs)
            if bent is None:
                break
            still_missed = self._run_from(bent, at)
            now = bends.shares(before[None], self.rows[at : at + 1, self._ik.places], _BENT)
            found = 1.0 if now is None else float(now.min())
            if found > share and (missed or not still_missed):
                best, memory, share, missed = self.rows[at].copy(), self.scratch.copy(), found, still_missed
            if share >= _ASIDE:
                break
        self.rows[at], self.scratch[:] = best, memory
        return missed

    def _run_from(self, start: Array, at: int) -> bool:
        """Solve a frame from another pose, (1, nq), than that of the frame before; return whether it is missed."""
        ik = self._ik
        row = self.rows[at : at + 1]
        if ik.solver.closed:  # in a track, closed forms start from an answer in their scratch memory
            part = complete(ik, self._table[at : at + 1], row)
            code = ik.kernel(self._single, self._floats(at), part, start, row, self.scratch, WARM, 0)
            return bool(code & MISSED)
        before = self._values(at - 1)
        self.rows[at - 1, ik.places] = start[0]
        _, missed = self._run_part(self._single, self._floats(at), 0, at, at + 1)
        self.rows[at - 1, ik.places] = before
        return missed

    def _polished(self, frame: int) -> bool:
        """Return whether a missed frame reaches its goals after polishing; it then needs no restart, which is a jump.

        A frame that did not move is polished: a straight limb with a target behind it has no first-order step, and
        polishing leaves such saddle points. So is every frame of a solver whose own steps are too small to converge.
        """
        moved = np.abs(self._values(frame) - self._start(frame)).max(initial=0.0)
        moved_well = moved > _STILL and self._ik.solver.follow_finish is None
        if moved_well or self.rows[frame, STATUS] == Status.UNREACHABLE:
            return False
        self._classify(frame)
        return bool(self.rows[frame, STATUS] == Status.REACHED)

    def _restarted(self, frame: int) -> bool:
        """Solve a frame with restarts, keep the better result, and return whether it is still missed."""
        rows, alone = self.rows, self.rows[frame].copy()
        _, missed = self._run(self._all, 0, frame, frame + 1)
        steps, tries, cut = alone[STEPS] + rows[frame, STEPS], rows[frame, TRIES], rows[frame, STOPPED_BY]
        if missed and alone[COST] <= rows[frame, COST]:
            rows[frame] = alone
        rows[frame, [STEPS, TRIES, STOPPED_BY]] = steps, tries, cut
        return missed
