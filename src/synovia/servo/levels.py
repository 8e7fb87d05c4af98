"""The goals of a tick, packed for the kernel ``servo.levels``."""

from __future__ import annotations

from functools import partial

import numpy as np

from synovia.facade import IK
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    ANGLES,
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    CLEAR_ROW,
    FIRST,
    FIRST_RESIDUAL,
    GOAL,
    GOAL_STATE_WIDTH,
    HELD_STILL,
    LENGTHS,
    MODE,
    PARTS,
    RESIDUALS,
    SCALAR,
    SLOTS,
    TARGET_WIDTH,
    TICK,
    size_of,
    size_of_all,
)
from synovia.model.geometry import Array
from synovia.model.tables import Ints, writable
from synovia.problem import table_of
from synovia.servo.limits import Axes
from synovia.solver import FullBody


class TickLevels:
    """The goals of a tick by their priorities, in the box of velocities of all axes.

    Args:
        ik: The problem.
        axes: The axes of the body.

    Attributes:
        states: How each goal takes part, (goals, GOAL_STATE_WIDTH); see ``kernels.layout``.
    """

    def __init__(self, ik: IK, axes: Axes) -> None:
        """Pack the problem, and find the axis of each of its columns."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.levels import servo_levels

        problem = ik.with_parts(solver=FullBody(attempts=1), tolerance=ik.tolerance)
        self._obstacles, self._floats = ik.obstacles, problem.floats.copy()
        goals, nq = len(ik.goals), axes.skeleton.nq
        columns = _columns(problem, axes)
        sizes = {"columns": len(columns), "nq": nq, "goals": goals, "errors": 2 * goals}
        memory = np.zeros(size_of_all(TICK, sizes))
        start = sum(size_of(table, sizes) for table in TICK[: [table.name for table in TICK].index("last")])
        self._last = memory[start : start + goals * TARGET_WIDTH].reshape(goals, TARGET_WIDTH)
        self.states = np.zeros((goals, GOAL_STATE_WIDTH))
        self._levels = len(table_of(problem.ints, problem.floats, "levels"))
        t = axes.skeleton.tables
        arguments = (
            problem.ints, self._floats, new_scratch(problem.scratch_size), memory, columns,
            np.zeros(len(columns), np.int32), _goals_of_rows(problem), self.states, axes.table,
            *writable(t.variables, t.followers, t.coupling),
        )  # fmt: skip
        table, q = np.zeros((goals, TARGET_WIDTH)), np.zeros(nq)
        like = (
            *arguments[:8],
            axes.table[:0],
            *(one[:0] for one in arguments[9:]),
            table,
            q,
            q,
            q.copy(),
            1.0,
            True,
            0,
        )
        self._solve = partial(ready(servo_levels, *like), *arguments)

    def put(self, places: Places) -> None:
        """Put obstacles where they stand now."""
        places.put_into(self._obstacles, self._floats)

    def reset(self, targets: Array) -> None:
        """Begin anew with a body that holds its goals at these targets, (goals, 17), if it meets them."""
        self.states[:] = 0.0
        self.states[:, MODE] = HELD_STILL
        self._last[:] = targets

    def solve(self, targets: Array, place: Array, q: Array, out: Array, h: float, *, stops: bool) -> float:
        """Choose the velocities of a tick that was proposed, and write where they lead.

        Args:
            targets: Targets, (goals, 17).
            place: Joint values of the robot, (nq,).
            q: Those that are commanded, (nq,).
            out: Those after the tick, (nq,); written.
            h: Seconds.
            stops: Whether the body brakes: then only goals that are held count.

        Returns:
            The number of linear systems that were solved.
        """
        return self._solve(targets, place, q, out, h, stops, self._levels)


def _columns(problem: IK, axes: Axes) -> Ints:
    """Return the axis of each column of a problem."""
    blocks = axes.skeleton.tables.variables[:, BLOCK_Q].tolist()
    first = dict(zip(blocks, axes.firsts.tolist(), strict=True))
    columns = np.zeros(problem.reduced.columns, np.int32)
    for block, at, column in problem.reduced.variables[:, [BLOCK, BLOCK_Q, BLOCK_COLUMN]].tolist():
        for k in range(1 if block == SCALAR else 3):
            columns[column + k] = first[at] + k
    return columns


def _goals_of_rows(problem: IK) -> Ints:
    """Return the goal of each residual row, -1 for none."""
    goals, terms, clear = (
        table_of(problem.ints, problem.floats, name) for name in ("goals", "general.ints", "clear.ints")
    )
    out = np.full(problem.reduced.residuals, -1, np.int32)
    for g, row in enumerate(goals):
        if row[PARTS]:
            out[row[FIRST_RESIDUAL] : row[FIRST_RESIDUAL] + row[RESIDUALS]] = g
    for row in terms:
        out[row[FIRST] : row[FIRST] + row[LENGTHS] + row[ANGLES]] = row[GOAL]
    for row in clear:
        out[row[CLEAR_ROW] : row[CLEAR_ROW] + row[SLOTS]] = -1
    return out
