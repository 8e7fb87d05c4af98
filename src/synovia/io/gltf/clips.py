"""From nodes and tracks to a skeleton and its motions."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final

import numpy as np

from synovia.io.gltf.animation import Animation
from synovia.io.gltf.container import Document
from synovia.io.gltf.scene import Rest, Scene
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array, quat_to_matrix, rigid, same_side
from synovia.model.motion import Motion

# Of the skeleton's size. Exporters bake translations of every bone, off by up to 3e-5 where scale is animated too; a
# joint that is free for that reason would be lost to inverse kinematics.
TRANSLATES: Final = 1e-4
TURNS: Final = 1e-6  # change of a quaternion above the rounding of float32
STRETCHES: Final = 1e-5  # relative change of a scale above what exporters' matrix decompositions leave behind
_RATES: Final = (30.0, 24.0, 25.0, 60.0, 50.0, 48.0, 120.0, 100.0, 90.0, 72.0)
_ON_GRID: Final = 0.01  # frames that a key may be off a grid: float32 times after minutes


class Clips:
    """A file's skeleton and motions.

    Args:
        document: The file, for its name and its memory budget.
        scene: The nodes.
        animations: The clips.
    """

    def __init__(self, document: Document, scene: Scene, animations: list[Animation]) -> None:
        """Keep the parts; nothing is sampled before ``motions``."""
        self._document = document
        self._scene = scene
        self._animations = animations
        self._rest = Rest(scene)

    @cached_property
    def skeleton(self) -> Skeleton:
        """The joints, in the order of the scene's rows."""
        scene, rest = self._scene, self._rest
        quats = np.array([rest.conjugated(row, scene.rotation[row]) for row in range(len(scene.names))])
        matrices = quat_to_matrix(quats)
        joints = [
            Joint(name=name, parent=parent if parent >= 0 else None, kind=kind, rest=rigid(offset, matrix))
            for name, parent, kind, offset, matrix in zip(
                scene.names, scene.parents, self._kinds(), rest.offset, matrices, strict=True
            )
        ]
        name, notes = self._document.path.name, scene.notes
        return Skeleton(joints, name=name, meters_per_unit=1.0, up="y", forward="z", notes=notes)

    def _kinds(self) -> list[Kind]:
        """Return how each joint moves: as the file's role for it and all its clips demand."""
        scene, rest = self._scene, self._rest
        turns, slides = np.zeros(len(scene.names), bool), np.zeros(len(scene.names), bool)
        scales = np.zeros(len(scene.names), bool)
        limit = TRANSLATES * rest.size
        for animation in self._animations:
            for (row, path), track in animation.tracks.items():
                if path == "translation":
                    moved = track.change(scene.translation[row]) @ rest.linear[row].T
                    slides[row] |= bool(np.any(np.linalg.norm(moved, axis=1) > limit))
                elif path == "rotation":
                    turns[row] |= bool(np.any(np.abs(track.change(scene.rotation[row])) > TURNS))
                else:
                    change = _ratio(track.change(scene.scale[row]), scene.scale[row])
                    scales[row] |= bool(np.any(np.abs(change) > STRETCHES))
        if rest.squeezed:
            slides |= self._driven(turns, scales)
        kinds: list[Kind] = []
        for row, moving in enumerate(scene.moving):
            kinds.append(Kind.FREE if slides[row] else Kind.BALL if moving or turns[row] else Kind.FIXED)
        return kinds

    def _driven(self, turns: Array | np.ndarray, scales: Array | np.ndarray) -> np.ndarray:
        """Return which joints' offsets change because a node above turns below a scale that is not uniform.

        Such offsets are R_parentᵀ M_parent t: the linear part M of the node's matrix depends on the rotations below the
        uneven scale, and on animated scale, which has no place in ``stretch`` of such a file.
        """
        scene, rest = self._scene, self._rest
        varies = np.zeros(len(scene.names), bool)
        driven = np.zeros(len(scene.names), bool)
        for row, parent in enumerate(scene.parents):
            driven[row] = parent >= 0 and varies[parent] and bool(np.any(scene.translation[row]))
            varies[row] = (parent >= 0 and varies[parent]) or scales[row] or (rest.sheared[row] and turns[row])
        return driven

    def motions(self) -> list[Motion]:
        """Return every clip, sampled at the rate of its own keys."""
        return [self._motion(animation) for animation in self._animations]

    def _motion(self, animation: Animation) -> Motion:
        """Sample one clip."""
        skeleton, rest = self.skeleton, self._rest
        starts, rate, count = _rate(animation)
        numbers = skeleton.nq + (36 if rest.squeezed else 12) * len(skeleton)  # with what is made on the way
        self._document.spend(count * numbers, animation.place)
        times = _times(starts, rate, count)
        local = {key: track.sample(times) for key, track in animation.tracks.items()}
        q = np.tile(skeleton.rest_q, (len(times), 1))
        moved = self._exact_moves(local, len(times)) if rest.squeezed else self._moves(local)
        for row, joint in enumerate(skeleton.joints):
            place = skeleton.q_slice(row)
            if joint.kind is Kind.FREE and row in moved:
                q[:, place.start : place.start + 3] = moved[row] @ joint.rest[:3, :3]
            if joint.kind in (Kind.BALL, Kind.FREE) and (row, "rotation") in local:
                turned = rest.conjugated(row, local[row, "rotation"])
                at_rest = rest.conjugated(row, self._scene.rotation[row])
                q[:, place.stop - 4 : place.stop] = _relative(at_rest, turned)
        stretch = None if rest.squeezed else self._stretch(local, len(times))
        return Motion(skeleton, q, rate, name=animation.name, stretch=stretch)

    def _moves(self, local: dict[tuple[int, str], Array]) -> dict[int, Array]:
        """Return the changes of offset, (T, 3), by row: those of the translations, scaled and mirrored as at rest."""
        scene, rest = self._scene, self._rest
        return {
            row: (values - scene.translation[row]) * (rest.uniform[row] * rest.signs[row])
            for (row, path), values in local.items()
            if path == "translation"
        }

    def _exact_moves(self, local: dict[tuple[int, str], Array], count: int) -> dict[int, Array]:
        """Return the changes of offset, (T, 3), from the nodes' matrices with their scales at every frame."""
        scene, rest = self._scene, self._rest
        out: dict[int, Array] = {}
        below: dict[int, tuple[Array, Array]] = {-1: (np.eye(3)[None], np.eye(3)[None])}
        for row, parent in enumerate(scene.parents):
            linear, frame = below[parent]
            step = np.swapaxes(frame, 1, 2) @ (
                linear @ _over_time(local, row, "translation", scene.translation)[..., None]
            )
            out[row] = np.broadcast_to(step[..., 0] - rest.offset[row], (count, 3))
            turn = quat_to_matrix(_over_time(local, row, "rotation", scene.rotation))
            scale = _over_time(local, row, "scale", scene.scale)
            signs = rest.signs[row]
            below[row] = (linear @ (turn * scale[:, None, :]), frame @ (signs[:, None] * turn * signs))
        return out

    def _stretch(self, local: dict[tuple[int, str], Array], count: int) -> Array | None:
        """Return each node's scale relative to rest, (T, n, 3), None where it is 1 throughout."""
        scales = {row: values for (row, path), values in local.items() if path == "scale"}
        out = np.ones((count, len(self._scene.names), 3))
        for row, values in scales.items():
            out[:, row] += _ratio(values - self._scene.scale[row], self._scene.scale[row])
        return out if np.any(np.abs(out - 1.0) > STRETCHES) else None


def _over_time(local: dict[tuple[int, str], Array], row: int, path: str, rest: Array) -> Array:
    """Return a node's property, (T, width), or (1, width) at rest where the clip does not animate it."""
    values = local.get((row, path))
    return rest[row : row + 1] if values is None else values


def _ratio(change: Array, scale: Array) -> Array:
    """Return changes relative to a scale; where that is 0, a leaf's own scale or nothing."""
    return change / np.where(scale == 0.0, 1.0, scale)


def _relative(rest: Array, quat: Array) -> Array:
    """Return rest⁻¹ · quat (T, 4), each on the side of its predecessor so that the values do not jump."""
    x, y, z, w = -rest[0], -rest[1], -rest[2], rest[3]
    product = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    out = same_side(quat @ product.T)
    return -out if out[0, 3] < 0.0 else out


def _rate(animation: Animation) -> tuple[Array, float, int]:
    """Return a clip's key times (each once), its frames per second and its number of frames.

    The rate is the first common one that has all keys on its frames, else that of the closest keys, else 30, a little
    raised so that the last key is on a frame.
    """
    inputs = {id(track.times): track.times for track in animation.tracks.values()}
    if not inputs:
        return np.zeros(1), 30.0, 1
    keys = np.unique(np.concatenate(list(inputs.values())))
    length = float(keys[-1] - keys[0])
    if not length > 0.0:
        return keys[:1], 30.0, 1
    own = 1.0 / float(np.diff(keys).min())
    own = round(length * own) / length
    for rate in (*_RATES, *((own,) if 10.0 <= own <= 250.0 else ())):
        phase = (keys - keys[0]) * rate
        if round(phase[-1]) > 0 and np.abs(phase - np.rint(phase)).max() <= _ON_GRID:
            return keys, rate, round(phase[-1]) + 1
    count = max(math.ceil(length * 30.0 - _ON_GRID), 1)
    return keys, count / length, count + 1


def _times(keys: Array, rate: float, count: int) -> Array:
    """Return each frame's time; where a key lies on a frame, the key's own, so that steps fall on the right side."""
    times = keys[0] + np.arange(count, dtype=np.float64) / rate
    phase = (keys - keys[0]) * rate
    nearest = np.rint(phase)
    on = np.abs(phase - nearest) <= _ON_GRID
    times[np.minimum(nearest[on].astype(np.int64), count - 1)] = keys[on]
    return times
