"""Write the skin of a character to a new glTF file: meshes, weights, materials, images and morph targets.

The position of a vertex v of a skin is Σ wᵢ Mᵢ Bᵢ v, with the world matrix Mᵢ of joint i's node and its inverse bind
matrix Bᵢ. The nodes of the new file are rigid: Mᵢ = Xᵢ Kᵢ, with the joint's frame Xᵢ and the constant Kᵢ = Xᵢ⁻¹ Mᵢ at
rest, which has the scales. With Aᵢ = Kᵢ Bᵢ and the joint's node N Xᵢ, where N maps to the file's world, the position is
Σ wᵢ N Xᵢ Aᵢ v. The file has the vertices u = S v, with S = N X₀ A₀ of the first joint at rest, and the inverse bind
matrices Aᵢ S⁻¹. So vertices are in metres, at their rest positions if bound in the rest pose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.io.nodes.skins import Material, Mesh, Skin
from synovia.model.geometry import Array

_MOST: Final = 4  # number of joints per vertex that all programs support
_LARGEST: Final = 1e30  # largest coordinate, well inside the range of float32
_FLAT: Final = 1e-12  # relative determinant of a matrix, below which the matrix counts as singular
_IMAGES: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_FLOAT, _SHORT, _INT = 5126, 5123, 5125
_CORNERS, _INDICES = 34962, 34963


class SkinWriter:
    """Writer of a skin.

    Args:
        content: The JSON of the file, which is changed.
        accessor: Appends values to the buffer; see ``Fresh.accessor``.
        view: Appends bytes to the buffer and returns the index of the view.
        rests: World matrices of the joints' nodes at rest, (n, 4, 4).
        frames: Frames of the joints at rest, in the world of the skeleton, (n, 4, 4).
    """

    def __init__(
        self, content: dict[str, Any], accessor: Callable[..., int], view: Callable[[bytes], int], rests: Array,
        frames: Array,
    ) -> None:  # fmt: skip
        """Store the arguments."""
        self.content, self.accessor, self.view = content, accessor, view
        self.rests, self.frames = rests, frames
        self.notes: list[str] = []
        self._materials: dict[tuple[object, ...], int] = {}
        self._images: dict[int, int] = {}
        self._skins: dict[bytes, int] = {}

    def add(self, skin: Skin, rows: Mapping[int, int]) -> list[int]:
        """Write all meshes, and return the indices of their nodes.

        Args:
            skin: The skin.
            rows: Skeleton rows by row of the skin.
        """
        nodes: list[int] = []
        crowded = 0
        for mesh in skin.meshes:
            if not len(mesh.faces):
                continue
            joints = [rows[row] for row in mesh.rows]
            each = np.linalg.inv(self.frames[joints]) @ skin.worlds[mesh.rows] @ mesh.binds
            if not np.isfinite(each).all() or np.abs(each).max(initial=0.0) * np.abs(mesh.vertices).max() > _LARGEST:
                self.notes.append(f"Mesh {mesh.name!r} is too large: left out.")
                continue
            used = np.unique(mesh.bones[mesh.weights > 0.0])
            first = int(used[0]) if len(used) else 0
            place = self.rests[joints[first]] @ each[first]
            linear = place[:3, :3]
            if not np.abs(np.linalg.det(linear)) > _FLAT * np.abs(linear).max() ** 3:
                place = np.eye(4)
            number = self._mesh(mesh, joints, place)
            crowded += bool(((mesh.weights > 0.0).sum(axis=1) > _MOST).any())
            node = {"name": mesh.name, "mesh": number, "skin": self._skin(joints, each @ np.linalg.inv(place))}
            self.content["nodes"].append(node)
            nodes.append(len(self.content["nodes"]) - 1)
        if crowded:
            self.notes.append(f"Some vertices have more than {_MOST} joints; some programs use only {_MOST}.")
        return nodes

    def _skin(self, joints: list[int], binds: Array) -> int:
        """Write the inverse bind matrices of all joints of the body, and return the index of the skin.

        Args:
            joints: Row of the body's joint for each bone of the mesh.
            binds: Inverse bind matrices of these bones, (bones, 4, 4).
        """
        inverse = np.linalg.inv(self.rests)
        inverse[joints] = binds
        inverse[:, 3] = (0.0, 0.0, 0.0, 1.0)
        columns = np.swapaxes(inverse, 1, 2).reshape(-1, 16).astype("<f4")
        if columns.tobytes() not in self._skins:
            matrices = self.accessor(columns, "MAT4", _FLOAT)
            every = self.content.setdefault("skins", [])
            every.append({"joints": list(range(len(inverse))), "inverseBindMatrices": matrices})
            self._skins[columns.tobytes()] = len(every) - 1
        return self._skins[columns.tobytes()]

    def _mesh(self, mesh: Mesh, joints: list[int], place: Array) -> int:
        """Write a mesh, its vertices transformed by ``place``, and return its index; for ``joints`` see ``_skin``."""
        linear = place[:3, :3]
        faces = mesh.faces[:, ::-1] if np.linalg.det(linear) < 0.0 else mesh.faces
        vertices = mesh.vertices @ linear.T + place[:3, 3]
        attributes = {"POSITION": self.accessor(vertices, "VEC3", _FLOAT, _CORNERS, bounds=True)}
        if mesh.normals is not None:
            attributes["NORMAL"] = self.accessor(_units(mesh.normals @ np.linalg.inv(linear)), "VEC3", _FLOAT, _CORNERS)
        if mesh.corners is not None:
            attributes["TEXCOORD_0"] = self.accessor(mesh.corners, "VEC2", _FLOAT, _CORNERS)
        if mesh.colours is not None:
            attributes["COLOR_0"] = self.accessor(mesh.colours, "VEC4", _FLOAT, _CORNERS)
        bones, weights = _by_joint(np.array(joints)[mesh.bones], mesh.weights)
        for number in range(bones.shape[1] // _MOST):
            part = slice(_MOST * number, _MOST * number + _MOST)
            attributes[f"JOINTS_{number}"] = self.accessor(bones[:, part], "VEC4", _SHORT, _CORNERS)
            attributes[f"WEIGHTS_{number}"] = self.accessor(weights[:, part], "VEC4", _FLOAT, _CORNERS)
        shapes = [
            {"POSITION": self.accessor(each.shifts @ linear.T, "VEC3", _FLOAT, _CORNERS, bounds=True)}
            for each in mesh.morphs
        ]
        parts: list[dict[str, Any]] = []
        for number in map(int, np.unique(mesh.material)):
            indices = self.accessor(faces[mesh.material == number].reshape(-1, 1), "SCALAR", _INT, _INDICES)
            painted = self._material(mesh.materials[number], mesh.corners is not None)
            parts.append({"attributes": attributes, "indices": indices, "material": painted})
            parts[-1] |= {"targets": shapes} if shapes else {}
        every = self.content.setdefault("meshes", [])
        every.append({"name": mesh.name, "primitives": parts})
        if shapes:
            every[-1]["weights"] = [each.weight for each in mesh.morphs]
            every[-1]["extras"] = {"targetNames": [each.name for each in mesh.morphs]}
        return len(every) - 1

    def _material(self, material: Material, mapped: bool) -> int:
        """Write a material unless it is already written, and return its index."""
        image = self._image(material) if mapped else None
        key = material.name, material.colour, image
        if key not in self._materials:
            paint: dict[str, Any] = {
                "baseColorFactor": list(material.colour), "metallicFactor": 0.0, "roughnessFactor": 0.8,
            }  # fmt: skip
            if image is not None:
                paint["baseColorTexture"] = {"index": image}
            element: dict[str, Any] = {"name": material.name, "pbrMetallicRoughness": paint, "doubleSided": True}
            if material.colour[3] < 1.0:
                element["alphaMode"] = "BLEND"
            every = self.content.setdefault("materials", [])
            every.append(element)
            self._materials[key] = len(every) - 1
        return self._materials[key]

    def _image(self, material: Material) -> int | None:
        """Write the image of a material if it is not yet written, and return its texture index; None without image."""
        data = material.image
        if data is None:
            return None
        if id(data) not in self._images:
            kind = next((kind for head, kind in _IMAGES.items() if data.startswith(head)), None)
            number = -1
            if kind is None:
                self.notes.append(f"The image {material.image_name!r} is neither PNG nor JPEG: left out.")
            else:
                images = self.content.setdefault("images", [])
                images.append({"name": material.image_name, "mimeType": kind, "bufferView": self.view(data)})
                textures = self.content.setdefault("textures", [])
                textures.append({"source": len(images) - 1})
                number = len(textures) - 1
            self._images[id(data)] = number
        number = self._images[id(data)]
        return number if number >= 0 else None


def _units(directions: Array) -> Array:
    """Return normalized directions; a zero vector becomes the upward direction."""
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    known = lengths > 0.0
    return np.where(known, directions / np.where(known, lengths, 1.0), (0.0, 1.0, 0.0))


def _by_joint(bones: NDArray[np.int64], weights: Array) -> tuple[NDArray[np.int64], Array]:
    """Return joints and weights of all vertices, (v, 4 k): each joint once, the largest weight first, with sum 1.

    A vertex without weights belongs to the first joint.
    """
    weights = np.maximum(weights, 0.0)
    order = np.argsort(bones, axis=1, kind="stable")
    bones, weights = np.take_along_axis(bones, order, 1), np.take_along_axis(weights, order, 1).copy()
    for column in range(bones.shape[1] - 1):  # sums the weights of a repeated joint
        again = bones[:, column] == bones[:, column + 1]
        weights[:, column + 1] += np.where(again, weights[:, column], 0.0)
        weights[:, column] = np.where(again, 0.0, weights[:, column])
    order = np.argsort(-weights, axis=1, kind="stable")
    bones, weights = np.take_along_axis(bones, order, 1), np.take_along_axis(weights, order, 1)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), 0.0)
    weights[total[:, 0] <= 0.0, 0] = 1.0
    width = max(int((weights.astype(np.float32) > 0.0).sum(axis=1).max()), 1)
    width = -(-width // _MOST) * _MOST
    pad = ((0, 0), (0, max(width - weights.shape[1], 0)))
    bones, weights = np.pad(bones, pad)[:, :width], np.pad(weights, pad)[:, :width]
    return np.where(weights.astype(np.float32) > 0.0, bones, 0), weights
