"""The steps of the Jacobian family: what each method makes of J dq = e, one after the other.

Jacobian transpose, pseudo-inverse, damped least squares; the fourth, by singular values, is in ``selective``.
"""

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.jacobian.active_set import PUSHES, damped_step, hold_at_limits, largest
from synovia.kernels.jacobian.selective import selective_step
from synovia.kernels.jacobian.shared import clamp_largest
from synovia.kernels.math.linear import times, times_t

TRANSPOSE, PSEUDO_INVERSE, DAMPED, SELECTIVE = 0, 1, 2, 3
SINGULAR = F(1e-3)  # regularity (radians, reaches; squared) below which damping begins
MOST_DAMPING = F(1e-4)  # at a regularity of zero
REDOS = 16  # of a step, each with more joints held


@device
def transpose_step(work, y):
    """Write dq = α Jᵀe with the α that leaves the least error: <e, J Jᵀ e> / <J Jᵀ e, J Jᵀ e> (Buss 2004, eq. 8)."""
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
    """Return 1 / trace(A⁻¹) from the factorisation A = L D Lᵀ that ``solve_ldl`` left (1 / D on the diagonal).

    It is the smallest eigenvalue to within a factor of the size, 0 for a singular A, and the same in every frame, which
    pivots are not. A is overwritten with L⁻¹: trace(A⁻¹) = Σ (L⁻¹)ij² / Di.
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

    A straight arm makes that singular. Damping comes in as the regularity d goes to zero, and is exactly zero before:
    λ = λ0 (1 - d / d0)², the rule of Nakamura & Hanafusa (1986), with d for their measure of manipulability.
    """
    damped_step(work, F(0))
    d = regularity(work.A)
    if d < SINGULAR:
        damped_step(work, MOST_DAMPING * (F(1) - d / SINGULAR) * (F(1) - d / SINGULAR))


@device
def limited_step(problem, work, room, q, method, damping, most):
    """Write the step dq of a method from J and e, clamped; what stands at a limit and would be pushed out is held.

    Clipping would lose that joint's share. Its column leaves J, and the step is solved for the rest, until it pushes
    nothing out any more. All are free again at the next step.
    """
    for redo in range(REDOS):
        if method == TRANSPOSE:
            transpose_step(work, room.b)
        elif method == PSEUDO_INVERSE:
            pseudo_inverse_step(work)
        elif method == DAMPED:
            damped_step(work, damping)
        else:
            selective_step(problem, work.J, work.e, room, most, work.dq)
        _, held = hold_at_limits(problem, q, work.J, work.dq, PUSHES * largest(work.dq), redo > 0)
        if held < 0:
            break
    clamp_largest(work.dq, most)
