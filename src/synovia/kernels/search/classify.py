"""What a miss means: the status of every solver's answers that miss a goal.

At a pose that rests, the parts of the error gradient tell what holds it: other goals where the gradients of single
goals cancel, joint limits where the rest is pressed against their bounds. With priorities it is the gradient of the
highest level that is missed; without them there is one level.

The entry points are kept apart from the solvers' own kernels: a solve that reaches its goals never loads them, and they
are compiled once for all solvers. They have the arguments of a solver's kernel.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, apart, entry, inline, perform
from synovia.kernels.goals.residuals import jacobian, residual, to_units
from synovia.kernels.jacobian.active_set import LARGEST_TURN, damped_step, largest, linearise
from synovia.kernels.layout import (
    CONFLICT,
    FIRST_RESIDUAL,
    LEVEL,
    LIMITED,
    NO_GAIN,
    REACHED,
    RESIDUALS,
    STALLED,
    STATUS,
    STEPS_SPENT,
    STOPPED_BY,
    UNREACHABLE,
)
from synovia.kernels.math.bounded import free_and_held_gradient
from synovia.kernels.search.finish import ALIKE, finish_rows
from synovia.kernels.search.multistart import meets_goals
from synovia.kernels.search.polish import FLAT, come_to_rest
from synovia.kernels.tree.chart import NEAR, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_general, open_problem, open_row, open_work, with_steps
from synovia.kernels.tree.variables import step

POLISH, CLASSIFY = -1, -2  # for ``first``: polish the rows that missed and find their status, or only the latter
SETTLE_STEPS = 200
SKETCH_STEPS = 12  # from a random start: enough to tell which minima are worth more
CURVED, LESS, MORE = F(0.6), F(0.7), F(4)  # damping, of the root of the cost, and its changes
STATIONARY = F(1e-5)  # gradient against residual below which a pose cannot be improved to first order
CANCELS = F(1e-3)  # what is left of gradients against their sizes below which they hold each other


@apart
def gradient(problem, work, first, last, slack):
    """Find the gradient of the residual rows from ``first`` to before ``last``; J, e and the box are in work.

    Returns:
        (the largest part that no limit holds back, the largest part that a limit does).
    """
    for v in range(work.g.shape[0]):
        work.g[v] = F(0)
    for i in range(first, last):
        for v in range(work.g.shape[0]):
            work.g[v] += work.J[i, v] * work.e[i]
    return free_and_held_gradient(work.box, work.g, NEAR, slack)


@apart
def status_of(problem, work, targets, errors, q, rests):
    """Return the status of a pose that misses a goal; frames and residual of q are in work.

    It is the first that applies: goals of the highest missed level cancel each other; limits hold what is left; the
    steps were spent before the pose came to rest; levels above hold what is left.
    """
    level = problem.levels.shape[0] - 2
    for g in range(problem.goals.shape[0]):
        if errors[2 * g] > problem.tolerance or errors[2 * g + 1] > problem.tolerance_angle:
            level = min(level, int(problem.goals[g, LEVEL]))
    first, last = int(problem.levels[level]), int(problem.levels[level + 1])
    cost = F(0)
    for i in range(first, last):
        cost += work.e[i] * work.e[i]
    small, slack = STATIONARY * math.sqrt(cost), FLAT * math.sqrt(cost)
    jacobian(problem, q, work.frames, targets, work.J)
    write_bounds(problem, q, work.box)
    to_box(problem, work.box, work.J)
    left, held = gradient(problem, work, first, last, slack)
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, LEVEL] == level:
            first = int(problem.goals[g, FIRST_RESIDUAL])
            alone, _ = gradient(problem, work, first, first + int(problem.goals[g, RESIDUALS]), slack)
            if alone > small and left < max(CANCELS * alone, small):
                return CONFLICT
    if held > small and left < max(CANCELS * held, small):
        return LIMITED
    if not rests:
        return STEPS_SPENT
    return CONFLICT if level > 0 and left > small else STALLED


@apart
def classify_rows(sketch, prove, problem, work, out):
    """Write the status of the rows that missed; with ``prove`` it is tried again whether they are out of reach."""
    for b in range(out.shape[0]):
        row = out[b]
        status = int(row[STATUS])
        if status == REACHED:
            continue
        q, errors, targets = open_row(problem, row)
        if meets_goals(problem, work, targets, q, errors):
            row[STATUS] = REACHED
        elif prove is not None and perform(prove, problem, work, targets, q)[0] > 0:
            row[STATUS] = UNREACHABLE
        elif status != UNREACHABLE:
            perform(sketch, with_steps(problem, 0), work, targets, q)  # no step: frames and residual as it counts them
            row[STATUS] = status_of(problem, work, targets, errors, q, row[STOPPED_BY] == NO_GAIN)


@algorithm
def sketch(problem, work, targets, q):
    """Descend roughly: damped least squares, in which the damping stands for the curvature of what is missed.

    A chain that points at a target d away resists each turn by d times its lever: that grows with the root of the cost.
    """
    share = CURVED
    lowest = F(0)
    for k in range(problem.max_steps + 1):
        forward(problem.tree, q, work.frames)
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if k == 0 or cost < lowest:
            lowest = cost
            share *= LESS
            copy(q, work.trial)
        else:
            share *= MORE
            copy(work.trial, q)
            forward(problem.tree, q, work.frames)
            residual(problem, q, work.frames, targets, work.e)
        if k == problem.max_steps or worst <= F(1):
            break
        linearise(problem, work, targets, q)
        damped_step(work, share * math.sqrt(lowest))
        size = largest(work.dq)
        to_units(problem, work.dq)
        step(problem.variables, problem.limits, q, work.dq, min(F(1), LARGEST_TURN / max(size, F(1e-300))))
    return k, lowest


@algorithm
def polish(problem, work, targets, q):
    """Descend to a minimum by Newton's method; see ``polish``."""
    taken, rests = come_to_rest(problem, work, targets, q, SETTLE_STEPS)
    return taken, F(rests)


@inline
def finish_misses(problem, work, starts, out, warm, first):
    """Polish with ``POLISH`` the rows that missed, looking elsewhere unless ``warm``, and write their status."""
    if first == POLISH:
        finish_rows(
            sketch, polish, None, None, SKETCH_STEPS, ALIKE, problem, work, starts, out, 0, out.shape[0], not warm
        )
    classify_rows(sketch, None, problem, work, out)
    return 0


@entry
def classify(ints, floats, targets, starts, out, scratch, warm, first):
    """Polish and classify misses of positions and rotations; see ``finish_misses``."""
    return finish_misses(open_problem(ints, floats), open_work(ints, scratch), starts, out, warm, first)


@entry
def classify_general(ints, floats, targets, starts, out, scratch, warm, first):
    """Polish and classify misses of any goals; see ``finish_misses``."""
    return finish_misses(open_general(ints, floats), open_work(ints, scratch), starts, out, warm, first)
