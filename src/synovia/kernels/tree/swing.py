"""Retarget the orientations of body parts from one body to another, with the swing planes of limbs.

If a part of the source has the world rotation R, the target's part gets the rotation A R M, where A leads from the
world of the source to that of the target, and M from the rest pose of the source to that of the target. Then the upper
and lower part of a limb of hinges are rotated so that the hinge between them is normal to the plane of both bones. If
the limb is straight, this plane is undefined. Then the angle about the upper bone, from the hinge of the source to that
normal, is the angle of the last clear pose.
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, entry, inline
from synovia.kernels.layout import ORIENTATION
from synovia.kernels.math.rotations import (
    apply,
    frame_of,
    load_rotation,
    matmul,
    matmul_t,
    origin_of,
    rotation_of,
    store_rotation,
)
from synovia.kernels.math.vectors import add, cross, dot, load, norm, normalize, perpendicular, reject, scale, sub

# Limbs: integers of a row. Rows of the source are -1 for a limb that follows the orientations of its parts.
UPPER_PART, LOWER_PART, FOOT_PART = 0, 1, 2  # indices in the list of parts; FOOT_PART is -1 without a foot
START_ROW, MIDDLE_ROW, END_ROW = 3, 4, 5
LIMB_INTS = 6
# Limbs: values of a row
HINGE_AXIS = 0
UPPER_REST, LOWER_REST, FOOT_REST = 3, 12, 21
UPPER_BONE, LOWER_BONE = 30, 33
UPPER_FRAME, LOWER_FRAME = 36, 45  # rotation from the frame of bone and hinge to the frame of the part
END_POINT = 54  # end of the lower bone, in the frame of END_ROW
STRAIGHT, CLEAR = 57, 58  # sines of the bend: below STRAIGHT the limb is straight; above CLEAR its plane is defined
SURE, ALMOST_SURE = 59, 60  # sines of the bend that no limb reaches on its wrong side
LIMB_WIDTH = 61
# Limbs: state stored from pose to pose
KEPT_ANGLE, KNOWN_ANGLE, KNOWN_BEND = 0, 1, 2
STATE_WIDTH = 3


@inline
def wrapped(angle):
    """Return an angle in [-pi, pi]."""
    return angle - F(2.0 * math.pi) * np.round(angle / F(2.0 * math.pi))


@inline
def framed(x, y):
    """Return the rotation with first column x, and with the normalised part of y normal to x as second column."""
    y = normalize(reject(y, x), (F(0), F(0), F(0)))
    z = cross(x, y)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@inline
def angle_in_plane(numbers, state, k, angle, bend):
    """Return the angle about the upper bone to the plane of the limb k, and store the state for the next pose."""
    sure = max(numbers[k, CLEAR], numbers[k, SURE])
    if bend >= sure or (bend >= max(numbers[k, CLEAR], numbers[k, ALMOST_SURE]) and state[k, KNOWN_BEND] < sure):
        state[k, KNOWN_ANGLE] = angle
        state[k, KNOWN_BEND] = max(bend, state[k, KNOWN_BEND])
    elif bend < sure and math.cos(angle - state[k, KNOWN_ANGLE]) < F(0):
        angle += F(math.pi)  # the limb is slightly bent to the wrong side
    kept = state[k, KEPT_ANGLE]
    way = wrapped(angle - kept)
    share = min(max((bend - numbers[k, STRAIGHT]) / (numbers[k, CLEAR] - numbers[k, STRAIGHT]), F(0)), F(1))
    if share >= F(1):
        state[k, KEPT_ANGLE] = kept + way
    return kept + share * way


@entry
def swing_turns(frames, rows, own, limbs, numbers, state, wanted, out):
    """Write the target orientations of all parts, and those of the ends of the paths that rotate them.

    Args:
        frames: (n, 12) world frames of the source.
        rows: Row of each part in the source, then the part that gives each path its orientation.
        own: (parts + 1 + paths, 9) M of each part, then A, then the rotation from a part to the end of each path.
        limbs: (limbs, LIMB_INTS) integers of limbs of hinges.
        numbers: (limbs, LIMB_WIDTH) values of these limbs.
        state: (limbs, STATE_WIDTH) state of the last pose; zeros before the first pose.
        wanted: (parts, 9) world orientations of the parts.
        out: (1, paths, 9) orientations of the ends of the paths, z-form.
    """
    parts = wanted.shape[0]
    across = load_rotation(own, parts, 0)
    for k in range(parts):
        R = rotation_of(frames, rows[k])
        store_rotation(wanted, k, ORIENTATION, matmul(across, matmul(R, load_rotation(own, k, 0))))
    for k in range(limbs.shape[0]):
        upper, lower, foot = limbs[k, UPPER_PART], limbs[k, LOWER_PART], limbs[k, FOOT_PART]
        axis = load(numbers, k, HINGE_AXIS)
        turn = matmul_t(rotation_of(wanted, upper), load_rotation(numbers, k, UPPER_REST))
        below = matmul_t(rotation_of(wanted, lower), load_rotation(numbers, k, LOWER_REST))
        one, two = apply(turn, load(numbers, k, UPPER_BONE)), apply(below, load(numbers, k, LOWER_BONE))
        if limbs[k, START_ROW] >= 0:  # bones of length 0 follow their parts
            middle = origin_of(frames, limbs[k, MIDDLE_ROW])
            R, p = frame_of(frames, limbs[k, END_ROW])
            a = sub(middle, origin_of(frames, limbs[k, START_ROW]))
            b = sub(add(p, apply(R, load(numbers, k, END_POINT))), middle)
            one, two = normalize(apply(across, a), one), normalize(apply(across, b), two)
        hinge = apply(turn, axis)
        if foot >= 0:
            hinge = apply(matmul_t(rotation_of(wanted, foot), load_rotation(numbers, k, FOOT_REST)), axis)
        hinge = normalize(reject(hinge, one), perpendicular(one))
        side = cross(one, hinge)
        normal = cross(one, two)
        angle = angle_in_plane(numbers, state, k, math.atan2(dot(side, normal), dot(hinge, normal)), norm(normal))
        plane = add(scale(math.cos(angle), hinge), scale(math.sin(angle), side))
        store_rotation(wanted, upper, ORIENTATION, matmul(framed(one, plane), load_rotation(numbers, k, UPPER_FRAME)))
        store_rotation(wanted, lower, ORIENTATION, matmul(framed(two, plane), load_rotation(numbers, k, LOWER_FRAME)))
    for k in range(out.shape[1]):
        R = matmul(rotation_of(wanted, rows[parts + k]), load_rotation(own, parts + 1 + k, 0))
        store_rotation(out[0], k, ORIENTATION, R)
