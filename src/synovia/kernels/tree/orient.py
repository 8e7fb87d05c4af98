"""Joint values from wanted orientations: parents before children, each frame from where the one before stood.

A wanted joint ends a path: the joints from it up to the nearest that another path covers. A ball at the end of its
path takes the orientation in one step, inside its limit. Hinges turn by damped Gauss-Newton on the rotation vector from
now to wanted, dq = Jᵀ (J Jᵀ + λ)⁻¹ e with the columns J of their axes; those at a limit that would go further out are
held. What a path cannot give, because a limit or an axis is missing, the next path below makes up for.
"""

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.layout import (
    AXIS,
    BALL,
    BLOCK_Q,
    FIRST_Q,
    FREE,
    HINGE,
    KIND,
    LOWER,
    OFFSET,
    ORIENTATION,
    PARENT,
    RATIO,
    SPAN_END,
    SPAN_FIRST,
    UPPER,
)
from synovia.kernels.math.rotations import (
    column,
    identity,
    load_quat,
    load_rotation,
    log_rotation,
    matmul,
    matmul_t,
    matrix_quat,
    quat_conj,
    quat_matrix,
    quat_mul,
    store_quat,
    store_rotation,
    turn_z,
)
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import dot, load, norm, store
from synovia.kernels.tree.forward import Tree
from synovia.kernels.tree.variables import clamp_block

STEPS = 12
CLOSE = F(1e-9)  # radians: nothing is left to turn
SHORT = F(1e-10)  # radians of a step: what is left cannot be turned away
LARGEST = F(0.5)  # radians of one step
DAMPING = F(1e-2)  # a lost axis (three hinges in line) turns at most 5 times the error and does not flip


@inline
def joint_rotation(tree, i, q, R):
    """Return the world rotation of joint i from its parent's."""
    R = matmul(R, load_rotation(tree.fixed, i, ORIENTATION))
    kind, k = tree.ints[i, KIND], tree.ints[i, FIRST_Q]
    if kind == HINGE:
        s, c = sincos(tree.couple[i, RATIO] * q[k] + tree.couple[i, OFFSET])
        R = turn_z(R, s, c)
    elif kind == BALL:
        R = matmul(R, quat_matrix(load_quat(q, k)))
    elif kind == FREE:
        R = matmul(R, quat_matrix(load_quat(q, k + 3)))
    return R


@inline
def solve3(a, b):
    """Solve a symmetric positive definite system of three rows, a = (a00, a10, a11, a20, a21, a22), by cofactors."""
    a00, a10, a11, a20, a21, a22 = a
    x = (a11 * a22 - a21 * a21, a20 * a21 - a10 * a22, a10 * a21 - a20 * a11)
    y = (x[1], a00 * a22 - a20 * a20, a10 * a20 - a00 * a21)
    z = (x[2], y[2], a00 * a11 - a10 * a10)
    d = F(1) / (a00 * x[0] + a10 * x[1] + a20 * x[2])
    return d * dot(x, b), d * dot(y, b), d * dot(z, b)


@device
def walk(tree, paths, first, last, q, frames):
    """Write the world rotations along a path; return that of its last joint."""
    R = identity()
    for n in range(first, last):
        i = paths[n]
        if n == first:
            a = tree.ints[i, PARENT]
            R = load_rotation(frames, a, ORIENTATION) if a >= 0 else identity()
        R = joint_rotation(tree, i, q, R)
        store_rotation(frames, i, ORIENTATION, R)
    return R


@device
def turn_ball(tree, variables, limits, which, i, wanted, q, frames):
    """Turn the ball i, whose ancestors stand, to a world orientation."""
    a = tree.ints[i, PARENT]
    R = load_rotation(frames, a, ORIENTATION) if a >= 0 else identity()
    before = matrix_quat(matmul(R, load_rotation(tree.fixed, i, ORIENTATION)))
    at = variables[which[i], BLOCK_Q]
    store_quat(q, at, quat_mul(quat_conj(before), matrix_quat(wanted)))
    clamp_block(variables, limits, which[i], q)
    store_rotation(frames, i, ORIENTATION, joint_rotation(tree, i, q, R))


@device
def turn_hinges(tree, variables, limits, which, paths, first, last, wanted, q, frames, axes):
    """Turn the hinges of a path until its last joint stands as wanted, or as near as they can bring it."""
    o = F(0)
    for _ in range(STEPS):
        e = log_rotation(matmul_t(wanted, walk(tree, paths, first, last, q, frames)))
        if norm(e) < CLOSE:
            return
        a00 = a11 = a22 = DAMPING
        a10 = a20 = a21 = o
        for n in range(first, last):
            i = paths[n]
            z = (o, o, o)
            if tree.ints[i, KIND] == HINGE and which[i] >= 0:
                k = which[i]
                x = q[variables[k, BLOCK_Q]]
                z = column(load_rotation(frames, i, ORIENTATION), 2)
                g = dot(z, e)
                if ((x <= limits[k, LOWER]) & (g < o)) | ((x >= limits[k, UPPER]) & (g > o)):
                    z = (o, o, o)
            store(axes, n - first, AXIS, z)
            a00 += z[0] * z[0]
            a10 += z[1] * z[0]
            a11 += z[1] * z[1]
            a20 += z[2] * z[0]
            a21 += z[2] * z[1]
            a22 += z[2] * z[2]
        y = solve3((a00, a10, a11, a20, a21, a22), e)
        largest = o
        for n in range(first, last):
            largest = max(largest, abs(dot(load(axes, n - first, AXIS), y)))
        if largest < SHORT:
            return
        size = min(F(1), LARGEST / largest)
        for n in range(first, last):
            k = which[paths[n]]
            if tree.ints[paths[n], KIND] == HINGE and k >= 0:
                at = variables[k, BLOCK_Q]
                x = q[at] + size * dot(load(axes, n - first, AXIS), y)
                q[at] = min(max(x, limits[k, LOWER]), limits[k, UPPER])
    walk(tree, paths, first, last, q, frames)


@entry
def orient(ints, fixed, couple, variables, limits, which, paths, spans, wanted, q, frames, axes):
    """Fill q (T, nq) so that joints stand at wanted world orientations, as near as their limits allow.

    Args:
        ints: (n, 5) joints, see ``forward.Tree``.
        fixed: (n, 12) fixed transforms.
        couple: (n, 2) couplings.
        variables: (k, 3) what may move.
        limits: (k, 11) its limits.
        which: (n,) variable of each joint's rotation, -1 without.
        paths: Joints of all paths, one after the other, parents first.
        spans: (w, 2) first and past-last place of each path in ``paths``.
        wanted: (T, w, 9) world orientation of the last joint of each path, z-form.
        q: (T, nq) holds what does not turn; row 0 holds where the first frame starts.
        frames: (n, 9) scratch.
        axes: (n, 3) scratch.
    """
    tree = Tree(ints, fixed, couple)
    for t in range(q.shape[0]):
        for w in range(spans.shape[0]):
            first, last = spans[w, SPAN_FIRST], spans[w, SPAN_END]
            end = paths[last - 1]
            goal = load_rotation(wanted[t], w, ORIENTATION)
            if ints[end, KIND] == BALL or ints[end, KIND] == FREE:
                walk(tree, paths, first, last - 1, q[t], frames)
                turn_ball(tree, variables, limits, which, end, goal, q[t], frames)
            else:
                if t > 0:
                    for n in range(first, last):
                        k = which[paths[n]]
                        if ints[paths[n], KIND] == HINGE and k >= 0:
                            q[t, variables[k, BLOCK_Q]] = q[t - 1, variables[k, BLOCK_Q]]
                turn_hinges(tree, variables, limits, which, paths, first, last, goal, q[t], frames, axes)
