"""Solving the frames of a track in turn, each from where the one before ended, and what is tried when one misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.ik.parallel import Progress
from synovia.ik.solution import INTERRUPTED
from synovia.model.geometry import Array

Ints = NDArray[np.int32]
Run = Callable[[Ints, int, int, int], tuple[int, bool]]
"""Solves frames: run(packed settings, the frame that takes the first start, the first frame, the one to stop before).

It stops at the first miss. It returns the frame after the last one that it solved, and whether that last one missed.
"""
_REPORT: Final = 200  # frames between two reports of progress, at least
_STILL: Final = 1e-6  # radians, length units: if no joint changed by more, the pose did not move
_LONGER: Final = 10  # attempts: the steps of so many are given to a frame before it is restarted elsewhere


def follow_frames(
    rows: Array,
    run: Run,
    conclude: Callable[[int], None],
    ints: Ints,
    patient: bool,
    progress: Progress,
) -> None:
    """Fill the rows of a track.

    Args:
        rows: The answers, a row a frame.
        run: Solves frames.
        conclude: Settles a frame that missed.
        ints: The packed problem with its settings.
        patient: Whether a frame may take the steps of several attempts before it is restarted elsewhere. An attempt is
            normally given up early because another start may be cheaper; in a track another start is a jump.
        progress: Called with (frames done, all).
    """
    from synovia.kernels.tree.problem import ATTEMPTS, CUT, MAX_STEPS, PATIENCE

    once = ints
    if patient:
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
            if missed and ints[ATTEMPTS] > once[ATTEMPTS] and rows[done - 1, CUT] not in INTERRUPTED:
                missed = not _settled(rows, conclude, ints, done - 1) and _restarted(rows, run, ints, done - 1)
        if missed:
            conclude(done - 1)
        frame = done
        progress(frame, len(rows))


def _settled(rows: Array, conclude: Callable[[int], None], ints: Ints, frame: int) -> bool:
    """Return whether a frame that did not move reaches its goals by the last descent; if so, it needs no restart.

    A straight limb whose target lies right behind it has no first-order step to take. The last descent leaves such
    saddles; a restart would be a jump.
    """
    from synovia.kernels.tree.problem import N_Q, OUT_HEAD, REACHED, STATUS, UNREACHABLE

    values = slice(OUT_HEAD, OUT_HEAD + int(ints[N_Q]))
    moved = np.abs(rows[frame, values] - rows[frame - 1, values]).max(initial=0.0)
    if moved > _STILL or rows[frame, STATUS] == UNREACHABLE:
        return False
    conclude(frame)
    return bool(rows[frame, STATUS] == REACHED)


def _restarted(rows: Array, run: Run, ints: Ints, frame: int) -> bool:
    """Solve a frame with restarts and return whether it is still missed; the better one of both answers is kept."""
    from synovia.kernels.tree.problem import COST, CUT, STEPS, TRIES

    alone = rows[frame].copy()
    _, missed = run(ints, 0, frame, frame + 1)
    steps, tries, cut = alone[STEPS] + rows[frame, STEPS], rows[frame, TRIES], rows[frame, CUT]
    if missed and alone[COST] <= rows[frame, COST]:
        rows[frame] = alone
    rows[frame, [STEPS, TRIES, CUT]] = steps, tries, cut
    return missed
