"""Find the feet of a skeleton, and the contacts of feet with the ground."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import UnsupportedError
from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array
from synovia.model.tree import ancestors
from synovia.text import counted

Bools = NDArray[np.bool_]
_FOUR: Final = tuple(f"{side}_{end}" for end in ("fore", "hind") for side in SIDES)
_FOOT: Final = re.compile(r"foot|ankle", re.IGNORECASE)
_TOE: Final = re.compile(r"toe|ball(?![a-z])", re.IGNORECASE)
_NO_LENGTH: Final = 1e-6  # fraction of the skeleton's size: shorter bones have no direction
# quantile of heights and speeds below which a foot may be in contact; less than a walking foot's share
LOW: Final = 0.34
GAP: Final = 0.06  # seconds; a shorter gap in a contact is noise
_FEW: Final = 3  # a gap of fewer frames is noise at any frame rate
HERE: Final = 0.01  # distance below which two positions are the same, as a fraction of the extent of the point's path
AROUND: Final = 0.012  # seconds added at both ends of a contact, which lasts longer than its still frames
_LEVEL: Final = 0.05  # leg lengths: a point up to this height above its lowest positions is on the ground
# leg lengths per second; a slower point on the ground is in contact, regardless of the quantile of speeds
_STILL: Final = 0.1
_LOWEST: Final = 0.02  # quantile of heights that defines the ground
_SPAN: Final = 0.03  # seconds before and after a frame over which this speed is measured
SHORTEST: Final = 0.05  # seconds; a shorter contact is a foot that swings low


@dataclass(frozen=True, slots=True)
class Foot:
    """One foot.

    Args:
        joints: Rows of the points that can be in contact: foot, toe, and the toe's end if the file has it.
        points: Rows of all points of the foot, including tips.
    """

    joints: tuple[int, ...]
    points: tuple[int, ...]


def ankles_of(skeleton: Skeleton) -> dict[str, int | None]:
    """Return the row of each foot or paw of a body by its role: two, or four.

    For a leg without such a role, it is the last known joint of the leg, or None.
    """
    found = skeleton.role_rows
    four = any(role.startswith(_FOUR) for role in found)
    legs, parts = (_FOUR, ("paw", "pastern", "lower_leg")) if four else (SIDES, ("foot", "lower_leg"))
    return {
        f"{leg}_{parts[0]}": next((found[role] for part in parts if (role := f"{leg}_{part}") in found), None)
        for leg in legs
    }


def feet_of(skeleton: Skeleton, names: Sequence[str | int] | None = None) -> list[Foot]:
    """Return the feet of a skeleton.

    Args:
        skeleton: The skeleton.
        names: The joint of each foot (the ankle); None to find them by roles and names.

    Raises:
        UnsupportedError: If no joint is recognised as a foot.
        UnknownNameError: If a joint does not exist.
    """
    if names is not None:
        heads = [skeleton.index(name) for name in names]
    else:
        alone = len(skeleton.people) < 2  # with several people, find the feet of all by name
        heads = [row for role, row in skeleton.role_rows.items() if alone and role in ankles_of(skeleton)]
        for word in (_FOOT, _TOE):
            heads = heads or [row for row, joint in enumerate(skeleton.joints) if word.search(joint.name)]
    heads = [row for row in dict.fromkeys(heads) if not _has_above(skeleton, row, heads)]
    if not heads:
        raise UnsupportedError(
            "no joint is recognised as a foot",
            where=skeleton.name,
            hint="name the ankles: feet=[...], --feet LEFT,RIGHT",
        )
    feet: list[Foot] = []
    for head in heads:
        points = [row for row in range(head, len(skeleton)) if row == head or _has_above(skeleton, row, [head])]
        joints = [row for row in points if row == head or _counts(skeleton, row)]
        feet.append(Foot(tuple(joints), tuple(points)))
    return feet


def _counts(skeleton: Skeleton, row: int) -> bool:
    """Return whether a point of a foot can be in contact: a joint with children, or an end apart from its joint."""
    return bool(skeleton.children[row]) or float(skeleton.lengths[row]) > _NO_LENGTH * skeleton.size


def _has_above(skeleton: Skeleton, row: int, rows: Sequence[int]) -> bool:
    """Return whether one of the rows is an ancestor of a joint."""
    return not set(rows).isdisjoint(ancestors(skeleton.parents, row)[1:])


def contacts(places: Array, up: Array, fps: float, fastest: float = np.inf, leg: float | None = None) -> Bools:
    """Return a mask of frames in which points touch the ground, (T, n): low and slow relative to their other frames.

    A long stand at the beginning uses up the quantile of slow frames, so with ``leg``, being still on the ground is
    enough. Short gaps are closed, and then each contact is extended a little. The mean speed around a frame is also
    small when a foot in the air reverses, so at least one of the two adjacent steps has to be slow as well.

    Args:
        places: World positions of the points, (T, n, 3).
        up: Direction away from the ground, (3,).
        fps: Frames per second.
        fastest: Speed above which a point is not in contact, length units per second.
        leg: Length of a leg, to detect points that are still on the ground; None if unknown.
    """
    if len(places) < 2:
        return np.zeros(places.shape[:2], bool)
    height, speed = places @ up, np.linalg.norm(np.gradient(places, axis=0), axis=-1)
    slow = np.linalg.norm(np.diff(places, axis=0), axis=-1) <= fastest / fps
    stands = (
        (height <= np.quantile(height, LOW, axis=0))
        & (speed <= np.minimum(np.quantile(speed, LOW, axis=0), fastest / fps))
        & (np.pad(slow, ((1, 0), (0, 0))) | np.pad(slow, ((0, 1), (0, 0))))
    )
    if leg is not None:
        stands |= _still(places, height, fps, leg)
    least = max(_FEW, round(GAP * fps))
    around = max(1, round(AROUND * fps))
    for k in range(stands.shape[1]):
        stands[:, k] = _without_gaps(stands[:, k], least, places[:, k])
        for _ in range(around):
            wider = stands[:, k].copy()
            wider[1:] |= stands[:-1, k] & slow[:, k]
            wider[:-1] |= stands[1:, k] & slow[:, k]
            stands[:, k] = wider
    return stands


def _still(places: Array, height: Array, fps: float, leg: float) -> Bools:
    """Return a mask of frames in which points (T, n, 3) are still on the ground, (T, n), relative to leg length."""
    span, frames = max(1, round(_SPAN * fps)), np.arange(len(places))
    after, before = np.minimum(frames + span, len(places) - 1), np.maximum(frames - span, 0)
    speed = np.linalg.norm(places[after] - places[before], axis=-1) * (fps / (after - before))[:, None]
    return (speed <= _STILL * leg) & (height <= np.quantile(height, _LOWEST, axis=0) + _LEVEL * leg)


def ground_contacts(places: Array, up: Array, fps: float) -> list[tuple[int, int]]:
    """Return (first, end) of every contact of one point, (T, 3), with the ground; see ``contacts``."""
    return contact_spans(places[:, None], up, fps)[0]


def contact_spans(
    places: Array, up: Array, fps: float, fastest: float = np.inf, leg: float | None = None
) -> list[list[tuple[int, int]]]:
    """Return (first, end) of every contact of each of some points, (T, n, 3), with the ground; see ``contacts``."""
    found = map(runs, contacts(places, up, fps, fastest, leg).T)
    return [[(first, end) for first, end in spans if end - first >= SHORTEST * fps] for spans in found]


def _without_gaps(flags: Bools, least: int, places: Array) -> Bools:
    """Close gaps of fewer frames than ``least`` if the point is at the same place before and after."""
    out = flags.copy()
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    for first, last in runs(~flags):
        if not (last - first < least and first > 0 and last < len(flags)):
            continue
        if np.linalg.norm(places[last] - places[first - 1]) < HERE * extent:
            out[first:last] = True
    return out


def runs(flags: Bools) -> list[tuple[int, int]]:
    """Return (first, end) of every run of true flags."""
    padded = np.zeros(len(flags) + 2, bool)
    padded[1:-1] = flags
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def frames_text(frames: Sequence[int], most: int = 5) -> str:
    """Return frames as text, with runs as ranges: frame 3; frames 3, 7-12; beyond ``most`` ranges, their number."""
    spans = runs(np.bincount(frames) > 0)
    shown = ", ".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in spans[:most])
    shown = f"frame{'' if len(set(frames)) == 1 else 's'} {shown}"
    return shown + (f" and {counted(len(spans) - most, 'more range')}" if len(spans) > most else "")
