"""The Jacobian family: descend by the steps of ``methods``, with clamps and joint limits.

A step computes the Jacobian in either form, clamps the error, solves for the step within the limits, and clamps it.
``secondary_steps`` adds secondary objectives. Levenberg-Marquardt and damped least squares without these options have
faster kernels, ``arm`` and ``levenberg``.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, entry
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.jacobian.active_set import apply_dq, squared_length
from synovia.kernels.jacobian.methods import limited_step
from synovia.kernels.jacobian.shared import clamp_errors, open_scratch, write_jacobian
from synovia.kernels.layout import DAMPING, ERROR_DAMPING, LARGEST_ERROR, LARGEST_TURN, METHOD
from synovia.kernels.search.descent import FALLS, descend
from synovia.kernels.search.multistart import Search, multistart, multistart_general
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import work_of_step


@device
def goal_step(problem, work, q):
    """Write dq, the step of the chosen method for the clamped error of the goals; J and e are at q."""
    params = problem.params
    damping = params[DAMPING] + params[ERROR_DAMPING] * squared_length(work.e)
    clamp_errors(problem, work.e, params[LARGEST_ERROR])
    limited_step(problem, work, open_scratch(work), q, np.int64(params[METHOD]), damping, params[LARGEST_TURN])


@algorithm
def move(problem, work, targets, q):
    """Take one step towards the goals."""
    write_jacobian(problem, work, targets, q)
    goal_step(problem, work, q)
    apply_dq(problem, work, q, F(1))
    forward(problem.tree, q, work.frames)
    return F(1), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q."""
    k, cost, _ = descend(move, None, FALLS, work_of_step(problem), problem, work, targets, q)
    return k, cost


SEARCH = Search(attempt, random_start, prove_unreachable)


@entry
def family(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with positions and rotations in the world alone; see ``search.multistart``."""
    return multistart(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)


@entry
def family_general(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with any goals; see ``search.multistart``."""
    return multistart_general(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)
