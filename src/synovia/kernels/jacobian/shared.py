"""Shared parts of the Jacobian family: scratch memory, the two forms of the Jacobian, clamps of errors and steps."""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.custom import JACOBIAN, write_custom
from synovia.kernels.goals.partial import partial_jacobian
from synovia.kernels.goals.residuals import geometric_jacobian
from synovia.kernels.jacobian.active_set import largest
from synovia.kernels.layout import FAMILY, FIRST_RESIDUAL, FORM, RESIDUALS, size_of_all

PARTIAL = 1  # form of the Jacobian: partial derivatives of the transforms; 0 stands for cross products


FamilyScratch = record("FamilyScratch", FAMILY)
_open = cutter(FamilyScratch, FAMILY, ("rows", "columns"))


def scratch_size(residuals: int, columns: int) -> int:
    """Return the number of float64 values that ``open_scratch`` needs."""
    return size_of_all(FAMILY, {"rows": residuals + 1, "columns": columns})


@inline
def open_scratch(work):
    """Return the family's scratch memory: the tables of ``layout.FAMILY``."""
    return _open(work.solver_scratch, (work.J.shape[0] + 1, work.J.shape[1]))


@device
def write_jacobian(problem, work, targets, q):
    """Write J at the frames of q, by partial derivatives or by cross products, as the settings say."""
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
    """Shorten the residual of each goal to at most the length ``most`` (weighted; length scales and radians)."""
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
