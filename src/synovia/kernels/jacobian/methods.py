"""The steps of the Jacobian family: methods that solve J dq = e.

The methods are Jacobian transpose, pseudo-inverse and damped least squares; ``selective`` has the fourth, by singular
values.
"""

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.jacobian.active_set import PUSH_NOISE, damped_step, hold_at_limits, largest
from synovia.kernels.jacobian.selective import selective_step
from synovia.kernels.jacobian.shared import clamp_largest
from synovia.kernels.math.linear import times, times_t

TRANSPOSE, PSEUDO_INVERSE, DAMPED, SELECTIVE = 0, 1, 2, 3
SINGULAR = F(1e-3)  # d0: damping begins if the regularity (squared radians or length scales) is below this
MOST_DAMPING = F(1e-4)  # λ0: damping at a regularity of zero
MAX_REDOS = 16  # largest number of solves of one step, each with more joints held at limits


@device
def transpose_step(work, y):
    """Write dq = α Jᵀe with the α that minimises the error: <e, J Jᵀ e> / <J Jᵀ e, J Jᵀ e> (Buss 2004, eq. 8)."""
    J, e, dq = work.J, work.e, work.dq
    times_t(J, e, dq)
    times(J, dq, y)
    along, across = F(0), F(0)
    for i in range(e.shape[0]):
        along += e[i] * y[i]
        across += y[i] * y[i]
    alpha = along / across if across > F(1e-300) else F(0)
    for i in range(dq.shape[0]):
        dq[i] *= alpha


@device
def regularity(A):
    """Return 1 / trace(A⁻¹) from the factorisation A = L D Lᵀ of ``solve_ldl`` (1 / D on the diagonal).

    It approximates the smallest eigenvalue to within a factor of the size of A, and is 0 if A is singular. Unlike
    pivots, it does not depend on the frame. A is overwritten with L⁻¹: trace(A⁻¹) = Σ (L⁻¹)ij² / Di.
    """
    total = F(0)
    for i in range(A.shape[0]):
        if not A[i, i] > F(0):
            return F(0)
        total += A[i, i]
        for j in range(i):
            s = A[i, j]
            for k in range(j + 1, i):
                s += A[i, k] * A[k, j]
            A[i, j] = -s
            total += s * s * A[i, i]
    return F(1) / total


@device
def pseudo_inverse_step(work):
    """Write dq = J⁺e: solve (J Jᵀ) b = e by L D Lᵀ, dq = Jᵀ b; with fewer columns than rows, (Jᵀ J) dq = Jᵀ e.

    A straight arm makes this system singular. Damping starts when the regularity d falls below d0:
    λ = λ0 (1 - d / d0)², the rule of Nakamura & Hanafusa (1986), with d in place of their measure of manipulability.
    """
    damped_step(work, F(0))
    d = regularity(work.A)
    if d < SINGULAR:
        damped_step(work, MOST_DAMPING * (F(1) - d / SINGULAR) * (F(1) - d / SINGULAR))


@apart
def limited_step(problem, work, scratch, q, method, damping, max_turn):
    """Write the clamped step dq of a method from J and e, within the joint limits.

    If the step pushes a joint beyond its limit, that joint's column is removed from J and the step is solved again,
    until no joint is pushed out. (Clipping instead would lose that joint's share of the motion.) The next step starts
    with all columns.
    """
    for redo in range(MAX_REDOS):
        if method == TRANSPOSE:
            transpose_step(work, scratch.b)
        elif method == PSEUDO_INVERSE:
            pseudo_inverse_step(work)
        elif method == DAMPED:
            damped_step(work, damping)
        else:
            selective_step(problem, work.J, work.e, scratch, max_turn, work.dq)
        _, held = hold_at_limits(problem, q, work.J, work.dq, PUSH_NOISE * largest(work.dq), redo > 0)
        if held < 0:
            break
    clamp_largest(work.dq, max_turn)
