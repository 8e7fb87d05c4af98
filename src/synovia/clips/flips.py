"""Find frames in which a cloud of landmarks is flipped: upside down, facing backwards, or with sides exchanged.

Detectors lose the person for some frames, or confuse left and right limbs. The whole cloud then rotates by half a turn
between two frames, which no body does.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.landmarks import Landmarks
from synovia.clips.upright import body_up, forward_by_frame
from synovia.model.geometry import Array

_TURN: Final = np.cos(np.radians(110.0))  # cosine of an angle larger than the rotation of any body between two frames
# degrees per second that no body reaches; at low frame rates, a flip must rotate by at least this speed
_FASTEST: Final = 1000.0
_WIDE: Final = 0.05  # fraction of the body's length: shoulders or hips that are closer do not determine a direction
# cosine between forward and the direction of face and toes; beyond its negative value, the cloud is a mirror image
_MIRRORED: Final = 0.5


def find_flips(marks: Landmarks, fps: float) -> tuple[int, ...]:
    """Return the frames in which the cloud is flipped relative to most other frames.

    Args:
        marks: The landmarks, with y up.
        fps: Frames per second.
    """
    up = body_up(marks)
    pairs = [marks.middle(f"left_{part}") - marks.middle(f"right_{part}") for part in ("hip", "shoulder")]
    left = np.sum(pairs, axis=0)
    length = float(np.nanmedian(np.linalg.norm(up, axis=1)))
    flipped = np.zeros(len(up), bool)
    for way in (up, left):
        flipped |= _turned(way, length, fps)
    ahead = forward_by_frame(marks)
    if np.isfinite(ahead).any() and np.nanmedian(ahead) > _MIRRORED:
        flipped |= np.nan_to_num(ahead, nan=1.0) < -_MIRRORED
    return tuple(np.flatnonzero(flipped).tolist())


def _turned(way: Array, length: float, fps: float) -> NDArray[np.bool_]:
    """Return a mask of the frames in which a vector (T, 3) is flipped, compared with most of the frames.

    Args:
        way: The vector; NaN where it is unknown.
        length: Length of the body.
        fps: Frames per second.
    """
    size = np.linalg.norm(way, axis=1)
    seen = np.flatnonzero(np.nan_to_num(size) > _WIDE * length)
    out = np.zeros(len(way), bool)
    if len(seen) < 2 or _FASTEST / fps > 170.0:
        return out
    line = way[seen] / size[seen, None]
    least = min(_TURN, np.cos(np.radians(_FASTEST / fps)))
    turns = (np.sum(line[1:] * line[:-1], axis=1) < least) & (np.diff(seen) * _FASTEST / fps < 170.0)
    other = np.cumsum(np.append(0, turns)) % 2 == 1
    if 2 * int(other.sum()) > len(other):
        other = ~other
    out[seen[other]] = True
    return out
