"""Read animations: tracks of nodes, and their values at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.io.gltf.accessors import read_accessor
from synovia.io.gltf.container import Document
from synovia.io.gltf.fields import Element
from synovia.model.geometry import Array

Rows = NDArray[np.intp]
_WIDTHS: Final = {"translation": 3, "rotation": 4, "scale": 3}
_OTHERS: Final = {"weights": "morph targets (such as faces)", "pointer": "properties of extensions"}
_NOTED: Final = 3  # notes list at most this number of channels that were not kept
_INTERPOLATIONS: Final = ("STEP", "LINEAR", "CUBICSPLINE")
WRITER: Final = "Synovia"
_MARK: Final = "clip"
_NEAR: Final = 1e-9  # radians between keys; for smaller angles, slerp would divide by an inaccurate sine
_UNIT: Final = 0.1  # tolerance of a quaternion's norm; the norms of 8-bit quaternions are wrong by 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One animated property of one node.

    Args:
        times: Key times, (k,), seconds, never decreasing.
        values: Values at the keys, (k, width); rotations are unit quaternions xyzw.
        interpolation: ``STEP``, ``LINEAR`` or ``CUBICSPLINE``.
        rotation: Whether values are rotations.
        tangents: In and out tangents, (k, 2, width), per second; None unless the track is a spline.
        place: Element of the track in the file, for messages.
    """

    times: Array
    values: Array
    interpolation: str
    rotation: bool
    tangents: Array | None
    place: Element

    def sample(self, times: Array) -> Array:
        """Return the values at times, (T, width); constant before the first key and after the last key."""
        at = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 1)
        after = np.minimum(at + 1, len(self.times) - 1)
        start, end = self.values[at], self.values[after]
        if self.interpolation == "STEP":
            return start
        gap = self.times[after] - self.times[at]
        u = np.clip((times - self.times[at]) / np.where(gap > 0.0, gap, 1.0), 0.0, 1.0)[:, None]
        u[gap <= 0.0] = 0.0  # times after the last key get the last value
        if self.tangents is not None:
            return self._spline(self.tangents, u, gap[:, None], at, after)
        if self.rotation:
            return _slerp(start, end, u)
        return (1.0 - u) * start + u * end

    def _spline(self, tangents: Array, u: Array, gap: Array, at: Rows, after: Rows) -> Array:
        """Return the cubic Hermite spline; tangents are per second, so they are scaled by the gap between the keys."""
        u2, u3 = u * u, u * u * u
        out = (
            (2.0 * u3 - 3.0 * u2 + 1.0) * self.values[at]
            + gap * (u3 - 2.0 * u2 + u) * tangents[at, 1]
            + (3.0 * u2 - 2.0 * u3) * self.values[after]
            + gap * (u3 - u2) * tangents[after, 0]
        )
        if not self.rotation:
            return out
        length = np.linalg.norm(out, axis=1, keepdims=True)
        if not np.all(length > 1e-6):
            raise self.place.error("spline of rotations passes through zero", expected="rotations at all times")
        return out / length

    def change(self, rest: Array) -> Array:
        """Return the differences of keys from rest, and for a spline also the reach of its tangents, (m, width)."""
        values = self.values
        if self.rotation:
            values = values * np.where(values @ rest < 0.0, -1.0, 1.0)[:, None]
        out = values - rest
        if self.tangents is None:
            return out
        gaps = np.diff(self.times, prepend=self.times[0], append=self.times[-1])
        reach = self.tangents * np.stack([gaps[:-1], gaps[1:]], axis=1)[:, :, None]
        return np.concatenate([out, reach.reshape(-1, out.shape[1])])


@dataclass(frozen=True, slots=True, eq=False)
class Animation:
    """One clip.

    Args:
        name: Name of the clip; such as ``animation3`` if the file gives none.
        tracks: Tracks by joint row and property.
        place: Element of the clip in the file, for messages.
        notes: Sentences about channels that were not kept.
    """

    name: str
    tracks: dict[tuple[int, str], Track]
    place: Element
    notes: tuple[str, ...] = ()

    @property
    def written(self) -> int:
        """Number that rises with each clip that Synovia wrote into the file (``mark_written``); 0 for other clips."""
        return _mark_of(self.place.data)

    @property
    def frames(self) -> None:
        """Always None, as the format has no frames and its keys may be at any times."""
        return None


def mark_written(animation: dict[str, Any], others: Sequence[dict[str, Any]]) -> None:
    """Mark the JSON of a new animation as the one that Synovia wrote last into a file."""
    animation["extras"] = {"generator": WRITER, _MARK: max(map(_mark_of, others), default=0) + 1}


def _mark_of(animation: dict[str, Any]) -> int:
    """Return the number that ``mark_written`` gave a clip; 1 for a clip of Synovia 0.1, 0 for other programs' clips."""
    extras: Any = animation.get("extras")
    if not isinstance(extras, dict) or cast("dict[str, Any]", extras).get("generator") != WRITER:
        return 0
    number: Any = cast("dict[str, Any]", extras).get(_MARK)
    return number if isinstance(number, int) and number > 0 else 1


def read_animations(document: Document, row_of: dict[int, int]) -> list[Animation]:
    """Return all animations; channels of morph weights, and of nodes that are not joints, only give notes.

    Args:
        document: The file.
        row_of: Joint row by node number.
    """
    shared: dict[tuple[int, int], Array] = {}
    count = len(document.root.list("nodes"))
    out: list[Animation] = []
    for number, element in enumerate(document.root.items("animations")):
        tracks: dict[tuple[int, str], Track] = {}
        others: dict[str, None] = {}  # targets of channels that are not kept
        for channel in element.items("channels"):
            target = channel.child("target")
            if target is None:
                raise channel.error("channel has no target")
            path = target.text("path", "")
            if not target.has("node") or path not in _WIDTHS:
                others[_OTHERS.get(path, f"the property {path!r}")] = None
                continue
            node = target.integer("node", most=max(count - 1, 0))
            row = row_of.get(node, -1)
            if row < 0:
                others[f"node {document.root.item('nodes', node).text('name', '') or node!r}, which is no joint"] = None
                continue
            if (row, path) in tracks:
                raise channel.error(f"second channel for the {path} of the same node")
            last = max(len(element.list("samplers")) - 1, 0)
            sampler = element.item("samplers", channel.integer("sampler", most=last))
            track = tracks[row, path] = _track(document, sampler, path, shared)
            document.spend(track.values.size, channel)  # channels may share an accessor, which is read once
        notes = [f"The animation of {what} was not kept." for what in list(others)[:_NOTED]]
        if len(others) > _NOTED:
            notes.append(f"The animations of {len(others) - _NOTED} further nodes or properties were not kept.")
        out.append(Animation(element.text("name", "") or f"animation{number}", tracks, element, tuple(notes)))
    return out


def _track(document: Document, sampler: Element, path: str, shared: dict[tuple[int, int], Array]) -> Track:
    """Return the track of one sampler."""

    def read(key: str, width: int) -> Array:
        place = sampler.integer(key), width
        if place not in shared:  # often, hundreds of samplers share their key times
            shared[place] = read_accessor(document, sampler, key, width, unit=width == 4)
        return shared[place]

    kind = sampler.text("interpolation", "LINEAR")
    if kind not in _INTERPOLATIONS:
        raise sampler.error("unknown interpolation", "interpolation", value=kind, expected=", ".join(_INTERPOLATIONS))
    times = read("input", 1)[:, 0]
    if times[0] < 0.0 or np.any(np.diff(times) < 0.0):
        raise sampler.error("key times are negative or go backwards", "input")
    values = read("output", _WIDTHS[path])
    keys = len(times) * (3 if kind == "CUBICSPLINE" else 1)
    if len(values) != keys:
        raise sampler.error("output does not match the key times", "output", value=len(values), expected=f"{keys}")
    tangents = None
    if kind == "CUBICSPLINE":
        triples = values.reshape(len(times), 3, -1)
        values, tangents = triples[:, 1], triples[:, ::2]
    if path == "rotation":
        length = np.linalg.norm(values, axis=1, keepdims=True)
        wrong = np.abs(length[:, 0] - 1.0) > _UNIT
        if wrong.any():
            key = int(np.flatnonzero(wrong)[0])
            raise sampler.error(
                f"key {key} is not a unit quaternion", "output", value=values[key].tolist(), expected="length 1"
            )
        if tangents is None:
            values = values / length
    return Track(times, values, kind, path == "rotation", tangents, sampler)


def _slerp(start: Array, end: Array, u: Array) -> Array:
    """Return the rotations on the shorter arc between unit quaternions, at constant speed.

    References:
        glTF 2.0, appendix C.4; Shoemake (1985), *Animating Rotation with Quaternion Curves*.
    """
    dot = np.einsum("ij,ij->i", start, end)[:, None]
    end = np.where(dot < 0.0, -end, end)
    # 2 atan2 is accurate where acos(dot) is not: for a dot product near 1.
    angle = 2.0 * np.arctan2(
        np.linalg.norm(end - start, axis=1, keepdims=True), np.linalg.norm(end + start, axis=1, keepdims=True)
    )
    near = angle < _NEAR
    sine = np.where(near, 1.0, np.sin(angle))
    a = np.where(near, 1.0 - u, np.sin((1.0 - u) * angle) / sine)
    b = np.where(near, u, np.sin(u * angle) / sine)
    out = a * start + b * end
    return out / np.linalg.norm(out, axis=1, keepdims=True)
