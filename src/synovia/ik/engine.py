"""Which kernel solves a problem, and which one judges its misses: settles them and finds their status."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from synovia.goals import CustomGoal, Goal
from synovia.ik.custom import Driver
from synovia.ik.status import Status
from synovia.kernels.layout import STATUS
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced
from synovia.solver import JacobianMethod, Solver
from synovia.solver.base import Kernel

Judge = Callable[[NDArray[np.int32], Array, Array, Array, Array, bool], None]


def engine_of(skeleton: Skeleton, goals: Sequence[Goal], reduced: Reduced, solver: Solver) -> tuple[Kernel, Judge]:
    """Return the kernel and the judge of a problem: compiled ones, or with functions in Python the loop around them."""
    if isinstance(solver, JacobianMethod):
        wishes = solver.null_space
        if any(isinstance(goal, CustomGoal) for goal in goals) or (wishes is not None and wishes.gradient is not None):
            driver = Driver(skeleton, goals, reduced, solver)
            return driver, driver.judge

    def judge(
        ints: NDArray[np.int32], floats: Array, starts: Array, rows: Array, scratch: Array, searches: bool
    ) -> None:
        """Settle rows that missed and tell why; only a miss loads these kernels."""
        solver.judge(reduced.plain)(ints, floats, starts, rows, scratch, solver.settles, searches)
        if solver.closed:  # its one step is all there is: it cannot run out of steps
            rows[rows[:, STATUS] == Status.MAX_STEPS, STATUS] = Status.STALLED

    return solver.kernel(reduced), judge
