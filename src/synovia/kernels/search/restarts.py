"""Random start poses within the limits: the same pose for the same seed and attempt.

Slides whose range is more than twice the length scale are drawn near a target.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, algorithm, device, inline
from synovia.kernels.compiler.views import bits
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    COLUMN,
    FIRST_Q,
    GOAL_ROW,
    KIND,
    LOWER,
    PARENT,
    PARTS,
    POSITION,
    RATIO,
    SLIDE,
    STATE,
    TURN,
    UPPER,
    VARIABLE,
)
from synovia.kernels.loops.closing import go_closed
from synovia.kernels.math.rotations import column, load_quat, quat_exp, quat_log, rotation_of, store_quat
from synovia.kernels.math.vectors import axpy, dot, scale, sub
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import draw, is_limited, randomize, randomize_number

SMALLER_TURNS = F(0.2)  # factor of the rotations of unlimited balls, applied zero, one or two times
TURN_KINDS = 3  # number of choices for the resulting factor: 1, 0.2 or 0.04


@inline
def is_wide(problem, row):
    """Return whether the joint of a row is a slide whose range exceeds twice the length scale."""
    if problem.tree.ints[row, KIND] != SLIDE or problem.tree.ints[row, COLUMN] < 0:
        return False
    k = problem.tree.ints[row, VARIABLE]
    return problem.limits[k, UPPER] - problem.limits[k, LOWER] > F(2) * problem.reach


@device
def draw_wide_slides(problem, work, targets, q):
    """Draw wide slides again, near the values that bring a randomly chosen goal closest to its target.

    A drawn value is at most one length scale away from these values. A value drawn uniformly from limits of a kilometre
    would hardly ever help. ``work.trial`` holds q before any values were drawn.
    """
    n = problem.tree.ints.shape[0]
    wide = 0
    for i in range(n):
        if is_wide(problem, i):
            wide += 1
            q[problem.tree.ints[i, FIRST_Q]] = work.trial[problem.tree.ints[i, FIRST_Q]]
    if wide == 0:
        return
    g = np.int64(draw(work) * F(problem.goals.shape[0]))
    row = problem.goals[g, GOAL_ROW] if problem.goals[g, PARTS] & POSITION else -1
    forward(problem.tree, q, work.frames)
    _, p = goal_frame(problem, work.frames, g)
    _, t = target_frame(targets, g)
    offset = sub(t, p)
    while row >= 0:
        if is_wide(problem, row):
            z = column(rotation_of(work.frames, row), 2)
            shift = dot(z, offset)
            offset = axpy(-shift, z, offset)
            ratio = problem.tree.couple[row, RATIO]
            q[problem.tree.ints[row, FIRST_Q]] += shift / ratio if ratio != F(0) else F(0)
        row = problem.tree.ints[row, PARENT]
    for i in range(n):
        if is_wide(problem, i):
            k, at = problem.tree.ints[i, VARIABLE], problem.tree.ints[i, FIRST_Q]
            q[at] += problem.reach * (F(2) * draw(work) - F(1))
            q[at] = min(max(q[at], problem.limits[k, LOWER]), problem.limits[k, UPPER])


@algorithm
def random_start(problem, work, targets, q):
    """Fill every variable of q with random values.

    The rotations of balls without limits are uniform, or uniform with angles scaled to a fifth or a twenty-fifth. A
    chain of a hundred balls with uniform rotations is a coil, from which fewer far targets are reached (31 of 40; with
    smaller rotations 40).
    """
    copy(q, work.trial)
    randomize(problem.variables, problem.limits, q, bits(work.watch, STATE, 1))
    share = SMALLER_TURNS ** np.int64(TURN_KINDS * draw(work))
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] == TURN and not is_limited(problem.limits, k):
            at = problem.variables[k, BLOCK_Q]
            store_quat(q, at, quat_exp(scale(share, quat_log(load_quat(q, at)))))
    draw_wide_slides(problem, work, targets, q)
    go_closed(problem.loops, problem, q, work.trial)
    return 0, F(0)


@algorithm
def random_scalars(problem, work, targets, q):
    """Fill every variable of an arm with random values; without the code for ball joints it compiles faster."""
    copy(q, work.trial)
    for k in range(problem.variables.shape[0]):
        randomize_number(problem.limits, k, q, problem.variables[k, BLOCK_Q], bits(work.watch, STATE, 1))
    draw_wide_slides(problem, work, targets, q)
    return 0, F(0)
