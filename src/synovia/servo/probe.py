"""Errors and places of goals at given joint values, without a solve."""

from __future__ import annotations

from functools import partial

import numpy as np

from synovia.ik import GoalError, Solution, Status
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.ik.residuals import Residuals
from synovia.kernels.layout import (
    ANGLES,
    ATTEMPTS,
    COLD,
    FIRST,
    FIRST_RESIDUAL,
    GOAL,
    LENGTHS,
    MAX_STEPS,
    PARTS,
    PATIENCE,
    RESIDUALS,
    STATUS,
)
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.problem import table_of


class Probe:
    """Evaluates goals at joint values.

    Args:
        ik: The problem.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Choose a solver that can stop before its first step."""
        self._ik = ik if not ik.solver.closed else ik.with_parts()
        self._floats = self._ik.floats if ik.obstacles is None else self._ik.floats.copy()
        self._moved = False  # whether obstacles have moved from the places in the goals
        self._scratch = new_scratch(self._ik.scratch_size)
        self._rows: tuple[Residuals, Ints] | None = None
        self._no_steps = self._ik.ints.copy()
        self._no_steps[[MAX_STEPS, ATTEMPTS, PATIENCE]] = 0, 1, 1

    def put(self, places: Places) -> None:
        """Move obstacles to their present places."""
        places.put_into(self._ik.obstacles, self._floats)
        self._moved = True

    def among(self, places: Places | None) -> Probe:
        """Return a probe with obstacles fixed at these places; None for the places in the goals."""
        ik = self._ik
        if ik.obstacles is None or not self._moved:
            return self
        return Probe(ik if places is None else ik.with_obstacles_at(places.of(ik.obstacles)))

    def row(self, q: Array, table: Array) -> Array:
        """Return the row of results (``layout.ANSWER``) at joint values (nq,) for targets (1, goals, 17).

        Raises:
            InputError: If a target cannot be used.
        """
        ik = self._ik
        out = ik.new_rows(1)
        call = partial(ik.call, self._no_steps, self._floats, table, q[None], out, self._scratch, COLD, 0)
        ik.checked_call(call, table, None)
        return out[0]

    def places(self, q: Array, table: Array) -> Array:
        """Return the targets of goals, (goals, 16); for goals without a target, their places at joint values q."""
        return self._ik.targets_in(self.row(q, table)[None])[0]

    def errors(self, q: Array, table: Array) -> tuple[GoalError, ...]:
        """Return the error of each goal at joint values q for these targets, (1, goals, 17)."""
        first = self._ik.places.stop
        values = self.row(q, table)[first : first + 2 * len(self._ik.goals)].tolist()
        return tuple(GoalError(*pair) for pair in zip(values[::2], values[1::2], strict=True))

    def rows(self, q: Array, table: Array) -> tuple[Array, Array, Ints]:
        """Return the residuals of goals at joint values q, their negative derivative (m, columns), and their goals.

        Residuals (m,) are weighted, with lengths in length scales.
        """
        ik = self._ik
        if self._rows is None:
            self._rows = Residuals(ik.skeleton, ik.reduced, ik.tolerance), goals_of_rows(ik)
        residuals, goals = self._rows
        out = residuals.memory(1)
        out[0][:] = 0.0  # general goals have no rows there
        residuals.write(q[None], ik.targets_in(self.row(q, table)[None]), out, slice(None))
        return out[0][0], out[1][0], goals

    def solution(self, q: Array, table: Array, status: Status) -> Solution:
        """Return joint values q as a solution for these targets, (1, goals, 17), with a status."""
        row = self.row(q, table)
        row[STATUS] = status
        return Solution(self._ik, row[None])


def goals_of_rows(problem: CompiledProblem) -> Ints:
    """Return the goal of each residual row, -1 for none."""
    goals, terms = (table_of(problem.ints, problem.floats, name) for name in ("goals", "general.ints"))
    out = np.full(problem.reduced.residuals, -1, np.int32)
    for g, row in enumerate(goals):
        if row[PARTS]:
            out[row[FIRST_RESIDUAL] : row[FIRST_RESIDUAL] + row[RESIDUALS]] = g
    for row in terms:
        out[row[FIRST] : row[FIRST] + row[LENGTHS] + row[ANGLES]] = row[GOAL]
    return out
