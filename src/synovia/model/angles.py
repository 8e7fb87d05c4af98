"""Format joint values for people: named angles in degrees, and lengths in the unit of the file."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.model.geometry import Array, rotation_between, times_exp
from synovia.model.joint import Kind
from synovia.model.limits import Limit, SwingTwist
from synovia.model.skeleton import Pose, Skeleton

_REST: Final = np.array([0.0, 0.0, 0.0, 1.0])  # the identity quaternion
_BALL: Final = ("swing x", "swing y", "twist")


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
    return dict(zip(_BALL, np.degrees(swing_twist(quat, joint.limit)).tolist(), strict=True))


def named_limits(skeleton: Skeleton, row: int) -> dict[str, tuple[float, float]]:
    """Return the limits of a joint by the names of ``named_angles``, degrees, or of a slide, length units.

    Missing ends are infinite; components without limits are left out.
    """
    limit, kind = skeleton.joints[row].limit, skeleton.joints[row].kind
    if kind in (Kind.HINGE, Kind.SLIDE):
        low, high = (math.degrees(end) if kind is Kind.HINGE else end for end in skeleton.value_range(row))
        return {"": (low, high)}
    if not isinstance(limit, SwingTwist):
        return {}
    ends = ((-limit.x[0], limit.x[1]), (-limit.y[0], limit.y[1]), limit.twist)
    return {name: (math.degrees(low), math.degrees(high)) for name, (low, high) in zip(_BALL, ends, strict=True)}


def swing_twist(quat: Array, limit: Limit | None) -> Array:
    """Return the swing about x and y and the twist of a ball, (3,), radians, in the frame of its limit.

    Args:
        quat: The rotation, (4,).
        limit: The limit, whose z axis is the bone; without one, the axes are those of the joint.
    """
    x, y, z, w = quat.tolist()
    if isinstance(limit, SwingTwist):
        x, y, z = (limit.axes.T @ quat[:3]).tolist()  # vector part in the frame of the limit
    twist = math.remainder(2.0 * math.atan2(z, w), 2.0 * math.pi)
    c, s = math.cos(0.5 * twist), math.sin(0.5 * twist)
    # the swing, rotation · twist⁻¹, has no component along z
    swing = rotation_between(_REST, np.array([x * c - y * s, y * c + x * s, 0.0, w * c + z * s]))
    return np.array([swing[0], swing[1], twist])


def from_swing_twist(angles: Array, limit: Limit | None) -> Array:
    """Return the rotation of a ball, (4,), the inverse of ``swing_twist``."""
    x, y, twist = angles.tolist()
    quat = times_exp(times_exp(_REST, np.array([x, y, 0.0])), np.array([0.0, 0.0, twist]))
    if isinstance(limit, SwingTwist):
        quat[:3] = limit.axes @ quat[:3]
    return quat


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
