"""Read the meshes of FBX files, with their materials, images, skins and blend shapes.

Polygons are cut into triangles around their first corner. Corners share a vertex if their control point, normal,
texture coordinates and colour agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError, SynoviaError
from synovia.io.base import most_numbers, read_bytes
from synovia.io.fbx.read import LOD_GROUP, Unpacked, node_tree, unpacked
from synovia.io.meshes import MOST_FACES
from synovia.io.nodes.skins import Material, Mesh, Morph, Skin, Whole
from synovia.model.geometry import Array

_MOST: Final = 8  # largest number of bones of a vertex
_SEEN: Final = 1e-3  # smaller opacities count as full opacity, because some programs write 0 for opaque materials
_FOLDERS: Final = ("", "textures", "Textures", "{stem}.fbm")  # folders of images, relative to the file's folder


def read_skin(path: Path) -> Skin:
    """Read the meshes of an FBX file: skinned meshes, and meshes attached rigidly to a joint.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed.
        MissingExtraError: If ``ufbx`` is not installed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _Reader(unpacked(path, meshes=True)).skin()


class _Reader:
    """Reader of the meshes of one file."""

    def __init__(self, found: Unpacked) -> None:
        self.found = found
        self.nodes = found.tree.nodes
        scene = node_tree(found)
        self.names, self.row_of = scene.names, scene.row_of
        places = found.array(found.content["places"], 12).reshape(-1, 2, 4, 3)
        self.worlds, self.inner = _matrices(places[:, 0]), _matrices(places[:, 1])
        if not (np.isfinite(self.worlds).all() and np.isfinite(self.inner).all()):
            raise FormatError("a node has a transform that is not finite", where=str(found.path))
        self.lost, self.changed = Counter[str](), Counter[str]()
        self.images: dict[int, tuple[str, bytes | None]] = {}
        self.left = most_numbers(found.size)  # number of values that blend shapes may still have
        self.faces = 0

    def skin(self) -> Skin:
        """Return all meshes."""
        worlds = np.tile(np.eye(4), (len(self.names), 1, 1))
        for node, row in self.row_of.items():
            if node < len(self.worlds):
                worlds[row] = self.worlds[node]
        return Skin(self.names, worlds, list(self.meshes()), self.lost, self.changed)

    def meshes(self) -> Iterator[Mesh]:
        """Yield the meshes: a skinned mesh once, any other mesh once for each node that shows it."""
        for mesh in self.found.content["meshes"]:
            nodes: list[int] = mesh["nodes"]
            seen = [node for node in nodes if self.shown(node)]
            if not seen:
                self.lost["that are hidden, or only shown from afar"] += bool(nodes)
                continue
            rows = [self.row_of.get(int(bone), -1) for bone, *_ in mesh["weights"]]
            skinned = bool(rows) and min(rows) >= 0
            carriers = [(node, self.carrier(node)) for node in seen]
            self.lost["that belong to no joint"] += 0 if skinned else sum(row is None for _, row in carriers)
            if not skinned and all(row is None for _, row in carriers):
                continue
            surface = self.surface(mesh)
            if surface is None:
                continue
            shape, index = surface
            shape.name = str(mesh["name"]) or self.nodes[seen[0]].name
            shape.morphs = list(self.morphs(mesh, index))
            shape.unread = len(mesh["morphs"]) - len(shape.morphs)
            if skinned:
                self.changed["with linear instead of dual-quaternion skinning"] += mesh["dual"]
                self.changed["with the first of its skins"] += mesh["skins"] > 1
                shape.rows, shape.binds = rows, self.binds(mesh)
                bones, weights = self.influences(mesh)
                shape.bones, shape.weights = bones[index], weights[index]
                yield shape
                continue
            for node, row in carriers:
                if row is not None:
                    yield self._attached(shape, node, row)
        self.lost, self.changed = +self.lost, +self.changed

    def _attached(self, mesh: Mesh, node: int, row: int) -> Mesh:
        """Return a copy of a mesh for a node, attached rigidly to a joint."""
        joint = next(number for number, other in self.row_of.items() if other == row)
        world = self.worlds[joint] if joint < len(self.worlds) else np.eye(4)
        binds = (np.linalg.pinv(world) @ self.worlds[node] @ self.inner[node])[None]
        count = len(mesh.vertices)
        return Mesh(
            self.nodes[node].name or mesh.name, mesh.vertices, mesh.faces, [row], binds,
            np.zeros((count, 1), np.int64), np.ones((count, 1)), mesh.normals, mesh.corners, mesh.colours,
            mesh.materials, mesh.material, mesh.morphs, mesh.unread,
        )  # fmt: skip

    def shown(self, node: int) -> bool:
        """Return whether a node is visible; of several levels of detail, only the finest is."""
        parent = self.nodes[node].parent
        if parent >= 0 and self.nodes[parent].kind == LOD_GROUP:
            return node == min(k for k, other in enumerate(self.nodes) if other.parent == parent)
        return self.nodes[node].visible

    def carrier(self, node: int) -> int | None:
        """Return the row of the joint to which a node is attached: itself or the nearest ancestor; None without one."""
        while node >= 0:
            if node in self.row_of:
                return self.row_of[node]
            node = self.nodes[node].parent
        return None

    def where(self, mesh: dict[str, Any]) -> str:
        """Return the location of a mesh, for messages."""
        return f"{self.found.path}: mesh {mesh['name']!r}"

    def surface(self, mesh: dict[str, Any]) -> tuple[Mesh, Whole] | None:
        """Return a mesh without skin and blend shapes, and each vertex's index in the file; None without faces."""
        found = self.found
        polygons = found.numbers(mesh["faces"], np.uint32).reshape(-1, 2).astype(np.int64)
        index = found.numbers(mesh["corners"], np.uint32).astype(np.int64)
        vertices = found.array(mesh["vertices"], 3)
        first, count = polygons[:, 0], polygons[:, 1]
        if len(polygons) and int((first + count).max()) > len(index):
            raise FormatError("polygon exceeds the corners of its mesh", where=self.where(mesh))
        if index.max(initial=0) >= len(vertices):
            raise FormatError("polygon has an unknown vertex", where=self.where(mesh))
        each = np.maximum(count - 2, 0)
        self.faces += int(each.sum())
        if self.faces > MOST_FACES:
            raise FormatError(f"more than {MOST_FACES} triangles", where=self.where(mesh))
        polygon = np.repeat(np.arange(len(polygons)), each)
        if not len(polygon):
            return None
        step = np.arange(len(polygon)) - np.repeat(np.cumsum(each) - each, each)
        start = first[polygon]
        triangles = np.stack([start, start + step + 1, start + step + 2], axis=1)
        used, back = np.unique(triangles, return_inverse=True)
        parts = [self.of_corners(mesh, kind, width) for kind, width in (("normals", 3), ("uvs", 2), ("colours", 4))]
        columns = [index[used][:, None], *(part[used] for part in parts if part is not None)]
        _, kept, again = np.unique(np.hstack(columns), axis=0, return_index=True, return_inverse=True)
        corner = used[kept]
        normals, uvs, colours = (None if part is None else part[corner] for part in parts)
        if not np.isfinite(vertices[index[corner]]).all():
            raise FormatError("a mesh has vertices that are not finite", where=self.where(mesh))
        shape = Mesh(
            "", vertices[index[corner]], again.reshape(-1)[back.reshape(-1, 3)], [], np.zeros((0, 4, 4)),
            np.zeros((len(corner), 1), np.int64), np.ones((len(corner), 1)), normals,
            None if uvs is None else np.column_stack([uvs[:, 0], 1.0 - uvs[:, 1]]),
            None if colours is None else np.clip(colours, 0.0, 1.0),
            self.materials(mesh), self.painted(mesh, polygon),
        )  # fmt: skip
        return shape, index[corner]

    def of_corners(self, mesh: dict[str, Any], kind: str, width: int) -> Array | None:
        """Return an attribute of all polygon corners of a mesh, (c, width); None if the mesh lacks it."""
        values = self.found.array(mesh[kind][0], width)
        numbers = self.found.numbers(mesh[kind][1], np.uint32).astype(np.int64)
        corners = self.found.numbers(mesh["corners"], np.uint32).size
        if len(numbers) != corners or not len(values) or numbers.max(initial=0) >= len(values):
            return None
        return np.nan_to_num(values[numbers], posinf=0.0, neginf=0.0)

    def painted(self, mesh: dict[str, Any], polygon: NDArray[np.int64]) -> Whole:
        """Return the material index of each triangle."""
        number = self.found.numbers(mesh["materials"], np.uint32).astype(np.int64)
        if len(number) <= polygon.max(initial=-1):
            return np.zeros(len(polygon), np.int64)
        return np.minimum(number[polygon], max(len(mesh["paint"]) - 1, 0))

    def materials(self, mesh: dict[str, Any]) -> list[Material]:
        """Return the materials of a mesh, at least one."""
        return [self.material(paint) for paint in mesh["paint"]] or [Material("material", plain=True)]

    def material(self, paint: list[Any] | None) -> Material:
        """Return a material; an image replaces the colour."""
        if paint is None:
            return Material("material", plain=True)
        name, colour, number = paint
        seen = float(np.nan_to_num(colour[3])) if colour is not None else 1.0
        seen = min(seen, 1.0) if seen > _SEEN else 1.0
        out = Material(name or "material", plain=colour is None or number >= 0)
        if colour is not None and number < 0:
            red, green, blue = (float(np.clip(np.nan_to_num(part), 0.0, 1.0)) for part in colour[:3])
            out.colour = red, green, blue, seen
            return out
        out.colour = 1.0, 1.0, 1.0, seen
        if number >= 0:
            out.image_name, out.image = self.image(number)
            out.plain = out.image is None
        return out

    def image(self, number: int) -> tuple[str, bytes | None]:
        """Return the name and the bytes of an image, from the FBX file or from an image file near it."""
        if number not in self.images:
            names, place = next(image for key, image in self.found.content["images"] if key == number)
            start, length = place
            data: bytes | None = bytes(self.found.body[start : start + length])
            plain = [PurePosixPath(name.replace("\\", "/")) for name in names]
            if not data:
                data = self.sibling(plain)
            self.images[number] = plain[0].name if plain else f"image{number}", data
            if data is None:
                self.changed[f"without the image {self.images[number][0]!r}, which was not found"] += 1
        return self.images[number]

    def sibling(self, names: list[PurePosixPath]) -> bytes | None:
        """Return the bytes of an image in the folder of the FBX file or in a subfolder; None if there is none."""
        folder = self.found.path.parent
        for name in names:
            inside = [str(name)] if not name.is_absolute() and ".." not in name.parts else []
            inside += [f"{each.format(stem=self.found.path.stem)}/{name.name}".lstrip("/") for each in _FOLDERS]
            for each in inside:
                try:
                    place = (folder / each).resolve()
                    if name.name and place.is_relative_to(folder.resolve()) and place.is_file():
                        return read_bytes(place)
                except (OSError, RuntimeError, ValueError, SynoviaError):
                    continue
        return None

    def binds(self, mesh: dict[str, Any]) -> Array:
        """Return the matrices from a mesh to the nodes of its bones, (b, 4, 4)."""
        binds = _matrices(np.array([self.found.array(bind, 12)[0] for _, bind, *_ in mesh["weights"]]))
        if not np.isfinite(binds).all():
            raise FormatError("bind matrices are not finite", where=self.where(mesh))
        return binds

    def influences(self, mesh: dict[str, Any]) -> tuple[Whole, Array]:
        """Return the bones with the largest weights for each vertex in the file, (v, k), and these weights, (v, k)."""
        found, count = self.found, len(self.found.array(mesh["vertices"], 3))
        vertices = [found.numbers(part, np.uint32).astype(np.int64) for _, _, part, _ in mesh["weights"]]
        values = [found.numbers(part, np.float64) for *_, part in mesh["weights"]]
        at, own = np.concatenate(vertices), np.concatenate(values)
        bone = np.repeat(np.arange(len(vertices)), [len(part) for part in vertices])
        good = (at < count) & (own > 0.0) & np.isfinite(own)
        at, own, bone = at[good], own[good], bone[good]
        order = np.lexsort((-own, at))
        at, own, bone = at[order], own[order], bone[order]
        rank = np.arange(len(at)) - np.searchsorted(at, at)
        self.changed[f"with the {_MOST} strongest bones of each vertex"] += bool(rank.max(initial=0) >= _MOST)
        kept = rank < _MOST
        width = int(rank[kept].max(initial=0)) + 1
        bones, weights = np.zeros((count, width), np.int64), np.zeros((count, width))
        bones[at[kept], rank[kept]], weights[at[kept], rank[kept]] = bone[kept], own[kept]
        return bones, weights

    def morphs(self, mesh: dict[str, Any], index: Whole) -> Iterator[Morph]:
        """Yield the blend shapes of a mesh, as long as the limit for the file's size allows.

        Args:
            mesh: The mesh.
            index: Index in the file of each vertex.
        """
        count = len(self.found.array(mesh["vertices"], 3))
        for number, (name, weight, moved, far) in enumerate(mesh["morphs"]):
            self.left -= 3 * len(index)
            if self.left < 0:
                return
            at, shifts = self.found.numbers(moved, np.uint32).astype(np.int64), self.found.array(far, 3)
            good = (at[: len(shifts)] < count) & np.isfinite(shifts[: len(at)]).all(axis=1)
            every = np.zeros((count, 3))
            every[at[: len(shifts)][good]] = shifts[: len(at)][good]
            yield Morph(name or f"shape{number}", every[index], float(np.nan_to_num(weight)))


def _matrices(columns: Array) -> Array:
    """Return matrices (n, 4, 4) from their columns, (n, 4, 3) or the same numbers in another shape."""
    out = np.tile(np.eye(4), (columns.size // 12, 1, 1))
    out[:, :3] = columns.reshape(-1, 4, 3).swapaxes(1, 2)
    return out
