"""Solve the frames of a track in order, each from the pose of the previous frame, with restarts after a miss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch, new_scratch
from synovia.ik.parallel import Progress
from synovia.ik.status import INTERRUPTED, Status, mark_interrupted
from synovia.ik.targets import Targets
from synovia.kernels.layout import ATTEMPTS, COST, MAX_STEPS, PATIENCE, STATUS, STEPS, STOPPED_BY, TRIES
from synovia.model.geometry import Array

Ints = NDArray[np.int32]
Run = Callable[[Ints, int, int, int], tuple[int, bool]]
"""Solves frames: run(packed settings, first known frame, first frame, end frame).

It stops at the first miss. It returns the frame after the last solved one, and whether that last one missed.
"""
_REPORT: Final = 200  # least frames between two reports of progress
_STILL: Final = 1e-6  # radians, length units: largest joint change of a pose that did not move
_LONGER: Final = 10  # attempts; a frame gets the steps of so many before a restart


def solve_frames(
    ik: CompiledProblem, table: Array, first: Array, progress: Progress, *, targets: Targets, watch: Watch
) -> Array:
    """Return rows of results of all frames, each started from the previous one.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        first: The start of the first frame, (1, nq).
        progress: Called with (frames done, all).
        targets: The targets in the table, for error messages.
        watch: When to stop.
    """
    out = ik.new_rows(len(table))
    scratch = new_scratch(ik.scratch_size)

    def run(ints: Ints, known: int, frame: int, last: int) -> tuple[int, bool]:
        """Solve frames; see ``Run``."""
        part = slice(known, last)
        call = partial(ik.kernel, ints, ik.floats, table[part], first, out[part], scratch, True, frame - known)
        code = ik.settled(call, table, targets, many=True, first=known)
        return known + (code >> 1), bool(code & 1)

    def classify(frame: int) -> None:
        """Polish and classify a missed frame."""
        start = out[frame - 1 : frame, ik.places].copy() if frame else first
        ik.classify(start, out[frame : frame + 1], scratch, frame == 0)

    with watch.over(scratch):
        _fill(ik, out, run, classify, progress)
    mark_interrupted(out)
    return out


def _fill(ik: CompiledProblem, rows: Array, run: Run, classify: Callable[[int], None], progress: Progress) -> None:
    """Fill the rows of a track.

    Normally an attempt ends early, because another start may be cheaper. In a track, another start is a jump. So a
    frame first gets the steps of several attempts, except with strict priorities.
    """
    ints = single = ik.ints
    if not ik.solver.supports_priorities:
        single = ints.copy()
        single[ATTEMPTS], single[PATIENCE] = 1, ints[MAX_STEPS]
        single[MAX_STEPS] *= min(_LONGER, int(ints[ATTEMPTS]))
    frame = 0
    while frame < len(rows):
        if frame == 0:
            done, missed = run(ints, frame, frame, frame + 1)
        else:
            # A kernel first checks all targets of its part, again after a miss. Growing parts keep this linear in time.
            further = max(_REPORT, frame // 10)
            done, missed = run(single, 0, frame, min(frame + further, len(rows)))
            if missed and ints[ATTEMPTS] > single[ATTEMPTS] and rows[done - 1, STOPPED_BY] not in INTERRUPTED:
                missed = not _left_saddle(ik, rows, classify, done - 1) and _restarted(rows, run, ints, done - 1)
        if missed:
            classify(done - 1)
        frame = done
        progress(frame, len(rows))


def _left_saddle(ik: CompiledProblem, rows: Array, classify: Callable[[int], None], frame: int) -> bool:
    """Return whether a frame that did not move reaches its goals after polishing; it then needs no restart.

    A straight limb with a target behind it has no first-order step. Polishing leaves such saddle points, while a
    restart would be a jump.
    """
    moved = np.abs(rows[frame, ik.places] - rows[frame - 1, ik.places]).max(initial=0.0)
    if moved > _STILL or rows[frame, STATUS] == Status.UNREACHABLE:
        return False
    classify(frame)
    return bool(rows[frame, STATUS] == Status.REACHED)


def _restarted(rows: Array, run: Run, ints: Ints, frame: int) -> bool:
    """Solve a frame with restarts, keep the better result, and return whether it is still missed."""
    alone = rows[frame].copy()
    _, missed = run(ints, 0, frame, frame + 1)
    steps, tries, cut = alone[STEPS] + rows[frame, STEPS], rows[frame, TRIES], rows[frame, STOPPED_BY]
    if missed and alone[COST] <= rows[frame, COST]:
        rows[frame] = alone
    rows[frame, [STEPS, TRIES, STOPPED_BY]] = steps, tries, cut
    return missed
