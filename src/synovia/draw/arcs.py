"""Lines that stand for what a joint may do: the limits that it has, and the range in which a goal wants it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, align_z
from synovia.model.limits import SwingTwist

_TICK: Final = 0.3  # of the radius: half the length of what crosses the ends of a slide's range
_POINTER: Final = (0.72, 1.2)  # of the radius: where the mark of the present value begins and ends


def limit_arcs(skeleton: Skeleton, row: int, radius: float) -> Array:
    """Return the limits of a joint as line segments in its parent's rest frame, (s, 2, 3), scene units.

    A hinge has an arc with two spokes, a ball the rim of the cone within which its bone may point; none without limits.
    """
    joint = skeleton.joints[row]
    limit = joint.limit
    rest = joint.rest[:3, :3]
    if joint.kind is Kind.HINGE:
        lower, upper = skeleton.value_range(row)
        if not (math.isfinite(lower) and math.isfinite(upper)):
            return np.zeros((0, 2, 3))
        axis = np.asarray(joint.axis)
        across = _across(skeleton, row, axis)
        points = _sector(axis, across, lower, upper) * radius
    elif isinstance(limit, SwingTwist):
        frame = np.asarray(limit.frame)
        around = np.linspace(0.0, 2.0 * math.pi, 49)
        cone: list[Array] = []
        for angle in around:
            x, y = math.cos(angle), math.sin(angle)
            a, b = limit.x[x > 0.0], limit.y[y > 0.0]
            size = 1.0 / math.hypot(x / max(a, 1e-9), y / max(b, 1e-9))
            cone.append(frame @ _about(np.array([x, y, 0.0]), size) @ (0.0, 0.0, 1.0))
        points = np.array(cone) * radius
    else:
        return np.zeros((0, 2, 3))
    points = points @ rest.T
    return np.stack([points[:-1], points[1:]], axis=1)


def value_of(pose: Pose, row: int) -> float:
    """Return the value that a range bounds: of a hinge or a slide its own, of a ball its angle from rest, radians."""
    values = np.atleast_1d(pose[row])
    if len(values) == 1:
        return float(values[0])
    x, y, z, w = values[-4:]
    return 2.0 * math.atan2(math.sqrt(x * x + y * y + z * z), abs(w))


def range_lines(
    skeleton: Skeleton, row: int, bounds: tuple[float, float], value: float, radius: float, beside: float = 0.0
) -> list[Array]:
    """Return the range of a joint's value as lines through points (n, 3), in its parent's frame, from where it is now.

    A hinge has an arc with two spokes and a mark at its value; a slide a way with an end at each bound and a mark; a
    ball a cone about its bone for each bound. Where there is no bound, the joint's limit ends the line.

    Args:
        skeleton: The skeleton.
        row: The joint.
        bounds: Least and most value, radians or length units.
        value: The present value.
        radius: Size of what is drawn, length units.
        beside: How far beside the bone a hinge's arc is drawn, on both sides, length units; 0: once, in its middle.
    """
    joint = skeleton.joints[row]
    rest, axis = joint.rest[:3, :3], np.asarray(joint.axis)
    if joint.kind is Kind.BALL:
        frame = np.asarray(joint.limit.frame) if isinstance(joint.limit, SwingTwist) else _along(skeleton, row)
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
        spoke = _about(axis, value) @ across
        arc, mark = _sector(axis, across, lower, upper) * radius, np.outer(_POINTER, spoke) * radius
        sides = (-beside * axis, beside * axis) if beside > 0.0 else (np.zeros(3),)
        lines = [line + side for side in sides for line in (arc, mark)]
    return [line @ rest.T for line in lines]


def _sector(axis: Array, across: Array, lower: float, upper: float) -> Array:
    """Return an arc of radius 1 about an axis, with a spoke at each end, (n, 3)."""
    rim = [_about(axis, angle) @ across for angle in np.linspace(lower, upper, 33)]
    return np.array([np.zeros(3), *rim, np.zeros(3)])


def _cone(frame: Array, angle: float) -> Array:
    """Return the rim of a cone about the z axis of a frame, sides of length 1, (n, 3)."""
    around = np.linspace(0.0, 2.0 * math.pi, 49)
    rim = [math.sin(angle) * np.cos(around), math.sin(angle) * np.sin(around), np.full(len(around), math.cos(angle))]
    return np.stack(rim, axis=1) @ frame.T


def _along(skeleton: Skeleton, row: int) -> Array:
    """Return a frame whose z axis is a joint's bone, in the joint's frame."""
    bones = [skeleton.joints[child].rest[:3, 3] for child in skeleton.children[row]]
    bone = next((bone for bone in bones if np.linalg.norm(bone) > 0.0), np.array([0.0, 0.0, 1.0]))
    return align_z(bone / np.linalg.norm(bone))


def _across(skeleton: Skeleton, row: int, axis: Array) -> Array:
    """Return the direction of a hinge's bone across its axis, in the joint's frame at zero; any where it has none."""
    for child in skeleton.children[row]:
        bone = skeleton.joints[child].rest[:3, 3]
        part = bone - (bone @ axis) * axis
        if np.linalg.norm(part) > 1e-3 * np.linalg.norm(bone) > 0.0:
            return part / np.linalg.norm(part)
    part = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    return np.asarray(part / np.linalg.norm(part), np.float64)


def _about(axis: Array, angle: float) -> Array:
    """Return the rotation matrix about a unit axis."""
    x, y, z = axis
    c, s = math.cos(angle), math.sin(angle)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return c * np.eye(3) + s * cross + (1.0 - c) * np.outer(axis, axis)
