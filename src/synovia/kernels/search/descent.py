"""The descent: steps from a start until every goal holds, or until one of the stop rules ends the attempt.

The rules are the same for all solvers. An attempt ends when the steps are spent, when the watch says so (time or work),
or when the cost has not fallen enough in the last ``patience`` steps: then another start is cheaper than more steps.
Solvers that have no room for a function call in a step, or that compare poses by levels, have loops of their own around
these rules (``falls_slowly``, ``AIM``).

A solver brings its step as an algorithm, in the form that ``multistart`` describes. It moves q, leaves ``work.frames``
at q, and returns its largest turn (radians) first.
"""

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.residuals import residual
from synovia.kernels.layout import PROGRESS
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy

INSIDE = F(1) - F(1e-6)  # stop just inside the tolerance: the verdict is reached with other rounding
FALLS = F(1) - F(1e-12)  # less is rounding: a pose that cannot be improved is given back as it came
STILL = F(1e-9)  # largest turn of a step (radians) that counts as none


@inline
def falls_slowly(problem, k, lowest, mark):
    """Return whether the cost has fallen too little to go on after step k, and the cost to compare with next time."""
    if k % problem.patience != 0:
        return False, mark
    return k > 0 and lowest > problem.params[PROGRESS] * mark, lowest


@device
def descend(move, leave, kept, work_of_move, problem, work, targets, q):
    """Repeat the step ``move`` from q.

    Args:
        move: The step.
        leave: What moves q away from where no step begins, once; the second time the attempt ends there. None: nothing.
        kept: Factor by which a pose must lower the cost to be kept.
        work_of_move: About how much work a step is, see ``watch``.
        problem: The problem.
        work: Scratch memory.
        targets: The targets.
        q: Where to begin; it is left at the best pose.

    Returns:
        (steps, the cost of the best pose, whether every goal holds there).
    """
    mark = F(0)
    lowest = F(0)
    best = F(0)
    left = False
    forward(problem.tree, q, work.frames)
    for k in range(problem.max_steps + 1):
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        lowest = cost if k == 0 or cost < lowest else lowest
        if k == 0 or cost < kept * best:
            best = cost
            copy(q, work.trial)
        if worst <= INSIDE:
            return k, cost, True
        slowly, mark = falls_slowly(problem, k, lowest, mark)
        if slowly or k == problem.max_steps or stopped(work.watch, work_of_move):
            break
        turned, _ = perform(move, problem, work, targets, q)
        if leave is not None and turned < STILL:
            if left:
                break
            left = True
            perform(leave, problem, work, targets, q)
    copy(work.trial, q)
    return k, best, False
