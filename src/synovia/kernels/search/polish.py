"""Polish a missed pose by Newton's method within the limits, until no step improves it.

Polishing the result again returns it unchanged.
"""

import math

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.compiler.watch import halted, stopped
from synovia.kernels.goals.curvature import curvature
from synovia.kernels.goals.residuals import jacobian, residual
from synovia.kernels.jacobian.active_set import LARGEST_TURN, damped_step, largest, length
from synovia.kernels.layout import HELD
from synovia.kernels.math.bounded import bounded_step, free_and_held_gradient, solve_free
from synovia.kernels.math.linear import gram_t, times_t, transpose
from synovia.kernels.tree.chart import NEAR, add_chart_curvature, move, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, work_of_newton
from synovia.kernels.tree.variables import perturb

CONVERGED = F(1e-12)  # smaller relative falls of the cost count as zero
CONVERGED_STEPS = 4  # this many such steps in a row end the descent
GRADIENT_NOISE = F(1e-12)  # smaller gradients, relative to the residual, are rounding
CLOSE = F(1e-5)  # shorter Newton steps (radians, length scales) need no gain, because their gain is below rounding
ROUNDING = F(1e-13)  # relative rounding error of a cost
MIN_STEP = F(1e-15)  # a shorter step (radians, length scales) ends the descent
MAX_DAMPINGS = 40  # largest number of dampings tried for one step
SADDLE_STEP = F(1e-3)  # radians, length scales: large enough to leave a saddle, too small to see
NEGATIVE_CURVATURE = F(1e-6)  # smallest negative curvature of a saddle, relative to the residual
SADDLE_GAIN = F(0.999)  # factor by which the cost must fall to leave a saddle: solving again returns the same answer


@device
def bounded_gradient(problem, work, targets, q):
    """Write J, the gradient g = Jᵀe and the bounds in coordinates of the box (``tree.chart``); mark active bounds.

    dq holds the gradient in angular velocities afterwards.

    Returns:
        The largest entry of the gradient that no bound holds back, and the largest multiplier of a bound.
    """
    jacobian(problem, q, work.frames, targets, work.J)
    times_t(work.J, work.e, work.dq)
    write_bounds(problem, q, work.box)
    to_box(problem, work.box, work.J)
    times_t(work.J, work.e, work.g)
    return free_and_held_gradient(work.box, work.g, NEAR, GRADIENT_NOISE * length(work.e))


@device
def drop_active(work):
    """Set the columns of J and the entries of g at active bounds to zero."""
    for v in range(work.g.shape[0]):
        if work.box[v, HELD] != F(0):
            work.g[v] = F(0)
            for i in range(work.J.shape[0]):
                work.J[i, v] = F(0)


@device
def hessian_to_box(problem, work, q):
    """Transform H from angular velocities to coordinates of the box (``tree.chart``); dq holds the gradient."""
    for _ in range(2):
        to_box(problem, work.box, work.H)
        transpose(work.H)
    add_chart_curvature(problem, q, work.box, work.dq, work.H)


@device
def hessian(problem, work, targets, q):
    """Write the Hessian H of half the cost, with second derivatives, in coordinates of the box (``tree.chart``)."""
    curvature(problem, q, work.frames, targets, work.H)
    hessian_to_box(problem, work, q)
    gram_t(work.J, work.K, F(0))
    for i in range(work.H.shape[0]):
        for j in range(i):
            work.H[i, j] += work.K[i, j]
            work.H[j, i] = work.H[i, j]
        work.H[i, i] += work.K[i, i]


@device
def predicted_fall(work, damping):
    """Return the fall of the cost that the quadratic model predicts: 2 g·y - y·H y, with JᵀJ for H if H is not used."""
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
def newton_descent(problem, work, targets, q, max_steps):
    """Descend from q to a local minimum by Newton's method; each step minimises a quadratic within the limits.

    Damping makes each step lower the cost, and follows the gain ratio (Nielsen 1999). With more than NEWTON_COLUMNS
    columns JᵀJ replaces the Hessian, and columns at active bounds are left out.

    Returns:
        (steps taken, 1 if q is stationary or meets the goals, else 0).
    """
    damping = F(1e-3)
    grow = F(2)
    small_falls = 0
    full = work.H.shape[0] > 0
    cost_of_step = work_of_newton(problem)
    forward(problem.tree, q, work.frames)
    cost, worst = residual(problem, q, work.frames, targets, work.e)
    for k in range(max_steps):
        if worst <= F(1):
            return k, 1
        if stopped(work.watch, cost_of_step):
            return k, 0
        left, _ = bounded_gradient(problem, work, targets, q)
        rounding = GRADIENT_NOISE * math.sqrt(cost)
        if left <= rounding:
            return k, 1
        if full:
            hessian(problem, work, targets, q)
        else:
            drop_active(work)
        accepted = False
        for _ in range(MAX_DAMPINGS):
            if stopped(work.watch, cost_of_step):
                break
            extra = damping * max(F(1), cost)
            downhill = True
            if full:
                downhill = bounded_step(work.H, extra, work.g, work.box, work.K, work.dq, rounding)
            else:
                damped_step(work, extra)
            size = largest(work.dq)
            if downhill and size < MIN_STEP:
                return k, 1
            if downhill:
                copy(q, work.trial)
                move(problem, work.trial, work.dq, min(F(1), LARGEST_TURN / size))
                forward(problem.tree, work.trial, work.frames)
                new_cost, new_worst = residual(problem, work.trial, work.frames, targets, work.e)
                refines = full and size < CLOSE and new_cost <= cost * (F(1) + ROUNDING)
                if new_cost < cost or refines:
                    accepted = True
                    gain = (cost - new_cost) / max(predicted_fall(work, extra), F(1e-300))
                    h = F(2) * gain - F(1)
                    if not refines:
                        damping = max(damping * max(F(1) / F(3), F(1) - h * h * h), F(1e-12))
                    grow = F(2)
                    small_falls = small_falls + 1 if cost - new_cost < CONVERGED * cost else 0
                    cost, worst = new_cost, new_worst
                    copy(work.trial, q)
                    break
                forward(problem.tree, q, work.frames)
                residual(problem, q, work.frames, targets, work.e)
            damping *= grow
            grow *= F(2)
        if not accepted or small_falls >= CONVERGED_STEPS:
            forward(problem.tree, q, work.frames)
            residual(problem, q, work.frames, targets, work.e)
            return k + 1, 0 if halted(work.watch) else 1
    return max_steps, 0


@device
def is_saddle(problem, work, targets, q, cost, steps):
    """Return whether a stationary pose is a saddle: the Hessian has negative curvature. Frames and residual are at q.

    Without second derivatives (many columns), a pose counts as a saddle if the descent took no step.
    """
    if work.H.shape[0] == 0:
        return steps == 0
    bounded_gradient(problem, work, targets, q)
    hessian(problem, work, targets, q)
    return not solve_free(work.H, NEGATIVE_CURVATURE * math.sqrt(cost), work.g, work.box, work.K, work.dq)


@device
def polish_to_minimum(problem, work, targets, q, max_steps):
    """Descend from q to a minimum, and leave saddles.

    A chain that points straight away from its target is at a saddle, where the gradient is zero. From a saddle the
    descent is repeated after a small random step and after the opposite step, with a fixed seed. A minimum is returned
    unchanged.

    Returns:
        (steps taken, 1 if q is stationary or meets the goals, else 0).
    """
    steps = 0
    was_stationary = 0
    lowest = F(0)
    for side in range(3):
        if side > 0:
            copy(work.best, q)
            perturb(problem, work, q, SADDLE_STEP if side == 1 else -SADDLE_STEP)
        taken, converged = newton_descent(problem, work, targets, q, max_steps)
        steps += taken
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if side == 0:
            was_stationary = converged
            lowest = cost
            copy(q, work.best)
            if worst <= F(1) or converged == 0 or not is_saddle(problem, work, targets, q, cost, taken):
                return steps, was_stationary
        elif worst <= F(1) or cost < SADDLE_GAIN * lowest:
            return steps, converged
    copy(work.best, q)
    return steps, was_stationary
