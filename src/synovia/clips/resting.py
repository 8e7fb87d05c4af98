"""Limbs that are not seen: they stay where they were last seen, or take a pose at rest."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.files.poses import load_pose
from synovia.model import Pose, Skeleton
from synovia.model.change import blend, smooth
from synovia.model.geometry import Array, Bools
from synovia.model.tree import ancestors

Rest = str | int | Pose | os.PathLike[str]  # a word, a frame number in some commands, a pose, or its file
_WAIT: Final = 0.3  # seconds for which a hidden limb stays where it was seen, because it often reappears soon
_OVER: Final = 0.5  # seconds of the motion to the pose at rest, and of the motion back when the limb is seen again


def kept_values(rest: Rest | None, body: Skeleton, to: Skeleton) -> tuple[Array, bool]:
    """Return the joint values (nq,) of resting limbs, and whether hidden limbs stay where they were seen instead.

    Args:
        rest: ``"keep"`` or None to stay; ``"rest"``, a pose or a pose file to take that pose.
        body: The skeleton of the pose.
        to: The skeleton of the returned values; its joints are matched by name, and others are at rest.

    Raises:
        InputError: If ``rest`` is none of these, or a pose of another body.
    """
    if rest is None or rest in ("keep", "rest"):
        return np.array(to.rest_q), rest != "rest"
    if isinstance(rest, str | os.PathLike) and Path(rest).suffix and Path(rest).exists():
        rest = load_pose(rest, body)
    if not isinstance(rest, Pose):
        hint = "sy.load_pose(path, skeleton) reads a pose"
        raise InputError("rest", value=rest, expected="'rest', 'keep', a pose or a pose file", hint=hint)
    own, out = rest.skeleton, np.array(to.rest_q)
    if not {*body.joint_names} <= {*own.joint_names}:
        raise InputError("rest", value=f"a pose of {own.name}", expected=f"a pose of {body.name}")
    for row, name in enumerate(own.joint_names):
        if name in to.joint_names:
            values, at = rest.q[own.q_slice(row)], to.q_slice(to.joint_names.index(name))
            if len(values) == at.stop - at.start:
                out[at] = values
    return out, False


class UnseenLimbs:
    """Moves hidden limbs to a pose at rest, and back when they are seen again.

    Limbs that are not seen in the first frame rest from then on.

    Args:
        skeleton: The skeleton of the joint values.
        limbs: Row of the first joint of each limb.
        kept: Joint values of the pose at rest, (nq,).
        fps: Frames per second.
    """

    def __init__(self, skeleton: Skeleton, limbs: Mapping[str, int], kept: Array, fps: float) -> None:
        """Find the indices of the joint values of each limb."""
        below = {
            limb: [row for row in range(len(skeleton)) if first in ancestors(skeleton.parents, row)]
            for limb, first in limbs.items()
        }
        at = [[k for row in rows for k in range(skeleton.nq)[skeleton.q_slice(row)]] for rows in below.values()]
        self._skeleton, self._limbs, self._places = skeleton, tuple(limbs), at
        self._kept, self._step = kept, 1.0 / fps
        self.reset()

    def reset(self) -> None:
        """Start again: the next frame is the first."""
        self._time: Array | None = None  # seconds since each limb started to move to rest, at most _OVER

    def step(self, q: Array, hidden: Collection[str]) -> bool:
        """Move the ``hidden`` limbs in the joint values (nq,) of the next frame; return whether a limb is at rest."""
        (rests,) = self._shares(np.array([[limb in hidden for limb in self._limbs]], bool))
        if rests.any():
            q[:] = self._moved(q[None], rests[None])[0]
        return bool(rests.any())

    def follow(self, q: Array, hidden: Bools) -> Array:
        """Return joint values (T, nq) of consecutive frames with ``hidden`` limbs (mask, (T, limbs)) moved to rest."""
        return self._moved(q, self._shares(hidden))

    def _moved(self, q: Array, rests: Array) -> Array:
        """Return joint values (T, nq) blended with the pose at rest; ``rests`` has the weights, (T, limbs)."""
        out = q.copy()
        for places, share in zip(self._places, rests.T, strict=True):
            used = np.flatnonzero(share)
            moved = blend(self._skeleton, q[used], np.tile(self._kept, (len(used), 1)), share[used])
            out[used[:, None], places] = moved[:, places]
        return out

    def _shares(self, hidden: Bools) -> Array:
        """Return the weight of the pose at rest for each limb, (T, limbs), from 0 to 1."""
        out, time = np.empty(hidden.shape), self._time
        for frame, gone in enumerate(hidden):
            if time is None:
                time = np.where(gone, _OVER, -_WAIT)
            else:
                back = np.where(time > 0.0, np.maximum(time - self._step, 0.0), -_WAIT)
                time = np.where(gone, np.minimum(time + self._step, _OVER), back)
            out[frame] = time
        self._time = time
        return np.asarray(smooth(np.clip(out / _OVER, 0.0, 1.0)))
