"""The last descent: a pose that missed becomes one that cannot be improved, and is given back when asked for again."""

import math

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.compiler.views import bits
from synovia.kernels.compiler.watch import halted, stopped
from synovia.kernels.goals.curvature import curvature
from synovia.kernels.goals.residuals import jacobian, residual
from synovia.kernels.jacobian.active_set import LARGEST_TURN, damped_step, largest, length
from synovia.kernels.layout import HELD, STATE
from synovia.kernels.math.bounded import bounded_step, free_and_held_gradient, solve_free
from synovia.kernels.math.linear import gram_t, times_t, transpose
from synovia.kernels.tree.chart import NEAR, add_chart_curvature, move, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, work_of_newton
from synovia.kernels.tree.variables import perturb, seed_state

SETTLED = F(1e-12)  # relative fall of the cost below which descent has ended
QUIET = 4  # such steps in a row
FLAT = F(1e-12)  # gradient against residual below which nothing is left but rounding
CLOSE = F(1e-5)  # Newton step (radians, reaches) whose gain drowns in rounding: there the gradient decides
ROUNDING = F(1e-13)  # of a cost
SHORT = F(1e-15)  # step (radians, reaches) below which descent has ended
TRIES = 40  # dampings of one step
ASIDE = F(1e-3)  # radians, reaches: enough to leave a saddle, too little to be seen
BENDS = F(1e-6)  # curvature against residual that is one
LOWER = F(0.999)  # what a saddle is left for: its cost times this, or an answer that is asked for again would wander


@device
def pull(problem, work, targets, q):
    """Write J and the gradient g = Jᵀe in the directions of the box, with the bounds, and mark those that hold.

    dq is left with the gradient in angular velocities.

    Returns:
        The largest part of the gradient that no bound holds back, and the largest that one does: the multiplier.
    """
    jacobian(problem, q, work.frames, targets, work.J)
    times_t(work.J, work.e, work.dq)
    write_bounds(problem, q, work.box)
    to_box(problem, work.box, work.J)
    times_t(work.J, work.e, work.g)
    return free_and_held_gradient(work.box, work.g, NEAR, FLAT * length(work.e))


@device
def drop_held(work):
    """Take what a bound holds out of J and g."""
    for v in range(work.g.shape[0]):
        if work.box[v, HELD] != F(0):
            work.g[v] = F(0)
            for i in range(work.J.shape[0]):
                work.J[i, v] = F(0)


@device
def hessian(problem, work, targets, q):
    """Write H, second derivatives included, in the directions of the box."""
    curvature(problem, q, work.frames, targets, work.H)
    for _ in range(2):
        to_box(problem, work.box, work.H)
        transpose(work.H)
    add_chart_curvature(problem, q, work.box, work.dq, work.H)
    gram_t(work.J, work.K, F(0))
    for i in range(work.H.shape[0]):
        for j in range(i):
            work.H[i, j] += work.K[i, j]
            work.H[j, i] = work.H[i, j]
        work.H[i, i] += work.K[i, i]


@device
def fall(work, damping):
    """Return by how much the model says that the cost falls: 2 g·y - y·H y, or with JᵀJ for H."""
    total = F(0)
    full = work.H.shape[0] > 0
    for i in range(work.g.shape[0]):
        u = work.g[i]
        if full:
            u += work.g[i]
            for j in range(work.g.shape[0]):
                u -= work.H[i, j] * work.dq[j]
        else:
            u += damping * work.dq[i]
        total += u * work.dq[i]
    return total


@device
def settle(problem, work, targets, q, most):
    """Descend from q to a local minimum: Newton's method, each step the minimum of a quadratic within the limits.

    It is damped so that each step lowers the cost; the damping follows the gain ratio (Nielsen 1999). With many columns
    JᵀJ stands for the Hessian, and what is held is left out.

    Returns:
        (steps taken, 1 if q is stationary or reached, else 0).
    """
    damping = F(1e-3)
    grow = F(2)
    quiet = 0
    full = work.H.shape[0] > 0
    cost_of_step = work_of_newton(problem)
    forward(problem.tree, q, work.frames)
    cost, worst = residual(problem, q, work.frames, targets, work.e)
    for k in range(most):
        if worst <= F(1):
            return k, 1
        if stopped(work.watch, cost_of_step):
            return k, 0
        left, _ = pull(problem, work, targets, q)
        rounding = FLAT * math.sqrt(cost)
        if left <= rounding:
            return k, 1
        if full:
            hessian(problem, work, targets, q)
        else:
            drop_held(work)
        accepted = False
        for _ in range(TRIES):
            if stopped(work.watch, cost_of_step):
                break
            extra = damping * max(F(1), cost)
            downhill = True
            if full:
                downhill = bounded_step(work.H, extra, work.g, work.box, work.K, work.dq, rounding)
            else:
                damped_step(work, extra)
            size = largest(work.dq)
            if downhill and size < SHORT:
                return k, 1
            if downhill:
                copy(q, work.trial)
                move(problem, work.trial, work.dq, min(F(1), LARGEST_TURN / size))
                forward(problem.tree, work.trial, work.frames)
                new_cost, new_worst = residual(problem, work.trial, work.frames, targets, work.e)
                polishes = full and size < CLOSE and new_cost <= cost * (F(1) + ROUNDING)
                if new_cost < cost or polishes:
                    accepted = True
                    gain = (cost - new_cost) / max(fall(work, extra), F(1e-300))
                    h = F(2) * gain - F(1)
                    if not polishes:
                        damping = max(damping * max(F(1) / F(3), F(1) - h * h * h), F(1e-12))
                    grow = F(2)
                    quiet = quiet + 1 if cost - new_cost < SETTLED * cost else 0
                    cost, worst = new_cost, new_worst
                    copy(work.trial, q)
                    break
                forward(problem.tree, q, work.frames)
                residual(problem, q, work.frames, targets, work.e)
            damping *= grow
            grow *= F(2)
        if not accepted or quiet >= QUIET:
            forward(problem.tree, q, work.frames)
            residual(problem, q, work.frames, targets, work.e)
            return k + 1, 0 if halted(work.watch) else 1
    return most, 0


@device
def is_saddle(problem, work, targets, q, cost, steps):
    """Return whether the cost bends down somewhere around a pose that is stationary; frames and residual are at q.

    Without second derivatives (many columns) only a pose that no step has left is suspected.
    """
    if work.H.shape[0] == 0:
        return steps == 0
    pull(problem, work, targets, q)
    hessian(problem, work, targets, q)
    return not solve_free(work.H, BENDS * math.sqrt(cost), work.g, work.box, work.K, work.dq)


@device
def come_to_rest(problem, work, targets, q, most):
    """Settle q, and leave a saddle: a chain that points straight away from its target feels no gradient at all.

    It is tried a little to both sides, the same ones every time; at a minimum nothing is tried, so it stays.

    Returns:
        (steps taken, 1 if q is stationary or reached, else 0).
    """
    steps = 0
    ended = 0
    lowest = F(0)
    for side in range(3):
        if side > 0:
            copy(work.best, q)
            seed_state(bits(work.watch, STATE, 1), problem.seed, 0)
            aside = ASIDE if side == 1 else -ASIDE
            perturb(problem.variables, problem.limits, q, bits(work.watch, STATE, 1), aside, problem.reach)
        taken, still = settle(problem, work, targets, q, most)
        steps += taken
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if side == 0:
            ended = still
            lowest = cost
            copy(q, work.best)
            if worst <= F(1) or still == 0 or not is_saddle(problem, work, targets, q, cost, taken):
                return steps, ended
        elif worst <= F(1) or cost < LOWER * lowest:
            return steps, still
    copy(work.best, q)
    return steps, ended
