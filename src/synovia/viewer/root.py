"""How the root of a body may move: held, free, or sliding along chosen axes."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.geometry import Array
from synovia.ik.root import with_free_root, with_root_at_rest
from synovia.skeleton import Joint, Kind, Skeleton

_AXES: Final = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
ROOTS: Final = ("fixed", "free", "x", "y", "z", "xy", "xz", "yz", "xyz")


@dataclasses.dataclass(frozen=True, slots=True)
class Rooted:
    """A skeleton with a root that may move.

    Args:
        mode: ``fixed``, ``free``, or the world axes along which it slides, for example ``xz``.
        skeleton: The skeleton, with joints put before it where the mode needs them.
        added: How many rows were put before those of the skeleton that was given.
    """

    mode: str
    skeleton: Skeleton
    added: int

    @property
    def ik_root(self) -> str:
        """The root setting that ``IK`` is given."""
        return "free" if self.mode == "free" else "fixed"


def rooted(skeleton: Skeleton, mode: str) -> Rooted:
    """Return a skeleton whose root moves as asked.

    Raises:
        InputError: If there is no such mode.
    """
    if mode not in ROOTS:
        raise InputError("root cannot move like that", value=mode, expected=", ".join(ROOTS))
    if mode == "fixed":
        return Rooted(mode, skeleton, 0)
    if mode == "free":
        free = with_free_root(skeleton)
        return Rooted(mode, free, len(free) - len(skeleton))
    taken = {word for joint in skeleton.joints for word in (joint.name, joint.body, joint.role)}
    joints: list[Joint] = []
    for axis in mode:
        name = f"root {axis}"
        while name in taken:
            name += "_"
        parent = len(joints) - 1 if joints else None
        joints.append(Joint(name=name, parent=parent, kind=Kind.SLIDE, axis=np.array(_AXES[axis])))
    added = len(joints)
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        joints.append(dataclasses.replace(joint, parent=parent + added if parent >= 0 else added - 1))
    slid = Skeleton(
        joints,
        name=skeleton.name,
        meters_per_unit=skeleton.meters_per_unit,
        up=skeleton.up,
        forward=skeleton.forward,
    )
    return Rooted(mode, slid, added)


def lifted(q: Array, to: Rooted) -> Array:
    """Return joint values (..., nq) of the given skeleton as values of the rooted one, its own joints at rest."""
    more = to.skeleton.nq - q.shape[-1]
    if more == 0:
        return q.copy()
    if to.mode == "free":
        return with_root_at_rest(q)
    return np.concatenate([np.zeros((*q.shape[:-1], more)), q], axis=-1)


def lowered(q: Array, given: Skeleton) -> Array:
    """Return the joint values of the given skeleton's own joints."""
    return q[..., q.shape[-1] - given.nq :].copy()
