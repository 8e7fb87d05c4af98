"""Multistart: run an algorithm from the start pose and from random poses, then select and verify the best answer.

A solver passes a ``Search``: the algorithm, the rule that draws the start of a restart (``restarts``), and the proof
that a target is out of reach (``reach``). ``solve_rows`` is compiled once for each ``Search``. Each solver has one
entry point at the top level of its module, because the compile cache stores only such functions. An entry point opens
the tables of all goals that its solver supports; they are empty in a problem without such goals.

An attempt has the form

    @algorithm
    def attempt(problem, work, targets, q): ... return steps, cost

It writes the best joint values that it found, within the limits, to q. ``classify`` finds the status of a miss. All
entry points of solvers have the same arguments:

``ints``, ``floats``  the packed problem (``tree.problem``): joints, goals, settings
``targets``           (B, goals, 17): for each problem and goal a 4x4 transform by rows, then the parts that are given
``starts``            (B, nq) or (1, nq): start poses, radians and length units
``out``               (B, ...): rows of the answer (``layout``): a head, then q, errors and targets
``scratch``           scratch memory, of the size ``WORK_SIZE`` of the problem
``warm``              COLD, or WARM if each problem starts at the answer of the previous problem, as in a track
``first``             the first problem to solve

They return the code that ``layout`` describes: how many rows are finished and whether one of them misses its goals, or
which target is invalid. Kernels that treat missed rows take the same arguments and return 0: ``starts`` and ``out`` are
those of the solve, ``targets`` is not read, ``first`` is POLISH, CLASSIFY or POLISH_POSES, and WARM switches off the
search from random starts.
"""

import math
from typing import Any, NamedTuple

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.views import vector
from synovia.kernels.compiler.watch import begin_work, halted, interrupted
from synovia.kernels.goals.clearance import forget_contacts
from synovia.kernels.goals.residuals import (
    all_given,
    complete_targets,
    first_invalid_target,
    measure,
    write_given_targets,
)
from synovia.kernels.goals.swivel import forget_poles, remember_poles
from synovia.kernels.layout import (
    FOLLOWER,
    LEADER,
    MISSED,
    N_LEAVES,
    OUT_HEAD,
    PROPOSED_FIRST,
    REACHED,
    REFUSED,
    ROWS_AT,
    STALLED,
    STOP_REASON,
    UNREACHABLE,
)
from synovia.kernels.proposals.propose import propose
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_general, open_problem, open_row, open_work, write_head
from synovia.kernels.tree.variables import follower_value, start_random


class Search(NamedTuple):
    """The algorithms of a solver.

    ``attempt``: moves q towards the goals; returns (steps, cost).
    ``random_start``: draws the start of a restart; returns (number of steps taken, 0).
    ``prove``: returns (1, 0) if a goal is proved out of reach at the frames of the first attempt, else (0, 0).
    ``is_better``: returns (1, 0) if q is a better miss than ``work.best``, else (0, 0). None: compare the costs.
    """

    attempt: Any
    random_start: Any
    prove: Any
    is_better: Any = None


class Begins(NamedTuple):
    """Starts of attempts.

    ``starts``: (B, nq) or (1, nq) start poses, within the limits.
    ``ints``, ``floats``: the packed problem, which may have learned starts (``proposals``).
    """

    starts: Any
    ints: Any
    floats: Any


BETTER = F(0.999)  # factor by which a restart must lower the cost: repeated calls then return the same minimum


@inline
def set_followers(problem, q):
    """Set the values of joints that follow another joint (mimic joints)."""
    for k in range(problem.followers.shape[0]):
        q[problem.followers[k, FOLLOWER]] = follower_value(problem.coupling, k, q[problem.followers[k, LEADER]])


@device
def all_finite(q):
    """Return whether every value of q is finite."""
    for i in range(q.shape[0]):
        if not abs(q[i]) < F(math.inf):
            return False
    return True


@device
def meets_goals(problem, work, targets, q, errors):
    """Return whether q meets the goals, after an update of its follower joints; write the errors."""
    set_followers(problem, q)
    forward(problem.tree, q, work.frames)
    return measure(problem, q, work.frames, targets, errors) <= F(1)


@inline
def is_better_miss(is_better, problem, work, targets, q, cost, lowest):
    """Return whether a missed attempt is better than the best attempt so far, in ``work.best``."""
    if is_better is None:
        return cost < BETTER * lowest
    return perform(is_better, problem, work, targets, q)[0] > 0


@inline
def multistart(search, ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems with only positions and rotations; see ``solve_rows``."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    return solve_rows(search, problem, work, targets, Begins(starts, ints, floats), out, warm, first)


@inline
def multistart_general(search, ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems with any goals; see ``solve_rows``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_rows(search, problem, work, targets, Begins(starts, ints, floats), out, warm, first)


@device
def solve_rows(search, problem, work, targets, begins, out, warm, first):
    """Solve one problem per row of ``out``, from row ``first`` on; starts are inside the limits.

    If the problem has learned starts (``proposals``), the first attempts begin at learned starts that fit the target. A
    start that was given, or that is the answer of the row before, is tried before them. Random poses follow.

    With WARM each row starts at the answer of the row before. Then a restart is accepted only if it reaches its
    goals. The loop ends at the first miss, so that the miss can be polished before the next row starts there.

    Args:
        search: The ``Search`` of the solver.
        problem: The problem.
        work: Scratch memory.
        targets: (B, goals, 17), as given by the caller.
        begins: The ``Begins`` of the problems.
        out: (B, ...) the answers; written. With ``first`` above 0, the rows before are read.
        warm: COLD or WARM.
        first: The first row.

    Returns:
        The code that ``layout`` describes.
    """
    missed = 0
    for b in range(first, out.shape[0]):
        row = out[b]
        q, errors, completed = open_row(problem, row)
        refused = first_invalid_target(problem, targets[b])
        if refused >= 0:
            return REFUSED - refused - problem.goals.shape[0] * b
        continues = warm and b > 0
        start = (
            vector(out[b - 1], OUT_HEAD, problem.nq) if continues else begins.starts[min(b, begins.starts.shape[0] - 1)]
        )
        copy(start, q)
        forget_contacts(problem.clear)
        if continues:  # a goal without a target keeps its frame at the first start, so that the goal does not drift
            _, _, before = open_row(problem, out[b - 1])
            for g in range(before.shape[0]):
                copy(before[g], completed[g])
            write_given_targets(problem, targets[b], completed)
            remember_poles(problem.general, problem, work, before, q)
        else:
            forget_poles(problem.general, problem, work)
            if not all_given(problem, targets[b]):
                forward(problem.tree, q, work.frames)
            complete_targets(problem, work.frames, targets[b], completed)
        steps = 0
        status = STALLED
        lowest = F(0)
        winner = 0
        tries = 0
        proposed = 0
        before_them = 1 if continues or begins.ints[PROPOSED_FIRST] == 0 else 0  # attempts before the first proposal
        begin_work(work.watch, problem.most_work)
        while tries < problem.attempts and not halted(work.watch):
            if (
                begins.ints[N_LEAVES] > 0
                and tries == before_them + proposed
                and propose(begins.ints, begins.floats, problem, completed, proposed, q)
            ):
                proposed += 1
                set_followers(problem, q)
            elif tries > 0:
                copy(start, q)
                if tries > proposed:
                    start_random(problem, work, tries - proposed)
                    steps += perform(search.random_start, problem, work, completed, q)[0]
                set_followers(problem, q)
            taken, cost = perform(search.attempt, problem, work, completed, q)
            set_followers(problem, q)
            if not all_finite(q):  # an algorithm failed: an answer never holds NaN or infinity
                copy(start, q)
                cost = F(math.inf)
            forward(problem.tree, q, work.frames)
            tries += 1
            steps += taken
            if measure(problem, q, work.frames, completed, errors) <= F(1):
                status = REACHED
                winner = tries - 1
                lowest = cost
                break
            better = tries == 1 or (
                not continues and is_better_miss(search.is_better, problem, work, completed, q, cost, lowest)
            )
            if better:
                lowest = cost
                winner = tries - 1
                copy(q, work.best)
            if tries == 1 and perform(search.prove, problem, work, completed, q)[0] > 0:
                status = UNREACHABLE
                break
        if status != REACHED:
            if tries > 0:
                copy(work.best, q)
            if interrupted(work.watch) and meets_goals(problem, work, completed, q, errors):
                status = REACHED
        write_head(row, status, steps, tries, winner, lowest if tries > 0 else F(math.inf), work.watch[STOP_REASON])
        if status != REACHED or interrupted(work.watch):  # Python then finishes the row
            missed = MISSED
            if warm and not interrupted(work.watch):
                return (b + 1) << ROWS_AT | MISSED
    return out.shape[0] << ROWS_AT | missed
