"""Make the surface of a character from the skin in its file, for all formats with skins.

A vertex v of a skin has the position Σ wᵢ Mᵢ Bᵢ v, with the world matrix Mᵢ of joint i's node and its inverse bind
matrix Bᵢ. Synovia's joints are rigid: Mᵢ = Xᵢ Kᵢ, with the joint's frame Xᵢ and the constant Kᵢ = Xᵢ⁻¹ Mᵢ at rest,
which contains the scales. With Aᵢ = Kᵢ Bᵢ, the position is Σ wᵢ Xᵢ Aᵢ v; ``base.skin_part`` stores it.
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

from synovia.errors import FormatError
from synovia.io.base import most_numbers
from synovia.io.load import format_of
from synovia.io.nodes.skins import UNMORPHED, Material, Mesh, Skin
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.surface.base import PLAIN, Colour, Faces, Part, Surface, colour_of, limited, skin_part, strongest, welded
from synovia.text import counted

_GAMMA: Final = 2.2  # exponent of the approximate conversion from linear light to sRGB
_TEXTURE: Final = 1024  # pixels: largest width and height of a texture; larger ones are reduced
_LARGEST_IMAGE: Final = 2**26  # largest number of pixels of an image that is read
_UNPACKED: Final = 64  # number of pixels whose decoding takes as long as reading one value of the file
_FOUR: Final = 4  # number of joints per vertex


def read_surface(path: Path, skeleton: Skeleton) -> Surface:
    """Read the surface of a body from the meshes of a file.

    Raises:
        SynoviaError: If a mesh cannot be read.
    """
    read = format_of(path).read_skin
    if read is None:
        return Surface()
    with np.errstate(over="ignore", invalid="ignore"):
        return _Dresser(read(path), skeleton, most_numbers(path.stat().st_size)).surface()


class _Dresser:
    """Converts one skin to parts.

    Args:
        skin: The skin.
        skeleton: The joints of its file.
        left: Number of values that images and joint frames may still use.
    """

    def __init__(self, skin: Skin, skeleton: Skeleton, left: int) -> None:
        self.skin, self.left = skin, left
        self.rest = frames_to_transforms(skeleton.rest_pose().frames)
        self._images: dict[int, NDArray[np.uint8] | None] = {}

    def surface(self) -> Surface:
        """Return the surface, with notes."""
        parts = limited(self.parts())
        lost = [f"not shown: {counted(count, 'mesh', 'meshes')} {why}" for why, count in self.skin.lost.items()]
        known = [(f"shown {how}", count) for how, count in self.skin.changed.items()]
        morphed = sum(any(each.weight for each in mesh.morphs) for mesh in self.skin.meshes)
        known += [(f"shown {UNMORPHED}", morphed)] * bool(morphed)
        return Surface(parts, (*lost, *(f"{counted(count, 'mesh', 'meshes')} {why}" for why, count in known)))

    def spend(self, numbers: int) -> None:
        """Subtract values from ``left``; raise an error if a file of this size has too many."""
        self.left -= numbers
        if self.left < 0:
            raise FormatError("needs too much memory", where="images and skins")

    def parts(self) -> Iterator[Part]:
        """Yield a part for each material of each mesh."""
        for mesh in self.skin.meshes:
            rows = np.array(mesh.rows, np.int64)
            frames = self.rest[rows]
            each = np.linalg.inv(frames) @ self.skin.worlds[rows] @ mesh.binds
            if not np.isfinite(each).all():
                raise FormatError("matrices of joints are not finite, or too large", where=f"mesh {mesh.name!r}")
            missing = max(_FOUR - mesh.bones.shape[1], 0)
            pad = ((0, 0), (0, missing))
            bones, weights = strongest(np.pad(mesh.bones, pad), np.pad(np.maximum(mesh.weights, 0.0), pad))
            for number in map(int, np.unique(mesh.material)):
                self.spend(len(rows))  # values of the joint frames, which each material copies
                faces = mesh.faces[mesh.material == number]
                yield from self.part(mesh, faces, mesh.materials[number], (rows, frames, each), bones, weights)

    def part(
        self, mesh: Mesh, faces: Faces, material: Material, skin: tuple[NDArray[np.int64], Array, Array],
        bones: NDArray[np.int64], weights: Array,
    ) -> Iterator[Part]:  # fmt: skip
        """Yield the triangles of one material as a part; nothing if all are degenerate."""
        used, back = np.unique(faces, return_inverse=True)
        paint = self.paint(mesh, faces, used, material)
        split = [mesh.vertices[used], bones[used], np.round(weights[used], 4)]
        split += [np.round(part[used], 3) for part in (mesh.normals,) if part is not None]
        split += [np.round(paint.colours, 3)] if paint.colours is not None else []
        first, merged, kept = welded(back.reshape(-1, 3), *split)
        if not len(merged):
            return
        own = used[first]
        part, turned = skin_part(mesh.vertices[own], merged, skin, bones[own], weights[own], paint.colour)
        yield (paint.reversed() if turned else paint).on(part, first, kept)

    def paint(self, mesh: Mesh, faces: Faces, used: NDArray[np.int64], material: Material) -> Paint:
        """Return the colours of triangles: the colour of the material times the texture or the vertex colours."""
        factor = np.power(np.clip(material.colour[:3], 0.0, 1.0), 1.0 / _GAMMA)
        red, green, blue = factor.tolist()
        texture = None if mesh.corners is None else self.image(material.image)
        if texture is not None and mesh.corners is not None:
            corners = mesh.corners[faces]
            rows, columns = texture.shape[:2]
            middle = corners.mean(axis=1) % 1.0
            y, x = (middle[:, 1] * rows).astype(int) % rows, (middle[:, 0] * columns).astype(int) % columns
            seen = texture[y, x].mean(axis=0) / 255.0
            return Paint(colour_of((factor * seen).tolist()), None, corners, texture, (red, green, blue))
        if mesh.colours is not None:
            colours = factor * np.power(mesh.colours[used, :3], 1.0 / _GAMMA)
            return Paint(colour_of(colours.mean(axis=0).tolist()), colours)
        return Paint(PLAIN if material.plain or material.image is not None else colour_of((red, green, blue)))

    def image(self, data: bytes | None) -> NDArray[np.uint8] | None:
        """Return a decoded image from the cache; None without an image, or if it cannot be shown."""
        if not data:
            return None
        if id(data) not in self._images:
            self._images[id(data)] = self.decoded(data)
        return self._images[id(data)]

    def decoded(self, data: bytes) -> NDArray[np.uint8] | None:
        """Decode and reduce a PNG, JPEG or WebP image, 0 to 255, (h, w, 3); return None if it cannot be shown."""
        if find_spec("PIL") is None:
            return None
        from PIL import Image

        try:
            with Image.open(BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as packed:
                pixels = packed.size[0] * packed.size[1]
                if pixels > _LARGEST_IMAGE:
                    return None
                # 3 bytes per pixel, counted as float64 values of 8 bytes
                self.spend(pixels // _UNPACKED + 3 * min(pixels, _TEXTURE**2) // 8)
                small = packed.convert("RGB")
        except FormatError:
            raise
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return None
        small.thumbnail((_TEXTURE, _TEXTURE))
        return np.asarray(small, np.uint8)


@dataclass(frozen=True, slots=True)
class Paint:
    """The colours of the triangles of one material.

    Args:
        colour: The mean colour.
        colours: Vertex colours, 0 to 1, (v, 3); None for a single colour.
        corners: Texture coordinates of the triangles' corners, (f, 3, 2); None without a texture.
        texture: The texture, 0 to 255, (h, w, 3).
        tint: Factors for the texture's colours.
    """

    colour: Colour
    colours: Array | None = None
    corners: Array | None = None
    texture: NDArray[np.uint8] | None = None
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def reversed(self) -> Paint:
        """Return the colours for triangles whose corners are in reversed order."""
        return self if self.corners is None else replace(self, corners=self.corners[:, ::-1])

    def on(self, part: Part, first: NDArray[np.int64], kept: NDArray[np.bool_]) -> Part:
        """Return a part with these colours, after vertices were merged (``first``) and triangles removed (``kept``)."""
        return replace(
            part,
            colours=None if self.colours is None else self.colours[first],
            corners=None if self.corners is None else self.corners[kept],
            texture=self.texture,
            tint=self.tint,
        )
