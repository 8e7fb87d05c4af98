"""A root that may move: the skeleton's own free joint, or one put before it."""

from __future__ import annotations

import dataclasses

import numpy as np

from synovia.geometry import Array
from synovia.skeleton import Joint, Kind, Skeleton


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


def with_free_root(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton, with a free joint put before it where it has none."""
    if has_free_root(skeleton):
        return skeleton
    name = "root"
    taken = {word for joint in skeleton.joints for word in (joint.name, joint.body, joint.role)}
    while name in taken:
        name += "_"
    joints = [Joint(name=name, kind=Kind.FREE)]
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        joints.append(dataclasses.replace(joint, parent=parent + 1))
    return Skeleton(
        joints,
        name=skeleton.name,
        meters_per_unit=skeleton.meters_per_unit,
        up=skeleton.up,
        forward=skeleton.forward,
    )


def with_root_at_rest(q: Array) -> Array:
    """Return joint values (..., nq) with the values of a free root at rest put before them."""
    rest = np.broadcast_to((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (*q.shape[:-1], 7))
    return np.concatenate([rest, q], axis=-1)
