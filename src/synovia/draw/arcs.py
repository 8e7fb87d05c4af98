"""Lines that show the limits of a joint, or the range of values that a goal allows."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, align_z
from synovia.model.limits import SwingTwist

_TICK: Final = 0.3  # half the length of a slide's ticks, as a fraction of the radius
_POINTER: Final = (0.72, 1.2)  # start and end of the mark at the current value, as multiples of the radius
_AROUND: Final = np.linspace(0.0, 2.0 * math.pi, 49)  # radians: directions of points on a cone's rim


def limit_arcs(skeleton: Skeleton, row: int, radius: float) -> Array:
    """Return the limits of a joint as line segments in its parent's rest frame, (s, 2, 3), scene units.

    A hinge has an arc with two spokes. A ball has the rim of the cone of allowed bone directions. Other joints, and
    joints without limits, have no segments.
    """
    joint = skeleton.joints[row]
    limit = joint.limit
    points = np.zeros((1, 3))
    if joint.kind is Kind.HINGE:
        lower, upper = skeleton.value_range(row)
        if math.isfinite(lower) and math.isfinite(upper):
            points = _sector(joint.axis, _across(skeleton, row, joint.axis), lower, upper)
    elif isinstance(limit, SwingTwist):
        x, y = np.cos(_AROUND), np.sin(_AROUND)  # components of the swing axis
        a, b = np.where(x > 0.0, limit.x[1], limit.x[0]), np.where(y > 0.0, limit.y[1], limit.y[0])
        swing = 1.0 / np.hypot(x / np.maximum(a, 1e-9), y / np.maximum(b, 1e-9))
        rim = np.stack([np.sin(swing) * y, -np.sin(swing) * x, np.cos(swing)], axis=1)
        points = rim @ limit.axes.T
    points = radius * points @ joint.rest[:3, :3].T
    return np.stack([points[:-1], points[1:]], axis=1)


def value_of(pose: Pose, row: int) -> float:
    """Return the value of a hinge or a slide, or the angle of a ball from rest, radians."""
    values = np.atleast_1d(pose[row])
    if len(values) == 1:
        return float(values[0])
    x, y, z, w = values[-4:]
    return 2.0 * math.atan2(math.sqrt(x * x + y * y + z * z), abs(w))


def range_lines(
    skeleton: Skeleton, row: int, bounds: tuple[float, float], value: float, radius: float, offset: float = 0.0
) -> list[Array]:
    """Return lines through points (n, 3) that show a joint's range, relative to the joint, along its parent's axes.

    A hinge has an arc with two spokes and a mark at its value. A slide has a line with a tick at each bound and at its
    value. A ball has a cone about its bone for each bound. An infinite bound is replaced by the limit of the joint.

    Args:
        skeleton: The skeleton.
        row: The joint.
        bounds: Smallest and largest value, radians or length units.
        value: The current value.
        radius: Size of the lines, length units.
        offset: Distance of a hinge's arc from the bone, on both sides, length units; 0 for one arc through the bone.
    """
    joint = skeleton.joints[row]
    rest, axis = joint.rest[:3, :3], joint.axis
    if joint.kind is Kind.BALL:
        frame = joint.limit.axes if isinstance(joint.limit, SwingTwist) else _along(skeleton, row)
        rims = [_cone(frame, angle) * radius for angle in bounds if 0.0 < angle < math.pi]
        return [rim @ rest.T for rim in rims]
    least, most = skeleton.value_range(row)
    lower, upper = max(bounds[0], least), min(bounds[1], most)
    across = _across(skeleton, row, axis)
    if joint.kind is Kind.SLIDE:
        lower, upper = max(lower, value - 4.0 * radius), min(upper, value + 4.0 * radius)
        side = radius * across
        lines = [np.array([(lower - value) * axis, (upper - value) * axis])]
        for end, tick in ((lower, _TICK), (upper, _TICK), (value, 0.5 * _TICK)):
            lines.append(np.array([(end - value) * axis - tick * side, (end - value) * axis + tick * side]))
    else:
        lower, upper = max(lower, upper - 2.0 * math.pi), min(upper, max(lower, -1e9) + 2.0 * math.pi)
        if math.isinf(lower) or math.isinf(upper):
            lower, upper = -math.pi, math.pi
        spoke = _turned(axis, across, value)
        arc, mark = _sector(axis, across, lower, upper) * radius, np.outer(_POINTER, spoke) * radius
        sides = (-offset * axis, offset * axis) if offset > 0.0 else (np.zeros(3),)
        lines = [line + side for side in sides for line in (arc, mark)]
    return [line @ rest.T for line in lines]


def _sector(axis: Array, across: Array, lower: float, upper: float) -> Array:
    """Return the points of an arc of radius 1 about an axis, with a spoke at each end, (n, 3)."""
    rim = [_turned(axis, across, angle) for angle in np.linspace(lower, upper, 33)]
    return np.array([np.zeros(3), *rim, np.zeros(3)])


def _cone(frame: Array, angle: float) -> Array:
    """Return points (n, 3) on the rim of a cone about a frame's z axis, at distance 1 from the apex."""
    x, y = math.sin(angle) * np.cos(_AROUND), math.sin(angle) * np.sin(_AROUND)
    return np.stack([x, y, np.full(len(x), math.cos(angle))], axis=1) @ frame.T


def _along(skeleton: Skeleton, row: int) -> Array:
    """Return a frame with its z axis along a joint's bone, in the joint's frame."""
    bones = [skeleton.joints[child].rest[:3, 3] for child in skeleton.children[row]]
    bone = next((bone for bone in bones if np.linalg.norm(bone) > 0.0), np.array([0.0, 0.0, 1.0]))
    return align_z(bone / np.linalg.norm(bone))


def _across(skeleton: Skeleton, row: int, axis: Array) -> Array:
    """Return the direction of a joint's bone, projected normal to an axis, in the joint's frame at zero.

    Without a bone, return any direction normal to the axis.
    """
    for child in skeleton.children[row]:
        bone = skeleton.joints[child].rest[:3, 3]
        part = bone - (bone @ axis) * axis
        if np.linalg.norm(part) > 1e-3 * np.linalg.norm(bone) > 0.0:
            return part / np.linalg.norm(part)
    part = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    return np.asarray(part / np.linalg.norm(part), np.float64)


def _turned(axis: Array, across: Array, angle: float) -> Array:
    """Rotate the vector ``across`` about a unit axis, to which it is normal."""
    return math.cos(angle) * across + math.sin(angle) * np.cross(axis, across)
