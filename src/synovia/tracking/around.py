"""Solve frames around a clip: each frame near its pose in the clip, which is also the reference of rest goals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.ik.compiled import CompiledProblem
from synovia.ik.frame import Frames, FrameSolver
from synovia.ik.interrupts import Watch
from synovia.ik.status import Status, reached, status_of
from synovia.model.geometry import Array
from synovia.problem.bends import SIZES

Bools = NDArray[np.bool_]
_PART: Final = 64  # number of frames between reports of progress


class Around:
    """Solves frames of one problem around poses of a clip.

    Args:
        ik: The problem; its rest goals use each frame's pose in the clip as their reference.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Allocate memory."""
        self.ik = ik
        self._frame = FrameSolver(ik)
        bends, self._mechanism = ik.bends, ik.skeleton.mechanism
        self._bends = bends if bends is not None and len(bends.places) else None

    def solve(
        self,
        reference: Array,
        table: Array,
        watch: Watch,
        before: tuple[Array, Array] | None = None,
        *,
        must: Bools | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Array | None:
        """Solve frames in order and return their rows of results.

        Args:
            reference: Poses of the clip, (n, nq).
            table: Targets, (n, goals, 17).
            watch: Stops the solves.
            before: Pose of the clip and solution, (nq,) each, of the frame before the first one.
            must: Mask of frames that must reach their goals, (n,). Only their misses are improved; if one remains,
                return None. With None, each miss is improved.
            progress: Called with the number of frames done since the last call.
        """
        ik, frame = self.ik, self._frame
        own, answer = (reference[0], reference[0]) if before is None else before
        if self._mechanism is not None:
            answer = self._mechanism.shut_clip(answer[None])[0]
        clip, rows = np.concatenate([own[None], reference]), ik.new_rows(len(table) + 1)
        track = Frames(np.concatenate([table[:1], table]), np.empty_like(clip), rows, None)
        rows[0, ik.places] = answer
        done, size = 1, _PART
        with frame.until(watch):
            while done < len(rows):
                first, missed = done, False
                if size > 1:
                    done, missed = frame.along(track, clip, range(first, min(first + size, len(rows))))
                else:  # the start of the previous frame is not the one that the kernel would use
                    frame.start_along(track, clip, first)
                    done += 1
                starts = track.first[first:done]
                better = self._better(starts, rows[first - 1 : done - 1, ik.places])
                off = np.flatnonzero((better != starts).any(axis=1))
                if len(off):  # the kernel solved this frame from an uncorrected start, and later frames from its pose
                    done = first + int(off[0]) + 1
                last, improves = slice(done - 1, done), must is None or must[done - 2]
                if len(off) or size == 1:
                    start, posture = better[last.start - first : last.stop - first], frame.postures(clip[last])[0]
                    recover = "polish" if improves else "none"
                    frame.solve(track.table[last], start, rows[last], posture=posture, recover=recover)
                elif missed and improves and (must is None or status_of(rows[done - 1]) is not Status.UNREACHABLE):
                    frame.improve(track.first[last], rows[last])
                size = 1 if len(off) else min(2 * size, _PART)
                if must is not None and improves and not reached(rows[last])[0]:
                    return None
                if progress is not None:
                    progress(done - first)
        return rows[1:]

    def _better(self, starts: Array, answers: Array) -> Array:
        """Return starts (n, nq) with straight limbs bent to their sides, and loops closed as in previous frames."""
        if self._bends is not None:
            bent = self._bends.bent(starts, SIZES[0], np.ones((1, len(self._bends.places))))
            starts = starts if bent is None else bent
        return starts if self._mechanism is None else self._mechanism.shut_clip(starts, anchors=answers)

    def missed(self, rows: Array) -> Array:
        """Return a mask of the rows of results that miss a goal, (n,)."""
        return np.logical_not(reached(rows))
