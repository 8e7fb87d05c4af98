"""Joint limits and loops of edited clips: limits that a clip keeps also apply to the result."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.kernels.layout import BLOCK, BLOCK_Q, TURN
from synovia.model import Skeleton
from synovia.model.geometry import Array, Bools
from synovia.model.pose import clamped
from synovia.text import counted

_SLACK: Final = 1e-9  # radians or length units: tolerance of all limits
_SEEN: Final = 1e-6  # radians or length units: smaller changes are not reported
_NAMED: Final = 4  # largest number of joints that a note names


def kept_limits(skeleton: Skeleton, q: Array) -> Bools:
    """Return a mask of variables that are within their limits in all frames of joint values (T, nq)."""
    return _beyond(skeleton, q, clamped(skeleton, q)).max(0, initial=0.0) == 0.0


def held(skeleton: Skeleton, q: Array, kept: Bools, anchors: Array | None = None) -> tuple[Array, list[str]]:
    """Return joint values (T, nq) clamped to the limits that a clip kept, and notes about joints that were changed.

    Loops are closed, frame by frame, in the assembly branch of the clip.

    Args:
        skeleton: The skeleton.
        q: Joint values after an edit; mimic joints follow their leaders in the result.
        kept: Mask of variables that the clip kept within limits; see ``kept_limits``.
        anchors: Closed poses near each frame, (T, nq); see ``Mechanism.shut_clip``.
    """
    out, notes = _clamped(skeleton, skeleton.follow(q.copy()), kept)
    if skeleton.mechanism is not None:
        out = skeleton.mechanism.shut_clip(out, anchors=anchors)
    return out, notes


def _clamped(skeleton: Skeleton, q: Array, kept: Bools) -> tuple[Array, list[str]]:
    """Return joint values (T, nq) clamped as in ``held``, with notes; loops may be open in them."""
    inside = clamped(skeleton, q)
    if inside is q:
        return q, []
    off = np.where(kept, _beyond(skeleton, q, inside), 0.0)
    out = q.copy()
    changed: list[int] = np.flatnonzero(off.any(0)).tolist()
    for k in changed:
        at = _columns(skeleton, k)
        out[:, at] = np.where(off[:, k, None] > 0.0, inside[:, at], q[:, at])
    owners: list[int] = skeleton.tables.owner[[k for k in changed if off[:, k].max() > _SEEN]].tolist()
    names = list(dict.fromkeys(skeleton.joint_names[row] for row in owners))
    if not names:
        return skeleton.follow(out), []
    shown = ", ".join(names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
    frames = counted(int((off.max(1) > _SEEN).sum()), "frame")
    return skeleton.follow(out), [
        f"{counted(len(names), 'joint', verb=('was', 'were'))} clamped to limits in {frames}: {shown}."
    ]


def _columns(skeleton: Skeleton, variable: int) -> slice:
    """Return the slice of q that holds the values of a variable."""
    block, first = skeleton.tables.variables[variable, [BLOCK, BLOCK_Q]].tolist()
    return slice(first, first + (4 if block == TURN else 1))


def _beyond(skeleton: Skeleton, q: Array, inside: Array) -> Array:
    """Return how far each variable is beyond its limits, (T, k), in units of q; 0 for rounding errors."""
    out = np.zeros((len(q), len(skeleton.tables.variables)))
    if inside is not q:
        for k in range(out.shape[1]):
            at = _columns(skeleton, k)
            off = np.abs(q[:, at] - inside[:, at]).max(1)
            if at.stop - at.start > 1:  # both signs of a quaternion are the same rotation
                off = np.minimum(off, np.abs(q[:, at] + inside[:, at]).max(1))
            out[:, k] = np.where(off > _SLACK, off, 0.0)
    return out
