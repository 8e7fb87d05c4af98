"""The palm of 21 landmarks over time: its shape, and its pose in each frame, even if some points are hidden.

A palm is rigid. The frames with most visible points define its shape. The shape is then fitted to the visible points of
the other frames, which add points that were hidden before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.anatomy.hands.landmarks import WRIST, palm_axes
from synovia.model.geometry import Array

_FEWEST: Final = 3  # least number of points that determine the pose of a palm in a frame
_ROUNDS: Final = 4  # number of rounds, which fit the shape to each frame and then average the frames
_FLAT: Final = 0.05  # points lie on a line if the ratio of their spreads across and along it is at most this


@dataclass(frozen=True, eq=False)
class Palms:
    """The shape and the poses of a palm over time.

    Args:
        places: Positions of the points by landmark, in the axes of the palm, relative to the wrist.
        known: Indices of the N frames in which enough points are seen to determine the pose.
        turns: Orientations of the palm's axes in these frames, (N, 3, 3), in the frame of the landmarks.
        origins: Positions of the wrist in these frames, (N, 3), also where it is hidden.
    """

    places: dict[int, Array]
    known: NDArray[np.intp]
    turns: Array
    origins: Array

    def inside(self, points: Array) -> Array:
        """Return landmarks (T, K, 3) in the known frames, relative to the wrist in the axes of the palm, (N, K, 3)."""
        return (points[self.known] - self.origins[:, None]) @ self.turns

    def everywhere(self, count: int) -> tuple[Array, Array]:
        """Return axes (T, 3, 3) and origins (T, 3) in all frames: interpolated between known frames, else constant."""
        from scipy.spatial.transform import Rotation, Slerp

        times, known = np.clip(np.arange(count), self.known[0], self.known[-1]), self.known
        origins = np.stack([np.interp(times, known, self.origins[:, i]) for i in range(3)], axis=1)
        if len(known) < 2:
            return np.repeat(self.turns, count, axis=0), origins
        turns: Array = Slerp(known, Rotation.from_matrix(self.turns))(times).as_matrix()
        return turns, origins


def palms_of(points: Array, palm: list[int], side: str) -> Palms | None:
    """Return the palm of landmarks over time; None if no frame shows three of its points that are not on a line.

    Args:
        points: The landmarks, (T, 21, 3); NaN where a landmark was not seen.
        palm: The wrist, then the knuckles that are seen in some frame.
        side: The side of the hand.
    """
    own = points[:, palm]
    seen = np.isfinite(own[:, :, 0])
    shape = _first(own, seen)
    if shape is None:
        return None
    for _ in range(_ROUNDS):
        frames, turns, shifts = _laid(shape, own, seen)
        laid = (own[frames] - shifts[:, None]) @ turns
        there = np.asarray(seen[frames].any(0))
        shape = np.where(there[:, None], np.nanmedian(np.where(there[:, None], laid, 0.0), axis=0), shape)
    frames, turns, shifts = _laid(shape, own, seen)
    found = np.flatnonzero(np.isfinite(shape[:, 0]))
    if palm[int(found[0])] != WRIST or len(found) < _FEWEST:
        return None
    along, out = palm_axes(shape[0], shape[found[1:]])
    out = out if side == "right" else -out
    axes = np.stack([np.cross(along, out), along, out], axis=1)
    places = {palm[k]: (shape[k] - shape[0]) @ axes for k in found.tolist()}
    return Palms(places, frames, turns @ axes, shifts + turns @ shape[0])


def completed_palm(shape: Array, own: Array) -> Array:
    """Return points (P, 3) of a palm in which hidden points (NaN) come from a shape (P, 3) fitted to the others.

    Args:
        shape: The palm in a frame in which all its points are known.
        own: The palm in another frame.
    """
    seen = np.isfinite(own[:, 0])
    frames, turns, shifts = _laid(shape, own[None], seen[None])
    return own if not len(frames) else np.where(seen[:, None], own, shape @ turns[0].T + shifts[0])


def _first(own: Array, seen: NDArray[np.bool_]) -> Array | None:
    """Return the palm's points (P, 3) in the frame that shows most, NaN where hidden; None if all are on a line."""
    for frame in np.argsort(-seen.sum(1), kind="stable").tolist():
        if seen[frame].sum() < _FEWEST:
            return None
        if not _in_line(own[frame][seen[frame]]):
            return np.array(own[frame])
    return None


def _laid(shape: Array, own: Array, seen: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Array, Array]:
    """Return the N frames that determine the palm's pose, and the rotations (N, 3, 3) and shifts (N, 3) of its shape.

    References:
        Kabsch (1976), *A solution for the best rotation to relate two sets of vectors*.
    """
    both = seen & np.isfinite(shape[:, 0])
    fits = np.array([row.sum() >= _FEWEST and not _in_line(shape[row]) for row in both])
    frames = np.flatnonzero(fits)
    weights = both[frames].astype(np.float64)
    weights /= weights.sum(1, keepdims=True)
    a, b = np.where(both[frames, :, None], shape, 0.0), np.where(both[frames, :, None], own[frames], 0.0)
    means = np.einsum("nk,nki->ni", weights, a), np.einsum("nk,nki->ni", weights, b)
    spread = np.einsum("nk,nki,nkj->nij", weights, b - means[1][:, None], a - means[0][:, None])
    U, _, Vt = np.linalg.svd(spread)
    signs = np.ones((len(frames), 3))
    signs[:, 2] = np.sign(np.linalg.det(U @ Vt))
    turns = (U * signs[:, None]) @ Vt
    return frames, turns, means[1] - np.einsum("nij,nj->ni", turns, means[0])


def _in_line(places: Array) -> bool:
    """Return whether points (K, 3) are on a line and so do not determine the orientation of a palm."""
    spread = np.linalg.svd(places - places.mean(0), compute_uv=False)
    return bool(spread[1] <= _FLAT * spread[0])
