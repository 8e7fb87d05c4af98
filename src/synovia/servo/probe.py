"""Errors and places of goals at given joint values, without a solve, and the reasons why goals are not reached there.

The reasons are singular poses, joint ranges and other goals. They follow from the first derivatives of the goals at one
pose. A goal can come nearer to its target if joints that are not at the end of their range lower its error, and if
goals of higher priority allow some of that motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from synovia.ik import GoalError, Solution, Status
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.ik.residuals import Residuals
from synovia.kernels.layout import (
    ANGLES,
    ATTEMPTS,
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    COLD,
    FIRST,
    FIRST_RESIDUAL,
    GOAL,
    LENGTHS,
    MAX_STEPS,
    PARTS,
    PATIENCE,
    RESIDUALS,
    SCALAR,
    STATUS,
)
from synovia.model.geometry import Array, Bools
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


_LITTLE: Final = 0.1  # fraction of the largest effect of joints on a goal: smaller effects count as none
_AT_END: Final = 1e-4  # radians, length units: a joint this close to the end of its range counts as being there
_NONE: Final = 1e-12
_RANK: Final = 1e-6  # fraction of the largest singular value: smaller singular values count as zero


class Behind:
    """Why goals are not reached at a pose.

    Args:
        ik: The problem.
        probe: Evaluates the goals.
        q: Joint values, (nq,).
        table: Targets, (1, goals, 17).
    """

    def __init__(self, ik: CompiledProblem, probe: Probe, q: Array, table: Array) -> None:
        """Compute the derivatives of all goals."""
        self._ik = ik
        self._errors, self._jacobian, self._goals = probe.rows(q, table)
        low, high = ik.skeleton.limits
        self._room = np.full((2, self._jacobian.shape[1]), np.inf)
        self._names = [""] * self._jacobian.shape[1]
        for k, (block, at, column) in enumerate(ik.reduced.variables[:, [BLOCK, BLOCK_Q, BLOCK_COLUMN]].tolist()):
            if block == SCALAR:
                self._room[:, column] = q[at] - low[at], high[at] - q[at]
                self._names[column] = ik.skeleton.joint_names[int(ik.reduced.owner[k])]

    def sentences(self, missed: Sequence[int]) -> list[str]:
        """Return one sentence for each of these goals whose reason is found."""
        return [line for g in missed for line in (self._of(g),) if line]

    def _of(self, g: int) -> str:
        """Return a sentence on why goal g is not reached, "" if no reason is found."""
        label = self._ik.goals[g].label
        own = self._goals == g
        J, e = self._jacobian[own], self._errors[own]
        size = float(np.linalg.norm(e)) * (float(np.linalg.norm(J, 2)) if J.size else 0.0)
        if size <= _NONE:
            return ""
        toward: Array = J.T @ e
        if np.linalg.norm(toward) <= _LITTLE * size:
            return f"No joint moves {label!r} towards its target in this pose, which is singular."
        ends: Bools = np.array(np.where(toward > 0.0, self._room[1], self._room[0]) <= _AT_END, bool)
        free = np.where(ends, 0.0, toward)
        if np.linalg.norm(free) <= _LITTLE * size:
            names = ", ".join(name for name, end in zip(self._names, ends.tolist(), strict=True) if end and name)
            return f"At the end of its range: {names}. No other joint moves {label!r} towards its target."
        return self._against(g, ~ends, free, size)

    def _against(self, g: int, free: Bools, toward: Array, size: float) -> str:
        """Return a sentence on the goals that keep free joints from moving goal g to its target, "" for none."""
        goals = self._ik.goals
        ranks = [goal.rank for goal in goals]
        above = [j for j in range(len(goals)) if ranks[j] < ranks[g] and (self._goals == j).any()]
        if self._helps(above, g, free):
            return ""
        if np.linalg.norm(self._left(above, free, toward)) <= _LITTLE * size:
            others = [float(np.linalg.norm(self._left([k for k in above if k != j], free, toward))) for j in above]
            most = above[int(np.argmax(others))]
            names = [goals[most].label] if max(others) > _LITTLE * size else [goals[j].label for j in above]
            return f"{', '.join(map(repr, names))}, of a higher priority, keeps {goals[g].label!r} from its target."
        level = np.isin(self._goals, [j for j, rank in enumerate(ranks) if rank == ranks[g]])
        pull = self._left(above, free, self._jacobian[level].T @ self._errors[level])
        rivals = [
            j for j, rank in enumerate(ranks) if j != g and rank == ranks[g] and self._errors[self._goals == j].any()
        ]
        if rivals and np.linalg.norm(pull[free]) <= _LITTLE * np.linalg.norm(toward):
            names = ", ".join(repr(goals[j].label) for j in rivals)
            return f"{names}, of the same priority, and {goals[g].label!r} are against each other."
        return ""

    def _helps(self, above: Sequence[int], g: int, free: Bools) -> bool:
        """Return whether the motion of the goals ``above`` to their targets also moves goal g towards its target."""
        rows, own = np.isin(self._goals, above), self._goals == g
        motion = np.linalg.lstsq(self._jacobian[rows] * free, self._errors[rows], rcond=_RANK)[0]
        e = self._errors[own]
        return bool(e @ (self._jacobian[own] @ motion) >= _LITTLE * (e @ e))

    def _left(self, goals: Sequence[int], free: Bools, motion: Array) -> Array:
        """Return the projection of a motion of free joints, (columns,), onto the null space of these goals."""
        A = self._jacobian[np.isin(self._goals, goals)] * free
        if not A.size:
            return motion * free
        _, sizes, rows = np.linalg.svd(A, full_matrices=False)
        rows = rows[sizes > _RANK * max(float(sizes.max(initial=0.0)), _NONE)]
        motion = motion * free
        return motion - rows.T @ (rows @ motion)
