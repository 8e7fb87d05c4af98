"""Retarget the orientations of body parts from one body to another, with the swing planes of limbs.

If a part of the source has the world rotation R, the target's part gets the rotation A R M, where A leads from the
world of the source to that of the target, and M from the rest pose of the source to that of the target. Then the upper
and lower part of a limb of hinges are rotated so that the hinge between them is normal to the plane of both bones. If
the limb is straight, this plane is undefined. Then the angle about the upper bone, from the hinge of the source to that
normal, is interpolated between the clear poses before and after, in which the limb is bent enough. If no clear pose
follows, as in a body that is followed pose by pose, the angle is that of the last clear pose.
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, device, entry, inline
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
STATE = 61  # from here on, values kept from call to call; zeros before the first pose
# Angle of the last clear pose, and whether there is one; angle of the last pose that is surely bent to the correct
# side, and the largest sine of a bend so far
KEPT_ANGLE, HAS_KEPT, KNOWN_ANGLE, KNOWN_BEND = 61, 62, 63, 64
LIMB_WIDTH = 65
# Table ``own``, after a rotation: row of a part in the source, or the part that gives a path its orientation
GIVEN_BY = 9
OWN_WIDTH = 10
# Limbs: values of each pose: angle and sine of the bend in the source; angle in the target; 1 if the pose is marked;
# the target's angle, interpolated between marked poses
ANGLE, BEND, TURNED, MARKED, BETWEEN = 0, 1, 2, 3, 4
POSE_WIDTH = 5


@inline
def wrapped(angle):
    """Return an angle plus a multiple of 2 pi, in [-pi, pi]."""
    return angle - F(2.0 * math.pi) * np.round(angle / F(2.0 * math.pi))


@inline
def framed(x, y):
    """Return the rotation with first column x, and with the normalised part of y normal to x as second column."""
    y = normalize(reject(y, x), (F(0), F(0), F(0)))
    z = cross(x, y)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@device
def interpolate(poses, known, last):
    """Interpolate the angles TURNED of the marked poses along the shorter arcs, and write them to the column BETWEEN.

    Before the first and after the last marked pose, the angles are constant.

    Args:
        poses: (T, POSE_WIDTH) values of the poses.
        known: Whether there is a marked pose before the first one.
        last: The angle of that pose, radians.

    Returns:
        (whether a pose so far was marked, the angle of the last marked one).
    """
    count, first, at = poses.shape[0], -1, 0
    if not known:
        last = F(0)
    while at < count:
        end = at
        while end < count and poses[end, MARKED] == F(0):
            end += 1
        value = last
        if end < count:
            value = last + wrapped(poses[end, TURNED] - last) if known else poses[end, TURNED]
        for t in range(at, min(end + 1, count)):
            share = F(t - first) / F(end - first) if known else F(1)
            poses[t, BETWEEN] = last + share * (value - last) if t < end else value
        if end < count:
            known, last, first = True, value, end
        at = end + 1
    return known, last


@device
def choose_angles(numbers, k, poses):
    """Write the angles of the plane of limb k about its upper bone to the column TURNED, and store the limb's state.

    Args:
        numbers: (limbs, LIMB_WIDTH) values of the limbs.
        k: The limb.
        poses: (T, POSE_WIDTH) values of the poses; the columns ANGLE and BEND are given.
    """
    count, clear, straight = poses.shape[0], numbers[k, CLEAR], numbers[k, STRAIGHT]
    sure = max(clear, numbers[k, SURE])
    most = numbers[k, KNOWN_BEND]
    for t in range(count):
        if poses[t, BEND] > most:
            most = poses[t, BEND]
    least = sure if most >= sure else max(clear, numbers[k, ALMOST_SURE])
    for t in range(count):
        poses[t, TURNED] = poses[t, ANGLE]
        poses[t, MARKED] = F(1) if poses[t, BEND] >= least else F(0)
    known, angle = interpolate(poses, numbers[k, KNOWN_BEND] >= least, numbers[k, KNOWN_ANGLE])
    if known:
        numbers[k, KNOWN_ANGLE], numbers[k, KNOWN_BEND] = angle, most
    for t in range(count):
        if poses[t, BEND] < sure and math.cos(poses[t, ANGLE] - poses[t, BETWEEN]) < F(0):
            poses[t, TURNED] += F(math.pi)  # the limb is slightly bent to the wrong side
        poses[t, MARKED] = F(1) if poses[t, BEND] >= clear else F(0)
    known, angle = interpolate(poses, numbers[k, HAS_KEPT] > F(0), numbers[k, KEPT_ANGLE])
    if known:
        numbers[k, HAS_KEPT], numbers[k, KEPT_ANGLE] = F(1), angle
    for t in range(count):
        share = min(max((poses[t, BEND] - straight) / (clear - straight), F(0)), F(1))
        between = poses[t, BETWEEN]
        poses[t, TURNED] = between + share * wrapped(poses[t, TURNED] - between)


@device
def limb_plane(frames, wanted, across, ints, numbers, k):
    """Return the directions of both bones of limb k, and the hinge axis as in the source, normal to the first bone.

    Args:
        frames: (n, 12) world frames of the source.
        wanted: (parts, 9) world orientations of the parts.
        across: Rotation from the world of the source to that of the target.
        ints: (limbs, LIMB_INTS) integers of the limbs.
        numbers: (limbs, LIMB_WIDTH) values of the limbs.
        k: The limb.
    """
    axis, foot = load(numbers, k, HINGE_AXIS), ints[k, FOOT_PART]
    turn = matmul_t(rotation_of(wanted, ints[k, UPPER_PART]), load_rotation(numbers, k, UPPER_REST))
    below = matmul_t(rotation_of(wanted, ints[k, LOWER_PART]), load_rotation(numbers, k, LOWER_REST))
    one, two = apply(turn, load(numbers, k, UPPER_BONE)), apply(below, load(numbers, k, LOWER_BONE))
    if ints[k, START_ROW] >= 0:  # bones of length 0 follow their parts
        middle = origin_of(frames, ints[k, MIDDLE_ROW])
        R, p = frame_of(frames, ints[k, END_ROW])
        a = sub(middle, origin_of(frames, ints[k, START_ROW]))
        b = sub(add(p, apply(R, load(numbers, k, END_POINT))), middle)
        one, two = normalize(apply(across, a), one), normalize(apply(across, b), two)
    hinge = apply(turn, axis)
    if foot >= 0:
        hinge = apply(matmul_t(rotation_of(wanted, foot), load_rotation(numbers, k, FOOT_REST)), axis)
    return one, two, normalize(reject(hinge, one), perpendicular(one))


@entry
def swing_turns(frames, between, own, limbs, numbers, poses, wanted, out):
    """Write the target orientations of all parts, and those of the ends of the paths that rotate them.

    Args:
        frames: (T, n, 12) world frames of the source.
        between: (T, k, 12) rotations between joints of the source, whose rows follow those of ``frames``.
        own: (parts + 1 + paths, OWN_WIDTH) M of each part, then A, then the rotation from a part to the end of each
            path.
        limbs: (limbs, LIMB_INTS) integers of limbs of hinges.
        numbers: (limbs, LIMB_WIDTH) values of these limbs, with their state before the first of these poses.
        poses: (limbs, T, POSE_WIDTH), written.
        wanted: (T, parts, 9) world orientations of the parts.
        out: (T, paths, 9) orientations of the ends of the paths, z-form.
    """
    count, parts, joints = frames.shape[0], wanted.shape[1], frames.shape[1]
    across = load_rotation(own, parts, 0)
    for t in range(count):
        for k in range(parts):
            row = np.int64(own[k, GIVEN_BY])
            R = rotation_of(frames[t], row) if row < joints else rotation_of(between[t], row - joints)
            store_rotation(wanted[t], k, ORIENTATION, matmul(across, matmul(R, load_rotation(own, k, 0))))
    for k in range(limbs.shape[0]):
        upper, lower = limbs[k, UPPER_PART], limbs[k, LOWER_PART]
        for t in range(count):
            one, two, hinge = limb_plane(frames[t], wanted[t], across, limbs, numbers, k)
            normal = cross(one, two)
            poses[k, t, ANGLE] = math.atan2(dot(cross(one, hinge), normal), dot(hinge, normal))
            poses[k, t, BEND] = norm(normal)
        choose_angles(numbers, k, poses[k])
        for t in range(count):
            one, two, hinge = limb_plane(frames[t], wanted[t], across, limbs, numbers, k)
            angle = poses[k, t, TURNED]
            plane = add(scale(math.cos(angle), hinge), scale(math.sin(angle), cross(one, hinge)))
            R = matmul(framed(one, plane), load_rotation(numbers, k, UPPER_FRAME))
            store_rotation(wanted[t], upper, ORIENTATION, R)
            R = matmul(framed(two, plane), load_rotation(numbers, k, LOWER_FRAME))
            store_rotation(wanted[t], lower, ORIENTATION, R)
    for t in range(count):
        for k in range(out.shape[1]):
            part = np.int64(own[parts + 1 + k, GIVEN_BY])
            R = matmul(rotation_of(wanted[t], part), load_rotation(own, parts + 1 + k, 0))
            store_rotation(out[t], k, ORIENTATION, R)
