"""Null-space motion: lower the secondary objectives H without moving the goals.

    dq = J⁺e + (J⁺J - 1) ∇H,   or   (J Jᵀ) b = e + J ∇H,  dq = Jᵀb - ∇H.

The projector 1 - J⁺J needs a factorisation without damping: a damped one lets the objectives disturb the goals.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.residuals import residual
from synovia.kernels.jacobian.active_set import PUSH_NOISE, apply_dq, hold_at_limits, largest
from synovia.kernels.jacobian.methods import MAX_REDOS, PSEUDO_INVERSE, limited_step
from synovia.kernels.jacobian.secondary import largest_curvature, write_gradient
from synovia.kernels.jacobian.shared import clamp_largest, write_jacobian
from synovia.kernels.layout import LARGEST_TURN
from synovia.kernels.math.linear import gram
from synovia.kernels.math.semidefinite import solve_semidefinite
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, work_of_step

MAX_NULL_STEP = F(0.3)  # longest step in the null space, radians or length scales
MIN_NULL_STEP = F(1e-6)  # shorter steps end the descent
CORRECTIONS = 10  # largest number of steps back to the goals after a null-space step
INCREASE, DECREASE = F(1.5), F(0.5)  # factors of the gain after an accepted and after a rejected step
CONVERGED = F(1e-9)  # relative fall of H that ends the descent


@device
def project_to_null_space(scratch, m, out):
    """Write out = (1 - J⁺J) z: solve (J Jᵀ) b = J z, out = z - Jᵀb.

    The first ``m`` rows of the scratch W hold J, and row ``m`` holds z. A second pass removes the rounding errors of an
    ill-conditioned J Jᵀ.
    """
    n = out.shape[0]
    for j in range(n):
        out[j] = scratch.W[m, j]
    for _ in range(2):
        gram(scratch.W, scratch.U, F(0))
        for i in range(m):
            scratch.b[i] = F(0)
            for j in range(n):
                scratch.b[i] += scratch.W[i, j] * out[j]
            for j in range(i):
                scratch.U[j, i] = scratch.U[i, j]
        solve_semidefinite(scratch.U, scratch.b, scratch.order, m)
        for i in range(m):
            for j in range(n):
                out[j] -= scratch.b[i] * scratch.W[i, j]


@apart
def null_space_step(problem, work, scratch, q, gain):
    """Write scratch.z = -gain (1 - J⁺J) ∇H for the current J, without the directions that limits hold."""
    m, n = work.J.shape
    for j in range(n):
        for i in range(m):
            scratch.W[i, j] = work.J[i, j]
        scratch.W[m, j] = -gain * scratch.gradient[j]
    for redo in range(MAX_REDOS):
        project_to_null_space(scratch, m, scratch.z)
        slack = PUSH_NOISE * largest(scratch.z)
        _, held = hold_at_limits(problem, q, scratch.W, scratch.z, slack, redo > 0)  # removes held directions
        if held < 0:
            break


@device
def initial_gain(problem):
    """Return the first step length along -∇H: one over the largest second derivative of H."""
    curvature = largest_curvature(problem)
    return F(1) / curvature if curvature > F(0) else F(1)


@device
def return_to_goals(problem, work, scratch, targets, q):
    """Step back to the goals, at least once; return (steps, cost, whether the goals are met)."""
    cost = F(0)
    for k in range(CORRECTIONS + 1):
        forward(problem.tree, q, work.frames)
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if k > 0 and worst <= INSIDE:
            return k, cost, True
        if k == CORRECTIONS:
            break
        write_jacobian(problem, work, targets, q)
        limited_step(problem, work, scratch, q, np.int64(PSEUDO_INVERSE), F(0), problem.params[LARGEST_TURN])
        apply_dq(problem, work, q, F(1))
    return CORRECTIONS, cost, False


@device
def descend_null_space(problem, work, scratch, targets, q, cost, max_steps):
    """Minimise H over the poses that meet the goals, from q, which meets them; return (steps, cost).

    A step in the null space changes the goals to second order, so each is followed by steps back to the goals. Only
    poses that meet the goals and lower H are accepted; the gain grows after an accepted step and shrinks otherwise.
    """
    gain = initial_gain(problem)
    lowest = F(0)
    tried, returned, met = False, False, True
    k = 0
    new_cost = cost
    while k < max_steps:
        H = write_gradient(problem, work, targets, q, scratch.gradient)
        if not tried or (met and H < lowest):
            ended = tried and lowest - H < CONVERGED * abs(lowest)
            lowest, cost = H, new_cost
            copy(q, work.trial)
            if ended:
                break
            gain *= INCREASE if tried else F(1)
        elif not returned:
            copy(work.trial, q)
            gain *= DECREASE
            returned = True
            continue
        tried, returned = True, False
        null_space_step(problem, work, scratch, q, gain)
        size = largest(scratch.z)
        if size < MIN_NULL_STEP or stopped(work.watch, work_of_step(problem)):
            break
        gain *= min(F(1), MAX_NULL_STEP / size)
        copy(scratch.z, work.dq)
        clamp_largest(work.dq, MAX_NULL_STEP)
        apply_dq(problem, work, q, F(1))
        taken, new_cost, met = return_to_goals(problem, work, scratch, targets, q)
        k += 1 + taken
    copy(work.trial, q)
    return k, cost
