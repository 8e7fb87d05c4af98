"""Add the points of a recorded hand as joints, so that films and pages show them and the lines between them."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model import Joint, Kind
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, WRIST
from synovia.model.geometry import Array
from synovia.model.motion import Motion

_NAMES: Final = {
    WRIST: "wrist", **{k: f"{finger} {n}" for finger, rows in FINGER_POINTS.items() for n, k in enumerate(rows)}
}  # fmt: skip
# parent of each point: the point before it on the finger; the wrist for the first point of a finger
_ABOVE: Final = {
    k: rows[n - 1] if n else WRIST for rows in FINGER_POINTS.values() for n, k in enumerate(rows)
}  # fmt: skip


def with_points(motion: Motion, points: Array) -> Motion:
    """Return a motion with 21 more joints, which are at the points of a hand.

    Args:
        motion: The motion.
        points: Positions of the points in the world of the motion, (T, 21, 3).
    """
    body = motion.skeleton
    taken, joints = set(body.joint_names), list(body.joints)
    names = {k: name if name not in taken else f"recorded {name}" for k, name in _NAMES.items()}
    q = [np.array(motion.q)]
    for k in range(COUNT):
        above = _ABOVE.get(k)
        place = points[:, k] - (points[:, above] if above is not None else 0.0)
        rest = np.eye(4)
        rest[:3, 3] = place[0]  # as in the first frame: lines are drawn between joints that are apart at rest
        joints.append(Joint(names[k], None if above is None else names[above], Kind.FREE, rest))
        q.append(np.concatenate([place - place[0], np.tile((0.0, 0.0, 0.0, 1.0), (len(points), 1))], axis=1))
    return Motion(body.with_joints(joints), np.concatenate(q, axis=1), motion.fps, name=motion.name)
