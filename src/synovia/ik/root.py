"""A root that may move: the skeleton's own free joint, a free one put before it, or slides and hinges axis by axis.

Slides go along the axes of the world. Turns (roll about x, pitch about y, yaw about z) are about the place where the
root is at rest, carried along by the slides: yaw outermost, then pitch, then roll. A free joint of the skeleton's own
stays where the start has it, on top of what its axes do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from synovia.errors import InputError
from synovia.model import Joint, Kind, Skeleton
from synovia.model.derived import with_joints
from synovia.model.geometry import Array, rigid

_AXES = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "yaw": (0.0, 0.0, 1.0),
    "pitch": (0.0, 1.0, 0.0),
    "roll": (1.0, 0.0, 0.0),
}
_FREE_NUMBERS = 7  # of a free joint in q; six axes are a free joint, so no other root has as many


def has_free_root(skeleton: Skeleton) -> bool:
    """Return whether the first joint that moves is free and carries all that move."""
    moving = [row for row, joint in enumerate(skeleton.joints) if joint.kind is not Kind.FIXED]
    if not moving or skeleton.joints[moving[0]].kind is not Kind.FREE:
        return False
    below = np.zeros(len(skeleton), bool)
    below[moving[0]] = True
    for row in range(moving[0] + 1, len(skeleton)):
        below[row] = skeleton.parents[row] >= 0 and below[skeleton.parents[row]]
    return all(below[row] for row in moving)


def as_root(value: Any) -> str:
    """Return how the root moves: ``"fixed"``, ``"free"``, or its axes, in the order x,y,z,yaw,pitch,roll.

    Args:
        value: One of those words, axes in one string ("xy", "x,y,yaw"), or a list of axes.

    Raises:
        InputError: If it is none of these.
    """
    if isinstance(value, str) and value in ("fixed", "free"):
        return value
    words: list[object] = []
    if isinstance(value, str):
        for word in value.replace(",", " ").split():
            words += word if set(word) <= set("xyz") else [word]
    elif isinstance(value, list | tuple):
        words += cast("Sequence[object]", value)
    if not words or len(set(map(str, words))) < len(words) or any(word not in _AXES for word in words):
        raise InputError(
            "root cannot be used",
            value=cast("object", value),
            expected=f"'fixed', 'free', or axes of {', '.join(_AXES)}, each once, such as 'xy' or 'x,y,yaw'",
        )
    return "free" if len(words) == len(_AXES) else ",".join(axis for axis in _AXES if axis in words)


def with_root(skeleton: Skeleton, root: str) -> Skeleton:
    """Return the skeleton with what ``as_root`` says before it: nothing, a free joint, or a slide or hinge an axis."""
    if root == "fixed" or (root == "free" and has_free_root(skeleton)):
        return skeleton
    if root == "free":
        return _with_before(skeleton, [Joint(name=_unused(skeleton, "root"), kind=Kind.FREE)])
    before: list[Joint] = []
    pivot = rigid(skeleton.rest_pose().positions[0])
    for axis in root.split(","):
        kind = Kind.SLIDE if axis in "xyz" else Kind.HINGE
        parent = before[-1].name if before else None
        rest = rigid() if before else pivot
        name = _unused(skeleton, f"root_{axis}")
        before.append(Joint(name=name, parent=parent, kind=kind, axis=np.array(_AXES[axis]), rest=rest))
    return _with_before(skeleton, before, rigid(-pivot[:3, 3]))


def _unused(skeleton: Skeleton, name: str) -> str:
    """Return a name that no joint answers to."""
    taken = {word for joint in skeleton.joints for word in (joint.name, joint.body, joint.role)}
    while name in taken:
        name += "_"
    return name


def _with_before(skeleton: Skeleton, before: Sequence[Joint], back: Array | None = None) -> Skeleton:
    """Return the skeleton carried by other joints; ``back`` leads from the last of them to the world."""
    joints = [*before]
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        moved = joint.rest if parent >= 0 or back is None else back @ joint.rest
        joints.append(dataclasses.replace(joint, parent=parent + len(before), rest=moved))
    return with_joints(skeleton, joints)


def with_free_root(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton, with a free joint put before it where it has none."""
    return with_root(skeleton, "free")


def with_root_at_rest(q: Array, numbers: int = _FREE_NUMBERS) -> Array:
    """Return joint values (..., nq) with so many of what was put before the skeleton, at rest, before them."""
    rest = np.zeros((*q.shape[:-1], numbers))
    if numbers == _FREE_NUMBERS:
        rest[..., -1] = 1.0
    return np.concatenate([rest, q], axis=-1)
