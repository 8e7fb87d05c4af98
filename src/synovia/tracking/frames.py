"""Solving the frames of a track in turn, each from where the one before ended, and what is tried when one misses."""

from __future__ import annotations

from collections.abc import Callable
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
"""Solves frames: run(packed settings, the frame that takes the first start, the first frame, the one to stop before).

It stops at the first miss. It returns the frame after the last one that it solved, and whether that last one missed.
"""
_REPORT: Final = 200  # frames between two reports of progress, at least
_STILL: Final = 1e-6  # radians, length units: if no joint changed by more, the pose did not move
_LONGER: Final = 10  # attempts: the steps of so many are given to a frame before it is restarted elsewhere


def solve_frames(
    ik: CompiledProblem, table: Array, first: Array, progress: Progress, *, targets: Targets, watch: Watch
) -> Array:
    """Return the answers of frames, each started from the one before.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        first: The start of the first frame, (1, nq).
        progress: Called with (frames done, all).
        targets: What the table was made from, for the message of a refusal.
        watch: When to stop.
    """
    out = ik.new_rows(len(table))
    scratch = new_scratch(ik.scratch_size)

    def run(ints: Ints, known: int, frame: int, last: int) -> tuple[int, bool]:
        """Solve frames; see ``Run``."""
        part = slice(known, last)
        code = ik.kernel(ints, ik.floats, table[part], first, out[part], scratch, True, frame - known)
        if code < 0:
            ik.writer.refuse(code - len(ik.goals) * known, targets)
        return known + (code >> 1), bool(code & 1)

    def classify(frame: int) -> None:
        """Polish a miss and write its status."""
        start = out[frame - 1 : frame, ik.places].copy() if frame else first
        ik.classify(start, out[frame : frame + 1], scratch, frame == 0)

    with watch.over(scratch):
        _fill(ik, out, run, classify, progress)
    mark_interrupted(out)
    return out


def _fill(ik: CompiledProblem, rows: Array, run: Run, classify: Callable[[int], None], progress: Progress) -> None:
    """Fill the rows of a track.

    An attempt is normally given up early because another start may be cheaper. In a track another start is a jump, so a
    frame may take the steps of several attempts first; not with strict priorities.
    """
    ints = once = ik.ints
    if not ik.solver.supports_priorities:
        once = ints.copy()
        once[ATTEMPTS], once[PATIENCE] = 1, ints[MAX_STEPS]
        once[MAX_STEPS] *= min(_LONGER, int(ints[ATTEMPTS]))
    frame = 0
    while frame < len(rows):
        if frame == 0:
            done, missed = run(ints, frame, frame, frame + 1)
        else:
            # A kernel checks all targets of its part first, also after a miss: growing parts keep that linear in time.
            further = max(_REPORT, frame // 10)
            done, missed = run(once, 0, frame, min(frame + further, len(rows)))
            if missed and ints[ATTEMPTS] > once[ATTEMPTS] and rows[done - 1, STOPPED_BY] not in INTERRUPTED:
                missed = not _left_saddle(ik, rows, classify, done - 1) and _restarted(rows, run, ints, done - 1)
        if missed:
            classify(done - 1)
        frame = done
        progress(frame, len(rows))


def _left_saddle(ik: CompiledProblem, rows: Array, classify: Callable[[int], None], frame: int) -> bool:
    """Return whether a frame that did not move reaches its goals once it is polished; if so, it needs no restart.

    A straight limb whose target lies right behind it has no first-order step to take. Polishing leaves such saddles; a
    restart would be a jump.
    """
    moved = np.abs(rows[frame, ik.places] - rows[frame - 1, ik.places]).max(initial=0.0)
    if moved > _STILL or rows[frame, STATUS] == Status.UNREACHABLE:
        return False
    classify(frame)
    return bool(rows[frame, STATUS] == Status.REACHED)


def _restarted(rows: Array, run: Run, ints: Ints, frame: int) -> bool:
    """Solve a frame with restarts and return whether it is still missed; the better one of both answers is kept."""
    alone = rows[frame].copy()
    _, missed = run(ints, 0, frame, frame + 1)
    steps, tries, cut = alone[STEPS] + rows[frame, STEPS], rows[frame, TRIES], rows[frame, STOPPED_BY]
    if missed and alone[COST] <= rows[frame, COST]:
        rows[frame] = alone
    rows[frame, [STEPS, TRIES, STOPPED_BY]] = steps, tries, cut
    return missed
