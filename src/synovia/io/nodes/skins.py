"""The skin of a character, independent of the file format: meshes, skin weights, morph targets and materials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array
from synovia.text import counted

Whole = NDArray[np.int64]
UNMORPHED: Final = "without morph targets"


@dataclass(slots=True, eq=False)
class Material:
    """A material.

    Args:
        name: Name of the material.
        colour: Red, green, blue and opacity, 0 to 1, linear.
        image: PNG or JPEG with the colours; None without an image.
        image_name: Name of the image.
        plain: Whether to ignore ``colour``, because the file has none, or has an image instead, which may be missing.
    """

    name: str
    colour: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    image: bytes | None = None
    image_name: str = ""
    plain: bool = False


@dataclass(slots=True, eq=False)
class Morph:
    """A morph target of a mesh.

    Args:
        name: Name of the morph target.
        shifts: Displacements of the vertices at weight 1, (v, 3), in the space of the mesh.
        weight: Weight at rest.
    """

    name: str
    shifts: Array
    weight: float = 0.0


@dataclass(slots=True, eq=False)
class Mesh:
    """A mesh that moves with joints.

    Args:
        name: Name of the mesh.
        vertices: Positions of the vertices in the space of the mesh, (v, 3).
        faces: Vertex indices of the triangles, (f, 3).
        rows: Joints that move the mesh, rows of the skin's nodes, (b,).
        binds: Matrices from the space of the mesh to the space of each joint's node, (b, 4, 4).
        bones: Joints of each vertex, (v, k), indices into ``rows``.
        weights: Weights of these joints, (v, k), as in the file.
        normals: Vertex normals, (v, 3); None without normals.
        corners: Texture coordinates of the vertices, (v, 2), v downwards; None without texture coordinates.
        colours: Vertex colours, red, green, blue and opacity, (v, 4), linear; None without vertex colours.
        materials: The materials.
        material: Material index of each triangle, (f,).
        morphs: The morph targets.
        unread: Number of morph targets that were not read.
    """

    name: str
    vertices: Array
    faces: Whole
    rows: list[int]
    binds: Array
    bones: Whole
    weights: Array
    normals: Array | None = None
    corners: Array | None = None
    colours: Array | None = None
    materials: list[Material] = field(default_factory=list[Material])
    material: Whole = field(default_factory=lambda: np.zeros(0, np.int64))
    morphs: list[Morph] = field(default_factory=list[Morph])
    unread: int = 0


@dataclass(slots=True, eq=False)
class Skin:
    """The skin of a character.

    Args:
        names: Names of the nodes that are joints.
        worlds: World matrices of these nodes at rest, (n, 4, 4), scales included.
        meshes: The meshes.
        lost: Number of missing meshes by reason, such as ``"without positions"``.
        changed: Number of meshes that differ from the file, by difference, such as ``"without morph targets"``.
    """

    names: tuple[str, ...]
    worlds: Array
    meshes: list[Mesh]
    lost: Counter[str] = field(default_factory=Counter[str])
    changed: Counter[str] = field(default_factory=Counter[str])

    def rows_in(self, joints: Sequence[str]) -> dict[int, int] | None:
        """Return indices into ``joints`` by row, for the joints that move meshes; None if one is missing or ambiguous.

        Args:
            joints: Names of joints; the joints of the skin may follow joints of a root.
        """
        used = {row for mesh in self.meshes for row in mesh.rows}
        before = len(joints) - len(self.names)
        if tuple(joints[max(before, 0) :]) == self.names:
            return {row: row + before for row in used}
        count = Counter(joints)
        if any(count[self.names[row]] != 1 for row in used):
            return None
        number = {name: row for row, name in enumerate(joints)}
        return {row: number[self.names[row]] for row in used}

    def notes(self, *, morphs: bool) -> list[str]:
        """Return sentences about parts of the skin that a written file does not hold.

        Args:
            morphs: Whether the file holds the morph targets that were read.
        """
        lost = {f"{why} left out": count for why, count in self.lost.items()}
        changed = {f"written {how}": count for how, count in self.changed.items() if how != UNMORPHED}
        without = sum(bool(mesh.unread or (mesh.morphs and not morphs)) for mesh in self.meshes)
        known = {**lost, **changed, **({f"written {UNMORPHED}": without} if without else {})}
        return [f"Skin: {counted(count, 'mesh', 'meshes')} {what}." for what, count in known.items()]
