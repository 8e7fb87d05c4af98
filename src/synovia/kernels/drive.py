"""What happens around every algorithm: start, restarts, the choice of the best, verification and the verdict.

``drive(attempt, ...)`` is compiled once for each algorithm with the algorithm inside it. An attempt has the form

    attempt(problem, work, targets, q) -> (steps, cost)

and leaves in q the best values that it met, within the limits.
"""

import math

from synovia.kernels._jit import F, device, inline
from synovia.kernels.descent import largest, linearise, settle
from synovia.kernels.forward import forward
from synovia.kernels.goals import complete_targets, measure, proved_unreachable, refused_target, residual
from synovia.kernels.linear import times_t
from synovia.kernels.problem import (
    CLAMPED,
    CONFLICT,
    COST,
    LIMITED,
    OUT_HEAD,
    REACHED,
    STALLED,
    STATUS,
    STEPS,
    STEPS_SPENT,
    TRIES,
    UNREACHABLE,
    WINNER,
    copy,
    open_problem,
    open_work,
)
from synovia.kernels.variables import clamp, randomize, seed_state, violation

SETTLE_STEPS = 200
STATIONARY = F(1e-5)  # gradient against residual below which a pose cannot be improved to first order
CANCELS = F(1e-3)  # sum of gradients against their sizes below which goals pull against each other
BETTER = F(0.999)  # a restart must lower the cost at least so much, or repeated calls would wander between equals


@inline
def follow(problem, q):
    """Set the joints that follow another."""
    for k in range(problem.followers.shape[0]):
        q[problem.followers[k, 0]] = problem.coupling[k, 0] * q[problem.followers[k, 1]] + problem.coupling[k, 1]


@device
def pulls_cancel(problem, work, targets, errors, q):
    """Return whether two or more missed goals pull hard while their gradients add up to nothing."""
    missed = 0
    pull = F(0)
    residual(problem, work.frames, targets, work.e)
    linearise(problem, work, q)
    total = largest(work.g)
    for g in range(problem.goals.shape[0]):
        over = errors[2 * g] > problem.tolerance or errors[2 * g + 1] > problem.tolerance_angle
        if not over:
            continue
        missed += 1
        for i in range(work.e.shape[0]):
            work.e[i] = F(0)
        residual_of(problem, work, targets, g)
        times_t(work.J, work.e, work.dq)
        pull = max(pull, largest(work.dq))
    return missed > 1 and total < CANCELS * pull


@device
def residual_of(problem, work, targets, g):
    """Write the residual rows of goal g alone; the others are 0."""
    k = problem.goals[g, 2]
    end = problem.goals[g + 1, 2] if g + 1 < problem.goals.shape[0] else work.e.shape[0]
    residual(problem, work.frames, targets, work.e)
    for i in range(work.e.shape[0]):
        if i < k or i >= end:
            work.e[i] = F(0)


@device
def verdict(problem, work, targets, errors, q, unreachable, spent):
    """Return the status of a pose that misses a goal: the first that applies, in the order of the statuses."""
    if unreachable:
        return UNREACHABLE
    if pulls_cancel(problem, work, targets, errors, q):
        return CONFLICT
    cost, _ = residual(problem, work.frames, targets, work.e)
    multiplier, _ = linearise(problem, work, q)
    if multiplier > STATIONARY * math.sqrt(cost) and largest(work.g) <= max(CANCELS * multiplier, STATIONARY * math.sqrt(cost)):
        return LIMITED
    return STEPS_SPENT if spent else STALLED


@device
def solve_one(attempt, problem, work, targets, start, out, warm):
    """Solve one problem and write its row of the answer; return its status."""
    q = out[OUT_HEAD : OUT_HEAD + problem.nq]
    g = problem.goals.shape[0]
    errors = out[OUT_HEAD + problem.nq : OUT_HEAD + problem.nq + 2 * g]
    kept = out[OUT_HEAD + problem.nq + 2 * g :].reshape((g, 16))
    refused = refused_target(problem, targets)
    if refused >= 0:
        return -1 - refused
    copy(start, q)
    beyond, _ = violation(problem.all_variables, problem.all_limits, q)
    out[CLAMPED] = F(0)
    if beyond > F(1e-9):
        out[CLAMPED] = F(1)
        clamp(problem.all_variables, problem.all_limits, q)
    elif beyond > F(0):
        clamp(problem.all_variables, problem.all_limits, q)
    follow(problem, q)
    forward(problem.tree, q, work.frames)
    complete_targets(problem, work.frames, targets, kept)
    unreachable = proved_unreachable(problem, work.frames, kept) >= 0
    steps = 0
    lowest = F(0)
    winner = 0
    tries = 0
    copy(q, work.best)
    most = 1 if unreachable else problem.attempts
    while tries < most:
        if tries > 0:
            copy(start, q)
            clamp(problem.all_variables, problem.all_limits, q)
            follow(problem, q)
            seed_state(work.state, problem.seed, tries)
            randomize(problem.variables, problem.limits, q, work.state)
        taken, cost = attempt(problem, work, kept, q)
        steps += taken
        forward(problem.tree, q, work.frames)
        done = measure(problem, work.frames, kept, errors) <= F(1)
        if done or tries == 0 or (not warm and cost < BETTER * lowest):
            lowest = cost
            winner = tries
            copy(q, work.best)
        tries += 1
        if done:
            break
    copy(work.best, q)
    follow(problem, q)
    forward(problem.tree, q, work.frames)
    status = REACHED
    if measure(problem, work.frames, kept, errors) > F(1):
        taken, still = settle(problem, work, kept, q, SETTLE_STEPS)
        steps += taken
        follow(problem, q)
        forward(problem.tree, q, work.frames)
        if measure(problem, work.frames, kept, errors) > F(1):
            status = verdict(problem, work, kept, errors, q, unreachable, still == 0)
    out[STATUS] = status
    out[STEPS] = steps
    out[TRIES] = tries
    out[WINNER] = winner
    out[COST] = lowest
    return status


@device
def drive(attempt, ints, floats, targets, starts, out, scratch, warm):
    """Solve one problem a row; with ``warm`` each row starts where the one before ended.

    Returns:
        The status of the last row, or -1 - (goal + goals * row) for the first target that is refused.
    """
    problem = open_problem(ints, floats)
    work = open_work(ints, scratch)
    status = 0
    for b in range(out.shape[0]):
        start = starts[min(b, starts.shape[0] - 1)]
        if warm and b > 0:
            start = out[b - 1, OUT_HEAD : OUT_HEAD + problem.nq]
        status = solve_one(attempt, problem, work, targets[b], start, out[b], warm and b > 0)
        if status < 0:
            return status - problem.goals.shape[0] * b
    return status
