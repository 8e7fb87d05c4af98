"""The Jacobian family: one loop around the steps of ``methods``, with what all of them share.

Residual and Jacobian of the goals, in either form; the clamp of the error; the step, held at limits and clamped. What a
body would like beside its goals comes with ``secondary_steps``. Levenberg-Marquardt and damped least squares without
these extras have kernels of their own, ``arm`` and ``levenberg``.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, entry, perform
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.reach import prove
from synovia.kernels.goals.residuals import residual, to_units
from synovia.kernels.jacobian.clamps import clamp_errors
from synovia.kernels.jacobian.derivative import write_jacobian
from synovia.kernels.jacobian.levenberg import AIM, FALLS
from synovia.kernels.jacobian.methods import limited_step
from synovia.kernels.jacobian.workspace import open_room
from synovia.kernels.layout import DAMPING, ERROR_DAMPING, LARGEST_ERROR, LARGEST_TURN, METHOD, PROGRESS
from synovia.kernels.search.multistart import drive, drive_any
from synovia.kernels.search.restarts import scatter
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, work_of_step
from synovia.kernels.tree.variables import step


@device
def descend(move, problem, work, targets, q):
    """Move from q until every goal holds, the error stops falling fast enough, or the steps are spent.

    Returns:
        (steps, the least cost, whether every goal holds); q is left where the cost is least.
    """
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
            return k, cost, True
        if k % problem.patience == 0:
            if k > 0 and lowest > problem.own[PROGRESS] * mark:
                break
            mark = lowest
        if k == problem.max_steps or stopped(work.watch, cost_of_step):
            break
        perform(move, problem, work, targets, q)
    copy(work.trial, q)
    return k, lowest, False


@device
def goal_step(problem, work, q):
    """Write dq: the step of the chosen method for the error, clamped, of the goals; J and e are at q."""
    own = problem.own
    cost = F(0)
    for i in range(work.e.shape[0]):
        cost += work.e[i] * work.e[i]
    clamp_errors(problem, work.e, own[LARGEST_ERROR])
    damping = own[DAMPING] + own[ERROR_DAMPING] * cost
    limited_step(problem, work, open_room(work), q, np.int64(own[METHOD]), damping, own[LARGEST_TURN])


@algorithm
def move(problem, work, targets, q):
    """Take one step towards the goals."""
    write_jacobian(problem, work, targets, q)
    goal_step(problem, work, q)
    to_units(problem, work.dq)
    step(problem.variables, problem.limits, q, work.dq, F(1))
    return 1, F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q; see ``descend``."""
    k, cost, _ = descend(move, problem, work, targets, q)
    return k, cost


@entry
def family(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``multistart``."""
    return drive(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)


@entry
def family_any(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems with further goals."""
    return drive_any(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)
