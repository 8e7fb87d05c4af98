"""The Jacobian family with secondary objectives: steps towards the goals, and motion in their null space."""

from synovia.kernels.compiler.jit import F, algorithm, entry
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.jacobian.active_set import apply_dq, largest
from synovia.kernels.jacobian.family import goal_step
from synovia.kernels.jacobian.null_space import descend_null_space, initial_gain, null_space_step
from synovia.kernels.jacobian.secondary import write_gradient
from synovia.kernels.jacobian.shared import clamp_largest, open_scratch
from synovia.kernels.layout import LARGEST_TURN
from synovia.kernels.search.descent import FALLS, descend
from synovia.kernels.search.multistart import Search, multistart, multistart_general
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import work_of_step


@algorithm
def move(problem, work, targets, q):
    """Take one step towards the goals, dq = J⁺e + (J⁺J - 1) ∇H with the method's own form of J⁺e.

    The second part is never longer than the first: its second-order error would keep the goals from converging.
    """
    scratch = open_scratch(work)
    write_gradient(problem, work, targets, q, scratch.gradient)
    goal_step(problem, work, q)
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
    if holds:
        more, cost = descend_null_space(problem, work, open_scratch(work), targets, q, cost, problem.max_steps)
        k += more
    return k, cost


SEARCH = Search(attempt, random_start, prove_unreachable)


@entry
def secondary_family(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with positions and rotations in the world alone; see ``search.multistart``."""
    return multistart(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)


@entry
def secondary_family_general(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with any goals; see ``search.multistart``."""
    return multistart_general(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)
