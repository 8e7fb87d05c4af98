"""The angle by which a joint of a foot has to turn so that points of its sole are not below the floor.

A point at r from the joint, which turns about the axis a by the angle x, has the height b + v cos x + w sin x, where b
is the height of its circle's centre, v its height above this centre, and w = r · (u × a) with the upward direction u.
"""

import math

from synovia.kernels.compiler.jit import F, entry
from synovia.kernels.math.rotations import apply, origin_of, rotation_of
from synovia.kernels.math.vectors import add, cross, dot, load, sub

# Rows of ``numbers``, (3,) each: the joint's axis and the direction ahead, both in its frame; the world's up; bounds
AXIS, AHEAD, UP, BOUNDS = 0, 1, 2, 3
LOW, MOST = 0, 1  # bounds: the height below which a point is too low, and the largest angle
TOES, HEEL, TOES_ROOM, HEEL_ROOM = 0, 1, 2, 3  # columns of ``out``: needed angles, then possible ones (radians)
PLACE = 0  # column of a point
LEAST = F(1e-12)


@entry
def sole_needs(frames, joint, rows, points, numbers, out):
    """Write how far a joint must raise toes and heel, and how far toes and heel can rise until the foot is horizontal.

    Args:
        frames: (T, n, 12) world frames of a body.
        joint: Row of the joint.
        rows: Row of the joint that carries each point, (k,).
        points: Points of the sole in the frames of these joints, (k, 3).
        numbers: (4, 3), see ``AXIS`` and the following.
        out: (T, 4), see ``TOES`` and the following.
    """
    up, low = load(numbers, UP, 0), numbers[BOUNDS, LOW]
    for t in range(frames.shape[0]):
        R, start = rotation_of(frames[t], joint), origin_of(frames[t], joint)
        pitch = math.asin(min(max(dot(apply(R, load(numbers, AHEAD, 0)), up), F(-1)), F(1)))
        able = min(abs(pitch), numbers[BOUNDS, MOST])
        out[t, TOES], out[t, HEEL] = F(0), F(0)
        out[t, TOES_ROOM], out[t, HEEL_ROOM] = able if pitch < F(0) else F(0), able if pitch > F(0) else F(0)
        own = apply(R, load(numbers, AXIS, 0))
        across = cross(up, own)
        for k in range(rows.shape[0]):
            place = add(apply(rotation_of(frames[t], rows[k]), load(points, k, PLACE)), origin_of(frames[t], rows[k]))
            height = dot(place, up)
            if height >= low:
                continue
            arm = sub(place, start)
            w = dot(arm, across)
            base = dot(start, up) + dot(arm, own) * dot(own, up)
            v = height - base
            far = math.acos(min(max((low - base) / max(math.hypot(v, w), LEAST), F(-1)), F(1)))
            need = abs(math.atan2(w, v)) - far  # where the point is at the floor, or highest if it cannot be there
            side = TOES if w > F(0) else HEEL
            if w != F(0):
                out[t, side] = max(out[t, side], need)
