"""The clip that plays under the goals: its state, its pose at a time, and the blend with another pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synovia.kernels.layout import BLOCK, BLOCK_Q, TURN
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion


@dataclass(slots=True)
class Play:
    """State of the clip that plays under the goals.

    Args:
        motion: The clip, None for none.
        time: Seconds from the first frame.
        playing: Whether the clip runs.
        speed: Factor of the recorded speed; negative values play backwards.
        weight: Share of the clip in the blend with the pose without it, 0 to 1.
    """

    motion: Motion | None = None
    time: float = 0.0
    playing: bool = False
    speed: float = 1.0
    weight: float = 1.0

    def advance(self, seconds: float) -> None:
        """Advance the time by some seconds; the clip loops."""
        if self.motion is not None and self.playing and self.motion.duration > 0.0:
            self.time = (self.time + seconds * self.speed) % self.motion.duration


def together(skeleton: Skeleton, clips: Sequence[Motion]) -> tuple[Skeleton, list[Motion]]:
    """Return a skeleton with the moving root that the clips need, and the clips on it.

    Raises:
        InputError: If a clip belongs to another skeleton.
    """
    for motion in clips:
        skeleton = motion.on(skeleton).skeleton
    return skeleton, [motion.on(skeleton) for motion in clips]


def sample(motion: Motion, seconds: float) -> Array:
    """Return joint values at a time, (nq,), interpolated between frames and constant outside the clip."""
    place = float(np.clip(seconds * motion.fps, 0.0, len(motion) - 1))
    first = int(place)
    second = min(first + 1, len(motion) - 1)
    return blend(motion.skeleton, motion.q[first], motion.q[second], place - first)


def blend(skeleton: Skeleton, a: Array, b: Array, weight: float) -> Array:
    """Return joint values between two poses, from a (weight 0) to b (weight 1); rotations by slerp."""
    if weight <= 0.0:
        return np.array(a)
    if weight >= 1.0:
        return np.array(b)
    out = (1.0 - weight) * a + weight * b
    variables = skeleton.tables.variables
    turns = variables[variables[:, BLOCK] == TURN, BLOCK_Q]
    if len(turns):
        from scipy.spatial.transform import Rotation

        at = turns[:, None] + np.arange(4)
        start = Rotation.from_quat(a[at])
        way = (start.inv() * Rotation.from_quat(b[at])).as_rotvec()
        out[at] = (start * Rotation.from_rotvec(weight * way)).as_quat()
    return skeleton.follow(out)
