"""The 21 landmarks of a hand of a skeleton, by forward kinematics."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.model.anatomy.hands.find import hand_of
from synovia.model.anatomy.hands.hand import Finger, Hand
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, WRIST
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.pose import world_frames
from synovia.model.skeleton import Pose, Skeleton

_APART: Final = 1e-6  # fraction of a finger's length: joints that are nearer coincide


def hand_landmarks(pose: Pose | Motion, side: str | None = None) -> Array:
    """Return the 21 landmarks of a hand, in the order of MediaPipe and MANO.

    The wrist is at the joint of the palm. A finger has the positions of its last three joints, and its tip; with fewer
    joints, points are interpolated. Landmarks of missing fingers are NaN.

    Args:
        pose: A pose, or a motion.
        side: ``"left"`` or ``"right"``; required for a body with two hands.

    Returns:
        World positions, (21, 3), or (T, 21, 3) for a motion; length units of the skeleton.

    Raises:
        InputError: If ``pose`` is neither a pose nor a motion.
        UnsupportedError: If no hand is found, or several hands match.

    Example:
        >>> import synovia as sy
        >>> sy.hands.hand_landmarks(sy.bundled("humanoid_hands").rest_pose(), "left").shape
        (21, 3)
    """
    if not isinstance(pose, Motion):
        check_kind("pose", pose, Pose, "skeleton.rest_pose() is one; a Motion has many")
    skeleton = pose.skeleton
    hand = hand_of(skeleton, side)
    q = pose.q if isinstance(pose, Motion) else np.array(pose.q)[None]
    out = landmarks_in(skeleton, hand, world_frames(skeleton, np.ascontiguousarray(q)))
    return out if isinstance(pose, Motion) else out[0]


def landmarks_in(skeleton: Skeleton, hand: Hand, frames: Array) -> Array:
    """Return the landmarks of a hand, (T, 21, 3), given world frames of all joints, (T, n, 12)."""
    out = np.full((len(frames), COUNT, 3), np.nan)
    out[:, WRIST] = frames[:, skeleton.value_index(hand.palm), 9:]
    for name, points in FINGER_POINTS.items():
        finger = hand.finger(name)
        if finger is not None:
            out[:, points] = _along(_places(skeleton, finger, frames), len(points))
    return out


def _places(skeleton: Skeleton, finger: Finger, frames: Array) -> Array:
    """Return the different positions of a finger's joints from base to tip, then its tip, (T, n, 3)."""
    rows = [skeleton.value_index(key) for key in finger.joints]
    tip = skeleton.value_index(finger.tip)
    R = frames[:, tip, :9].reshape(-1, 3, 3)
    places = np.concatenate([frames[:, rows, 9:], (R @ finger.offset + frames[:, tip, 9:])[:, None]], axis=1)
    steps = np.linalg.norm(np.diff(places[0], axis=0), axis=1)
    kept = [k for k, step in enumerate(steps) if step > _APART * max(float(steps.sum()), 1e-12)]
    return places[:, [*kept, len(rows)]]


def _along(places: Array, count: int) -> Array:
    """Return ``count`` points of a chain (T, n, 3): its last ones or, if it has fewer, equidistant ones."""
    if places.shape[1] >= count:
        return places[:, -count:]
    lengths = np.zeros(places.shape[1])
    lengths[1:] = np.cumsum(np.linalg.norm(np.diff(places[0], axis=0), axis=1))
    out = np.empty((len(places), count, 3))
    for k in range(count):
        at = float(lengths[-1]) * k / (count - 1)
        j = min(int(np.searchsorted(lengths, at, side="right")), len(lengths) - 1)
        u = (at - float(lengths[j - 1])) / max(float(lengths[j] - lengths[j - 1]), 1e-300) if j else 0.0
        out[:, k] = places[:, j - 1] * (1.0 - u) + places[:, j] * u
    return out
