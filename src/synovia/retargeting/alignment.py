"""Align rest poses that differ, such as a T-pose with hanging arms; and find bodies that are built alike.

Bodies are built alike if their trees have the same joints, and bones in the same directions at rest. Then their rest
poses show the same posture. So a rest pose that was found for one body is used for the other, although names, size,
bone axes and some lengths may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, axis_vector, unit
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body
from synovia.retargeting.bones import bone, hip_middle, middle, smallest_rotation
from synovia.retargeting.rest_pose import RestPose

_LEVEL: Final = 0.3  # sine of the angle from vertical: a steeper foot has no heading
TRUNK: Final = ("hips", "spine", "chest", "upper_chest", *(f"{side}_shoulder" for side in SIDES))
_TOPS: Final = (tuple(f"{side}_upper_arm" for side in SIDES), ("neck",), ("head",))  # roles at which the trunk ends
_SHORT: Final = 0.01  # fraction of the skeleton's size; a shorter trunk or neck has no direction
# each limb part, with the part whose alignment it inherits
_LIMBS: Final = (
    ("upper_leg", None), ("lower_leg", "upper_leg"), ("upper_arm", None), ("lower_arm", "upper_arm"),
)  # fmt: skip
_APART: Final = 1e-3  # directions differ if a component of the difference of their unit vectors is at least this
_POINT: Final = 1e-6  # fraction of the longest bone, or of the skeleton's size: a shorter bone has no direction
_LENGTHS: Final = 1e-6  # leg lengths: lengths that differ by at most this are equal
_ROUNDED: Final = 1e-12  # axes that differ by at most this are equal
_FEW: Final = 4  # least number of bones to compare bodies
_ALONG: Final = 0.999  # cosine: directions with a larger one lie along the same axis


@dataclass(frozen=True, eq=False)
class Part:
    """A part that both bodies have, and how it follows.

    Args:
        role: Role of the part.
        source: Row of its joint in the source.
        target: Row of its joint in the target.
        turn: Rotation from the target's rest pose to the source's, in the axes of the body, (3, 3).
        earlier: Row of an earlier joint of the source; the part takes a share of the rotation from that joint on. -1 to
            take all of it.
        share: The share of the rotation, from 0 to 1.
        twist: Axis of a pure twist in the frame of ``source``, (3,); None to take the whole rotation.
    """

    role: str
    source: int
    target: int
    turn: Array
    earlier: int = -1
    share: float = 1.0
    twist: Array | None = None

    @property
    def angle(self) -> float:
        """Angle between the two rest poses, radians."""
        return float(np.arccos(np.clip((np.trace(self.turn) - 1.0) / 2.0, -1.0, 1.0)))


def align(source: Body, target: Body, roles: Sequence[str]) -> list[Part]:
    """Return the parts that both bodies have, with the rotations that align their rest poses.

    A limb inherits the alignment of the bone above it, and adds the smallest rotation that aligns its own bone with the
    source's. So a bent forearm is straightened at the elbow before the whole arm is raised, and does not twist. Bones
    are aligned even if their difference is small: a threshold could correct one side of a body and not the other. All
    parts of the trunk take the smallest rotation that aligns the lines of both trunks. Without it, a body that leans in
    its rest pose would lean less or more in every frame. The neck points like the source's neck; the head is not
    aligned.
    """
    lean = _lean(source, target)
    turns: dict[str, Array] = {role: lean for role in TRUNK if role in roles}
    if {"neck", "head"} <= set(roles):
        ways = _neck(source), _neck(target)
        if ways[0] is not None and ways[1] is not None:
            turns["neck"] = smallest_rotation(ways[1], ways[0])
    for side in SIDES:
        for part, above in _LIMBS:
            role = f"{side}_{part}"
            if role not in roles:
                continue
            turn = turns.get(f"{side}_{above}", np.eye(3))
            ways = _direction(source, role), _direction(target, role)
            if ways[0] is not None and ways[1] is not None:
                turn = smallest_rotation(turn @ ways[1], ways[0]) @ turn
            turns[role] = turn
        hand = f"{side}_hand"
        if hand in roles:
            turns[hand] = turns.get(f"{side}_lower_arm", np.eye(3))
        foot, toes = f"{side}_foot", f"{side}_toes"
        if foot in roles:
            ways = _heading(source, foot), _heading(target, foot)
            turns[foot] = turns[toes] = (
                np.eye(3) if ways[0] is None or ways[1] is None else smallest_rotation(ways[1], ways[0])
            )
        for role in roles:  # fingers take the alignment of the hand
            if role.startswith(side) and role[-1].isdigit():
                turns[role] = turns.get(hand, np.eye(3))
    return [Part(role, source.roles[role], target.roles[role], turns.get(role, np.eye(3))) for role in roles]


def _lean(source: Body, target: Body) -> Array:
    """Return the smallest rotation from the direction of the target's trunk at rest to that of the source's trunk.

    Files place the joints of hips, neck and shoulders differently. So the direction is a mean of two lines: from the
    midpoint of the hip joints to the midpoint of the shoulders, and from the joint of the hips to the neck. The
    rotation is the identity for bodies without legs.
    """
    bodies = target, source
    if any(role not in body.roles for body in bodies for role in ("hips", *(f"{side}_upper_leg" for side in SIDES))):
        return np.eye(3)
    lines = [np.zeros(3), np.zeros(3)]
    for tops in (_TOPS, (_TOPS[1], _TOPS[0], _TOPS[2])):
        top = next((top for top in tops if all(role in body.roles for role in top for body in bodies)), None)
        if top is None:
            return np.eye(3)
        for k, body in enumerate(bodies):
            bottom = hip_middle(body, body.rest) if tops is _TOPS else body.rest[body.roles["hips"], 9:]
            way = middle(body, top, body.rest) - bottom
            if float(np.linalg.norm(way)) < _SHORT * body.skeleton.size:
                return np.eye(3)
            lines[k] += unit(way) @ body.basis
    return smallest_rotation(unit(lines[0]), unit(lines[1]))


def _neck(body: Body) -> Array | None:
    """Return the direction from neck to head at rest, in the body's axes, (3,); None if the two coincide."""
    way = body.rest_position("head") - body.rest_position("neck")
    return unit(way) @ body.basis if np.linalg.norm(way) > _SHORT * body.skeleton.size else None


def _direction(body: Body, role: str) -> Array | None:
    """Return the direction of a bone at rest, in the body's axes, (3,); None if the bone has no length."""
    way = bone(body, role, body.rest)
    return None if way is None else way @ body.basis


def _heading(body: Body, foot: str) -> Array | None:
    """Return the horizontal direction of a foot, (3,), as soles are level at rest but heights of ankles differ."""
    way = _direction(body, foot)
    if way is None or np.hypot(way[0], way[2]) < _LEVEL:
        return None
    return unit(way * (1.0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Alike:
    """Two bodies that are built alike.

    Args:
        source: The first body, with the rest pose of its file.
        target: The second body, with the rest pose of its file.
        turn: Rotation from the source's world to the target's that aligns both rest poses, (3, 3).
        rows: Row of the source for each row of the target, from the hips on.
    """

    source: Body
    target: Body
    turn: Array
    rows: dict[int, int]

    @classmethod
    def of(cls, source: Body, target: Body) -> Alike | None:
        """Return a pair of bodies with the rest poses of their files; None if they are not built alike."""
        if "hips" not in source.roles or "hips" not in target.roles:
            return None
        turn = _turn(source, target)
        if turn is None:
            return None
        rows = _matched(source, target, turn)
        same = all(rows.get(row) == source.roles[role] for role, row in target.roles.items() if role in source.roles)
        return cls(source, target, turn, rows) if same else None

    def standing(self, source: Body, name: str, level: Array) -> tuple[Body, RestPose]:
        """Return the target with the source's rest pose, and this pose.

        If the source leans, its tilt is removed. If the target's file states another upward axis than the source, the
        target stands along that axis.

        Args:
            source: The source with the rest pose that was found for it.
            name: The name of the pose.
            level: The upward axis in the source's world without the tilt, (3,).
        """
        body, turn, parents = self.target, self.turn, self.target.skeleton.parents
        ups = [one.skeleton.up for one in (self.source, body)]
        own, stated = (None if up is None else axis_vector(up) for up in ups)
        up = source.basis[:, 1]
        if up @ level < 1.0 - _ROUNDED:
            turn = turn @ smallest_rotation(up, level)
        if stated is not None and (own is None or self.turn @ own @ stated < _ALONG):
            turn = smallest_rotation(turn @ up, stated) @ turn
        axes = turn @ source.basis
        if name == "file" and turn is self.turn:
            if np.abs(body.basis - axes).max() > _ROUNDED:
                body = Body(body.skeleton, body.roles, None, axes[:, 1], axes)
            return body, RestPose(name, body.rest, 1.0, {})
        before, after, stays = (one[:, :9].reshape(-1, 3, 3) for one in (self.source.rest, source.rest, body.rest))
        hips = body.roles["hips"]
        above = ancestors(parents, hips)
        frames = np.empty_like(body.rest)
        for row, parent in enumerate(parents):
            moved = self.rows.get(hips if row in above else row)
            if moved is not None:
                turned = turn @ after[moved] @ before[moved].T @ self.turn.T @ stays[row]
            else:
                turned = frames[parent, :9].reshape(3, 3) @ stays[parent].T @ stays[row] if parent >= 0 else stays[row]
            place = body.rest[row, 9:]
            if parent >= 0:
                way = stays[parent].T @ (place - body.rest[parent, 9:])
                place = frames[parent, 9:] + frames[parent, :9].reshape(3, 3) @ way
            frames[row, :9], frames[row, 9:] = turned.ravel(), place
        return Body(body.skeleton, body.roles, frames, axes[:, 1], axes), RestPose(name, frames, 1.0, {})

    def has_same_legs(self) -> bool:
        """Return whether hips and legs have equal lengths relative to the sizes of the bodies."""
        ratio, parents = self.target.leg / self.source.leg, self.target.skeleton.parents
        legs = {self.target.roles[f"{side}_upper_leg"] for side in SIDES}
        for row in range(len(parents)):
            if legs.isdisjoint(ancestors(parents, row)):
                continue
            if row not in self.rows:
                return False
            far, other = (
                float(np.linalg.norm(body.rest[k, 9:] - body.rest[body.roles["hips"], 9:]))
                for body, k in ((self.target, row), (self.source, self.rows[row]))
            )
            if abs(far - ratio * other) > _LENGTHS * self.target.leg:
                return False
        return True


def same_parts(source: Skeleton, target: Skeleton) -> tuple[dict[str, int], dict[str, int]]:
    """Return the roles of two skeletons, as rows by role.

    If both have the same tree of joints with bones in the same directions at rest, the skeleton with more known roles
    defines the roles of the other, unless the other's file declares roles.

    Args:
        source: The first skeleton.
        target: The second skeleton; it may have one more joint, above its root.
    """
    found = dict(source.role_rows), dict(target.role_rows)
    added = len(target) - len(source)
    parents = [max(parent - added, -1) for parent in target.parents[max(added, 0) :]]
    if added not in (0, 1) or parents != list(source.parents):
        return found
    rows = [row for row, parent in enumerate(parents) if parent >= 0]
    above = [parents[row] for row in rows]
    before, after = (np.array(one.rest_pose().frames)[-len(source) :, 9:] for one in (source, target))
    if _turn_of(before[rows] - before[above], after[rows] - after[above]) is None:
        return found
    declared = [any(joint.role for joint in one.joints) for one in (source, target)]
    if not declared[1] and len(found[0]) >= len(found[1]):
        return found[0], {role: row + added for role, row in found[0].items()}
    if not declared[0] and len(found[1]) > len(found[0]):
        return {role: row - added for role, row in found[1].items() if row >= added}, found[1]
    return found


def _turn(source: Body, target: Body) -> Array | None:
    """Return the rotation that maps one body's bones onto the other's; None if no rotation does."""
    common = sorted((role for role in source.roles if role in target.roles), key=target.roles.__getitem__)
    lines: list[Array] = []
    for body in (source, target):
        own = {body.roles[role] for role in common}
        above: list[int] = []
        for role in common:
            line = ancestors(body.skeleton.parents, body.roles[role])
            above.append(next((row for row in line[1:] if row in own), line[0]))
        lines.append(body.rest[[body.roles[role] for role in common], 9:] - body.rest[above, 9:])
    return _turn_of(*lines)


def _turn_of(before: Array, after: Array) -> Array | None:
    """Return the rotation between bones (n, 3) and others in the same directions; None if none or several fit.

    Bones of zero length have no direction, but must be the same ones in both arrays.
    """
    sizes = [np.linalg.norm(lines, axis=1) for lines in (before, after)]
    bones = [size > _POINT * size.max(initial=0.0) for size in sizes]
    if (bones[0] != bones[1]).any() or np.count_nonzero(bones[0]) < _FEW:
        return None
    a, b = unit(before[bones[0]]), unit(after[bones[0]])
    u, s, vt = np.linalg.svd(b.T @ a)
    turn = u @ np.diag((1.0, 1.0, np.sign(np.linalg.det(u @ vt)))) @ vt
    return turn if s[1] > _APART and float(np.abs(b - a @ turn.T).max()) < _APART else None


def _matched(source: Body, target: Body, turn: Array) -> dict[int, int]:
    """Return, for each target row from the hips on, the source row whose bone has the same direction, if there is one.

    Args:
        source: The first body.
        target: The second body.
        turn: Rotation from the world of the source to that of the target.
    """
    rows = {target.roles["hips"]: source.roles["hips"]}
    queue = [*rows.items()]
    size, counts = target.skeleton.size, [_counts(body.skeleton) for body in (source, target)]
    ratio = size / source.skeleton.size
    while queue:
        own, row = queue.pop()
        left = [*source.skeleton.children[row]]
        for child in target.skeleton.children[own]:
            way = target.rest[child, 9:] - target.rest[own, 9:]
            far = float(np.linalg.norm(way))
            off: dict[int, float] = {}
            for other in left:
                line = ratio * turn @ (source.rest[other, 9:] - source.rest[row, 9:])
                length = float(np.linalg.norm(line))
                ends = [one > _POINT * size for one in (far, length)]
                if ends[0] == ends[1] and not (ends[0] and np.abs(way / far - line / length).max() > _APART):
                    off[other] = abs(far - length) / size + abs(counts[0][other] - counts[1][child])
            if off:
                best = min(off, key=off.__getitem__)
                left.remove(best)
                rows[child] = best
                queue.append((child, best))
    return rows


def _counts(skeleton: Skeleton) -> list[int]:
    """Return the number of joints in the subtree of each joint, (n,)."""
    out = [1] * len(skeleton)
    for row in reversed(range(len(skeleton))):
        if skeleton.parents[row] >= 0:
            out[skeleton.parents[row]] += out[row]
    return out
