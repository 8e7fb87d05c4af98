"""Solve the frames of a track in order, each from the pose of the previous frame, with restarts after a miss."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.arguments import Progress
from synovia.ik.compiled import CompiledProblem
from synovia.ik.frame import Frames, FrameSolver, complete
from synovia.ik.interrupts import Watch
from synovia.ik.status import Status, better_of, interrupted, mark_interrupted, restarted, status_of
from synovia.ik.targets import Targets
from synovia.model.geometry import Array
from synovia.problem import Bends
from synovia.problem.bends import SIZES

_REPORT: Final = 200  # smallest number of frames between reports of progress
_STILL: Final = 1e-6  # radians or length units: largest change of a joint in a pose that counts as unmoved
_LONGER: Final = 10  # a frame may use the steps of this number of attempts before it is restarted
_SMALL_SIZES: Final = 2  # number of bends that are tried in a track; larger bends would be jumps
_BENT: Final = np.array(
    [0.02]
)  # sine of the angle between the bones: at smaller angles, a limb that was straight still counts as straight
# smallest share of a bend to the correct side; with a smaller share, a limb has bent to a wrong side
_ASIDE: Final = 0.7


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
    """Solve all frames, each from the pose of the previous frame, and return their rows of results.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        first: The start of the first frame, (1, nq).
        progress: Called with (frames done, number of frames).
        targets: The targets in the table, for error messages.
        watch: Stops the solves.
        starts: A start for each frame, (T, nq), in place of the pose of the previous frame.
    """
    track = _Track(ik, table, first, targets, starts)
    with track.frame.until(watch):
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
        starts: A start for each frame, (T, nq), in place of the pose of the previous frame.
    """

    def __init__(
        self, ik: CompiledProblem, table: Array, first: Array, targets: Targets, starts: Array | None = None
    ) -> None:
        """Begin with no frame solved."""
        steps, attempts, _ = ik.method.search
        if ik.method.supports_priorities:
            self.frame = FrameSolver(ik)
        else:
            self.frame = FrameSolver(ik, attempts=1, steps=steps * min(_LONGER, attempts), patience=steps)
        self._starts = starts
        self._postures = None if ik.reduced.path is None else self.frame.postures(ik.reduced.path)
        self.rows = ik.new_rows(len(table))
        self._frames = Frames(table, first, self.rows, targets)
        self._ik, self._table, self._first = ik, table, first

    def fill(self, progress: Progress) -> None:
        """Solve all frames.

        Normally an attempt ends early, because another start may be cheaper. In a track, another start causes a jump.
        So a frame first gets the steps of several attempts, except with strict priorities.
        """
        if len(self.rows):
            self._solve_first()
            progress(1, len(self.rows))
        frame = 1
        while frame < len(self.rows):
            # A kernel checks all targets of its part first, and again after a miss. Growing parts keep the time linear.
            further = max(_REPORT, frame // 10)
            done, missed = self._run(frame, min(frame + further, len(self.rows)))
            done, missed = self._bend(frame, done, missed)
            if missed and self.frame.has_restarts and not self._interrupted(done - 1):
                missed = not self._polished(done - 1) and self._restarted(done - 1)
                _, missed = self._bend(done - 1, done, missed)
            if missed:
                self._classify(done - 1)
            frame = done
            progress(frame, len(self.rows))

    def _run(self, frame: int, last: int, *, restarts: bool = False) -> tuple[int, bool]:
        """Solve frames up to ``last`` or the first miss.

        Args:
            frame: First frame to solve.
            last: The frame after the last.
            restarts: Whether to make all attempts of the solver.

        Returns:
            (frame after the last solved frame, whether the last solved frame is a miss).
        """
        if self._starts is None and self._postures is None and self._ik.obstacle_places is None:
            return self._follow(frame, last, restarts=restarts)
        for k in range(frame, last):
            self._place(k)
            start = None if self._starts is None or k == 0 else self._starts[k]
            _, missed = self._follow(k, k + 1, start, known=max(k - 1, 0), restarts=restarts)
            if missed:
                return k + 1, True
        return last, False

    def _follow(
        self, frame: int, last: int, start: Array | None = None, *, known: int = 0, restarts: bool = False
    ) -> tuple[int, bool]:
        """Solve frames in one kernel call, as ``_run`` does; ``start`` (nq,) replaces the start of the first frame."""
        answer = None
        if start is not None:  # the kernel starts a frame at the solution in the previous row
            answer, self.rows[frame - 1, self._ik.places] = self._values(frame - 1), start
        out = self.frame.follow(self._frames, range(frame, last), known=known, restarts=restarts)
        if answer is not None:
            self.rows[frame - 1, self._ik.places] = answer
        return out

    def _start(self, frame: int) -> Array:
        """Return the joint values from which a frame starts, (nq,)."""
        if self._starts is not None:
            return self._starts[frame]
        return self._values(frame - 1) if frame else self._first[0]

    def _place(self, frame: int) -> None:
        """Set the posture and the obstacle places for a frame."""
        if self._postures is not None:
            self.frame.stay_near(self._postures[frame])
        if self._ik.obstacle_places is not None:
            self.frame.put(self._ik.obstacle_places, frame)

    def _solve_first(self) -> None:
        """Solve the first frame, which may be far from the start."""
        if self._run(0, 1, restarts=True)[1]:
            self._classify(0)

        def again(starts: Array, _: object) -> Array:
            row = self._ik.new_rows(1)
            self._place(0)
            if self.frame.attempt(self._table[:1], starts, row):
                self.frame.improve(starts, row, search=True)
            return row

        self._ik.bend_well(self._first, self.rows[:1], again)

    def _classify(self, frame: int) -> None:
        """Polish and classify a missed frame."""
        start = self._start(frame)[None]
        # solvers with follow_finish have already searched
        searches = frame == 0 and self._ik.solver.follow_finish is None
        self._place(frame)
        self.frame.improve(start, self.rows[frame : frame + 1], search=searches)

    def _values(self, frame: int) -> Array:
        """Return a copy of the joint values of a frame, (nq,)."""
        return self.rows[frame, self._ik.places].copy()

    def _interrupted(self, frame: int) -> bool:
        """Return whether a frame was interrupted."""
        return bool(interrupted(self.rows[frame : frame + 1])[0])

    def _bend(self, frame: int, done: int, missed: bool) -> tuple[int, bool]:
        """Find the first frame in which a straight limb bends to a wrong side, solve it again, and stop after it.

        The new solve starts from the pose of the previous frame, with that limb bent a little to its side. A restart is
        treated like a wrong side.

        Args:
            frame: First frame to check.
            done: The frame after the last solved frame.
            missed: Whether the last solved frame is a miss.

        Returns:
            (frame after the last valid frame, whether the last valid frame is a miss).
        """
        bends = self._ik.bends
        if bends is None or self._interrupted(done - 1):
            return done, missed
        values = self.rows[frame - 1 : done, self._ik.places]
        shares = bends.shares(values[:-1], values[1:], _BENT)
        elsewhere = restarted(self.rows[frame:done])
        if shares is None:
            if not elsewhere.any():
                return done, missed
            shares = np.ones((done - frame, len(bends.places)))
        shares[elsewhere] = -1.0
        wrong = (shares < _ASIDE).any(axis=1)
        if not wrong.any():
            return done, missed
        k = int(np.flatnonzero(wrong)[0])
        at = frame + k
        missed = missed and at + 1 == done
        return at + 1, self._bend_frame(bends, at, (shares[k : k + 1] < _ASIDE).astype(np.float64), missed)

    def _bend_frame(self, bends: Bends, at: int, limbs: Array, missed: bool) -> bool:
        """Solve a frame again with the given limbs bent at its start, and return whether it is a miss.

        Args:
            bends: The limbs of the problem.
            at: The frame.
            limbs: 1 for the limbs to bend, else 0, (1, k).
            missed: Whether the frame was a miss before.
        """
        before, best, memory = self._values(at - 1), self.rows[at].copy(), self.frame.remember()
        now = bends.shares(before[None], best[self._ik.places][None], _BENT)
        share = -1.0 if restarted(best[None])[0] or now is None else float(now.min())
        for size in SIZES[:_SMALL_SIZES]:
            bent = bends.bent(before[None], size, limbs)
            if bent is None:
                break
            still_missed = self._run_from(bent, at)
            now = bends.shares(before[None], self.rows[at : at + 1, self._ik.places], _BENT)
            found = 1.0 if now is None else float(now.min())
            if found > share and (missed or not still_missed):
                best, memory, share, missed = self.rows[at].copy(), self.frame.remember(), found, still_missed
            if share >= _ASIDE:
                break
        self.rows[at] = best
        self.frame.restore(memory)
        return missed

    def _run_from(self, start: Array, at: int) -> bool:
        """Solve a frame from a start, (1, nq), in place of the previous pose; return whether it is a miss."""
        row = self.rows[at : at + 1]
        self._place(at)
        if self._ik.solver.closed:  # in a track, closed forms start from the solution in their scratch memory
            return self.frame.attempt(complete(self._ik, self._table[at : at + 1], row), start, row, usual=True)
        return self._follow(at, at + 1, start[0])[1]

    def _polished(self, frame: int) -> bool:
        """Return whether a missed frame reaches its goals after polishing, so that no restart (a jump) is needed.

        Polish frames whose pose did not move: a straight limb with a target behind it has no first-order step, and
        polishing leaves such saddle points. Polish all frames of solvers whose own steps are too small to converge.
        """
        moved = np.abs(self._values(frame) - self._start(frame)).max(initial=0.0)
        moved_well = moved > _STILL and self._ik.solver.follow_finish is None
        if moved_well or status_of(self.rows[frame]) is Status.UNREACHABLE:
            return False
        self._classify(frame)
        return status_of(self.rows[frame]) is Status.REACHED

    def _restarted(self, frame: int) -> bool:
        """Solve a frame with restarts; if the result is better, use it. Return whether the frame is a miss."""
        before = self.rows[frame].copy()
        _, missed = self._run(frame, frame + 1, restarts=True)
        self.rows[frame] = better_of(before, self.rows[frame])
        return missed
