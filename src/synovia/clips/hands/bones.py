"""Hands of a body as bones: the segments of each finger, their directions and flexion axes in the palm's frame.

Directions in the frame of the palm mean the same in every hand: fingers along y are flat, and fingers along z point out
of the palm. So directions can be retargeted and compared between hands with different rest poses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.anatomy.hands.find import hands_of
from synovia.model.anatomy.hands.hand import FINGERS, Finger, Hand
from synovia.model.anatomy.hands.landmarks import palm_axes
from synovia.model.anatomy.names import ROLES, is_finger
from synovia.model.geometry import Array, unit

# number of joints: if a finger without an end has at least this many, its last joint marks the tip
_MARKED: Final = 4
_INSIDE: Final = 0.5  # bone lengths: a finger's first joint that is nearer to the wrist begins a bone inside the palm
# cosine: joints are built alike if the directions of their bones in their own frames agree at least this well
_ALIKE: Final = 0.9
_AXIS: Final = 0.9  # least mean cosine between an axis shared by the joints' frames and the flexion axes of the fingers
_LEAST: Final = 0.6  # smallest cosine between this shared axis and the flexion axis of each joint
_SAME: Final = 0.8  # cosine: palm axes from two sources agree if it is at least this large
_SHORT: Final = 1e-6  # fraction of the skeleton's size: shorter bones have no direction


@dataclass(frozen=True, eq=False)
class FingerBones:
    """One finger: segments from its base to its tip.

    Args:
        name: Name of the finger.
        rows: Row of the joint at which each segment begins.
        groups: For each segment, the rows of the joints that move it but not the segment before: the joint at its
            start, and other joints at the same position.
        end: Row of the joint that moves the tip.
        offset: Position of the tip in the frame of the joint ``end``, (3,).
        ways: Directions of the segments at rest in the frame of the palm, (n, 3).
        axes: Flexion axes of the segments at rest in the frame of the palm, (n, 3), normal to the segments. A positive
            rotation bends towards the palm.
        lengths: Lengths of the segments, (n,).
    """

    name: str
    rows: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    end: int
    offset: Array
    ways: Array
    axes: Array
    lengths: Array

    @property
    def bases(self) -> Array:
        """Axes of the segments at rest in the palm's frame, (n, 3, 3): flexion axis, direction, and normal of both."""
        return np.stack([self.axes, self.ways, np.cross(self.axes, self.ways)], axis=-1)


@dataclass(frozen=True, eq=False)
class HandBones:
    """A hand of a body.

    Args:
        hand: The hand that was found in the skeleton.
        side: Side of the hand.
        palm: Row of the joint of the palm.
        axes: Axes of the palm in the frame of its joint, (3, 3).
        rest: Axes of the palm at rest in the world, (3, 3).
        fingers: Fingers of the hand by name, thumb first.
    """

    hand: Hand
    side: str
    palm: int
    axes: Array
    rest: Array
    fingers: Mapping[str, FingerBones]

    def directions(self, finger: FingerBones, frames: Array) -> Array:
        """Return the directions of a finger's segments in the frame of the palm, (T, n, 3).

        Args:
            finger: One of the fingers.
            frames: World frames of all joints, (T, joints, 12).
        """
        places = frames[:, finger.rows, 9:]
        last = frames[:, finger.end]
        tip = last[:, 9:] + last[:, :9].reshape(-1, 3, 3) @ finger.offset
        ways = np.diff(np.concatenate([places, tip[:, None]], axis=1), axis=1)
        return unit(ways) @ (frames[:, self.palm, :9].reshape(-1, 3, 3) @ self.axes)


@lru_cache(maxsize=32)
def hands_of_body(skeleton: Skeleton) -> Mapping[str, HandBones]:
    """Return the hands of a body, or of a file with one hand, by side; empty if no hand has two fingers with bones."""
    found: dict[str, HandBones] = {}
    for hand in hands_of(skeleton):
        if hand.side is not None and hand.side not in found and _are_fingers(skeleton, hand):
            bones = _bones(skeleton, hand)
            if len(bones.fingers) > 1:
                found[hand.side] = bones
    return found


def hands_of_roles(skeleton: Skeleton, rows: Mapping[str, int]) -> dict[str, HandBones]:
    """Return the hands, by side, of a body whose joints are given by role; a joint map may exchange or select joints.

    Args:
        skeleton: The body.
        rows: Row of each role; fingers without a role among these are left out.
    """
    found, known = skeleton.role_rows, {role: row for role, row in rows.items() if role in ROLES}
    moved = any(found.get(role) != row for role, row in known.items() if role.endswith("_hand") or is_finger(role))
    body = skeleton.with_roles(known) if moved and len(set(known.values())) == len(known) else skeleton
    fingers = set(rows.values())
    out: dict[str, HandBones] = {}
    for side, bones in hands_of_body(body).items():
        kept = {name: one for name, one in bones.fingers.items() if fingers & set(one.rows)}
        if len(bones.fingers) == 2 and "thumb" in kept:
            kept = dict(bones.fingers)  # a single role without a name stands for the four fingers of a mitten
        if kept:
            out[side] = HandBones(bones.hand, side, bones.palm, bones.axes, bones.rest, kept)
    return out


def _are_fingers(skeleton: Skeleton, hand: Hand) -> bool:
    """Return whether the fingers of a hand are certainly fingers: at least three, or all of them have roles.

    Beside a thumb with a role, a chain of two or more joints counts as the four fingers of a mitten.
    """
    known = [f"{hand.side}_{finger.name}_1" in skeleton.role_rows for finger in hand.fingers]
    return len(known) > 2 or all(known) or (known[0] and len(hand.fingers[1].joints) > 1)


def _bones(skeleton: Skeleton, hand: Hand) -> HandBones:
    """Return the bones of a hand."""
    rest = np.array(skeleton.rest_pose().frames)
    turns, places = rest[:, :9].reshape(-1, 3, 3), rest[:, 9:]
    palm = skeleton.index(hand.palm)
    chains = {finger.name: _segments(skeleton, finger, turns, places, places[palm]) for finger in hand.fingers}
    knuckles = [places[groups[0][-1]] for name, (groups, _, _) in chains.items() if name != "thumb" and groups]
    axes = _palm(hand, (np.array(knuckles).reshape(-1, 3) - places[palm]) @ turns[palm])
    world = turns[palm] @ axes
    known: dict[str, tuple[Array, Array, Array]] = {}  # lengths, directions, rotations from palm to joints
    for name, (groups, end, offset) in chains.items():
        rows = [group[-1] for group in groups]
        ways = np.diff([*places[rows], places[end] + turns[end] @ offset], axis=0) @ world
        lengths = np.linalg.norm(ways, axis=1)
        if rows and lengths.min() > _SHORT * skeleton.size:
            known[name] = lengths, unit(ways), np.swapaxes(turns[rows], 1, 2) @ world
    side = hand.side or "right"
    usual = {
        name: _across_palm(side, ways) if name == "thumb" else _across(ways) for name, (_, ways, _) in known.items()
    }
    others = [name for name in known if name != "thumb"]
    meant = _meant(*([table[name] for name in others] for table in (
        usual, {name: one[1] for name, one in known.items()}, {name: one[2] for name, one in known.items()}
    ))) if others else None  # fmt: skip
    fingers: dict[str, FingerBones] = {}
    for name, (lengths, ways, inner) in known.items():
        groups, end, offset = chains[name]
        bends = _hinge_axes(skeleton, hand, name, groups, turns, world)
        if bends is not None:
            bends = bends if float(np.sum(bends * usual[name])) >= 0.0 else -bends
        elif meant is not None and name != "thumb":
            bends = np.einsum("nji,j->ni", inner, meant)
        elif meant is not None:
            bends = _of_thumb(side, inner, ways, (meant, [known[one][1:] for one in others]))
        else:
            bends = usual[name]
        bends = unit(bends - np.sum(bends * ways, axis=1, keepdims=True) * ways)
        rows = tuple(group[-1] for group in groups)
        fingers[name] = FingerBones(name, rows, groups, end, offset, ways, bends, lengths)
    ordered = {name: fingers[name] for name in FINGERS if name in fingers}
    return HandBones(hand, side, palm, axes, world, ordered)


def _palm(hand: Hand, knuckles: Array) -> Array:
    """Return the axes of the palm in the frame of its joint, (3, 3), computed from wrist and knuckles as for landmarks.

    If the joint is not at the wrist, as in some robots, return the axes of ``Hand.frame`` instead.

    Args:
        hand: The hand.
        knuckles: Positions of the knuckles in the frame of the palm's joint, (K, 3), from the index finger on.
    """
    axes = hand.frame[:3, :3]
    if len(knuckles) < 2:
        return axes
    along, out = palm_axes(np.zeros(3), knuckles)
    out = out if hand.side == "right" else -out
    found = np.stack([np.cross(along, out), along, out], axis=1)
    return found if np.isfinite(found).all() and float(np.sum(found * axes, axis=0).min()) > _SAME else axes


def _segments(
    skeleton: Skeleton, finger: Finger, turns: Array, places: Array, wrist: Array
) -> tuple[tuple[tuple[int, ...], ...], int, Array]:
    """Return the joints that move each segment of a finger, the joint that moves the tip, and the tip in its frame.

    No segment begins at a joint that coincides with the next joint (as in groups of hinges), or at a bone inside the
    palm.
    """
    rows = [skeleton.index(key) for key in finger.joints]
    end, offset = skeleton.index(finger.tip), np.array(finger.offset)
    if finger.estimated:
        if len(rows) >= _MARKED:
            end, offset = rows.pop(), np.zeros(3)
        elif len(rows) == 1:
            return (), end, offset  # a single joint does not show the direction of the finger
        else:
            offset = _ahead(turns, places, rows, offset)
    groups: list[tuple[int, ...]] = [()]
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        groups[-1] = (*groups[-1], row)
        if after is not None and np.linalg.norm(places[after] - places[row]) > _SHORT * skeleton.size:
            groups.append(())
    if len(groups) > 1 and finger.name != "thumb":
        first, second = (places[group[-1]] for group in groups[:2])
        if np.linalg.norm(first - wrist) < _INSIDE * np.linalg.norm(second - first):
            groups = groups[1:]
    return tuple(groups), end, offset


def _ahead(turns: Array, places: Array, rows: list[int], offset: Array) -> Array:
    """Return an estimate of the tip in the last joint's frame, (3,), that continues the bone before this joint.

    If the frames of the last two joints are not alike, return ``offset``.
    """
    before, last = rows[-2:]
    way = turns[before].T @ (places[last] - places[before])
    length = float(np.linalg.norm(way)) * float(np.linalg.norm(offset))
    return way * np.linalg.norm(offset) / np.linalg.norm(way) if float(way @ offset) > 0.5 * length > 0.0 else offset


def _across(ways: Array) -> Array:
    """Return the flexion axes of a finger's segments, (n, 3), for a finger that bends about the x axis of the palm.

    If a segment points sideways, its axis is rotated with it.
    """
    x, y, z = ways.T
    beta, theta = -np.arcsin(np.clip(x, -1.0, 1.0)), np.arctan2(z, y)
    return np.stack([np.cos(beta), np.cos(theta) * np.sin(beta), np.sin(theta) * np.sin(beta)], axis=1)


def _meant(usual: list[Array], ways: list[Array], inner: list[Array]) -> Array | None:
    """Return the axis, (3,), about which all joints flex in their own frames; None if they share no axis.

    The joints of characters are often built to bend about the same axis of their frames.

    Args:
        usual: For each finger, flexion axes derived from the palm, (n, 3), in the frame of the palm.
        ways: For each finger, directions of the bones, (n, 3), in the frame of the palm.
        inner: For each finger, rotations from the palm to the joints' frames, (n, 3, 3).
    """
    axes, turns, bones = np.concatenate(usual), np.concatenate(inner), np.concatenate(ways)
    own = np.einsum("nij,nj->ni", turns, axes)
    mean = own.mean(axis=0)
    k = int(np.argmax(np.abs(mean)))
    axis = np.sign(mean[k]) * np.eye(3)[k]
    across = np.abs(np.einsum("nij,nj->ni", turns, bones)[:, k])
    return axis if float((own @ axis).min()) > _LEAST and float(mean @ axis) > _AXIS and across.max() < 0.5 else None


def _hinge_axes(
    skeleton: Skeleton, hand: Hand, name: str, groups: tuple[tuple[int, ...], ...], turns: Array, world: Array
) -> Array | None:
    """Return the axes of the hinges that bend a finger's segments, (n, 3), in the frame of the palm.

    None if no hinge bends the finger. A segment without a hinge gets the axis of the next hinge.
    """
    finger, rows = hand.finger(name), [group[-1] for group in groups]
    found: list[Array | None] = [None] * len(rows)
    for key in () if finger is None else finger.flexion:
        row = skeleton.index(key)
        joint = skeleton.joints[row]
        if joint.kind is Kind.HINGE:
            k = next((n for n, one in enumerate(rows) if one >= row), len(rows) - 1)
            found[k] = joint.axis @ turns[row].T @ world
    known = [axis for axis in found if axis is not None]
    if not known:
        return None
    out: list[Array] = []
    for k, axis in enumerate(found):
        after = [one for one in found[k:] if one is not None]
        one = axis if axis is not None else (after or known[-1:])[0]
        out.append(one if float(one @ known[-1]) >= 0.0 else -one)
    return np.array(out)


def _across_palm(side: str, ways: Array) -> Array:
    """Return the axes about which the segments of a thumb bend across the palm, (n, 3)."""
    return np.cross(ways, unit(np.array([-0.8 if side == "right" else 0.8, 0.0, 0.6])))


def _of_thumb(side: str, inner: Array, ways: Array, others: tuple[Array, list[tuple[Array, Array]]]) -> Array:
    """Return the flexion axes of the segments of a thumb with ball joints, (n, 3), in the frame of the palm.

    If the bones of thumb and fingers have the same directions in the frames of their joints, the thumb bends about the
    same axis of these frames. If the model was made in a pose in which all these frames were parallel, the thumb bends
    across the palm of that pose. Otherwise, it bends across the palm at rest.

    Args:
        side: Side of the hand.
        inner: Rotations from the palm to the frames of the thumb's joints, (n, 3, 3).
        ways: Directions of the thumb's segments in the frame of the palm, (n, 3).
        others: The axis of the joints' frames about which fingers bend; then, for each finger, directions and
            rotations.
    """
    axis, fingers = others
    lying = np.concatenate([np.einsum("nij,nj->ni", turns, bones) for bones, turns in fingers])
    mean = unit(lying.mean(axis=0))
    own = np.einsum("nij,nj->ni", inner, ways)
    if float((lying @ mean).min()) < _ALIKE:
        return _across_palm(side, ways)
    if float((own @ mean).min()) > _ALIKE:
        return np.einsum("nji,j->ni", inner, axis)
    along = unit(mean - float(mean @ axis) * axis)
    palm = np.stack([axis, along, np.cross(axis, along)], axis=1)
    made = own @ palm
    if float(np.sum(made * ways, axis=1).min()) < 0.5:
        return _across_palm(side, ways)
    return np.einsum("nji,nj->ni", inner, _across_palm(side, made) @ palm.T)
