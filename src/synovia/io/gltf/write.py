"""Write a motion, as a new clip, or a pose to glTF: into a copy of the file of its skeleton, or into a new file.

If a clip does not key a property, programs such as Blender leave it as the previous clip set it. So a new clip keys all
joints, also those at rest. Each old clip of a copy gets a key at rest for each property that other clips move but it
does not. By the specification this changes nothing: properties without keys are at rest. Blender opens a file with its
first clip, so the new clip is first. Nothing else in the copy changes. Functions that read such a file are also here.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.io.base import Shown, as_path, as_utf8, read_bytes, write_bytes
from synovia.io.gltf.animation import Animation, mark_written, read_animations
from synovia.io.gltf.container import BIN_CHUNK, EXTENSIONS, JSON_CHUNK, MAGIC, Document, looks_like, read_document
from synovia.io.gltf.fresh import Fresh, below_frame
from synovia.io.gltf.scene import read_scene
from synovia.io.gltf.vrm import ENDING, check_name
from synovia.io.nodes.skins import Skin
from synovia.io.nodes.tree import Rest, Scene, node_places, over_time
from synovia.model import Joint, Kind, Pose, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix, rigid, same_side
from synovia.model.motion import Motion
from synovia.text import listed

_FLOAT: Final = 5126
_STILL: Final = 1e-7  # rounding of float32; a property that differs less from rest needs no channel


def write_gltf(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    skin: Skin | None = None,
    force: bool = False,
) -> tuple[str, ...]:
    """Write a motion as a new clip into a copy of its skeleton's glTF or GLB file, or into a new file (``fresh.py``).

    The clip has the local translations and rotations of the nodes in float32, with one key a frame, or a single key if
    the node is at rest. They give every joint its position and rotation in the motion. Below a nonuniform scale, bones
    change their length in other programs; there, keyed translations keep the joints in place. Meshes, materials, other
    clips and unknown parts are copied; other clips get keys at rest, see the docstring of this module. The clip is the
    first of the file, and ``extras`` marks it as written last.

    Args:
        motion: The motion. Its skeleton is that of ``into``, with or without an added free root.
        path: The file to write: JSON for ``.gltf``, else one binary file (GLB).
        into: The file to copy; None, or a file of another format, for a new file with the skeleton and the skin or
            the shapes of the body.
        skin: Skin of a new file, whose joints are in the skeleton.
        force: Whether an existing file may be replaced.

    Returns:
        Sentences about what was not written, and about a unit that was not known.

    Raises:
        FileError: If a file cannot be read or written, or exists and ``force`` is not set.
        FormatError: If ``into`` is not a usable glTF.
        InputError: If the motion has no frames or belongs to another skeleton.
    """
    target = as_path(path)
    if not len(motion):
        raise InputError("motion has no frames", where=str(target), expected="at least one")
    as_utf8(motion.name, str(target))
    source = _copied(into)
    if source is None:
        new = Fresh(motion.skeleton, target.stem, skin)
        clip = NewClip(new.content, motion.name, motion.times, 0, bytes(new.data) + bytes(-len(new.data) % 4))
        for (row, what), values in (_at_rest(new.scene, {}) | node_tracks(motion, new.scene)).items():
            clip.add_track(row, what, values)
        write_new(new.content, bytes(clip.data), target, force=force)
        return new.notes
    document = read_document(source)
    scene = below_frame(read_scene(document), document, motion.skeleton)
    clips = read_animations(document, scene.row_of)
    moved = node_tracks(motion, scene)
    tracks = _at_rest(scene, _moved(clips, scene)) | moved
    content, chunk = _parts(document)
    buffers = document.root.items("buffers")
    binary = target.suffix.lower() != ".gltf"
    if binary and chunk:  # buffer 0 is the chunk, so the clip is appended to the chunk
        clip = NewClip(content, motion.name, motion.times, 0, chunk + bytes(-len(chunk) % 4))
    else:
        clip = NewClip(content, motion.name, motion.times, len(buffers))
    nodes = {row: node for node, row in scene.row_of.items()}
    for (row, what), values in tracks.items():
        node = nodes[row]
        if (row, what) not in moved and "matrix" in content["nodes"][node]:  # no clip can move such a node
            continue
        _as_parts(content["nodes"][node], scene, row)
        clip.add_track(node, what, values)
    everywhere = _moved(clips, scene) | dict.fromkeys(moved)
    for animation, other in zip(content["animations"][1:], clips, strict=True):
        start = min((float(track.times[0]) for track in other.tracks.values()), default=0.0)
        for row, what in everywhere if other.tracks else ():
            if (row, what) not in other.tracks:
                clip.add_rest(animation, start, nodes[row], what, rest_of(scene, row, what))
    if binary and chunk:
        content["buffers"][0]["byteLength"] = len(clip.data)
        chunk = bytes(clip.data)
    else:
        content.setdefault("buffers", []).append({"byteLength": len(clip.data), "uri": _data_uri(clip.data)})
    _write(content, chunk, source, target, force=force)
    return ()


def check_gltf(target: Path, into: Path | None) -> None:
    """Check, before any work, that a file name suits a copy; ``write_gltf`` checks this when it writes.

    Raises:
        FileError: If the file to copy cannot be read.
        FormatError: If the name ends in ``.vrm`` and the copy would not be a VRM.
    """
    if target.suffix.lower() != ENDING:
        return
    source = _copied(into)
    extensions = None if source is None else read_document(source).root.child("extensions")
    check_name(target, () if extensions is None else extensions.data)


def _copied(into: str | os.PathLike[str] | None) -> Path | None:
    """Return the file to copy; None for a file of another format, whose body goes into a new file.

    Raises:
        FileError: If a file without the ending of the format does not exist.
    """
    if into is None:
        return None
    path = as_path(into)
    return path if path.suffix.lower() in EXTENSIONS or looks_like(read_bytes(path)[:4096]) else None


def write_new(content: dict[str, Any], chunk: bytes, target: Path, *, force: bool) -> None:
    """Write a new file with one buffer."""
    content["buffers"] = [{"byteLength": len(chunk)}]
    _write(content, chunk, target, target, force=force)


def write_gltf_pose(
    pose: Pose,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    skin: Skin | None = None,
    force: bool = False,
) -> tuple[str, ...]:
    """Write a pose, as transforms of nodes, into a copy of its skeleton's glTF or GLB, or a new file (``fresh.py``).

    The clips of the file stay unchanged; programs that play no clip show the pose.

    Args:
        pose: The pose. Its skeleton is that of ``into``, with or without an added free root.
        path: The file to write: JSON for ``.gltf``, else one binary file (GLB).
        into: The file to copy; None, or a file of another format, for a new file with the skeleton and the skin or
            the shapes of the body.
        skin: Skin of a new file, whose joints are in the skeleton.
        force: Whether an existing file may be replaced.

    Returns:
        Sentences about what was not written, and about a unit that was not known.

    Raises:
        FileError: If a file cannot be read or written, or exists and ``force`` is not set.
        FormatError: If ``into`` is not a usable glTF.
        InputError: If the pose belongs to another skeleton.
    """
    target, motion = as_path(path), Motion(pose.skeleton, pose.q[None], 1.0, name="pose")
    source = _copied(into)
    if source is None:
        new = Fresh(pose.skeleton, target.stem, skin)
        for (row, what), values in node_tracks(motion, new.scene, what="pose").items():
            new.content["nodes"][row][what] = values[0].tolist()
        write_new(new.content, bytes(new.data), target, force=force)
        return new.notes
    document = read_document(source)
    scene = below_frame(read_scene(document), document, pose.skeleton)
    tracks = node_tracks(motion, scene, what="pose")
    content, chunk = _parts(document)
    nodes = {row: node for node, row in scene.row_of.items()}
    for (row, what), values in tracks.items():
        node = content["nodes"][nodes[row]]
        _as_parts(node, scene, row)
        node[what] = values[0].tolist()
    _write(content, chunk, source, target, force=force)
    return ()


def read_gltf_pose(path: Path, skeleton: Skeleton) -> Pose:
    """Read the pose of the nodes of a glTF or GLB file, as values of a skeleton with the same joints.

    An additional free root of the skeleton gets the translation of the first node without a parent, and also its
    rotation if that node's joint cannot rotate.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is not a usable glTF.
        InputError: If the file has other joints than the skeleton.
    """
    document = read_document(path)
    scene = below_frame(read_scene(document), document, skeleton)
    rest = Rest(scene)
    rows, extra = _same_joints(skeleton, scene, str(path), what="pose"), len(skeleton) - len(scene.names)
    local = np.tile(np.eye(4), (len(scene.names), 1, 1))
    for row in range(len(local)):
        local[row, :3, :3] = quat_to_matrix(rest.conjugated(row, scene.rotation[row]))
        local[row, :3, 3] = rest.offset[row]
    q = skeleton.rest_q.copy()
    if extra:
        first, root = scene.parents.index(-1), skeleton.joints[0]
        own = skeleton.joints[rows[first]]
        moved = local[first] @ np.linalg.inv(own.rest)
        if own.kind in (Kind.BALL, Kind.FREE):
            moved = rigid(local[first, :3, 3] - own.rest[:3, 3])
        q[skeleton.q_slice(0)] = _values(root, np.linalg.inv(root.rest) @ moved)
        for row, parent in enumerate(scene.parents):
            if parent < 0:
                local[row] = np.linalg.inv(moved) @ local[row]
    for row, own in enumerate(rows):
        joint = skeleton.joints[own]
        q[skeleton.q_slice(own)] = _values(joint, np.linalg.inv(joint.rest) @ local[row])
    return Pose(skeleton, q)


def shown_pose(path: Path, skeleton: Skeleton) -> tuple[list[int], Array]:
    """Return the skeleton rows that a file has, and the positions of their nodes without a clip, (rows, 3)."""
    document = read_document(path)
    scene = below_frame(read_scene(document), document, skeleton)
    return _same_joints(skeleton, scene, str(path), what="pose"), node_places(scene, {}, 1)[0]


def shown_clip(path: Path, motion: Motion) -> Shown:
    """Return the positions of a motion's joints in the clip that was written last into a file, at its keys."""
    document = read_document(path)
    scene = below_frame(read_scene(document), document, motion.skeleton)
    clips = read_animations(document, scene.row_of)
    if not clips:
        raise InputError("file has no motion", where=str(path))
    clip = max(reversed(clips), key=lambda each: each.written)
    times = np.unique(np.concatenate([track.times for track in clip.tracks.values()]))
    local = {key: track.sample(times) for key, track in clip.tracks.items()}
    rows = _same_joints(motion.skeleton, scene, str(path), what="motion")
    problems = [] if clip is clips[0] else [f"Programs that play the first clip of a file play {clips[0].name!r}."]
    problems += _left_over(clips, scene)
    return Shown(rows, node_places(scene, local, len(times)), times, tuple(problems))


def _left_over(clips: Sequence[Animation], scene: Scene) -> list[str]:
    """Return sentences about clips that look different if another clip of the file was played before.

    Blender and others leave a property without keys as the previous clip set it.
    """
    out: list[str] = []
    for clip in clips:
        lacking = {key: other.name for other in clips for key in _moved([other], scene) if key not in clip.tracks}
        if clip.tracks and lacking:
            joints = listed(sorted({scene.names[row] for row, _ in lacking}))
            others = listed(sorted(set(lacking.values())))
            out.append(f"Clip {clip.name!r} has no keys of {joints}, which keep their values from {others}.")
    return out


def _moved(clips: Iterable[Animation], scene: Scene) -> dict[tuple[int, str], None]:
    """Return row and property of everything that clips move from rest."""
    size = float(np.abs(scene.translation).max(initial=0.0))
    return {
        (row, what): None
        for clip in clips
        for (row, what), track in clip.tracks.items()
        if np.abs(track.change(rest_of(scene, row, what)[0])).max() > _STILL * (size if what == "translation" else 1.0)
    }


def _at_rest(scene: Scene, others: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Array]:
    """Return the values at rest, (1, width), of all translations and rotations, and of the properties ``others``."""
    keys = [(row, what) for row in range(len(scene.names)) for what in ("translation", "rotation")]
    return {(row, what): rest_of(scene, row, what) for row, what in (*keys, *others)}


def rest_of(scene: Scene, row: int, what: str) -> Array:
    """Return a property of a node at rest, (1, width)."""
    values = {"translation": scene.translation, "rotation": scene.rotation, "scale": scene.scale}[what]
    return values[row : row + 1]


def _values(joint: Joint, motion: Array) -> Array:
    """Return the values of a joint for a transform from its rest frame, (4, 4); ignore parts that it cannot follow."""
    quat = matrix_to_quat(motion[:3, :3])
    if joint.kind is Kind.HINGE:
        return np.array([2.0 * np.arctan2(quat[:3] @ joint.axis, quat[3])])
    if joint.kind is Kind.SLIDE:
        return np.array([motion[:3, 3] @ joint.axis])
    return {Kind.BALL: quat, Kind.FREE: np.append(motion[:3, 3], quat)}.get(joint.kind, np.empty(0))


def _parts(document: Document) -> tuple[dict[str, Any], bytes]:
    """Return the JSON of a file, which callers may change, and the binary chunk that its first buffer uses."""
    for key in ("animations", "accessors", "bufferViews", "buffers", "images"):
        document.root.items(key)  # checks all elements, also those that no joint needs
    buffers = document.root.items("buffers")
    chunk = b""
    if document.chunk is not None and buffers and not buffers[0].has("uri"):  # otherwise no buffer uses the chunk
        chunk = bytes(document.chunk[: buffers[0].integer("byteLength")])
    return document.root.data, chunk


def _write(content: dict[str, Any], chunk: bytes, source: Path, target: Path, *, force: bool) -> None:
    """Write a changed copy of a file: JSON for ``.gltf``, else a GLB; it is a VRM if its name says so."""
    check_name(target, content.get("extensions") or ())
    binary = target.suffix.lower() != ".gltf"
    if chunk and not binary:
        content["buffers"][0]["uri"] = _data_uri(chunk)
    _check_references(content, source, target)
    write_bytes(target, _packed(content, chunk) if binary else (json.dumps(content) + "\n").encode(), force=force)


def node_tracks(motion: Motion, scene: Scene, *, what: str = "motion") -> dict[tuple[int, str], Array]:
    """Return local translations (T, 3), rotations (T, 4), scales (T, 3) of moved nodes, by row and property.

    This is the inverse of reading. The rotation of a rigid joint is that of the node, conjugated by the signs of the
    scales above it. Its offset is the translation of the node times the uniform scale above it. Below a nonuniform
    scale, the translation is L⁻¹ (p - p_parent), with the world positions p of the motion and the linear part L of the
    world matrix of the parent's node in that frame.
    """
    rest = Rest(scene)
    rows = _same_joints(motion.skeleton, scene, motion.name, what=what)
    extra = len(motion.skeleton) - len(scene.names)
    # No node of the file has the scale of an added root, so translations reproduce it, as below a nonuniform scale.
    scaled_root = bool(extra and motion.stretch is not None and np.any(motion.stretch[:, 0] != 1.0))
    exact = rest.sheared | scaled_root
    places = motion.positions() if exact.any() else None
    linear: dict[int, Array] = {-1: np.eye(3)[None]}  # linear part of the world matrix of each node
    moved = np.eye(4)[None] if not extra else _root(motion)
    out: dict[tuple[int, str], Array] = {}
    for row, parent in enumerate(scene.parents):
        own = rows[row]
        joint, place = motion.skeleton.joints[own], motion.skeleton.q_slice(own)
        turn, p = joint.rest[:3, :3][None], joint.rest[:3, 3][None]
        if joint.kind in (Kind.BALL, Kind.FREE):
            if joint.kind is Kind.FREE:
                p = p + motion.q[:, place.start : place.start + 3] @ joint.rest[:3, :3].T
            turn = turn @ quat_to_matrix(motion.q[:, place.stop - 4 : place.stop])
        elif joint.kind is Kind.HINGE:
            half = 0.5 * motion.q[:, place]
            turn = turn @ quat_to_matrix(np.hstack([np.sin(half) * joint.axis, np.cos(half)]))
        elif joint.kind is Kind.SLIDE:
            p = p + (motion.q[:, place] * joint.axis) @ joint.rest[:3, :3].T
        if parent < 0 and extra:
            p = moved[:, :3, 3] + (moved[:, :3, :3] @ p[..., None])[..., 0]
            turn = moved[:, :3, :3] @ turn
        if exact[row] and places is not None:
            step = places[:, own] - (places[:, rows[parent]] if parent >= 0 else 0.0)
            local = (np.linalg.pinv(linear[parent]) @ step[..., None])[..., 0]
            if np.abs(linear[parent] @ (local - scene.translation[row])[..., None]).max() > _STILL * rest.size:
                out[row, "translation"] = local
        else:
            shift = p - rest.offset[row]
            if np.abs(shift).max() > _STILL * rest.size:
                out[row, "translation"] = scene.translation[row] + shift / (rest.uniform[row] * rest.signs[row])
        quat = same_side(rest.conjugated(row, matrix_to_quat(turn)))  # some players do not take the shorter arc
        if np.abs(np.abs(quat @ scene.rotation[row]) - 1.0).max() > _STILL * _STILL:
            out[row, "rotation"] = np.broadcast_to(quat, (len(motion), 4))
        if motion.stretch is not None and np.abs(motion.stretch[:, own] - 1.0).max() > _STILL:
            out[row, "scale"] = motion.stretch[:, own] * scene.scale[row]
        if places is not None:
            rotation, scale = over_time(out, row, "rotation", scene.rotation), over_time(out, row, "scale", scene.scale)
            linear[row] = linear[parent] @ (quat_to_matrix(rotation) * scale[:, None, :])
    if not out:  # at least one track has a key in all frames, even if nothing moves
        out[0, "rotation"] = scene.rotation[:1]
    return {key: np.broadcast_to(values, (len(motion), values.shape[-1])) for key, values in out.items()}


def _same_joints(skeleton: Skeleton, scene: Scene, where: str, *, what: str) -> list[int]:
    """Return the row of a skeleton for each joint of a file; the skeleton may have a free root above them.

    Raises:
        InputError: If the joints have other names or other parents.
    """
    names = skeleton.joint_names
    extra = len(names) - len(scene.names)
    number = {name: row for row, name in enumerate(names)}
    if (
        extra not in (0, 1)
        or (names[extra:] != scene.names and (len(number) != len(names) or set(names[extra:]) != set(scene.names)))
        or (extra and skeleton.joints[0].kind is not Kind.FREE)
    ):
        raise InputError(
            f"{what} belongs to another skeleton",
            where=where,
            value=skeleton.name,
            expected=f"the {len(scene.names)} joints of the file",
        )
    same = names[extra:] == scene.names
    rows = [row + extra if same else number[name] for row, name in enumerate(scene.names)]
    for row, parent in enumerate(scene.parents):
        above = skeleton.parents[rows[row]]
        if (above if above >= extra else -1) != (rows[parent] if parent >= 0 else -1):
            raise InputError(
                f"joint {scene.names[row]!r} has another parent than in the file",
                where=where,
                value=names[above] if above >= extra else None,
                expected=repr(scene.names[parent]) if parent >= 0 else "no parent",
            )
    return rows


def _root(motion: Motion) -> Array:
    """Return the transforms (T, 4, 4) of the free root that was added above the joints of the file."""
    out = np.tile(np.eye(4), (len(motion), 1, 1))
    rest = motion.skeleton.joints[0].rest
    out[:, :3, :3] = rest[:3, :3] @ quat_to_matrix(motion.q[:, 3:7])
    out[:, :3, 3] = rest[:3, 3] + motion.q[:, :3] @ rest[:3, :3].T
    return out


def _as_parts(node: dict[str, Any], scene: Scene, row: int) -> None:
    """Replace the matrix of a node by translation, rotation and scale, because only these can be animated."""
    if node.pop("matrix", None) is not None:
        node["translation"] = scene.translation[row].tolist()
        node["rotation"] = scene.rotation[row].tolist()
        node["scale"] = scene.scale[row].tolist()


class NewClip:
    """A new animation: its JSON, and the bytes of its accessors.

    Args:
        content: The JSON of the file, which is changed.
        name: Name of the animation.
        times: (T,) key times of all tracks, seconds.
        buffer: Number of the buffer for the bytes.
        before: Bytes that the buffer already has; their number is a multiple of 4.
    """

    def __init__(self, content: dict[str, Any], name: str, times: Array, buffer: int, before: bytes = b"") -> None:
        """Append an empty animation to the file."""
        self.content = content
        self.data = bytearray(before)
        self.buffer = buffer
        self.animation: dict[str, Any] = {"name": name, "channels": [], "samplers": []}
        clips = content.setdefault("animations", [])
        mark_written(self.animation, clips)
        clips.insert(0, self.animation)
        if len(np.unique(times.astype(np.float32))) < len(times):
            raise InputError(
                "frames are too close together for a glTF, whose times have seven digits", where=name,
                expected="fewer frames, or a lower rate", hint="NPZ and BVH hold any",
            )  # fmt: skip
        self._times = self._accessor(times.reshape(-1, 1), "SCALAR", bounds=True)
        self._starts: dict[float, int] = {} if len(times) > 1 else {float(times[0]): self._times}
        self._first = float(times[0])

    def add_track(self, node: int, what: str, values: Array) -> None:
        """Add the values of one property of one node, (T, width), or (1, width) if the property is at rest."""
        if len(values) == 1:
            self.add_rest(self.animation, self._first, node, what, values)
        else:
            self._add(self.animation, self._times, node, what, values)

    def add_rest(self, animation: dict[str, Any], start: float, node: int, what: str, values: Array) -> None:
        """Add a single key with values (1, width) to an animation of the file, at its start time."""
        if start not in self._starts:
            self._starts[start] = self._accessor(np.array([[start]]), "SCALAR", bounds=True)
        self._add(animation, self._starts[start], node, what, values)

    def _add(self, animation: dict[str, Any], times: int, node: int, what: str, values: Array) -> None:
        """Add a channel to an animation."""
        output = self._accessor(values, "VEC4" if what == "rotation" else "VEC3")
        channels, samplers = animation["channels"], animation["samplers"]
        channels.append({"sampler": len(samplers), "target": {"node": node, "path": what}})
        samplers.append({"input": times, "output": output, "interpolation": "LINEAR"})

    def _accessor(self, values: Array, kind: str, *, bounds: bool = False) -> int:
        """Append values as float32 and return the index of their accessor."""
        numbers = np.ascontiguousarray(values, "<f4")
        views = self.content.setdefault("bufferViews", [])
        views.append({"buffer": self.buffer, "byteOffset": len(self.data), "byteLength": numbers.nbytes})
        self.data += numbers.tobytes()
        accessor: dict[str, Any] = {
            "bufferView": len(views) - 1, "componentType": _FLOAT, "count": len(numbers), "type": kind,
        }  # fmt: skip
        if bounds:
            accessor |= {"min": numbers.min(0).tolist(), "max": numbers.max(0).tolist()}
        accessors = self.content.setdefault("accessors", [])
        accessors.append(accessor)
        return len(accessors) - 1


def _packed(content: dict[str, Any], chunk: bytes) -> bytes:
    """Return a GLB of JSON and a binary chunk, which may be empty."""
    text = json.dumps(content, separators=(",", ":")).encode()
    body = b""
    for data, kind, filler in ((text, JSON_CHUNK, b" "), (chunk, BIN_CHUNK, b"\0")):
        if data:
            padded = data + filler * (-len(data) % 4)
            body += struct.pack("<II", len(padded), kind) + padded
    return MAGIC + struct.pack("<II", 2, 12 + len(body)) + body


def _data_uri(data: bytes | bytearray) -> str:
    """Return bytes as a data URI."""
    return "data:application/octet-stream;base64," + base64.b64encode(data).decode()


def _check_references(content: dict[str, Any], source: Path, target: Path) -> None:
    """Raise an error for a copy in another folder if the source refers to buffers or images next to it.

    Raises:
        InputError: If the source refers to such files.
    """
    named = [
        entry["uri"]
        for key in ("buffers", "images")
        for entry in content.get(key, [])
        if isinstance(entry.get("uri"), str) and not entry["uri"].lower().startswith("data:")
    ]
    if named and source.resolve().parent != target.resolve().parent:
        raise InputError(
            f"{source.name} refers to files next to it, such as {named[0]!r}",
            where=str(target),
            expected=f"a file in {source.parent}",
        )
