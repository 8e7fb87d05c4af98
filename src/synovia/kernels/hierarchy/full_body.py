"""The full-body solver: goals in strict priorities, hard limits in every level, and the posture in their null space.

There is one entry point for all goals, and one for positions and rotations in the world, which compiles faster. Each of
them both solves and finishes misses, because both need nearly the same code, which is then compiled once.
"""

from synovia.kernels.compiler.jit import F, algorithm, entry, inline, perform
from synovia.kernels.goals.reach import missed, prove_unreachable
from synovia.kernels.hierarchy.descent import descend_levels
from synovia.kernels.hierarchy.finish import (
    COARSE_STEPS,
    EQUAL_COST,
    coarse_descent,
    first_polish,
    is_clearly_better,
    open_hierarchy,
    polish,
)
from synovia.kernels.search.classify import classify_rows
from synovia.kernels.search.finish import finish_rows
from synovia.kernels.search.multistart import solve_rows
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.problem import open_general, open_problem, open_work


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q in all levels."""
    return descend_levels(problem, work, targets, q, open_hierarchy(problem, work), problem.levels.shape[0])


@algorithm
def prove_hopeless(problem, work, targets, q):
    """Return 1 if a goal is proved out of reach and no other goal is missed: another attempt cannot help."""
    count = 0
    for g in range(problem.goals.shape[0]):
        if missed(problem, work.frames, targets, g):
            count += 1
    if count > 1:
        return 0, F(0)
    return perform(prove_unreachable, problem, work, targets, q)


@inline
def solve_or_finish(problem, work, targets, starts, out, warm, first):
    """Solve a batch of problems (see ``multistart``), or finish and classify the missed rows if ``first`` is negative.

    When finishing, ``warm`` switches off the search from random starts.
    """
    if first >= 0:
        return solve_rows(attempt, random_start, prove_hopeless, problem, work, targets, starts, out, warm, first)
    last = out.shape[0]
    finish_rows(
        coarse_descent,
        polish,
        first_polish,
        is_clearly_better,
        COARSE_STEPS,
        EQUAL_COST,
        problem,
        work,
        starts,
        out,
        0,
        last,
        not warm,
    )
    classify_rows(coarse_descent, prove_unreachable, problem, work, out)
    return 0


@entry
def full_body_general(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve or finish a batch of problems with any goals; see ``search.multistart``."""
    return solve_or_finish(open_general(ints, floats), open_work(ints, scratch), targets, starts, out, warm, first)


@entry
def full_body(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve or finish a batch of problems of positions and rotations in the world; see ``search.multistart``."""
    return solve_or_finish(open_problem(ints, floats), open_work(ints, scratch), targets, starts, out, warm, first)
