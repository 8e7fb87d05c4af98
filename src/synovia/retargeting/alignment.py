"""Align rest poses that differ: a T-pose with hanging arms, straight elbows with bent ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.geometry import Array, quat_to_matrix
from synovia.model.names import SIDES
from synovia.retargeting.body import Body

SAME: Final = np.radians(15.0)  # directions this close count as equal, because joint centres of rigs differ by as much
# Each part with the part at its other end and the part whose alignment it inherits
_LIMBS: Final = (
    ("upper_leg", "lower_leg", None),
    ("lower_leg", "foot", "upper_leg"),
    ("upper_arm", "lower_arm", None),
    ("lower_arm", "hand", "upper_arm"),
)


@dataclass(frozen=True, eq=False)
class Part:
    """A part that both bodies have.

    Args:
        role: Its role.
        source: Row in the source.
        target: Row in the target.
        turn: Rotation, in the axes of the body, from the rest pose of the target to that of the source.
    """

    role: str
    source: int
    target: int
    turn: Array

    @property
    def angle(self) -> float:
        """Angle between the two rest poses, radians."""
        return float(np.arccos(np.clip((np.trace(self.turn) - 1.0) / 2.0, -1.0, 1.0)))


def align(source: Body, target: Body, roles: Sequence[str]) -> list[Part]:
    """Return the parts that both bodies have, with the rotations between their rest poses.

    A limb takes the alignment of the bone above it, then the smallest rotation that aligns its own bone with that of
    the source. So a bent forearm is straightened at the elbow before the whole arm is raised, and does not twist. Trunk
    and head are not aligned.
    """
    turns: dict[str, Array] = {}
    for side in SIDES:
        for part, end, above in _LIMBS:
            role = f"{side}_{part}"
            if role not in roles:
                continue
            turn = turns.get(f"{side}_{above}", np.eye(3))
            ends = f"{side}_{end}"
            if ends in source.roles and ends in target.roles:
                d = _direction(source, role, ends)
                turn = _smallest_rotation(turn @ _direction(target, role, ends), d) @ turn
            turns[role] = turn
        hand = f"{side}_hand"
        if hand in roles:
            turns[hand] = turns.get(f"{side}_lower_arm", np.eye(3))
        foot, toes = f"{side}_foot", f"{side}_toes"
        if all(role in body.roles for role in (foot, toes) for body in (source, target)):
            turns[foot] = turns[toes] = _smallest_rotation(
                _horizontal(_direction(target, foot, toes)), _horizontal(_direction(source, foot, toes))
            )
        for role in roles:  # fingers go with the hand
            if role.startswith(side) and role[-1].isdigit():
                turns[role] = turns.get(hand, np.eye(3))
    return [Part(role, source.roles[role], target.roles[role], turns.get(role, np.eye(3))) for role in roles]


def _direction(body: Body, role: str, end: str) -> Array:
    """Return the direction of a bone at rest, in the body's axes."""
    d = body.basis.T @ (body.rest_position(end) - body.rest_position(role))
    length = float(np.linalg.norm(d))
    return d / length if length > 0.0 else np.array([0.0, -1.0, 0.0])


def _horizontal(d: Array) -> Array:
    """Project a direction on the ground: soles are level at rest, but the heights of ankles differ."""
    flat = np.array([d[0], 0.0, d[2]])
    length = float(np.linalg.norm(flat))
    return flat / length if length > 1e-6 else np.array([0.0, 0.0, 1.0])


def _smallest_rotation(a: Array, b: Array) -> Array:
    """Return the smallest rotation from direction a to direction b, or the identity if they nearly agree.

    Its quaternion is in the direction of (a × b, 1 + a · b).
    """
    cosine = float(np.clip(np.dot(a, b), -1.0, 1.0))
    if np.arccos(cosine) < SAME:
        return np.eye(3)
    quat = np.append(np.cross(a, b), 1.0 + cosine)
    if np.linalg.norm(quat) < 1e-9:  # opposite directions: any normal axis
        quat = np.append(np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))]), 0.0)
    return quat_to_matrix(quat / np.linalg.norm(quat))
