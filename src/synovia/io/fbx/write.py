"""Write a motion as FBX: into a copy of the FBX file that its skeleton came from, or as a new file.

A copy keeps the contents of the file, and gets the motion as an additional take. A new file has one bone for each
joint, in the rest pose, the skin of a glTF character, and the motion as its only take.

Curves have one key a frame, in float32, with linear interpolation. The rotation of each node is computed from its
parent's rounded rotation, so that rounding errors do not add up along the limbs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.io.base import Shown, as_path, as_utf8, write_bytes
from synovia.io.fbx.document import Document, axes_for, block_of, new_document, read_document, set_property
from synovia.io.fbx.nodes import (
    COMPONENTS,
    NORMAL,
    Chain,
    Course,
    Node,
    angles_near,
    angles_over_time,
    read_nodes,
    turns,
)
from synovia.io.fbx.records import Record
from synovia.io.fbx.skin import add_skin, bound
from synovia.io.fbx.takes import (
    ROTATION,
    SCALING,
    TRANSLATION,
    add_take,
    at_rest,
    key_rest,
    keyed_takes,
    left_over,
    read_written_take,
)
from synovia.io.nodes.lengths import unit_of
from synovia.io.nodes.skins import Skin
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.motion import Motion
from synovia.text import listed

_SIZE: Final = 0.3  # drawn size of a joint, as a fraction of the body's size; programs divide it by 100
_LOCKED: Final = 1e-9  # cosine of the middle angle; below it, the outer angles are not unique (gimbal lock)
ENDING: Final = ".fbx"
_STILL: Final = 1e-7  # rounding of float32; a property that differs less from rest needs no curve
_FLAT: Final = 1e-9  # relative determinant of a linear map, below which the map counts as singular
# Factors of a bone's smallest and largest coordinate; their sum is a shift that float32 does not round away.
_APART: Final = (4e-6, 4e-7)
_HELPER: Final = " scale"  # ending of names of joints that readers add below nodes without inherited scale


class _Target(NamedTuple):
    """The transform that a node must have.

    Args:
        turn: World rotation, (T, 3, 3).
        place: World position, (T, 3).
        stretch: Factors of the node's scale, (T, 3); None if the scale does not change.
    """

    turn: Array
    place: Array
    stretch: Array | None


def write_fbx(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    skin: Skin | None = None,
    force: bool = False,
) -> tuple[str, ...]:
    """Write a motion as an FBX file.

    A new file is in centimetres, as most programs expect. A humanoid without a unit becomes as tall as a person; other
    lengths without a unit count as centimetres. The upward axis is that of the skeleton, or y. Bones keep their names.
    Rest rotations are the bones' pre-rotations, so that all angles are 0 at rest. A skeleton with several roots gets an
    additional root above them.

    A copy of an FBX file keeps unit and axes. The motion is an additional take, before the others and marked as the
    current one, and the file gets its frame rate. Properties keyed only in other takes get a key at rest. If the
    skeleton has no unit, it is scaled to the bone lengths of the file.

    Hinges and slides become bones that rotate and translate. Limits, masses and loops are left out.

    Args:
        motion: The motion.
        path: The file to write.
        into: An FBX file with the joints of the skeleton, which is copied. None for a new file, except for skeletons
            that came from an FBX file.
        skin: Skin of a new file, whose joints are in the skeleton.
        force: Whether an existing file may be replaced.

    Returns:
        Sentences about an unknown unit, and about parts of the skin that were left out.

    Raises:
        FileError: If a file cannot be read or written, or exists and ``force`` is not set.
        FormatError: If ``into`` is malformed.
        InputError: If the motion has no frames or belongs to another skeleton.
        UnsupportedError: If ``into`` is an FBX file older than version 7.
    """
    target = as_path(path)
    if not len(motion):
        raise InputError("motion has no frames", where=str(target), expected="at least one")
    for name in (motion.name, *motion.skeleton.joint_names):
        as_utf8(name, str(target))
    source = motion.skeleton.source if into is None else as_path(into)
    notes: tuple[str, ...] = ()
    if source is not None and (into is not None or source.suffix.lower() == ENDING):
        document = read_document(source)
        nodes = read_nodes(document)
        rows = _rows_of(motion.skeleton, nodes, str(source))
        scale = _scale(document, motion.skeleton, nodes, rows)
        tracks = _tracks(motion, nodes, rows, scale, _turn(document, motion.skeleton))
    else:
        document = new_document(str(target), motion.skeleton.up or "y")
        meters, notes = unit_of(motion.skeleton, document.meters_per_unit)
        scale = meters / document.meters_per_unit
        body = add_bones(document, motion.skeleton, scale)
        nodes = body.nodes
        tracks = _tracks(motion, nodes, _Rows(body.rows, {}), scale, _turn(document, motion.skeleton))
        travels = {body.rows[node] for node, what in tracks if what == TRANSLATION and node in body.rows}
        _add_surface(document, motion.skeleton, body, skin, travels, scale)
        notes += () if skin is None else tuple(skin.notes(morphs=False))
    document.check_rate(motion.fps, len(motion), motion.name)
    document.set_rate(motion.fps)
    takes = keyed_takes(document, nodes)
    everywhere = dict.fromkeys([*tracks, *(key for take in takes for key in take.curves)])
    key_rest(document, takes, nodes, everywhere)
    values = {(row, what): at_rest(nodes[row], what) for row, what in everywhere} | tracks
    add_take(document, motion.name, motion.times, {(nodes[row].number, what): v for (row, what), v in values.items()})
    write_bytes(target, document.pack(), force=force)
    return notes


def shown_clip(path: Path, motion: Motion) -> Shown:
    """Return the positions of a motion's joints in the take that was written last into a file, at its keys."""
    document = read_document(path)
    nodes = read_nodes(document)
    takes = keyed_takes(document, nodes)
    take = read_written_take(document, nodes, takes)
    if take is None:
        raise InputError("file has no take of this motion", where=str(path))
    rows = _rows_of(motion.skeleton, nodes, str(path))
    chain = Chain(nodes)
    for row in range(len(nodes)):
        chain.set(row, take.courses[row])
    places = [np.broadcast_to(chain.place[node], (len(take.times), 3)) for node in rows.joints]
    scale, turn = _scale(document, motion.skeleton, nodes, rows), _turn(document, motion.skeleton)
    own = np.stack(places, axis=1) @ turn / scale
    return Shown(list(rows.joints.values()), own, take.times, tuple(left_over(document, takes, nodes)))


class _Rows(NamedTuple):
    """Map of the nodes of a file to the joints of a skeleton.

    Args:
        joints: Skeleton row by node.
        scales: By node, skeleton row of the additional joint that has the node's scale; readers add such a joint below
            nodes whose scale some children do not inherit.
    """

    joints: dict[int, int]
    scales: dict[int, int]


def _rows_of(skeleton: Skeleton, nodes: list[Node], where: str) -> _Rows:
    """Return a map of the nodes of a file to the joints of a skeleton, which may have an additional free root.

    Raises:
        InputError: If a joint is missing, or has another parent than in the file.
    """
    numbers: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        numbers.setdefault(node.name, []).append(number)
    names = skeleton.joint_names
    joints = set(names)
    helpers = {name + _HELPER for name in numbers}
    free = skeleton.joints[0].kind is Kind.FREE
    lacking = [
        name for row, name in enumerate(names) if name not in numbers and name not in helpers and (row or not free)
    ]
    if lacking or joints.isdisjoint(numbers):
        what, expected = "motion belongs to another skeleton", "joints of the file"
        raise InputError(what, where=where, value=listed(lacking), expected=expected)
    node_of: dict[int, int] = {}
    rows = _Rows({}, {})
    for row, (name, parent) in enumerate(zip(names, skeleton.parents, strict=True)):
        above = node_of.get(parent, -1)
        if name not in numbers:
            if above >= 0:
                node_of[row] = above
                rows.scales[above] = row
            continue
        unused = [number for number in numbers[name] if number not in rows.joints]
        number = next((number for number in unused if _hangs_from(nodes, number, above, joints)), None)
        if number is None:
            raise InputError(
                f"joint {name!r} has another parent than in the file",
                where=where,
                value=names[parent] if above >= 0 else None,
                expected=repr(nodes[nodes[numbers[name][0]].parent].name),
            )
        node_of[row] = number
        rows.joints[number] = row
    return rows


def _hangs_from(nodes: list[Node], number: int, above: int, joints: set[str]) -> bool:
    """Return whether node ``above`` is a node's nearest ancestor that is a joint; -1 stands for no such ancestor."""
    number = nodes[number].parent
    while number >= 0 and number != above and nodes[number].name not in joints:
        number = nodes[number].parent
    return number == above


def _tracks(
    motion: Motion, nodes: list[Node], rows: _Rows, scale: float, axes: Array
) -> dict[tuple[int, str], NDArray[np.float32]]:
    """Return the values of all moving properties, (T, 3), by node and property.

    Args:
        motion: The motion.
        nodes: The nodes of the file.
        rows: Which nodes are joints.
        scale: Number of file units per skeleton unit.
        axes: Rotation from the axes of the skeleton to those of the file, (3, 3).
    """
    frames = motion.frames()
    turn, place = axes @ frames[..., :9].reshape(*frames.shape[:2], 3, 3), scale * (frames[..., 9:] @ axes.T)
    stretches = _stretches(motion, nodes, rows)
    targets = {node: _Target(turn[:, row], place[:, row], stretches.get(node)) for node, row in rows.joints.items()}
    kinds = {node: motion.skeleton.joints[row].kind for node, row in rows.joints.items()}
    free = {node for node, kind in kinds.items() if kind not in (Kind.FIXED, Kind.SLIDE)}
    free = free or {min(targets)}  # so that the take has at least one curve
    size = _STILL * scale * (motion.skeleton.size or 1.0)
    return _solved(nodes, targets, free, size)


def _stretches(motion: Motion, nodes: list[Node], rows: _Rows) -> dict[int, Array]:
    """Return the scale factors of nodes, (T, 3), by node; nodes whose factors are always 1 are left out.

    The scale of a joint includes the scale that its node inherits component by component. If some children of a node do
    not inherit its scale, an additional joint below the node may represent this scale.
    """
    out: dict[int, Array] = {}
    if motion.stretch is None:
        return out
    bare = {node.parent for node in nodes if node.inherit != NORMAL}
    heirs: dict[int, int] = {-1: -1}  # for each node, the node whose scale it inherits
    inherited: dict[int, Array] = {-1: np.ones((1, 3))}  # scale factors, inherited factors included
    for number, node in enumerate(nodes):
        heirs[number] = {NORMAL: -1, COMPONENTS: node.parent}.get(node.inherit, heirs[node.parent])
        row = rows.scales.get(number, None if number in bare else rows.joints.get(number))
        above = inherited[heirs[number]]
        inherited[number] = above if row is None else motion.stretch[:, row]
        factor = inherited[number] / above
        if np.abs(factor - 1.0).max() > _STILL:
            out[number] = factor
    return out


def _solved(
    nodes: list[Node], targets: Mapping[int, _Target], turning: set[int], still: float
) -> dict[tuple[int, str], NDArray[np.float32]]:
    """Return the properties that bring nodes to their targets, (T, 3), by node and property.

    The first pass is exact: it finds the nodes that rotate and translate, and angles without jumps. The second pass
    uses the values rounded as in the file.

    Args:
        nodes: The nodes.
        targets: Target transforms by node; other nodes are at rest.
        turning: Nodes whose rotation is written even if it stays at rest.
        still: Distance; a node that is closer than this to its target gets no translation curve.
    """
    chain = Chain(nodes)
    turned: dict[int, Array] = {}
    travels: set[int] = set()
    for row, node in enumerate(nodes):
        if (target := targets.get(row)) is None:
            chain.set(row, chain.rest(row))
            continue
        turn = node.turn(node.rotation)
        needed = chain.needed(row, target.turn)
        if row in turning or np.abs(needed - turn).max() > _STILL:
            turned[row] = turn = needed
        scaling = node.scaling[None] if target.stretch is None else node.scaling * target.stretch
        translation = _translation(chain, row, target.place, turn, scaling)
        far = (chain.frame(row)[0] @ (translation - node.translation)[..., None])[..., 0]
        if np.abs(far).max() > still:
            travels.add(row)
        else:
            translation = node.translation[None]
        chain.put(row, translation, turn, scaling)
    angles = dict(zip(turned, angles_over_time([nodes[row] for row in turned], list(turned.values())), strict=True))
    out: dict[tuple[int, str], NDArray[np.float32]] = {}
    chain = Chain(nodes)
    for row, node in enumerate(nodes):
        translation, rotation, scaling = chain.rest(row)
        if (target := targets.get(row)) is not None:
            if target.stretch is not None:
                out[row, SCALING], scaling = _rounded(node.scaling * target.stretch)
            if row in angles:
                turn = chain.needed(row, target.turn)
                out[row, ROTATION], rotation = _rounded(angles_near(node, turn, angles[row]))
            if row in travels:
                found = _translation(chain, row, target.place, node.turn(rotation), scaling)
                out[row, TRANSLATION], translation = _rounded(np.broadcast_to(found, target.place.shape))
        chain.set(row, Course(translation, rotation, scaling))
    return out


def _rounded(values: Array) -> tuple[NDArray[np.float32], Array]:
    """Return values rounded to float32, as in the file, and the rounded values as float64."""
    rounded = values.astype(np.float32)
    return rounded, rounded.astype(np.float64)


def _translation(chain: Chain, row: int, place: Array, turn: Array, scaling: Array) -> Array:
    """Return the translation that brings a node to a world position, (T, 3)."""
    linear, origin = chain.frame(row)
    well = np.abs(np.linalg.det(linear)).min() > _FLAT * np.abs(linear).max() ** 3
    inverse = np.linalg.inv(linear) if well else np.linalg.pinv(linear)
    return (inverse @ (place - origin)[..., None])[..., 0] - chain.nodes[row].shift(turn, scaling)


def _add_surface(
    document: Document, skeleton: Skeleton, body: Body, skin: Skin | None, travels: set[int], scale: float
) -> None:
    """Add a skin and the bind pose.

    Bones without skin keep their positions relative to their parents. Blender connects a bone to the end of its parent
    if their positions agree in six digits, and then ignores its translations. So translated bones are shifted slightly.
    """
    meshes = [] if skin is None else bound(skin, skeleton, scale)
    skinned: dict[int, Array] = {}
    for mesh in meshes:
        skinned.update({mesh.joints[number]: mesh.frames[number] for number in map(int, mesh.used)})
    inner = local_frames(skeleton)
    inner[:, :3, 3] *= scale
    places: dict[int, Array] = {}
    shifts: dict[int, Array] = {}
    for row, parent in enumerate(skeleton.parents):
        places[row] = inner[row] if parent < 0 else places[parent] @ inner[row]
        if row in skinned:
            places[row] = skinned[row].copy()
        if row in travels and parent >= 0:
            far = np.abs(places[row][:3, 3])
            shifts[row] = np.where(np.arange(3) == far.argmin(), _APART[0] * far.min() + _APART[1] * far.max(), 0.0)
            places[row][:3, 3] += shifts[row]
    record_of = {row: body.records[number] for number, row in body.rows.items()}
    nodes = add_skin(document, meshes, record_of, shifts)
    bones = [(record_of[row], place) for row, place in places.items()]
    add_bind_pose(document, [*bones, *((node, np.eye(4)) for node in nodes)])


def _scale(document: Document, skeleton: Skeleton, nodes: list[Node], rows: _Rows) -> float:
    """Return the number of file units per skeleton unit; estimate it from bone lengths if the skeleton has no unit.

    Args:
        document: The file.
        skeleton: The skeleton.
        nodes: The nodes of the file.
        rows: Which nodes are joints.
    """
    if skeleton.meters_per_unit is not None:
        return skeleton.meters_per_unit / document.meters_per_unit
    chain = Chain(nodes)
    for row in range(len(nodes)):
        chain.set(row, chain.rest(row))
    place = {row: chain.place[node][0] for node, row in rows.joints.items()}
    own = skeleton.rest_pose().positions
    lengths = np.zeros(2)
    for row, parent in enumerate(skeleton.parents):
        if row in place and parent in place:
            lengths += [float(np.linalg.norm(each[row] - each[parent])) for each in (place, own)]
    return float(lengths[0] / lengths[1]) if lengths.all() else 1.0


def _turn(document: Document, skeleton: Skeleton) -> Array:
    """Return the rotation from the axes of a skeleton to those of a file, (3, 3)."""
    return document.axes.T @ axes_for(skeleton.up or "y")


class Body(NamedTuple):
    """The bones of a new file.

    Args:
        nodes: The nodes.
        records: The records of the nodes.
        rows: Skeleton row by node; an added root has none.
    """

    nodes: list[Node]
    records: list[Record]
    rows: dict[int, int]


def add_bones(document: Document, skeleton: Skeleton, scale: float) -> Body:
    """Add a bone for each joint of a skeleton, in the rest pose, and a common root if it has several roots.

    Args:
        document: The file.
        skeleton: The skeleton.
        scale: Number of file units per skeleton unit.
    """
    roots = sum(parent < 0 for parent in skeleton.parents)
    first = int(roots > 1)
    nodes = [Node(_unused("root", skeleton.joint_names))] if first else []
    inner = local_frames(skeleton)
    for name, parent, local in zip(skeleton.joint_names, skeleton.parents, inner, strict=True):
        node = Node(name, parent + first if parent >= 0 else first - 1, translation=scale * local[:3, 3])
        node.pre = turns(0, _angles(local[:3, :3]))[0]
        nodes.append(node)
    records: list[Record] = []
    for node, angles in zip(nodes, (_angles(node.pre) for node in nodes), strict=True):
        records.append(_bone(document, node, angles, _SIZE * scale * (skeleton.size or 1.0)))
        document.link(records[-1], records[node.parent] if node.parent >= 0 else 0)
        node.number = int(records[-1].values[0])
    return Body(nodes, records, {row + first: row for row in range(len(skeleton))})


def _bone(document: Document, node: Node, angles: Array, size: float) -> Record:
    """Add a node and its attribute; return the record of the node."""
    record = document.add("Model", node.name, "Model", "LimbNode")
    record.add("Version", 232)
    properties = block_of(record)
    if np.any(angles):
        set_property(properties, "PreRotation", "Vector3D", *map(float, angles))
    set_property(properties, "RotationActive", "bool", 1)
    set_property(properties, "InheritType", "enum", NORMAL)
    for name, values in (("Translation", node.translation), ("Rotation", node.rotation), ("Scaling", node.scaling)):
        set_property(properties, f"Lcl {name}", f"Lcl {name}", *map(float, values))
    record.add("Shading", True)
    record.add("Culling", "CullingOff")
    attribute = document.add("NodeAttribute", node.name, "NodeAttribute", "LimbNode")
    set_property(block_of(attribute), "Size", "double", size)
    attribute.add("TypeFlags", "Skeleton")
    document.link(attribute, record)
    return record


def local_frames(skeleton: Skeleton) -> Array:
    """Return the frames of all joints relative to their parents at rest, (n, 4, 4)."""
    frames = frames_to_transforms(skeleton.rest_pose().frames)
    out = frames.copy()
    for row, parent in enumerate(skeleton.parents):
        if parent >= 0:
            out[row] = np.linalg.inv(frames[parent]) @ frames[row]
    return out


def add_bind_pose(document: Document, places: Iterable[tuple[Record, Array]]) -> None:
    """Add the bind pose: the world matrix (4, 4) of each node in it."""
    pose = document.add("Pose", "BindPose", "Pose", "BindPose")
    pose.add("Type", "BindPose")
    pose.add("Version", 100)
    number = pose.add("NbPoseNodes", 0)
    for record, matrix in places:
        node = pose.add("PoseNode")
        node.add("Node", record.values[0])
        node.add("Matrix", matrix.T.ravel())  # column-major in the file
        number.values[0] += 1


def _angles(turn: Array) -> Array:
    """Return angles about x, y and z, degrees, of R = Rz · Ry · Rx."""
    side = float(np.hypot(turn[0, 0], turn[1, 0]))
    y = np.arctan2(-turn[2, 0], side)
    if side < _LOCKED:  # only the sum or the difference of the outer angles is determined
        return np.degrees([np.arctan2(-turn[1, 2], turn[1, 1]), y, 0.0])
    return np.degrees([np.arctan2(turn[2, 1], turn[2, 2]), y, np.arctan2(turn[1, 0], turn[0, 0])])


def _unused(name: str, taken: Iterable[str]) -> str:
    """Return a name, with underscores appended until it differs from all taken names."""
    while name in taken:
        name += "_"
    return name
