"""Format joint values for people: named angles in degrees, and lengths in the unit of the file."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.model.geometry import rotation_between
from synovia.model.joint import Kind
from synovia.model.limits import SwingTwist
from synovia.model.skeleton import Pose

_REST: Final = np.array([0.0, 0.0, 0.0, 1.0])  # the identity quaternion


def named_angles(pose: Pose, row: int) -> dict[str, float]:
    """Return the rotation of a joint from rest as named angles, degrees; empty for slides and fixed joints.

    A hinge has one angle, with the name ``""``. A ball with limits has the limited angles ``swing x``, ``swing y`` and
    ``twist``. Other balls, and free joints, have the components ``x``, ``y`` and ``z`` of their rotation vector.
    """
    joint, values = pose.skeleton.joints[row], np.atleast_1d(pose[row])
    if joint.kind is Kind.HINGE:
        return {"": math.degrees(float(values[0]))}
    if joint.kind not in (Kind.BALL, Kind.FREE):
        return {}
    quat = values[-4:] if values[-1] >= 0.0 else -values[-4:]
    if not isinstance(joint.limit, SwingTwist):
        return dict(zip("xyz", np.degrees(rotation_between(_REST, quat)).tolist(), strict=True))
    frame = joint.limit.axes
    x, y, z = (frame.T @ quat[:3]).tolist()  # vector part in the frame of the limit
    w = float(quat[3])
    twist = 2.0 * math.atan2(z, w)
    c, s = math.cos(0.5 * twist), math.sin(0.5 * twist)
    # the swing, rotation · twist⁻¹, has no component along z
    swing = rotation_between(_REST, np.array([x * c - y * s, y * c + x * s, 0.0, w * c + z * s]))
    return {"swing x": math.degrees(swing[0]), "swing y": math.degrees(swing[1]), "twist": math.degrees(twist)}


def value_text(pose: Pose, row: int) -> str:
    """Return the value of a joint as text, for example ``18.8°`` or ``swing x -4.1°, swing y 12.0°, twist 3.2°``.

    Args:
        pose: The pose.
        row: The joint.
    """
    angles = named_angles(pose, row)
    # the format option z avoids a minus zero
    parts = [f"{name} {angle:z.1f}°".strip() for name, angle in angles.items()]
    kind, values = pose.skeleton.joints[row].kind, np.atleast_1d(pose[row])
    if kind is Kind.SLIDE:
        parts = [f"{values[0]:.4g}"]
    elif kind is Kind.FREE:
        place = ", ".join(f"{value:.4g}" for value in np.round(values[:3], 6).tolist())
        parts = [f"({place})", *parts]
    return ", ".join(parts)
