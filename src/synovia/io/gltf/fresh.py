"""Make a new glTF file: the nodes of a skeleton at rest, a skin, and the shapes of the body as its mesh.

The joints are nodes with the same names. They are below an additional node (``frame``) if the body has several roots,
or is not in metres with y up, as the format requires. This node is marked, so that readers find the body below it. All
joints are listed in a skin, so that Blender makes an armature of them. A character has the meshes of its skin. For any
other body, the shapes become one mesh, each shape skinned to its joint. A body without shapes has no mesh, so programs
that show only meshes show nothing.

References:
    Khronos Group, *glTF 2.0 Specification* (ISO/IEC 12113:2022), sections 3.4, 3.7 and 3.10.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import SynoviaError
from synovia.io.base import as_utf8
from synovia.io.gltf.animation import WRITER
from synovia.io.gltf.container import Document
from synovia.io.gltf.fresh_skin import SkinWriter
from synovia.io.nodes.lengths import unit_of
from synovia.io.nodes.skins import Skin
from synovia.io.nodes.tree import Scene
from synovia.model import Skeleton
from synovia.model.geometry import Array, axis_vector, frames_to_transforms, matrix_to_quat
from synovia.model.tree import unused_name
from synovia.text import listed

_FRAME: Final = "frame"
_UP: Final = "y"
_AHEAD: Final = {"x": "z", "y": "z", "z": "-y"}  # assumed forward axis by upward axis, if the forward axis is unknown
_COLOUR: Final = (0.43, 0.49, 0.58, 1.0)  # default colour: linear red, green and blue, and opacity
_FLOAT, _BYTE, _SHORT, _INT = 5126, 5121, 5123, 5125
_CORNERS, _INDICES = 34962, 34963  # targets of buffer views
_SMALL: Final = 1e-12  # fraction of the squared size: if the area vectors at a vertex add up to less, its normal is z


class Fresh:
    """The content of a new file.

    Args:
        skeleton: The skeleton.
        name: Name of the scene.
        skin: The skin whose meshes are written; its joints are in the skeleton. None to write the shapes of the body
            as a mesh.
    """

    def __init__(self, skeleton: Skeleton, name: str, skin: Skin | None = None) -> None:
        """Write the nodes, the skin and the meshes."""
        as_utf8(json.dumps([name, *skeleton.joint_names], ensure_ascii=False), name)
        self.skeleton = skeleton
        self.data = bytearray()
        own = np.array([joint.rest for joint in skeleton.joints])
        self.scene = Scene(
            names=skeleton.joint_names,
            row_of={row: row for row in range(len(skeleton))},
            parents=skeleton.parents,
            moving=(True,) * len(skeleton),
            translation=own[:, :3, 3],
            rotation=matrix_to_quat(own[:, :3, :3]),
            scale=np.ones((len(skeleton), 3)),
            bind=np.full((len(skeleton), 3, 3), np.nan),
        )
        roots = [row for row, parent in enumerate(skeleton.parents) if parent < 0]
        nodes = [self._node(row) for row in range(len(skeleton))]
        frame, self.notes = file_frame(skeleton)
        if len(roots) > 1 or np.any(frame != np.eye(4)):
            nodes.append(self._frame(frame, roots))
            roots = [len(nodes) - 1]
        self.content: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": WRITER}, "scene": 0, "scenes": [{"name": name, "nodes": roots}],
            "nodes": nodes,
        }  # fmt: skip
        rests = self._rests(frame)
        if skin is not None and (rows := skin.rows_in(skeleton.joint_names)) is not None:
            self._dress(skin, rows, rests)
        if "skins" not in self.content:
            inverse = np.linalg.inv(rests)
            inverse[:, 3] = (0.0, 0.0, 0.0, 1.0)
            matrices = self.accessor(np.swapaxes(inverse, 1, 2).reshape(-1, 16), "MAT4", _FLOAT)
            self.content["skins"] = [{"joints": list(range(len(skeleton))), "inverseBindMatrices": matrices}]
            self._mesh(rests, name)

    def _rests(self, frame: Array) -> Array:
        """Return the world transforms of the nodes at rest, (n, 4, 4)."""
        out = np.empty((len(self.skeleton), 4, 4))
        for row, joint in enumerate(self.skeleton.joints):
            parent = self.skeleton.parents[row]
            out[row] = (frame if parent < 0 else out[parent]) @ joint.rest
        return out

    def _node(self, row: int) -> dict[str, Any]:
        """Return the node of a joint at rest."""
        children = list(self.skeleton.children[row])
        return {
            "name": self.skeleton.joint_names[row],
            "translation": self.scene.translation[row].tolist(),
            "rotation": self.scene.rotation[row].tolist(),
            **({"children": children} if children else {}),
        }

    def _frame(self, frame: Array, roots: list[int]) -> dict[str, Any]:
        """Return the node above all joints."""
        scale = float(np.cbrt(np.linalg.det(frame[:3, :3])))
        return {
            "name": unused_name(_FRAME, set(self.skeleton.joint_names)),
            "rotation": matrix_to_quat(frame[:3, :3] / scale).tolist(),
            "scale": [scale] * 3,
            "children": roots,
            "extras": {"generator": WRITER, _FRAME: True},
        }

    def _mesh(self, rests: Array, name: str) -> None:
        """Write the shapes of the body as one skinned mesh with its node; nothing for a body without shapes."""
        places: list[Array] = []
        normals: list[Array] = []
        faces: list[NDArray[np.int64]] = []
        rows: list[NDArray[np.int64]] = []
        lost: dict[str, dict[str, None]] = {}
        count = 0
        for row, joint in enumerate(self.skeleton.joints):
            for shape in joint.shapes:
                try:
                    parts = list(shape.triangles())
                except SynoviaError as error:
                    lost.setdefault(error.what, {})[str(self.skeleton.link_key(row))] = None
                    continue
                for vertices, triangles, flat in parts:
                    corners, own, turned = with_normals(vertices, triangles, flat=flat)
                    linear = rests[row, :3, :3]
                    places.append(corners @ linear.T + rests[row, :3, 3])
                    normals.append(own @ (linear / np.cbrt(np.linalg.det(linear))).T)
                    faces.append(turned + count)
                    rows.append(np.full(len(corners), row))
                    count += len(corners)
        self.notes += tuple(f"Shapes were not written ({why}) of {listed([*links])}." for why, links in lost.items())
        if not count:
            return
        joints = np.zeros((count, 4), "<u2")
        joints[:, 0] = np.concatenate(rows)
        weights = np.tile(np.array([255, 0, 0, 0], "<u1"), (count, 1))
        attributes = {
            "POSITION": self.accessor(np.concatenate(places), "VEC3", _FLOAT, _CORNERS, bounds=True),
            "NORMAL": self.accessor(np.concatenate(normals), "VEC3", _FLOAT, _CORNERS),
            "JOINTS_0": self.accessor(joints, "VEC4", _SHORT, _CORNERS),
            "WEIGHTS_0": self.accessor(weights, "VEC4", _BYTE, _CORNERS, normalized=True),
        }
        indices = self.accessor(np.concatenate(faces).reshape(-1, 1), "SCALAR", _INT, _INDICES)
        paint = {"baseColorFactor": list(_COLOUR), "metallicFactor": 0.0, "roughnessFactor": 0.8}
        self.content["materials"] = [{"name": "body", "pbrMetallicRoughness": paint, "doubleSided": True}]
        self.content["meshes"] = [
            {"name": name, "primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}
        ]
        self.content["nodes"].append({"name": unused_name("body_mesh", self._names()), "mesh": 0, "skin": 0})
        self.content["scenes"][0]["nodes"].append(len(self.content["nodes"]) - 1)

    def _dress(self, skin: Skin, rows: Mapping[int, int], rests: Array) -> None:
        """Write the skin of a character."""
        as_utf8(json.dumps([[mesh.name, *(one.name for one in mesh.materials)] for mesh in skin.meshes]), "skin")
        frames = frames_to_transforms(self.skeleton.rest_pose().frames)
        writer = SkinWriter(self.content, self.accessor, self.view, rests, frames)
        self.content["scenes"][0]["nodes"] += writer.add(skin, rows)
        self.notes += (*writer.notes, *skin.notes(morphs=True))

    def _names(self) -> set[str]:
        """Return the names of all nodes."""
        return {node["name"] for node in self.content["nodes"]}

    def view(self, data: bytes, target: int = 0) -> int:
        """Append bytes to the buffer and return the index of their view."""
        self.data += bytes(-len(self.data) % 4)
        views = self.content.setdefault("bufferViews", [])
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data)}
        views.append({**view, **({"target": target} if target else {})})
        self.data += data
        return len(views) - 1

    def accessor(
        self, values: NDArray[Any], kind: str, component: int, target: int = 0, *, bounds: bool = False,
        normalized: bool = False,
    ) -> int:  # fmt: skip
        """Append values to the buffer and return the index of their accessor."""
        dtype = {_FLOAT: "<f4", _BYTE: "<u1", _SHORT: "<u2", _INT: "<u4"}[component]
        numbers = np.ascontiguousarray(values, dtype)
        accessor: dict[str, Any] = {
            "bufferView": self.view(numbers.tobytes(), target), "componentType": component, "count": len(numbers),
            "type": kind,
        }  # fmt: skip
        if bounds:
            accessor |= {"min": numbers.min(0).tolist(), "max": numbers.max(0).tolist()}
        if normalized:
            accessor["normalized"] = True
        accessors = self.content.setdefault("accessors", [])
        accessors.append(accessor)
        return len(accessors) - 1


def file_frame(skeleton: Skeleton) -> tuple[Array, tuple[str, ...]]:
    """Return the transform from the world of a skeleton to that of a file: metres, y up, z forward, (4, 4).

    A body with y up or an unknown upward axis is not rotated. The second result is a sentence about the unit, if it is
    unknown: a humanoid becomes as tall as a person, and other bodies keep their values.
    """
    up, ahead = skeleton.up, skeleton.forward
    if up is None or up == _UP:
        up, ahead = "y", "z"
    elif ahead is None or ahead[-1] == up[-1]:
        ahead = _AHEAD[up[-1]]
    meters, notes = unit_of(skeleton, 1.0)
    return axes_frame(up, ahead, meters), notes


def axes_frame(up: str, ahead: str, unit: float) -> Array:
    """Return the transform to a world in metres with y up and z forward, (4, 4).

    Args:
        up: The upward axis.
        ahead: The forward axis.
        unit: Metres in one length unit.
    """
    out = np.eye(4)
    y, z = axis_vector(up), axis_vector(ahead)
    out[:3, :3] = np.stack([np.cross(y, z), y, z]) * unit
    return out


def below_frame(scene: Scene, document: Document, skeleton: Skeleton) -> Scene:
    """Return the nodes of a file without the marked node ``frame``, unless the skeleton includes this node."""
    nodes = document.root.list("nodes")
    first = next((node for node, row in scene.row_of.items() if row == 0), -1)
    extras: object = nodes[first].get("extras") if 0 <= first < len(nodes) else None
    marked = isinstance(extras, dict) and cast("dict[str, object]", extras).get(_FRAME) is True
    if not marked or scene.names[0] in skeleton.joint_names or scene.parents.count(-1) != 1:
        return scene
    return dataclasses.replace(
        scene,
        names=scene.names[1:],
        row_of={node: row - 1 for node, row in scene.row_of.items() if row},
        parents=tuple(max(parent - 1, -1) for parent in scene.parents[1:]),
        moving=scene.moving[1:],
        translation=scene.translation[1:],
        rotation=scene.rotation[1:],
        scale=scene.scale[1:],
        bind=scene.bind[1:],
        roles={row - 1: role for row, role in scene.roles.items() if row},
    )


def with_normals(vertices: Array, faces: NDArray[np.int64], *, flat: bool) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return vertices, unit normals and triangles of a convex part; with ``flat``, triangles share no vertices.

    Triangles are ordered counterclockwise as seen from outside.
    """
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outward = np.einsum("ij,ij->i", across, corners.mean(1) - vertices.mean(0))
    faces = np.where((outward < 0.0)[:, None], faces[:, ::-1], faces)
    across = np.where((outward < 0.0)[:, None], -across, across)
    if flat:
        places, sums = vertices[faces].reshape(-1, 3), np.repeat(across, 3, axis=0)
        faces = np.arange(len(places)).reshape(-1, 3)
    else:
        places, sums = vertices, np.zeros_like(vertices)
        for k in range(3):
            np.add.at(sums, faces[:, k], across)
    lengths = np.linalg.norm(sums, axis=1)
    size = float(np.ptp(vertices, axis=0).max()) if len(vertices) else 0.0
    known = lengths > _SMALL * size * size
    normals = np.where(known[:, None], sums / np.where(known, lengths, 1.0)[:, None], (0.0, 0.0, 1.0))
    return places, normals, faces
