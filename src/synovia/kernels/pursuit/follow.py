"""Follow the targets of a clip frame by frame: a few steps per frame, from the pose of the frame before.

Goals below level 0 are met in the least-squares sense, with weights that change from frame to frame; a weight of 0
switches a goal off. Goals of level 0 have priority: the factor of their squares is HARD, so the other goals change them
by a ten-millionth (the method of weights, Van Loan 1985). A pull draws every variable to its value in the frame before
and, more weakly, to its value in the posture. Such clips are never met exactly, so there is no search for a pose that
reaches every goal: steps must be cheap and the motion smooth.

A step y, in the directions of the box (see ``tree.chart``), minimizes |J y - e|² + Σ d (y - r)² within the box
(``math.bounded``). Here r is the reference of a column, and d the weight that pulls the column to it. A step that
increases the cost is undone, and the Levenberg-Marquardt damping grows.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.residuals import all_given, complete_targets, jacobian, residual
from synovia.kernels.hierarchy.largest_move import enforce_largest_move, restrict_step, save_pose
from synovia.kernels.hierarchy.step import ball_reference
from synovia.kernels.jacobian.active_set import PUSH_NOISE, largest, length
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    FIRST_RESIDUAL,
    GOAL,
    LEVEL,
    PURSUED,
    PURSUIT_DAMPING,
    PURSUIT_REST_STEP,
    PURSUIT_STAY,
    PURSUIT_STEPS,
    RESIDUALS,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
)
from synovia.kernels.math.bounded import bounded_step, mark_held
from synovia.kernels.math.linear import gram_t, times_t
from synovia.kernels.math.rotations import load_quat
from synovia.kernels.math.vectors import dot
from synovia.kernels.search.multistart import set_followers
from synovia.kernels.tree.chart import NEAR, move, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, first_terms_only, open_general, open_work
from synovia.kernels.tree.variables import step_unit

Pursuit = record("Pursuit", PURSUED)
_open = cutter(Pursuit, PURSUED, ("residuals", "columns", "variables", "goals"))

HARD = F(1e7)  # weight of level 0
CURVED = F(0.1)  # damping of a column by level 0, relative to the squared error times the column's squared length
LONGEST = F(0.4)  # longest step, radians or length scales; longer steps are shortened
LEAST = F(1e-12)  # smallest damping
LEAST_STIFF, MOST_STIFF = F(1e-2), F(1e6)  # bounds of the damping after undone steps, relative to the diagonal of H
STIFFER, SOFTER = F(8), F(0.2)  # factors of this damping after an undone and after an accepted step
MET = F(1e-7)  # largest error of level 0 (length scales or radians) that counts as met


@inline
def open_pursuit(problem, memory):
    """Return the tables in ``memory``."""
    sizes = problem.residuals, problem.columns, problem.variables.shape[0], problem.goals.shape[0]
    return _open(memory, sizes)


@device
def weigh_errors(problem, work, weights):
    """Scale the residuals of each goal by the root of its weight.

    Returns:
        (squared error of level 0, without weights; squared error of the levels below, with weights).
    """
    hard, soft = F(0), F(0)
    for g in range(problem.goals.shape[0]):
        top = problem.goals[g, LEVEL] == 0
        w = root_weight(top, weights[g])
        first = problem.goals[g, FIRST_RESIDUAL]
        for i in range(first, first + problem.goals[g, RESIDUALS]):
            if w == F(0):  # the residuals of this goal were not written
                work.e[i] = F(0)
                continue
            if top:
                hard += work.e[i] * work.e[i]
            work.e[i] *= w
            if not top:
                soft += work.e[i] * work.e[i]
    return hard, soft


@inline
def root_weight(top, weight):
    """Return the factor of the rows of a goal: the root of its weight, or of its weight times HARD if ``top``."""
    return math.sqrt(weight * HARD) if top else math.sqrt(weight)


@device
def weigh_rows(problem, work, p, weights, hard):
    """Scale the rows of J by the roots of their goals' weights; write the damping of each column by level 0.

    ``hard`` is the squared error of level 0.
    """
    for v in range(problem.columns):
        p.damp[v] = F(0)
    for g in range(problem.goals.shape[0]):
        top = problem.goals[g, LEVEL] == 0
        w = root_weight(top, weights[g])
        first = problem.goals[g, FIRST_RESIDUAL]
        for i in range(first, first + problem.goals[g, RESIDUALS]):
            for v in range(problem.columns):
                work.J[i, v] *= w
                if top:
                    p.damp[v] += CURVED * hard * work.J[i, v] * work.J[i, v]


@device
def pull_error(problem, p, q, stay):
    """Return the weighted sum of the squared distances to the frame before and to the posture."""
    total = F(0)
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        rest = problem.posture[k, REST_WEIGHT]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) / step_unit(problem.limits, k, problem.reach)
            back, home = unit * (p.before[k, 0] - q[at]), unit * (problem.posture[k, REST_Q] - q[at])
            total += stay * back * back + rest * home * home
            continue
        here = load_quat(q, at)
        back = ball_reference(problem.limits, k, here, load_quat(p.before[k], 0))
        total += stay * dot(back, back)
        if rest > F(0):
            home = ball_reference(problem.limits, k, here, load_quat(problem.posture[k], REST_Q))
            total += rest * dot(home, home)
    return total


@device
def pull(problem, p, q, stay):
    """Add the pulls to the frame before and to the posture: the weight d to the diagonal of H, and d r to g."""
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        rest = problem.posture[k, REST_WEIGHT]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) / step_unit(problem.limits, k, problem.reach)
            p.g[v] += unit * (stay * (p.before[k, 0] - q[at]) + rest * (problem.posture[k, REST_Q] - q[at]))
            p.H[v, v] += stay + rest
            continue
        here = load_quat(q, at)
        back = ball_reference(problem.limits, k, here, load_quat(p.before[k], 0))
        home = (F(0), F(0), F(0))
        if rest > F(0):
            home = ball_reference(problem.limits, k, here, load_quat(problem.posture[k], REST_Q))
        for c in range(3):
            p.g[v + c] += stay * back[c] + rest * home[c]
            p.H[v + c, v + c] += stay + rest


@device
def bounded_move(problem, work, p):
    """Write the step of all columns within the box to work.dq; return its longest part."""
    n = problem.columns
    for i in range(n):
        for j in range(i):
            p.H[j, i] = p.H[i, j]
        work.box[i, BOX_LOWER] = min(work.box[i, BOX_LOWER], F(0))
        work.box[i, BOX_UPPER] = max(work.box[i, BOX_UPPER], F(0))
    noise = PUSH_NOISE * length(p.g)
    mark_held(work.box, p.g, NEAR, noise)
    bounded_step(p.H, LEAST, p.g, work.box, p.K, work.dq, noise)
    return largest(work.dq)


@inline
def terms_that_count(problem, weights):
    """Return the number of general terms up to the last one whose goal is not switched off."""
    count = problem.general.ints.shape[0]
    while count > 0 and weights[problem.general.ints[count - 1, GOAL]] == F(0):
        count -= 1
    return count


@device
def pursue_frame(problem, work, p, targets, weights, settings, q):
    """Move q towards targets, (goals, 17), with weights (goals,), by a few steps from its present value."""
    if not all_given(problem, targets):
        forward(problem.tree, q, work.frames)
    complete_targets(problem, work.frames, targets, p.targets)
    go(first_terms_only(problem, terms_that_count(problem, weights)), work, p, weights, settings, q)


@device
def go(problem, work, p, weights, settings, q):
    """Move q towards the targets in ``p.targets``. After a step that increases the cost, undo it and damp more."""
    save_pose(problem, q, p.before)
    best, stiff, size = F(0), F(0), F(0)
    steps = int(settings[PURSUIT_STEPS])
    for k in range(steps + 1):
        forward(problem.tree, q, work.frames)
        residual(problem, q, work.frames, p.targets, work.e)
        hard, soft = weigh_errors(problem, work, weights)
        cost = HARD * hard + soft + pull_error(problem, p, q, settings[PURSUIT_STAY])
        if k == 0 or cost <= best:
            if k > 0 and size <= settings[PURSUIT_REST_STEP] and hard <= MET * MET:
                break
            best = cost
            copy(q, work.trial)
            stiff *= SOFTER
        else:
            copy(work.trial, q)
            stiff = max(STIFFER * stiff, LEAST_STIFF)
            forward(problem.tree, q, work.frames)
            residual(problem, q, work.frames, p.targets, work.e)
            hard, soft = weigh_errors(problem, work, weights)
        if k == steps or stiff > MOST_STIFF:
            break
        jacobian(problem, q, work.frames, p.targets, work.J)
        write_bounds(problem, q, work.box)
        restrict_step(problem, q, work.box, p.before)
        to_box(problem, work.box, work.J)
        weigh_rows(problem, work, p, weights, hard)
        gram_t(work.J, p.H, settings[PURSUIT_DAMPING] * soft)
        times_t(work.J, work.e, p.g)
        pull(problem, p, q, settings[PURSUIT_STAY])
        for i in range(problem.columns):
            p.H[i, i] += stiff * p.H[i, i] + p.damp[i]
        size = bounded_move(problem, work, p)
        move(problem, q, work.dq, min(F(1), LONGEST / max(size, F(1e-300))))
        enforce_largest_move(problem, q, p.before)
        set_followers(problem, q)


@entry
def pursue(ints, floats, targets, weights, settings, memory, scratch, out):
    """Follow the targets of a clip, frame by frame.

    Args:
        ints: The packed problem, see ``tree.problem``.
        floats: Values of the problem; ``moves`` are the largest moves per frame.
        targets: (T, goals, 17), as for solvers.
        weights: (T, goals), relative to those of the problem; 0 switches a goal off.
        settings: See ``layout.PURSUIT_STEPS`` and the following.
        memory: Scratch memory, the tables of ``layout.PURSUED``.
        scratch: Scratch memory of the problem.
        out: (T + 1, nq): the pose before the first frame; the poses of all frames are written after it.
    """
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    p = open_pursuit(problem, memory)
    for t in range(targets.shape[0]):
        copy(out[t], out[t + 1])
        pursue_frame(problem, work, p, targets[t], weights[t], settings, out[t + 1])
    return 0
