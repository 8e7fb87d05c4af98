"""Restarts of a full body: near the start if the first attempt ended close to its goals and its start, else random.

With clearance goals, ``clear_starts`` chooses among random poses.

A body whose limbs are straight, or at a limit, may miss a target close to it, because no small move reduces the error
there. Starts near that pose find the nearest poses that reach the target. A random start would find an answer far away,
and less often.
"""

import math

from synovia.kernels.closed_form.selection import variable_distance
from synovia.kernels.compiler.jit import F, algorithm, apart, perform
from synovia.kernels.goals.clearance import keeps_clear
from synovia.kernels.goals.residuals import residual
from synovia.kernels.hierarchy.clear_starts import begin_draws, draw_clear
from synovia.kernels.layout import BLOCK, BLOCK_Q, IS_ANGLE, LOWER, OTHERS, SCALAR, UPPER
from synovia.kernels.loops.closing import close_again, keep_pose
from synovia.kernels.math.rotations import load_quat, quat_exp, quat_mul, quat_normalize, store_quat
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.variables import clamp_block, draw, step_unit

CLOSE_MISS = F(0.03)  # largest error (length scales, radians) of a first attempt that ended close to all goals
CLOSE_POSE = F(1.5)  # radians, or length scales: largest move of a variable in an attempt that stays close to its start
RESTARTS = 4  # number of restarts near the start
MOVE = F(0.1)  # radians, or length scales: in restart k each variable moves by at most k times this value
LONG = F(1e30)  # a slide with a longer range has no limits
# index in ``work.watch``: number of the next restart (1 for the first); poses are stored there only to finish misses
NEXT = OTHERS


@apart
def begin_restarts(problem, work, targets, q):
    """Choose the kind of restarts by the error at q, the answer of the first attempt, with ``work.frames`` at q."""
    cost, _ = residual(problem, q, work.frames, targets, work.e)
    begin_draws(work)
    work.watch[NEXT] = F(1) if cost <= CLOSE_MISS * CLOSE_MISS else F(math.inf)


@apart
def is_close(problem, q, other):
    """Return whether no variable moves by more than ``CLOSE_POSE`` between two poses."""
    for k in range(problem.variables.shape[0]):
        if not variable_distance(problem, q, other, problem.variables[k, BLOCK_Q], k) <= CLOSE_POSE:
            return False
    return True


@apart
def draw_beside(problem, work, q, most):
    """Move every variable of q to a random value within its limits, at most ``most`` (radians, length scales) away.

    Slides and coordinates of a root without limits stay, as in ``random_start``.
    """
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        if problem.variables[k, BLOCK] == SCALAR:
            lower, upper = problem.limits[k, LOWER], problem.limits[k, UPPER]
            if problem.limits[k, IS_ANGLE] != F(0) or upper - lower < LONG:
                size = most * step_unit(problem.limits, k, problem.reach)
                lower, upper = max(lower, q[at] - size), min(upper, q[at] + size)
                q[at] = lower + draw(work) * (upper - lower)
        else:
            x, y, z = draw(work), draw(work), draw(work)
            w = (most * (F(2) * x - F(1)), most * (F(2) * y - F(1)), most * (F(2) * z - F(1)))
            store_quat(q, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))
            clamp_block(problem.variables, problem.limits, k, q)


@algorithm
def restart(problem, work, targets, q):
    """Draw the start of a restart; q is the start of the problem. ``begin_restarts`` was called before the first."""
    k = work.watch[NEXT]
    if k == F(1) and not is_close(problem, q, work.best):  # work.best is the answer of the first attempt
        k = F(math.inf)
    if k <= F(RESTARTS):
        keep_pose(problem.loops, q)
        draw_beside(problem, work, q, MOVE * k)
        close_again(problem.loops, problem, q, False)
        work.watch[NEXT] = k + F(1)
        return 0, F(0)
    work.watch[NEXT] = k
    if keeps_clear(problem.clear):
        return draw_clear(problem, work, targets, q), F(0)
    return perform(random_start, problem, work, targets, q)
