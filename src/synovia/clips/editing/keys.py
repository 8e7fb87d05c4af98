"""Keys of a layer: values of joints at some frames, and what they change in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.layers import Key, Layer
from synovia.model import Skeleton
from synovia.model.change import blend, change_between, no_change, smooth
from synovia.model.geometry import UNIT_SLACK, Array

Bools = NDArray[np.bool_]


def key_changes(skeleton: Skeleton, layer: Layer, q: Array, frames: Array, below: Array) -> Array:
    """Return what the keys of a layer change, (n, nq), at frames of a clip, which may lie between whole ones.

    Args:
        skeleton: The skeleton.
        layer: The layer.
        q: Joint values of the clip, (T, nq).
        frames: The frames, (n,).
        below: Joint values of the clip there, (n, nq).
    """
    out = np.tile(no_change(skeleton), (len(frames), 1))
    still = no_change(skeleton)
    for rows, keys in _groups(skeleton, layer.keys).items():
        if keys[0].frame is None:
            part = _held(skeleton, layer, keys[0], rows, below)
            first, last = layer.bounds(len(q))
        else:
            at = np.array([key.frame for key in keys], np.float64)
            changes = np.array([_change_at(skeleton, layer, key, rows, q) for key in keys])
            first, last = layer.frames or (int(at[0]), int(at[-1]))
            after = np.clip(np.searchsorted(at, frames, side="right"), 1, max(len(at) - 1, 1))
            if len(at) == 1:
                part = np.repeat(changes, len(frames), axis=0)
            else:
                share = np.clip((frames - at[after - 1]) / (at[after] - at[after - 1]), 0.0, 1.0)
                part = blend(skeleton, changes[after - 1], changes[after], np.asarray(smooth(share)), follow=False)
        away = np.maximum(np.maximum(first - frames, frames - last), 0.0)
        fade = np.where(away > 0.0, 0.0, 1.0)
        if layer.blend:
            fade = np.asarray(smooth(np.clip(1.0 - away / layer.blend, 0.0, 1.0)), np.float64)
        part = blend(skeleton, np.broadcast_to(still, part.shape), part, layer.weight * fade, follow=False)
        columns = columns_of(skeleton, rows)
        out[:, columns] = part[:, columns]
    return out


def _groups(skeleton: Skeleton, keys: Sequence[Key]) -> dict[tuple[int, ...], list[Key]]:
    """Return the keys of joints, by rows of joints that have the same keys."""
    by_row: dict[int, list[int]] = {}
    for k, key in enumerate(keys):
        for row in skeleton.by_row(key.values, "pose"):
            by_row.setdefault(row, []).append(k)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, own in by_row.items():
        groups.setdefault(tuple(own), []).append(row)
    return {tuple(rows): [keys[k] for k in own] for own, rows in groups.items()}


def _change_at(skeleton: Skeleton, layer: Layer, key: Key, rows: Sequence[int], q: Array) -> Array:
    """Return the change of some joints at a key, (nq,)."""
    own = q[key.frame if key.frame is not None else 0]
    values = _with_values(skeleton, no_change(skeleton) if layer.relative else own, key, rows)
    return values if layer.relative else change_between(skeleton, own, values)


def _held(skeleton: Skeleton, layer: Layer, key: Key, rows: Sequence[int], below: Array) -> Array:
    """Return the change that holds values of some joints in all frames, (n, nq)."""
    if layer.relative:
        return np.tile(_with_values(skeleton, no_change(skeleton), key, rows), (len(below), 1))
    columns = columns_of(skeleton, rows)
    values = below.copy()
    values[:, columns] = _with_values(skeleton, below[0], key, rows)[columns]
    return change_between(skeleton, below, values)


def _with_values(skeleton: Skeleton, q: Array, key: Key, rows: Sequence[int]) -> Array:
    """Return joint values with those of a key for some joints.

    Raises:
        InputError: If a value has another size than its joint's, or a quaternion has no direction.
    """
    out = q.copy()
    for row, value in skeleton.by_row(key.values, "pose").items():
        if row not in rows:
            continue
        at = skeleton.q_slice(row)
        if at.stop - at.start != len(value):
            name = skeleton.joint_keys[row]
            expected = f"{at.stop - at.start} numbers"
            raise InputError(f"value of joint {name!r}", value=value.tolist(), expected=expected)
        out[at] = value
        if len(value) >= 4:
            length = float(np.linalg.norm(value[-4:]))
            if not abs(length - 1.0) <= UNIT_SLACK:
                name = skeleton.joint_keys[row]
                raise InputError(f"value of joint {name!r}", value=value[-4:].tolist(), expected="a unit quaternion")
            if abs(length - 1.0) > 1e-15:
                out[at.stop - 4 : at.stop] = value[-4:] / length
    return out


def columns_of(skeleton: Skeleton, rows: Sequence[int]) -> Bools:
    """Return which joint values belong to some joints, (nq,)."""
    out = np.zeros(skeleton.nq, bool)
    for row in rows:
        out[skeleton.q_slice(row)] = True
    return out
