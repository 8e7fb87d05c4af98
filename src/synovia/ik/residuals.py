"""Compute the residuals of goals at many poses, without a solver."""

from __future__ import annotations

import numpy as np

from synovia.ik.interrupts import new_scratch
from synovia.kernels.layout import WORK_SIZE
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced, pack


class Residuals:
    """The residuals of the goals of a packed problem. Safe to use from several threads.

    Args:
        skeleton: The whole skeleton.
        reduced: The part of the skeleton that the goals need.
        tolerance: (position in length units, angle in radians).
    """

    def __init__(self, skeleton: Skeleton, reduced: Reduced, tolerance: tuple[float, float]) -> None:
        """Pack the problem."""
        self._packed = pack(
            skeleton, reduced, tolerance=tolerance, max_steps=1, attempts=1, seed=0, patience=1, params={},
        )  # fmt: skip
        self._shape = reduced.residuals, reduced.columns
        self._goals = len(reduced.goals.table)

    def memory(self, count: int, *, derivative: bool = True) -> tuple[Array, Array, Array]:
        """Return memory for residuals (T, rows), negative derivatives (T, rows, columns) and errors (T, 2 goals)."""
        derivatives = np.empty((count if derivative else 0, *self._shape))
        return np.empty((count, self._shape[0])), derivatives, np.empty((count, 2 * self._goals))

    def write(self, q: Array, targets: Array, out: tuple[Array, Array, Array], part: slice) -> None:
        """Evaluate the frames ``part`` of poses (T, nq) and targets (T, goals, 16); write the results into ``out``."""
        from synovia.kernels.goals.residuals import evaluate_rows

        e, J, errors = out
        scratch = new_scratch(int(self._packed[0][WORK_SIZE]))
        some = J[part] if len(J) else J
        evaluate_rows(*self._packed, targets[part], q[part], scratch, e[part], some, errors[part])
