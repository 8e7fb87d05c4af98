"""The end of a miss: the pose is taken to where no level can be improved without making an upper one worse.

Level after level is polished, those above it kept. Then longer steps look for something better, and random starts (see
``search.finish``).
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, device, inline
from synovia.kernels.compiler.views import matrix, vector
from synovia.kernels.compiler.watch import halted
from synovia.kernels.hierarchy.basis import ALONE, open_levels
from synovia.kernels.hierarchy.descent import descend
from synovia.kernels.hierarchy.inequalities import wall_count
from synovia.kernels.hierarchy.largest_move import is_at_rest, put_down, take_up
from synovia.kernels.hierarchy.polish import UNSEEN, gains, refine
from synovia.kernels.hierarchy.saddle import step_off
from synovia.kernels.hierarchy.step import SAME, keep, look, smallest_tolerance
from synovia.kernels.layout import FINALISTS, LARGEST_MOVE, OTHERS
from synovia.kernels.tree.chart import INFINITE
from synovia.kernels.tree.problem import copy

PASSES = 6
FARTHER = F(1e-8)  # by which a level must gain for a pose to be left
SKETCH_STEPS = 15  # from a random start: enough to tell which poses are worth more
ALIKE = F(0)
GRAIN = F(1e-3)  # of an error (reaches, radians): sketches that differ by less are as good as each other
GRAINS = F(1e4)  # of the largest error that is told from a larger one
CLEARLY = F(0.9995)  # of an error: what a level must fall to for a pose elsewhere


@inline
def open_all(problem, work):
    """Return the scratch memory of the levels, with the posture among them."""
    h = open_levels(work.solver_scratch, work.J.shape[0], work.J.shape[1] + wall_count(problem.general))
    h.now[ALONE] = F(0)
    return h


@device
def leap(problem, work, targets, q, h, count):
    """Return whether steps of an attempt of so many levels take them to a better pose than q, and move q there.

    Where no step begins though something better is near, they start from a little to both sides.
    """
    for side in range(3):
        if halted(work.watch):
            break
        copy(h.aside, h.lowest)
        if side > 0 and not step_off(problem, work, targets, q, h, count, F(1) if side == 1 else F(-1)):
            return False
        descend(problem, work, targets, q, h, count)
        for last in range(1, count + 1):
            refine(problem, work, targets, q, h, last)
        look(problem, work, targets, q, h)
        copy(h.aside, h.lowest)
        if gains(h, count, UNSEEN, FARTHER, FARTHER):
            return True
        take_up(problem, q, h.began)
    return False


@device
def leaps(problem, work, targets, q, h):
    """Return whether the steps of an attempt take upper levels alone to a better pose than q, and move q there.

    They are longer than those that refine, and can leave a minimum for a lower one. What level below is lost counts for
    nothing, as it must. At last all levels are tried, as they are when the pose is asked for again.
    """
    look(problem, work, targets, q, h)
    copy(h.present, h.aside)
    put_down(problem, q, h.began)
    levels = problem.levels.shape[0] - 1
    for k in range(1, levels + 1):
        h.now[ALONE] = F(k < levels)
        found = leap(problem, work, targets, q, h, k if k < levels else levels + 1)  # and the posture
        h.now[ALONE] = F(0)
        if found:
            return True
    return False


@device
def refine_all(problem, work, targets, q, h):
    """Refine the highest level alone, then with it the next, and so on to the posture; then all of it, while q moves.

    Returns:
        (steps taken, whether all is settled).
    """
    steps = 0
    settled = True
    for k in range(PASSES):
        settled = True
        moved = False
        for count in range(1, problem.levels.shape[0] + 1):
            taken, still, gone = refine(problem, work, targets, q, h, count)
            steps += taken
            settled = settled and still
            moved = moved or gone
        if k == PASSES - 1 or halted(work.watch) or (not moved and not leaps(problem, work, targets, q, h)):
            break
    return steps, settled


@device
def is_better(problem, work, targets, start, q, h):
    """Return whether q holds, or is better than a start that misses in the first level where they differ."""
    look(problem, work, targets, start, h)
    keep(h)
    return look(problem, work, targets, q, h) <= F(1) or gains(h, problem.levels.shape[0], UNSEEN, FARTHER, FARTHER)


@algorithm
def settle(problem, work, targets, q):
    """Refine q; a start that is as good is given back as it was, so that nothing wanders when it is solved again.

    After a restart the start itself is refined too. Where a largest move holds joints back, the pose stays as it is.
    """
    h = open_all(problem, work)
    start = vector(work.watch, OTHERS, q.shape[0])
    if problem.params[LARGEST_MOVE] < INFINITE:
        return 0, F(is_at_rest(problem, q, start))
    steps, settled = refine_all(problem, work, targets, q, h)
    better = is_better(problem, work, targets, start, q, h)
    if work.watch[OTHERS + q.shape[0] + 1] > F(0) and not better:
        copy(start, q)
        taken, settled = refine_all(problem, work, targets, q, h)
        steps += taken
        better = is_better(problem, work, targets, start, q, h)
    if not better:
        copy(start, q)
    return steps, F(settled)


@algorithm
def polish(problem, work, targets, q):
    """Refine all levels of q."""
    taken, settled = refine_all(problem, work, targets, q, open_all(problem, work))
    return taken, F(settled)


@algorithm
def sketch(problem, work, targets, q):
    """Descend from q; the cost orders sketches by levels, each in grains that weigh more than all levels below it."""
    h = open_all(problem, work)
    taken, _ = descend(problem, work, targets, q, h, problem.levels.shape[0])
    look(problem, work, targets, q, h)
    cost = F(0)
    weight = F(1)
    for k in range(problem.levels.shape[0] - 1):
        cost += weight * min(math.floor(h.present[k] / GRAIN), GRAINS - F(1))
        weight /= GRAINS
    return taken, cost


@algorithm
def is_clearly_better(problem, work, targets, q):
    """Return 1 if q is clearly better than the pose that is kept, in the first level where their errors differ."""
    h = open_all(problem, work)
    met = smallest_tolerance(problem)
    look(problem, work, targets, matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + 2)[FINALISTS], h)
    keep(h)
    look(problem, work, targets, q, h)
    for k in range(problem.levels.shape[0] - 1):
        present, lowest = max(h.present[k], met), max(h.lowest[k], met)
        if present < CLEARLY * lowest:
            return 1, F(0)
        if not present <= lowest + SAME * (F(1) + lowest):
            return 0, F(0)
    return 0, F(0)
