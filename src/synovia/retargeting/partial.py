"""Retarget a part of a body: for bodies without legs, or for parts that a joint map names.

The base of the target does not move. So parts of the source move relative to the joint that carries them: the hips for
a trunk, the chest for arms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting.alignment import Part
from synovia.retargeting.alike import same_parts
from synovia.retargeting.body import ARMS, PART_MAP, Body
from synovia.retargeting.joint_map import check_map
from synovia.retargeting.judging import sides_of_clip


class Match(NamedTuple):
    """Two bodies and the parts that are retargeted.

    Args:
        source: The body whose motion is retargeted.
        target: The body that follows; it has a free root if its base moves.
        roles: Roles of the retargeted parts.
        moves: Whether the base of the target moves with the base of the source.
    """

    source: Body
    target: Body
    roles: tuple[str, ...]
    moves: bool


def match(
    motion: Motion, skeleton: Skeleton, joint_map: Mapping[str, tuple[Any, Any]] | None, *, moves: bool = True
) -> Match:
    """Match the parts of two bodies, by a joint map or automatically.

    The base moves if both bodies have hips and two legs, and the hips are retargeted. If a map names fewer parts, the
    other parts are recognised automatically.

    Args:
        motion: The clip of the body that moves.
        skeleton: The body that follows.
        joint_map: (source joint, target joint) by role; None to match joints automatically.
        moves: Whether the base may move.

    Raises:
        InputError: If the two have no part in common, there are several people, or the map has no pairs.
        UnknownNameError: If the map names a part or a joint that does not exist.
    """
    source_skeleton, moving = motion.skeleton, skeleton.with_root("free")
    if joint_map is None:
        parts = same_parts(source_skeleton, moving)
        source, target = (
            Body.of(one, None if own == one.role_rows else own)
            for one, own in zip((source_skeleton, moving), parts, strict=True)
        )
        source = Body(source_skeleton, sides_of_clip(motion, source.roles))
        roles = tuple(role for role in target.roles if role in source.roles)
    else:
        given = check_map(joint_map, source_skeleton, skeleton)
        added = len(moving) - len(skeleton)
        rows = [
            {role: source_skeleton.index(pair[0]) for role, pair in given.items()},
            {role: _row(pair[1], skeleton, moving, added) for role, pair in given.items()},
        ]
        source, target = (Body.of(body, own) for body, own in zip((source_skeleton, moving), rows, strict=True))
        if not (source.whole and target.whole):
            source, target = _completed(source), _completed(target)
        roles = tuple(given)
    moves = moves and source.whole and target.whole and "hips" in roles
    if not moves:
        added = len(moving) - len(skeleton)
        target = Body(skeleton, {role: row - added for role, row in target.roles.items() if row >= added})
        roles = tuple(role for role in roles if role != "hips" and role in target.roles)
    if not any(target.can_turn(role) for role in roles):
        if joint_map is None:
            source.recognised()
            target.recognised()
        else:
            what = f"the map has only {', '.join(joint_map)}" if joint_map else "the map has no parts"
            hint = f"Add a limb of two joints, such as {ARMS[0]} and {ARMS[1]}"
            raise InputError(what, where="joint_map", expected="a part of both bodies that turns", hint=hint)
        names = source_skeleton.name, skeleton.name
        what = f"{names[0]} and {names[1]} have no part in common that turns"
        raise InputError(what, expected="a joint map of both", hint=PART_MAP)
    return Match(source, target, roles, moves)


def _row(joint: Any, given: Skeleton, moving: Skeleton, added: int) -> int:
    """Return the row of a map's joint in the body with a free root; rows in the map are those of the given body."""
    return moving.index(joint) if isinstance(joint, str) else given.index(joint) + added


def _completed(body: Body) -> Body:
    """Return a body with given parts, to which recognised parts are added."""
    taken = set(body.roles.values())
    found = {role: row for role, row in body.skeleton.role_rows.items() if role not in body.roles and row not in taken}
    return Body(body.skeleton, body.roles | found)


def still_rows(body: Body, parts: Collection[Part]) -> set[int]:
    """Return the rows of joints above given parts that rotate none of them, and so stay at rest."""
    turning = {part.target for part in parts}
    above: set[int] = set()
    for role in (part.role for part in parts if part.role):
        first = body.first_row(role)
        line = ancestors(body.skeleton.parents, body.roles[role])
        turning.update(line[: line.index(first) + 1])
        above.update(line[line.index(first) + 1 :])
    return above - turning
