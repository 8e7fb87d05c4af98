"""A hand: its palm, its side, and its fingers with their joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from synovia.model.geometry import Array

FINGERS: Final = ("thumb", "index", "middle", "ring", "little")
Key = str | int  # name of a joint, or its row if several joints share the name


@dataclass(frozen=True, slots=True, eq=False)
class Finger:
    """One finger of a hand.

    Attributes:
        name: ``"thumb"``, ``"index"``, ``"middle"``, ``"ring"`` or ``"little"``; ``"finger_6"`` beyond five.
        joints: Moving joints of the finger from base to tip, in the form of ``Skeleton.joint_keys``.
        flexion: Joints that bend the finger: hinges with axes along that of the last joint, and balls.
        abduction: Joints that move the finger sideways, oppose a thumb, or rotate the finger about itself: all other
            hinges, and balls.
        tip: The joint whose frame carries the tip; it may be fixed.
        offset: Position of the tip in the frame of the joint ``tip``, (3,), length units.
        estimated: Whether the tip is an estimate beyond the last joint, because no frame of the file marks it.

    Example:
        >>> import synovia as sy
        >>> thumb = sy.hand_of(sy.bundled("humanoid_hands"), "left").fingers[0]
        >>> len(thumb.joints), thumb.joints == thumb.flexion
        (3, True)
    """

    name: str
    joints: tuple[Key, ...]
    flexion: tuple[Key, ...]
    abduction: tuple[Key, ...]
    tip: Key
    offset: Array
    estimated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Hand:
    """A hand of a skeleton; see ``hand_of``.

    Attributes:
        side: ``"left"``, ``"right"``, or None if neither names nor shape show it.
        palm: The joint or link that carries the fingers, in the form of ``Skeleton.joint_keys``.
        frame: Axes of the palm in the frame of the joint ``palm``, (4, 4). The origin is between the knuckles. y points
            along the fingers, z out of the palm (to the side to which the fingers bend), and x = y × z to the thumb's
            side of a right hand. In the hand of a body, whose fingers may be bent at rest, y points from the wrist to
            the knuckles.
        fingers: The fingers, thumb first.
        coupled: Leader of each mimic joint of the fingers, by joint.
        notes: Sentences about doubts and alternatives.

    Example:
        >>> import synovia as sy
        >>> hand = sy.hand_of(sy.bundled("humanoid_hands"), "left")
        >>> hand.side, hand.palm, hand.finger("index").name
        ('left', 'left_hand', 'index')
    """

    side: str | None
    palm: Key
    frame: Array
    fingers: tuple[Finger, ...]
    coupled: Mapping[Key, Key]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        """Make the table read-only."""
        object.__setattr__(self, "coupled", MappingProxyType(dict(self.coupled)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the values."""
        return Hand, (self.side, self.palm, self.frame, self.fingers, dict(self.coupled), self.notes)

    def finger(self, name: str) -> Finger | None:
        """Return a finger by its name; None if the hand does not have it."""
        return next((finger for finger in self.fingers if finger.name == name), None)
