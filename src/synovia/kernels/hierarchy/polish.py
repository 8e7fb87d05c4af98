"""Settling a level: Newton steps that end where it gains nothing more without the levels above it losing.

A level that slides along the edge of those above leaves it by the square of its step, so they are mended before the
step is judged, if they can be without the bounds that it ended at: what leaves one of these costs the level more than
its curvature tells. One that is no better then is damped, and made shorter. A settled level that is nearly flat would
go far for nothing, and spoil what is below: it keeps the damping with which it stays where it is.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.hierarchy.basis import LOCKED, LOWER, PLACE, SEALED, SIDE, SOLVES, STALE, UPPER, hold
from synovia.kernels.hierarchy.descent import work_of_levels
from synovia.kernels.hierarchy.levels import missing, solve_level, solve_posture
from synovia.kernels.hierarchy.newton import forces, lock, newton_level, turning
from synovia.kernels.hierarchy.step import SAME, advance_pose, fill, keep, look, turn_back
from synovia.kernels.layout import LARGEST_STEP
from synovia.kernels.tree.problem import copy, work_of_newton

MOST_STEPS = 300  # for each level
NEWTON = F(5)  # what second derivatives cost here, against a step of settling without levels
FINE, KEPT = F(1e-13), F(1e-12)  # gain of the level that is refined and loss of those above, of an error and one
UNSEEN = F(1e-11)  # loss of the levels above that is rounding, all steps together
MENDS = 5  # steps of the levels above that mend what one of the last has left
PRESSED = 3  # of these, how many leave alone the bounds that it ended at
STANDS = F(1e-5)  # radians or reaches from a bound that it ended at: a swing ends a little before half a turn
LIGHTEST, HEAVIEST = F(1e-4), F(1e7)  # damping: a step that is damped more and is no better says that nothing is
STRONGER, WEAKER = F(10), F(0.2)
NARROWER, WIDER = F(0.3), F(3)  # the farthest that the level may go, after a step that is no better, and one that is
FOLLOWS = F(1e-4)  # of the damping of the last level: that of the levels above
QUIET = F(1e-6)  # step that leaves the levels below in peace
FIRMEST = F(1)  # most of the damping that a settled level keeps for that
SHORT = F(1e-10)  # step that is rounding
MISSED = F(1e-7)  # error of a level (reaches, radians) above which its second derivatives count
DAMPING = F(1e-12)


@device
def note_pressed(h):
    """Keep which bounds a step has ended at."""
    for k in range(h.v.shape[1]):
        h.pressed[int(h.v[PLACE, k])] = h.v[SIDE, k]


@device
def press(h, n):
    """Hold for the whole step what has been kept, where the pose still stands at it; the first n columns are joints'.

    The directions of a ball turn with it: what was its bound may now be on the far side of its limits, or nowhere.
    """
    for k in range(h.v.shape[1] - 1, -1, -1):
        c = int(h.v[PLACE, k])
        side = h.pressed[c]
        bound = h.v[UPPER, k] if side > F(0) else h.v[LOWER, k]
        if side != F(0) and (c >= n or abs(bound) <= STANDS):
            h.v[SEALED, k] = F(1)
            if h.v[SIDE, k] == F(0):
                hold(h, k, side)


@apart
def newton_step(problem, work, targets, q, h, count, farthest, pressed):
    """Move q by one step of the first ``count`` levels, those that stay missed by Newton's method.

    The last of them moves no column by more than ``farthest``; with ``pressed`` bounds that are kept stay met.

    The posture counts as a level after the others.

    Returns:
        The longest part of the step.
    """
    copy(work.e, h.e)
    fill(problem, work, targets, q, h)
    if pressed:
        press(h, work.dq.shape[0])
    levels = problem.levels.shape[0] - 1
    bent = work.H.shape[0] > 0
    h.now[SOLVES] = F(0)
    h.now[LOCKED] = F(0)
    h.now[STALE] = F(1)
    for k in range(min(levels, count)):
        first, last = np.int64(problem.levels[k]), np.int64(problem.levels[k + 1])
        most = farthest if k == count - 1 else problem.params[LARGEST_STEP]
        damping = DAMPING + h.dampings[k]
        solve_level(h, first, last, damping, F(0), most, True)
        if not bent or missing(h, first, last) <= MISSED * MISSED:
            continue
        lock(h, first)
        forces(h, first, last)
        pull = F(0)
        for i in range(h.s.shape[0]):
            pull = max(pull, abs(h.s[i]))
        turning(problem, work, targets, q, h)
        newton_level(h, work.H, first, last, damping, most, pull)
    if count > levels:
        solve_posture(h, h.dampings[levels], farthest, True)
    size = turn_back(problem, work, h)
    advance_pose(problem, q, work.dq)
    return size


@device
def dampen(h, count):
    """Damp the last level more, and those above it that miss a little, since what they creep is no gain; return it."""
    last = count - 1
    h.dampings[last] = max(STRONGER * h.dampings[last], LIGHTEST)
    for k in range(last):
        if h.lowest[k] > MISSED:
            h.dampings[k] = max(h.floors[k], FOLLOWS * h.dampings[last])
    return h.dampings[last]


@device
def relax(h, count, share):
    """Damp every level by so much less; what is next to nothing becomes nothing."""
    for k in range(count):
        less = share * h.dampings[k] if share > 0 else F(0)  # what is kept there between refinements may be infinite
        h.dampings[k] = max(less if less >= LIGHTEST else F(0), h.floors[k])


@device
def gains(h, count, lost, gained, least):
    """Return whether the last of ``count`` levels has gained so much, or one above it, and none above has lost.

    A level above has lost or gained where it differs by more than ``lost`` or ``gained``, and lost where its error is
    no number.
    """
    last = count - 1
    for k in range(last):
        size = F(1) + h.lowest[k]
        if h.present[k] < h.lowest[k] - gained * size:
            return True
        if not h.present[k] <= h.lowest[k] + lost * size:
            return False
    return h.present[last] < h.lowest[last] - least * (F(1) + h.lowest[last])


@device
def keeps(h, count):
    """Return whether none of so many levels has lost."""
    for k in range(count):
        if not h.present[k] <= h.lowest[k] + KEPT * (F(1) + h.lowest[k]):
            return False
    return True


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
    last = count - 1
    h.floors[last] = F(0)
    relax(h, count, F(0))
    farthest = problem.params[LARGEST_STEP]
    least = SAME if count == problem.levels.shape[0] else FINE  # the posture has no minimum that others build on
    fresh = True
    moved = False
    mends = 0
    floor = F(0)
    cost_of_step = work_of_levels(problem)
    if work.H.shape[0] > 0:
        cost_of_step += NEWTON * work_of_newton(problem)
    for k in range(MOST_STEPS):
        if stopped(work.watch, cost_of_step):
            copy(work.best, q)
            h.floors[last] = floor
            return k, False, moved
        if mends == 0:
            size = newton_step(problem, work, targets, q, h, count, farthest, False)
            note_pressed(h)
        else:
            size = newton_step(problem, work, targets, q, h, last, problem.params[LARGEST_STEP], mends <= PRESSED)
        if mends == 0 and size < SHORT:
            copy(work.best, q)
            h.floors[last] = floor
            return k, True, moved
        if mends == 0 and size > QUIET:
            floor = min(STRONGER * h.dampings[last], FIRMEST)
        worst = look(problem, work, targets, q, h)
        if worst <= F(1) or gains(h, count, KEPT, KEPT, least):
            moved = moved or gains(h, count, SAME, SAME, SAME)
            hold_best(h, count)
            copy(q, work.best)
            if worst <= F(1):
                return k, True, False
            mends = 0
            fresh = False
            relax(h, count, WEAKER)
            farthest = min(WIDER * farthest, problem.params[LARGEST_STEP])
            continue
        ends = size < SHORT or keeps(h, last)
        if ends and 0 < mends <= PRESSED and not keeps(h, last):
            mends, ends = PRESSED, False  # they cannot with those bounds met
        mends += 1
        if ends or mends > MENDS:
            mends = 0
            copy(work.best, q)
            look(problem, work, targets, q, h)
            strongest = dampen(h, count)
            farthest *= NARROWER
            if strongest > HEAVIEST:
                if fresh:
                    h.floors[last] = floor
                    return k, True, moved
                fresh = True
                floor = F(0)
                relax(h, count, F(0))
                farthest = problem.params[LARGEST_STEP]
    copy(work.best, q)
    h.floors[last] = floor
    return MOST_STEPS, False, moved
