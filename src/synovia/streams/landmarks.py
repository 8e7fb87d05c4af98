"""A body that follows 33 landmarks of MediaPipe, frame by frame.

Bones go from landmark to landmark; their lengths are the medians of the first frames. Hips and chest are turned by the
lines between both sides, limbs by the directions of their bones.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.clips.landmarks import PRESETS
from synovia.model import Joint, Kind, Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, cross, matrix_to_quat, unit
from synovia.retargeting.bones import smallest_rotation

COUNT: Final = 33
_FIRST: Final = 15  # frames from which lengths are taken
_AT: Final = {name: k for k, name in enumerate(PRESETS["mediapipe"]) if name}
_TURN: Final = np.array([1.0, -1.0, -1.0])  # images have y down and z away from the camera
_LEFT, _UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
_AHEAD: Final = np.array([0.0, 0.0, 1.0])
_SHORT: Final = 1e-6
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

    Attributes:
        skeleton: The body; None until enough frames have come.

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
        self._heard: list[Array] = []

    def pose(self, points: Array) -> Array | None:
        """Return joint values (nq,) for landmarks (33, 3) in the axes of MediaPipe, metres.

        None until the body is known, and for points that show no pose.
        """
        if not np.isfinite(points).all() or np.abs(points).max() > 1e4:
            return None
        places = _named(points)
        if self.skeleton is None:
            self._heard.append(places)
            if len(self._heard) < _FIRST:
                return None
            self._build(np.median(_lengths(np.array(self._heard)), axis=0))
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
                if part in ("hand", "foot"):
                    end = "toes" if part == "foot" else "hand_end"
                    joints.append(joint(f"{side}_{end}", name, of[part] * flip * way, Kind.FIXED))
        self.skeleton = skeleton = Skeleton(joints, name="landmarks", up="y", forward="z", meters_per_unit=1.0)
        self._rows = {name: row for row, name in enumerate(skeleton.joint_names)}

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
        for name, turn in world.items():
            row = self._rows[name]
            above = skeleton.parents[row]
            local = turn if above < 0 else world[skeleton.joint_names[above]].T @ turn
            at = skeleton.q_slice(row).stop - 4
            q[at : at + 4] = matrix_to_quat(local[None])[0]
        return q


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
