"""The end of a miss: the pose is taken to where no level can be improved without an upper one, and its meaning told.

Level after level is settled, those above it kept. A level that slides along the edge of those above leaves it by the
square of its step, so they are mended before the step is judged; one that is no better then is damped.
"""

import numpy as np

from synovia.kernels._jit import F, apart, device, perform
from synovia.kernels.chart import INFINITE
from synovia.kernels.drive import follow
from synovia.kernels.full_body_basis import LOCKED, SOLVES, STALE, open_levels
from synovia.kernels.full_body_descend import descend
from synovia.kernels.full_body_levels import missing, solve_level, solve_posture
from synovia.kernels.full_body_newton import forces, lock, newton_level, turning
from synovia.kernels.full_body_pace import SPEED, put_down, take_up
from synovia.kernels.full_body_step import (
    LARGEST,
    SAME,
    advance_pose,
    fill,
    keep,
    look,
    place,
    turn_back,
)
from synovia.kernels.full_body_verdict import verdict
from synovia.kernels.full_body_walls import wall_count
from synovia.kernels.goals import measure
from synovia.kernels.problem import (
    FINISH,
    REACHED,
    STATUS,
    STEPS,
    UNREACHABLE,
    copy,
    open_row,
)
from synovia.kernels.reach import prove
from synovia.kernels.settle import ASIDE
from synovia.kernels.variables import nudge, seed_state

MOST_STEPS = 300  # for each level
FINE, KEPT = F(1e-13), F(1e-12)  # gain of the level that is refined and loss of those above, of an error and one
FARTHER = F(1e-7)  # by which a level must gain for a pose to be left
CLEARLY = F(1e-4)  # the same from aside, or an answer that is asked for again would wander
PASSES = 4
MENDS = 5  # steps of the levels above that mend what one of the last has left
LIGHTEST, HEAVIEST = F(1e-4), F(1e7)  # damping: a step that is damped more and is no better says that nothing is
STRONGER, WEAKER = F(10), F(0.2)
SHORT = F(1e-10)  # step that is rounding
MISSED = F(1e-7)  # error of a level (reaches, radians) above which its second derivatives count
DAMPING = F(1e-12)


@apart
def newton_step(problem, work, targets, q, h, count):
    """Move q by one step of the first ``count`` levels, those that stay missed by Newton's method.

    The posture counts as a level after the others.

    Returns:
        The longest part of the step.
    """
    copy(work.e, h.e)
    fill(problem, work, targets, q, h)
    levels = problem.levels.shape[0] - 1
    most = problem.own[LARGEST]
    bent = work.H.shape[0] > 0
    h.now[SOLVES] = F(0)
    h.now[LOCKED] = F(0)
    h.now[STALE] = F(1)
    for k in range(min(levels, count)):
        first, last = np.int64(problem.levels[k]), np.int64(problem.levels[k + 1])
        damping = DAMPING + h.dampings[k]
        solve_level(h, first, last, damping, F(0), most, True)
        if not bent or missing(h, first, last) <= MISSED * MISSED:
            continue
        lock(h, first)
        forces(h, first, last)
        pull = F(0)
        for i in range(h.s.shape[0]):
            pull = max(pull, abs(h.s[i]))
        turning(problem, work, targets, q, h.s)
        newton_level(h, work.H, first, last, damping, most, pull)
    if count > levels:
        solve_posture(h, h.dampings[levels], most, True)
    size = turn_back(problem, work, h)
    advance_pose(problem, q, work.dq)
    return size


@device
def dampen(h, count):
    """Damp the first level that the present pose worsens, and all below it, more; return by how much."""
    for k in range(count):
        if h.present[k] > h.lowest[k] + SAME * (F(1) + h.lowest[k]) or k == count - 1:
            for j in range(k, count):
                h.dampings[j] = max(STRONGER * h.dampings[j], LIGHTEST)
            return h.dampings[k]
    return F(0)


@device
def relax(h, share):
    """Damp every level by so much less; what is next to nothing becomes nothing."""
    for k in range(h.dampings.shape[0]):
        less = share * h.dampings[k] if share > 0 else F(0)  # what is kept there between refinements may be infinite
        h.dampings[k] = less if less >= LIGHTEST else F(0)


@device
def gains(h, count, same, least):
    """Return whether the last of ``count`` levels has gained so much, or one above it, and none above has lost.

    Levels above have gained or lost where they differ by more than ``same``.
    """
    last = count - 1
    for k in range(last):
        gap = same * (F(1) + h.lowest[k])
        if h.present[k] < h.lowest[k] - gap:
            return True
        if h.present[k] > h.lowest[k] + gap:
            return False
    return h.present[last] < h.lowest[last] - least * (F(1) + h.lowest[last])


@device
def hold_best(h, count):
    """Take the errors of the present pose for those of the best; what levels above lose unseen does not add up."""
    for k in range(h.lowest.shape[0]):
        if k >= count - 1 or h.present[k] < h.lowest[k]:
            h.lowest[k] = h.present[k]


@apart
def refine(problem, work, targets, q, h, count):
    """Bring q to where none of the first ``count`` levels gains without the levels above it losing.

    It ends where no step is left, or where none is better however much it is damped, tried from none on: so that the
    pose is given back when it is asked for again.

    Returns:
        (steps taken, whether it is settled: False if the steps were spent, whether q moved to where others may see it).
    """
    look(problem, work, targets, q, h)
    keep(h)
    copy(q, work.best)
    relax(h, F(0))
    least = SAME if count == problem.levels.shape[0] else FINE  # the posture has no minimum that others build on
    fresh = True
    moved = False
    mends = 0
    for k in range(MOST_STEPS):
        size = newton_step(problem, work, targets, q, h, count if mends == 0 else count - 1)
        if mends == 0 and size < SHORT:
            copy(work.best, q)
            return k, True, moved
        worst = look(problem, work, targets, q, h)
        if worst <= F(1) or gains(h, count, KEPT, least):
            moved = moved or gains(h, count, SAME, SAME)
            hold_best(h, count)
            copy(q, work.best)
            if worst <= F(1):
                return k, True, False
            mends = 0
            fresh = False
            relax(h, WEAKER)
            continue
        mends += 1
        if mends > MENDS or count == 1 or size < SHORT:
            mends = 0
            strongest = dampen(h, count)
            copy(work.best, q)
            look(problem, work, targets, q, h)
            if strongest > HEAVIEST:
                if fresh:
                    return k, True, moved
                fresh = True
                relax(h, F(0))
    copy(work.best, q)
    return MOST_STEPS, False, moved


@device
def leaps(problem, work, targets, q, h, stood):
    """Return whether the steps of an attempt take upper levels alone to a better pose than q, and move q there.

    They are longer than those that refine, and can leave a minimum for a lower one. What level below is lost counts for
    nothing, as it must. A pose that has ``stood`` from the start may be one that points straight away from its target,
    where no step begins: all levels are tried from a little to both sides of it.
    """
    levels = problem.levels.shape[0] - 1
    look(problem, work, targets, q, h)
    copy(h.present, h.aside)
    put_down(problem, q, h.began)
    for trial in range(1, levels + (2 if stood else 0)):
        if trial >= levels:
            seed_state(work.state, problem.seed, 0)
            aside = ASIDE if trial == levels else -ASIDE
            nudge(problem.variables, problem.limits, q, work.state, aside, problem.reach)
        count = min(trial, levels)
        descend(problem, work, targets, q, h, count)
        for k in range(1, count + 1):
            refine(problem, work, targets, q, h, k)
        look(problem, work, targets, q, h)
        copy(h.aside, h.lowest)
        if gains(h, count, SAME, FARTHER if trial < levels else CLEARLY):
            return True
        take_up(problem, q, h.began)
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
        if k == PASSES - 1 or (not moved and not leaps(problem, work, targets, q, h, k == 0)):
            break
    return steps, settled


@device
def finish_rows(problem, work, out):
    """Settle the rows of the answer that missed, and write their status."""
    h = open_levels(work.spare, work.J.shape[0], work.J.shape[1] + wall_count(problem.further))
    for b in range(out.shape[0]):
        row = out[b]
        status = int(row[STATUS])
        if status == REACHED:
            continue
        q, errors, targets = open_row(problem, row)
        settled = True
        if problem.own[SPEED] == INFINITE:
            taken, settled = refine_all(problem, work, targets, q, h)
            row[STEPS] += taken
            row[FINISH] = taken
        follow(problem, q)
        place(problem, q, work.frames)
        if measure(problem, work.frames, targets, errors) <= F(1):
            row[STATUS] = REACHED
        elif status == UNREACHABLE or perform(prove, problem, work, targets, q)[0] > 0:
            row[STATUS] = UNREACHABLE
        else:
            row[STATUS] = verdict(problem, work, targets, errors, q, h, settled)
