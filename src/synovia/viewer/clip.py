"""The clip that plays under the goals: its state, its pose at a time, and the blend with another pose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synovia.errors import InputError
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


def fitting(motion: Motion, skeleton: Skeleton) -> Motion:
    """Return a motion on a skeleton, copied if it belongs to another one with the same joints.

    Raises:
        InputError: If the joints differ.
    """
    if motion.skeleton is skeleton:
        return motion
    if motion.skeleton.joint_names != skeleton.joint_names or motion.skeleton.nq != skeleton.nq:
        raise InputError(
            "clip belongs to another skeleton",
            where=motion.name,
            value=motion.skeleton,
            expected=f"the joints of {skeleton.name}",
            hint="view the clip's own file, or retarget the clip first",
        )
    return Motion(skeleton, np.array(motion.q), motion.fps, name=motion.name)


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
