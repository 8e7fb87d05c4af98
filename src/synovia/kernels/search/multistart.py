"""Multistart: run an algorithm from the start pose and from random poses, and keep and verify the best answer.

``multistart(attempt, scatter, prove, ...)``, or ``multistart_general`` for general goals, is compiled once for each
algorithm, with three things inside it: the algorithm, the way restarts begin (``restarts``) and the proof that ends
them (``reach``).
An attempt has the form

    @algorithm
    def attempt(problem, work, targets, q): ... return steps, cost

and leaves in q the best values that it met, within the limits. What a miss means is told by ``classify``.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.views import bits, vector
from synovia.kernels.compiler.watch import begin_work, halted, interrupted
from synovia.kernels.goals.residuals import (
    all_given,
    complete_targets,
    first_invalid_target,
    measure,
    write_given_targets,
)
from synovia.kernels.goals.swivel import forget_poles, remember_poles
from synovia.kernels.layout import (
    COST,
    FINISH,
    FOLLOWER,
    LEADER,
    OUT_HEAD,
    REACHED,
    STALLED,
    STATE,
    STATUS,
    STEPS,
    STOP_REASON,
    STOPPED_BY,
    TRIES,
    UNREACHABLE,
    WINNER,
)
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_general, open_problem, open_row, open_work
from synovia.kernels.tree.variables import follower_value, seed_state

BETTER = F(0.999)  # a restart must lower the cost at least so much, or repeated calls would wander between equals


@inline
def set_followers(problem, q):
    """Set the joints that follow another."""
    for k in range(problem.followers.shape[0]):
        q[problem.followers[k, FOLLOWER]] = follower_value(problem.coupling, k, q[problem.followers[k, LEADER]])


@device
def is_finite(q):
    """Return whether every number of q is one."""
    for i in range(q.shape[0]):
        if not abs(q[i]) < F(math.inf):
            return False
    return True


@device
def meets_goals(problem, work, targets, q, errors):
    """Return whether q, whose followers may be behind, meets the goals; write the errors."""
    set_followers(problem, q)
    forward(problem.tree, q, work.frames)
    return measure(problem, q, work.frames, targets, errors) <= F(1)


@inline
def multistart(attempt, random_start, prove, ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems of positions and rotations alone; see ``solve_rows``."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    return solve_rows(attempt, random_start, prove, problem, work, targets, starts, out, warm, first)


@inline
def multistart_general(attempt, random_start, prove, ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems with any goals; see ``solve_rows``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_rows(attempt, random_start, prove, problem, work, targets, starts, out, warm, first)


@device
def solve_rows(attempt, random_start, prove, problem, work, targets, starts, out, warm, first):
    """Solve one problem a row, from row ``first`` on; starts are inside the limits.

    With ``warm`` each row starts where the one before ended, only a restart that reaches its goals is taken, and the
    loop ends at the first miss, so that it can be settled before the next row starts there.

    Returns:
        Twice the rows that are done, plus 1 if one of them missed; or -1 - (goal + goals * row) for the first target
        that is refused.
    """
    missed = 0
    for b in range(first, out.shape[0]):
        row = out[b]
        q, errors, kept = open_row(problem, row)
        refused = first_invalid_target(problem, targets[b])
        if refused >= 0:
            return -1 - refused - problem.goals.shape[0] * b
        follows = warm and b > 0
        start = vector(out[b - 1], OUT_HEAD, problem.nq) if follows else starts[min(b, starts.shape[0] - 1)]
        copy(start, q)
        if follows:  # what has no target stays where the first start has it, not where the last answer drifted
            _, _, before = open_row(problem, out[b - 1])
            for g in range(before.shape[0]):
                copy(before[g], kept[g])
            write_given_targets(problem, targets[b], kept)
            remember_poles(problem.general, problem, work, before, q)
        else:
            forget_poles(problem.general, problem, work)
            if not all_given(problem, targets[b]):
                forward(problem.tree, q, work.frames)
            complete_targets(problem, work.frames, targets[b], kept)
        steps = 0
        status = STALLED
        lowest = F(0)
        winner = 0
        tries = 0
        begin_work(work.watch, problem.most_work)
        while tries < problem.attempts and not halted(work.watch):
            if tries > 0:
                copy(start, q)
                seed_state(bits(work.watch, STATE, 1), problem.seed, tries)
                perform(random_start, problem, work, kept, q)
                set_followers(problem, q)
            taken, cost = perform(attempt, problem, work, kept, q)
            set_followers(problem, q)
            if not is_finite(q):  # whatever an algorithm may do: no answer holds what is no number
                copy(start, q)
                cost = F(math.inf)
            forward(problem.tree, q, work.frames)
            tries += 1
            steps += taken
            if measure(problem, q, work.frames, kept, errors) <= F(1):
                status = REACHED
                winner = tries - 1
                lowest = cost
                break
            if tries == 1 or (not follows and cost < BETTER * lowest):
                lowest = cost
                winner = tries - 1
                copy(q, work.best)
            if tries == 1 and perform(prove, problem, work, kept, q)[0] > 0:
                status = UNREACHABLE
                break
        if status != REACHED:
            if tries > 0:
                copy(work.best, q)
            if interrupted(work.watch) and meets_goals(problem, work, kept, q, errors):
                status = REACHED
        row[STATUS] = status
        row[STEPS] = steps
        row[TRIES] = tries
        row[WINNER] = winner
        row[COST] = lowest if tries > 0 else F(math.inf)
        row[FINISH] = F(0)
        row[STOPPED_BY] = work.watch[STOP_REASON]
        if status != REACHED or interrupted(work.watch):  # for Python to look at
            missed = 1
            if warm and not interrupted(work.watch):
                return 2 * (b + 1) + 1
    return 2 * out.shape[0] + missed
