"""Full body: goals in strict priorities, hard limits in every level, the posture in what is left.

One entry point both solves and finishes what missed: the two share nearly all of their code, which is compiled once.
There is one for any goals, and one for positions and rotations in the world alone, which is half as much to compile.
"""

from synovia.kernels.compiler.jit import F, algorithm, entry, inline, perform
from synovia.kernels.goals.reach import missed, prove_unreachable
from synovia.kernels.hierarchy.descent import descend
from synovia.kernels.hierarchy.finish import (
    ALIKE,
    SKETCH_STEPS,
    is_clearly_better,
    open_all,
    polish,
    settle,
    sketch,
)
from synovia.kernels.search.classify import classify_rows
from synovia.kernels.search.finish import finish_rows
from synovia.kernels.search.multistart import solve_rows
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.problem import open_general, open_problem, open_work


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q in all levels; see ``descent``."""
    return descend(problem, work, targets, q, open_all(problem, work), problem.levels.shape[0])


@algorithm
def prove_hopeless(problem, work, targets, q):
    """Return 1 if a goal is proved out of reach and no other is missed, which another attempt could still meet."""
    count = 0
    for g in range(problem.goals.shape[0]):
        if missed(problem, work.frames, targets, g):
            count += 1
    if count > 1:
        return 0, F(0)
    return perform(prove_unreachable, problem, work, targets, q)


@inline
def solve_or_finish(problem, work, targets, starts, out, warm, first):
    """Solve rows of problems (see ``multistart``), or with ``first`` below zero finish and classify what they missed.

    Then ``warm`` tells not to look elsewhere.
    """
    if first >= 0:
        return solve_rows(attempt, random_start, prove_hopeless, problem, work, targets, starts, out, warm, first)
    last = out.shape[0]
    finish_rows(
        sketch, polish, settle, is_clearly_better, SKETCH_STEPS, ALIKE, problem, work, starts, out, 0, last, not warm
    )
    classify_rows(sketch, prove_unreachable, problem, work, out)
    return 0


@entry
def full_body_general(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve or finish rows of problems with any goals."""
    return solve_or_finish(open_general(ints, floats), open_work(ints, scratch), targets, starts, out, warm, first)


@entry
def full_body(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve or finish rows of problems with positions and rotations in the world alone."""
    return solve_or_finish(open_problem(ints, floats), open_work(ints, scratch), targets, starts, out, warm, first)
