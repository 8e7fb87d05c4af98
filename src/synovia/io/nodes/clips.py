"""Convert nodes and animation tracks to a skeleton and its motions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import numpy as np

from synovia.io.base import FLOAT_ROUNDING, SAME
from synovia.io.nodes.tree import Rest, Scene, node_places, over_time
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array, quat_to_matrix, rigid, same_side
from synovia.model.motion import Motion
from synovia.model.rates import Rate, usual_rate
from synovia.text import listed

# Fraction of the skeleton's size: a larger translation makes a joint free. Exporters bake a translation for every bone,
# with errors up to 3e-5 if scale is animated too. Such noise must not make joints free, as inverse kinematics skips
# free joints.
TRANSLATES: Final = 1e-4
TURNS: Final = 1e-6  # smallest change of a quaternion that counts as a rotation, larger than the rounding of float32
STRETCHES: Final = 1e-5  # smallest relative change of scale that counts, larger than errors of exporters
_UNEVEN: Final = (
    "The scale of {names} is not uniform. Other programs change the lengths of bones below as they rotate; here bones"
    " are rigid. Saved clips and poses move the {count} affected {joints} to their positions here. Meshes below are"
    " sheared."
)
_SMALL: Final = (
    "Small keyed translations or scales were dropped as rounding errors: {names} differ from the file by up to"
    " {far:.2g} m."
)
_SCALED: Final = (
    "The scale of {names} is animated. positions() and saved files include it. Poses, solvers and pictures have rigid"
    " bones: their joints differ by up to {far:.2g} m."
)
_RATES: Final = (30.0, 24.0, 25.0, 60.0, 50.0, 48.0, 120.0, 100.0, 90.0, 72.0)
_ON_GRID: Final = 0.01  # frames: keys this close to a frame count as on it; float32 times of long clips are inexact


class Track(Protocol):
    """One animated property of one node."""

    @property
    def times(self) -> Array:
        """Key times, (k,), seconds, never decreasing."""
        ...

    def sample(self, times: Array) -> Array:
        """Return the values at times, (T, width)."""
        ...

    def change(self, rest: Array) -> Array:
        """Return differences from rest, (m, width); if all are small, the track stays near rest."""
        ...


class Animation(Protocol):
    """One clip."""

    @property
    def name(self) -> str:
        """Name of the clip."""
        ...

    @property
    def tracks(self) -> Mapping[tuple[int, str], Track]:
        """Tracks by joint row and property: ``translation``, ``rotation`` or ``scale``."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences about parts of the clip that were not kept."""
        ...

    @property
    def written(self) -> int:
        """Number that rises with each clip that Synovia wrote into the file; 0 for other clips."""
        ...

    @property
    def frames(self) -> tuple[float, int] | None:
        """Frames per second and number of frames, from time 0; None for tracks with keys at any times."""
        ...


_Clip = TypeVar("_Clip", bound=Animation)


class Clips(Generic[_Clip]):
    """The skeleton and the motions of a file.

    Args:
        path: The file.
        scene: Nodes of the file.
        animations: The clips.
        spend: Called with the number of values that a clip needs, and the clip; raises an error for too many values.
    """

    def __init__(
        self, path: Path, scene: Scene, animations: Sequence[_Clip], spend: Callable[[int, _Clip], None]
    ) -> None:
        """Store the arguments; ``motions`` samples the animations."""
        self._path = path
        self._scene = scene
        self._animations = animations
        self._spend = spend
        self._rest = Rest(scene)

    @cached_property
    def skeleton(self) -> Skeleton:
        """The joints, in the order of the scene's rows."""
        scene, rest = self._scene, self._rest
        kinds = self._kinds()
        quats = np.array([rest.conjugated(row, scene.rotation[row]) for row in range(len(scene.names))])
        matrices = quat_to_matrix(quats)
        joints = [
            Joint(
                name=name,
                parent=parent if parent >= 0 else None,
                kind=kind,
                rest=rigid(offset, matrix),
                role=scene.roles.get(row),
                bind=bind if np.isfinite(bind).all() else None,
            )
            for row, (name, parent, kind, offset, matrix, bind) in enumerate(
                zip(scene.names, scene.parents, kinds, rest.offset, matrices, scene.bind, strict=True)
            )
        ]
        path, notes = self._path, (*scene.notes, *self._uneven_notes(kinds))
        forward = scene.forward or "z"
        return Skeleton(joints, name=path.name, meters_per_unit=1.0, up="y", forward=forward, notes=notes, source=path)

    def _kinds(self) -> list[Kind]:
        """Return the kind of each joint, from its role in the file and from all clips."""
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
        if rest.sheared.any():
            slides |= self._pose_dependent(turns, scales)
        kinds: list[Kind] = []
        for row, moving in enumerate(scene.moving):
            kinds.append(Kind.FREE if slides[row] else Kind.BALL if moving or turns[row] else Kind.FIXED)
        return kinds

    def _uneven_notes(self, kinds: list[Kind]) -> list[str]:
        """Return a sentence about nonuniform scale above rotating joints, which rigid bones cannot represent."""
        scene, rest = self._scene, self._rest
        if not rest.sheared.any():
            return []
        turns = np.array([kind in (Kind.BALL, Kind.FREE) for kind in kinds])
        count = int(self._pose_dependent(turns, np.zeros(len(kinds), bool)).sum())
        if not count:
            return []
        names = [name for name, uneven in zip(scene.names, rest.uneven, strict=True) if uneven]
        return [_UNEVEN.format(names=listed(names), count=count, joints="joint" if count == 1 else "joints")]

    def _pose_dependent(self, turns: Array | np.ndarray, scales: Array | np.ndarray) -> np.ndarray:
        """Return which joints, (n,), have offsets that change because an ancestor rotates below a nonuniform scale.

        Such offsets are R_parentᵀ M_parent t. The linear part M of the node's matrix depends on the rotations below the
        nonuniform scale, and on animated scale, which ``stretch`` cannot express for such a file.
        """
        scene, rest = self._scene, self._rest
        varies = np.zeros(len(scene.names), bool)
        driven = np.zeros(len(scene.names), bool)
        for row, parent in enumerate(scene.parents):
            driven[row] = parent >= 0 and varies[parent] and bool(np.any(scene.translation[row]))
            varies[row] = (parent >= 0 and varies[parent]) or scales[row] or (rest.sheared[row] and turns[row])
        return driven

    @property
    def written(self) -> int | None:
        """Index of the clip that Synovia wrote last; None if other programs wrote all of them."""
        marks = [(clip.written, number) for number, clip in enumerate(self._animations) if clip.written]
        return max(marks)[1] if marks else None

    def motions(self) -> list[Motion]:
        """Return all clips, each sampled at the rate of its keys."""
        return [self._motion(animation) for animation in self._animations]

    def _motion(self, animation: _Clip) -> Motion:
        """Sample one clip at a constant frame rate, and return its motion."""
        skeleton, rest = self.skeleton, self._rest
        sheared = bool(rest.sheared.any())
        starts, rate, count, said = _rate(animation)
        numbers = skeleton.nq + (36 if sheared else 12) * len(skeleton)  # values per frame, temporary arrays included
        self._spend(count * numbers, animation)
        times = _times(starts, rate, count)
        local = {key: track.sample(times) for key, track in animation.tracks.items()}
        q = np.tile(skeleton.rest_q, (len(times), 1))
        moved, far = self._exact_moves(local, len(times)) if sheared else (self._moves(local), None)
        for row, joint in enumerate(skeleton.joints):
            place = skeleton.q_slice(row)
            if joint.kind is Kind.FREE and row in moved:
                q[:, place.start : place.start + 3] = moved[row] @ joint.rest[:3, :3]
            if joint.kind in (Kind.BALL, Kind.FREE) and (row, "rotation") in local:
                turned = rest.conjugated(row, local[row, "rotation"])
                at_rest = rest.conjugated(row, self._scene.rotation[row])
                q[:, place.stop - 4 : place.stop] = _relative(at_rest, turned)
        stretch = None if sheared else self._stretch(local, len(times))
        if far is None:
            far = self._dropped(local, len(times), scaled=stretch is not None)
        notes = [*animation.notes, *self._far_notes(far), *self._scale_notes(local, len(times), stretch), *said.notes]
        return Motion(skeleton, q, said.fps, name=animation.name, stretch=stretch, notes=notes)

    def _dropped(self, local: dict[tuple[int, str], Array], count: int, *, scaled: bool) -> Array | None:
        """Return each joint's largest distance from its position in the file, (n,), due to dropped tracks.

        None if all tracks were kept.
        """
        scene = self._scene
        rest = {"translation": scene.translation, "rotation": scene.rotation, "scale": scene.scale}
        kept = {
            (row, path): values
            for (row, path), values in local.items()
            if (scaled if path == "scale" else self._keeps(row, path))
        }
        if all(key in kept or np.array_equal(values, rest[key[1]][[key[0]] * count]) for key, values in local.items()):
            return None
        off = node_places(scene, local, count) - node_places(scene, kept, count)
        return np.linalg.norm(off, axis=-1).max(axis=0)

    def _keeps(self, row: int, path: str) -> bool:
        """Return whether a joint can represent translations, or rotations, of its node."""
        kind = self.skeleton.joints[row].kind
        return kind is Kind.FREE or (kind is Kind.BALL and path == "rotation")

    def _far_notes(self, far: Array | None) -> list[str]:
        """Return a sentence about joints whose positions differ from the file; an empty list if there are none."""
        if far is None:
            return []
        size = self._rest.size
        off = np.flatnonzero(far > SAME * size + FLOAT_ROUNDING * float(np.abs(self._scene.translation).max()))
        if not len(off):
            return []
        names = listed([self._scene.names[row] for row in off])
        return [_SMALL.format(names=names, far=far.max())]

    def _scale_notes(self, local: dict[tuple[int, str], Array], count: int, stretch: Array | None) -> list[str]:
        """Return a sentence about animated scale, with the error of positions that rigid bones cause."""
        scene = self._scene
        rows = sorted(
            row
            for (row, path), values in local.items()
            if path == "scale" and np.any(np.abs(_ratio(values - scene.scale[row], scene.scale[row])) > STRETCHES)
        )
        if not rows:
            return []
        names = listed([scene.names[row] for row in rows])
        if stretch is None:
            return [] if not self._rest.sheared.any() else [
                f"The animated scale of {names} is kept only in joint positions: it does not scale meshes."
            ]  # fmt: skip
        bones = {(row, path): values for (row, path), values in local.items() if path != "scale"}
        off = node_places(scene, local, count) - node_places(scene, bones, count)
        far = float(np.linalg.norm(off, axis=-1).max())
        if far <= SAME * self._rest.size:
            return [f"The animated scale of {names} moves no joint. It is in saved files, and pictures do not show it."]
        return [_SCALED.format(names=names, far=far)]

    def _moves(self, local: dict[tuple[int, str], Array]) -> dict[int, Array]:
        """Return offset changes by row, (T, 3): the node's changes of translation, scaled and mirrored as at rest."""
        scene, rest = self._scene, self._rest
        return {
            row: (values - scene.translation[row]) * (rest.uniform[row] * rest.signs[row])
            for (row, path), values in local.items()
            if path == "translation"
        }

    def _exact_moves(self, local: dict[tuple[int, str], Array], count: int) -> tuple[dict[int, Array], Array]:
        """Return offset changes by row, (T, 3), from the matrices of the nodes in each frame.

        The second result is the distance of each joint from its position in the file, (n,). It is not 0 if the joint or
        an ancestor cannot represent its change.
        """
        scene, rest = self._scene, self._rest
        out: dict[int, Array] = {}
        off = np.zeros((len(scene.names), count, 3))
        below: dict[int, tuple[Array, Array]] = {-1: (np.eye(3)[None], np.eye(3)[None])}
        for row, parent in enumerate(scene.parents):
            linear, frame = below[parent]
            off[row] = off[parent] if parent >= 0 else 0.0
            step = np.swapaxes(frame, 1, 2) @ (
                linear @ over_time(local, row, "translation", scene.translation)[..., None]
            )
            out[row] = np.broadcast_to(step[..., 0] - rest.offset[row], (count, 3))
            if not self._keeps(row, "translation"):
                off[row] += (frame @ out[row][..., None])[..., 0]
            turn = quat_to_matrix(over_time(local, row, "rotation", scene.rotation))
            scale = over_time(local, row, "scale", scene.scale)
            signs = rest.signs[row]
            own = turn if self._keeps(row, "rotation") else quat_to_matrix(scene.rotation[row])
            below[row] = (linear @ (turn * scale[:, None, :]), frame @ (signs[:, None] * own * signs))
        return out, np.linalg.norm(off, axis=-1).max(axis=1)

    def _stretch(self, local: dict[tuple[int, str], Array], count: int) -> Array | None:
        """Return each node's scale relative to rest, (T, n, 3); None if all these scales are always 1."""
        scales = {row: values for (row, path), values in local.items() if path == "scale"}
        out = np.ones((count, len(self._scene.names), 3))
        for row, values in scales.items():
            out[:, row] += _ratio(values - self._scene.scale[row], self._scene.scale[row])
        return out if np.any(np.abs(out - 1.0) > STRETCHES) else None


def _ratio(change: Array, scale: Array) -> Array:
    """Return changes divided by a scale, or unchanged where the scale is 0."""
    return change / np.where(scale == 0.0, 1.0, scale)


def _relative(rest: Array, quat: Array) -> Array:
    """Return rest⁻¹ · quat (T, 4), each with the sign nearest to its predecessor, so that values do not jump."""
    x, y, z, w = -rest[0], -rest[1], -rest[2], rest[3]
    product = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    out = same_side(quat @ product.T)
    return -out if out[0, 3] < 0.0 else out


def _rate(animation: Animation) -> tuple[Array, float, int, Rate]:
    """Return the distinct key times of a clip, its frames per second, its number of frames, and the rate of its motion.

    A clip that Synovia wrote has a key in each frame. Any other clip gets the first common rate that puts every key on
    a frame. If there is none, the rate of the closest keys is tried. If that does not fit either, the rate is 30,
    changed slightly so that the last key is on a frame. Rounded usual rates are corrected.
    """
    if animation.frames is not None:
        rate, count = animation.frames
        return np.arange(count) / rate, rate, count, usual_rate(rate)
    inputs = {id(track.times): track.times for track in animation.tracks.values()}
    if not inputs:
        return np.zeros(1), 30.0, 1, Rate(30.0)
    keys = np.unique(np.concatenate(list(inputs.values())))
    length = float(keys[-1] - keys[0])
    if not length > 0.0:
        return keys[:1], 30.0, 1, Rate(30.0)
    slack = 2.0 * FLOAT_ROUNDING * float(np.abs(keys).max()) / length
    if animation.written and all(len(times) in (1, len(keys)) for times in inputs.values()):
        own = (len(keys) - 1) / length
        if np.abs((keys - keys[0]) * own - np.arange(len(keys))).max() <= _ON_GRID:
            plain = (rate for rate in (*_RATES, float(f"{own:.6g}")) if abs(rate / own - 1.0) <= slack)
            rate = next(plain, own)
            return keys, rate, len(keys), usual_rate(rate, slack)
    own = 1.0 / float(np.diff(keys).min())
    own = round(length * own) / length
    for rate in (*_RATES, *((own,) if 10.0 <= own <= 250.0 else ())):
        phase = (keys - keys[0]) * rate
        if round(phase[-1]) > 0 and np.abs(phase - np.rint(phase)).max() <= _ON_GRID:
            return keys, rate, round(phase[-1]) + 1, usual_rate(rate, slack)
    count = max(math.ceil(length * 30.0 - _ON_GRID), 1)
    return keys, count / length, count + 1, Rate(count / length)


def _times(keys: Array, rate: float, count: int) -> Array:
    """Return the time of each frame; the exact key time if a key is on the frame, so that STEP keys apply there."""
    times = keys[0] + np.arange(count, dtype=np.float64) / rate
    phase = (keys - keys[0]) * rate
    nearest = np.rint(phase)
    on = np.abs(phase - nearest) <= _ON_GRID
    times[np.minimum(nearest[on].astype(np.int64), count - 1)] = keys[on]
    return times
