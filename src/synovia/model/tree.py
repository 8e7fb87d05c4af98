"""The tree of a skeleton: order, ancestors and names of its joints."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from synovia.errors import InputError
from synovia.model.geometry import Array
from synovia.model.joint import Joint


class JointTree(Protocol):
    """Joints and their parents."""

    joints: tuple[Joint, ...]
    parents: tuple[int, ...]


class BodyTree(JointTree, Protocol):
    """A tree of joints with its lengths: the part of a skeleton that ``roles`` and ``shape`` need."""

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Rows of each joint's children."""
        ...

    @cached_property
    def lengths(self) -> Array:
        """Distance of each joint from its parent at rest, (n,)."""
        ...

    @cached_property
    def size(self) -> float:
        """Longest sum of bone lengths from a root to a tip."""
        ...


def topological(joints: Sequence[Joint], where: str) -> tuple[tuple[Joint, ...], tuple[int, ...]]:
    """Return the joints sorted with parents first (stable), and the parent row of each, -1 for a root.

    Parents given by index are changed to the new order.

    Raises:
        InputError: If a parent does not exist or is ambiguous, or joints form a cycle.
    """
    rows: dict[str, list[int]] = {}
    for i, joint in enumerate(joints):
        rows.setdefault(joint.name, []).append(i)
    above = [_parent(joint, joints, rows, where) for joint in joints]
    place: dict[int, int] = {-1: -1}
    order: list[int] = []
    for i in range(len(joints)):
        trail: list[int] = []
        at = i
        while at not in place:
            if len(trail) > len(joints):
                raise InputError(f"joint {joints[at].name!r} is its own ancestor", where=where)
            trail.append(at)
            at = above[at]
        for at in reversed(trail):
            place[at] = len(order)
            order.append(at)
    parents = tuple(place[above[i]] for i in order)
    return tuple(_under(joints[i], row) for i, row in zip(order, parents, strict=True)), parents


def ancestors(parents: Sequence[int], row: int) -> list[int]:
    """Return a row and all its ancestors, up to a root."""
    rows = [row]
    while parents[rows[-1]] >= 0:
        rows.append(parents[rows[-1]])
    return rows


def unused_name(name: str, taken: set[str]) -> str:
    """Return a name with as many underscores as make it differ from all others, and add it to these."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _parent(joint: Joint, joints: Sequence[Joint], rows: dict[str, list[int]], where: str) -> int:
    """Return the index of a joint's parent in the list, -1 for a root."""
    if joint.parent is None:
        return -1
    if isinstance(joint.parent, str):
        found = rows.get(joint.parent, [])
        if len(found) > 1:
            raise InputError(
                f"parent {joint.parent!r} of joint {joint.name!r} means several joints",
                where=where,
                value=found,
                hint="use the index of the parent in the list",
            )
        if found:
            return found[0]
    elif isinstance(joint.parent, int | np.integer) and 0 <= joint.parent < len(joints):
        return int(joint.parent)
    raise InputError(f"parent {joint.parent!r} of joint {joint.name!r} does not exist", where=where)


def _under(joint: Joint, row: int) -> Joint:
    """Return the joint with the new index of its parent."""
    if joint.parent is None or isinstance(joint.parent, str) or joint.parent == row:
        return joint
    moved = copy.copy(joint)
    object.__setattr__(moved, "parent", row)
    return moved
