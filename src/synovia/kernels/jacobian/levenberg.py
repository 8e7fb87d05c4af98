"""Levenberg-Marquardt for any tree and any goals, with error-scaled damping (Sugihara 2011, eq. 20).

λ = constant + scale · e·e: far away the step is a careful gradient step, close by it becomes Gauss-Newton. A constant
alone gives damped least squares (Wampler 1986). Joints at a limit are held by the active set of ``descent``.
"""

from synovia.kernels.compiler.jit import F, algorithm, entry
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.goals.residuals import to_units
from synovia.kernels.jacobian.active_set import LARGEST_TURN, damped_step, largest, linearise
from synovia.kernels.layout import DAMPING, ERROR_DAMPING
from synovia.kernels.search.descent import FALLS, descend
from synovia.kernels.search.multistart import multistart, multistart_general
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import work_of_step
from synovia.kernels.tree.variables import step


@algorithm
def move(problem, work, targets, q):
    """Take one damped step; frames and residual are at q."""
    cost = F(0)
    for i in range(work.e.shape[0]):
        cost += work.e[i] * work.e[i]
    linearise(problem, work, targets, q)
    damped_step(work, problem.params[DAMPING] + problem.params[ERROR_DAMPING] * cost)
    size = largest(work.dq)
    to_units(problem, work.dq)
    step(problem.variables, problem.limits, q, work.dq, min(F(1), LARGEST_TURN / max(size, F(1e-300))))
    forward(problem.tree, q, work.frames)
    return size, F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q."""
    k, cost, _ = descend(move, None, FALLS, work_of_step(problem), problem, work, targets, q)
    return k, cost


@entry
def levenberg(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``multistart``."""
    return multistart(
        attempt, random_start, prove_unreachable, ints, floats, targets, starts, out, scratch, warm, first
    )


@entry
def levenberg_general(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems with general goals."""
    return multistart_general(
        attempt, random_start, prove_unreachable, ints, floats, targets, starts, out, scratch, warm, first
    )
