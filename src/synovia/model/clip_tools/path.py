"""Motion of a body over the ground: its place and heading over time, and moving the body elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import (
    Array,
    axis_vector,
    frames_to_transforms,
    matrix_to_quat,
    quat_product,
    quat_to_matrix,
    rigid,
    same_side,
    unit,
)
from synovia.model.limit_frames import FORWARD
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors

# sine of the angle between the vertical and the line through the hips; for larger values, the hips define the heading
_LEVEL: Final = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Motion of a body with a free root over the ground. Other roots in the file move with the body.

    The body's place is that of the hips, else of the root; its heading is the rotation of that joint about the upward
    axis. A step over the ground is a transform (4, 4) that rotates about the upward axis and does not change heights.

    Args:
        skeleton: The skeleton.
        roots: Rows of the free joints below which everything moves: the root, and the roots of other objects.
        hips: Row of the joint that defines place and heading.
        up: Unit vector that points up, (3,).
        zero: Rotation of the hips joint at heading 0, (3, 3).
    """

    skeleton: Skeleton
    roots: tuple[int, ...]
    hips: int
    up: Array
    zero: Array

    @classmethod
    def of(cls, skeleton: Skeleton, q: Array) -> Ground | None:
        """Return the ground motion of a clip with joint values (T, nq); None without a free root."""
        roots = free_roots(skeleton)
        if not roots or not len(q):
            return None
        hips = skeleton.role_rows.get("hips", roots[0])
        frames = world_frames(skeleton, q)
        up = find_up(skeleton, q).likely
        R = frames[0, hips, :9].reshape(3, 3)
        ground = cls(skeleton, roots, hips, up, R)
        return cls(skeleton, roots, hips, up, ground.turn(-ground._facing(frames[0])) @ R)

    @property
    def ahead(self) -> Array:
        """Direction of heading 0, (3,): the axis that the body faces at rest, if it is known."""
        skeleton = self.skeleton
        axis = np.argmax(np.abs(self.up))
        ahead = axis_vector(skeleton.forward or FORWARD["xyz"[axis]])
        level = ahead - (ahead @ self.up) * self.up
        return unit(level) if level.any() else axis_vector(FORWARD["xyz"[axis]])

    def turn(self, angle: float | Array) -> Array:
        """Return rotations (..., 3, 3) about the upward axis by angles (...)."""
        half = 0.5 * np.asarray(angle, np.float64)[..., None]
        return quat_to_matrix(np.concatenate([np.sin(half) * self.up, np.cos(half)], axis=-1))

    def angle(self, step: Array) -> float:
        """Return the rotation angle of a step over the ground, (4, 4), radians."""
        x, y, z, w = matrix_to_quat(step[:3, :3]).tolist()
        return float(2.0 * np.arctan2(self.up @ (x, y, z), w))

    def steps(self, place: Array, heading: Array) -> Array:
        """Return transforms (T, 4, 4) that move a body from the origin to places (T, 3) with headings (T,)."""
        out = np.broadcast_to(rigid(), (len(place), 4, 4)).copy()
        out[:, :3, :3] = self.turn(heading)
        out[:, :3, 3] = place - (place @ self.up)[:, None] * self.up
        return out

    def measured(self, q: Array) -> tuple[Array, Array]:
        """Return places (T, 3), with height 0, and headings (T,), radians, at joint values (T, nq)."""
        frames = world_frames(self.skeleton, q)[:, self.hips]
        quats = same_side(matrix_to_quat(frames[:, :9].reshape(-1, 3, 3) @ self.zero.T))
        heading = np.unwrap(2.0 * np.arctan2(quats[:, :3] @ self.up, quats[:, 3]))
        place = frames[:, 9:]
        return place - (place @ self.up)[:, None] * self.up, heading

    def path(self, q: Array) -> Array:
        """Return the path over the ground at joint values (T, nq), as transforms (T, 4, 4); see ``steps``."""
        return self.steps(*self.measured(q))

    def carried(self, q: Array, transforms: Array) -> Array:
        """Return joint values (T, nq) of the body after world transforms, (T, 4, 4) or (4, 4)."""
        out = q.copy()
        for root in self.roots:
            at = self.skeleton.q_slice(root)
            place, turn = slice(at.start, at.start + 3), slice(at.stop - 4, at.stop)
            base = self._base(root)
            local = inverse(base) @ transforms @ base
            out[:, place] = (local[..., :3, :3] @ q[:, place, None])[..., 0] + local[..., :3, 3]
            turns = matrix_to_quat(local[..., :3, :3])
            out[:, turn] = unit(quat_product(same_side(turns) if turns.ndim > 1 else turns, q[:, turn]))
        return out

    def placed(self, q: Array, path: Array) -> Array:
        """Return joint values (T, nq) with the body moved onto a given path over the ground, (T, 4, 4)."""
        return self.carried(q, path @ inverse(self.path(q)))

    def facing(self, direction: Array) -> float:
        """Return the heading, radians, of a body that faces a direction (3,); 0 if the direction is vertical."""
        across = np.cross(self.up, self.ahead)
        return float(np.arctan2(direction @ across, direction @ self.ahead))

    def _facing(self, frames: Array) -> float:
        """Return the heading of a body at world frames (n, 12), radians.

        The heading follows from the line between the hips if this line is level, else from the rotation of the hips
        since the rest pose.
        """
        roles = self.skeleton.role_rows
        legs = [roles.get(f"{side}_upper_leg") for side in ("left", "right")]
        if legs[0] is not None and legs[1] is not None:
            left = frames[legs[0], 9:] - frames[legs[1], 9:]
            ahead = np.cross(left, self.up)
            if np.linalg.norm(ahead) > _LEVEL * np.linalg.norm(left) > 0.0:
                return self.facing(ahead)
        rest = self.skeleton.rest_pose().frames[self.hips, :9].reshape(3, 3)
        ahead = frames[self.hips, :9].reshape(3, 3) @ rest.T @ self.ahead
        return self.facing(ahead)

    def _base(self, root: int) -> Array:
        """Return the world transform (4, 4) of a root's frame before its motion."""
        skeleton, joint = self.skeleton, self.skeleton.joints[root]
        above = skeleton.parents[root]
        return joint.rest if above < 0 else frames_to_transforms(skeleton.rest_pose().frames[above]) @ joint.rest


def inverse(transforms: Array) -> Array:
    """Return the inverses of rigid transforms (..., 4, 4)."""
    out = np.zeros_like(transforms)
    back = np.swapaxes(transforms[..., :3, :3], -1, -2)
    out[..., :3, :3] = back
    out[..., :3, 3] = -(back @ transforms[..., :3, 3, None])[..., 0]
    out[..., 3, 3] = 1.0
    return out


def ground_of(skeleton: Skeleton, q: Array, name: str) -> Ground:
    """Return the ground motion of a clip; see ``Ground.of``.

    Raises:
        InputError: If the body has no free root, or the clip has no frames.
    """
    if not len(q):
        raise InputError("number of frames", where=name, value=0, expected="at least 1")
    ground = Ground.of(skeleton, q)
    if ground is None:
        hint = "motion.on(motion.skeleton.with_root('free')) gives it one"
        raise InputError("root", where=name, value=skeleton.name, expected="a skeleton with a free root", hint=hint)
    return ground


def free_roots(skeleton: Skeleton) -> tuple[int, ...]:
    """Return the topmost moving joints if all of them are free; else an empty tuple."""
    rows = _first_moving(skeleton)
    return tuple(rows) if all(skeleton.joints[row].kind is Kind.FREE for row in rows) else ()


def moves_otherwise(skeleton: Skeleton) -> bool:
    """Return whether a body without free roots can travel in other ways: by slides, or with one of its parts."""
    kinds = {skeleton.joints[row].kind for row in _first_moving(skeleton)}
    return not free_roots(skeleton) and bool(kinds & {Kind.FREE, Kind.SLIDE})


def _first_moving(skeleton: Skeleton) -> list[int]:
    """Return the rows of the topmost moving joints."""
    return [
        row
        for row, joint in enumerate(skeleton.joints)
        if joint.kind and not any(skeleton.joints[k].kind for k in ancestors(skeleton.parents, row)[1:])
    ]
