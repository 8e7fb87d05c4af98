"""Levenberg-Marquardt for any tree and any goals, with error-scaled damping (Sugihara 2011, eq. 20).

λ = constant + scale · e·e: a short gradient step far from the target becomes a Gauss-Newton step near it. With
scale = 0 it is damped least squares (Wampler 1986). The active set of ``active_set`` holds joints at their limits.
"""

from synovia.kernels.compiler.jit import F, algorithm, entry, step
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.jacobian.active_set import damped_move, squared_length
from synovia.kernels.layout import DAMPING, ERROR_DAMPING
from synovia.kernels.search.descent import FALLS, descend
from synovia.kernels.search.multistart import Search, multistart_general
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import work_of_step


@step
def move(problem, work, targets, q):
    """Take one damped step; frames and residual are at q."""
    damping = problem.params[DAMPING] + problem.params[ERROR_DAMPING] * squared_length(work.e)
    size = damped_move(problem, work, targets, q, damping)
    forward(problem.tree, q, work.frames)
    return size, F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q."""
    k, cost, _ = descend(move, None, FALLS, work_of_step(problem), problem, work, targets, q)
    return k, cost


SEARCH = Search(attempt, random_start, prove_unreachable)


@entry
def levenberg(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with any goals; see ``search.multistart``."""
    return multistart_general(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)
