"""The attempt of FABRIK, CCD and particles: iterations, sweeps or passes that converge slowly.

It also ends where nothing moves any more, and what holds the body is no straight line (see ``leave_line``).
"""

from synovia.kernels.compiler.jit import F, algorithm, device
from synovia.kernels.compiler.views import bits
from synovia.kernels.layout import STATE
from synovia.kernels.search.descent import descend
from synovia.kernels.search.finish import CLEARLY_LOWER
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.variables import perturb, seed_state

NUDGE = F(1e-3)  # radians: enough to leave a straight line, too little to be seen


@algorithm
def leave_line(problem, work, targets, q):
    """Leave a line: where a chain is on one line with its target nothing bends. It goes the same way every time."""
    seed_state(bits(work.watch, STATE, 1), problem.seed, 0)
    perturb(problem.variables, problem.limits, q, bits(work.watch, STATE, 1), NUDGE, problem.reach)
    forward(problem.tree, q, work.frames)
    return 0, F(0)


@device
def iterate_from(iterate, problem, work, targets, q):
    """Repeat ``iterate`` from q; return (iterations, the lowest cost)."""
    k, cost, _ = descend(iterate, leave_line, CLEARLY_LOWER, problem.tree.ints.shape[0], problem, work, targets, q)
    return k, cost
