"""Full body: goals in strict priorities, hard limits in every level, the posture in what is left.

One entry point both solves and settles what missed: the two share nearly all of their code, which is compiled once.
"""

from synovia.kernels.compiler.jit import F, algorithm, entry, inline, perform
from synovia.kernels.goals.reach import missed, prove
from synovia.kernels.hierarchy.basis import ALONE, open_levels
from synovia.kernels.hierarchy.descent import descend
from synovia.kernels.hierarchy.finish import finish_rows
from synovia.kernels.hierarchy.walls import wall_count
from synovia.kernels.search.multistart import solve_rows
from synovia.kernels.search.restarts import scatter
from synovia.kernels.tree.problem import open_any, open_work

SETTLE = -1  # for ``first``: the rows are answers, and those that missed are settled and judged; in a track if ``warm``


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q in all levels; see ``descent``."""
    h = open_levels(work.spare, work.J.shape[0], work.J.shape[1] + wall_count(problem.further))
    h.now[ALONE] = F(0)
    return descend(problem, work, targets, q, h, problem.levels.shape[0])


@algorithm
def prove_hopeless(problem, work, targets, q):
    """Return 1 if a goal is proved out of reach and no other is missed, which another attempt could still meet."""
    count = 0
    for g in range(problem.goals.shape[0]):
        if missed(problem, work.frames, targets, g):
            count += 1
    if count > 1:
        return 0, F(0)
    return perform(prove, problem, work, targets, q)


@inline
def solve_or_settle(problem, work, targets, starts, out, warm, first):
    """Solve rows of problems (see ``multistart``), or with ``SETTLE`` end what they missed, and return its code."""
    if first == SETTLE:
        finish_rows(problem, work, starts, out, not warm)
        return 0
    return solve_rows(attempt, scatter, prove_hopeless, problem, work, targets, starts, out, warm, first)


@entry
def full_body(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve or settle rows of problems with any goals."""
    return solve_or_settle(open_any(ints, floats), open_work(ints, scratch), targets, starts, out, warm, first)
