"""Joint values from target orientations: solve parents before children, and start each frame at the previous one.

Each joint with a target ends a path, which begins below the nearest joint of another path. A ball at the end of its
path takes the orientation in one step, within its limit. Hinges turn by damped Gauss-Newton steps on the orientation
error e (a rotation vector), dq = Jᵀ (J Jᵀ + λ)⁻¹ e. The columns of J are the hinge axes; a hinge that a step would
push against its limit is held. If a path misses its target, the next path below compensates for the remaining error.
"""

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.layout import (
    AXIS,
    BALL,
    BLOCK_Q,
    FREE,
    HINGE,
    KIND,
    LOWER,
    ORIENTATION,
    PARENT,
    SPAN_END,
    SPAN_FIRST,
    UPPER,
)
from synovia.kernels.math.rotations import (
    column,
    identity,
    log_rotation,
    matmul,
    matmul_t,
    matrix_quat,
    quat_conj,
    quat_mul,
    rotation_of,
    store_quat,
    store_rotation,
)
from synovia.kernels.math.vectors import dot, load, norm, store
from synovia.kernels.tree.forward import Tree, joint_frame
from synovia.kernels.tree.variables import clamp_block

STEPS = 12  # largest number of Gauss-Newton steps
CLOSE = F(1e-9)  # orientation error (radians) that ends the iteration
SHORT = F(1e-10)  # a step with a smaller largest change (radians) ends the iteration: the error cannot be reduced
LARGEST = F(0.5)  # largest change of a hinge in one step, radians
DAMPING = F(1e-2)  # λ; with it, hinges rotate at most 5 times the error if an axis is lost (three hinges in line)


@inline
def joint_rotation(tree, i, q, R):
    """Return the world rotation of joint i from the rotation R of its parent."""
    return joint_frame(tree, i, q, R, (F(0), F(0), F(0)))[0]


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
    """Write the world rotations along a path and return the last one."""
    R = identity()
    for n in range(first, last):
        i = paths[n]
        if n == first:
            a = tree.ints[i, PARENT]
            R = rotation_of(frames, a) if a >= 0 else identity()
        R = joint_rotation(tree, i, q, R)
        store_rotation(frames, i, ORIENTATION, R)
    return R


@device
def turn_ball(tree, variables, limits, turn_variable, i, wanted, q, frames):
    """Rotate the ball i to a world orientation. The frames of its ancestors are up to date."""
    a = tree.ints[i, PARENT]
    R = rotation_of(frames, a) if a >= 0 else identity()
    before = matrix_quat(matmul(R, rotation_of(tree.fixed, i)))
    at = variables[turn_variable[i], BLOCK_Q]
    store_quat(q, at, quat_mul(quat_conj(before), matrix_quat(wanted)))
    clamp_block(variables, limits, turn_variable[i], q)
    store_rotation(frames, i, ORIENTATION, joint_rotation(tree, i, q, R))


@device
def turn_hinges(body, path, wanted, q, frames, axes):
    """Turn the hinges of a path until its last joint has the target orientation, or as close to it as they get.

    ``body`` is (tree, variables, limits, turn_variable), see ``orient``.
    """
    tree, variables, limits, turn_variable = body
    count = path.shape[0]
    o = F(0)
    for _ in range(STEPS):
        e = log_rotation(matmul_t(wanted, walk(tree, path, 0, count, q, frames)))
        if norm(e) < CLOSE:
            return
        a00 = a11 = a22 = DAMPING
        a10 = a20 = a21 = o
        for n in range(count):
            i = path[n]
            z = (o, o, o)
            if tree.ints[i, KIND] == HINGE and turn_variable[i] >= 0:
                k = turn_variable[i]
                x = q[variables[k, BLOCK_Q]]
                z = column(rotation_of(frames, i), 2)
                g = dot(z, e)
                if ((x <= limits[k, LOWER]) & (g < o)) | ((x >= limits[k, UPPER]) & (g > o)):
                    z = (o, o, o)
            store(axes, n, AXIS, z)
            a00 += z[0] * z[0]
            a10 += z[1] * z[0]
            a11 += z[1] * z[1]
            a20 += z[2] * z[0]
            a21 += z[2] * z[1]
            a22 += z[2] * z[2]
        y = solve3((a00, a10, a11, a20, a21, a22), e)
        largest = o
        for n in range(count):
            largest = max(largest, abs(dot(load(axes, n, AXIS), y)))
        if largest < SHORT:
            return
        size = min(F(1), LARGEST / largest)
        for n in range(count):
            k = turn_variable[path[n]]
            if tree.ints[path[n], KIND] == HINGE and k >= 0:
                at = variables[k, BLOCK_Q]
                x = q[at] + size * dot(load(axes, n, AXIS), y)
                q[at] = min(max(x, limits[k, LOWER]), limits[k, UPPER])
    walk(tree, path, 0, count, q, frames)


@entry
def orient(ints, fixed, couple, variables, limits, turn_variable, paths, spans, wanted, q, frames, axes):
    """Fill q (T, nq) so that joints take target world orientations, as closely as their limits allow.

    Args:
        ints: (n, 6) joints, see ``forward.Tree``.
        fixed: (n, 12) fixed transforms.
        couple: (n, 2) couplings.
        variables: (k, 3) joint variables.
        limits: (k, 11) limits of the variables.
        turn_variable: (n,) variable of each joint's rotation, -1 without one.
        paths: Joints of all paths, one after the other, parents first.
        spans: (w, 2) first and past-last index of each path in ``paths``.
        wanted: (T, w, 9) target world orientation of the last joint of each path, z-form.
        q: (T, nq) holds the values of all other joints; row 0 also holds the start of the first frame.
        frames: (n, 9) scratch.
        axes: (n, 3) scratch.
    """
    tree = Tree(ints, fixed, couple)
    for t in range(q.shape[0]):
        for w in range(spans.shape[0]):
            first, last = spans[w, SPAN_FIRST], spans[w, SPAN_END]
            end = paths[last - 1]
            goal = rotation_of(wanted[t], w)
            if ints[end, KIND] == BALL or ints[end, KIND] == FREE:
                walk(tree, paths, first, last - 1, q[t], frames)
                turn_ball(tree, variables, limits, turn_variable, end, goal, q[t], frames)
            else:
                if t > 0:
                    for n in range(first, last):
                        k = turn_variable[paths[n]]
                        if ints[paths[n], KIND] == HINGE and k >= 0:
                            q[t, variables[k, BLOCK_Q]] = q[t - 1, variables[k, BLOCK_Q]]
                body = tree, variables, limits, turn_variable
                turn_hinges(body, paths[first:last], goal, q[t], frames, axes)
