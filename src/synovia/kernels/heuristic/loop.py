"""The attempt of the methods that creep: iterations of FABRIK, sweeps of CCD, passes over particles.

It ends when every goal holds (the tolerance), when nothing moves any more (no joint turns by ``STILL``, and what holds
the body is no straight line), when the error has not fallen enough for a while, or when the steps are spent. The best
pose that was met is left in q.
"""

from synovia.kernels.compiler.jit import F, device, perform
from synovia.kernels.compiler.views import bits
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.residuals import residual
from synovia.kernels.jacobian.levenberg import AIM
from synovia.kernels.layout import PROGRESS, STATE
from synovia.kernels.search.finish import KEPT
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import nudge, seed_state

STILL = F(1e-9)  # largest turn of an iteration (radians) that counts as none
NUDGE = F(1e-3)  # radians: enough to leave a straight line, too little to be seen


@device
def creep(iterate, problem, work, targets, q):
    """Repeat ``iterate``, which moves q, keeps work.frames at q and returns its largest turn (radians) first.

    Returns:
        (iterations, the lowest cost).
    """
    mark = F(0)
    lowest = F(0)
    best = F(0)
    nudged = False
    forward(problem.tree, q, work.frames)
    for k in range(problem.max_steps + 1):
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        lowest = cost if k == 0 else min(cost, lowest)
        if k == 0 or cost < KEPT * best:
            best = cost
            copy(q, work.trial)
        if worst <= AIM:
            return k, cost
        if k % problem.patience == 0:
            if k > 0 and lowest > problem.own[PROGRESS] * mark:
                break
            mark = lowest
        if k == problem.max_steps or stopped(work.watch, problem.tree.ints.shape[0]):
            break
        if perform(iterate, problem, work, targets, q)[0] < STILL:
            if nudged:
                break
            nudged = True  # on one line with its target nothing bends: leave the line, the same way every time
            seed_state(bits(work.watch, STATE, 1), problem.seed, 0)
            nudge(problem.variables, problem.limits, q, bits(work.watch, STATE, 1), NUDGE, problem.reach)
            forward(problem.tree, q, work.frames)
    copy(work.trial, q)
    return k, best
