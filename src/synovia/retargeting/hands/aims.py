"""Aims of a hand's fingers: which finger follows which, the scale between the two hands, and the targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.hands.hand import Finger, Hand
from synovia.model.anatomy.hands.landmarks import FINGER_POINTS, KNUCKLES, WRIST
from synovia.model.anatomy.hands.pointed import landmarks_in
from synovia.model.geometry import Array, frames_to_transforms, is_number, magnitude, magnitudes
from synovia.model.tree import ancestors
from synovia.retargeting.hands.follower import Moving
from synovia.retargeting.hands.gripper import WIDE, Gripper, gripper_of
from synovia.retargeting.hands.itself import SAME_LENGTHS, OwnHand, own_scale
from synovia.retargeting.hands.recording import Recording
from synovia.text import listed

FRAMES: Final = ("palm", "given")
_PALM_POINTS: Final = 4  # least number of points of wrist and knuckles that show a palm's shape
_SAME_SHAPE: Final = 0.03  # fraction of the palm's size; points this near to the hand's own landmarks come from it
_WRIST_JOINTS: Final = 2  # largest number of moving joints between base and palm that count as a wrist


@dataclass(frozen=True, slots=True, eq=False)
class Aims:
    """Targets of the fingers of a hand in each frame.

    Attributes:
        fingers: The fingers that follow, thumb first.
        tips: Target positions of the fingers' tips in the world, (T, F, 3), length units of the skeleton.
        directions: Target directions of the last segments in the world, (T, F, 3).
        trust: Weight of each finger, (T, F), from 0 to 1.
        apart: Distances of the recorded tips from the tip of the thumb, (T, F), metres.
        place: Frame of the points in the world, (4, 4).
        carrier: Row of the joint that moves this frame.
        scale: Length on the target hand per unit of the points.
        reach: Mean distance of the straight fingers' tips from the origin, length units of the skeleton.
        wrist: Rows of the joints of a wrist that also moves; empty if the palm stays.
        mirrored: Whether the recorded hand is of the other side than the hand that follows.
        landmarks: The recorded points, scaled and placed in the world where the hand is, (T, 21, 3).
        gripper: Paths of the tips of a gripper; None for a hand.
        notes: Sentences about fingers that do not follow, and about assumptions.
        metre: Length units of the points per metre.
        own: The hand, if the points are its own landmarks; None for points of another hand.
    """

    fingers: tuple[Finger, ...]
    tips: Array
    directions: Array
    trust: Array
    apart: Array
    place: Array
    carrier: int
    scale: float
    reach: float
    wrist: tuple[int, ...]
    mirrored: bool
    landmarks: Array
    gripper: Gripper | None
    notes: tuple[str, ...]
    metre: float
    own: OwnHand | None = None

    @property
    def moving(self) -> Moving:
        """The fingers, and the joints of the wrist, that move in the hand that follows the recording."""
        return Moving(self.fingers, self.wrist, own=self.own is not None)

    @property
    def narrow(self) -> Array:
        """Distances of the tips from the thumb's tip in a closed pinch, (F,): 0, or the smallest ones of a gripper."""
        return np.zeros(len(self.fingers)) if self.gripper is None else self.gripper.widths[0]

    def moved(self, transform: Array) -> Aims:
        """Return the aims after a transform (4, 4) of the world that moved the hand's carrier."""
        R, p = transform[:3, :3], transform[:3, 3]
        return replace(
            self, tips=self.tips @ R.T + p, directions=self.directions @ R.T, place=transform @ self.place,
            landmarks=self.landmarks @ R.T + p,
            gripper=None if self.gripper is None else self.gripper.moved(transform),
        )  # fmt: skip


def aims_of(recording: Recording, skeleton: Skeleton, hand: Hand, frame: str, origin: Any, scale: Any) -> Aims:
    """Return the aims of a hand whose palm stays in its rest pose.

    Args:
        recording: The recorded hand that is followed.
        skeleton: The skeleton of the hand.
        hand: The hand.
        frame: ``"palm"`` or ``"given"``, as in ``retarget_hand``.
        origin: See ``retarget_hand``.
        scale: See ``retarget_hand``.

    Raises:
        InputError: If values cannot be used, no finger follows, or the hands are of different sides.
        UnknownNameError: If the origin does not exist.
    """
    if frame not in FRAMES:
        raise InputError("frame", value=frame, expected="'palm' or 'given'")
    if origin is not None and frame != "given":
        raise InputError("origin", value=origin, expected="none with frame='palm', which has the palm as its origin")
    world, itself = frames_to_transforms(np.array(skeleton.rest_pose().frames)), None
    mirrored = hand.side is not None and hand.side != recording.side
    notes = list[str]()
    if hand.side is None and len(hand.fingers) > 2:
        notes.append(f"the side of the hand is unknown: treated as a {recording.side} one; side= sets it")
    known = [name for name in FINGER_POINTS if recording.known(name)]
    fingers = tuple(one for one in hand.fingers if one.name in known)
    if len(fingers) < 2 or fingers[0].name != "thumb":
        raise InputError(
            "points", value=f"all four points of {listed(known) if known else 'no finger'}",
            expected=f"all four points of the thumb and of another finger of {skeleton.name}",
            hint=f"it has {listed([one.name for one in hand.fingers])}; each needs its four points in some frame",
        )  # fmt: skip
    if left := [one.name for one in hand.fingers if one not in fingers]:
        notes.append(f"not recorded, so at rest: {listed(left)}")
    if left := [name for name in known if name not in [one.name for one in fingers]]:
        notes.append(f"recorded, but the hand has no such finger: {listed(left)}")
    if frame == "palm":
        local, wrist, carrier = recording.local(), (), skeleton.value_index(hand.palm)
        if mirrored:
            local = local * (-1.0, 1.0, 1.0)
        axes, itself = _as_itself(skeleton, hand, local, np.atleast_1d(recording.trust.any(0)))
        axes = world[skeleton.value_index(hand.palm)] @ hand.frame if itself is None else axes
        place, turn = axes[:3, 3], axes[:3, :3]
    else:
        if mirrored:
            raise InputError(
                "frame", value="given", expected=f"points of a {hand.side} hand",
                hint=f"this recording is of a {recording.side} one: frame='palm' mirrors it, source_side= corrects it",
            )  # fmt: skip
        place, turn, wrist, carrier = _base(skeleton, hand, origin, world)
        local = recording.places - recording.places[:, [WRIST]]
    reach, human = _lengths(skeleton, fingers, world, place, local)
    gripper = gripper_of(skeleton, hand, fingers)
    may_be_own = gripper is None and not mirrored and not skeleton.loops
    if may_be_own:
        itself = own_scale(skeleton, hand, recording.places, known) or itself
    if scale is None:
        if gripper is not None:
            scale = gripper.widest / (WIDE * recording.metre)
        else:
            scale = reach / human if itself is None else itself
    elif not is_number(scale) or not 0.0 < scale < np.inf:
        raise InputError("scale", value=scale, expected="a number above 0, or None to take it from the hands")
    ends = [FINGER_POINTS[one.name][-1] for one in fingers]
    before = [FINGER_POINTS[one.name][-2] for one in fingers]
    if gripper is not None:
        notes.append(f"a gripper: its opening is the distance of fingers and thumb times {float(scale):.3g}")
    laid = np.eye(4)
    laid[:3, :3], laid[:3, 3] = turn, place
    landmarks, own = place + float(scale) * (local @ turn.T), None
    if may_be_own and itself is not None and abs(itself / scale - 1.0) < SAME_LENGTHS:
        side = recording.side if frame == "palm" else None
        own, landmarks = _own(OwnHand(skeleton, hand, known, laid, float(scale), side), recording, landmarks)
    metre = recording.metre if own is None else 1.0 / (float(scale) * (skeleton.meters_per_unit or 1.0))
    apart = magnitudes(recording.places[:, ends] - recording.places[:, ends[:1]]) / metre
    ways = landmarks[:, ends] - landmarks[:, before]
    ways = ways / np.maximum(magnitudes(ways), 1e-12)[..., None]
    tips = landmarks[:, ends] if gripper is None else gripper.at(float(scale) * metre * apart)
    return Aims(
        fingers, tips, ways, recording.trust[:, ends], apart, laid, carrier,
        float(scale), reach, wrist, mirrored, landmarks, gripper, tuple(notes), metre, own,
    )  # fmt: skip


def _as_itself(skeleton: Skeleton, hand: Hand, local: Array, seen: NDArray[np.bool_]) -> tuple[Array, float | None]:
    """Return the frame (4, 4) in the world and the scale that lay points (T, 21, 3) on the hand's own landmarks.

    In a model, the wrist is the palm joint of the file, which may be anywhere. So wrist and knuckles may define another
    palm than the fingers do. Points with exactly this palm shape come from the hand itself; for all other points, the
    scale is None.
    """
    own = landmarks_in(skeleton, hand, np.array(skeleton.rest_pose().frames)[None])[0]
    known = [k for k in (WRIST, *KNUCKLES) if np.isfinite(own[k]).all() and seen[k]]
    if len(known) < _PALM_POINTS:
        return np.eye(4), None
    a, b = np.median(local[:, known], axis=0), own[known]
    from_a, from_b = a - a.mean(0), b - b.mean(0)
    u, lengths, v = np.linalg.svd(from_a.T @ from_b)
    lengths[2] *= np.sign(np.linalg.det(u @ v))
    R = (u * (1.0, 1.0, np.sign(np.linalg.det(u @ v)))) @ v  # rotation of row vectors: a @ R lies on b (Kabsch 1976)
    size = float(np.sum(from_a * from_a))
    if size <= 0.0:
        return np.eye(4), None
    scale = float(lengths.sum()) / size
    off = magnitudes(scale * from_a @ R - from_b)
    if not off.max() < _SAME_SHAPE * magnitudes(from_b).max():
        return np.eye(4), None
    axes = np.eye(4)
    axes[:3, :3], axes[:3, 3] = R.T, b.mean(0) - scale * a.mean(0) @ R
    return axes, scale


def _own(own: OwnHand, recording: Recording, landmarks: Array) -> tuple[OwnHand | None, Array]:
    """Return a hand and its landmarks (T, 21, 3) if the recorded points are its own; else None and the given ones."""
    out = np.array(landmarks)
    for t in reversed(range(len(out))):  # last comes the first frame, from which the hand starts
        out[t], fits = own.laid(recording.places[t])
        if not fits:
            return None, landmarks
    return own, out


def _base(skeleton: Skeleton, hand: Hand, origin: Any, world: Array) -> tuple[Array, Array, tuple[int, ...], int]:
    """Return the origin's position, the base's axes in the world, the joints of the wrist, and the base's row.

    The base carries the wrist, which has at most two hinges. The base is a link of an arm, or the first link.
    """
    palm = skeleton.value_index(hand.palm)
    row, within = (palm, None) if origin is None else skeleton.locate(origin)
    at = world[row] if within is None else world[row] @ within
    line = ancestors(skeleton.parents, palm)
    moving = [above for above in line if skeleton.joints[above].kind is not Kind.FIXED]
    hinges = all(skeleton.joints[above].kind is Kind.HINGE for above in moving)
    wrist = tuple(moving) if hinges and len(moving) <= _WRIST_JOINTS else ()
    base = line[-1] if wrist or not moving else palm
    return at[:3, 3], world[base, :3, :3], wrist, base


def _lengths(
    skeleton: Skeleton, fingers: tuple[Finger, ...], world: Array, place: Array, local: Array
) -> tuple[float, float]:
    """Return the distance from the origin to the tips of straight fingers, for the hand and for the recording.

    It is the distance to the knuckle plus the lengths of the segments, averaged over all fingers but the thumb.
    """
    mine = list[float]()
    for finger in fingers[1:]:
        rows = [skeleton.value_index(key) for key in finger.joints]
        tip = skeleton.value_index(finger.tip)
        chain = np.array([*world[rows, :3, 3], world[tip, :3, :3] @ finger.offset + world[tip, :3, 3]])
        mine.append(magnitude(chain[0] - place) + float(magnitudes(np.diff(chain, axis=0)).sum()))
    points = local[:, [FINGER_POINTS[finger.name] for finger in fingers[1:]]]
    steps = magnitudes(np.diff(points, axis=2)).sum(2) + magnitudes(points[:, :, 0])
    lengths = float(np.mean(mine)), float(np.median(steps, axis=0).mean())
    if min(lengths) <= 0.0:
        raise InputError("fingers", where=skeleton.name, value="of no length", expected="fingers with segments")
    return lengths
