"""Select the kernel that solves a problem, and the kernel that polishes and classifies its misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.goals import Goal
from synovia.ik.custom import Functions
from synovia.ik.status import Status
from synovia.kernels.layout import CALLBACK, CLASSIFY, COLD, POLISH, POLISH_POSES, STATUS, TARGET_WIDTH, WARM
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced
from synovia.solver import JacobianMethod, Solver
from synovia.solver.base import Kernel

MissKernel = Callable[[NDArray[np.int32], Array, Array, Array, Array, bool], None]
_NO_TARGETS: Final = np.empty((0, 0, TARGET_WIDTH))


def engine_of(
    skeleton: Skeleton, goals: Sequence[Goal], reduced: Reduced, solver: Solver, params: Array
) -> tuple[Kernel, MissKernel]:
    """Return the kernel that solves a problem, and the kernel for its misses.

    If the problem calls Python functions, their address is written into its packed parameters (``params``).
    """
    functions = Functions(skeleton, goals, reduced, solver.null_space if isinstance(solver, JacobianMethod) else None)
    if functions:
        params[CALLBACK] = functions.address

    def miss_kernel(
        ints: NDArray[np.int32], floats: Array, starts: Array, rows: Array, scratch: Array, searches: bool
    ) -> None:
        """Polish and classify missed rows with kernels that are loaded at the first miss."""
        how = POLISH if solver.polishes else CLASSIFY
        if solver.follow_finish and not solver.polishes and not searches:
            # the polish works on pose goals only, because poles are solved last
            before = rows[:, STATUS].copy()
            solver.miss_kernel()(ints, floats, _NO_TARGETS, starts, rows, scratch, WARM, POLISH_POSES)
            rows[:, STATUS] = before
        kernel = solver.miss_kernel()
        (functions.around(kernel) if functions else kernel)(
            ints, floats, _NO_TARGETS, starts, rows, scratch, COLD if searches else WARM, how
        )
        if solver.closed:  # a closed form takes one step, so it cannot run out of steps
            rows[rows[:, STATUS] == Status.MAX_STEPS, STATUS] = Status.STALLED

    kernel = solver.kernel(reduced)
    return functions.around(kernel) if functions else kernel, miss_kernel
