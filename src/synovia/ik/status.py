"""How a solve ended."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from synovia.kernels.layout import COST, DEADLINE_PASSED, FINISH, SIGNAL, STATUS, STEPS, STOPPED_BY, TRIES, WINNER
from synovia.model.geometry import Array, Bools

INTERRUPTED = (DEADLINE_PASSED, SIGNAL)  # values of the scratch element ``STOPPED_BY`` after a deadline or a signal


class Status(IntEnum):
    """How a solve ended. If several statuses apply, it is the first of them. The kernels use the same values.

    Example:
        >>> import synovia as sy
        >>> answer = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.0)))
        >>> answer.status.name, answer.reached
        ('UNREACHABLE', False)
    """

    REACHED = 0
    UNREACHABLE = 1
    CONFLICT = 2
    LIMITED = 3
    STALLED = 4
    MAX_STEPS = 5
    INVALID = 6  # only for rows skipped by ``solve_many(on_error="skip")``; unknown to kernels
    LATE = 7  # LATE and HOLDING: only for ticks, see ``Tick``
    HOLDING = 8

    @property
    def meaning(self) -> str:
        """Sentence about the meaning of the status, with advice."""
        return _MEANINGS[self]


REACHED_ONLY: Final = "Reached: every goal is met within its tolerance, checked by forward kinematics of the pose."
_MEANINGS = {
    Status.REACHED: f"{REACHED_ONLY} Collisions are checked by clearance goals only.",
    Status.UNREACHABLE: "Unreachable: a target is too far from its chain, too near to it, or outside its joint limits.",
    Status.CONFLICT: "Conflict: the goals cannot be met together near this pose. Try more attempts or other goals.",
    Status.LIMITED: "Limited: no small step within the joint limits lowers the error. Another start may.",
    Status.STALLED: "Stalled: no small step lowers the error, but the target may be reachable. Try more attempts.",
    Status.MAX_STEPS: "Out of steps: the error was still decreasing. Allow more steps.",
    Status.INVALID: "Invalid: the target or the start cannot be used, so the problem was skipped.",
    Status.LATE: "Late: the body is on its way to the goals, within its limits.",
    Status.HOLDING: "Holding: the body brakes or stands still, because of hold() or missing targets.",
}


def mark_interrupted(rows: Array, *, all_of_them: bool = False) -> None:
    """Set the status of interrupted rows that miss a goal to ``MAX_STEPS``.

    Args:
        rows: Rows of results; changed in place.
        all_of_them: Whether to mark all rows as ended by a deadline first.
    """
    if all_of_them:
        rows[:, STOPPED_BY] = DEADLINE_PASSED
    rows[interrupted(rows) & np.logical_not(reached(rows)), STATUS] = Status.MAX_STEPS


def status_of(row: Array) -> Status:
    """Return the status in a row of results, (n,)."""
    return Status(int(row[STATUS]))


def reached(rows: Array) -> Bools:
    """Return a mask of the rows of results that reach their goals."""
    return rows[:, STATUS] == Status.REACHED


def restate(rows: Array, reach: Bools, why: Status) -> Bools:
    """Update the status of rows of results whose poses have changed, and return a mask of new misses.

    Args:
        rows: Rows of results; changed in place.
        reach: Mask of the rows that reach their goals now.
        why: Status of new misses. Rows that were misses before keep their status.
    """
    was = reached(rows)
    rows[:, STATUS] = np.where(reach, Status.REACHED, np.where(was, why, rows[:, STATUS]))
    return was & np.logical_not(reach)


def restarted(rows: Array) -> Bools:
    """Return a mask of the rows of results that come from a restart, not from the first attempt."""
    return rows[:, WINNER] > 0


def interrupted(rows: Array) -> Bools:
    """Return a mask of the rows of results that a deadline or a signal ended."""
    return np.isin(rows[:, STOPPED_BY], INTERRUPTED)


def better_of(before: Array, after: Array) -> Array:
    """Return the better of two rows of results (n,) of the same frame, with the sum of their steps.

    The second row was found with restarts. It is better if it reaches the goals or has no larger cost.
    """
    out = after.copy() if after[STATUS] == Status.REACHED or not before[COST] <= after[COST] else before.copy()
    out[STEPS], out[[TRIES, STOPPED_BY]] = before[STEPS] + after[STEPS], after[[TRIES, STOPPED_BY]]
    return out


def invalid_rows(rows: Array) -> Array:
    """Mark rows of results as invalid, with no steps and NaN elsewhere, and return them."""
    rows[:] = np.nan
    rows[:, [STEPS, TRIES, WINNER, FINISH, STOPPED_BY]] = 0.0
    rows[:, STATUS] = Status.INVALID
    return rows
