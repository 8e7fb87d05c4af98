"""A body that follows landmarks of MediaPipe frame by frame: 33 of the body, or these and 21 of each hand.

Bones go from landmark to landmark; their lengths are the medians of the first frames. Hips and chest are turned by the
lines between both sides, limbs and fingers by the directions of their bones, hands by their palms.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from synovia.clips.landmarks import HANDS, PRESETS
from synovia.errors import InputError
from synovia.model import Joint, Kind, Skeleton
from synovia.model.anatomy.hands.landmarks import FINGER_POINTS, KNUCKLES, WRIST, palm_of
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, cross, matrix_to_quat, unit
from synovia.retargeting.bones import smallest_rotation

COUNT: Final = 33
WITH_HANDS: Final = len(PRESETS["holistic"])
ONE_HAND: Final = 21
_FIRST: Final = 15  # frames from which lengths are taken
_AT: Final = {name: k for k, name in enumerate(PRESETS["mediapipe"]) if name}
_TURN: Final = np.array([1.0, -1.0, -1.0])  # images have y down and z away from the camera
_LEFT, _UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
_AHEAD: Final = np.array([0.0, 0.0, 1.0])
_SHORT: Final = 1e-6
_THUMB: Final = np.array([0.6, 0.75, 0.3])  # direction of a right thumb at rest in the frame of the palm
# Each bone: its part, the part above, the landmark at its end, and its direction in a T-pose for the left side
_LINES: Final = (
    ("upper_arm", "chest", "elbow", _LEFT), ("lower_arm", "upper_arm", "wrist", _LEFT),
    ("hand", "lower_arm", "index", _LEFT), ("upper_leg", "hips", "knee", -_UP),
    ("lower_leg", "upper_leg", "ankle", -_UP), ("foot", "lower_leg", "toe", _AHEAD),
)  # fmt: skip
_START: Final = {"upper_arm": "shoulder", "lower_arm": "elbow", "hand": "wrist", "upper_leg": "hip",
                 "lower_leg": "knee", "foot": "ankle"}  # fmt: skip


class LandmarkBody:
    """Turns landmarks into poses of a body that is built from the first of them.

    Points are 33, or 33, 21 of the left hand and 21 of the right one, in the order of MediaPipe Holistic. A hand that
    is not seen, as NaN, holds its fingers; one that is not seen in any of the first frames has none.

    Attributes:
        skeleton: The body; None until enough frames have come.
        count: Number of its landmarks, 33 or 75; None before the first ones.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> body = sy.streams.LandmarkBody()
        >>> body.pose(np.full((33, 3), np.nan)) is None
        True
    """

    def __init__(self) -> None:
        """Begin without a body."""
        self.skeleton: Skeleton | None = None
        self.count: int | None = None
        self._heard: list[Array] = []
        self._hands: dict[str, _HandShape] = {}

    def pose(self, points: Array) -> Array | None:
        """Return joint values (nq,) for landmarks (33, 3) or (75, 3) in the axes of MediaPipe, metres.

        None until the body is known, and for points that show no pose.

        Raises:
            InputError: If they are not 33 or 75, or as many as before.
        """
        if points.shape not in ((COUNT, 3), (WITH_HANDS, 3)) or self.count not in (None, len(points)):
            shapes = f"({COUNT}, 3), or ({WITH_HANDS}, 3) with 21 of each hand"
            raise InputError(
                "points", value=points.shape, expected=shapes if self.count is None else f"({self.count}, 3)"
            )
        self.count = len(points)
        body = points[:COUNT]
        if not np.isfinite(body).all() or np.abs(body).max() > 1e4:
            return None
        places = _named(points)
        if self.skeleton is None:
            self._heard.append(places)
            if len(self._heard) < _FIRST:
                return None
            heard = np.array(self._heard)
            self._hands = _hand_shapes(heard) if len(places) == WITH_HANDS else {}
            self._build(np.median(_lengths(heard), axis=0))
            self._heard.clear()
        return self._solved(places)

    def _build(self, lengths: Array) -> None:
        """Build the body in its T-pose from lengths of its bones."""
        width, trunk, across, head, *limbs = lengths.tolist()
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
        self._fingers = {
            side: [self._rows[f"{side}_{name}_{k + 1}"] for name in shape.lengths for k in range(3)]
            for side, shape in self._hands.items()
        }
        self._last = skeleton.rest_q.copy()

    def _solved(self, p: Array) -> Array | None:
        """Return joint values (nq,) for places of landmarks, (33, 3), y up."""
        skeleton = self.skeleton
        if skeleton is None:
            return None
        hips, neck = _middle(p, "hip"), _middle(p, "shoulder")
        lines = (
            p[_AT["left_hip"]] - p[_AT["right_hip"]],
            p[_AT["left_shoulder"]] - p[_AT["right_shoulder"]],
            neck - hips,
        )
        if min(float(np.linalg.norm(line)) for line in lines) < _SHORT:
            return None
        up = unit(lines[2])
        world = {name: _turn(line, up) for name, line in (("hips", lines[0]), ("chest", lines[1]))}
        head = unit(_middle(p, "ear") - neck)
        world["neck"] = smallest_rotation(world["chest"] @ _UP, head) @ world["chest"]
        q = skeleton.rest_q.copy()
        q[:3] = hips
        for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
            for part, above, end, way in _LINES:
                turn = world[above if above in ("hips", "chest") else f"{side}_{above}"]
                line = p[_AT[f"{side}_{end}"]] - p[_AT[f"{side}_{_START[part]}"]]
                if float(np.linalg.norm(line)) > _SHORT:
                    turn = smallest_rotation(turn @ (np.array([sign, 1.0, 1.0]) * way), unit(line)) @ turn
                world[f"{side}_{part}"] = turn
            if side in self._hands:
                found = self._hands[side].turns(p[HANDS[side]], side)
                world |= {f"{side}_{name}": turn for name, turn in found.items()}
                if not found:
                    for row in self._fingers[side]:
                        q[skeleton.q_slice(row)] = self._last[skeleton.q_slice(row)]
        for name, turn in world.items():
            row = self._rows[name]
            above = skeleton.parents[row]
            local = turn if above < 0 else world[skeleton.joint_names[above]].T @ turn
            at = skeleton.q_slice(row).stop - 4
            q[at : at + 4] = matrix_to_quat(local[None])[0]
        self._last = q
        return q


class _HandShape(NamedTuple):
    """A hand: places of its knuckles from the wrist in the frame of the palm, and lengths of the bones of fingers."""

    knuckles: dict[str, Array]
    lengths: dict[str, Array]

    def joints(self, hand: str, side: str) -> list[Joint]:
        """Return the joints of the fingers below that of a hand, in the T-pose: palm down, fingers along the arm."""
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
        """Return the rotations since rest in the world of the hand and its fingers; none for points without a palm."""
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
    """Return the axes of the palm in the T-pose, (3, 3), see ``palm_of``."""
    along, out = (_LEFT if side == "left" else -_LEFT), -_UP
    return np.stack([cross(along, out), along, out], axis=1)


def _way_at_rest(finger: str, side: str) -> Array:
    """Return the direction of a finger at rest in the frame of the palm."""
    return unit(_THUMB * (1.0 if side == "right" else -1.0, 1.0, 1.0)) if finger == "thumb" else _UP


def _hand_shapes(heard: Array) -> dict[str, _HandShape]:
    """Return the hands that are seen in points (T, 75, 3), by side, with the medians of their lengths."""
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
    """Return the direction of a bone in the T-pose, of the left side."""
    return next(way for name, _, _, way in _LINES if name == part)


def _named(points: Array) -> Array:
    """Return landmarks with y up."""
    return points * _TURN


def _middle(p: Array, part: str) -> Array:
    """Return the middle of both sides, (..., 3)."""
    return 0.5 * (p[..., _AT[f"left_{part}"], :] + p[..., _AT[f"right_{part}"], :])


def _turn(across: Array, up: Array) -> Array:
    """Return the rotation of a part of the trunk from a line to the left and one that points up."""
    left = unit(across - (across @ up) * up)
    return np.array([left, up, cross(left, up)]).T


def _lengths(p: Array) -> Array:
    """Return lengths (T, 10): hips, trunk, shoulders, head, and the bones of limbs, the mean of both sides."""
    rows = [
        np.linalg.norm(p[:, _AT["left_hip"]] - p[:, _AT["right_hip"]], axis=1),
        np.linalg.norm(_middle(p, "shoulder") - _middle(p, "hip"), axis=1),
        np.linalg.norm(p[:, _AT["left_shoulder"]] - p[:, _AT["right_shoulder"]], axis=1),
        np.linalg.norm(_middle(p, "ear") - _middle(p, "shoulder"), axis=1),
    ]
    for part, _, end, _ in _LINES:
        both = [
            np.linalg.norm(p[:, _AT[f"{side}_{end}"]] - p[:, _AT[f"{side}_{_START[part]}"]], axis=1) for side in SIDES
        ]
        rows.append(np.mean(both, axis=0))
    return np.array(rows).T
