"""The Jacobian by partial derivatives of the transforms, with the product rule along the chain.

The frame of a goal is a product of transforms, T = B M(x) S: M is the motion of one joint, B the transforms before it
and S those after it. So ∂T/∂x = B ∂M/∂x S. The derivative of a motion is a 3x3 matrix D and a vector d. The cross
products of ``residuals.geometric_jacobian`` give the same values in less time.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_column, goal_frame, local_frame, rate
from synovia.kernels.goals.general import general_jacobian
from synovia.kernels.goals.term import NOTHING, unit
from synovia.kernels.layout import (
    BALL,
    COLUMN,
    FIRST_Q,
    FIRST_RESIDUAL,
    FREE,
    GOAL_ROW,
    HINGE,
    KIND,
    OFFSET,
    PARENT,
    PARTS,
    POSITION_WEIGHT,
    RATIO,
    ROTATION_WEIGHT,
    SLIDE,
    TRANSLATION_COLUMN,
)
from synovia.kernels.math.rotations import (
    apply,
    frame_of,
    identity,
    load_quat,
    matmul,
    matmul_t,
    quat_matrix,
    rotation_of,
)
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, scale

ZERO = (F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0))


@inline
def generator(c):
    """Return the derivative of a rotation about axis c at angle 0: the cross-product matrix of e_c."""
    o, i = F(0), F(1)
    if c == 0:
        return o, o, o, o, o, -i, o, i, o
    if c == 1:
        return o, o, i, o, o, o, -i, o, o
    return o, -i, o, i, o, o, o, o, o


@inline
def prefix_rotation(problem, frames, i):
    """Return the rotation of B: the world rotation of joint i before its motion."""
    R, a = rotation_of(problem.tree.fixed, i), problem.tree.ints[i, PARENT]
    return matmul(rotation_of(frames, a), R) if a >= 0 else R


@inline
def motion(problem, q, i):
    """Return M, the motion of joint i, as a transform (R, p)."""
    kind, at = problem.tree.ints[i, KIND], problem.tree.ints[i, FIRST_Q]
    x = (
        problem.tree.couple[i, RATIO] * q[at] + problem.tree.couple[i, OFFSET]
        if kind == HINGE or kind == SLIDE
        else F(0)
    )
    if kind == HINGE:
        s, c = sincos(x)
        return (c, -s, F(0), s, c, F(0), F(0), F(0), F(1)), NOTHING
    if kind == SLIDE:
        return identity(), (F(0), F(0), x)
    if kind == BALL:
        return quat_matrix(load_quat(q, at)), NOTHING
    if kind == FREE:
        return quat_matrix(load_quat(q, at + 3)), (q[at], q[at + 1], q[at + 2])
    return identity(), NOTHING


@device
def differentiate(problem, J, g, v, B, D, d, S, R):
    """Add ∂T/∂x = B (D, d) S to column v of goal g: the translation, and the axial vector of ∂R/∂x Rᵀ."""
    parts, k = problem.goals[g, PARTS], problem.goals[g, FIRST_RESIDUAL]
    wp, wr = problem.goal_data[g, POSITION_WEIGHT] / problem.reach, problem.goal_data[g, ROTATION_WEIGHT]
    turned = matmul(B, matmul(D, S[0]))
    moved = apply(B, add(apply(D, S[1]), d))
    # Since R Rᵀ = 1, ∂R/∂x Rᵀ is skew-symmetric: the cross-product matrix of ω.
    W = matmul_t(turned, R)
    w = (F(0.5) * (W[7] - W[5]), F(0.5) * (W[2] - W[6]), F(0.5) * (W[3] - W[1]))
    add_column(J, k, parts, v, moved, w, wp, wr)


@device
def partial_jacobian(problem, q, frames, targets, J):
    """Write the Jacobian by partial derivatives, in the units of ``residuals.jacobian``.

    General goals are differentiated as in ``residuals.jacobian``; custom goals are left out.
    """
    tree = problem.tree
    J[:, :] = F(0)
    for g in range(problem.goals.shape[0]):
        i = problem.goals[g, GOAL_ROW]
        R, _ = goal_frame(problem, frames, g)
        S = local_frame(problem, g)
        while i >= 0:
            kind, v, translation = tree.ints[i, KIND], tree.ints[i, COLUMN], tree.ints[i, TRANSLATION_COLUMN]
            B = prefix_rotation(problem, frames, i)
            M, m = motion(problem, q, i)
            if kind == HINGE and v >= 0:  # ∂/∂x of (cos x, -sin x; sin x, cos x)
                sine, cosine = rate(problem, i) * M[3], rate(problem, i) * M[0]
                D = (-sine, -cosine, F(0), cosine, -sine, F(0), F(0), F(0), F(0))
                differentiate(problem, J, g, v, B, D, NOTHING, S, R)
            elif kind == SLIDE and v >= 0:
                differentiate(problem, J, g, v, B, ZERO, (F(0), F(0), rate(problem, i)), S, R)
            elif (kind == BALL or kind == FREE) and v >= 0:  # q ← q · exp(w): ∂M/∂w at w = 0
                for c in range(3):
                    differentiate(problem, J, g, v + c, B, matmul(M, generator(c)), NOTHING, S, R)
            if translation >= 0:
                for c in range(3):
                    differentiate(problem, J, g, translation + c, B, ZERO, scale(problem.reach, unit(c)), S, R)
            A, a = frame_of(tree.fixed, i)
            S = matmul(A, matmul(M, S[0])), add(a, apply(A, add(m, apply(M, S[1]))))
            i = tree.ints[i, PARENT]
    general_jacobian(problem.general, problem, q, frames, targets, J)
