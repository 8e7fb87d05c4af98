"""Descend: repeat a solver's step from a start until every goal is met or a stop rule ends the attempt.

The stop rules are the same for all solvers. An attempt ends when its steps are spent, when the watch stops it (time or
work), or when a step moves nothing even after a nudge. It also ends when the cost has not fallen enough in the last
``patience`` steps, because another start is then cheaper than more steps.

Some solvers have their own loops, which apply ``falls_slowly`` and ``INSIDE`` too: ``jacobian.arm`` and ``simd.arm``,
which keep their frames in registers; ``heuristic.fabrik_chain`` and ``simd.fabrik_chain`` (its rule is ``goes_on``),
which move points and compute q at the end; and ``hierarchy.descent``, which compares poses level by level. Others have
their own stop rules: ``jacobian.chain_newton``, which iterates on multipliers and not on q, ``jacobian.null_space``,
``search.polish`` and ``closed_form.limbs``.

A solver passes its step in the form of the algorithms that ``multistart`` describes. The step moves q, updates
``work.frames`` to q, and returns (its largest part in radians or length scales, which only a ``nudge`` needs; 0).
"""

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.residuals import residual
from synovia.kernels.layout import PROGRESS
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy

INSIDE = F(1) - F(1e-6)  # factor of the tolerance at which a descent ends; the final check rounds differently
FALLS = F(1) - F(1e-12)  # ``improvement_factor`` of exact steps: a smaller fall of the cost is rounding
STILL = F(1e-9)  # smaller steps (radians, length scales) count as zero


@inline
def falls_slowly(problem, k, lowest, earlier):
    """Return whether the cost falls too slowly after step k, and the cost to compare with at the next check.

    Every ``problem.patience`` steps the lowest cost so far is compared with ``earlier``, the lowest cost at the check
    before. The cost falls too slowly if lowest > PROGRESS * earlier.
    """
    if k % problem.patience != 0:
        return False, earlier
    return k > 0 and lowest > problem.params[PROGRESS] * earlier, lowest


@device
def descend(move, nudge, improvement_factor, work_of_move, problem, work, targets, q):
    """Repeat the step ``move`` from q. work.trial and work.e are overwritten; work.frames are those of the last step.

    Args:
        move: The step.
        nudge: Algorithm that moves q a little, once, after a step that did not move it, as on a straight chain. If
            another step does not move q either, the attempt ends. None: continue with further steps.
        improvement_factor: A pose becomes the best one if its cost is below this factor times the best cost.
        work_of_move: Estimated work of a step, see ``watch``.
        problem: The problem.
        work: Scratch memory.
        targets: (goals, 16) complete targets.
        q: (nq,) the start; the best pose afterwards.

    Returns:
        (steps, cost of the best pose, whether it meets every goal).
    """
    earlier = F(0)
    lowest = F(0)
    best = F(0)
    nudged = False
    forward(problem.tree, q, work.frames)
    for k in range(problem.max_steps + 1):
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        lowest = cost if k == 0 or cost < lowest else lowest
        if k == 0 or cost < improvement_factor * best:
            best = cost
            copy(q, work.trial)
        if worst <= INSIDE:
            return k, cost, True
        slowly, earlier = falls_slowly(problem, k, lowest, earlier)
        if slowly or k == problem.max_steps or stopped(work.watch, work_of_move):
            break
        largest_turn, _ = perform(move, problem, work, targets, q)
        if nudge is not None and largest_turn < STILL:
            if nudged:
                break
            nudged = True
            perform(nudge, problem, work, targets, q)
    copy(work.trial, q)
    return k, best, False
