"""Chains of joints: which joints between and near the matched parts of two bodies follow the source, and how.

Spines, necks and collar bones are chains of any number of joints. If the chains of both bodies have equally many
joints, these follow one by one. Otherwise, each joint of the target takes the rotation of the source along the same
stretch of its chain; the stretch of a joint reaches half-way to the joints before and after it. Joints along the bones
of arms and legs only twist. They follow such joints of the source or, in proportion to their position on the bone, the
wrist or ankle. Other joints follow joints of the source at the same place, or with the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from synovia.model import Kind
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.roles import meeting
from synovia.model.geometry import Array, unit
from synovia.model.tree import ancestors
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import Body

_TRUNK: Final = ("spine", "chest", "upper_chest")
_NECK: Final = ("neck", "head")
_BONES: Final = (("upper_arm", "lower_arm"), ("lower_arm", "hand"), ("upper_leg", "lower_leg"), ("lower_leg", "foot"))
_TWISTING: Final = ("lower_arm", "lower_leg")  # the bones of these parts twist with the part at their end
_BALLS: Final = (Kind.BALL, Kind.FREE)
_ON_BONE: Final = 0.15  # bone lengths: joints that are nearer to a bone lie on it
_NEAR: Final = 0.01  # leg lengths: joints of two bodies that are nearer are at the same place
_POINT: Final = 1e-6  # fraction of the skeleton's size: a shorter chain has no length
_WHOLE: Final = 1e-9  # shares that differ from 1 by at most this count as 1


def with_chains(source: Body, target: Body, parts: Sequence[Part]) -> list[Part]:
    """Return the parts, and the joints between and near them that follow the source; these have an empty role.

    If chains of the two bodies have different numbers of joints, parts take a share of the source's rotations. They do
    not if a joint map moves parts of the chain away from their usual joints, or leaves some out.

    Args:
        source: The body whose motion is retargeted, with its rest pose.
        target: The body that follows, with its rest pose.
        parts: The parts that both bodies have.
    """
    chains = _Chains(source, target, parts)
    chains.add_lines()
    chains.add_bones()
    chains.add_between()
    chains.add_neighbours()
    own = {part.target for part in parts}
    return [chains.found[part.target] for part in parts] + [
        part for row, part in sorted(chains.found.items()) if row not in own
    ]


class _Chains:
    """The joints of a target that follow a source, with what they follow.

    Args:
        source: The body whose motion is retargeted.
        target: The body that follows.
        parts: The parts that both bodies have.

    Attributes:
        found: How each joint of the target follows, by row.
    """

    def __init__(self, source: Body, target: Body, parts: Sequence[Part]) -> None:
        """Start with the matched parts."""
        self._bodies = source, target
        self._roles = {part.role for part in parts}
        self._named = [{*{**body.skeleton.role_rows, **body.roles}.values()} for body in self._bodies]
        self.found = {part.target: part for part in parts}
        self._pairs = {part.source: part.target for part in parts}  # target row for each source row, with a share of 1

    def add_lines(self) -> None:
        """Add the joints of trunk, neck and collar bones."""
        tops = [_top(body) for body in self._bodies]
        starts = [body.roles.get("hips") for body in self._bodies]
        self._add_line(_TRUNK, [_line(*one) for one in zip(self._bodies, starts, tops, strict=True)])
        ends = [
            next((body.roles[role] for role in reversed(_NECK) if role in self._roles), None) for body in self._bodies
        ]
        self._add_line(_NECK, [_line(*one) for one in zip(self._bodies, tops, ends, strict=True)])
        for side in SIDES:
            arm = f"{side}_upper_arm"
            if arm in self._roles:
                ends = [body.skeleton.parents[body.first_row(arm)] for body in self._bodies]
                self._add_line(
                    (f"{side}_shoulder",), [_line(*one) for one in zip(self._bodies, tops, ends, strict=True)]
                )

    def _add_line(self, roles: Sequence[str], lines: Sequence[Sequence[int]]) -> None:
        """Add the joints of a chain; ``lines`` has the chain's rows in source and target, from first to last."""
        known = [role for role in roles if all(role in body.skeleton.role_rows for body in self._bodies)]
        if not all(role in self._roles and self._is_own(role) for role in known):
            return
        parents = self._bodies[0].skeleton.parents
        own = {part.target for part in self.found.values() if part.role in roles}
        rows = [row for row in lines[0] if self._moves(row)]
        mine = [row for row in lines[1] if row in own or self._is_free(row)]
        if not rows or not mine:
            return
        named = next((row for row in mine if row in self.found), None)
        turn = self._turn_above(mine[0]) if named is None else self.found[named].turn
        shares = [(k, 1.0) for k in range(len(rows))]
        if len(rows) != len(mine):
            shares = _shares(*(_stretches(body, line) for body, line in zip(self._bodies, (rows, mine), strict=True)))
        for row, (k, share) in zip(mine, shares, strict=True):
            part = self.found.get(row) or Part("", rows[k], row, turn)
            turn = part.turn  # alignment of joints between this part and the next
            self._add(replace(part, source=rows[k], earlier=rows[k - 1] if k else parents[rows[0]], share=share))

    def add_bones(self) -> None:
        """Add the joints along the bones of arms and legs; these joints twist."""
        for side in SIDES:
            for upper, end in _BONES:
                roles = f"{side}_{upper}", f"{side}_{end}"
                if all(role in self._roles for role in roles):
                    self._add_bone(*roles, twists=upper in _TWISTING)

    def _add_bone(self, upper: str, end: str, *, twists: bool) -> None:
        """Add the joints along the bone of a part."""
        rows, mine = (_along(body, upper, end) for body in self._bodies)
        rows = {row: at for row, at in rows.items() if self._moves(row) and row not in self._pairs}
        mine = {row: at for row, at in mine.items() if self._is_free(row)}
        source, part = self._bodies[0], self.found[self._bodies[1].roles[upper]]
        first, last = source.roles[upper], source.roles[end]
        inside = [row for row in rows if row in ancestors(source.skeleton.parents, last)]
        if len(rows) == len(mine):
            for row, own in zip(rows, mine, strict=True):
                self._add(Part("", row, own, part.turn))
            return
        if not twists and not mine and inside:  # the end of the bone shows the plane in which the next one bends
            self._add(replace(part, source=inside[-1]))
            return
        points = [(0.0, first), *((at, row) for row, at in rows.items())]
        if twists:
            points.append((1.0, last))
        elif len(points) == 1:
            return
        rest = source.rest[:, :9].reshape(-1, 3, 3)
        line = unit(source.rest_position(end) - source.rest_position(upper))
        for own, at in mine.items():
            k = next((k for k in range(1, len(points)) if points[k][0] >= at), len(points) - 1)
            (before, earlier), (after, later) = points[k - 1 : k + 1]
            share = float(np.clip((at - before) / max(after - before, _WHOLE), 0.0, 1.0))
            self._add(Part("", later, own, part.turn, earlier, share, rest[later].T @ line))

    def add_between(self) -> None:
        """Add the joints between two parts if both bodies have equally many of them there."""
        for part in sorted(self.found.values(), key=lambda part: part.target):
            if not part.role or part.share < 1.0:
                continue
            gaps: list[list[int]] = []
            for body, known in zip(self._bodies, (self._pairs, self.found), strict=True):
                line = ancestors(body.skeleton.parents, body.first_row(part.role))[1:]
                count = next((k for k, row in enumerate(line) if row in known), len(line))
                gaps.append(line[: count + 1])
            if any(gap and gap[-1] not in known for gap, known in zip(gaps, (self._pairs, self.found), strict=True)):
                continue
            rows = [row for row in gaps[0][:-1] if self._moves(row)]
            mine = [row for row in gaps[1][:-1] if self._is_free(row)]
            if mine and len(rows) == len(mine) and self._pairs[gaps[0][-1]] == gaps[1][-1]:
                for row, own in zip(rows, mine, strict=True):
                    self._add(Part("", row, own, self._turn_above(own)))

    def add_neighbours(self) -> None:
        """Add joints below pairs that match joints of the source by place or by name."""
        for row, own in self._pairs.items():
            queue = [(row, own)]
            while queue:
                pair = queue.pop()
                found = self._matched(*pair)
                for other, mine in found:
                    self.found[mine] = Part("", other, mine, self.found[pair[1]].turn)
                queue += found

    def _matched(self, row: int, own: int) -> list[tuple[int, int]]:
        """Return pairs of children of a source joint and a target joint that match by place or by name."""
        source, target = self._bodies
        left = [child for child in source.skeleton.children[row] if self._moves(child) and self._is_other(child)]
        mine = [child for child in target.skeleton.children[own] if self._is_free(child)]
        if not left or not mine:
            return []
        names = [body.skeleton.joint_names for body in self._bodies]
        onto = target.basis @ self.found[own].turn.T @ source.basis.T * (target.leg / source.leg)
        shapes = {child: _places(source, row, child) @ onto.T for child in left}
        found: list[tuple[int, int]] = []
        for child in mine:
            places = _places(target, own, child)
            off = {
                other: float(np.abs(places - shapes[other]).max())
                for other in left
                if len(places) == len(shapes[other])
            }
            other = min(off, key=off.__getitem__, default=None)
            if other is None or off[other] > _NEAR * target.leg:
                other = next((one for one in left if names[0][one] == names[1][child]), None)
            if other is not None:
                left.remove(other)
                found.append((other, child))
        return found

    def _add(self, part: Part) -> None:
        """Add a joint of the target; if its share is 1, also pair it with the source joint."""
        if part.share > 1.0 - _WHOLE:
            part = replace(part, earlier=-1, share=1.0, twist=None)
            self._pairs[part.source] = part.target
        self.found[part.target] = part

    def _is_own(self, role: str) -> bool:
        """Return whether a part of both bodies is at its usual joint, on either side."""
        others = {role, role.replace("left", "right"), role.replace("right", "left")}
        return all(
            body.roles.get(role) in {body.skeleton.role_rows.get(one) for one in others} for body in self._bodies
        )

    def _moves(self, row: int) -> bool:
        """Return whether a joint of the source moves."""
        return self._bodies[0].skeleton.joints[row].kind is not Kind.FIXED

    def _is_other(self, row: int) -> bool:
        """Return whether a joint of the source has no role and is not followed yet."""
        return row not in self._pairs and row not in self._named[0]

    def _is_free(self, row: int) -> bool:
        """Return whether a joint of the target is a ball or free joint without a role that does not follow yet."""
        return (
            self._bodies[1].skeleton.joints[row].kind in _BALLS and row not in self.found and row not in self._named[1]
        )

    def _turn_above(self, row: int) -> Array:
        """Return the alignment of the nearest ancestor that follows the source."""
        line = ancestors(self._bodies[1].skeleton.parents, row)[1:]
        return next((self.found[above].turn for above in line if above in self.found), np.eye(3))


def _top(body: Body) -> int | None:
    """Return the last movable joint of the trunk, where arms and neck branch off; None without arms and neck."""
    firsts = [f"{side}_shoulder" if f"{side}_shoulder" in body.roles else f"{side}_upper_arm" for side in SIDES]
    firsts += [next((role for role in _NECK if role in body.roles), "")]
    skeleton = body.skeleton
    above = [skeleton.parents[body.first_row(role)] for role in firsts if role in body.roles]
    row = None if min(above, default=-1) < 0 else meeting(skeleton, above)
    while row is not None and row >= 0 and skeleton.joints[row].kind is Kind.FIXED:
        row = skeleton.parents[row]
    return None if row is None or row < 0 else row


def _line(body: Body, start: int | None, end: int | None) -> list[int]:
    """Return the rows from below the last common ancestor of two joints down to the second; empty if one is None."""
    if start is None or end is None:
        return []
    line, held = ancestors(body.skeleton.parents, end), ancestors(body.skeleton.parents, start)
    return [row for row in line if row not in held][::-1]


def _stretches(body: Body, rows: Sequence[int]) -> Array:
    """Return where each joint's stretch of a chain ends, (n,), as a fraction of the chain's length."""
    bones = np.linalg.norm(np.diff(body.rest[list(rows), 9:], axis=0), axis=1)
    if not float(bones.sum()) > _POINT * body.skeleton.size:
        bones = np.ones(max(len(rows) - 1, 1))
    around = 0.5 * (np.concatenate([bones[:1], bones]) + np.concatenate([bones, bones[-1:]]))
    ends = np.cumsum(around[: len(rows)])
    return ends / ends[-1]


def _shares(ends: Array, own: Array) -> list[tuple[int, float]]:
    """Return, for each joint of a chain, the joint of the other chain in whose stretch its own ends, and the share."""
    out: list[tuple[int, float]] = []
    for end in map(float, own[:-1]):
        k = int(np.searchsorted(ends, end - _WHOLE))
        before = float(ends[k - 1]) if k else 0.0
        out.append((k, min((end - before) / max(float(ends[k]) - before, _WHOLE), 1.0)))
    return [*out, (len(ends) - 1, 1.0)]


def _along(body: Body, upper: str, end: str) -> dict[int, float]:
    """Return joints along a part's bone, with position (0 to 1): those between its ends, and leaves near the bone."""
    skeleton, parents = body.skeleton, body.skeleton.parents
    start, line = body.roles[upper], ancestors(parents, body.first_row(end))[1:]
    if start not in line:
        return {}
    inside = line[: line.index(start)]
    begin, way = body.rest_position(upper), body.rest_position(end) - body.rest_position(upper)
    length = float(np.linalg.norm(way))
    if not length > _POINT * skeleton.size:
        return {}
    way = way / length
    out: dict[int, float] = {}
    for row in (*inside, *(child for above in (start, *inside) for child in skeleton.children[above])):
        place = body.rest[row, 9:] - begin
        at = float(place @ way)
        is_leaf = row not in line and all(skeleton.joints[k].kind is Kind.FIXED for k in skeleton.children[row])
        near = float(np.linalg.norm(place - at * way)) < _ON_BONE * length and 0.0 <= at <= (1.0 + _ON_BONE) * length
        if row in inside or (is_leaf and near):
            out[row] = min(max(at / length, 0.0), 1.0)
    return dict(sorted(out.items(), key=lambda item: item[1]))


def _places(body: Body, parent: int, row: int) -> Array:
    """Return the rest positions (m, 3) of a joint and of all joints below it, relative to its parent."""
    below = [k for k in range(row, len(body.skeleton)) if row in ancestors(body.skeleton.parents, k)]
    return body.rest[below, 9:] - body.rest[parent, 9:]
