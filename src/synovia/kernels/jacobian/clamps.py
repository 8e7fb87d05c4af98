"""Clamps of a step: the distance of a target that one step believes in, and the turn that it may make."""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import FIRST_RESIDUAL, RESIDUALS


@inline
def goal_rows(problem, g):
    """Return the residual rows (first, one past the last) of goal g."""
    first = problem.goals[g, FIRST_RESIDUAL]
    return first, first + problem.goals[g, RESIDUALS]


@device
def clamp_errors(problem, e, most):
    """Shorten what each goal is missed by to ``most`` (reaches and radians, weighted)."""
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
    """Scale a step down until its largest part is at most this."""
    size = F(0)
    for i in range(dq.shape[0]):
        size = max(size, abs(dq[i]))
    if size > most:
        for i in range(dq.shape[0]):
            dq[i] *= most / size
