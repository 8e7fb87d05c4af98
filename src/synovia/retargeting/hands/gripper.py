"""Grippers: tips without counterparts in a hand, which follow only the distances of its fingers from the thumb.

Tips of a gripper cannot be where those of a hand are, but the gripper can follow the width. It opens along the path
from the pose in which its tips are nearest to each other to the pose in which they are farthest apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.anatomy.hands.hand import Finger, Hand
from synovia.model.geometry import Array
from synovia.model.limits.interval import Interval
from synovia.model.pose import world_frames

WIDE: Final = 0.1  # metres between thumb and finger of an adult at which a gripper is fully open
_MOST: Final = 6  # up to this number of joints, all combinations of their limits are tried
_PLACES: Final = 17  # number of poses on the path from open to closed
_OPPOSED: Final = 3  # largest number of fingers of a gripper without a side; they are arranged around a middle


@dataclass(frozen=True, slots=True, eq=False)
class Gripper:
    """The paths of a gripper's tips as it opens.

    Attributes:
        tips: Positions of the tips in the world, from closed to open, (K, F, 3), thumb first.
        widths: Distances of the tips from the thumb's tip, (K, F), as running maxima so that they never decrease.
    """

    tips: Array
    widths: Array

    @property
    def widest(self) -> float:
        """Mean distance of the tips from the thumb's tip in the open gripper."""
        return float(self.widths[-1, 1:].mean())

    def moved(self, transform: Array) -> Gripper:
        """Return the paths in a world that a transform (4, 4) has moved."""
        return Gripper(self.tips @ transform[:3, :3].T + transform[:3, 3], self.widths)

    def at(self, apart: Array) -> Array:
        """Return target positions of the tips, (T, F, 3), for given distances.

        Args:
            apart: Distance of each tip from the tip of the thumb, (T, F), length units of the skeleton; the first is
                ignored.
        """
        out = np.empty((*apart.shape, 3))
        places = np.linspace(0.0, 1.0, len(self.tips))
        shares = np.stack([np.interp(apart[:, k], self.widths[:, k], places) for k in range(1, apart.shape[1])], axis=1)
        shares = np.concatenate([shares.min(axis=1, keepdims=True), shares], axis=1)
        for k, i in itertools.product(range(apart.shape[1]), range(3)):
            out[:, k, i] = np.interp(shares[:, k], places, self.tips[:, k, i])
        return out


def gripper_of(skeleton: Skeleton, hand: Hand, fingers: Sequence[Finger]) -> Gripper | None:
    """Return the paths of a gripper's tips; None for a hand.

    Grippers are hands with two fingers, and hands without a side with three fingers around a middle.

    Args:
        skeleton: The skeleton.
        hand: The hand.
        fingers: The fingers that follow, thumb first.
    """
    if len(hand.fingers) > (2 if hand.side else _OPPOSED):
        return None
    poses = _ends(skeleton, fingers)
    opened = poses[int(np.argmax(_widths(_tips(skeleton, fingers, poses)).sum(1)))]
    shares = np.linspace(0.0, 1.0, _PLACES)[:, None]
    ways = [_way(skeleton, opened + shares * (pose - opened)) for pose in poses]
    sums = np.array([_widths(_tips(skeleton, fingers, way)).sum(1) for way in ways])
    best, last = np.unravel_index(int(np.argmin(sums)), sums.shape)
    tips = _tips(skeleton, fingers, ways[int(best)][: int(last) + 1])[::-1]
    widths = np.maximum.accumulate(_widths(tips), axis=0)
    return Gripper(tips, widths) if widths[-1, 1:].min() > widths[0, 1:].max() else None


def _ends(skeleton: Skeleton, fingers: Sequence[Finger]) -> Array:
    """Return the rest pose, and poses in which the fingers' joints are at limits, (N, nq)."""
    rows = {skeleton.value_index(key) for finger in fingers for key in finger.joints}
    ends = list[tuple[int, float, float]]()
    for row in sorted({skeleton.leader_rows.get(row, row) for row in rows}):
        joint, limit = skeleton.joints[row], skeleton.joints[row].limit
        if joint.kind in (Kind.HINGE, Kind.SLIDE) and isinstance(limit, Interval):
            low, high = max(limit.lower, -np.pi), min(limit.upper, np.pi)
            ends.append((skeleton.q_slice(row).start, low, high))
    choices = itertools.product((0, 1), repeat=len(ends)) if len(ends) <= _MOST else ((k,) * len(ends) for k in (0, 1))
    out = [np.array(skeleton.rest_pose().q)]
    for choice in choices:
        pose = out[0].copy()
        for (at, low, high), k in zip(ends, choice, strict=True):
            pose[at] = high if k else low
        out.append(pose)
    every = skeleton.follow(np.array(out))
    shares = np.linspace(0.0, 1.0, _PLACES)[:, None]
    return np.array([_way(skeleton, every[0] + shares * (pose - every[0]))[-1] for pose in every])


def _way(skeleton: Skeleton, poses: Array) -> Array:
    """Return poses (T, nq) after their loops were closed."""
    return poses if skeleton.mechanism is None else skeleton.mechanism.shut_clip(poses)


def _tips(skeleton: Skeleton, fingers: Sequence[Finger], q: Array) -> Array:
    """Return the tip positions, (T, F, 3), at poses (T, nq)."""
    frames = world_frames(skeleton, np.ascontiguousarray(q))
    rows = [skeleton.value_index(finger.tip) for finger in fingers]
    R = frames[:, rows, :9].reshape(len(q), -1, 3, 3)
    return np.einsum("tkij,kj->tki", R, np.array([finger.offset for finger in fingers])) + frames[:, rows, 9:]


def _widths(tips: Array) -> Array:
    """Return the distances of tips (T, F, 3) from the first tip, (T, F)."""
    return np.linalg.norm(tips - tips[:, :1], axis=-1)
