"""What carries out a problem: the kernel that solves it, and the one that judges its misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from synovia.geometry import Array
from synovia.goals import CustomGoal, Goal
from synovia.ik.custom import Driver
from synovia.problem import Reduced
from synovia.skeleton import Skeleton
from synovia.solver import JacobianMethod, Solver
from synovia.solver.base import Kernel

Judge = Callable[[NDArray[np.int32], Array, Array, Array], None]


def engine_of(skeleton: Skeleton, goals: Sequence[Goal], reduced: Reduced, solver: Solver) -> tuple[Kernel, Judge]:
    """Return the kernel and the judge of a problem: compiled ones, or with goals in Python the loop around them."""
    if any(isinstance(goal, CustomGoal) for goal in goals) and isinstance(solver, JacobianMethod):
        driver = Driver(skeleton, goals, reduced, solver)
        return driver, driver.judge

    def judge(ints: NDArray[np.int32], floats: Array, rows: Array, scratch: Array) -> None:
        """Settle rows that missed and tell why; only a miss loads these kernels."""
        solver.judge(reduced.plain)(ints, floats, rows, scratch, solver.settles)

    return solver.kernel(reduced), judge
