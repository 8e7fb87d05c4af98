"""Where no step begins though something better is near: a chain that points straight away from its target.

No gradient leads away from there. What does is a column along which an error falls to every side that limits leave: at
a minimum there is none, so an answer that is asked for again stays.
"""

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.compiler.views import bits
from synovia.kernels.hierarchy.basis import PLACE
from synovia.kernels.hierarchy.largest_move import take_up
from synovia.kernels.hierarchy.polish import KEPT, gains
from synovia.kernels.hierarchy.step import SAME, advance_pose, look
from synovia.kernels.layout import BOX_LOWER, BOX_UPPER, STATE
from synovia.kernels.search.polish import ASIDE
from synovia.kernels.tree.chart import write_bounds
from synovia.kernels.tree.variables import seed_state, uniform


@device
def bends_down(problem, work, targets, q, h, count, v):
    """Return whether column v has room, and the first ``count`` levels gain on each side where it has; q was put down.

    The errors of q are the lowest.
    """
    free = 0
    for side in range(2):
        take_up(problem, q, h.began)
        write_bounds(problem, q, work.box)
        step = ASIDE if side == 0 else -ASIDE
        if step < work.box[v, BOX_LOWER] or step > work.box[v, BOX_UPPER]:
            continue
        free += 1
        for i in range(work.dq.shape[0]):
            work.dq[i] = F(0)
        work.dq[v] = step
        advance_pose(problem, q, work.dq)
        look(problem, work, targets, q, h)
        if not gains(h, count, KEPT, SAME, SAME):
            return False
    return free > 0


@apart
def step_off(problem, work, targets, q, h, count, way):
    """Move q, which was put down, a little along all columns that bend down, the same way every time; or the other.

    Returns:
        Whether there is one.
    """
    for v in range(work.dq.shape[0]):
        h.v[PLACE, v] = F(bends_down(problem, work, targets, q, h, count, v))
    take_up(problem, q, h.began)
    write_bounds(problem, q, work.box)
    seed_state(bits(work.watch, STATE, 1), problem.seed, 0)
    found = False
    for v in range(work.dq.shape[0]):
        step = way * ASIDE * (F(2) * uniform(bits(work.watch, STATE, 1)) - F(1)) * h.v[PLACE, v]
        work.dq[v] = min(max(step, work.box[v, BOX_LOWER]), work.box[v, BOX_UPPER])
        found = found or h.v[PLACE, v] > F(0)
    if found:
        advance_pose(problem, q, work.dq)
    return found
