"""Root modes (fixed, free, or motion along and about axes), and changes between them that keep the body in place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix, rigid
from synovia.model.root import as_root, with_root_at_rest

ROOTS: Final = ("fixed", "free", "x", "y", "z", "x,y", "x,z", "y,z", "x,y,z", "x,y,yaw", "x,z,pitch")
_SAME: Final = 1e-12  # largest difference between frames that count as equal


@dataclass(frozen=True, slots=True, eq=False)
class Rooted:
    """A skeleton with a root mode.

    Args:
        mode: Root mode as in ``IK``: ``fixed``, ``free``, or axes, for example ``x,z``.
        held: The given skeleton, moved by ``base``.
        skeleton: ``held`` with the joints of the root mode in front of its own joints.
        added: Number of joints that the root mode adds.
        base: Transform, (4, 4), from the pose of the root in the file to the pose at which it is held; None for the
            identity.
    """

    mode: str
    held: Skeleton
    skeleton: Skeleton
    added: int
    base: Array | None = None


def rooted(skeleton: Skeleton, mode: str, base: Array | None = None) -> Rooted:
    """Return a skeleton with a root mode.

    Args:
        skeleton: The skeleton.
        mode: Root mode as in ``IK``.
        base: As in ``Rooted``.

    Raises:
        InputError: If the mode is unknown.
    """
    mode = as_root(mode)
    held = skeleton
    if base is not None:
        joints = zip(skeleton.joints, skeleton.parents, strict=True)
        held = skeleton.with_joints(
            [joint if parent >= 0 else replace(joint, rest=base @ joint.rest) for joint, parent in joints]
        )
    whole = held if mode == "fixed" else held.with_root(mode)
    return Rooted(mode, held, whole, len(whole) - len(held), base)


def changed_root(q: Array, at: Rooted, given: Skeleton, mode: str) -> tuple[Rooted, Array]:
    """Return the skeleton with another root mode, and joint values with which the body stays in place.

    The joints of the new root represent as much of the body's displacement as they can; ``base`` holds the rest.

    Args:
        q: Joint values with the current root, (nq,).
        at: The current root.
        given: The given skeleton.
        mode: The new mode.

    Raises:
        InputError: If the mode is unknown.
    """
    own, to = without_root_values(q, given), rooted(given, mode)
    left = _carried(q, at, given)
    if np.abs(left - np.eye(4)).max() <= _SAME:
        return to, with_root_values(own, to)
    first = given.joints[0]
    if first.kind is Kind.FREE:  # in any mode, a free joint can represent the whole displacement
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
    """Return the values of a free joint that has the given frame (4, 4)."""
    return (*frame[:3, 3].tolist(), *matrix_to_quat(frame[:3, :3]).tolist())


def _carried(q: Array, at: Rooted, given: Skeleton) -> Array:
    """Return the transform (4, 4) by which the root moves the given skeleton."""
    if not at.added:
        return np.eye(4) if at.base is None else at.base
    before = np.concatenate([q[: len(q) - given.nq], given.rest_q])
    return Pose(at.skeleton, before).transform(at.added) @ np.linalg.inv(given.rest_pose().transform(0))


def with_root_values(q: Array, to: Rooted) -> Array:
    """Return joint values (..., nq) of the given skeleton as values of the rooted skeleton, with the root at rest."""
    more = to.skeleton.nq - q.shape[-1]
    return with_root_at_rest(q, more) if more else q.copy()


def without_root_values(q: Array, given: Skeleton) -> Array:
    """Return joint values of the given skeleton from joint values of a rooted skeleton."""
    return q[..., q.shape[-1] - given.nq :].copy()
