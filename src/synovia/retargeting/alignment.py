"""Rest poses that differ are laid over each other: a T-pose on arms that hang, straight elbows on bent ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.geometry import Array
from synovia.model.names import SIDES
from synovia.retargeting.body import Body

SAME: Final = np.radians(15.0)  # two rest poses closer than this are one: joint centres of two rigs differ by as much
# Each part with the part at its other end and the part whose alignment it inherits
_LIMBS: Final = (
    ("upper_leg", "lower_leg", None),
    ("lower_leg", "foot", "upper_leg"),
    ("upper_arm", "lower_arm", None),
    ("lower_arm", "hand", "upper_arm"),
)


@dataclass(frozen=True, eq=False)
class Part:
    """One part that both bodies have.

    Args:
        role: What it is.
        source: Row in the source.
        target: Row in the target.
        turn: Rotation in the body's axes that lays the target's rest pose over the source's.
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
    """Return the parts that both bodies have, with the turns between their rest poses.

    A limb's alignment is that of the bone above it, then the smallest turn that lays its own bone over the source's: so
    a forearm that is held forward unbends at the elbow before the whole arm is raised, and does not twist. Trunk and
    head are taken as they are.
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
                turn = _smallest(turn @ _direction(target, role, ends), d) @ turn
            turns[role] = turn
        hand = f"{side}_hand"
        if hand in roles:
            turns[hand] = turns.get(f"{side}_lower_arm", np.eye(3))
        foot, toes = f"{side}_foot", f"{side}_toes"
        if all(role in body.roles for role in (foot, toes) for body in (source, target)):
            turns[foot] = turns[toes] = _smallest(
                _level(_direction(target, foot, toes)), _level(_direction(source, foot, toes))
            )
        for role in roles:  # fingers go with the hand
            if role.startswith(side) and role[-1].isdigit():
                turns[role] = turns.get(hand, np.eye(3))
    return [Part(role, source.roles[role], target.roles[role], turns.get(role, np.eye(3))) for role in roles]


def _direction(body: Body, role: str, end: str) -> Array:
    """Return the direction of a bone at rest, in the body's axes."""
    d = body.basis.T @ (body.place(end) - body.place(role))
    length = float(np.linalg.norm(d))
    return d / length if length > 0.0 else np.array([0.0, -1.0, 0.0])


def _level(d: Array) -> Array:
    """Return a direction without its part along the body's up axis: soles are level at rest, ankles are not alike."""
    flat = np.array([d[0], 0.0, d[2]])
    length = float(np.linalg.norm(flat))
    return flat / length if length > 1e-6 else np.array([0.0, 0.0, 1.0])


def _smallest(a: Array, b: Array) -> Array:
    """Return the smallest rotation from direction a to direction b; none where they are nearly the same."""
    cosine = float(np.clip(np.dot(a, b), -1.0, 1.0))
    if np.arccos(cosine) < SAME:
        return np.eye(3)
    axis = np.cross(a, b)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-9:  # opposite: any axis across
        axis = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
        axis, sine, cosine = axis / np.linalg.norm(axis), 0.0, -1.0
    else:
        axis = axis / sine
    K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.eye(3) + sine * K + (1.0 - cosine) * (K @ K)
