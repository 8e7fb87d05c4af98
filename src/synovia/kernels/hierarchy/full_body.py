"""The full-body solver: goals in strict priorities, hard limits in every level, and the posture in their null space.

One entry point solves and another finishes misses, each for goals of all kinds and for loops. Entry points for
positions and rotations only were at most 5 % faster. Solving and finishing are separate because a solve needs only the
first one, and because two processes can compile them at the same time.

Loops are the first level, so a step corrects their closure error and keeps them closed to first order. Every pose that
an attempt returns is closed exactly (see ``descent``).
"""

from synovia.kernels.compiler.jit import F, algorithm, entry, inline, perform
from synovia.kernels.compiler.views import vector
from synovia.kernels.goals.clearance import clearance_residual
from synovia.kernels.goals.reach import missed, prove_unreachable
from synovia.kernels.hierarchy.along_clip import start_along
from synovia.kernels.hierarchy.descent import descend_levels, open_hierarchy
from synovia.kernels.hierarchy.finish import (
    COARSE_STEPS,
    EQUAL_COST,
    coarse_descent,
    first_polish,
    is_better_answer,
    is_clearly_better,
    polish,
    search_upper_levels,
)
from synovia.kernels.hierarchy.near_starts import begin_restarts, restart
from synovia.kernels.layout import MISSED, OUT_HEAD
from synovia.kernels.search.classify import classify_rows
from synovia.kernels.search.finish import Refinement, finish_rows
from synovia.kernels.search.multistart import Begins, Search, solve_rows
from synovia.kernels.tree.problem import open_all, open_work


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q in all levels."""
    return descend_levels(problem, work, targets, q, open_hierarchy(problem, work), problem.levels.shape[0])


@algorithm
def prove_hopeless(problem, work, targets, q):
    """Return 1 if a goal is proved out of reach and no other goal is missed: another attempt cannot help.

    This is called only after the first attempt, so it also prepares the restarts.
    """
    begin_restarts(problem, work, targets, q)
    count = 0
    for g in range(problem.goals.shape[0]):
        if missed(problem, work.frames, targets, g):
            count += 1
    if count > 1 or clearance_residual(problem.clear, problem, work.frames, work.e)[1] > F(1):
        return 0, F(0)
    return perform(prove_unreachable, problem, work, targets, q)


SEARCH = Search(attempt, restart, prove_hopeless, is_better_answer)
REFINEMENT = Refinement(coarse_descent, polish, first_polish, is_clearly_better, COARSE_STEPS, EQUAL_COST, 1)


@inline
def finish_misses(problem, work, starts, out, warm):
    """Polish and classify the missed rows; WARM switches off the search from random starts."""
    finish_rows(REFINEMENT, problem, work, starts, out, 0, out.shape[0], not warm)
    search_upper_levels(problem, work, out, not warm)
    classify_rows(coarse_descent, prove_unreachable, problem, work, out)
    return 0


@entry
def full_body(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with goals of any kind, and loops; see ``search.multistart``.

    With WARM and several starts, the starts from the second one on are poses of a clip, along which the rows are solved
    (``along_clip``). Before the call, the posture is the clip's pose in the row before ``first``. Up to the first miss,
    the poses are overwritten by the starts used.
    """
    problem, work = open_all(ints, floats, scratch), open_work(ints, scratch)
    begins, along, b = Begins(starts, ints, floats), warm and starts.shape[0] > 1, first
    while True:
        end = b + 1 if along else out.shape[0]
        if along:
            start_along(problem, starts[b], vector(out[b - 1], OUT_HEAD, problem.nq))
        code = solve_rows(SEARCH, problem, work, targets, begins, out[:end], warm and not along, b)
        if end == out.shape[0] or code < 0 or code & MISSED:
            return code
        b = end


@entry
def finish_levels(ints, floats, targets, starts, out, scratch, warm, first):
    """Polish and classify the missed rows level by level; the arguments are those of ``search.classify.classify``."""
    problem, work = open_all(ints, floats, scratch), open_work(ints, scratch)
    return finish_misses(problem, work, starts, out, warm)
