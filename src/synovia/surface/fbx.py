"""Read skins and meshes of FBX.

A vertex v of a skin has the position Σ wᵢ Mᵢ Bᵢ v, with the world matrix Mᵢ of the node of bone i and the matrix Bᵢ of
its cluster from the mesh to the bone; ``base.skin_part`` explains how rigid joints show it. Weights are scaled to a sum
of 1, as in FBX where clusters are normalised. Polygons are cut into triangles around their first corner.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.fbx.read import LOD_GROUP, Unpacked, node_tree, unpacked
from synovia.io.meshes import MOST_FACES
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.surface.base import (
    PLAIN,
    Colour,
    Faces,
    Part,
    Surface,
    colour_of,
    limited,
    rigid_part,
    skin_part,
    strongest,
    welded,
)

_FOUR: Final = 4  # bones of a vertex


def read_surface(path: Path, skeleton: Skeleton) -> Surface:
    """Return the meshes of a file.

    Raises:
        SynoviaError: If a mesh cannot be read.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _Reader(unpacked(path, meshes=True), skeleton).surface()


class _Reader:
    """Reader of the meshes of one file."""

    def __init__(self, found: Unpacked, skeleton: Skeleton) -> None:
        self.found = found
        self.nodes = found.tree.nodes
        self.row_of = node_tree(found).row_of
        self.rest = frames_to_transforms(skeleton.rest_pose().frames)
        places = found.array(found.content["places"], 12).reshape(-1, 2, 4, 3)
        self.worlds, self.inner = _matrices(places[:, 0]), _matrices(places[:, 1])
        self.known: dict[str, int] = {}  # number of meshes that are missing or differ from the file, by reason

    def surface(self) -> Surface:
        """Return all meshes."""
        parts = limited(self.parts())
        notes = (f"{count} mesh{'es' if count > 1 else ''} {why}" for why, count in self.known.items())
        return Surface(parts, tuple(notes))

    def note(self, why: str) -> None:
        """Count a mesh that is missing, or shown otherwise than in the file."""
        self.known[why] = self.known.get(why, 0) + 1

    def parts(self) -> Iterator[Part]:
        """Yield the meshes that can be shown, a part for each material."""
        for mesh in self.found.content["meshes"]:
            seen = [node for node in mesh["nodes"] if self.shown(node)]
            if not seen:
                if mesh["nodes"]:
                    self.note("that the file hides, or shows from afar")
                continue
            triangles, faces, normals = self.triangles(mesh)
            if not len(triangles):
                continue
            if mesh["weights"] and self.skin(mesh) is not None:
                for why, there in (
                    ("shown without blend shapes", mesh["morphed"]),
                    ("shown with linear skinning rather than that of dual quaternions", mesh["dual"]),
                    ("shown with the first of its skins", mesh["skins"] > 1),
                ):
                    if there:
                        self.note(why)
                yield from self.skinned(mesh, triangles, faces, normals)
                continue
            if mesh["morphed"]:
                self.note("shown without blend shapes")
            for node in seen:
                row = self.carrier(node)
                if row is None:
                    self.note("that belong to no joint")
                    continue
                yield from self.rigid(mesh, node, row, triangles, faces, normals)

    def shown(self, node: int) -> bool:
        """Return whether a node is visible, and the nearest of several levels of detail."""
        parent = self.nodes[node].parent
        if parent >= 0 and self.nodes[parent].kind == LOD_GROUP:
            return node == min(k for k, other in enumerate(self.nodes) if other.parent == parent)
        return self.nodes[node].visible

    def carrier(self, node: int) -> int | None:
        """Return the row of the joint that carries a node: its own, or that of the nearest node above."""
        while node >= 0:
            if node in self.row_of:
                return self.row_of[node]
            node = self.nodes[node].parent
        return None

    def triangles(self, mesh: dict[str, Any]) -> tuple[Faces, NDArray[np.int64], Array]:
        """Return corners (f, 3) of the triangles, the polygon of each, and the normals at all corners (c, 3)."""
        found = self.found
        polygons = found.numbers(mesh["faces"], np.uint32).reshape(-1, 2).astype(np.int64)
        corners = int(found.numbers(mesh["corners"], np.uint32).size)
        first, count = polygons[:, 0], polygons[:, 1]
        if len(polygons) and int((first + count).max()) > corners:
            raise FormatError("polygon beyond the corners of its mesh", where=f"{found.path}: mesh {mesh['name']!r}")
        if int(np.maximum(count - 2, 0).sum()) > MOST_FACES:
            raise FormatError(f"more than {MOST_FACES} triangles", where=f"{found.path}: mesh {mesh['name']!r}")
        each = np.maximum(count - 2, 0)
        polygon = np.repeat(np.arange(len(polygons)), each)
        step = np.arange(len(polygon)) - np.repeat(np.cumsum(each) - each, each)
        start = first[polygon]
        triangles = np.stack([start, start + step + 1, start + step + 2], axis=1)
        values = found.array(mesh["normals"], 3)
        numbers = found.numbers(mesh["normal_corners"], np.uint32).astype(np.int64)
        if len(numbers) != corners or not len(values) or numbers.max(initial=0) >= len(values):
            return triangles, polygon, np.zeros((corners, 3))
        return triangles, polygon, np.round(np.nan_to_num(values[numbers]), 3)

    def by_colour(
        self, mesh: dict[str, Any], triangles: Faces, polygon: NDArray[np.int64]
    ) -> Iterator[tuple[Colour, Faces]]:
        """Yield the triangles of each colour, as corners."""
        colours = [PLAIN if colour is None else colour_of(colour) for colour in mesh["colours"]] or [PLAIN]
        material = self.found.numbers(mesh["materials"], np.uint32).astype(np.int64)
        if len(material) <= polygon.max(initial=-1):
            material = np.zeros(int(polygon.max()) + 1, np.int64)
        number = np.minimum(material[polygon], len(colours) - 1)
        for own in np.unique(number):
            yield colours[own], triangles[number == own]

    def merged(self, mesh: dict[str, Any], corners: Faces, normals: Array) -> tuple[NDArray[np.int64], Faces]:
        """Return the vertices to show, and triangles of these; corners share a vertex where their normals agree."""
        index = self.found.numbers(mesh["corners"], np.uint32).astype(np.int64)
        if index.max(initial=0) >= len(self.found.array(mesh["vertices"], 3)):
            raise FormatError("no such vertex", where=f"{self.found.path}: mesh {mesh['name']!r}")
        used, back = np.unique(corners, return_inverse=True)
        first, faces, _ = welded(back.reshape(-1, 3), index[used][:, None], normals[used])
        return index[used][first], faces

    def skinned(
        self, mesh: dict[str, Any], triangles: Faces, polygon: NDArray[np.int64], normals: Array
    ) -> Iterator[Part]:
        """Yield the parts of a mesh that a skin bends."""
        skin = self.skin(mesh)
        if skin is None:
            return
        vertices = self.found.array(mesh["vertices"], 3)
        bones, weights = self.influences(mesh, len(vertices))
        for colour, corners in self.by_colour(mesh, triangles, polygon):
            first, faces = self.merged(mesh, corners, normals)
            if len(faces):
                yield skin_part(vertices[first], faces, skin, bones[first], weights[first], colour)[0]

    def skin(self, mesh: dict[str, Any]) -> tuple[NDArray[np.int64], Array, Array] | None:
        """Return the rows of the bones, their frames at rest, and what moves vertices into these; None without any."""
        nodes = [int(bone) for bone, *_ in mesh["weights"]]
        rows = np.array([self.row_of.get(node, -1) for node in nodes], np.int64)
        if not len(rows) or rows.min() < 0:
            return None
        binds = _matrices(np.array([self.found.array(bind, 12)[0] for _, bind, *_ in mesh["weights"]]))
        frames = self.rest[rows]
        each = np.linalg.inv(frames) @ self.worlds[nodes] @ binds
        if not np.isfinite(each).all():
            raise FormatError("bind matrices are not finite", where=f"{self.found.path}: mesh {mesh['name']!r}")
        return rows, frames, each

    def influences(self, mesh: dict[str, Any], count: int) -> tuple[NDArray[np.int64], Array]:
        """Return the four bones with the largest weights of each vertex, (v, 4), and the weights, sum 1."""
        bones, weights = np.zeros((count, _FOUR), np.int64), np.zeros((count, _FOUR))
        for bone, (_, _, vertices, values) in enumerate(mesh["weights"]):
            at, own = self.found.numbers(vertices, np.uint32).astype(np.int64), self.found.numbers(values, np.float64)
            good = (at < count) & (own > 0.0)
            at, own = at[good], own[good]
            least = weights[at].argmin(axis=1)  # each bone takes the place of the weakest one
            better = own > weights[at, least]
            at, own, least = at[better], own[better], least[better]
            bones[at, least], weights[at, least] = bone, own
        return strongest(bones, weights)

    def rigid(
        self, mesh: dict[str, Any], node: int, row: int, triangles: Faces, polygon: NDArray[np.int64], normals: Array
    ) -> Iterator[Part]:
        """Yield the parts of a mesh that one joint carries."""
        frame: Array = self.rest[row]
        inside: Array = np.linalg.inv(frame) @ self.worlds[node] @ self.inner[node]
        vertices = self.found.array(mesh["vertices"], 3)
        for colour, corners in self.by_colour(mesh, triangles, polygon):
            first, faces = self.merged(mesh, corners, normals)
            placed = vertices[first] @ inside[:3, :3].T + inside[:3, 3]
            if np.linalg.det(inside[:3, :3]) < 0.0:
                faces = faces[:, ::-1]
            if len(faces):
                yield rigid_part(placed, faces, row, frame, colour, flat=False)


def _matrices(columns: Array) -> Array:
    """Return matrices (n, 4, 4) from their columns (n, 4, 3), in any shape."""
    out = np.tile(np.eye(4), (columns.size // 12, 1, 1))
    out[:, :3] = columns.reshape(-1, 4, 3).swapaxes(1, 2)
    return out
