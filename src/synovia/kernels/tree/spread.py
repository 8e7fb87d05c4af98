"""Interpolate rotations between two joints of a chain, for a chain with another number of joints.

Let Rₐ be the rotation of one joint, R that of a later joint, and C the rotation from the first to the later joint at
rest. The chain rotates by E = (Rₐ C)ᵀ R between them. The fraction s of E gives Rₐ C Eˢ. Along a bone, only the twist
of E is used.
"""

from synovia.kernels.compiler.jit import F, entry
from synovia.kernels.layout import ORIENTATION
from synovia.kernels.math.rotations import (
    load_rotation,
    matmul,
    matrix_quat,
    quat_exp,
    quat_log,
    quat_matrix,
    rotation_of,
    store_rotation,
    transposed,
)
from synovia.kernels.math.vectors import dot, load, scale

# Values of a row: rotation C; share; axis of the twist in the frame of the later joint, 0 to use the whole rotation
BETWEEN, SHARE, TWIST_AXIS = 0, 9, 10
SPREAD_WIDTH = 13


@entry
def spread_turns(ends, numbers, out):
    """Write the interpolated rotations of k pairs of joints.

    Args:
        ends: (T, 2 k, 12) world frames of the earlier joints of all pairs, then of the later joints.
        numbers: (k, SPREAD_WIDTH) values of each pair.
        out: (T, k, 12) frames; only their rotations are written.
    """
    count = numbers.shape[0]
    for t in range(ends.shape[0]):
        for k in range(count):
            R = matmul(rotation_of(ends[t], k), load_rotation(numbers, k, BETWEEN))
            quat = matrix_quat(matmul(transposed(R), rotation_of(ends[t], count + k)))
            axis = load(numbers, k, TWIST_AXIS)
            if dot(axis, axis) > F(0):
                along = quat[0] * axis[0] + quat[1] * axis[1] + quat[2] * axis[2]
                turn = quat_log((along * axis[0], along * axis[1], along * axis[2], quat[3]))
            else:
                turn = quat_log(quat)
            turned = quat_matrix(quat_exp(scale(numbers[k, SHARE], turn)))
            store_rotation(out[t], k, ORIENTATION, matmul(R, turned))
