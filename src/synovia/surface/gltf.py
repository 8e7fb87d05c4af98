"""Read skins and meshes of glTF 2.0.

A vertex v of a skin has the position Σ wᵢ Mᵢ Bᵢ v, with the world matrix Mᵢ of joint i's node and its inverse bind
matrix Bᵢ. Synovia's joints are rigid: Mᵢ = Xᵢ Kᵢ, with the joint's frame Xᵢ and the constant Kᵢ = Xᵢ⁻¹ Mᵢ at rest,
which holds the scales. With Aᵢ = Kᵢ Bᵢ the position is Σ wᵢ Xᵢ Aᵢ v; ``base.skin_part`` stores it.

References:
    Khronos Group, *glTF 2.0 Specification* (ISO/IEC 12113:2022), sections 3.7.2 and 3.7.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError, SynoviaError
from synovia.io.gltf.accessors import read_accessor
from synovia.io.gltf.container import Document, read_document
from synovia.io.gltf.fields import Element
from synovia.io.gltf.scene import local_of, parents_of, read_scene
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms, quat_to_matrix, rigid
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

_TRIANGLES: Final = 4  # mode of a primitive
_PACKED: Final = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")
_INSTANCES: Final = "EXT_mesh_gpu_instancing"
_GAMMA: Final = 2.2  # from linear light to sRGB, nearly
_TEXTURE: Final = 1024  # pixels of a texture in each direction; larger ones are reduced
_LARGEST_IMAGE: Final = 2**26  # pixels of an image that is read
_UNPACKED: Final = 64  # pixels whose unpacking counts as one number: it takes the time of reading one from the file


def read_surface(path: Path, skeleton: Skeleton) -> Surface:
    """Return the meshes of a file.

    Raises:
        SynoviaError: If a mesh cannot be read.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _Reader(read_document(path), skeleton).surface()


class _Reader:
    """Reader of the meshes of one file."""

    def __init__(self, document: Document, skeleton: Skeleton) -> None:
        self.document = document
        self.nodes = document.root.items("nodes")
        self.above = parents_of(document.root, self.nodes)
        self.row_of = read_scene(document).row_of
        self.rest = frames_to_transforms(skeleton.rest_pose().frames)
        self.missing: dict[str, int] = {}  # number of missing meshes by reason
        self.changed: dict[str, int] = {}  # number of meshes that differ from those of the file, by reason
        self._worlds: dict[int, Array] = {}
        self._images: dict[int, NDArray[np.uint8] | None] = {}
        self._skins: dict[int, tuple[NDArray[np.int64], Array, Array]] = {}

    def surface(self) -> Surface:
        """Return all meshes."""
        parts = limited(self.parts())
        known = {**self.missing, **self.changed}
        return Surface(parts, tuple(f"{count} mesh{'es' if count > 1 else ''} {why}" for why, count in known.items()))

    def parts(self) -> Iterator[Part]:
        """Yield the primitives that can be shown."""
        for number, node in enumerate(self.nodes):
            if node.has("mesh"):
                mesh = self.document.referred(node, "mesh", "meshes")
                for why in _changes(node, mesh):
                    self.changed[why] = self.changed.get(why, 0) + 1
                shown = (self.part(number, node, primitive) for primitive in mesh.items("primitives"))
                yield from (part for part in shown if part is not None)

    def part(self, number: int, node: Element, primitive: Element) -> Part | None:
        """Return a primitive, None if it cannot be shown or has no triangle."""
        attributes = primitive.child("attributes")
        why = ""
        if attributes is None or not attributes.has("POSITION"):
            why = "without positions"
        elif primitive.integer("mode", default=_TRIANGLES) != _TRIANGLES:
            why = "of points, lines or strips"
        elif (packed := primitive.child("extensions")) is not None and any(packed.has(name) for name in _PACKED):
            why = "with mesh compression: export the file without it to see them"
        row = self.carrier(number)
        skinned = node.has("skin") and attributes is not None and attributes.has("JOINTS_0")
        if not why and not skinned and row is None:
            why = "that belong to no joint"
        if why or attributes is None:
            self.missing[why] = self.missing.get(why, 0) + 1
            return None
        vertices = self.read(attributes, "POSITION", 3)
        faces = self.faces(primitive, len(vertices))
        if not len(faces):
            return None
        split = [np.round(self.read(attributes, "NORMAL", 3), 3)] if attributes.has("NORMAL") else []
        paint = self.paint(primitive, attributes, faces, len(vertices))
        if paint.colours is not None:
            split.append(np.round(paint.colours, 3))
        if skinned:
            return self.skinned(node, attributes, vertices, faces, split, paint)
        first, faces, kept = welded(faces, vertices, *split)
        frame: Array = self.rest[row or 0]
        inside: Array = np.linalg.inv(frame) @ self.world(number)
        placed = vertices[first] @ inside[:3, :3].T + inside[:3, 3]
        if np.linalg.det(inside[:3, :3]) < 0.0:
            faces, paint = faces[:, ::-1], paint.reversed()
        return paint.on(rigid_part(placed, faces, row or 0, frame, paint.colour, flat=False), first, kept)

    def skinned(
        self, node: Element, attributes: Element, vertices: Array, faces: Faces, split: list[Array], paint: Paint
    ) -> Part:
        """Return a primitive with a skin."""
        skin = self.skin(node)
        bones, weights = self.influences(attributes, len(vertices), len(skin[0]))
        first, faces, kept = welded(faces, vertices, *split, bones, np.round(weights, 4))
        part, turned = skin_part(vertices[first], faces, skin, bones[first], weights[first], paint.colour)
        return (paint.reversed() if turned else paint).on(part, first, kept)

    def skin(self, node: Element) -> tuple[NDArray[np.int64], Array, Array]:
        """Return the rows of the joints of a node's skin, their frames at rest, and what moves vertices into these.

        The primitives of a mesh share its skin.
        """
        skin, number = self.document.referred(node, "skin", "skins"), node.integer("skin")
        if number in self._skins:
            self.document.spend(16 * len(self._skins[number][0]), skin)  # each primitive copies the frames
            return self._skins[number]
        joints = skin.indices("joints", len(self.nodes), "node")
        self.document.spend(16 * len(joints), skin)  # the matrices below
        binds = np.tile(np.eye(4), (len(joints), 1, 1))
        if skin.has("inverseBindMatrices"):
            found = read_accessor(self.document, skin, "inverseBindMatrices", 16)
            if len(found) < len(joints):
                raise skin.error("has too few inverse bind matrices", value=len(found), expected=str(len(joints)))
            binds = found[: len(joints)].reshape(-1, 4, 4).swapaxes(1, 2)  # column-major in the file
        rows = np.array([self.row_of[joint] for joint in joints], np.int64)
        frames = self.rest[rows]
        worlds = np.array([self.world(joint) for joint in joints]).reshape(-1, 4, 4)
        each = np.linalg.inv(frames) @ worlds @ binds
        if not np.isfinite(each).all():
            raise skin.error("inverse bind matrices or scales of joints are too large")
        self._skins[number] = rows, frames, each
        return self._skins[number]

    def influences(self, attributes: Element, count: int, joints: int) -> tuple[NDArray[np.int64], Array]:
        """Return the four joints with the largest weights for each vertex, (v, 4), and their weights, sum 1."""
        bones, weights = np.zeros((count, 0), np.int64), np.zeros((count, 0))
        for number in range(4):
            if not attributes.has(f"JOINTS_{number}"):
                break
            bones = np.hstack([bones, self.read(attributes, f"JOINTS_{number}", 4, count).astype(np.int64)])
            weights = np.hstack([weights, self.read(attributes, f"WEIGHTS_{number}", 4, count, unit=True)])
        weights = np.maximum(weights, 0.0)
        bones = np.where(weights > 0.0, bones, 0)
        if bones.max(initial=0) >= joints:
            raise attributes.error("no such joint in the skin", value=int(bones.max()), expected=f"below {joints}")
        return strongest(bones, weights)

    def read(
        self, attributes: Element, name: str, width: int, count: int | None = None, *, unit: bool = False
    ) -> Array:
        """Return an attribute of all vertices."""
        values = read_accessor(self.document, attributes, name, width, unit=unit)
        if count is not None and len(values) != count:
            raise attributes.error(
                "has another number of vertices than POSITION", name, value=len(values), expected=str(count)
            )
        return values

    def faces(self, primitive: Element, count: int) -> Faces:
        """Return the triangles of a primitive, (f, 3)."""
        if primitive.has("indices"):
            numbers = read_accessor(self.document, primitive, "indices", 1)[:, 0].astype(np.int64)
        else:
            numbers = np.arange(count)
        numbers = numbers[: len(numbers) - len(numbers) % 3]
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
            raise primitive.error("no such vertex", "indices", value=int(numbers.max()), expected=f"below {count}")
        return numbers.reshape(-1, 3)

    def paint(self, primitive: Element, attributes: Element, faces: Faces, count: int) -> Paint:
        """Return the colours of a primitive: its factor, times its texture or the colours of its vertices."""
        factor, texture, corners, surface = np.ones(3), None, None, None
        if primitive.has("material") and self.document.root.list("materials"):
            surface = self.document.referred(primitive, "material", "materials").child("pbrMetallicRoughness")
        if surface is not None:
            linear = surface.numbers("baseColorFactor", 4, (1.0, 1.0, 1.0, 1.0))[:3]
            factor = np.power(np.clip(linear, 0.0, 1.0), 1.0 / _GAMMA)
            link = surface.child("baseColorTexture")
            if link is not None and attributes.has(uv := f"TEXCOORD_{link.integer('texCoord', default=0)}"):
                texture = self.image(link)
                corners = self.read(attributes, uv, 2, count)[faces]
        red, green, blue = factor.tolist()
        if texture is not None and corners is not None:
            rows, columns = texture.shape[:2]
            middle = corners.mean(axis=1) % 1.0
            y, x = (middle[:, 1] * rows).astype(int) % rows, (middle[:, 0] * columns).astype(int) % columns
            seen = texture[y, x].mean(axis=0) / 255.0
            return Paint(colour_of((factor * seen).tolist()), None, corners, texture, (red, green, blue))
        if attributes.has("COLOR_0"):
            wide = self.document.referred(attributes, "COLOR_0", "accessors").text("type", "") == "VEC4"
            linear = np.clip(self.read(attributes, "COLOR_0", 4 if wide else 3, count, unit=True)[:, :3], 0.0, 1.0)
            colours = factor * np.power(linear, 1.0 / _GAMMA)
            return Paint(colour_of(colours.mean(axis=0).tolist()), colours)
        plain = surface is None or surface.has("baseColorTexture") or not surface.has("baseColorFactor")
        return Paint(PLAIN if plain else colour_of((red, green, blue)))

    def image(self, link: Element) -> NDArray[np.uint8] | None:
        """Return the image of a texture, None if it cannot be shown."""
        texture = self.document.referred(link, "index", "textures")
        if not texture.has("source"):
            return None
        image, number = self.document.referred(texture, "source", "images"), texture.integer("source")
        if number not in self._images:
            if image.has("bufferView"):
                view = self.document.referred(image, "bufferView", "bufferViews")
                start = view.integer("byteOffset", default=0)
                data = bytes(self.document.buffer(view)[start : start + view.integer("byteLength")])
            else:
                try:
                    data = self.document.linked(image)
                except SynoviaError:
                    data = b""
            self._images[number] = self.decoded(image, data)
        return self._images[number]

    def decoded(self, image: Element, data: bytes) -> NDArray[np.uint8] | None:
        """Return a PNG, JPEG or WebP image, 0 to 255, (h, w, 3), not larger than needed; None if it cannot be shown."""
        if find_spec("PIL") is None:
            return None
        from PIL import Image

        try:
            with Image.open(BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as packed:
                pixels = packed.size[0] * packed.size[1]
                if pixels > _LARGEST_IMAGE:
                    return None
                self.document.spend(pixels // _UNPACKED + 3 * min(pixels, _TEXTURE**2) // 8, image)  # bytes as float64
                small = packed.convert("RGB")
        except FormatError:
            raise
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return None
        small.thumbnail((_TEXTURE, _TEXTURE))
        return np.asarray(small, np.uint8)

    def carrier(self, number: int) -> int | None:
        """Return the row of the joint that carries a node: that of the node or of its nearest ancestor."""
        while number >= 0 and number not in self.row_of:
            number = self.above[number]
        return self.row_of.get(number)

    def world(self, number: int) -> Array:
        """Return a node's matrix at rest, (4, 4)."""
        trail: list[int] = []
        while number >= 0 and number not in self._worlds:
            trail.append(number)
            number = self.above[number]
        matrix = self._worlds[number] if number in self._worlds else np.eye(4)
        for at in reversed(trail):
            translation, rotation, scale = local_of(self.nodes[at])
            matrix = matrix @ rigid(translation, quat_to_matrix(rotation)) @ np.diag([*scale, 1.0])
            self._worlds[at] = matrix
        return matrix if not trail else self._worlds[trail[0]]


@dataclass(frozen=True, slots=True)
class Paint:
    """The colours of a primitive.

    Args:
        colour: The mean colour.
        colours: Colours of its vertices, 0 to 1, (v, 3), None for one colour.
        corners: Texture coordinates of its triangles' corners, (f, 3, 2), None without a texture.
        texture: The texture, 0 to 255, (h, w, 3).
        tint: Factors of the texture's colours.
    """

    colour: Colour
    colours: Array | None = None
    corners: Array | None = None
    texture: NDArray[np.uint8] | None = None
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def reversed(self) -> Paint:
        """Return the paint for triangles with the opposite order of corners."""
        return self if self.corners is None else replace(self, corners=self.corners[:, ::-1])

    def on(self, part: Part, first: NDArray[np.int64], kept: NDArray[np.bool_]) -> Part:
        """Return a part in these colours, after vertices were merged (``first``) and triangles left out (``kept``)."""
        return replace(
            part,
            colours=None if self.colours is None else self.colours[first],
            corners=None if self.corners is None else self.corners[kept],
            texture=self.texture,
            tint=self.tint,
        )


def _changes(node: Element, mesh: Element) -> list[str]:
    """Return how the mesh of a node is shown otherwise than the file says."""
    owner = node if node.has("weights") else mesh
    morphed = any(isinstance(weight, int | float) and weight for weight in owner.list("weights"))
    extensions = node.child("extensions")
    several = extensions is not None and extensions.has(_INSTANCES)
    return ["shown without morph targets"] * morphed + ["shown once, without further instances"] * several
