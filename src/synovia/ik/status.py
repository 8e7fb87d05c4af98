"""How a solve ended."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from synovia.kernels.layout import DEADLINE_PASSED, SIGNAL, STATUS, STOPPED_BY
from synovia.model.geometry import Array

INTERRUPTED = (DEADLINE_PASSED, SIGNAL)  # what a deadline or a signal leaves at ``CUT``


class Status(IntEnum):
    """How a solve ended: the first that applies. The numbers are those of the kernels."""

    REACHED = 0
    UNREACHABLE = 1
    CONFLICT = 2
    LIMITED = 3
    STALLED = 4
    MAX_STEPS = 5

    @property
    def meaning(self) -> str:
        """One sentence that says what it means and what to do."""
        return _MEANINGS[self]


_MEANINGS = {
    Status.REACHED: "Every goal holds within its tolerance, checked by forward kinematics of the returned pose.",
    Status.UNREACHABLE: (
        "Proved: a target lies beyond the reach of its chain, inside its inner hole, or where, as a closed form shows,"
        " the limits let nothing come."
    ),
    Status.CONFLICT: (
        "Two or more goals pull against each other near this pose: more attempts may find another; else move or drop"
        " one, or give them weights."
    ),
    Status.LIMITED: "Joint limits hold the pose back: no small step within them lowers the error; another start may.",
    Status.STALLED: "No step lowers the error further, yet nothing proves the target out of reach; try more attempts.",
    Status.MAX_STEPS: "The steps were spent while the error still fell; allow more.",
}


def mark_interrupted(rows: Array) -> None:
    """Give rows of answers that were cut short the status that says so, unless they reach their goals."""
    rows[np.isin(rows[:, STOPPED_BY], INTERRUPTED) & (rows[:, STATUS] != Status.REACHED), STATUS] = Status.MAX_STEPS
