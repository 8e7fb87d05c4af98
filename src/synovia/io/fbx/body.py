"""Write the bones of a new FBX file: nodes, their attributes and the bind pose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from synovia.io.fbx.document import Document, block_of, set_property
from synovia.io.fbx.nodes import NORMAL, Node, turns
from synovia.io.fbx.records import Record
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms

_SIZE: Final = 0.3  # drawn size of a joint, as a fraction of the body's size; programs divide it by 100
_LOCKED: Final = 1e-9  # cosine of the middle angle; below it, the outer angles are not unique (gimbal lock)


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
        scale: Units of the file in one unit of the skeleton.
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
