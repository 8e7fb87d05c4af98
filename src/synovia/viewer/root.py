"""How the root of a body may move: held, free, or along and about chosen axes; and where it is held."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix, rigid
from synovia.model.root import as_root, with_root_at_rest

ROOTS: Final = ("fixed", "free", "x", "y", "z", "x,y", "x,z", "y,z", "x,y,z", "x,y,yaw", "x,z,pitch")
_SAME: Final = 1e-12  # below, a root is where the file has it


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Rooted:
    """A skeleton with a root that may move.

    Args:
        mode: How, as ``IK`` takes it: ``fixed``, ``free``, or axes, for example ``x,z``.
        held: The skeleton that was given, at the place where its root is held.
        skeleton: The same with joints put before it where the mode needs them.
        added: How many rows were put before those of the skeleton that was given.
        base: From where the file has the root to where it is held, (4, 4); None where that is the same.
    """

    mode: str
    held: Skeleton
    skeleton: Skeleton
    added: int
    base: Array | None = None


def rooted(skeleton: Skeleton, mode: str, base: Array | None = None) -> Rooted:
    """Return a skeleton with a root that moves in a given mode.

    Args:
        skeleton: The skeleton.
        mode: How its root moves, as ``IK`` takes it.
        base: Where the root is held, from where the file has it, (4, 4).

    Raises:
        InputError: If there is no such mode.
    """
    mode = as_root(mode)
    held = skeleton if base is None else _placed(skeleton, base)
    whole = held if mode == "fixed" else held.with_root(mode)
    return Rooted(mode, held, whole, len(whole) - len(held), base)


def _placed(skeleton: Skeleton, base: Array) -> Skeleton:
    """Return the skeleton at another place of the world."""
    joints = [
        joint if parent >= 0 else dataclasses.replace(joint, rest=base @ joint.rest)
        for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True)
    ]
    return skeleton.with_joints(joints)


def changed_root(q: Array, at: Rooted, given: Skeleton, mode: str) -> tuple[Rooted, Array]:
    """Return another root and the joint values with which the body stays where it is.

    What the new root's own joints can say they say; the rest is where the root is held.

    Args:
        q: Joint values with the root that is there, (nq,).
        at: The root that is there.
        given: The skeleton that was given.
        mode: How the root shall move.

    Raises:
        InputError: If there is no such mode.
    """
    own, to = without_root_values(q, given), rooted(given, mode)
    left = _carried(q, at, given)
    if np.abs(left - np.eye(4)).max() <= _SAME:
        return to, with_root_values(own, to)
    first = given.joints[0]
    if first.kind is Kind.FREE:  # it can say all, whatever is put before it
        own[:7] = _free_values(np.linalg.inv(first.rest) @ left @ first.rest @ rigid(own[:3], quat_to_matrix(own[3:7])))
        return to, with_root_values(own, to)
    out = with_root_values(own, to)
    if to.mode == "free":
        out[:7] = _free_values(left)
        return to, out
    if to.mode != "fixed" and np.abs(left[:3, :3] - np.eye(3)).max() <= _SAME:
        left = left.copy()
        for place, axis in enumerate(to.mode.split(",")):
            if axis in ("x", "y", "z"):
                out[place] = left["xyz".index(axis), 3]
                left["xyz".index(axis), 3] = 0.0
    return (to if np.abs(left - np.eye(4)).max() <= _SAME else rooted(given, mode, left)), out


def _free_values(frame: Array) -> tuple[float, ...]:
    """Return the values of a free joint that has a frame, (4, 4)."""
    return (*frame[:3, 3].tolist(), *matrix_to_quat(frame[:3, :3]).tolist())


def _carried(q: Array, at: Rooted, given: Skeleton) -> Array:
    """Return how a root that moves, and the place where it is held, carry the given skeleton, (4, 4)."""
    if not at.added:
        return np.eye(4) if at.base is None else at.base
    before = np.concatenate([q[: len(q) - given.nq], given.rest_q])
    return Pose(at.skeleton, before).transform(at.added) @ np.linalg.inv(given.rest_pose().transform(0))


def with_root_values(q: Array, to: Rooted) -> Array:
    """Return joint values (..., nq) of the given skeleton as values of the rooted one, its own joints at rest."""
    more = to.skeleton.nq - q.shape[-1]
    return with_root_at_rest(q, more) if more else q.copy()


def without_root_values(q: Array, given: Skeleton) -> Array:
    """Return the joint values of the given skeleton's own joints."""
    return q[..., q.shape[-1] - given.nq :].copy()
