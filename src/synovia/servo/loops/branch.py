"""Solutions in the assembly branch of a body with loops.

A solution may be in another branch, to which no path with closed loops leads. Then the goals are solved by small steps
from the present pose, each of which the body can take: to a solution or to the nearest miss.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from synovia.ik import Status
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    COLD,
    LARGEST_MOVE,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
    STATUS,
    TURN,
)
from synovia.model.geometry import Array
from synovia.problem import table_of
from synovia.servo.answers import Answers
from synovia.servo.limits import Axes
from synovia.servo.loops.closed import Closure
from synovia.solver import FullBody

_PRECISION: Final = 0.1  # fraction of the tolerance to which goals are solved
_FAR: Final = 0.3  # radians, length units: a solution farther from the last one may be in another branch
_STEP: Final = 0.2  # radians, length scales: largest change of a variable in a step
_LEAD: Final = 0.8  # radians, length units: largest lead over the body, which keeps it on the path of steps
_STEPS: Final = 3  # steps in each tick
_ELSEWHERE: Final = 0.1  # length units, rotation-matrix entries: a larger change of the targets restarts the search
_TRIES: Final = 24  # number of seeds on paths from the last step to random poses, each farther away
_LEAVES: Final = 4  # largest number of restarts of a stuck body
_SOLVER_STEPS: Final = 12  # largest number of solver steps; moves are short
_LAST_STEP: Final = 1e-7  # radians, length scales: a posture with smaller steps has converged
_ARRIVED: Final = 1e-6  # radians, length units: smaller steps have converged


class Branch:
    """Keeps the solutions of a body with loops in its assembly branch.

    Args:
        ik: The problem.
        axes: The axes of the body.
        closed: The loops of the body.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes, closed: Closure) -> None:
        """Build the problem of a step."""
        self._axes, self._closed = axes, closed
        self._led = Led(ik, (_PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]))
        self._led.moves[:] = _STEP
        self.reset(ik.default_start.values)

    def reset(self, q: Array) -> None:
        """Restart at joint values (nq,)."""
        self._last, self._place = q, None
        self._table: Array | None = None
        self._tries = self._left = 0

    def put(self, places: Places) -> None:
        """Move obstacles to their present places."""
        self._led.put(places)
        self._tries = 0

    def walks(self, table: Array) -> bool:
        """Return whether the walk by steps is solving exactly these targets, (1, goals, 17)."""
        return self._place is not None and self._table is not None and np.array_equal(table, self._table)

    def check(self, answers: Answers, q: Array, table: Array) -> None:
        """Solve the goals by steps, if this tick's solution is a miss, or no closed path leads to it from q (nq,)."""
        self._place = None
        connects = self._way(self._last, answers.q) <= _FAR or self._closed.connects(q, answers.q)
        if connects and answers.reaches:
            self._last = answers.q
            return
        self._begin(answers.q if connects else q, table)
        self.walk(answers, q)

    def leave(self, answers: Answers, q: Array, table: Array) -> None:
        """Solve the goals by smaller steps from joint values q (nq,), where the body is stuck.

        A body can get stuck where branches meet. After a few restarts it stays there.
        """
        self._begin(q, table)
        self._left += 1
        if self._left <= _LEAVES:
            self._led.moves[:] = _STEP * 0.5**self._left
            self.walk(answers, q)
            return
        row = answers.solve(table, q)
        row[STATUS] = Status.STALLED
        answers.lead(q, row)

    def _begin(self, place: Array, table: Array) -> None:
        """Begin the walk at joint values (nq,), for these targets (1, goals, 17)."""
        if self._table is None or np.abs(table - self._table).max() > _ELSEWHERE:
            self._tries, self._left = _TRIES, 0
            self._led.moves[:] = _STEP
        self._place, self._table = place, table.copy()

    def walk(self, answers: Answers, q: Array) -> None:
        """Take some steps, and let them lead the body, which is at q (nq,). After convergence, search other solutions.

        The search tries one seed in each tick, on a path from the last step towards a random pose.
        """
        place, table = self._place, self._table
        if place is None or table is None:
            return
        row = None
        for _ in range(_STEPS if self._way(q, place) <= _LEAD else 0):
            there = self._led.solve(place, place, table)
            far, place = self._way(place, there), there
            if far <= _ARRIVED:
                row = answers.solve(table, place)
                break
        if row is not None and row[STATUS] == Status.REACHED:
            there = answers.at(row)
            place, row = (there, row) if self._way(place, there) <= _FAR else (place, None)
        elif row is not None and self._tries:
            self._tries -= 1
            other = answers.solve(table, self._closed.beside(place, 1.0 - self._tries / _TRIES, self._tries))
            found = answers.at(other)
            if other[STATUS] == Status.REACHED and self._closed.connects(q, found):
                self._place, self._last = None, found
                answers.lead(found, other)
                return
            row = row if not self._tries else None
        self._place = self._last = place
        answers.lead(place, row)

    def _way(self, q: Array, to: Array) -> float:
        """Return the largest displacement of an axis, radians or length units."""
        return float(np.abs(self._axes.way(q, to)).max(initial=0.0))


class Led:
    """A solver of the goals by priority, and below them of a posture that changes in each tick.

    Args:
        ik: The problem.
        tolerance: (position in length units, angle in radians) within which goals hold.

    Attributes:
        moves: Largest displacement of each variable from the start.
    """

    def __init__(self, ik: CompiledProblem, tolerance: tuple[float, float]) -> None:
        """Build the problem, and locate the posture and the largest moves in its packed values."""
        settings = FullBody(attempts=1, max_steps=_SOLVER_STEPS, rest_step=_LAST_STEP, largest_move=1.0)
        self.ik = problem = ik.with_parts(solver=settings, tolerance=tolerance)
        self._scratch = new_scratch(problem.scratch_size)
        solved = problem.reduced.variables
        self.floats = problem.floats.copy()
        params, self.moves, self._posture = (
            table_of(problem.ints, self.floats, name) for name in ("params", "moves", "posture")
        )
        params[LARGEST_MOVE], self._posture[:, REST_WEIGHT] = 1.0, 1.0
        self._numbers = np.flatnonzero(solved[:, BLOCK] == SCALAR)
        self._turns = np.flatnonzero(solved[:, BLOCK] == TURN)
        self._number_q = solved[self._numbers, BLOCK_Q].astype(np.int64)
        self._turn_q = (solved[self._turns, BLOCK_Q, None] + np.arange(4)).astype(np.int64)
        self._q = np.concatenate([self._number_q, self._turn_q.ravel()])

    def put(self, places: Places) -> None:
        """Move obstacles to their present places."""
        places.put_into(self.ik.obstacles, self.floats)

    def solve(self, start: Array, posture: Array, table: Array) -> Array:
        """Return the pose (nq,) that meets the goals as well as possible, and is nearest to the posture.

        Args:
            start: Joint values to start from, (nq,).
            posture: Joint values of the posture, (nq,); joints that no goal needs keep these values.
            table: Targets, (1, goals, 17).
        """
        problem = self.ik
        self._posture[self._numbers, REST_Q] = posture[self._number_q]
        self._posture[self._turns[:, None], REST_Q + np.arange(4)] = posture[self._turn_q]
        row = problem.new_rows(1)
        call = partial(problem.call, problem.ints, self.floats, table, start[None], row, self._scratch, COLD, 0)
        problem.checked_call(call, table, None)
        out = posture.copy()
        out[self._q] = row[0, problem.places][self._q]
        return problem.skeleton.follow(out)
