"""Selectively damped least squares (Buss & Kim 2005): every singular vector is damped by what it moves.

The singular value decomposition J = U Σ Vᵀ comes from one-sided Jacobi rotations (Hestenes 1958): rows of J are turned
in pairs until all are orthogonal; then row i is σi viᵀ, and the turns are U. Small singular values stay exact, which
those of J Jᵀ would not.
"""

import math

from synovia.kernels.compiler.jit import F, device, device_dot
from synovia.kernels.jacobian.shared import clamp_largest, goal_rows

SWEEPS = 30  # a handful is usual
ORTHOGONAL = F(1e-14)  # cosine of two rows
NOTHING = F(1e-20)  # squared singular value, radians and reaches, that is rounding


@device_dot
def turn_rows(A, i, j, c, s):
    """Turn rows i and j of A by the angle with cosine c and sine s."""
    for k in range(A.shape[1]):
        u, v = A[i, k], A[j, k]
        A[i, k] = c * u - s * v
        A[j, k] = s * u + c * v


@device_dot
def decompose(W, Ut, m):
    """Turn the first m rows of W until they are orthogonal: W = J becomes Σ Vᵀ, and Ut becomes Uᵀ (a row is one ui)."""
    for i in range(m):
        for j in range(Ut.shape[1]):
            Ut[i, j] = F(i == j)
    for _ in range(SWEEPS):
        turned = False
        for i in range(m):
            for j in range(i + 1, m):
                a, b, d = F(0), F(0), F(0)
                for k in range(W.shape[1]):
                    a += W[i, k] * W[i, k]
                    b += W[j, k] * W[j, k]
                    d += W[i, k] * W[j, k]
                if abs(d) <= ORTHOGONAL * math.sqrt(a * b) or min(a, b) <= NOTHING:
                    continue
                turned = True
                z = (b - a) / (F(2) * d)
                t = math.copysign(F(1), z) / (abs(z) + math.sqrt(F(1) + z * z))
                c = F(1) / math.sqrt(F(1) + t * t)
                turn_rows(W, i, j, c, c * t)
                turn_rows(Ut, i, j, c, c * t)
        if not turned:
            break


@device
def by_goal(problem, x):
    """Return the sum over all goals of the length of their part of a residual."""
    total = F(0)
    for g in range(problem.goals.shape[0]):
        first, last = goal_rows(problem, g)
        s = F(0)
        for k in range(first, last):
            s += x[k] * x[k]
        total += math.sqrt(s)
    return total


@device
def selective_step(problem, J, e, room, most, dq):
    """Write the step: for every singular vector (ui·e / σi) vi, clamped to γi, and their sum clamped to γmax.

    Nᵢ is how far a unit error along ui moves all end effectors, Mᵢ how far they would go if the shares of the joints
    did not cancel (Buss & Kim 2005, eqs. 12 and 13); γi = min(1, Nᵢ / Mᵢ) γmax (eq. 14).
    """
    m, n = J.shape
    W, Ut, rho = room.W, room.U, room.z
    for j in range(n):
        for i in range(m):
            room.b[i] = J[i, j]
            W[i, j] = J[i, j]
        rho[j] = by_goal(problem, room.b)  # Σₗ ‖∂sₗ/∂θⱼ‖
        dq[j] = F(0)
    decompose(W, Ut, m)
    for i in range(m):
        squared, shares, widest = F(0), F(0), F(0)
        for j in range(n):
            squared += W[i, j] * W[i, j]
            shares += abs(W[i, j]) * rho[j]
            widest = max(widest, abs(W[i, j]))
        if squared <= NOTHING:
            continue
        along = F(0)
        for k in range(m):
            along += Ut[i, k] * e[k]
        N = by_goal(problem, Ut[i])
        M = shares / squared  # a row of W is σi viᵀ, so that this is Σⱼ |vij| ρj / σi
        gamma = min(F(1), N / M) * most
        turn = along / squared  # likewise: turn W[i] = (ui·e / σi) vi
        turn *= min(F(1), gamma / max(abs(turn) * widest, F(1e-300)))
        for j in range(n):
            dq[j] += turn * W[i, j]
    clamp_largest(dq, most)
