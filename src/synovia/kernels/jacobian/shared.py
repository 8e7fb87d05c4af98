"""Shared parts of the Jacobian family: scratch memory, the two forms of the Jacobian, clamps of errors and steps."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.compiler.views import matrix, vector
from synovia.kernels.goals.custom import JACOBIAN, write_custom
from synovia.kernels.goals.partial import partial_jacobian
from synovia.kernels.goals.residuals import geometric_jacobian
from synovia.kernels.jacobian.active_set import largest
from synovia.kernels.layout import FIRST_RESIDUAL, FORM, RESIDUALS

PARTIAL = 1  # form of the Jacobian: partial derivatives of the transforms; 0 stands for cross products


class FamilyScratch(NamedTuple):
    """Arrays cut from ``Work.solver_scratch`` for m residuals and n columns; ``scratch_size`` is their total size."""

    W: NDArray[np.float64]  # (m + 1, n) a copy of J; the null-space step stores its objective in the row below
    U: NDArray[np.float64]  # (m + 1, m + 1) the Gram matrix J Jᵀ
    b: NDArray[np.float64]  # (m + 1,) the right-hand side
    order: NDArray[np.float64]  # (m + 1,) pivots of ``solve_semidefinite``
    z: NDArray[np.float64]  # (n,) a direction in the null space
    gradient: NDArray[np.float64]  # (n,) ∇H of the secondary objectives


def scratch_size(residuals: int, columns: int) -> int:
    """Return the number of float64 that ``open_scratch`` needs."""
    m = residuals + 1
    return m * columns + m * m + 2 * m + 2 * columns


@inline
def open_scratch(work):
    """Return the family's scratch memory."""
    m, n = work.J.shape[0] + 1, work.J.shape[1]
    a1 = m * n
    a2 = a1 + m * m
    a3 = a2 + m
    a4 = a3 + m
    return FamilyScratch(
        matrix(work.solver_scratch, 0, m, n),
        matrix(work.solver_scratch, a1, m, m),
        vector(work.solver_scratch, a2, m),
        vector(work.solver_scratch, a3, m),
        vector(work.solver_scratch, a4, n),
        vector(work.solver_scratch, a4 + n, n),
    )


@device
def write_jacobian(problem, work, targets, q):
    """Write J at the frames of q, in the form of the settings."""
    write_built_in(problem, work, targets, q)
    write_custom(problem.general, problem, JACOBIAN, q, work.J)


@apart
def write_built_in(problem, work, targets, q):
    """Write the rows of J of all goals except custom ones, at the frames of q."""
    if problem.params[FORM] == PARTIAL:
        partial_jacobian(problem, q, work.frames, targets, work.J)
    else:
        geometric_jacobian(problem, q, work.frames, targets, work.J)


@inline
def goal_rows(problem, g):
    """Return the residual rows of goal g: the first, and one past the last."""
    first = problem.goals[g, FIRST_RESIDUAL]
    return first, first + problem.goals[g, RESIDUALS]


@device
def clamp_errors(problem, e, most):
    """Shorten the residual of each goal to at most the length ``most`` (weighted; reaches and radians)."""
    for g in range(problem.goals.shape[0]):
        first, last = goal_rows(problem, g)
        squared = F(0)
        for k in range(first, last):
            squared += e[k] * e[k]
        if squared > most * most:
            for k in range(first, last):
                e[k] *= most / math.sqrt(squared)


@device
def clamp_largest(dq, most):
    """Scale a step down so that no part of it exceeds ``most``."""
    size = largest(dq)
    if size > most:
        for i in range(dq.shape[0]):
            dq[i] *= most / size
