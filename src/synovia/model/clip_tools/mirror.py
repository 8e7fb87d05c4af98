"""Mirror joint values: exchange left and right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.errors import InputError, UnsupportedError
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.axes import body_axes
from synovia.model.anatomy.names import SIDES, Word, common_prefix, read_name, split_name
from synovia.model.clip_tools.mirror_maps import maps_at_rest, maps_of_clip, reflection
from synovia.model.geometry import Array, axis_vector, matrix_to_quat, quat_product, quat_to_matrix, same_side, unit
from synovia.model.limit_frames import FORWARD
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors

# fraction of the body's size: joints that are nearer to each other's mirror images may be counterparts
_NEAR: Final = 0.05
# cosine between a direction and an axis of the world; directions with larger values are along this axis
_NEARLY: Final = float(np.cos(np.radians(10.0)))
_STEEP: Final = 0.5  # length of the horizontal part of a unit vector: vectors with a shorter part are steep
_ALIGNED: Final = 0.999  # smallest absolute entry of D that counts as 1; D then maps an axis to an axis
# words for the left and the right side in names
_RIGHT: Final = {"left": "right", "l": "r", "lleg": "rleg", "larm": "rarm"}
_EVEN: Final = 1e-4  # largest difference of a joint's scales along its axes that counts as rounding


@dataclass(frozen=True, slots=True, eq=False)
class Mirror:
    """The mirroring of a skeleton's joints.

    The mirror image of a joint's world rotation W is M W D: M reflects the world, W is the rotation of the joint's
    counterpart, and D, (3, 3) of determinant -1, maps the frame of the joint to that of its counterpart. At a symmetric
    rest pose D follows from the rotations at rest. If the rest poses of the two sides differ, D maps each bone, and
    each axis of a hinge, to that of the counterpart, by the smallest rotation. If the rest pose is impossible for a
    body, the clip shows the rotations about bones (``maps_of_clip``). D of a joint and D of its counterpart are inverse
    to each other, so mirroring twice gives the original.

    Args:
        skeleton: The skeleton.
        plane: Unit normal of the plane through the origin of the world, (3,), in which the world is reflected.
        pairs: Row of each joint's counterpart; its own row in the middle of the body; -1 for a joint of one side
            without a counterpart, which keeps its value.
        maps: D of each joint, (n, 3, 3).
    """

    skeleton: Skeleton
    plane: Array
    pairs: tuple[int, ...]
    maps: Array

    @classmethod
    def of(cls, skeleton: Skeleton, up: Array | None = None, q: Array | None = None) -> Mirror:
        """Return the mirror of a skeleton.

        Args:
            skeleton: The skeleton.
            up: Unit vector that points up in a clip, (3,), to make the plane upright even if the body lies in the zero
                pose; None for the plane that divides the body at rest.
            q: Joint values of a clip, (T, nq); needed if the rest pose does not determine how rotations about bones are
                mirrored.

        Raises:
            UnsupportedError: If no part of the body is recognised on both sides.
        """
        left = lateral(skeleton)
        return cls.across(skeleton, left, left if up is None else _level(left, up), q)

    @classmethod
    def across(cls, skeleton: Skeleton, left: Array, plane: Array | None = None, q: Array | None = None) -> Mirror:
        """Return the mirror of a skeleton with a known direction to the left.

        Args:
            skeleton: The skeleton.
            left: Unit vector (3,) from the right to the left of the body at rest.
            plane: Unit normal of the plane in which the world is reflected, (3,); None for ``left``.
            q: As in ``of``.
        """
        pairs = counterparts(skeleton, left)
        maps = maps_at_rest(skeleton, left, pairs)
        if q is not None:
            maps = maps_of_clip(skeleton, pairs, maps, q)
        return cls(skeleton, left if plane is None else plane, pairs, maps)

    @property
    def reflection(self) -> Array:
        """Matrix (3, 3) that reflects the world."""
        return reflection(self.plane)

    def applied(self, q: Array) -> Array:
        """Return the mirror image of joint values (T, nq), which may exceed limits."""
        skeleton, M, count = self.skeleton, self.reflection, len(q)
        frames = world_frames(skeleton, q)
        old = frames[..., :9].reshape(count, len(skeleton), 3, 3)
        new = np.empty_like(old)
        out = q.copy()
        for row, joint in enumerate(skeleton.joints):
            above, pair = skeleton.parents[row], self.pairs[row]
            base = (new[:, above] if above >= 0 else np.eye(3)) @ joint.rest[:3, :3]
            part = skeleton.q_slice(row)
            if pair >= 0 and joint.kind in (Kind.FREE, Kind.SLIDE):
                moved = (self._displacement(q, frames, row)[:, None] @ base)[:, 0]
                if joint.kind is Kind.FREE:
                    out[:, part.start : part.start + 3] = moved
                else:
                    out[:, part.start] = moved @ joint.axis
            local = np.broadcast_to(np.eye(3), (count, 3, 3))
            if joint.kind in (Kind.BALL, Kind.FREE):
                turn = slice(part.stop - 4, part.stop)
                if pair >= 0:
                    quats = matrix_to_quat(np.swapaxes(base, -1, -2) @ M @ old[:, pair] @ self.maps[row])
                    out[:, turn] = self._signed(q, row, quats)
                local = quat_to_matrix(out[:, turn])
            elif joint.kind is Kind.HINGE:
                if pair >= 0:
                    sign, rest = self._hinge(row)
                    out[:, part.start] = sign * q[:, skeleton.q_slice(pair).start] + rest
                half = 0.5 * out[:, part.start, None]
                local = quat_to_matrix(np.concatenate([np.sin(half) * joint.axis, np.cos(half)], axis=1))
            new[:, row] = base @ local
        return skeleton.follow(out)

    def stretched(self, stretch: Array) -> Array:
        """Return the mirror image of animated scale (T, n, 3) along the joints' own axes.

        The image is exact if the map D of each joint permutes axes, as in nearly all files.
        """
        squared = self.maps**2
        rows = [row if pair < 0 else pair for row, pair in enumerate(self.pairs)]
        keep = np.array(self.pairs)[:, None, None] < 0
        weights = np.where(keep, np.eye(3), np.swapaxes(squared, -1, -2))
        return np.einsum("nij,tnj->tni", weights, stretch[:, rows])

    def is_exact_for(self, stretch: Array) -> bool:
        """Return whether ``stretched`` is exact for animated scale (T, n, 3)."""
        # mask of joints with different scales along their axes
        scaled = np.ptp(stretch, axis=-1).max(0, initial=0.0) > _EVEN
        largest = np.abs(self.maps).max(-1).min(-1)
        return bool((largest[scaled] > _ALIGNED).all())

    def _displacement(self, q: Array, frames: Array, row: int) -> Array:
        """Return the mirror image of a sliding joint's displacement from its rest place, (T, 3), in world axes.

        A root moves to the mirror image of its counterpart's position, regardless of its rest place.
        """
        skeleton, pair = self.skeleton, self.pairs[row]
        other, above = skeleton.joints[pair], skeleton.parents[pair]
        at = skeleton.q_slice(pair)
        if other.kind is Kind.FREE and not any(skeleton.joints[k].kind for k in ancestors(skeleton.parents, pair)[1:]):
            return frames[:, pair, 9:] @ self.reflection - skeleton.rest_pose().positions[row]
        way = np.zeros((len(q), 3))
        if other.kind is Kind.FREE:
            way = q[:, at.start : at.start + 3]
        elif other.kind is Kind.SLIDE:
            way = q[:, at.start, None] * other.axis
        way = way @ other.rest[:3, :3].T
        if above >= 0:
            way = np.einsum("tij,tj->ti", frames[:, above, :9].reshape(-1, 3, 3), way)
        return way @ self.reflection

    def _signed(self, q: Array, row: int, quats: Array) -> Array:
        """Return quaternions (T, 4) with signs that follow the counterpart's, so that mirroring twice is the identity.

        The local rotation is K r D, where r is the counterpart's rotation and K, D are constant. Its quaternion is
        a constant times the quaternion of DᵀrD, in which a rotation vector w becomes -Dᵀw.
        """
        pair = self.pairs[row]
        at = self.skeleton.q_slice(pair)
        if self.skeleton.joints[pair].kind not in (Kind.BALL, Kind.FREE) or not len(q):
            return same_side(quats)
        turned = q[:, at.stop - 4 : at.stop].copy()
        turned[:, :3] = -turned[:, :3] @ self.maps[row]
        signs = np.einsum("ij,ij->i", quat_product(self._constant(row), turned), quats)
        return np.where(signs < 0.0, -1.0, 1.0)[:, None] * quats

    def _constant(self, row: int) -> Array:
        """Return the constant quaternion of ``_signed``, (4,). The signs of the constants of counterparts match."""
        skeleton, pair = self.skeleton, self.pairs[row]
        first = min(row, pair)
        above, other = skeleton.joints[first].rest[:3, :3], skeleton.joints[max(row, pair)].rest[:3, :3]
        parent = skeleton.parents[first]
        if any(skeleton.joints[k].kind for k in ancestors(skeleton.parents, first)[1:]):
            outer = self.maps[parent]
        else:  # parts that cannot move are mirrored like the world
            resting = np.eye(3) if parent < 0 else skeleton.rest_pose().matrix(parent)
            outer = resting.T @ self.reflection @ resting
        out = matrix_to_quat(above.T @ outer.T @ other @ self.maps[first])
        if first != row:
            # mirror image of the inverse of the counterpart's constant
            out = np.concatenate([out[:3] @ self.maps[row], out[3:]])
        return out

    def _hinge(self, row: int) -> tuple[float, float]:
        """Return sign s and angle c of a hinge: its mirrored angle is s t + c for the angle t of its counterpart.

        The local rotation is K r D, as in ``_signed``: c is the angle of K D about the axis. The counterpart's
        angle is -s c, even if the two axes are not each other's mirror image. So mirroring twice gives the original.
        """
        pair, joints = self.pairs[row], self.skeleton.joints
        first = min(row, pair)
        sign = -np.sign(joints[row].axis @ self.maps[row].T @ joints[pair].axis) or 1.0
        if row == pair and sign > 0.0:
            return sign, 0.0
        still = self._constant(first)
        angle = 2.0 * float(np.arctan2(still[:3] @ joints[first].axis, still[3]))
        angle = (angle + np.pi) % (2.0 * np.pi) - np.pi
        return sign, angle if row == first else -sign * angle


def lateral(skeleton: Skeleton) -> Array:
    """Return the unit vector (3,) from the right to the left of a body at rest.

    Raises:
        UnsupportedError: If no part of the body is recognised on both sides, or both sides coincide.
    """
    roles = skeleton.role_rows
    ends = {f"left_{part}" for part in ("upper_leg", "lower_leg", "upper_arm", "lower_arm", "shoulder", "foot", "hand")}
    paired = [role for role in roles if role.startswith("left_") and f"right_{role[5:]}" in roles]
    if not paired:
        raise UnsupportedError(
            "no part of the body is recognised on both sides",
            where=skeleton.name,
            expected="roles such as 'left_hand' and 'right_hand'",
            hint="skeleton.with_roles({'left_hand': ..., 'right_hand': ...}) names them",
        )
    places = {role: skeleton.rest_pose().positions[row] for role, row in roles.items()}
    try:
        left = body_axes(places, skeleton.size, skeleton.up, skeleton.name)[:, 0] if ends & {*paired} else np.zeros(3)
    except InputError:
        left = np.zeros(3)
    if not left.any():
        left = unit(np.sum([places[role] - places[f"right_{role[5:]}"] for role in paired], axis=0))
    if not left.any():
        raise UnsupportedError(
            "left and right coincide at rest", where=skeleton.name, expected="limbs that are apart at rest"
        )
    return _along_axis(left)


def _level(left: Array, up: Array) -> Array:
    """Return the horizontal direction (3,) nearest to the left of a body at rest; if left is steep, a world axis."""
    level = left - (left @ up) * up
    if np.linalg.norm(level) < _STEEP:
        axis = "xyz"[int(np.argmax(np.abs(up)))]
        level = np.cross(up, axis_vector(FORWARD[axis]))
    return _along_axis(unit(level))


def _along_axis(direction: Array) -> Array:
    """Return a unit vector (3,); if it is nearly along an axis of the world, return this axis."""
    axis = int(np.argmax(np.abs(direction)))
    near = abs(direction[axis]) > _NEARLY
    return np.sign(direction[axis]) * np.eye(3)[axis] if near else direction


def counterparts(skeleton: Skeleton, left: Array) -> tuple[int, ...]:
    """Return the row of each joint's counterpart on the other side of the body.

    Joints are paired by role, then by names that differ only in the side, then as the parents of a pair, then by their
    rest positions among the children of their parent's counterpart. A joint in the middle of the body is its own
    counterpart. A joint of one side without a counterpart gets -1.

    Args:
        skeleton: The skeleton.
        left: Unit vector to the left, (3,).
    """
    out = _named_pairs(skeleton)
    rest = skeleton.rest_pose().positions
    taken = set(out.values())
    for row, above in enumerate(skeleton.parents):
        if row in out:
            continue
        other = out.get(above, row) if above >= 0 else row
        if above < 0 or other < 0 or row in taken:
            out[row] = row if above < 0 else -1
            continue
        step = rest[row] - rest[above]
        image = step - 2.0 * (step @ left) * left
        kinds = skeleton.joints[row].kind
        near = {
            child: float(np.linalg.norm(rest[child] - rest[other] - image))
            for child in skeleton.children[other]
            if child not in taken and skeleton.joints[child].kind is kinds
        }
        best = min(near, key=near.__getitem__, default=-1)
        if best >= 0 and (near[best] < _NEAR * skeleton.size or len(skeleton.children[other]) == 1):
            out[row], out[best] = best, row
            taken |= {row, best}
        else:
            out[row] = row if other == above else -1
    return tuple(out[row] for row in range(len(skeleton)))


def _named_pairs(skeleton: Skeleton) -> dict[int, int]:
    """Return the counterparts, by row, of joints that are paired by role or by name."""
    out: dict[int, int] = {}
    roles = skeleton.role_rows
    for role, row in roles.items():
        pair = roles.get(f"right_{role[5:]}") if role.startswith("left_") else None
        if pair is not None and _alike(skeleton, row, pair):
            out[row], out[pair] = pair, row
        elif not role.startswith(SIDES):
            out[row] = row
    prefix = common_prefix([joint.name for joint in skeleton.joints if not joint.tip])
    words = [read_name(name, prefix) for name in skeleton.joint_names]
    rows: dict[Word, list[int]] = {}
    for row, word in enumerate(words):
        if word is not None and row not in out:
            rows.setdefault(word, []).append(row)
    for word, here in rows.items():
        there = rows.get(word._replace(side="right"), []) if word.side == "left" else []
        if len(here) == 1 and len(there) == 1 and _alike(skeleton, here[0], there[0]):
            out[here[0]], out[there[0]] = there[0], here[0]
    by_name = {tuple(word.lower() for word in split_name(name)): row for row, name in enumerate(skeleton.joint_names)}
    for parts, row in by_name.items():  # hinges of one anatomical joint, with names such as pitch and roll
        at = next((k for k, word in enumerate(parts) if word in _RIGHT), None)
        pair = None if at is None else by_name.get((*parts[:at], _RIGHT[parts[at]], *parts[at + 1 :]))
        if pair is not None and row not in out and pair not in out and _alike(skeleton, row, pair):
            out[row], out[pair] = pair, row
    # the parents of a pair are a pair, for example two hip joints at one place
    for row in range(len(skeleton) - 1, 0, -1):
        above, other = skeleton.parents[row], skeleton.parents[out.get(row, row)]
        free = min(above, other) >= 0 and above not in out and other not in out
        if free and above != other and _alike(skeleton, above, other):
            out[above], out[other] = other, above
    return out


def _alike(skeleton: Skeleton, row: int, other: int) -> bool:
    """Return whether the kinds of two joints allow them to be counterparts; files differ in which bones translate."""
    kinds = {skeleton.joints[row].kind, skeleton.joints[other].kind}
    return len(kinds) == 1 or kinds <= {Kind.FIXED, Kind.BALL, Kind.FREE}
