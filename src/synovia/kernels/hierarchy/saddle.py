"""Leave saddles of a hierarchy, such as a chain that points straight away from its target.

The gradient is zero at a saddle. A way out is a column along which an error falls on every side that the limits allow.
A minimum has no such column, so it is returned unchanged.
"""

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.compiler.views import bits
from synovia.kernels.hierarchy.basis import DIRECTION
from synovia.kernels.hierarchy.largest_move import restore_pose
from synovia.kernels.hierarchy.polish import MAX_LOSS, has_gained
from synovia.kernels.hierarchy.step import EQUAL_ERRORS, apply_step, evaluate_levels
from synovia.kernels.layout import BOX_LOWER, BOX_UPPER, STATE
from synovia.kernels.search.polish import SADDLE_STEP
from synovia.kernels.tree.chart import bounds
from synovia.kernels.tree.variables import seed_state, uniform


@device
def error_falls_along(problem, work, targets, q, h, count, v):
    """Return whether column v can move, and the first ``count`` levels gain on each side to which it can.

    ``saved_pose`` holds q, and ``best`` its errors.
    """
    free = 0
    for side in range(2):
        restore_pose(problem, q, h.saved_pose)
        bounds(problem, q, work.box)
        step = SADDLE_STEP if side == 0 else -SADDLE_STEP
        if step < work.box[v, BOX_LOWER] or step > work.box[v, BOX_UPPER]:
            continue
        free += 1
        for i in range(work.dq.shape[0]):
            work.dq[i] = F(0)
        work.dq[v] = step
        apply_step(problem, q, work.dq)
        evaluate_levels(problem, work, targets, q, h)
        if not has_gained(h, count, MAX_LOSS, EQUAL_ERRORS, EQUAL_ERRORS):
            return False
    return free > 0


@apart
def leave_saddle(problem, work, targets, q, h, count, sign):
    """Move q, stored in ``saved_pose``, a little along all columns where the error falls; ``sign`` flips the step.

    The step is random, but the same every time.

    Returns:
        Whether there is such a column.
    """
    for v in range(work.dq.shape[0]):
        h.v[DIRECTION, v] = F(error_falls_along(problem, work, targets, q, h, count, v))
    restore_pose(problem, q, h.saved_pose)
    bounds(problem, q, work.box)
    seed_state(bits(work.watch, STATE, 1), problem.seed, 0)
    found = False
    for v in range(work.dq.shape[0]):
        step = sign * SADDLE_STEP * (F(2) * uniform(bits(work.watch, STATE, 1)) - F(1)) * h.v[DIRECTION, v]
        work.dq[v] = min(max(step, work.box[v, BOX_LOWER]), work.box[v, BOX_UPPER])
        found = found or h.v[DIRECTION, v] > F(0)
    if found:
        apply_step(problem, q, work.dq)
    return found
