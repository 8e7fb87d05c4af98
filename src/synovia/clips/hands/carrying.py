"""Retarget finger directions between hands that differ in fingers or in numbers of segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from synovia.clips.hands.bones import FingerBones, HandBones
from synovia.model.anatomy.hands.hand import FINGERS
from synovia.model.geometry import Array, unit

# segment lengths: a shorter chord has no clear direction; the direction at its start is used instead
_FOLDED: Final = 0.05
# degrees: angle of each segment of a finger from the plane of the palm in a relaxed hand
_RELAXED: Final[Mapping[str, tuple[float, ...]]] = {
    "index": (14.0, 36.0, 48.0), "middle": (18.0, 44.0, 60.0), "ring": (22.0, 50.0, 68.0), "little": (25.0, 54.0, 72.0),
}  # fmt: skip
# directions of the thumb's segments in a relaxed right hand, in the frame of the palm
_THUMB: Final = ((0.57, 0.76, 0.32), (0.44, 0.88, 0.22), (0.35, 0.92, 0.12))


def partner(name: str, fingers: Mapping[str, object]) -> str | None:
    """Return the finger that a finger follows: of the same name, else the nearest; None for an unmatched thumb.

    Args:
        name: The finger.
        fingers: The fingers of the other hand, by name.
    """
    if name in fingers or name == "thumb":
        return name if name in fingers else None
    others = [other for other in FINGERS[1:] if other in fingers]
    return min(others, key=lambda other: abs(FINGERS.index(other) - FINGERS.index(name)), default=None)


def partners(name: str, own: Mapping[str, object], fingers: Mapping[str, object]) -> tuple[str, ...]:
    """Return the fingers that a finger follows: its ``partner``, or for the finger of a mitten all except the thumb.

    Args:
        name: The finger that follows.
        own: All fingers of its hand, by name.
        fingers: The fingers of the other hand, by name.
    """
    if name != "thumb" and is_mitten(own):
        return tuple(other for other in fingers if other != "thumb")
    other = partner(name, fingers)
    return () if other is None else (other,)


def is_mitten(fingers: Mapping[str, object]) -> bool:
    """Return whether a hand is a mitten: a thumb and one other finger, which stands for four fingers."""
    return len(fingers) == 2 and "thumb" in fingers


class Carrier:
    """Retargets directions of fingers from one hand to another.

    Args:
        source: The hand whose motion is retargeted.
        target: The hand that follows.
    """

    def __init__(self, source: HandBones, target: HandBones) -> None:
        """Pair the fingers of the two hands, and list the joints at both ends of each segment."""
        self._source = source
        self._pairs = [
            (name, source.fingers[other], finger)
            for name, finger in target.fingers.items()
            for other in partners(name, target.fingers, source.fingers)
        ]
        bones = [one for _, one, _ in self._pairs]
        self._begin = [row for one in bones for row in one.rows]
        self._after = [row for one in bones for row in (*one.rows[1:], one.end)]
        self._cuts = np.cumsum([0, *(len(one.rows) for one in bones)]).tolist()
        self._tips, self._ends = [cut - 1 for cut in self._cuts[1:]], [one.end for one in bones]
        self._offsets = np.array([one.offset for one in bones]).reshape(-1, 3)

    def directions(self, frames: Array) -> dict[str, Array]:
        """Return target directions (T, n, 3) of the segments of each finger, in the frame of the palm.

        Args:
            frames: World frames of the source's body, (T, joints, 12).
        """
        count = len(frames)
        steps = frames[:, self._after, 9:] - frames[:, self._begin, 9:]
        turns = frames[:, self._ends, :9].reshape(count, -1, 3, 3)
        steps[:, self._tips] += (turns @ self._offsets[:, :, None])[..., 0]
        ways = unit(steps) @ (frames[:, self._source.palm, :9].reshape(-1, 3, 3) @ self._source.axes)
        found: dict[str, list[Array]] = {}
        for (name, bones, finger), begin, end in zip(self._pairs, self._cuts, self._cuts[1:], strict=False):
            found.setdefault(name, []).append(matched(ways[:, begin:end], bones, finger))
        return {name: middle_of(parts) for name, parts in found.items()}


def middle_of(ways: Sequence[Array]) -> Array:
    """Return mean directions (T, n, 3) of several fingers: the means of their bends and sideways components."""
    if len(ways) == 1:
        return ways[0]
    bent = np.mean([np.unwrap(np.arctan2(way[..., 2], way[..., 1]), axis=1) for way in ways], axis=0)
    aside = np.mean([way[..., 0] for way in ways], axis=0)
    left = np.sqrt(1.0 - np.minimum(aside**2, 1.0))
    return np.stack([aside, left * np.cos(bent), left * np.sin(bent)], axis=-1)


def matched(ways: Array, source: FingerBones, target: FingerBones) -> Array:
    """Return directions (T, n, 3) for a finger's segments from directions (T, m, 3) of a finger with other segments.

    Each segment gets the direction of the chord between the same fractions of length on the other finger.
    """
    if len(source.rows) == len(target.rows):
        return ways
    own, other = (np.concatenate([[0.0], np.cumsum(one.lengths)]) / one.lengths.sum() for one in (target, source))
    steps = ways * np.diff(other)[None, :, None]
    points = np.concatenate([np.zeros((len(ways), 1, 3)), np.cumsum(steps, axis=1)], axis=1)
    # index of the segment that contains each point
    k = np.minimum(np.sum(other[1:-1, None] <= own, axis=0), len(other) - 2)
    at = points[:, k] + (own - other[k])[None, :, None] * ways[:, k]
    chords = np.diff(at, axis=1)
    folded = np.linalg.norm(chords, axis=2, keepdims=True) < _FOLDED * np.diff(own)[None, :, None]
    return unit(np.where(folded, ways[:, k[:-1]], chords))


def relaxed(hand: HandBones) -> dict[str, Array]:
    """Return the directions (1, n, 3) of the segments of each finger in a relaxed hand, with slightly bent fingers."""
    side = 1.0 if hand.side == "right" else -1.0
    out: dict[str, Array] = {}
    for name, finger in hand.fingers.items():
        if name == "thumb":
            table = unit(np.array(_THUMB) * (side, 1.0, 1.0))
        elif name in _RELAXED:
            aside = float(finger.ways[0, 0])
            angles = np.radians(_RELAXED[name])
            table = np.stack([np.full(3, aside), np.cos(angles), np.sin(angles)], axis=1)
        else:
            continue
        usual = FingerBones(
            name, finger.rows[:1] * 3, ((),) * 3, finger.end, finger.offset, table, table, np.array([5.0, 3.0, 2.0])
        )
        out[name] = matched(unit(table)[None], usual, finger)
    return out


def angles_off(source: HandBones, target: HandBones, frames: tuple[Array, Array]) -> dict[str, Array]:
    """Return, for each finger of both hands, the mean angle between segments in the palms' frames, (T,), radians.

    Args:
        source: The hand whose motion is retargeted.
        target: The hand that follows.
        frames: World frames of both bodies, (T, joints, 12).
    """
    out: dict[str, Array] = {}
    for name, finger in target.fingers.items():
        if name in source.fingers:
            others = [source.fingers[other] for other in partners(name, target.fingers, source.fingers)]
            a = middle_of([matched(source.directions(bones, frames[0]), bones, finger) for bones in others])
            b = target.directions(finger, frames[1])
            off = np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), np.sum(a * b, axis=-1))
            out[name] = off.mean(axis=1)
    return out
