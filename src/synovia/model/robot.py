"""Robots as files of learning frameworks describe them: a floating base, then joints of one value each, in order."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np

from synovia.errors import UnsupportedError
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, frames_to_transforms, matrix_to_quat, rigid, rotation_between
from synovia.model.pose import world_frames
from synovia.model.root import free_root, root_of

Order = Literal["breadth", "depth"]
_SCALAR: Final = (Kind.HINGE, Kind.SLIDE)
STILL: Final = 1e-5  # radians, and fraction of the robot's size; large because files have single precision
_AXES: Final = 6  # largest number of slides and hinges of a root


class Robot(NamedTuple):
    """The parts of a skeleton that files of learning frameworks name.

    Args:
        base: Row of the body whose pose represents the whole robot (URDF's first link, G1's pelvis).
        joints: Rows of the hinges and slides.
        bodies: Rows of the bodies: the base, then bodies that a joint moves. Bodies fixed to another body are part of
            it, as when Isaac Lab and MuJoCo read a URDF.
    """

    base: int
    joints: list[int]
    bodies: list[int]


def robot_of(skeleton: Skeleton, order: Order, where: str) -> Robot:
    """Return the parts of a skeleton that files of learning frameworks name.

    Args:
        skeleton: The skeleton.
        order: Order of joints and bodies: ``"breadth"`` (all bodies nearest to the base first, as in Isaac Lab) or
            ``"depth"`` (limb by limb, as in MuJoCo and in the model's file).
        where: The file, for messages.

    Raises:
        UnsupportedError: If a joint has more than one degree of freedom.
    """
    base = base_of(skeleton)
    moving = [row for row in range(base + 1, len(skeleton)) if skeleton.joints[row].kind is not Kind.FIXED]
    for row in moving:
        joint = skeleton.joints[row]
        if joint.kind not in _SCALAR:
            raise UnsupportedError(
                f"joint {joint.name!r} is a {joint.kind.name.lower()}",
                where=where,
                expected="a robot whose joints are hinges and slides",
                hint="retarget the clip to a robot first",
            )
    if order == "breadth":
        moving = _by_breadth(skeleton, base, moving)
    with_body = [row for row in moving if skeleton.joints[row].body is not None]
    return Robot(base, moving, [base, *(with_body or moving)])


def body_name(skeleton: Skeleton, row: int) -> str:
    """Return the name of the body of a row, else of its joint."""
    joint = skeleton.joints[row]
    return joint.body or joint.name


def floating(skeleton: Skeleton, base: int, poses: Array, free: int | None = None) -> Array:
    """Return the values of a free root (T, 7) that move the base to given poses.

    Args:
        skeleton: A skeleton with a free root.
        base: Row of the base, below the root without a moving joint between.
        poses: World transforms of the base, (T, 4, 4).
        free: Row of the free joint that carries the base, with no moving joint above it; None for the free root.
    """
    free = (free_root(skeleton.joints, skeleton.parents) or 0) if free is None else free
    rest = frames_to_transforms(world_frames(skeleton, skeleton.rest_q[None]))[0]
    parent = skeleton.parents[free]
    own = skeleton.joints[free].rest
    moved: Array = _back(own if parent < 0 else rest[parent] @ own) @ poses @ _back(rest[base]) @ rest[free]
    return np.concatenate([moved[:, :3, 3], matrix_to_quat(moved[:, :3, :3])], axis=1)


def free_slice(skeleton: Skeleton) -> slice:
    """Return the slice of q that holds the values of the free root."""
    return skeleton.q_slice(free_root(skeleton.joints, skeleton.parents) or 0)


def mounted(skeleton: Skeleton, rooted: Skeleton, q: Array, still: float = STILL) -> tuple[Skeleton, Array]:
    """Return a robot and its joint values (T, nq); an added free root is removed if it stays at rest.

    Args:
        skeleton: The original robot.
        rooted: The robot with a free root.
        q: Joint values of ``rooted``.
        still: Largest motion of a root at rest, radians, and as a fraction of the robot's size.
    """
    if rooted is skeleton:
        return rooted, q
    base, rest = q[:, free_slice(rooted)], rooted.rest_q[free_slice(rooted)]
    turns = rotation_between(np.broadcast_to(rest[3:], (len(q), 4)), base[:, 3:])
    rests = np.abs(base[:, :3] - rest[:3]).max() <= still * rooted.size and np.abs(turns).max() <= still
    return (skeleton, np.delete(q, free_slice(rooted), axis=1)) if rests else (rooted, q)


def _back(transform: Array) -> Array:
    """Return the inverse of a rigid transform (4, 4)."""
    back = transform[:3, :3].T
    return rigid(-back @ transform[:3, 3], back)


def base_of(skeleton: Skeleton) -> int:
    """Return the row of the first body at or below the root."""
    start = free_root(skeleton.joints, skeleton.parents)
    if start is None:
        sizes = range(min(_AXES, len(skeleton) - 1), 0, -1)
        start = next((size for size in sizes if root_of(skeleton.joint_names[:size]) is not None), 0)
    row = start
    while skeleton.joints[row].body is None:
        row += 1
        if row == len(skeleton) or skeleton.joints[row].kind is not Kind.FIXED:
            return start
    return row


def _by_breadth(skeleton: Skeleton, base: int, moving: list[int]) -> list[int]:
    """Return the rows of moving joints, sorted by the number of moving joints between them and the base."""
    wanted = set(moving)
    above: dict[int, tuple[int, ...]] = {}  # moving joints from the base to each row, by row
    for row in range(base + 1, len(skeleton)):
        path = above.get(skeleton.parents[row], ())
        above[row] = (*path, row) if row in wanted else path
    return sorted(moving, key=lambda row: (len(above[row]), above[row]))
