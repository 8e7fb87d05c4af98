"""One attempt of a full body: steps of all levels, shorter where they do not help, until all goals hold.

Poses are compared level by level: the errors of a lower one count only where those above are the same.
"""

from synovia.kernels.compiler.jit import F, apart, inline
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.hierarchy.largest_move import put_down
from synovia.kernels.hierarchy.step import SAME, improves, keep, look, ranked, smallest_tolerance, take_step
from synovia.kernels.layout import LARGEST_MOVE, SETTLED
from synovia.kernels.search.descent import INSIDE, falls_slowly
from synovia.kernels.tree.chart import INFINITE
from synovia.kernels.tree.problem import copy

PATIENT = 2  # steps that are no better before they are damped more
LIGHTEST, STRONGER, WEAKER = F(1e-2), F(10), F(0.3)
HEAVIEST = F(1e6)  # damping: a step that is damped more and is no better says that nothing is


@inline
def work_of_levels(problem):
    """Return about how much work a step of all levels is, see ``watch``."""
    m, v = F(problem.residuals), F(problem.columns)
    return F(4) * F(problem.tree.ints.shape[0]) + m * v / F(4) + m * v * v / F(512)


@apart
def descend(problem, work, targets, q, h, count):
    """Step from q until every goal holds, the error stops falling fast enough, or the steps are spent.

    Only the first ``count`` levels take part, the posture being one after the others. With a posture it goes on until
    no column has farther to go in one step than ``SETTLED``.

    Returns:
        (steps, the errors of the best pose as one number); q is that pose.
    """
    levels = problem.levels.shape[0] - 1
    slow = problem.params[LARGEST_MOVE] < INFINITE
    held = F(0)
    if slow:  # against its bounds a level comes back to where it was little by little
        put_down(problem, q, h.began)
        held = smallest_tolerance(problem)
    mark = F(0)
    size = F(0)
    extra = F(0)  # damping
    worse = 0
    cost_of_step = work_of_levels(problem)
    met = False  # whether the best pose meets all goals
    for k in range(problem.max_steps + 1):
        reached = look(problem, work, targets, q, h) <= INSIDE and count > levels
        if k == 0 or reached != met:
            better = k == 0 or reached
        elif reached:  # within the tolerance one is as good as another
            better = h.present[levels] < h.lowest[levels] - SAME
        else:
            better = improves(h, count, held)
        if better:
            keep(h)
            copy(q, work.trial)
            met = reached
            extra *= WEAKER
            worse = 0
        else:
            worse += 1
            if worse == PATIENT:  # too far: from the best pose, in shorter steps
                worse = 0
                extra = max(STRONGER * extra, LIGHTEST)
                copy(work.trial, q)
                reached = look(problem, work, targets, q, h) <= INSIDE and count > levels
        if reached and (h.present[levels] == F(0) or (k > 0 and size <= problem.params[SETTLED])):
            break
        if slow:  # how fast errors fall says nothing: it is the largest move that holds them up
            if extra > HEAVIEST:
                break
        elif not met:
            slowly, mark = falls_slowly(problem, k, ranked(problem, h.lowest, count), mark)
            if slowly:
                break
        if k == problem.max_steps or stopped(work.watch, cost_of_step):
            break
        size = take_step(problem, work, targets, q, h, count, extra)
    copy(work.trial, q)
    return k, ranked(problem, h.lowest, count)
