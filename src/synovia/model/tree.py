"""The tree of a skeleton: order, ancestors and names of its joints."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from synovia.errors import InputError, did_you_mean
from synovia.model.address import JOINT, LINK, kind_and_name
from synovia.model.geometry import Array
from synovia.model.joint import Joint


class JointTree(Protocol):
    """Joints and their parents."""

    joints: tuple[Joint, ...]
    parents: tuple[int, ...]


class BodyTree(JointTree, Protocol):
    """What ``roles`` and ``limbs`` need of a skeleton: a tree of joints with bone lengths."""

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
    rows = rows_by_name(joints)
    above = [parent_row(joint, joints, rows, where) for joint in joints]
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
    """Append underscores to a name until it is unused, and add it to ``taken``."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def rows_by_name(joints: Sequence[Joint]) -> dict[str, list[int]]:
    """Return the indices of the joints of each name."""
    rows: dict[str, list[int]] = {}
    for i, joint in enumerate(joints):
        rows.setdefault(joint.name, []).append(i)
    return rows


def parent_row(joint: Joint, joints: Sequence[Joint], rows: dict[str, list[int]], where: str | None = None) -> int:
    """Return the index of a joint's parent in the list, -1 for a root.

    A name means the joint of this name, else the joint that carries the link of this name.

    Args:
        joint: The joint.
        joints: The list.
        rows: Indices by name, as from ``rows_by_name``.
        where: Skeleton or file, for messages.

    Raises:
        InputError: If the parent does not exist or is ambiguous.
    """
    parent = joint.parent
    if parent is None:
        return -1
    found: list[int] = []
    if isinstance(parent, str):
        found = rows.get(parent) or _carriers(parent, joints, rows)
    elif isinstance(parent, int | np.integer) and 0 <= parent < len(joints):
        found = [int(parent)]
    if len(found) == 1:
        return found[0]
    what = f"parent {parent!r} of joint {joint.name!r}"
    if found:
        hint = "use the index of the parent in the list"
        raise InputError(f"{what} is ambiguous", where=where, value=found, hint=hint)
    if not isinstance(parent, str):
        raise InputError(f"{what} does not exist", where=where)
    sited = next(
        (other.name for other in joints for site in other.sites if parent in (site.name, f"site:{site.name}")), None
    )
    hint = did_you_mean(parent, dict.fromkeys([*rows, *(other.body for other in joints if other.body)]))
    if sited is not None:
        hint = f"it is a site: use its joint {sited!r}, and rest= for the place on it"
    raise InputError(f"{what} does not exist", where=where, hint=hint)


def _carriers(name: str, joints: Sequence[Joint], rows: dict[str, list[int]]) -> list[int]:
    """Return the joints that ``joint:NAME`` means, or that carry a link (of several joints on a link, the last)."""
    kind, bare = kind_and_name(name)
    if kind == JOINT and bare in rows:
        return rows[bare]
    links = (name, bare) if kind == LINK else (name,)
    found = [i for i, joint in enumerate(joints) if joint.body in links]
    above = {
        parent if not isinstance(parent, str) else rows.get(parent, [-1])[0]
        for i in found
        if (parent := joints[i].parent) is not None
    }
    return [i for i in found if i not in above] or found


def _under(joint: Joint, row: int) -> Joint:
    """Return a joint with a new index of its parent."""
    if joint.parent is None or isinstance(joint.parent, str) or joint.parent == row:
        return joint
    moved = copy.copy(joint)
    object.__setattr__(moved, "parent", row)
    return moved
