"""Bend straight limbs a little to the correct side, because a straight limb may bend to any side.

A limb is two bones and the joint between them, a hinge or a ball. Let u and w be the directions of the upper and the
lower bone in the frame of that joint before its motion, and a the axis about which the limb should bend. The limb is
straight if |u × w| is small, and its bend is a·(u × w).

Each limb has a row in ``places`` and a row in ``shapes``.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.math.rotations import (
    load_quat,
    quat_apply,
    quat_between,
    quat_exp,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.vectors import axpy, cross, dot, load, norm, scale
from synovia.kernels.tree.variables import clamp

# Columns of ``places`` and ``shapes``
ELEMENT, IS_HINGE = 0, 1  # joint between the bones: its first element of q; 1 for a hinge, 0 for a ball
CARRIER_BALL = 2  # first element in q of the ball that rotates the upper bone, -1 if no movable ball does
LIMB_PLACE_WIDTH = 3
# directions in the frame of the joint between the bones, before its motion: upper bone, lower bone at joint value 0,
# axis of the bend, axis of the hinge
UPPER_BONE, LOWER_BONE, AXIS, HINGE_AXIS = 0, 3, 6, 9
CARRIER_AXIS = 12  # axis of the bend, in the frame after the motion of the ball of CARRIER_BALL
BONE_RATIO = 15  # length of the lower bone, relative to the upper bone
LEAST_SHARE = 16  # smallest fraction of the bend about the axis for which the limb bends to the correct side
LIMB_SHAPE_WIDTH = 17
STRAIGHT_LIMB = F(0.02)  # sine of the angle between the bones below which a limb is straight


@inline
def lower_bone(places, shapes, k, q):
    """Return the direction of the lower bone of limb k at q, in the frame of its joint before the joint's motion."""
    at, v = places[k, ELEMENT], load(shapes, k, LOWER_BONE)
    if places[k, IS_HINGE] == 0:
        return quat_apply(load_quat(q, at), v)
    h = load(shapes, k, HINGE_AXIS)
    c, s = math.cos(q[at]), math.sin(q[at])
    return axpy(dot(h, v) * (F(1) - c), h, axpy(s, cross(h, v), scale(c, v)))


@device
def bend_of(places, shapes, k, q, straight):
    """Return the bend of limb k about its axis and about any axis, as sines, and whether the limb is straight."""
    u, w = load(shapes, k, UPPER_BONE), lower_bone(places, shapes, k, q)
    n = cross(u, w)
    size = norm(n)
    return dot(n, load(shapes, k, AXIS)), size, size < straight and dot(u, w) > F(0)


@entry
def bend_shares(places, shapes, least, starts, q, out):
    """Write to ``out`` (T, k) the fraction of each limb's bend in q that is about its axis: -1 (wrong side) to 1.

    Write 1 if the limb is not straight in ``starts`` (T or 1, nq), if its bend in q (T, nq) is less than ``least``
    (1,), a sine, or if the fraction is at least ``LEAST_SHARE``.

    Returns:
        The number of fractions that are not 1.
    """
    count = 0
    for t in range(q.shape[0]):
        for k in range(places.shape[0]):
            _, _, was_straight = bend_of(places, shapes, k, starts[min(t, starts.shape[0] - 1)], STRAIGHT_LIMB)
            out[t, k] = F(1)
            if was_straight:
                along, size, straight = bend_of(places, shapes, k, q[t], least[0])
                if not straight:
                    share = along / size
                    if share < shapes[k, LEAST_SHARE]:
                        out[t, k] = share
                        count += 1
    return count


@entry
def bend_straight(places, shapes, variables, limits, sizes, q, out):
    """Write rows of q (T, nq) to ``out``, with each straight limb bent by its angle in ``sizes`` (T or 1, k).

    Limbs with an angle of 0 are unchanged.

    Returns:
        Number of limbs that were bent.
    """
    count = 0
    for t in range(q.shape[0]):
        before = count
        for i in range(q.shape[1]):
            out[t, i] = q[t, i]
        for k in range(places.shape[0]):
            along, _, straight = bend_of(places, shapes, k, q[t], STRAIGHT_LIMB)
            bend = sizes[min(t, sizes.shape[0] - 1), k]
            if not straight or along >= bend or bend == F(0):
                continue
            count += 1
            at, u, a = places[k, ELEMENT], load(shapes, k, UPPER_BONE), load(shapes, k, AXIS)
            if places[k, IS_HINGE] != 0:
                side = F(1) if dot(load(shapes, k, HINGE_AXIS), a) > F(0) else F(-1)
                out[t, at] += side * (bend - along)
            else:
                wanted = axpy(math.sin(bend), cross(a, u), scale(math.cos(bend), u))
                turn = quat_between(lower_bone(places, shapes, k, q[t]), wanted)
                store_quat(out[t], at, quat_normalize(quat_mul(turn, load_quat(q[t], at))))
            carrier = places[k, CARRIER_BALL]
            if carrier >= 0:  # rotate the limb back, so that its end stays on the line and only its middle leaves it
                ratio = shapes[k, BONE_RATIO]
                back = math.atan2(ratio * math.sin(bend - along), F(1) + ratio * math.cos(bend - along))
                turn = quat_exp(scale(-back, load(shapes, k, CARRIER_AXIS)))
                store_quat(out[t], carrier, quat_normalize(quat_mul(load_quat(q[t], carrier), turn)))
        if count > before:
            clamp(variables, limits, out[t])
    return count
