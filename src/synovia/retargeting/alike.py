"""Bodies that are built alike: the same tree, with bones in the same directions at rest.

Whatever their rest poses mean, they mean the same in both. So the one has the rest pose that was found for the other,
though its names, its size, the axes of its bones and the lengths of some of them may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.geometry import Array, axis_vector, unit
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body
from synovia.retargeting.bones import smallest_rotation
from synovia.retargeting.rest_pose import RestPose

_APART: Final = 1e-3  # distance between unit vectors in directions that differ
_POINT: Final = 1e-6  # a shorter bone has no direction; a fraction of the skeleton's size
_LENGTHS: Final = 1e-6  # relative difference of lengths that are equal
_FEW: Final = 4  # bones of parts that two bodies need at least
_ALONG: Final = 0.999  # cosine between directions that are the same axis


@dataclass(frozen=True, eq=False)
class Alike:
    """Two bodies that are built alike.

    Args:
        source: The one, at rest as in its file.
        target: The other one, likewise.
        turn: Rotation from the world of the source to that of the target in which both are at rest.
        rows: Row of the source for each of the target, from the hips on.
    """

    source: Body
    target: Body
    turn: Array
    rows: dict[int, int]

    @classmethod
    def of(cls, source: Body, target: Body) -> Alike | None:
        """Return two bodies as they are in their files; None if they are not built alike."""
        if "hips" not in source.roles or "hips" not in target.roles:
            return None
        one, other = (Body(body.skeleton, body.roles) for body in (source, target))
        turn = _turn(one, other)
        if turn is None:
            return None
        rows = _matched(one.rest, other.rest, one, other, turn)
        same = all(rows.get(row) == source.roles[role] for role, row in target.roles.items() if role in source.roles)
        return cls(one, other, turn, rows) if same else None

    def standing(self, source: Body, name: str) -> tuple[Body, RestPose]:
        """Return the target with the rest pose that the source has, and that pose.

        It stands in the world of its file if that states its axis, and the source does not have the same one.

        Args:
            source: The source with its rest pose.
            name: The name of the pose.
        """
        body, turn = self.target, self.turn
        stated, own = (None if one.skeleton.up is None else axis_vector(one.skeleton.up) for one in (body, self.source))
        up = turn @ source.basis[:, 1]
        if stated is not None and (own is None or turn @ own @ stated < _ALONG):
            turn = smallest_rotation(up, stated) @ turn
        before, after = (
            self.source.rest[:, :9].reshape(-1, 3, 3),
            source.rest[:, :9].reshape(-1, 3, 3),
        )
        stays, hips = body.rest[:, :9].reshape(-1, 3, 3), body.roles["hips"]
        whole = turn @ after[self.rows[hips]] @ before[self.rows[hips]].T @ self.turn.T
        above = set(ancestors(body.skeleton.parents, hips))
        frames = np.empty_like(body.rest)
        for row, parent in enumerate(body.skeleton.parents):
            if row in self.rows and row != hips:
                other = self.rows[row]
                R = turn @ after[other] @ before[other].T @ self.turn.T @ stays[row]
            elif row in above or parent < 0:
                R = whole @ stays[row]
            else:
                R = frames[parent, :9].reshape(3, 3) @ stays[parent].T @ stays[row]
            place = whole @ body.rest[row, 9:]
            if parent >= 0:
                away = stays[parent].T @ (body.rest[row, 9:] - body.rest[parent, 9:])
                place = frames[parent, 9:] + frames[parent, :9].reshape(3, 3) @ away
            frames[row, :9], frames[row, 9:] = R.ravel(), place
        axes = turn @ source.basis
        return Body(body.skeleton, body.roles, frames, axes[:, 1], axes), RestPose(name, frames, 1.0, {})

    def has_same_legs(self) -> bool:
        """Return whether hips and legs have the same lengths, apart from the size of the bodies."""
        ratio = self.target.leg / self.source.leg
        legs = {self.target.roles[f"{side}_upper_leg"] for side in ("left", "right")}
        for row in range(len(self.target.skeleton)):
            line = ancestors(self.target.skeleton.parents, row)
            if legs.isdisjoint(line):
                continue
            other = self.rows.get(row)
            if other is None:
                return False
            lengths = [
                float(np.linalg.norm(body.rest[k, 9:] - body.rest[body.roles["hips"], 9:]))
                for body, k in ((self.target, row), (self.source, other))
            ]
            if abs(lengths[0] - ratio * lengths[1]) > _LENGTHS * self.target.leg:
                return False
        return True


def same_parts(source: Skeleton, target: Skeleton) -> tuple[dict[str, int], dict[str, int]]:
    """Return the parts of two skeletons, row by role.

    Where both are one tree of joints, with bones in the same directions at rest, the one in which more parts are known
    by names or shape shows those of the other.
    """
    found = dict(source.role_rows), dict(target.role_rows)
    added = len(target) - len(source)
    if not 0 <= added <= 1 or len(source) < _FEW:
        return found
    parents = [max(parent - added, -1) for parent in target.parents[added:]]
    if parents != list(source.parents):
        return found
    before, after = (np.array(one.rest_pose().frames)[:, 9:] for one in (source, target))
    rows = [row for row, parent in enumerate(parents) if parent >= 0]
    above = [parents[row] for row in rows]
    turn = _turn_of(before[rows] - before[above], after[added:][rows] - after[added:][above])
    if turn is None:
        return found
    if len(found[0]) >= len(found[1]):
        return found[0], {role: row + added for role, row in found[0].items()}
    return {role: row - added for role, row in found[1].items() if row >= added}, found[1]


def _turn(source: Body, target: Body) -> Array | None:
    """Return the rotation of the bones between parts from one body to the other, None if their directions differ."""
    common = [role for role in source.roles if role in target.roles]
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
    """Return the rotation from bones (n, 3) to others in the same directions; None if there is none, or no single one.

    Lengths of 0 have no direction, but have to be 0 in both.
    """
    sizes = [np.linalg.norm(lines, axis=1) for lines in (before, after)]
    bones = [size > _POINT * size.max(initial=0.0) for size in sizes]
    if (bones[0] != bones[1]).any() or np.count_nonzero(bones[0]) < _FEW:
        return None
    a, b = unit(before[bones[0]]), unit(after[bones[0]])
    u, s, vt = np.linalg.svd(b.T @ a)
    turn = u @ np.diag((1.0, 1.0, np.sign(np.linalg.det(u @ vt)))) @ vt
    return turn if s[1] > _APART and float(np.abs(b - a @ turn.T).max()) < _APART else None


def _matched(before: Array, after: Array, source: Body, target: Body, turn: Array) -> dict[int, int]:
    """Return the row of the source for each of the target from the hips on, as far as their bones have one direction.

    Args:
        before: World frames of the source, (n, 12).
        after: World frames of the target, (m, 12).
        source: The one body.
        target: The other one.
        turn: Rotation from the world of the one to that of the other.
    """
    rows = {target.roles["hips"]: source.roles["hips"]}
    queue = [*rows.items()]
    ratio = target.skeleton.size / source.skeleton.size
    while queue:
        own, row = queue.pop()
        left = [*source.skeleton.children[row]]
        for child in target.skeleton.children[own]:
            way = after[child, 9:] - after[own, 9:]
            best, least = None, np.inf
            for other in left:
                line = ratio * turn @ (before[other, 9:] - before[row, 9:])
                sizes = float(np.linalg.norm(way)), float(np.linalg.norm(line))
                if max(sizes) <= _POINT * target.skeleton.size:
                    off = 0.0
                elif min(sizes) <= _POINT * target.skeleton.size or np.abs(unit(way) - unit(line)).max() > _APART:
                    continue
                else:
                    off = abs(sizes[0] - sizes[1]) / target.skeleton.size
                off += float(_count(source.skeleton, other) != _count(target.skeleton, child))
                if off < least:
                    best, least = other, off
            if best is not None:
                left.remove(best)
                rows[child] = best
                queue.append((child, best))
    return rows


def _count(skeleton: Skeleton, row: int) -> int:
    """Return the number of joints below one."""
    return sum(1 + _count(skeleton, child) for child in skeleton.children[row])
