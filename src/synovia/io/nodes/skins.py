"""The skin of a character: meshes, what moves their vertices, and their materials, independent of the file format."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array

Whole = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Material:
    """A material.

    Args:
        name: Its name.
        colour: Red, green, blue and opacity, 0 to 1, linear.
        image: PNG or JPEG with the colours, None without one.
        image_name: Name of the image.
    """

    name: str
    colour: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    image: bytes | None = None
    image_name: str = ""


@dataclass(slots=True, eq=False)
class Mesh:
    """A mesh that joints move.

    Args:
        name: Its name.
        vertices: Places of the vertices in the space of the mesh, (v, 3).
        faces: Vertices of the triangles, (f, 3).
        rows: Joints that move it, rows of the skin's nodes, (b,).
        binds: Matrices from the space of the mesh to that of the node of each joint, (b, 4, 4).
        bones: Joints of each vertex, (v, k), numbers in ``rows``.
        weights: Weights of these joints, (v, k), as the file has them.
        normals: Directions of the vertices, (v, 3), where all parts have them.
        corners: Texture coordinates of the vertices, (v, 2), v downwards; where all parts have them.
        colours: Colours of the vertices, red, green, blue and opacity, (v, 4), linear; where all parts have them.
        materials: The materials.
        material: Material of each triangle, (f,).
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


@dataclass(slots=True, eq=False)
class Skin:
    """The skin of a character.

    Args:
        names: Names of the nodes that are joints.
        worlds: Their world matrices at rest, (n, 4, 4), scales included.
        meshes: The meshes.
    """

    names: tuple[str, ...]
    worlds: Array
    meshes: list[Mesh]
