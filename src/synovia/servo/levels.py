"""The goals of a tick, packed for the kernel ``servo.levels``."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from synovia.facade import IK
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import BLOCK, BLOCK_COLUMN, BLOCK_Q, FIRST, FIRST_RESIDUAL, GOAL, PARTS, SCALAR, TICK
from synovia.kernels.layout import LENGTHS, ANGLES, RESIDUALS, size_of_all
from synovia.model.geometry import Array, Bools
from synovia.problem import table_of
from synovia.servo.limits import Axes
from synovia.solver import FullBody


class TickLevels:
    """The goals of a tick by their priorities, in the box of velocities of all axes.

    Args:
        ik: The problem.
        axes: The axes of the body.
    """

    def __init__(self, ik: IK, axes: Axes) -> None:
        """Pack the problem, and find the axis of each of its columns."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.levels import servo_levels

        self.ik = problem = ik.with_parts(solver=FullBody(attempts=1), tolerance=ik.tolerance)
        self.floats = problem.floats.copy()
        self._scratch = new_scratch(problem.scratch_size)
        first = {int(at): int(axis) for at, axis in zip(axes.skeleton.tables.variables[:, BLOCK_Q], axes.firsts, strict=True)}
        variables = problem.reduced.variables
        self.columns = np.zeros(problem.reduced.columns, np.int32)
        for block, at, column in variables[:, [BLOCK, BLOCK_Q, BLOCK_COLUMN]].tolist():
            for k in range(1 if block == SCALAR else 3):
                self.columns[column + k] = first[at] + k
        self.parts = np.zeros(len(self.columns), np.int32)
        self.held = np.zeros(problem.reduced.residuals, np.int32)
        self.levels = len(table_of(problem.ints, problem.floats, "levels"))
        sizes = {"columns": len(self.columns), "nq": axes.skeleton.nq, "goals": len(problem.goals)}
        self._memory = np.zeros(size_of_all(TICK, sizes))
        arguments = (problem.ints, self.floats, self._scratch, self._memory, self.columns, self.parts, self.held)
        q = np.zeros(axes.skeleton.nq)
        none = np.zeros((len(problem.goals), 17))
        kernel = servo_levels
        self._solve = partial(kernel, *arguments, axes.table)

    def solve(self, targets: Array, q: Array, h: float, levels: int | None = None) -> float:
        """Change the proposed velocities of the axes; ``targets`` (goals, 17) that are not given follow them."""
        return self._solve(targets, q, h, self.levels if levels is None else levels)
