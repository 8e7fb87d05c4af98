"""The Jacobian family: descend by the steps of ``methods``, with clamps, joint limits and secondary objectives.

A step computes the geometric or partial Jacobian, clamps the error, solves for the step within the limits, and clamps
it. Secondary objectives add a motion in the null space (``null_space``). Levenberg-Marquardt and damped least squares
without these options have faster kernels, ``arm`` and ``levenberg``.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, entry, step
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.jacobian.active_set import apply_dq, largest, squared_length
from synovia.kernels.jacobian.methods import limited_step
from synovia.kernels.jacobian.null_space import descend_null_space, initial_gain, null_space_step
from synovia.kernels.jacobian.secondary import has_objectives, write_gradient
from synovia.kernels.jacobian.shared import clamp_errors, clamp_largest, open_scratch, write_jacobian
from synovia.kernels.layout import DAMPING, ERROR_DAMPING, LARGEST_ERROR, LARGEST_TURN, METHOD
from synovia.kernels.search.descent import FALLS, descend
from synovia.kernels.search.multistart import Search, multistart_general
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


@step
def move(problem, work, targets, q):
    """Take one step towards the goals: dq = J⁺e + (J⁺J - 1) ∇H with the method's own form of J⁺e.

    H is the sum of the secondary objectives. The null-space part is never longer than J⁺e; otherwise its second-order
    error would keep the goals from converging.
    """
    scratch, objectives = open_scratch(work), has_objectives(problem)
    if objectives:
        write_gradient(problem, work, targets, q, scratch.gradient)
    else:
        write_jacobian(problem, work, targets, q)
    goal_step(problem, work, q)
    if objectives:
        null_space_step(problem, work, scratch, q, initial_gain(problem))
        clamp_largest(scratch.z, largest(work.dq))
        for i in range(work.dq.shape[0]):
            work.dq[i] += scratch.z[i]
        clamp_largest(work.dq, problem.params[LARGEST_TURN])
    apply_dq(problem, work, q, F(1))
    forward(problem.tree, q, work.frames)
    return F(1), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q; once the goals are met, lower H in their null space."""
    k, cost, holds = descend(move, None, FALLS, work_of_step(problem), problem, work, targets, q)
    if holds and has_objectives(problem):
        more, cost = descend_null_space(problem, work, open_scratch(work), targets, q, cost, problem.max_steps)
        k += more
    return k, cost


SEARCH = Search(attempt, random_start, prove_unreachable)


@entry
def family(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with any goals; see ``search.multistart``."""
    return multistart_general(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)
