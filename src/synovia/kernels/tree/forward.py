"""Forward kinematics of a tree in z-form: every hinge turns about its local z axis, and every slide moves along it.

A rotation A with A z = axis is folded into the fixed transforms: rest · A before the motion, Aᵀ after it. So no
Rodrigues formula is needed, and column 2 of a joint's world frame is its axis.
"""

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.records import record, tables_of
from synovia.kernels.layout import BALL, FIRST_Q, FREE, HINGE, KIND, OFFSET, ORIENTATION, PARENT, RATIO, SLIDE
from synovia.kernels.math.rotations import (
    apply,
    column,
    frame_of,
    identity,
    load_quat,
    matmul,
    matmul_t,
    origin_of,
    quat_matrix,
    rotation_of,
    store_frame,
    store_rotation,
    turn_z,
)
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, axpy

Tree = record("Tree", tables_of("tree"))


@inline
def joint_frame(tree, i, q, R, p):
    """Return the world frame of joint i from its parent's world frame (R, p)."""
    p = add(p, apply(R, origin_of(tree.fixed, i)))
    R = matmul(R, rotation_of(tree.fixed, i))
    kind = tree.ints[i, KIND]
    k = tree.ints[i, FIRST_Q]
    if kind == HINGE:
        s, c = sincos(tree.couple[i, RATIO] * q[k] + tree.couple[i, OFFSET])
        R = turn_z(R, s, c)
    elif kind == BALL:
        R = matmul(R, quat_matrix(load_quat(q, k)))
    elif kind == SLIDE:
        p = axpy(tree.couple[i, RATIO] * q[k] + tree.couple[i, OFFSET], column(R, 2), p)
    elif kind == FREE:
        p = add(p, apply(R, (q[k], q[k + 1], q[k + 2])))
        R = matmul(R, quat_matrix(load_quat(q, k + 3)))
    return R, p


@inline
def world_frame(tree, i, q, frames):
    """Return the world frame of joint i; the frame of its parent is in ``frames``."""
    a = tree.ints[i, PARENT]
    if a < 0:
        return joint_frame(tree, i, q, identity(), (F(0), F(0), F(0)))
    R, p = frame_of(frames, a)
    return joint_frame(tree, i, q, R, p)


@inline
def translation_axes(tree, i, q, R):
    """Return a matrix with the world axes of the translation of free joint i in its columns; R is its world rotation.

    These are the axes of the joint before its own rotation.
    """
    return matmul_t(R, quat_matrix(load_quat(q, tree.ints[i, FIRST_Q] + 3)))


@device
def forward(tree, q, frames):
    """Write the world frames (n, 12) of all joints at the joint values q."""
    for i in range(tree.ints.shape[0]):
        R, p = world_frame(tree, i, q, frames)
        store_frame(frames, i, R, p)


@entry
def forward_many(ints, fixed, couple, unfold, q, frames):
    """Write the world frames (T, n, 12), in the joint frames of the file, at each row of q (T, nq).

    ``ints``, ``fixed`` and ``couple`` are the arrays of ``Tree``. ``unfold[i]`` is Aᵀ, from the z-form frame of joint i
    back to its frame in the file.
    """
    tree = Tree(ints, fixed, couple)
    for t in range(q.shape[0]):
        forward(tree, q[t], frames[t])
        for i in range(ints.shape[0]):
            store_rotation(frames[t], i, ORIENTATION, matmul(rotation_of(frames[t], i), rotation_of(unfold, i)))
