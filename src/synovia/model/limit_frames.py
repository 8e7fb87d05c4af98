"""Frames of swing-twist limits: twist about the joint's bone, swing about axes of the body."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.model.geometry import Array, axis_vector
from synovia.model.joint import Joint
from synovia.model.limits import SwingTwist

_TOGETHER: Final = 1e-9  # fraction of the longest distance: nearer joints are at one place
_CLEAR: Final = 0.5  # smallest length of a sum of bones, relative to the longest bone, that defines a direction
_SIDEWAYS: Final = 0.5  # cosine between a bone and the lateral axis; bones with larger values point to a side
FORWARD: Final = {"x": "y", "y": "z", "z": "x"}  # default forward axis for each upward axis


def with_limit_frames(
    joints: tuple[Joint, ...], parents: Sequence[int], up: str | None, forward: str | None
) -> tuple[Joint, ...]:
    """Return the joints with frames of swing-twist limits filled in, about the bone of each joint.

    The x axis is the lateral axis of the body at rest (to its left), made normal to the bone. If the bone points to a
    side, it is the upward axis, made normal to the bone.

    Args:
        joints: The joints in topological order.
        parents: Row of each parent, -1 for a root.
        up: Axis of the world that points up; None for y.
        forward: Axis that the body faces; None for z if y is up, x if z is up, y if x is up.
    """
    unframed = [row for row, joint in enumerate(joints) if _without_frame(joint) is not None]
    if not unframed:
        return joints
    rotations, positions = _at_rest(joints, parents)
    above = axis_vector(up or "y")
    left = np.cross(above, axis_vector(forward or FORWARD[(up or "y")[-1]]))
    framed = list(joints)
    for row in unframed:
        limit = _without_frame(joints[row])
        bone = _bone(positions, parents, row)
        if limit is None:
            continue
        if bone is None:
            limit = limit.in_frame(np.eye(3))
        else:
            axis = above if abs(bone @ left) > _SIDEWAYS * np.linalg.norm(bone) else left
            inward = rotations[row].T
            limit = SwingTwist.about(inward @ bone, x=limit.x, y=limit.y, twist=limit.twist, x_axis=inward @ axis)
        framed[row] = copy.copy(joints[row])
        object.__setattr__(framed[row], "limit", limit)
    return tuple(framed)


def _without_frame(joint: Joint) -> SwingTwist | None:
    """Return the limit of a joint if it has no frame yet; else None."""
    limit = joint.limit
    return limit if isinstance(limit, SwingTwist) and limit.frame is None else None


def _at_rest(joints: Sequence[Joint], parents: Sequence[int]) -> tuple[list[Array], Array]:
    """Return the world rotation (3, 3) and position (n, 3) of each joint, with all motions at zero."""
    rotations: list[Array] = []
    positions = np.zeros((len(joints), 3))
    for row, (joint, parent) in enumerate(zip(joints, parents, strict=True)):
        turn, positions[row] = joint.rest[:3, :3], joint.rest[:3, 3]
        if parent >= 0:
            positions[row] = rotations[parent] @ positions[row] + positions[parent]
            turn = rotations[parent] @ turn
        rotations.append(turn)
    return rotations, positions


def _bone(positions: Array, parents: Sequence[int], row: int) -> Array | None:
    """Return the bone of a joint, a vector (3,) in the world.

    The bone ends at the next joint below at another place. With several such joints, it is the sum of the bones to
    them, or, if these cancel, the bone to the joint with the longest chain below. Without such a joint, it continues
    the bone from the joint above. None if all joints above and below are at the same place.
    """
    apart = _TOGETHER * float(np.abs(positions - positions[row]).max())
    longest = np.zeros(len(parents))  # length of the longest chain below each joint, by row
    ends: list[int] = []  # the nearest joints below at other places
    inside = {row}
    for below in range(row + 1, len(parents)):
        if parents[below] in inside:
            if np.linalg.norm(positions[below] - positions[row]) > apart:
                ends.append(below)
            else:
                inside.add(below)
    if ends:
        for below in range(len(parents) - 1, row, -1):
            above = parents[below]
            if above >= 0:
                length = float(np.linalg.norm(positions[below] - positions[above]))
                longest[above] = max(longest[above], length + longest[below])
        bones = positions[ends] - positions[row]
        lengths = np.linalg.norm(bones, axis=1)
        whole = bones.sum(0)
        if np.linalg.norm(whole) >= _CLEAR * lengths.max():
            return whole
        return bones[int(np.argmax(lengths + longest[ends]))]
    above = parents[row]
    while above >= 0:
        bone = positions[row] - positions[above]
        if np.linalg.norm(bone) > apart:
            return bone
        above = parents[above]
    return None
