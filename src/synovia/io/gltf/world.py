"""Read the obstacles of a glTF file: the convex hull of each node with a mesh.

The frame of an obstacle is the node's frame without scale, which is applied to the hull. Skinned meshes, and instances
that an extension makes, are left out with a note.

References:
    Khronos Group, *glTF 2.0 Specification* (ISO/IEC 12113:2022), sections 3.5 and 3.7.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from synovia.errors import SynoviaError
from synovia.io.gltf.accessors import read_accessor
from synovia.io.gltf.container import Document, read_document
from synovia.io.gltf.fields import Element
from synovia.io.gltf.scene import default_scene, local_of, parents_of
from synovia.model.geometry import Array, quat_to_matrix, rigid
from synovia.model.shapes.solids import ConvexHull
from synovia.model.shapes.world import Obstacle, World, unlike
from synovia.text import listed

_PACKED: Final = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")
_INSTANCES: Final = "EXT_mesh_gpu_instancing"


def read_world(path: Path) -> World:
    """Read the meshes of the default scene.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed.
    """
    return _Reader(read_document(path)).world(path)


class _Reader:
    """Reader of the meshes of one file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = document.root.items("nodes")
        self.above = parents_of(document.root, self.nodes)
        self.corners: dict[int, Array] = {}  # corners of the hulls of meshes, by mesh index
        self.lost: dict[str, list[str]] = {}  # names of nodes by reason

    def world(self, path: Path) -> World:
        """Return all obstacles."""
        names: list[str] = []
        found: list[tuple[ConvexHull, Array]] = []
        for number in sorted(default_scene(self.document.root, self.nodes)):
            node = self.nodes[number]
            if not node.has("mesh"):
                continue
            mesh = self.document.referred(node, "mesh", "meshes")
            name = node.text("name", "") or mesh.text("name", "") or f"node{number}"
            try:
                hull = self.obstacle(number, node, mesh)
            except SynoviaError as error:
                self.lost.setdefault(error.what, []).append(name)
                continue
            if hull is not None:
                names.append(name)
                found.append(hull)
        obstacles = tuple(
            Obstacle((hull,), name=name, transform=place)
            for name, (hull, place) in zip(unlike(names), found, strict=True)
        )
        notes = ["Each mesh is replaced by its convex hull, even if it is hollow or concave."] if obstacles else []
        notes += [f"Meshes were not kept ({why}), of nodes {listed(some)}." for why, some in self.lost.items()]
        return World(obstacles, meters_per_unit=1.0, up="y", notes=tuple(notes), source=path)

    def obstacle(self, number: int, node: Element, mesh: Element) -> tuple[ConvexHull, Array] | None:
        """Return the hull of a node's mesh in the obstacle's frame, and this frame; None if the node is left out.

        Raises:
            SynoviaError: If the mesh cannot be read.
        """
        extensions: Any = node.data.get("extensions")
        if node.has("skin") or (isinstance(extensions, dict) and _INSTANCES in cast("dict[str, Any]", extensions)):
            why = "they have a skin" if node.has("skin") else "they are instanced"
            self.lost.setdefault(why, []).append(node.text("name", "") or f"node{number}")
            return None
        key = node.integer("mesh")
        if key not in self.corners:
            self.corners[key] = self.read(mesh)
        matrix = self.matrix(number)
        points = self.corners[key]
        if not np.isfinite(matrix).all():
            raise node.error("has a world transform that is not finite")
        self.document.spend(points.size, node)
        u, _, vt = np.linalg.svd(matrix[:3, :3])
        turn = u @ vt if np.linalg.det(u @ vt) > 0.0 else np.eye(3)
        inner = turn.T @ matrix[:3, :3]
        return ConvexHull(points @ inner.T), rigid(matrix[:3, 3], turn)

    def read(self, mesh: Element) -> Array:
        """Read the corners of the hull of a mesh.

        Raises:
            SynoviaError: If the mesh cannot be read.
        """
        parts: list[Array] = []
        for primitive in mesh.items("primitives"):
            extensions = primitive.child("extensions")
            if extensions is not None and any(extensions.has(name) for name in _PACKED):
                raise mesh.error("they are compressed")
            attributes = primitive.child("attributes")
            if attributes is None or not attributes.has("POSITION"):
                raise mesh.error("they have no positions")
            parts.append(read_accessor(self.document, attributes, "POSITION", 3))
        if not parts:
            raise mesh.error("they have no primitives")
        return ConvexHull.around(np.concatenate(parts)).points

    def matrix(self, number: int) -> Array:
        """Return the world matrix of a node, (4, 4)."""
        matrix = np.eye(4)
        while number >= 0:
            translation, rotation, scale = local_of(self.nodes[number])
            matrix = rigid(translation, quat_to_matrix(rotation)) @ np.diag([*scale, 1.0]) @ matrix
            number = self.above[number]
        return matrix
