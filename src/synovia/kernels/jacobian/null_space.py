"""Null-space motion: what the goals leave free goes where the body likes it.

    dq = J⁺e + (J⁺J - 1) ∇H,   or   (J Jᵀ) b = e + J ∇H,  dq = Jᵀb - ∇H.

The projector 1 - J⁺J must come from a factorisation without damping: a damped one lets the wish leak into the goals.
"""

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.residuals import residual, to_units
from synovia.kernels.jacobian.active_set import PUSHES, hold_at_limits, largest
from synovia.kernels.jacobian.methods import PSEUDO_INVERSE, REDOS, limited_step
from synovia.kernels.jacobian.secondary import stiffest, write_gradient
from synovia.kernels.jacobian.shared import clamp_largest, write_jacobian
from synovia.kernels.layout import LARGEST_TURN
from synovia.kernels.math.linear import gram
from synovia.kernels.math.semidefinite import solve_semidefinite
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, work_of_step
from synovia.kernels.tree.variables import step

WIDEST = F(0.3)  # radians or reaches of one slide along the solutions
STILL = F(1e-6)  # the same below which a slide has ended
CORRECTIONS = 10  # steps back onto the goals after a slide
GROW, SHRINK = F(1.5), F(0.5)  # of the gain, after a slide that helped and one that did not
STOP_REASON = F(1e-9)  # relative fall of H below which a slide has ended


@device
def project(room, m, out):
    """Write out = (1 - J⁺J) z: solve (J Jᵀ) b = J z, out = z - Jᵀb. Room holds J, and z in the row below it.

    Twice: rounding that an ill-conditioned J Jᵀ leaves in the rows of J is taken out by the second pass.
    """
    n = out.shape[0]
    for j in range(n):
        out[j] = room.W[m, j]
    for _ in range(2):
        gram(room.W, room.U, F(0))
        for i in range(m):
            room.b[i] = F(0)
            for j in range(n):
                room.b[i] += room.W[i, j] * out[j]
            for j in range(i):
                room.U[j, i] = room.U[i, j]
        solve_semidefinite(room.U, room.b, room.order, m)
        for i in range(m):
            for j in range(n):
                out[j] -= room.b[i] * room.W[i, j]


@device
def null_space_step(problem, work, room, q, gain):
    """Write room.z = -gain (1 - J⁺J) ∇H with J as it stands, without the directions that a limit holds."""
    m, n = work.J.shape
    for j in range(n):
        for i in range(m):
            room.W[i, j] = work.J[i, j]
        room.W[m, j] = -gain * room.gradient[j]
    for redo in range(REDOS):
        project(room, m, room.z)
        slack = PUSHES * largest(room.z)
        _, held = hold_at_limits(problem, q, room.W, room.z, slack, redo > 0)  # out of J and of the wish alike
        if held < 0:
            break


@device
def initial_gain(problem):
    """Return the step length at which the stiffest wish is met at once: one over its second derivative."""
    bend = stiffest(problem)
    return F(1) / bend if bend > F(0) else F(1)


@device
def back_onto_goals(problem, work, room, targets, q):
    """Step back onto the goals, at least once; return (steps, cost, whether they hold)."""
    cost = F(0)
    for k in range(CORRECTIONS + 1):
        forward(problem.tree, q, work.frames)
        cost, worst = residual(problem, q, work.frames, targets, work.e)
        if k > 0 and worst <= INSIDE:
            return k, cost, True
        if k == CORRECTIONS:
            break
        write_jacobian(problem, work, targets, q)
        limited_step(problem, work, room, q, PSEUDO_INVERSE, F(0), problem.params[LARGEST_TURN])
        to_units(problem, work.dq)
        step(problem.variables, problem.limits, q, work.dq, F(1))
    return CORRECTIONS, cost, False


@device
def descend_null_space(problem, work, room, targets, q, cost, most):
    """Move q, which meets the goals, along the poses that meet them until H is lowest; return (steps, cost).

    A slide along the null space leaves the goals by its square, so each is followed by steps back. Only poses that meet
    the goals and lower H are kept; the length of a slide follows from that.
    """
    gain = initial_gain(problem)
    lowest = F(0)
    tried, returned, holds = False, False, True
    k = 0
    new_cost = cost
    while k < most:
        H = write_gradient(problem, work, targets, q, room.gradient)
        if not tried or (holds and H < lowest):
            ended = tried and lowest - H < STOP_REASON * abs(lowest)
            lowest, cost = H, new_cost
            copy(q, work.trial)
            if ended:
                break
            gain *= GROW if tried else F(1)
        elif not returned:
            copy(work.trial, q)
            gain *= SHRINK
            returned = True
            continue
        tried, returned = True, False
        null_space_step(problem, work, room, q, gain)
        size = largest(room.z)
        if size < STILL or stopped(work.watch, work_of_step(problem)):
            break
        gain *= min(F(1), WIDEST / size)
        copy(room.z, work.dq)
        clamp_largest(work.dq, WIDEST)
        to_units(problem, work.dq)
        step(problem.variables, problem.limits, q, work.dq, F(1))
        taken, new_cost, holds = back_onto_goals(problem, work, room, targets, q)
        k += 1 + taken
    copy(work.trial, q)
    return k, cost
