"""Answers in the assembly branch of a body with loops.

An answer of the solver may be in another branch, to which no way leads along which the loops stay closed. Then the goals
are solved from where the body is, by small steps, each of which can be gone: to an answer, or to the nearest miss.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.facade import IK
from synovia.ik import Status
from synovia.ik.obstacles import Places
from synovia.kernels.layout import LARGEST_MOVE, STATUS
from synovia.model.geometry import Array
from synovia.servo.answers import Answers
from synovia.servo.box import Led
from synovia.servo.closed import ClosedTick
from synovia.servo.limits import Axes

_PRECISION: Final = 0.1  # part of the tolerance to which goals are solved
_FAR: Final = 0.3  # radians, length units: an answer that is farther from the last one may be in another branch
_STEP: Final = 0.2  # radians, reaches: largest move of a variable in a step
_STEPS: Final = 3  # in each tick
_ARRIVED: Final = 1e-6  # radians, length units


class Branch:
    """What keeps the answers of a body with loops in its assembly branch.

    Args:
        ik: The problem.
        axes: The axes of the body.
        closed: What takes its ticks.
    """

    def __init__(self, ik: IK, axes: Axes, closed: ClosedTick) -> None:
        """Build the problem of a step."""
        self._axes, self._closed = axes, closed
        self._led = Led(ik, (_PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]), bounded=True)
        self._led.params[LARGEST_MOVE] = 1.0
        self._led.moves[:] = _STEP
        self.reset(ik.default_start.values)

    def reset(self, q: Array) -> None:
        """Begin anew at joint values (nq,)."""
        self._last, self._place = q, None
        self._table: Array | None = None

    def put(self, places: Places) -> None:
        """Put obstacles where they stand now."""
        self._led.put(places)

    def walks(self, table: Array) -> bool:
        """Return whether these targets (1, goals, 17) are solved by steps, and others are not asked for."""
        return self._place is not None and self._table is not None and np.array_equal(table, self._table)

    def check(self, answers: Answers, q: Array, table: Array) -> None:
        """Begin to solve the goals by steps from joint values q (nq,), if no way leads to the answer of this tick."""
        self._place = None
        if self._way(self._last, answers.q) > _FAR and not self._closed.connects(q, answers.q):
            self._place, self._table = q, table.copy()
            self.walk(answers)
            return
        self._last = answers.q

    def leave(self, answers: Answers, q: Array, table: Array) -> None:
        """Solve the goals by steps from joint values q (nq,), where the body has got stuck on its way to the answer."""
        self._place, self._table = q, table.copy()
        self.walk(answers)

    def walk(self, answers: Answers) -> None:
        """Take some steps, and let them lead the body."""
        place, table = self._place, self._table
        assert place is not None
        assert table is not None
        row = None
        for _ in range(_STEPS):
            there = self._led.solve(place, place, table)
            far, place = self._way(place, there), there
            if far <= _ARRIVED:
                row = answers.from_place(table, place)
                if row[STATUS] == Status.REACHED and self._way(place, answers.at(row)) <= _FAR:
                    place = answers.at(row)
                elif row[STATUS] == Status.REACHED:
                    row = None
                break
        self._place = self._last = place
        answers.lead(place, row)

    def _way(self, q: Array, to: Array) -> float:
        """Return the largest way of an axis, radians or length units."""
        return float(np.abs(self._axes.way(q, to)).max(initial=0.0))
