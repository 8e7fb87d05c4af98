"""The frames of a track one after the other, each from where the one before ended, and what a miss is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.batch import Progress
from synovia.geometry import Array

Ints = NDArray[np.int32]
Run = Callable[[Ints, int, int, int], tuple[int, bool]]
"""Solve the frames from one to another: run(settings, the frame that takes the first start, from, up to).

It ends at the first miss; returns the frame after the last that is done, and whether that one missed.
"""
_REPORT: Final = 200  # frames between two reports of progress, at least
_STILL: Final = 1e-6  # change of every joint (radians, length units) that is none
_LONGER: Final = 10  # attempts whose steps a frame may take before it is started elsewhere


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
        patient: Whether it may take the steps of several attempts from there before it is started elsewhere: an attempt
            is given up early only because another start may be cheaper, and in a track another start is a jump.
        progress: Called with (frames done, all).
    """
    from synovia.kernels.problem import ATTEMPTS, MAX_STEPS, PATIENCE

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
            further = max(
                _REPORT, frame // 10
            )  # a kernel looks at all targets up to there: growing parts, in linear time
            done, missed = run(once, 0, frame, min(frame + further, len(rows)))
            if missed and ints[ATTEMPTS] > once[ATTEMPTS]:
                missed = not _left(rows, conclude, ints, done - 1) and _elsewhere(rows, run, ints, done - 1)
        if missed:
            conclude(done - 1)
        frame = done
        progress(frame, len(rows))


def _left(rows: Array, conclude: Callable[[int], None], ints: Ints, frame: int) -> bool:
    """Return whether a frame that could not begin is settled to its goals: a straight limb, its target right behind.

    No step begins there, and a start elsewhere would be a jump.
    """
    from synovia.kernels.problem import N_Q, OUT_HEAD, REACHED, STATUS, UNREACHABLE

    values = slice(OUT_HEAD, OUT_HEAD + int(ints[N_Q]))
    moved = np.abs(rows[frame, values] - rows[frame - 1, values]).max(initial=0.0)
    if moved > _STILL or rows[frame, STATUS] == UNREACHABLE:
        return False
    conclude(frame)
    return bool(rows[frame, STATUS] == REACHED)


def _elsewhere(rows: Array, run: Run, ints: Ints, frame: int) -> bool:
    """Solve a frame with restarts; return whether it is missed still, the better answer of both being kept then."""
    from synovia.kernels.problem import COST, STEPS, TRIES

    alone = rows[frame].copy()
    _, missed = run(ints, 0, frame, frame + 1)
    steps, tries = alone[STEPS] + rows[frame, STEPS], rows[frame, TRIES]
    if missed and alone[COST] <= rows[frame, COST]:
        rows[frame] = alone
    rows[frame, [STEPS, TRIES]] = steps, tries
    return missed
