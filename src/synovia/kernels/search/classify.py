"""Classify misses: find the status of every answer that misses a goal, for all solvers.

At a stationary pose the gradient of the error shows the cause of the miss. If the gradients of single goals cancel, the
goals conflict. If bounds hold back the rest of the gradient, joint limits are the cause. With priorities, the gradient
of the highest missed level is used; without priorities there is one level.

The entry point has the arguments of a solver's kernel. It is separate from the solvers' kernels: a solve that reaches
its goals never loads it, and it is compiled once for all solvers but full-body, which has its own.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, apart, device, entry, perform
from synovia.kernels.compiler.views import matrix
from synovia.kernels.goals.clearance import forget_contacts
from synovia.kernels.goals.residuals import jacobian, residual
from synovia.kernels.jacobian.active_set import damped_move
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    CLASSIFY,
    CONFLICT,
    FINALISTS,
    FIRST_RESIDUAL,
    LEVEL,
    LIMITED,
    NO_GAIN,
    OTHERS,
    POLISH_POSES,
    POSE_MORE,
    REACHED,
    RESIDUALS,
    SCALAR,
    STALLED,
    STATUS,
    STEPS_SPENT,
    STOPPED_BY,
    UNREACHABLE,
)
from synovia.kernels.loops.ties import has_loops, has_priorities
from synovia.kernels.math.bounded import free_and_held_gradient
from synovia.kernels.search.finish import SAME_MINIMUM, Refinement, finish_rows
from synovia.kernels.search.multistart import meets_goals
from synovia.kernels.search.polish import CONVERGED, GRADIENT_NOISE, polish_to_minimum
from synovia.kernels.tree.chart import NEAR, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_general, open_row, open_work, pose_goals_only, with_steps
from synovia.kernels.tree.variables import step_unit

POLISH_STEPS = 200
COARSE_STEPS = 12  # largest number of steps from a random start: enough to rank the minima
ROUNDS = 16  # rounds of 25 restarts; one round finds about half of the answers that 100 attempts missed
DAMPING_SHARE, DECREASE, INCREASE = F(0.6), F(0.7), F(4)  # first damping relative to √cost, and factors of the damping
STATIONARY = F(1e-5)  # a pose is stationary if its gradient, relative to the residual, is below this
NEAR_START = F(0.1)  # largest change (quaternion entries, radians, length scales) of a pose that is near its start
BEFORE = 1  # row of the stored poses for the pose before the polish; finalists use this row only later
CANCELS = F(1e-3)  # gradients cancel if their sum, relative to the largest of them, is below this


@apart
def level_gradient(work, first, last, slack):
    """Compute the gradient of the residual rows ``first`` to ``last`` - 1 from J, e and the box (``tree.chart``).

    Returns:
        (largest entry that no limit holds back, largest entry that a limit holds back).
    """
    for v in range(work.g.shape[0]):
        work.g[v] = F(0)
    for i in range(first, last):
        for v in range(work.g.shape[0]):
            work.g[v] += work.J[i, v] * work.e[i]
    return free_and_held_gradient(work.box, work.g, NEAR, slack)


@apart
def status_of(problem, work, targets, errors, q, converged):
    """Return the status of a pose that misses a goal; frames and residual of q are in work.

    The status is the first that applies: CONFLICT if the gradients of goals of the highest missed level cancel; LIMITED
    if limits hold back the rest of the gradient; STEPS_SPENT if the pose did not converge; CONFLICT if upper levels
    hold back the rest, or LIMITED if loops hold it back; else STALLED.
    """
    level = problem.levels.shape[0] - 2
    for g in range(problem.goals.shape[0]):
        if errors[2 * g] > problem.tolerance or errors[2 * g + 1] > problem.tolerance_angle:
            level = min(level, int(problem.goals[g, LEVEL]))
    first, last = int(problem.levels[level]), int(problem.levels[level + 1])
    cost = F(0)
    for i in range(first, last):
        cost += work.e[i] * work.e[i]
    small, slack = STATIONARY * math.sqrt(cost), GRADIENT_NOISE * math.sqrt(cost)
    jacobian(problem, q, work.frames, targets, work.J)
    write_bounds(problem, q, work.box)
    to_box(problem, work.box, work.J)
    free, held = level_gradient(work, first, last, slack)
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, LEVEL] == level:
            first = int(problem.goals[g, FIRST_RESIDUAL])
            alone, _ = level_gradient(work, first, first + int(problem.goals[g, RESIDUALS]), slack)
            if alone > small and free < max(CANCELS * alone, small):
                return CONFLICT
    if held > small and free < max(CANCELS * held, small):
        return LIMITED
    if not converged:
        return STEPS_SPENT
    above = 1 if has_loops(problem.loops) else 0  # loops are a level, and restrict motion as limits do
    if level == above and level > 0 and free > small:
        return LIMITED
    return CONFLICT if level > above and free > small else STALLED


@apart
def classify_rows(coarse, prove, problem, work, out):
    """Write the status of the missed rows; ``prove``, if not None, tries again to prove goals out of reach."""
    for b in range(out.shape[0]):
        row = out[b]
        status = int(row[STATUS])
        if status == REACHED:
            continue
        q, errors, targets = open_row(problem, row)
        forget_contacts(problem.clear)
        if meets_goals(problem, work, targets, q, errors):
            row[STATUS] = REACHED
        elif row[STOPPED_BY] != NO_GAIN and has_priorities(problem):
            row[STATUS] = STEPS_SPENT  # an upper level may still gain, whatever the cause of the miss
        elif prove is not None and perform(prove, problem, work, targets, q)[0] > 0:
            row[STATUS] = UNREACHABLE
        elif status != UNREACHABLE:
            perform(coarse, with_steps(problem, 0), work, targets, q)  # no steps: updates frames and residual
            row[STATUS] = status_of(problem, work, targets, errors, q, row[STOPPED_BY] == NO_GAIN)


@algorithm
def coarse_descent(problem, work, targets, q):
    """Descend by damped least squares; the damping approximates the curvature of missed goals.

    If a chain points at a target at distance d, each rotation has the curvature d times its lever arm. So the damping
    is a multiple of √cost.
    """
    share = DAMPING_SHARE
    lowest = F(0)
    for k in range(problem.max_steps + 1):
        forward(problem.tree, q, work.frames)
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if k == 0 or cost < lowest:
            lowest = cost
            share *= DECREASE
            copy(q, work.trial)
        else:
            share *= INCREASE
            copy(work.trial, q)
            forward(problem.tree, q, work.frames)
            residual(problem, q, work.frames, targets, work.e)
        if k == problem.max_steps or worst <= F(1):
            break
        damped_move(problem, work, targets, q, share * math.sqrt(lowest))
    return k, lowest


@algorithm
def polish(problem, work, targets, q):
    """Descend from q to a minimum by Newton's method; see ``polish_to_minimum``.

    Returns:
        (steps, 1 if it converged or meets the goals, else 0); q is the minimum.
    """
    taken, converged = polish_to_minimum(problem, work, targets, q, POLISH_STEPS)
    return taken, F(converged)


@device
def is_near(problem, q, start):
    """Return whether q is near its start."""
    for k in range(problem.variables.shape[0]):
        at, scalar = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK] == SCALAR
        near = NEAR_START * (step_unit(problem.limits, k, problem.reach) if scalar else F(1))
        for i in range(at, at + (1 if scalar else 4)):
            if not abs(q[i] - start[i]) <= near:
                return False
    return True


@algorithm
def first_polish(problem, work, targets, q):
    """Polish q; if the start of the problem is near q, polish the start instead, unless that leads to a worse pose.

    In directions that no goal notices, the steps of a solver differ from those of Newton's method. From the start,
    Newton's method alone decides, so the answer is the minimum nearest to the start. Problems that differ little have
    answers that differ little, if they are solved from the same pose.

    Returns:
        (steps, 1 if it converged or meets the goals, else 0).
    """
    nq = q.shape[0]
    stored = matrix(work.watch, OTHERS, FINALISTS + 1, nq + POSE_MORE)
    taken = 0
    first = stored[0, nq + 1] == F(0)  # the answer of a restart has another number
    # Where only pose goals are polished, the start would lose the rotations towards poles.
    whole = problem.general.ints.shape[0] == problem.general.data.shape[0]
    if first and whole and is_near(problem, q, stored[0]):
        forward(problem.tree, q, work.frames)
        cost, _ = residual(problem, q, work.frames, targets, work.e)
        copy(q, stored[BEFORE])
        for i in range(nq):
            q[i] = stored[0, i]
        taken, converged = polish_to_minimum(problem, work, targets, q, POLISH_STEPS)
        lowest, worst = residual(problem, q, work.frames, targets, work.e)
        if worst <= F(1) or lowest <= cost * (F(1) + CONVERGED):
            return taken, F(converged)
        for i in range(nq):
            q[i] = stored[BEFORE, i]
    more, converged = polish_to_minimum(problem, work, targets, q, POLISH_STEPS)
    return taken + more, F(converged)


REFINEMENT = Refinement(coarse_descent, polish, first_polish, None, COARSE_STEPS, SAME_MINIMUM, ROUNDS)


@entry
def classify(ints, floats, targets, starts, out, scratch, warm, first):
    """Polish and classify the rows of ``out`` that missed.

    It takes the arguments of a solver (see ``search.multistart``), with these differences: ``starts`` and ``out`` are
    those of the solve; ``targets`` is not read; ``first`` is POLISH, POLISH_POSES for positions and rotations only, or
    CLASSIFY for the status only; WARM switches off the search from random starts.

    Returns:
        0.
    """
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    if first == POLISH_POSES:
        problem = pose_goals_only(problem)
    if first != CLASSIFY:
        finish_rows(REFINEMENT, problem, work, starts, out, 0, out.shape[0], not warm)
    classify_rows(coarse_descent, None, problem, work, out)
    return 0
