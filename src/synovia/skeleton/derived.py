"""Skeletons made from another one."""

from __future__ import annotations

from collections.abc import Iterable

from synovia.skeleton.joint import Joint
from synovia.skeleton.skeleton import Skeleton


def with_joints(skeleton: Skeleton, joints: Iterable[Joint]) -> Skeleton:
    """Return a skeleton of other joints, with the name, the length unit and the axes of this one."""
    return Skeleton(
        joints,
        name=skeleton.name,
        meters_per_unit=skeleton.meters_per_unit,
        up=skeleton.up,
        forward=skeleton.forward,
    )
