"""Align rest poses that differ, such as a T-pose with hanging arms, or straight elbows with bent ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, unit
from synovia.retargeting.body import Body
from synovia.retargeting.bones import bone, hip_middle, middle, smallest_rotation

_LEVEL: Final = 0.3  # sine of the angle from vertical: a steeper foot has no heading
TRUNK: Final = ("hips", "spine", "chest", "upper_chest", *(f"{side}_shoulder" for side in SIDES))
_TOPS: Final = (tuple(f"{side}_upper_arm" for side in SIDES), ("neck",), ("head",))  # roles at which the trunk ends
_SHORT: Final = 0.01  # fraction of the skeleton's size; a shorter trunk or neck has no direction
# each limb part, with the part whose alignment it inherits
_LIMBS: Final = (
    ("upper_leg", None), ("lower_leg", "upper_leg"), ("upper_arm", None), ("lower_arm", "upper_arm"),
)  # fmt: skip


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
