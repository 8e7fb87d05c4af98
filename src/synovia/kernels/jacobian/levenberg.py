"""Levenberg-Marquardt for any tree and any goals, with error-scaled damping (Sugihara 2011, eq. 20).

λ = constant + scale · e·e: far away the step is a careful gradient step, close by it becomes Gauss-Newton. A constant
alone gives damped least squares (Wampler 1986). Joints at a limit are held by the active set of ``descent``.
"""

from synovia.kernels.compiler.jit import F, algorithm, entry
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.reach import prove
from synovia.kernels.goals.residuals import residual, to_units
from synovia.kernels.jacobian.descent import LARGEST_TURN, damped_step, largest, linearise
from synovia.kernels.layout import DAMPING, ERROR_DAMPING, PROGRESS
from synovia.kernels.search.multistart import drive, drive_any
from synovia.kernels.search.restarts import scatter
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, work_of_step
from synovia.kernels.tree.variables import step

AIM = F(1) - F(1e-6)  # stop just inside the tolerance: the verdict is reached with other rounding
FALLS = F(1) - F(1e-12)  # less is rounding: a pose that cannot be improved is given back as it came


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q until every goal holds, the error stops falling fast enough, or the steps are spent."""
    mark = F(0)
    lowest = F(0)
    cost_of_step = work_of_step(problem)
    for k in range(problem.max_steps + 1):
        forward(problem.tree, q, work.frames)
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if k == 0 or cost < FALLS * lowest:
            lowest = cost
            copy(q, work.trial)
        if worst <= AIM:
            return k, cost
        if k % problem.patience == 0:
            if k > 0 and lowest > problem.own[PROGRESS] * mark:
                break  # the error has not halved: another start is cheaper than more steps
            mark = lowest
        if k == problem.max_steps or stopped(work.watch, cost_of_step):
            break
        linearise(problem, work, targets, q)
        damped_step(work, problem.own[DAMPING] + problem.own[ERROR_DAMPING] * cost)
        size = largest(work.dq)
        to_units(problem, work.dq)
        step(problem.variables, problem.limits, q, work.dq, min(F(1), LARGEST_TURN / max(size, F(1e-300))))
    copy(work.trial, q)
    return k, lowest


@entry
def levenberg(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``multistart``."""
    return drive(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)


@entry
def levenberg_any(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems with further goals."""
    return drive_any(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)
