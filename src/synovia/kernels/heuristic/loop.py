"""The loop of FABRIK, CCD and particles, whose iterations converge slowly.

It is the loop of ``search.descent``, and also ends when the joints stop moving, unless a ``nudge`` off a straight line
helps.
"""

from synovia.kernels.compiler.jit import F, device, inline, step
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.layout import MISSED, ROWS_AT
from synovia.kernels.search.descent import descend
from synovia.kernels.search.finish import CLEARLY_LOWER, SAME_MINIMUM, Refinement, finish_rows
from synovia.kernels.search.multistart import Search, solve_rows
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.variables import perturb

COARSE_STEPS = 20  # largest number of steps from a random start: enough to rank the minima
NUDGE = F(1e-3)  # radians: enough to leave a straight line, too small to see


@step
def nudge(problem, work, targets, q):
    """Move all joints a little, always by the same steps, so that a straight chain in line with its target can bend."""
    perturb(problem, work, q, NUDGE)
    forward(problem.tree, q, work.frames)
    return 0, F(0)


@device
def iterate_from(iterate, problem, work, targets, q):
    """Repeat ``iterate`` from q; return (iterations, the lowest cost)."""
    k, cost, _ = descend(iterate, nudge, CLEARLY_LOWER, problem.tree.ints.shape[0], problem, work, targets, q)
    return k, cost


@inline
def solve_and_finish(attempt, problem, work, targets, begins, out, warm, first):
    """Solve rows by attempts that converge slowly, and finish the missed ones.

    The first argument is an attempt instead of a ``Search``; the other arguments and the code returned are those of
    ``solve_rows``. With WARM the loop of ``solve_rows`` ends at the first miss, which then stays near its start.
    """
    search = Search(attempt, random_start, prove_unreachable, None)
    code = solve_rows(search, problem, work, targets, begins, out, warm, first)
    if code >= 0 and code & MISSED:
        last = code >> ROWS_AT
        elsewhere = not warm or last == 1
        refinement = Refinement(attempt, None, None, None, COARSE_STEPS, SAME_MINIMUM, 1)
        finish_rows(refinement, problem, work, begins.starts, out, first, last, elsewhere)
    return code
