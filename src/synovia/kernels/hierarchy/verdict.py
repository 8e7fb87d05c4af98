"""What a miss of a full body means: the status of its pose, from the highest level that misses a goal."""

import numpy as np

from synovia.kernels.compiler.jit import F, apart
from synovia.kernels.goals.residuals import jacobian
from synovia.kernels.hierarchy.step import look
from synovia.kernels.layout import CONFLICT, FIRST_RESIDUAL, LEVEL, LIMITED, RESIDUALS, STALLED, STEPS_SPENT
from synovia.kernels.math.bounded import shares
from synovia.kernels.math.linear import times_t
from synovia.kernels.tree.chart import NEAR, bounds, to_box

STATIONARY = F(1e-5)  # gradient against error below which a pose cannot be improved to first order
CANCELS = F(1e-3)


@apart
def unheld(problem, work, first, last):
    """Return (largest part of the gradient of rows first to last that no limit holds, largest that one does)."""
    for i in range(work.e.shape[0]):
        if i < first or i >= last:
            work.e[i] = F(0)
    times_t(work.J, work.e, work.g)
    return shares(work.box, work.g, NEAR, F(0))


@apart
def verdict(problem, work, targets, errors, q, h, settled):
    """Return the status of a pose that misses a goal, from the highest level that misses one."""
    if not settled:
        return STEPS_SPENT
    level = problem.levels.shape[0]
    for g in range(problem.goals.shape[0]):
        if errors[2 * g] > problem.tolerance or errors[2 * g + 1] > problem.tolerance_angle:
            level = min(level, problem.goals[g, LEVEL])
    look(problem, work, targets, q, h)
    jacobian(problem, q, work.frames, targets, work.J)
    bounds(problem, q, work.box)
    to_box(problem, work.box, work.J)
    small = STATIONARY * h.present[level]
    left, held = unheld(problem, work, np.int64(problem.levels[level]), np.int64(problem.levels[level + 1]))
    if left > small:
        return CONFLICT if level > 0 else STALLED
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, LEVEL] == level:
            look(problem, work, targets, q, h)
            first = np.int64(problem.goals[g, FIRST_RESIDUAL])
            alone, _ = unheld(problem, work, first, first + np.int64(problem.goals[g, RESIDUALS]))
            if alone > small and left < max(CANCELS * alone, small):
                return CONFLICT
    return LIMITED if held > small else STALLED
