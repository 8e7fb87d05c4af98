"""The problem of each frame: residuals over time, and steps and differences of variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.goals import Goal
from synovia.ik.parallel import checked_threads
from synovia.ik.residuals import Residuals
from synovia.kernels.layout import BLOCK, IS_ANGLE, LOWER, SCALAR, UPPER
from synovia.model import Skeleton
from synovia.model.geometry import Array, rotation_between, times_exp
from synovia.model.pose import clamped
from synovia.problem import hold_all_but, reduce
from synovia.problem.structure import with_columns_in_turn

Ints = NDArray[np.int32]
_BLOCK: Final = 32  # number of frames; starting a thread costs as much as a few frames


class Variables:
    """The variables of a skeleton or of a problem: indices of their values in q, and their columns.

    Args:
        variables: (k, 3) variables, as in ``kernels.layout``, with contiguous columns.
        limits: (k, ...) limits of the variables.
        reach: Length scale by which lengths are divided, length units.
    """

    def __init__(self, variables: Ints, limits: Array, reach: float) -> None:
        """Divide the variables into scalars and rotations."""
        scalar = variables[:, BLOCK] == SCALAR
        self.reach = reach
        self.columns = int(scalar.sum() + 3 * (~scalar).sum())
        _, self.number_at, self.number_column = variables[scalar].T
        _, self.turn_at, self.turn_column = variables[~scalar].T
        self._quats = self.turn_at[:, None] + np.arange(4)  # indices in q of all quaternions
        self._turns = self.turn_column[:, None] + np.arange(3)
        angles = limits[scalar, IS_ANGLE] != 0.0
        # size of one unit of each scalar: 1 radian, or one length scale in length units
        self.unit = np.where(angles, 1.0, reach)
        self.lower, self.upper = limits[scalar, LOWER], limits[scalar, UPPER]
        self.is_length = np.zeros(self.columns, bool)
        self.is_length[self.number_column[~angles]] = True
        self._angles = self.number_column[angles]

    def difference(self, a: Array, b: Array) -> Array:
        """Return the steps (T, columns) from joint values a (T, nq) to b."""
        out = np.empty((len(a), self.columns))
        out[:, self.number_column] = (b[:, self.number_at] - a[:, self.number_at]) / self.unit
        out[:, self._turns] = rotation_between(a[:, self._quats], b[:, self._quats])
        return out

    def angles(self, steps: Array) -> Array:
        """Return the rotation angles in steps (T, columns): first of hinges, then of balls, (T, hinges and balls)."""
        return np.hstack([np.abs(steps[:, self._angles]), np.linalg.norm(steps[:, self._turns], axis=2)])


def all_variables(skeleton: Skeleton, reach: float = 1.0) -> Variables:
    """Return the variables of all joints of a skeleton; mimic joints have none, so columns differ from velocities."""
    return Variables(with_columns_in_turn(skeleton.tables.variables), skeleton.tables.limits, reach)


class Model(Variables):
    """A skeleton with goals as a least-squares problem of each frame, in the units of the solvers.

    Columns are those of the variables between the root and the goals: radians, and lengths divided by ``reach``.

    Args:
        skeleton: The skeleton; its loops are ignored, and the caller closes them afterwards.
        goals: The goals; their weights are used, their targets are not.
        goal_joints: Joints of each goal.
        free_root: Whether a free root moves.
        translate: Whether all other free joints may move.
        tolerance: (position in length units, angle in radians).
        allowed: Rows of the joints that may move; None for all that the goals need.
        threads: Number of threads; all cores for None. Results are identical for any number.

    Attributes:
        moving: Joints that may move, as rows of the skeleton.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        goals: Sequence[Goal],
        goal_joints: Sequence[Sequence[int]],
        *,
        free_root: bool,
        translate: bool = False,
        tolerance: tuple[float, float] = (1.0, 1.0),
        allowed: Collection[int] | None = None,
        threads: int | None = None,
    ) -> None:
        """Pack the problem."""
        skeleton = skeleton.with_loops([]) if skeleton.loops else skeleton
        reduced = reduce(skeleton, goals, goal_joints, free_root=free_root, translate=translate)
        if allowed is not None:
            some = [k for k, row in enumerate(reduced.joints.tolist()) if row in allowed]
            reduced = hold_all_but(skeleton, reduced, some)
        self.moving = reduced.moving
        super().__init__(reduced.variables, reduced.limits, reduced.reach)
        self.skeleton = skeleton
        self.rows = reduced.residuals
        self._residuals = Residuals(skeleton, reduced, tolerance)
        self._threads = checked_threads(threads)

    def evaluate(self, q: Array, targets: Array, *, derivative: bool = True) -> tuple[Array, Array, Array]:
        """Return residuals (T, rows), their negative derivative (T, rows, columns), and errors (T, goals, 2).

        Args:
            q: Joint values, (T, nq).
            targets: Transforms, (T, goals, 16).
            derivative: Whether to compute the derivative; it is empty otherwise.
        """
        out = self._residuals.memory(len(q), derivative=derivative)
        self.in_blocks(partial(self._residuals.write, q, targets, out), len(q))
        e, J, errors = out
        return e, J, errors.reshape(len(q), errors.shape[1] // 2, 2)

    def in_blocks(self, work: Callable[[slice], None], count: int) -> None:
        """Call a function on blocks of frames, on several threads if there are many frames."""
        size = max(_BLOCK, -(-count // self._threads))
        parts = [slice(first, first + size) for first in range(0, count, size)]
        if len(parts) < 2:
            for part in parts:
                work(part)
            return
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(work, parts))

    def move(self, q: Array, x: Array) -> Array:
        """Return joint values (T, nq) after steps x (T, columns), clamped to the limits; mimic joints follow."""
        out = q.copy()
        out[:, self.number_at] += x[:, self.number_column] * self.unit
        out[:, self._quats] = times_exp(q[:, self._quats], x[:, self._turns])
        return clamped(self.skeleton, out)

    def pressed(self, q: Array, gradient: Array) -> Any:
        """Return a mask (T, columns) of columns at an end of their range whose gradient points out of the range."""
        held = np.zeros(gradient.shape, bool)
        values, push = q[:, self.number_at], gradient[:, self.number_column]
        slack = 1e-9 * self.unit
        held[:, self.number_column] = ((values >= self.upper - slack) & (push > 0.0)) | (
            (values <= self.lower + slack) & (push < 0.0)
        )
        return held
