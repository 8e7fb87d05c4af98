"""Full body for places alone, positions and rotations in the world: half as much to compile."""

from synovia.kernels.compiler.jit import entry
from synovia.kernels.hierarchy.full_body import solve_or_settle
from synovia.kernels.tree.problem import open_problem, open_work


@entry
def full_body_plain(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve or settle rows of problems."""
    return solve_or_settle(open_problem(ints, floats), open_work(ints, scratch), targets, starts, out, warm, first)
