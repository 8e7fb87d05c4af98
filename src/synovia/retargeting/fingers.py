"""Retarget fingers by their directions in the frames of the palms.

Rest poses of hands differ: flat, relaxed, or with all bones along one axis. Directions relative to the palm mean the
same in all of them. So fingers follow directions, whereas limbs follow rotations from the rest pose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from synovia.clips.hands.bones import HandBones, hands_of_roles
from synovia.clips.hands.carrying import Carrier, partners, relaxed
from synovia.clips.hands.pursuing import FingerPursuit, can_pursue, turn
from synovia.errors import InputError
from synovia.model.anatomy.names import SIDES, is_finger
from synovia.model.geometry import Array, unit
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import Body

IdleHands = Literal["rest", "relaxed"]
_IDLE: Final = ("rest", "relaxed")
_STILL: Final = np.radians(1.0)  # radians: fingers that move by less are idle
_ALIKE: Final = 1e-6  # directions that differ by at most this are equal
_FLAT: Final = np.radians(10.0)  # radians: a finger is straight if each segment bends by less


@dataclass(frozen=True, eq=False)
class Hands:
    """The hands of a target that follow the hands of a source.

    Args:
        pairs: Hands of source and target, by side.
        target: All hands of the target, by side.
        alike: Sides on which both hands have the same rest pose, so that fingers follow the source's rotations.
    """

    pairs: dict[str, tuple[HandBones, HandBones]]
    target: dict[str, HandBones]
    alike: frozenset[str]

    @classmethod
    def of(cls, source: Body, target: Body, parts: Sequence[Part]) -> Hands:
        """Return the hands of two bodies.

        Args:
            source: The body whose motion is retargeted.
            target: The body that follows.
            parts: The retargeted parts; hands without a finger among them have no pair.
        """
        own, other = (hands_of_roles(body.skeleton, body.roles) for body in (target, source))
        sides = [side for side in SIDES if any(part.role.startswith(side) and is_finger(part.role) for part in parts)]
        pairs = {side: (other[side], own[side]) for side in sides if side in own and side in other}
        rows = {part.target: part for part in parts}
        alike = [side for side, (_, hand) in pairs.items() if _are_alike(source, target, hand, rows)]
        return cls(pairs, own, frozenset(alike))

    @property
    def turning(self) -> list[tuple[HandBones, HandBones]]:
        """The pairs of hands whose fingers follow directions and not rotations."""
        return [pair for side, pair in self.pairs.items() if side not in self.alike]

    def turn(self, body: Body, frames: Array, q: Array, fps: float) -> None:
        """Rotate the target's fingers to the source's directions; change q (T, nq) in place.

        Fingers keep their pose if they have joints other than balls and hinges.

        Args:
            body: The target.
            frames: World frames of the source, (T, n, 12).
            q: Joint values of the target, (T, nq).
            fps: Frames per second.
        """
        for source, target in self.turning:
            turn(body.skeleton, target, Carrier(source, target).directions(frames), q, fps)

    def live(self, body: Body) -> LiveFingers | None:
        """Return an object that rotates the fingers in single poses; None if no finger can rotate."""
        found = LiveFingers(self, body)
        return found if found.moves else None

    def relax(self, body: Body, frames: Array, q: Array, fps: float) -> None:
        """Relax the target's hands whose source has no fingers, or flat fingers that do not move; change q in place."""
        for side, target in self.target.items():
            if side not in self.pairs or _is_idle(self.pairs[side][0], frames):
                wanted = {name: np.repeat(ways, len(q), axis=0) for name, ways in relaxed(target).items()}
                turn(body.skeleton, target, wanted, q, fps)

    def idle(self, body: Body) -> tuple[NDArray[np.intp], Array]:
        """Return the indices (k,) of joint values of hands without a source hand, and their relaxed values, (k,)."""
        q, rest = np.array(body.skeleton.rest_q)[None], body.skeleton.rest_q
        for side, target in self.target.items():
            if side not in self.pairs:
                turn(body.skeleton, target, {name: ways[:1] for name, ways in relaxed(target).items()}, q, 1.0)
        changed: NDArray[np.intp] = np.flatnonzero(q[0] != rest)
        return changed, q[0, changed]


class LiveFingers:
    """Rotates the fingers of a body, one pose at a time.

    Args:
        hands: The hands of the body and of the source.
        body: The body.

    Attributes:
        moves: Whether any finger can rotate.
    """

    def __init__(self, hands: Hands, body: Body) -> None:
        """Compile the problem."""
        pairs = hands.turning
        self._carriers = [Carrier(source, target) for source, target in pairs]
        found = [
            (target, [name for name in target.fingers
                      if partners(name, target.fingers, source.fingers)
                      and can_pursue(body.skeleton, target, name)])
            for source, target in pairs
        ]  # fmt: skip
        self.moves = any(names for _, names in found)
        self._pursuit = FingerPursuit(body.skeleton, found) if self.moves else None
        self.reset()

    def reset(self) -> None:
        """Discard the previous pose."""
        self._before: Array | None = None

    def turn(self, frames: Array, q: Array) -> None:
        """Rotate the fingers to the source's directions; change q (1, nq) in place.

        Args:
            frames: World frames of the source, (1, n, 12).
            q: Joint values of the body, (1, nq).
        """
        if self._pursuit is not None:
            self._before = self._pursuit.turn([one.directions(frames) for one in self._carriers], q, self._before)


def checked_idle(value: str) -> str:
    """Check the argument ``idle_hands``, and return it.

    Raises:
        InputError: If the value is unknown.
    """
    if value not in _IDLE:
        raise InputError("idle_hands", value=value, expected="'rest' or 'relaxed'")
    return value


def _are_alike(source: Body, target: Body, hand: HandBones, parts: Mapping[int, Part]) -> bool:
    """Return whether each finger joint has the same rest direction as the joint that it follows.

    Args:
        source: The body that moves.
        target: The body that follows.
        hand: The hand of the target.
        parts: What each joint follows, by row.
    """
    for row in (row for finger in hand.fingers.values() for row in finger.rows):
        part = parts.get(row)
        if part is None or part.earlier >= 0:
            return False
        ways: list[Array] = []
        for body, at in ((source, part.source), (target, row)):
            ends = [child for child in body.skeleton.children[at] if body.skeleton.lengths[child] > 0.0]
            ways.append(unit(body.rest[ends, 9:] - body.rest[at, 9:]) @ body.basis)
        if len(ways[0]) != len(ways[1]) or np.abs(ways[0] - ways[1] @ part.turn.T).max(initial=0.0) > _ALIKE:
            return False
    return True


def _is_idle(hand: HandBones, frames: Array) -> bool:
    """Return whether the fingers of a hand are straight and do not move in a clip."""
    for name, finger in hand.fingers.items():
        ways = hand.directions(finger, frames)
        bend = np.sum(ways[:, 1:] * ways[:, :-1], axis=2)
        if float(np.sum(ways * ways[:1], axis=2).min()) < np.cos(_STILL):
            return False
        if name != "thumb" and bend.size and float(bend.min()) < np.cos(_FLAT):
            return False
    return True
