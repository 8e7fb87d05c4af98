"""A body that follows landmarks of MediaPipe frame by frame: 33 of the body, or 33 and 21 of each hand.

Bones connect landmarks; their lengths are medians over the first frames. Lines from right to left rotate hips and
chest, directions of bones rotate limbs and fingers, and palms rotate hands. Parts that are not seen keep their last
pose, or are at rest. Hips that are not seen are placed below the shoulders.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from synovia.clips.landmarks import HANDS, PRESETS
from synovia.clips.seen import LIMBS, still_seen
from synovia.errors import InputError
from synovia.model import Joint, Kind, Skeleton
from synovia.model.anatomy.hands.landmarks import FINGER_POINTS, KNUCKLES, WRIST, palm_of
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, Bools, cross, matrix_to_quat, quat_to_matrix, unit
from synovia.retargeting.bones import smallest_rotation

_VISIBILITY: Final = 3  # column of points that has their visibility
COUNT: Final = 33
WITH_HANDS: Final = len(PRESETS["holistic"])
ONE_HAND: Final = 21
_POINTS: Final = f"({COUNT}, 3), or ({WITH_HANDS}, 3) with 21 of each hand"
_FARTHEST: Final = 1e4  # metres: a landmark with a larger coordinate counts as hidden
_FIRST: Final = 15  # number of frames from which bone lengths are measured
_AT: Final = {name: k for k, name in enumerate(PRESETS["mediapipe"]) if name}
_SHOULDERS: Final = [_AT[f"{side}_shoulder"] for side in SIDES]
_TURN: Final = np.array([1.0, -1.0, -1.0])  # in images, y points down and z away from the camera
_LEFT, _UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
_AHEAD: Final = np.array([0.0, 0.0, 1.0])
_LIMBS: Final = {  # landmarks of each limb
    f"{side}_{limb}": [_AT[f"{side}_{part}"] for part in parts] for limb, parts in LIMBS.items() for side in SIDES
}
ALL_LIMBS: Final = frozenset(_LIMBS)
_SHORT: Final = 1e-6
_RETURN: Final = 8  # number of frames in which a part that is seen again blends to its new pose
_ADULT: Final = (0.18, 0.495, 0.35, 0.22, 0.283, 0.27, 0.09, 0.425, 0.435, 0.2)  # metres: an adult's ``_lengths``
_THUMB: Final = np.array([0.6, 0.75, 0.3])  # direction of a right thumb at rest in the frame of the palm
# for each bone: its part, the part above, the landmark at its end, and its direction on the left side in a T-pose
_LINES: Final = (
    ("upper_arm", "chest", "elbow", _LEFT), ("lower_arm", "upper_arm", "wrist", _LEFT),
    ("hand", "lower_arm", "index", _LEFT), ("upper_leg", "hips", "knee", -_UP),
    ("lower_leg", "upper_leg", "ankle", -_UP), ("foot", "lower_leg", "toe", _AHEAD),
)  # fmt: skip
_START: Final = {"upper_arm": "shoulder", "lower_arm": "elbow", "hand": "wrist", "upper_leg": "hip",
                 "lower_leg": "knee", "foot": "ankle"}  # fmt: skip


class LandmarkBody:
    """Converts landmarks to poses of a body that is built from the first of them.

    Poses have 33 landmarks, or 33 and then 21 of the left and 21 of the right hand, as in MediaPipe Holistic. A
    landmark is hidden if it is NaN, or from the frame in which its visibility falls below 0.2 until it is 0.4 or more.
    A hidden part keeps its last pose; before it was ever seen, it is at rest. Hidden hips are placed below the
    shoulders, along the last direction of the trunk. Without shoulders, there is no pose. A hand that is hidden in all
    of the first frames has no fingers.

    Attributes:
        skeleton: The body; None until it is built from the first frames.
        count: Number of landmarks, 33 or 75; None before the first landmarks.
        unseen: Share of the poses in which a part was hidden, by its name; parts that were always seen are left out.
        hidden: Arms and legs that are hidden in the last pose.
        new: Arms and legs that have never been seen.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> body = sy.streams.LandmarkBody()
        >>> body.pose(np.full((33, 3), np.nan)) is None
        True
    """

    def __init__(self) -> None:
        """Start without a body."""
        self.skeleton: Skeleton | None = None
        self.count: int | None = None
        self._heard: list[Array] = []
        self._hands: dict[str, _HandShape] = {}
        self._shown: Bools | None = None
        self._poses, self._missed = 0, Counter[str]()
        self._up = _UP  # last direction of the trunk
        self._left: dict[str, int] = {}  # remaining frames in which a part blends to its new pose, by name
        self._hips_seen = True
        self.hidden, self.new = frozenset[str](), ALL_LIMBS

    @property
    def unseen(self) -> dict[str, float]:
        """Share of the poses in which a part was hidden, by its name."""
        return {part: count / self._poses for part, count in dict(self._missed).items()}

    def pose(self, points: Array) -> Array | None:
        """Return joint values (nq,) for landmarks, (33, 3) or (75, 3), metres, in the axes of MediaPipe.

        A fourth column is the visibility, from 0 to 1. None until the body is built, and for landmarks without
        shoulders.

        Raises:
            InputError: If the points are not 33 or 75, or their number changes.
        """
        if points.ndim != 2 or points.shape[1] not in (3, 4) or len(points) not in (COUNT, WITH_HANDS):
            raise InputError("points", value=points.shape, expected=f"{_POINTS}, with a fourth column for visibility")
        if self.count not in (None, len(points)):
            raise InputError("points", value=points.shape, expected=f"({self.count}, 3)")
        self.count = len(points)
        places = self._seen(points) * _TURN
        if self.skeleton is None:
            if np.isfinite(places[_SHOULDERS]).all():
                self._heard.append(places)
            if len(self._heard) < _FIRST:
                return None
            heard = np.array(self._heard)
            self._hands = _hand_shapes(heard) if len(places) == WITH_HANDS else {}
            self._build(_median_lengths(heard))
            self._heard.clear()
        return self._solved(places)

    def _seen(self, points: Array) -> Array:
        """Return the positions of landmarks, (n, 3); NaN for hidden landmarks."""
        places = points[:, :3].copy()
        hidden = ~(np.abs(places) < _FARTHEST).all(axis=1)
        if points.shape[1] == 4:
            before = np.ones(len(points), bool) if self._shown is None else self._shown
            self._shown = still_seen(points[:, _VISIBILITY], before)
            hidden |= ~self._shown
        places[hidden] = np.nan
        return places

    def _build(self, lengths: Array) -> None:
        """Build the body in its T-pose; ``lengths``, (10,), has the order of ``_lengths``."""
        width, trunk, across, head, *limbs = lengths.tolist()
        self._sizes = width, trunk
        of = dict(zip([part for part, *_ in _LINES], limbs, strict=True))

        def joint(name: str, above: str | None, offset: Array, kind: Kind = Kind.BALL) -> Joint:
            rest = np.eye(4)
            rest[:3, 3] = offset
            return Joint(name, above, kind, rest)

        joints = [
            joint("hips", None, np.zeros(3), Kind.FREE), joint("chest", "hips", 0.5 * trunk * _UP),
            joint("neck", "chest", 0.5 * trunk * _UP), joint("head", "neck", head * _UP, Kind.FIXED),
        ]  # fmt: skip
        for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
            flip = np.array([sign, 1.0, 1.0])
            for part, above, _, way in _LINES:
                name = f"{side}_{part}"
                if above == "hips":
                    offset, over = 0.5 * sign * width * _LEFT, "hips"
                elif above == "chest":
                    offset, over = 0.5 * sign * across * _LEFT + 0.5 * trunk * _UP, "chest"
                else:
                    offset, over = of[above] * flip * _way_of(above), f"{side}_{above}"
                joints.append(joint(name, over, offset))
                if part == "hand" and side in self._hands:
                    joints += self._hands[side].joints(name, side)
                elif part in ("hand", "foot"):
                    end = "toes" if part == "foot" else "hand_end"
                    joints.append(joint(f"{side}_{end}", name, of[part] * flip * way, Kind.FIXED))
        self.skeleton = skeleton = Skeleton(joints, name="landmarks", up="y", forward="z", meters_per_unit=1.0)
        self._rows = {name: row for row, name in enumerate(skeleton.joint_names)}
        self._last = skeleton.rest_q.copy()

    def _solved(self, p: Array) -> Array | None:
        """Return joint values (nq,) for landmarks, (33, 3) or (75, 3), with y up; None if they do not show a pose."""
        skeleton = self.skeleton
        if skeleton is None:
            return None
        across, neck = p[_AT["left_shoulder"]] - p[_AT["right_shoulder"]], _middle(p, "shoulder")
        line, hips = p[_AT["left_hip"]] - p[_AT["right_hip"]], _middle(p, "hip")
        seen = {"hips": bool(np.isfinite(line).all())}
        if not seen["hips"]:
            line, hips = across - (across @ self._up) * self._up, neck - self._sizes[1] * self._up
        lines = across, line, neck - hips
        if not min(float(np.linalg.norm(one)) for one in lines) > _SHORT:
            return None
        self._up = up = unit(lines[2])
        if seen["hips"] != self._hips_seen and self._poses:
            self._left["hips"] = self._left["chest"] = _RETURN
        self._hips_seen = seen["hips"]
        q = self._last = self._last.copy()
        world: dict[str, Array] = {}
        turned: dict[int, Array] = {}  # rotation matrices by their index in q, converted to quaternions in one call

        def turn(name: str, found: Array | None) -> Array:
            """Set the world rotation of a part; with None, the part keeps its pose relative to the part above."""
            row = self._rows[name]
            above = skeleton.parents[row]
            base = np.eye(3) if above < 0 else world[skeleton.joint_names[above]]
            at = skeleton.q_slice(row).stop - 4
            left = self._left.get(name, 0)
            if found is None:
                self._left[name] = _RETURN
            elif left:
                self._left[name] = left - 1
                new = matrix_to_quat((base.T @ found)[None])[0]
                new *= np.copysign(1.0, new @ q[at : at + 4])
                q[at : at + 4] = unit(q[at : at + 4] + (new - q[at : at + 4]) / left)
            else:
                turned[at] = base.T @ found
            world[name] = base @ quat_to_matrix(q[at : at + 4]) if found is None or left else found
            return world[name]

        q[:3] += (hips - q[:3]) / max(1, self._left.get("hips", 0))
        turn("hips", _turn(line, up))
        chest = turn("chest", _turn(across, up))
        head = _middle(p, "ear") - neck
        seen["head"] = bool(np.linalg.norm(head) > _SHORT)
        turn("neck", smallest_rotation(chest @ _UP, unit(head)) @ chest if seen["head"] else None)
        for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
            fingers = self._hands[side].turns(p[HANDS[side]], side) if side in self._hands else {}
            for part, above, end, way in _LINES:
                base = world[above if above in ("hips", "chest") else f"{side}_{above}"]
                line, found = p[_AT[f"{side}_{end}"]] - p[_AT[f"{side}_{_START[part]}"]], None
                if float(np.linalg.norm(line)) > _SHORT:
                    found = smallest_rotation(base @ (np.array([sign, 1.0, 1.0]) * way), unit(line)) @ base
                turn(f"{side}_{part}", fingers.get(part, found))
                limb = f"{side} {'arm' if part.endswith('arm') else 'leg'}"
                if part.endswith(("_arm", "_leg")):
                    seen[limb] = seen.get(limb, True) and found is not None
            if side in self._hands:
                seen[f"{side} fingers"] = bool(fingers)
                for name in self._hands[side].lengths:
                    for k in range(3):
                        turn(f"{side}_{name}_{k + 1}", fingers.get(f"{name}_{k + 1}"))
        for at, quat in zip(turned, matrix_to_quat(np.array(list(turned.values()))), strict=True):
            q[at : at + 4] = quat
        self.hidden = frozenset(name for name, at in _LIMBS.items() if not np.isfinite(p[at, 0]).any())
        self.new &= self.hidden
        self._poses += 1
        self._missed.update(part for part, fine in seen.items() if not fine)
        return q


class _HandShape(NamedTuple):
    """The shape of a hand: offsets of knuckles from the wrist in the palm's frame, and bone lengths of the fingers."""

    knuckles: dict[str, Array]
    lengths: dict[str, Array]

    def joints(self, hand: str, side: str) -> list[Joint]:
        """Return the finger joints below the joint of a hand, in the T-pose: palm down, fingers along the arm."""
        palm, out = _palm_at_rest(side), list[Joint]()
        for name, place in self.knuckles.items():
            above, offset = hand, palm @ place
            for k, length in enumerate((*self.lengths[name], None)):
                rest = np.eye(4)
                rest[:3, 3] = offset
                key = f"{side}_{name}_{k + 1}" if length is not None else f"{side}_{name}_tip"
                out.append(Joint(key, above, Kind.BALL if length is not None else Kind.FIXED, rest))
                if length is not None:
                    above, offset = key, length * (palm @ _way_at_rest(name, side))
        return out

    def turns(self, points: Array, side: str) -> dict[str, Array]:
        """Return the world rotations of the hand and its fingers from rest, by part; empty if a point is hidden."""
        frame = palm_of(points[None], side)[0]
        if not np.isfinite(points).all() or not np.isfinite(frame).all():
            return {}
        palm = _palm_at_rest(side)
        out = {"hand": frame[:3, :3] @ palm.T}
        for name in self.lengths:
            turn, way = out["hand"], palm @ _way_at_rest(name, side)
            for k, step in enumerate(np.diff(points[list(FINGER_POINTS[name])], axis=0)):
                if float(np.linalg.norm(step)) > _SHORT:
                    turn = smallest_rotation(turn @ way, unit(step)) @ turn
                out[f"{name}_{k + 1}"] = turn
        return out


def _palm_at_rest(side: str) -> Array:
    """Return the axes of the palm in the T-pose, (3, 3); see ``palm_of``."""
    along, out = (_LEFT if side == "left" else -_LEFT), -_UP
    return np.stack([cross(along, out), along, out], axis=1)


def _way_at_rest(finger: str, side: str) -> Array:
    """Return the direction of a finger at rest in the frame of the palm, (3,)."""
    return unit(_THUMB * (1.0 if side == "right" else -1.0, 1.0, 1.0)) if finger == "thumb" else _UP


def _hand_shapes(heard: Array) -> dict[str, _HandShape]:
    """Return the shapes of hands that are seen in points (T, 75, 3), by side: medians over the frames."""
    out: dict[str, _HandShape] = {}
    for side, where in HANDS.items():
        points = heard[:, where]
        points = points[np.isfinite(points).all((1, 2))]
        frames = palm_of(points, side)
        fine = np.isfinite(frames).all((1, 2))
        if not fine.any():
            continue
        points, axes = points[fine], frames[fine, :3, :3]
        inside = np.median((points - points[:, [WRIST]]) @ axes, axis=0)
        lengths = {
            name: np.median(np.linalg.norm(np.diff(points[:, list(rows)], axis=1), axis=2), axis=0)
            for name, rows in FINGER_POINTS.items()
        }
        if min(float(one.min()) for one in lengths.values()) > _SHORT and np.linalg.norm(inside[list(KNUCKLES)]) > 0.0:
            out[side] = _HandShape({name: inside[rows[0]] for name, rows in FINGER_POINTS.items()}, lengths)
    return out


def _way_of(part: str) -> Array:
    """Return the direction of a bone on the left side in the T-pose, (3,)."""
    return next(way for name, _, _, way in _LINES if name == part)


def _middle(p: Array, part: str) -> Array:
    """Return the midpoint of the left and right landmarks of a name, (..., 3)."""
    return 0.5 * (p[..., _AT[f"left_{part}"], :] + p[..., _AT[f"right_{part}"], :])


def _turn(across: Array, up: Array) -> Array:
    """Return the rotation of a part of the trunk, (3, 3), from its directions to the left and up."""
    left = unit(across - (across @ up) * up)
    return np.array([left, up, cross(left, up)]).T


def _median_lengths(p: Array) -> Array:
    """Return the median lengths (10,), see ``_lengths``; lengths that are never seen are scaled from an adult."""
    found, own = _lengths(p), np.array(_ADULT)
    known = np.isfinite(found).any(axis=0)
    out = own.copy()
    out[known] = np.nanmedian(found[:, known], axis=0)
    out[~known] *= float(np.median(out[known] / own[known]))
    return out


def _lengths(p: Array) -> Array:
    """Return lengths (T, 10): hips, trunk, shoulders, head, then limb bones, each a mean over the seen sides."""
    rows = [
        np.linalg.norm(p[:, _AT["left_hip"]] - p[:, _AT["right_hip"]], axis=1),
        np.linalg.norm(_middle(p, "shoulder") - _middle(p, "hip"), axis=1),
        np.linalg.norm(p[:, _AT["left_shoulder"]] - p[:, _AT["right_shoulder"]], axis=1),
        np.linalg.norm(_middle(p, "ear") - _middle(p, "shoulder"), axis=1),
    ]
    for part, _, end, _ in _LINES:
        sides = [
            np.linalg.norm(p[:, _AT[f"{side}_{end}"]] - p[:, _AT[f"{side}_{_START[part]}"]], axis=1) for side in SIDES
        ]
        left, right = sides
        rows.append(0.5 * (np.where(np.isnan(left), right, left) + np.where(np.isnan(right), left, right)))
    return np.array(rows).T
