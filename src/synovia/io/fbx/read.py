"""Read the nodes and takes of FBX files, which ``unpack`` extracts, as a skeleton and its motions."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.errors import FormatError, MissingExtraError, install_command
from synovia.io.base import Contents, most_numbers, optional_package, read_bytes
from synovia.io.fbx import unpack
from synovia.io.nodes.clips import Clips
from synovia.io.nodes.tree import Scene, parents_first, relative_binds
from synovia.model import MAX_JOINTS
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.text import listed

_EMPTY = 6  # value of ``Node.kind`` for a helper
_NORMAL = 0  # value of ``Node.mode`` for inherit type RSrs
_LONGEST: Final = 300.0  # largest time to read a file, seconds; on POSIX, also a limit of processor time by file size
_ASCII: Final = re.compile(rb"\s*(;\s*FBX\b|FBXHeaderExtension\s*:)")
_CAMERA, _LIGHT, _BONE = 4, 3, 5  # node types of ufbx
_STEREO, _SWITCHER = 13, 14
LOD_GROUP: Final = 16
_UNSEEN: Final = (_CAMERA, _LIGHT, _STEREO, _SWITCHER)
_OTHERS: Final = {
    "BlendChannel": "blend shapes (such as faces)",
    "Camera": "cameras",
    "Light": "lights",
    "Material": "materials",
    "Texture": "materials",
    "Node": "visibility and other properties of nodes",
}
_NAMED: Final = 3  # largest number of faults, and of animated nodes without a joint, that notes list


def looks_like(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a binary or an ASCII FBX file."""
    return head.startswith(unpack.BINARY[:18]) or _ASCII.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Data that ``unpack`` extracted from a file.

    Args:
        path: The file.
        size: Size of the file, bytes.
        tree: The nodes.
        content: Names and values by subject.
        body: The arrays that the content refers to.
    """

    path: Path
    size: int
    tree: Tree
    content: dict[str, Any]
    body: memoryview

    def array(self, place: list[int], width: int) -> Array:
        """Return the array of float64 at a place (offset, length) in ``body``, (n, width)."""
        return self.numbers(place, np.float64).reshape(-1, width)

    def numbers(self, place: list[int], kind: type[np.generic]) -> Any:
        """Return the array of a given type at a place in ``body``, (n,)."""
        start, length = place
        return np.frombuffer(self.body[start : start + length], kind)


def unpacked(path: Path, *, meshes: bool = False) -> Unpacked:
    """Read a file with ``ufbx`` in a separate process.

    Args:
        path: The file.
        meshes: Whether to read the meshes rather than the takes.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is damaged, or is not an FBX file.
        MissingExtraError: If ``ufbx`` is not installed.
    """
    data = read_bytes(path)
    if not looks_like(data):
        raise FormatError("is not an FBX file", where=str(path), expected="Kaydara FBX Binary or ; FBX at its start")
    package = optional_package("ufbx", "reading FBX needs the package ufbx", "fbx", str(path))
    if not hasattr(package, "evaluate_transform"):  # another package has the same name
        what = "reading FBX needs the package ufbx, and pyufbx is installed in its place"
        raise MissingExtraError(what, where=str(path), hint=f"uninstall pyufbx, then run {install_command('fbx')}")
    kind = "meshes" if meshes else "motions"
    paths = os.pathsep.join(part for part in sys.path if part)
    try:
        done = subprocess.run(  # noqa: S603  the interpreter itself, with a file of this package
            [sys.executable, "-P", unpack.__file__, kind, str(most_numbers(len(data)))],
            input=data, capture_output=True, timeout=_LONGEST, check=False, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise FormatError("is not a readable FBX file", where=str(path), hint="it took too long to read") from error
    if done.returncode or len(done.stdout) < 8:
        raise FormatError("is not a readable FBX file", where=str(path), hint="it may be damaged or cut off")
    stop = 8 + struct.unpack_from("<Q", done.stdout)[0]
    content: dict[str, Any] = json.loads(done.stdout[8:stop])
    if "refused" in content:
        raise FormatError(
            f"cannot be read ({content['refused']})", where=str(path), hint="it may be damaged or cut off"
        )
    body = memoryview(done.stdout)[stop:]
    start, length = content["rest"]
    rest = np.frombuffer(body[start : start + length], np.float64).reshape(-1, 10)
    return Unpacked(path, len(data), Tree([Node(*node) for node in content.pop("nodes")], rest), content, body)


def read_fbx(path: Path) -> Contents:
    """Read the skeleton and the motions of an FBX file.

    Lengths are metres and y is up, whatever the file's units and axes are. The skeleton has the bones, the nodes of
    skins, and the ancestors of these; in a file without any, it has all nodes except cameras and lights. Pivots, pre-
    and post-rotations and rotation orders are included in the rest transforms and joint values. If a node does not
    inherit its parent's scale, the parent is rigid and scales the node's offset instead.

    Each take that animates nodes becomes a motion, its layers blended, with the rate of the file. Animated translations
    and scales are treated as in glTF files.
    """
    found = unpacked(path)
    tree = node_tree(found)
    most = most_numbers(found.size)

    def spend(numbers: int, take: _Take) -> None:
        if numbers > most:
            raise FormatError(f"take {take.name!r} needs too much memory", where=str(path), value=numbers)

    takes = _takes(found, tree)
    clips = Clips(path, tree, takes, spend)

    def motions() -> list[Motion]:
        if found.content["long"] and not takes:
            raise FormatError(found.content["long"][0], where=str(path))
        return clips.motions()

    return Contents(clips.skeleton, motions, shown=0 if takes else None)  # the take written last comes first


def node_tree(found: Unpacked) -> Scene:
    """Return the nodes that become joints.

    Raises:
        FormatError: If the file has no nodes, or too many.
    """
    nodes = found.tree.nodes
    above = [node.parent if node.parent > 0 else -1 for node in nodes]  # the root of the file does not count as a node
    skins: list[tuple[list[int], Array]] = []
    for some, place in found.content["skins"]:
        skins.append((list(some), found.array(place, 12)))
    bones = {number for number, node in enumerate(nodes) if node.kind == _BONE and number}
    bones |= {bone for some, _ in skins for bone in some}
    every = {number for number, node in enumerate(nodes) if number and not node.helper}
    wanted = bones or {number for number in every if nodes[number].kind not in _UNSEEN} or every
    kept: set[int] = set()
    for number in wanted:
        while number >= 0 and number not in kept:
            kept.add(number)
            number = above[number]
    if not kept:
        raise FormatError("file has no nodes", where=str(found.path), hint="it holds no skeleton")
    if len(kept) > MAX_JOINTS:
        raise FormatError("too many joints", where=str(found.path), value=len(kept), expected=f"at most {MAX_JOINTS}")
    order = parents_first(kept, above)
    row_of = {number: row for row, number in enumerate(order)}
    parents = tuple(row_of[above[number]] if above[number] >= 0 else -1 for number in order)
    inner = {above[number] for number in order}
    rest = found.tree.rest[order]
    if not np.isfinite(rest).all():
        name = nodes[order[int(np.flatnonzero(~np.isfinite(rest).all(1))[0])]].name
        raise FormatError("transform is not finite", where=f"{found.path}: node {name!r}")
    inverses = [
        {row_of[bone]: columns.reshape(4, 3)[:3].T for bone, columns in zip(some, matrices, strict=True)}
        for some, matrices in skins
    ]
    mirrored = bool((rest[:, 7:] < 0.0).any())  # in mirrored bodies, bind matrices contain reflections
    return Scene(
        names=tuple(nodes[number].name or f"node{number}" for number in order),
        row_of=row_of,
        parents=parents,
        moving=tuple(number in (bones or inner) for number in order),
        translation=rest[:, :3].copy(),
        rotation=rest[:, 3:7] / np.linalg.norm(rest[:, 3:7], axis=1, keepdims=True),
        scale=rest[:, 7:].copy(),
        bind=relative_binds([] if mirrored else inverses, parents),
        notes=_notes(found.content),
    )


def _notes(content: dict[str, Any]) -> tuple[str, ...]:
    """Return sentences about parts that were not kept, and about faults that ufbx found."""
    notes: list[str] = []
    if content["constraints"]:
        notes.append(f"Constraints {listed(content['constraints'])} were not kept: joints move freely.")
    if content["faults"]:
        notes.append(f"Errors in the file were ignored: {'; '.join(content['faults'][:_NAMED])}.")
    notes += [f"A take was not kept: {why}." for why in content.get("long", ())]
    return tuple(notes)


@dataclass(frozen=True, slots=True, eq=False)
class _Track:
    """Values of a node property in each frame.

    Args:
        times: Times of the frames, (T,), seconds.
        values: Values, (T, width); rotations are unit quaternions xyzw.
    """

    times: Array
    values: Array

    def sample(self, times: Array) -> Array:
        """Return the values at times, which must be frame times."""
        return self.values[np.searchsorted(self.times, times - 1e-9)]

    def change(self, rest: Array) -> Array:
        """Return differences from rest, (T, width)."""
        values = self.values
        if len(rest) == 4:
            values = values * np.where(values @ rest < 0.0, -1.0, 1.0)[:, None]
        return values - rest


@dataclass(frozen=True, slots=True, eq=False)
class _Take:
    """One take.

    Args:
        name: Name of the take.
        tracks: Tracks by joint row and property.
        frames: Frames per second, and number of frames.
        notes: Sentences about parts of the take that were not kept.
    """

    name: str
    tracks: dict[tuple[int, str], _Track]
    frames: tuple[float, int]
    notes: tuple[str, ...]

    @property
    def written(self) -> int:
        """Always 0, as files do not say who wrote a take."""
        return 0


def _takes(found: Unpacked, tree: Scene) -> list[_Take]:
    """Return all takes that animate nodes."""
    rate = float(found.content["rate"])
    out: list[_Take] = []
    for number, (name, count, numbers, place, others) in enumerate(found.content["takes"]):
        given = found.array(place, 10).reshape(count, len(numbers), 10)
        chosen, values = found.tree.over_time(numbers, given)
        if not np.isfinite(values).all():
            raise FormatError("animation is not finite", where=f"{found.path}: take {name!r}")
        times: Array = np.arange(int(count)) / rate
        tracks: dict[tuple[int, str], _Track] = {}
        lost: list[str] = []
        for column, node in enumerate(chosen):
            row = tree.row_of.get(node)
            if row is None:
                if node in numbers and not np.allclose(values[:, column], found.tree.rest[node], atol=1e-9):
                    lost.append(found.tree.nodes[node].name)
                continue
            for path, part, rest in _PARTS:
                track = _Track(times, values[:, column, part])
                if np.any(track.change(getattr(tree, rest)[row])):
                    tracks[row, path] = track
        kinds = dict.fromkeys(_OTHERS.get(other, "other properties") for other in others)
        notes = [f"The animation of node {name!r}, which is no joint, was not kept." for name in lost[:_NAMED]]
        if len(lost) > _NAMED:
            notes.append(f"The animations of {len(lost) - _NAMED} further nodes were not kept.")
        notes += [f"The animation of {kind} was not kept." for kind in kinds]
        out.append(_Take(name or f"take{number}", tracks, (rate, count), tuple(notes)))
    return out


_PARTS: Final = (
    ("translation", slice(0, 3), "translation"),
    ("rotation", slice(3, 7), "rotation"),
    ("scale", slice(7, 10), "scale"),
)


class Node(NamedTuple):
    """A node of a file.

    Args:
        name: Name of the node.
        parent: Index of its parent, which comes first; -1 for the root of the file, which is the first node.
        kind: Type of its attribute, as ``ufbx.ElementType``.
        visible: Whether the node is shown.
        mode: Scale inheritance, as ``ufbx.InheritMode``.
        source: Index of the node whose scale multiplies the scale of this node, -1 for none.
        helper: Whether the node is not in the file, but was added (by ``Tree``) to hold the scale of its parent.
    """

    name: str
    parent: int
    kind: int
    visible: bool
    mode: int
    source: int
    helper: bool = False


class Tree:
    """Nodes whose frames are products of their translation, rotation and scale.

    Args:
        nodes: The nodes of a file.
        rest: Translation, rotation (xyzw) and scale of these nodes, (n, 10).

    Attributes:
        nodes: The nodes of the file, with helpers at the end.
        rest: Translation, rotation and scale of these nodes, (m, 10).
    """

    def __init__(self, nodes: list[Node], rest: Array) -> None:
        self._given = rest
        self._count = len(nodes)
        self._bare = {node.parent for node in nodes if node.mode != _NORMAL}
        helped = sorted({node.parent for node in nodes if node.mode == _NORMAL and node.parent in self._bare} - {0, -1})
        self._helper = {number: self._count + k for k, number in enumerate(helped)}
        self.nodes = [
            node._replace(parent=self._helper.get(node.parent, node.parent)) if node.mode == _NORMAL else node
            for node in nodes
        ]
        self.nodes += [
            Node(f"{nodes[number].name} scale", number, _EMPTY, visible=True, mode=_NORMAL, source=-1, helper=True)
            for number in helped
        ]
        self._nodes = nodes
        self.rest = np.concatenate([part[:1] for part in self._made({}, range(len(self.nodes)))]).reshape(-1, 10)

    def over_time(self, numbers: list[int], values: Array) -> tuple[list[int], Array]:
        """Return the indices of all moving nodes, and their transforms over time, given the animated nodes.

        Args:
            numbers: The animated nodes of the file.
            values: Translation, rotation and scale of these nodes, (T, len(numbers), 10).
        """
        moved = set(numbers)
        for number, node in enumerate(self._nodes):  # parents first
            if node.mode != _NORMAL and (node.parent in moved or node.source in moved):
                moved.add(number)
        chosen = [*sorted(moved), *(helper for number, helper in self._helper.items() if number in moved)]
        local = {number: values[:, column] for column, number in enumerate(numbers)}
        count = len(values)
        made = [np.broadcast_to(part, (count, 10)) for part in self._made(local, chosen)]
        return chosen, np.stack(made, axis=1) if made else values

    def _made(self, local: dict[int, Array], chosen: list[int] | range) -> list[Array]:
        """Return the transforms of ``chosen`` nodes, (T, 10) or (1, 10) each; ``local`` has those of animated nodes."""
        scales: dict[int, Array] = {}

        def of(number: int) -> Array:
            return local.get(number, self._given[number : number + 1])

        def scale(number: int) -> Array:
            """Return the scale of a node, inherited scale included."""
            chain = [number]
            while chain[-1] not in scales and self._nodes[chain[-1]].source >= 0:
                chain.append(self._nodes[chain[-1]].source)
            for at in reversed(chain):
                if at not in scales:
                    source = self._nodes[at].source
                    own = of(at)[:, 7:]
                    scales[at] = own * scales[source] if source >= 0 else own
            return scales[number]

        above = {helper: number for number, helper in self._helper.items()}
        out: list[Array] = []
        for number in chosen:
            if number in above:
                size = scale(above[number])
                out.append(np.hstack([np.tile((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (len(size), 1)), size]))
                continue
            node, given = self._nodes[number], of(number)
            place, size = given[:, :3], scale(number)
            if node.mode != _NORMAL and node.parent >= 0:
                place = place * scale(node.parent)
            if number in self._bare:
                size = np.ones((1, 3))
            parts = np.broadcast_arrays(place[:, :1], given[:, :1], size[:, :1])
            count = len(parts[0])
            out.append(
                np.hstack([np.broadcast_to(part, (count, part.shape[1])) for part in (place, given[:, 3:7], size)])
            )
        return out
