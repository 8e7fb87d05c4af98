"""Full body: goals in strict priorities, hard limits in every level, the posture in what is left.

The step is that of ``full_body_levels``. Poses are compared level by level: the errors of a lower one count only where
those above are the same.
"""

from synovia.kernels._jit import F, algorithm, entry
from synovia.kernels.chart import INFINITE
from synovia.kernels.drive import drive_any
from synovia.kernels.full_body_basis import open_levels
from synovia.kernels.full_body_step import PROGRESS, SETTLED, SPEED, improves, keep, look, ranked, take_step
from synovia.kernels.problem import copy
from synovia.kernels.reach import prove
from synovia.kernels.scatter import scatter

PATIENT = 2  # steps that are no better before they are damped more
LIGHTEST, STRONGER, WEAKER = F(1e-3), F(10), F(0.1)
AIM = F(1) - F(1e-6)  # stop just inside the tolerance: the verdict is reached with other rounding


@algorithm
def attempt(problem, work, targets, q):
    """Step from q until every goal holds, the error stops falling fast enough, or the steps are spent.

    With a posture it goes on until no column has farther to go in one step than ``SETTLED``.
    """
    h = open_levels(work.spare, work.J.shape[0], work.J.shape[1])
    levels = problem.levels.shape[0] - 1
    for v in range(h.gone.shape[0]):
        h.gone[v] = F(0)
    mark = F(0)
    size = F(0)
    extra = F(0)  # damping
    worse = 0
    met = False  # whether the best pose meets all goals
    for k in range(problem.max_steps + 1):
        worst = look(problem, work, targets, q, h)
        reached = worst <= AIM
        if k == 0 or (reached and not met) or (reached == met and improves(h, levels + 1)):
            keep(h)
            copy(q, work.trial)
            met = reached
            extra *= WEAKER
            worse = 0
        else:
            worse += 1
            if worse == PATIENT:  # too far: from the best pose again, in shorter steps
                worse = 0
                extra = max(STRONGER * extra, LIGHTEST)
                if problem.own[SPEED] == INFINITE:
                    copy(work.trial, q)
                    reached = look(problem, work, targets, q, h) <= AIM
        if reached and (h.present[levels] == F(0) or (k > 0 and size <= problem.own[SETTLED])):
            break
        if k % problem.patience == 0 and not met:
            cost = ranked(problem, h.lowest)
            if k > 0 and cost > problem.own[PROGRESS] * mark:
                break
            mark = cost
        if k == problem.max_steps:
            break
        size = take_step(problem, work, targets, q, h, extra)
    copy(work.trial, q)
    return k, ranked(problem, h.lowest)


@entry
def full_body(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems with any goals; see ``drive``."""
    return drive_any(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)
