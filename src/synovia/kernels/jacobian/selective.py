"""Selectively damped least squares (Buss & Kim 2005): each singular vector has its own damping.

The singular value decomposition J = U Σ Vᵀ comes from one-sided Jacobi rotations (Hestenes 1958). They rotate pairs of
rows of J until all rows are orthogonal; then row i is σi viᵀ, and the product of the rotations is U. Small singular
values stay accurate, which is not true of a decomposition of J Jᵀ.
"""

import math

from synovia.kernels.compiler.jit import F, device, device_dot
from synovia.kernels.jacobian.shared import clamp_largest, goal_rows

SWEEPS = 30  # largest number of sweeps; five are usual
ORTHOGONAL = F(1e-14)  # two rows are orthogonal if their cosine is below this
ZERO_SINGULAR = F(1e-20)  # smaller squared singular values (radians and length scales) are rounding


@device_dot
def rotate_rows(A, i, j, c, s):
    """Rotate rows i and j of A by the angle with cosine c and sine s."""
    for k in range(A.shape[1]):
        u, v = A[i, k], A[j, k]
        A[i, k] = c * u - s * v
        A[j, k] = s * u + c * v


@device_dot
def decompose(W, Ut, m):
    """Rotate the first m rows of W until they are orthogonal: W = J becomes Σ Vᵀ; write Uᵀ to Ut (row i is ui)."""
    for i in range(m):
        for j in range(Ut.shape[1]):
            Ut[i, j] = F(i == j)
    for _ in range(SWEEPS):
        rotated = False
        for i in range(m):
            for j in range(i + 1, m):
                a, b, d = F(0), F(0), F(0)
                for k in range(W.shape[1]):
                    a += W[i, k] * W[i, k]
                    b += W[j, k] * W[j, k]
                    d += W[i, k] * W[j, k]
                if abs(d) <= ORTHOGONAL * math.sqrt(a * b) or min(a, b) <= ZERO_SINGULAR:
                    continue
                rotated = True
                z = (b - a) / (F(2) * d)
                t = math.copysign(F(1), z) / (abs(z) + math.sqrt(F(1) + z * z))
                c = F(1) / math.sqrt(F(1) + t * t)
                rotate_rows(W, i, j, c, c * t)
                rotate_rows(Ut, i, j, c, c * t)
        if not rotated:
            break


@device
def sum_goal_norms(problem, x):
    """Return the sum of the lengths of all goals' residuals in x."""
    total = F(0)
    for g in range(problem.goals.shape[0]):
        first, last = goal_rows(problem, g)
        s = F(0)
        for k in range(first, last):
            s += x[k] * x[k]
        total += math.sqrt(s)
    return total


@device
def selective_step(problem, J, e, scratch, max_turn, dq):
    """Write the step: the sum over singular vectors of (ui·e / σi) vi clamped to γi, clamped to γmax.

    Nᵢ is the distance that a unit error along ui moves all end effectors. Mᵢ is the distance if the contributions of
    the joints did not cancel (Buss & Kim 2005, eqs. 12 and 13). γi = min(1, Nᵢ / Mᵢ) γmax (eq. 14).
    """
    m, n = J.shape
    W, Ut, rho = scratch.W, scratch.U, scratch.z
    for j in range(n):
        for i in range(m):
            scratch.b[i] = J[i, j]
            W[i, j] = J[i, j]
        rho[j] = sum_goal_norms(problem, scratch.b)  # Σₗ ‖∂sₗ/∂θⱼ‖
        dq[j] = F(0)
    decompose(W, Ut, m)
    for i in range(m):
        squared, shares, largest = F(0), F(0), F(0)
        for j in range(n):
            squared += W[i, j] * W[i, j]
            shares += abs(W[i, j]) * rho[j]
            largest = max(largest, abs(W[i, j]))
        if squared <= ZERO_SINGULAR:
            continue
        projection = F(0)
        for k in range(m):
            projection += Ut[i, k] * e[k]
        N = sum_goal_norms(problem, Ut[i])
        M = shares / squared  # a row of W is σi viᵀ, so that this is Σⱼ |vij| ρj / σi
        gamma = min(F(1), N / M) * max_turn
        turn = projection / squared  # so that turn W[i] = (ui·e / σi) vi
        turn *= min(F(1), gamma / max(abs(turn) * largest, F(1e-300)))
        for j in range(n):
            dq[j] += turn * W[i, j]
    clamp_largest(dq, max_turn)
