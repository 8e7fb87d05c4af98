"""Scratch memory of the Jacobian family beyond what all solvers have, and its settings."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.compiler.jit import inline
from synovia.kernels.compiler.views import matrix, vector

GEOMETRIC, PARTIAL = 0, 1


class Room(NamedTuple):
    """Cut from ``Work.spare``; m residuals, n columns. Sizes in ``room_size``."""

    W: NDArray[np.float64]  # (m + 1, n) rows of J that are turned; or J, and below it a wish for dq
    U: NDArray[np.float64]  # (m + 1, m + 1)
    b: NDArray[np.float64]  # (m + 1,)
    order: NDArray[np.float64]  # (m + 1,)
    z: NDArray[np.float64]  # (n,)
    gradient: NDArray[np.float64]  # (n,)


def scratch_size(residuals: int, columns: int) -> int:
    """Return how many float64 the room needs."""
    m = residuals + 1
    return m * columns + m * m + 2 * m + 2 * columns


@inline
def open_scratch(work):
    """Return the room."""
    m, n = work.J.shape[0] + 1, work.J.shape[1]
    a1 = m * n
    a2 = a1 + m * m
    a3 = a2 + m
    a4 = a3 + m
    return Room(
        matrix(work.solver_scratch, 0, m, n),
        matrix(work.solver_scratch, a1, m, m),
        vector(work.solver_scratch, a2, m),
        vector(work.solver_scratch, a3, m),
        vector(work.solver_scratch, a4, n),
        vector(work.solver_scratch, a4 + n, n),
    )
