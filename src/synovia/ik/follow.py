"""Targets from another clip: where its joints are, frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from synovia.errors import InputError
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.motion import Motion


def targets_from(
    motion: Motion, joints: Iterable[str] | Mapping[str, str], *, rotations: bool = False
) -> dict[str, Array]:
    """Return the targets that ``IK.track`` needs to follow joints of a clip.

    Args:
        motion: The clip.
        joints: Joints that are to follow their namesakes in the clip, or a dict from joints to those they follow.
        rotations: Whether rotations are followed too.

    Returns:
        By joint: places (T, 3) in the clip's length unit, or transforms (T, 4, 4) with ``rotations``.

    Raises:
        InputError: If no joint is named.
        UnknownNameError: If the clip has no such joint.
    """
    if isinstance(joints, str):
        joints = [joints]
    if isinstance(joints, Mapping):
        pairs = dict(cast("Mapping[str, str]", joints))
    else:
        pairs = {name: name for name in joints}
    if not pairs:
        raise InputError("no joint is to follow the clip", expected="at least one name")
    rows = {own: motion.skeleton.index(other) for own, other in pairs.items()}
    frames = motion.frames()
    out: dict[str, Any] = {}
    for own, row in rows.items():
        out[own] = frames_to_transforms(frames[:, row]) if rotations else frames[:, row, 9:].copy()
    return out
