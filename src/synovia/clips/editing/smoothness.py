"""Smoothness of an edit over time: accelerations of joints, and moving averages of changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synovia.model import Kind, Skeleton
from synovia.model.change import no_change, turns
from synovia.model.geometry import Array, rotation_between, times_exp

Bools = NDArray[np.bool_]
_SMALL = 1e-9  # radians or length units: added to the acceleration of joints that do not move, to avoid a division by 0


class Moved:
    """The joint values that an edit changes, with measures of their smoothness over time.

    Args:
        skeleton: The skeleton.
        own: Joint values of the clip in the frames of the layer, (n, nq).
        new: Joint values of the edited clip in the same frames, (n, nq).
    """

    def __init__(self, skeleton: Skeleton, own: Array, new: Array) -> None:
        """Find the values that the edit changes, and the largest change of each."""
        off = (own != new).any(axis=0)
        at = turns(skeleton)
        self._owner = np.repeat(np.arange(len(skeleton)), [joint.kind.q_size for joint in skeleton.joints])
        self._at = at[off[at].any(axis=1)]
        self._numbers = np.flatnonzero(_numbers(skeleton) & off)
        free = np.array([joint.kind is Kind.FREE for joint in skeleton.joints])
        self._frees = np.flatnonzero(_numbers(skeleton) & free[self._owner])
        self._travels = free[self._owner[self._numbers]][:, None]
        lengths = np.abs(new - own)[:, self._numbers]
        angles = np.linalg.norm(rotation_between(own[:, self._at], new[:, self._at]), axis=2)
        self._size = np.concatenate([lengths, angles], axis=1).max(axis=0, initial=0.0)

    def jerk(self, own: Array, new: Array, blend: int) -> float:
        """Return the largest acceleration of a joint after the edit, relative to the clip's and a smooth fade's.

        Args:
            own: Joint values of the clip in consecutive frames, (m, nq).
            new: Joint values of the edited clip, (m, nq).
            blend: Length of a fade in frames.
        """
        return float(self.jerks(own, new, blend).max(initial=0.0))

    def jerks(self, own: Array, new: Array, blend: int) -> Array:
        """Return the ratios of accelerations, see ``jerk``, for each value and inner frame, (m - 2, values)."""
        smoothest = 6.0 / blend**2 * self._size  # the largest acceleration of 3 p² - 2 p³
        before = self._accelerations(own).max(axis=0, initial=0.0)
        if len(self._frees):  # in the clip, other joints may move the whole body
            travel = np.abs(np.diff(own[:, self._frees], 2, axis=0)).max(axis=0, initial=0.0)
            others = self._owner[self._frees] != self._owner[self._numbers][:, None]
            before[: len(others)] = np.maximum(before[: len(others)], (travel * (others & self._travels)).max(axis=1))
        return self._accelerations(new) / (np.maximum(before, smoothest) + _SMALL)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row of the joint to which each value belongs, (values,)."""
        return np.concatenate([self._owner[self._numbers], self._owner[self._at[:, 0]]])

    def _accelerations(self, q: Array) -> Array:
        """Return the second differences over time, (m - 2, values): first of plain values, then of rotations."""
        steps = rotation_between(q[:-1][:, self._at], q[1:][:, self._at])
        turned = np.linalg.norm(np.diff(steps, axis=0), axis=2)
        return np.concatenate([np.abs(np.diff(q[:, self._numbers], 2, axis=0)), turned], axis=1)


def without_fast_parts(skeleton: Skeleton, change: Array, width: int, holds: tuple[bool, bool]) -> Array:
    """Return moving averages of changes (n, nq) over time: weighted means over ``width`` frames before and after each.

    Args:
        skeleton: The skeleton.
        change: The changes, (n, nq).
        width: Number of frames on each side.
        holds: Whether the first and the last change are continued beyond the ends; otherwise the change is 0 there.
    """
    numbers, at = _numbers(skeleton), turns(skeleton)
    identity = np.broadcast_to((0.0, 0.0, 0.0, 1.0), change[:, at].shape)
    turned = rotation_between(identity, change[:, at])
    flat = np.concatenate([change[:, numbers], turned.reshape(len(change), -1)], axis=1)
    ends = [np.repeat(flat[k : k + 1] * hold, width, axis=0) for k, hold in zip((0, len(flat) - 1), holds, strict=True)]
    padded = np.concatenate([ends[0], flat, ends[1]])
    window = np.hanning(2 * width + 3)[1:-1]
    window /= window.sum()
    mean = np.lib.stride_tricks.sliding_window_view(padded, len(window), axis=0) @ window
    out = np.tile(no_change(skeleton), (len(change), 1))
    out[:, numbers] = mean[:, : int(numbers.sum())]
    out[:, at] = times_exp(out[:, at], mean[:, int(numbers.sum()) :].reshape(len(change), -1, 3))
    return out


def _numbers(skeleton: Skeleton) -> Bools:
    """Return a mask, (nq,), of joint values that are plain values and not parts of quaternions."""
    out = np.ones(skeleton.nq, bool)
    out[turns(skeleton).ravel()] = False
    return out
