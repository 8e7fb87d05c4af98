"""Keys of a layer: joint values at given frames, and interpolated changes of joint values between these frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.layers import Key, Layer
from synovia.model import Skeleton
from synovia.model.change import blend, change_between, changed, no_change, smooth
from synovia.model.geometry import UNIT_SLACK, Array
from synovia.model.pose import clamped

Bools = NDArray[np.bool_]
_ROUNDING = 1e-15  # a unit quaternion's length deviates from 1 by at most this rounding error
_CUT = 1e-6  # radians or length units: a key that exceeds a limit by less is not reported


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """Interpolated changes of joints that all have keys at the same frames.

    Args:
        columns: Mask of the joint values that have keys, (nq,).
        first: First frame without a fade; before it, the change of the first key fades in.
        last: Last frame without a fade; after it, the change of the last key fades out.
        at: Frames of the keys, (k,); empty if one key applies in all frames.
        changes: Changes of joint values at the keys, (k, nq).
        values: Joint values of a key that applies in all frames, (nq,); None if changes are given instead.
    """

    columns: Bools
    first: int
    last: int
    at: Array
    changes: Array
    values: Array | None = None


class KeyCurves:
    """Changes of joint values over time from the keys of a layer.

    Args:
        skeleton: The skeleton.
        layer: The layer.
        q: Joint values of the clip below, (T, nq).

    Raises:
        InputError: If a value does not fit its joint, or the frame of a key is beyond the clip.
        UnknownNameError: If a joint does not exist.
    """

    def __init__(self, skeleton: Skeleton, layer: Layer, q: Array) -> None:
        """Group the joints by their keys: joints that share all keys share a curve."""
        self._skeleton, self._layer = skeleton, layer
        self._curves = [
            self._curve(rows, [layer.keys[k] for k in keys], q) for rows, keys in _groups(skeleton, layer.keys)
        ]

    def at(self, frames: Array, below: Array) -> Array:
        """Return the changes of joint values that the keys cause at given frames, (n, nq).

        Args:
            frames: The frames, (n,), which may be fractional.
            below: Joint values of the clip at these frames, (n, nq).
        """
        layer, still = self._layer, no_change(self._skeleton)
        out = np.tile(still, (len(frames), 1))
        for curve in self._curves:
            change = self._unfaded(curve, frames, below)
            away = np.maximum(np.maximum(curve.first - frames, frames - curve.last), 0.0)
            share = np.where(away > 0.0, 0.0, 1.0)
            if layer.blend:
                share = np.asarray(smooth(np.clip(1.0 - away / layer.blend, 0.0, 1.0)), np.float64)
            faded = blend(
                self._skeleton, np.broadcast_to(still, change.shape), change, layer.weight * share, follow=False
            )
            out[:, curve.columns] = faded[:, curve.columns]
        return out

    def _unfaded(self, curve: _Curve, frames: Array, below: Array) -> Array:
        """Return the changes that one curve causes, (n, nq), without its fades."""
        if curve.values is not None:
            return change_between(self._skeleton, below, np.where(curve.columns, curve.values, below))
        if len(curve.changes) == 1:
            return np.repeat(curve.changes, len(frames), axis=0)
        after = np.clip(np.searchsorted(curve.at, frames, side="right"), 1, len(curve.at) - 1)
        before = after - 1
        part = np.clip((frames - curve.at[before]) / (curve.at[after] - curve.at[before]), 0.0, 1.0)
        share = np.asarray(smooth(part), np.float64)
        return blend(self._skeleton, curve.changes[before], curve.changes[after], share, follow=False)

    def _curve(self, rows: Sequence[int], keys: Sequence[Key], q: Array) -> _Curve:
        """Return the curve of joints that have the same keys."""
        layer, skeleton, columns = self._layer, self._skeleton, columns_of(self._skeleton, rows)
        first, last = layer.bounds(len(q))
        if len(keys) > 1 and keys[0].frame is None:
            name = skeleton.joint_keys[rows[0]]
            raise InputError(f"keys of joint {name!r}", expected="one key without a frame, or only keys with frames")
        if keys[0].frame is None and not layer.relative:
            values = _with_values(skeleton, q[0], keys[0], rows)
            return _Curve(columns, first, last, np.zeros(0), np.zeros((0, len(values))), values)
        at: list[int] = []
        changes: list[Array] = []
        for key in keys:
            frame = 0 if key.frame is None else key.frame
            if frame >= len(q):
                raise InputError("frame of a key", value=frame, expected=f"0 to {len(q) - 1}")
            own = no_change(skeleton) if layer.relative else q[frame]
            values = _with_values(skeleton, own, key, rows)
            changes.append(values if layer.relative else change_between(skeleton, own, values))
            at.append(frame)
        if layer.frames is None and keys[0].frame is not None:
            first, last = at[0], at[-1]
        return _Curve(columns, first, last, np.array(at, np.float64), np.array(changes))


def changed_rows(skeleton: Skeleton, change: Array) -> tuple[int, ...]:
    """Return the rows of the joints that changes of joint values, (n, nq), affect."""
    off = (change != no_change(skeleton)).any(axis=0)
    return tuple(row for row in range(len(skeleton)) if off[skeleton.q_slice(row)].any())


def with_changes(
    skeleton: Skeleton, below: Array, change: Array, moved: Sequence[int]
) -> tuple[Array, tuple[int, ...]]:
    """Return joint values with changes applied, (n, nq), and the rows of joints that miss their wanted values.

    A joint misses its value if the value is outside its limits or would open a loop.

    Args:
        skeleton: The skeleton.
        below: Joint values before the changes, (n, nq); frames without a change keep every bit.
        change: The changes, (n, nq).
        moved: Rows of joints with keys in any frame; all others keep their values, even outside limits.
    """
    wanted = changed(skeleton, below, change)
    inside = clamped(skeleton, wanted)
    keyed = columns_of(skeleton, moved)
    out = np.where(keyed, inside, wanted)
    out = np.where((change == no_change(skeleton)).all(axis=1)[:, None], below, out)
    if skeleton.mechanism is not None:
        out = np.where((out != below).any(axis=1)[:, None], skeleton.mechanism.shut_clip(out, moved, below), below)
        inside = np.where(keyed, out, inside)
    far = np.abs(inside - wanted).max(axis=0) > _CUT
    return out, tuple(row for row in moved if far[skeleton.q_slice(row)].any())


def columns_of(skeleton: Skeleton, rows: Sequence[int]) -> Bools:
    """Return a mask, (nq,), of the joint values of the joints ``rows``."""
    out = np.zeros(skeleton.nq, bool)
    for row in rows:
        out[skeleton.q_slice(row)] = True
    return out


def _groups(skeleton: Skeleton, keys: Sequence[Key]) -> list[tuple[list[int], tuple[int, ...]]]:
    """Return groups of joints with the same keys: for each group the rows of its joints and the indices of its keys."""
    by_row: dict[int, list[int]] = {}
    for k, key in enumerate(keys):
        for row in skeleton.by_row(key.values, "pose"):
            by_row.setdefault(row, []).append(k)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, own in by_row.items():
        groups.setdefault(tuple(own), []).append(row)
    return [(rows, own) for own, rows in groups.items()]


def _with_values(skeleton: Skeleton, q: Array, key: Key, rows: Sequence[int]) -> Array:
    """Return a copy of joint values q in which the joints ``rows`` have the values of a key.

    Raises:
        InputError: If a value has the wrong size for its joint, or a quaternion does not have length 1.
    """
    out = q.copy()
    for row, value in skeleton.by_row(key.values, "pose").items():
        if row not in rows:
            continue
        at = skeleton.q_slice(row)
        name = f"value of joint {skeleton.joint_keys[row]!r}"
        if (at.stop - at.start, len(value)) == (7, 4):  # 4 numbers set the rotation of a free joint; its position stays
            at = slice(at.stop - 4, at.stop)
        if at.stop - at.start != len(value):
            raise InputError(name, value=value.tolist(), expected=f"{at.stop - at.start} numbers")
        out[at] = value
        if len(value) >= 4:
            length = float(np.linalg.norm(value[-4:]))
            if not abs(length - 1.0) <= UNIT_SLACK:
                raise InputError(name, value=value[-4:].tolist(), expected="a unit quaternion x, y, z, w")
            if abs(length - 1.0) > _ROUNDING:
                out[at.stop - 4 : at.stop] = value[-4:] / length
    return out
