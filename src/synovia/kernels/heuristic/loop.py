"""The loop of FABRIK, CCD and particles, whose iterations converge slowly.

It also ends when the joints stop moving, unless a ``nudge`` off a straight line helps.
"""

from synovia.kernels.compiler.jit import F, algorithm, device, inline
from synovia.kernels.search.descent import descend
from synovia.kernels.search.finish import CLEARLY_LOWER, solve_and_finish
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_general, open_problem, open_work
from synovia.kernels.tree.variables import perturb

NUDGE = F(1e-3)  # radians: enough to leave a straight line, too little to be seen


@algorithm
def nudge(problem, work, targets, q):
    """Turn all joints a little, the same every time: a straight chain in line with its target would never bend."""
    perturb(problem, work, q, NUDGE)
    forward(problem.tree, q, work.frames)
    return 0, F(0)


@device
def iterate_from(iterate, problem, work, targets, q):
    """Repeat ``iterate`` from q; return (iterations, the lowest cost)."""
    k, cost, _ = descend(iterate, nudge, CLEARLY_LOWER, problem.tree.ints.shape[0], problem, work, targets, q)
    return k, cost


@inline
def solve(attempt, ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems of positions and rotations; see ``search.finish``."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt, problem, work, targets, starts, out, warm, first)


@inline
def solve_general(attempt, ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems with poles; see ``search.finish``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt, problem, work, targets, starts, out, warm, first)
