"""Read the meshes of a glTF file, their materials, and the joints that move them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import SynoviaError
from synovia.io.gltf.accessors import read_accessor
from synovia.io.gltf.container import Document, read_document
from synovia.io.gltf.fields import Element
from synovia.io.gltf.scene import local_of, parents_of, read_scene
from synovia.io.nodes.skins import UNMORPHED, Material, Mesh, Skin, Whole
from synovia.model.geometry import Array, quat_to_matrix, rigid

_TRIANGLES: Final = 4  # primitive mode of triangles
_INSTANCES: Final = "EXT_mesh_gpu_instancing"
_SETS: Final = 4  # largest number of JOINTS_n and WEIGHTS_n attributes that are read; each has four joints
_PACKED: Final = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")


def identities(count: int) -> Array:
    """Return identity matrices (count, 4, 4)."""
    return np.tile(np.eye(4), (count, 1, 1))


def node_worlds(document: Document) -> Array:
    """Return the world matrices of all nodes at rest, (n, 4, 4)."""
    nodes = document.root.items("nodes")
    above = parents_of(document.root, nodes)
    out = identities(len(nodes))
    done = np.zeros(len(nodes), bool)
    for number in range(len(nodes)):
        trail: list[int] = []
        at = number
        while at >= 0 and not done[at]:
            trail.append(at)
            at = above[at]
        for each in reversed(trail):
            translation, rotation, scale = local_of(nodes[each])
            local = rigid(translation, quat_to_matrix(rotation)) @ np.diag([*scale, 1.0])
            out[each] = local if above[each] < 0 else out[above[each]] @ local
            done[each] = True
    return out


def read_skin(path: Path) -> Skin:
    """Read the meshes of a glTF or GLB file: skinned meshes, and meshes attached rigidly to a joint.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed.
        UnsupportedError: If data of a mesh are compressed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _Reader(read_document(path)).skin()


class _Reader:
    """Reader of the meshes of one file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.scene = read_scene(document)
        self.row_of = self.scene.row_of
        self.nodes = document.root.items("nodes")
        self.above, self.worlds = parents_of(document.root, self.nodes), node_worlds(document)
        self.lost, self.changed = Counter[str](), Counter[str]()
        self._images: dict[int, bytes | None] = {}

    def skin(self) -> Skin:
        """Return all meshes of triangles."""
        nodes = sorted(self.row_of, key=self.row_of.__getitem__)
        return Skin(self.scene.names, self.worlds[nodes], list(self.meshes()), self.lost, self.changed)

    def meshes(self) -> Iterator[Mesh]:
        """Yield up to two meshes for each node with a mesh: its skinned primitives, and its rigid primitives."""
        for number, node in enumerate(self.nodes):
            if not node.has("mesh"):
                continue
            element = self.document.referred(node, "mesh", "meshes")
            owner = node if node.has("weights") else element
            morphed = any(isinstance(weight, int | float) and weight for weight in owner.list("weights"))
            extensions = node.child("extensions")
            several = extensions is not None and extensions.has(_INSTANCES)
            for how, there in ((UNMORPHED, morphed), ("once, without further instances", several)):
                if there:
                    self.changed[how] += 1
            name = node.text("name", "") or element.text("name", "") or f"mesh{number}"
            parts = [part for part in element.items("primitives") if self.readable(number, part)]
            for skinned in (True, False):  # primitives without weights are rigid, even if the node has a skin
                own = [part for part in parts if self.bends(number, part) == skinned]
                if own:
                    rows, binds = self.skin_of(node, len(own)) if skinned else self.rigid(number)
                    yield _joined(name, [self.part(part, rows, skinned=skinned) for part in own], rows, binds)

    def bends(self, number: int, part: Element) -> bool:
        """Return whether a primitive of a node is skinned."""
        attributes = part.child("attributes")
        return self.nodes[number].has("skin") and attributes is not None and attributes.has("JOINTS_0")

    def readable(self, number: int, part: Element) -> bool:
        """Return whether a primitive of a node can be read; count an unreadable primitive as lost."""
        attributes, packed = part.child("attributes"), part.child("extensions")
        why = ""
        if attributes is None or not attributes.has("POSITION"):
            why = "without positions"
        elif part.integer("mode", default=_TRIANGLES) != _TRIANGLES:
            why = "of points, lines or strips"
        elif packed is not None and any(packed.has(name) for name in _PACKED):
            why = "with mesh compression (export the file without it)"
        elif not self.bends(number, part) and self.carrier(number) < 0:
            why = "that belong to no joint"
        if why:
            self.lost[why] += 1
        return not why

    def carrier(self, number: int) -> int:
        """Return the joint node to which a node is attached: itself, or its nearest ancestor; -1 for none."""
        while number >= 0 and number not in self.row_of:
            number = self.above[number]
        return number

    def rigid(self, number: int) -> tuple[list[int], Array]:
        """Return the row of the joint to which a node is attached, and the matrix from node to joint, (1, 4, 4)."""
        carrier = self.carrier(number)
        joint: Array = self.worlds[carrier]
        node: Array = self.worlds[number]
        return [self.row_of[carrier]], (np.linalg.pinv(joint) @ node)[None]

    def skin_of(self, node: Element, parts: int) -> tuple[list[int], Array]:
        """Return the rows of the joints of a node's skin, and its inverse bind matrices, (b, 4, 4).

        Args:
            node: The node.
            parts: Number of primitives; each may copy the matrices, which counts against the memory limit.
        """
        skin = self.document.referred(node, "skin", "skins")
        joints = skin.indices("joints", len(self.nodes), "node")
        self.document.spend(16 * len(joints) * parts, skin)
        binds = identities(len(joints))
        if skin.has("inverseBindMatrices"):
            found = read_accessor(self.document, skin, "inverseBindMatrices", 16)
            if len(found) < len(joints):
                raise skin.error("has too few inverse bind matrices", value=len(found), expected=str(len(joints)))
            binds[:] = found[: len(joints)].reshape(-1, 4, 4).swapaxes(1, 2)  # column-major in the file
        return [self.row_of[joint] for joint in joints], binds

    def part(self, part: Element, rows: list[int], *, skinned: bool) -> Mesh:
        """Read a primitive as a mesh."""
        attributes = part.child("attributes") or part
        vertices = read_accessor(self.document, attributes, "POSITION", 3)
        count = len(vertices)
        if part.has("indices"):
            numbers = read_accessor(self.document, part, "indices", 1)[:, 0].astype(np.int64)
        else:
            numbers = np.arange(count)
        numbers = numbers[: len(numbers) - len(numbers) % 3]
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
            raise part.error("no such vertex", "indices", value=int(numbers.max()), expected=f"below {count}")
        bones, weights = np.zeros((count, 1), np.int64), np.ones((count, 1))
        if skinned:
            bones, weights = self.influences(attributes, count, len(rows))
        material, uv = self.material(part)
        return Mesh(
            "", vertices, numbers.reshape(-1, 3), rows, np.zeros((0, 4, 4)), bones, weights,
            self.of_vertices(attributes, "NORMAL", 3, count) if attributes.has("NORMAL") else None,
            self.of_vertices(attributes, uv, 2, count) if attributes.has(uv) else None,
            self.colours(attributes, count), [material], unread=len(part.list("targets")),
        )  # fmt: skip

    def of_vertices(self, attributes: Element, name: str, width: int, count: int, *, unit: bool = False) -> Array:
        """Read an attribute of all vertices, (count, width)."""
        values = read_accessor(self.document, attributes, name, width, unit=unit)
        if len(values) != count:
            what = "has another number of vertices than POSITION"
            raise attributes.error(what, name, value=len(values), expected=str(count))
        return values

    def influences(self, attributes: Element, count: int, joints: int) -> tuple[Whole, Array]:
        """Return the joints of each vertex as indices into the skin's joints, (v, k), and their weights, (v, k)."""
        bones, weights = np.zeros((count, 0), np.int64), np.zeros((count, 0))
        for number in range(_SETS):
            if not attributes.has(f"JOINTS_{number}"):
                break
            own = self.of_vertices(attributes, f"JOINTS_{number}", 4, count).astype(np.int64)
            bones = np.hstack([bones, own])
            weights = np.hstack([weights, self.of_vertices(attributes, f"WEIGHTS_{number}", 4, count, unit=True)])
        weights = np.maximum(weights, 0.0)
        bones = np.where(weights > 0.0, bones, 0)
        if bones.max(initial=0) >= joints:
            raise attributes.error("no such joint in the skin", value=int(bones.max()), expected=f"below {joints}")
        return bones, weights

    def colours(self, attributes: Element, count: int) -> Array | None:
        """Return the vertex colours, (v, 4); None if there are none."""
        if not attributes.has("COLOR_0"):
            return None
        wide = self.document.referred(attributes, "COLOR_0", "accessors").text("type", "") == "VEC4"
        colours = np.clip(self.of_vertices(attributes, "COLOR_0", 4 if wide else 3, count, unit=True), 0.0, 1.0)
        return colours if wide else np.hstack([colours, np.ones((count, 1))])

    def material(self, part: Element) -> tuple[Material, str]:
        """Return the material of a primitive, and the name of the attribute with its texture coordinates."""
        uv = "TEXCOORD_0"
        if not part.has("material") or not self.document.root.list("materials"):
            return Material("material", plain=True), uv
        element = self.document.referred(part, "material", "materials")
        surface = element.child("pbrMetallicRoughness")
        out = Material(element.text("name", "") or f"material{part.integer('material')}", plain=True)
        if surface is None:
            return out, uv
        red, green, blue, opacity = surface.numbers("baseColorFactor", 4, (1.0, 1.0, 1.0, 1.0))
        out.colour = red, green, blue, opacity
        link = surface.child("baseColorTexture")
        out.plain = link is not None or not surface.has("baseColorFactor")
        if link is None:
            return out, uv
        uv = f"TEXCOORD_{link.integer('texCoord', default=0)}"
        texture = self.document.referred(link, "index", "textures")
        if texture.has("source"):
            image, number = self.document.referred(texture, "source", "images"), texture.integer("source")
            out.image = self.image(image, number)
            if out.image is not None:
                ending = ".png" if out.image.startswith(b"\x89PNG") else ".jpg"
                out.image_name = (image.text("name", "") or f"image{number}") + ending
        return out, uv

    def image(self, element: Element, number: int) -> bytes | None:
        """Return the bytes of an image; None if its file is missing."""
        if number not in self._images:
            if element.has("bufferView"):
                view = self.document.referred(element, "bufferView", "bufferViews")
                start = view.integer("byteOffset", default=0)
                self._images[number] = bytes(self.document.buffer(view)[start : start + view.integer("byteLength")])
            else:
                try:
                    self._images[number] = self.document.linked(element)
                except SynoviaError:
                    self._images[number] = None
                    self.changed[f"without the image {element.text('uri', '')[:80]!r}, which was not found"] += 1
        return self._images[number]


def _joined(name: str, parts: list[Mesh], rows: list[int], binds: Array) -> Mesh:
    """Return the primitives of a mesh as one mesh, with each material once, and without unused vertices."""
    parts = [_trimmed(part) for part in parts] if len(parts) > 1 else parts
    keys = [(each := part.materials[0]).name + repr((each.colour, each.image_name, each.plain)) for part in parts]
    kinds = {key: part.materials[0] for key, part in zip(keys, parts, strict=True)}
    number = {key: at for at, key in enumerate(kinds)}
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])[:-1]
    most = max(part.bones.shape[1] for part in parts)

    def every(attribute: str, usual: Callable[[Mesh], Array]) -> Array | None:
        """Return an attribute of all vertices; None if no primitive has the attribute."""
        found = [getattr(part, attribute) for part in parts]
        if all(values is None for values in found):
            return None
        return np.concatenate([usual(part) if v is None else v for part, v in zip(parts, found, strict=True)])

    return Mesh(
        name,
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)]),
        rows,
        binds,
        np.concatenate([np.pad(part.bones, ((0, 0), (0, most - part.bones.shape[1]))) for part in parts]),
        np.concatenate([np.pad(part.weights, ((0, 0), (0, most - part.weights.shape[1]))) for part in parts]),
        every("normals", _normals),
        every("corners", lambda part: np.zeros((len(part.vertices), 2))),
        every("colours", lambda part: np.ones((len(part.vertices), 4))),
        list(kinds.values()),
        np.repeat([number[key] for key in keys], [len(part.faces) for part in parts]),
        unread=max(part.unread for part in parts),
    )


def _trimmed(part: Mesh) -> Mesh:
    """Return a primitive with only the vertices of its triangles, as primitives may share one vertex array."""
    used, faces = np.unique(part.faces, return_inverse=True)
    cut = {
        name: None if (values := getattr(part, name)) is None else values[used]
        for name in ("vertices", "bones", "weights", "normals", "corners", "colours")
    }
    return replace(part, faces=faces.reshape(-1, 3), **cut)


def _normals(part: Mesh) -> Array:
    """Return vertex normals for a primitive without normals: means of its triangles' normals, weighted by area."""
    out = np.zeros_like(part.vertices)
    corners = part.vertices[part.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    for k in range(3):
        np.add.at(out, part.faces[:, k], across)
    lengths = np.linalg.norm(out, axis=1, keepdims=True)
    return out / np.where(lengths > 0.0, lengths, 1.0)
