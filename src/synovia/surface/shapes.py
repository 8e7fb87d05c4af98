"""Shapes of robots: mesh files, boxes, cylinders, ellipsoids and capsules."""

from __future__ import annotations

import math
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.errors import FormatError, MissingExtraError, SynoviaError, UnsupportedError
from synovia.io.base import optional_package, read_bytes
from synovia.io.gltf.container import read_document
from synovia.io.gltf.scene import parents_of
from synovia.model.geometry import Array
from synovia.surface.base import MOST_FACES, Colour, Faces, colour_of
from synovia.text import counted

_LARGEST: Final = 2**28  # bytes of a mesh file
_PART: Final = 1000  # numbers as which each part of a GLB counts at least: trimesh takes as long for it
_KINDS: Final = ("stl", "obj", "ply", "dae", "glb")


def read_mesh(path: Path) -> tuple[Array, Faces, Colour | None]:
    """Return vertices (v, 3), faces (f, 3) and the colour of a mesh file, None if it has no colour.

    Only this file is opened. Materials and textures in other files are ignored.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in _KINDS:
        raise UnsupportedError(
            "cannot read meshes of this format", where=str(path), value=kind, expected="one of " + ", ".join(_KINDS)
        )
    data = read_bytes(path, most=_LARGEST)
    if kind == "dae" and (b"<!DOCTYPE" in data or b"<!ENTITY" in data):
        raise FormatError("mesh has a DOCTYPE or ENTITY declaration", where=str(path))
    if kind == "dae" and find_spec("collada") is None:  # trimesh needs it for these files
        raise MissingExtraError("needs pycollada: pip install pycollada", where=str(path))
    if kind == "glb":
        _check_size(path)
    trimesh = optional_package("trimesh", "meshes of robots need trimesh", "view")
    try:
        loaded = trimesh.load_scene(BytesIO(data), file_type=kind, process=False)
        mesh = loaded.to_mesh()
        mesh.merge_vertices(merge_tex=True, merge_norm=True)
        vertices = np.array(mesh.vertices, np.float64).reshape(-1, 3)
        faces = np.array(mesh.faces, np.int64).reshape(-1, 3)
        colour = _colour(mesh)
    except SynoviaError:
        raise
    except Exception as error:
        raise FormatError(f"mesh cannot be read ({error or type(error).__name__})", where=str(path)) from error
    if not 0 < len(faces) <= MOST_FACES:
        raise FormatError(f"mesh has {counted(len(faces), 'triangle')}", where=str(path), expected=f"1 to {MOST_FACES}")
    if not np.isfinite(vertices).all():
        raise FormatError("mesh has vertices that are not finite", where=str(path))
    return vertices, faces, colour


def _check_size(path: Path) -> None:
    """Refuse a GLB that describes more numbers than a file of its size may, before trimesh unpacks all of it.

    Raises:
        SynoviaError: If it does, or is no GLB.
    """
    document = read_document(path)
    nodes = document.root.items("nodes")
    parents_of(document.root, nodes)
    counts: list[int] = []
    for accessor in document.root.items("accessors"):
        counts.append(accessor.integer("count", least=1))
        document.spend(4 * counts[-1], accessor)
    sizes: list[int] = []
    for mesh in document.root.items("meshes"):
        parts = mesh.items("primitives")
        owners = [(part.child("attributes") or part, "POSITION") for part in parts] + [
            (part, "indices") for part in parts
        ]
        used = [owner.integer(key, most=len(counts) - 1) for owner, key in owners if owner.has(key)]
        sizes.append(_PART * len(parts) + 4 * sum(counts[number] for number in used))
    for node in nodes:
        if node.has("mesh"):
            document.spend(sizes[node.integer("mesh", most=len(sizes) - 1)], node)


def _colour(mesh: Any) -> Colour | None:
    """Return the mean colour of a mesh, None if it has no colour."""
    visual = mesh.visual
    if not visual.defined:
        return None
    if visual.kind == "texture":
        visual = visual.to_color()
    return colour_of((np.asarray(visual.main_color, np.float64) / 255.0).tolist())


def box(size: Array) -> tuple[Array, Faces]:
    """Return a box about the origin with these edge lengths, (3,)."""
    corners = np.array(list(np.ndindex(2, 2, 2)), np.float64) - 0.5
    quads = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)], np.int64)
    return corners * size, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def cylinder(radius: float, length: float) -> tuple[Array, Faces]:
    """Return a cylinder about the origin, along z."""
    return _lathe(np.array([radius, radius]), np.array([-0.5, 0.5]) * length, (-0.5 * length, 0.5 * length), 32)


def capsule(radius: float, length: float) -> tuple[Array, Faces]:
    """Return a capsule about the origin, along z: a cylinder of this length with hemispheres at its ends."""
    angle = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 14)[1:-1]
    heights = radius * np.sin(angle) + np.where(angle < 0.0, -0.5, 0.5) * length
    end = 0.5 * length + radius
    return _lathe(radius * np.cos(angle), heights, (-end, end), 24)


def ball(radii: Array) -> tuple[Array, Faces]:
    """Return an ellipsoid about the origin with these semi-axes, (3,)."""
    vertices, faces = _unit_ball()
    return vertices * radii, faces.copy()


@cache
def _unit_ball() -> tuple[Array, Faces]:
    """Return the ball of radius 1, which all balls share."""
    angle = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 14)[1:-1]
    return _lathe(np.cos(angle), np.sin(angle), (-1.0, 1.0), 24)


def _lathe(radii: Array, heights: Array, ends: tuple[float, float], sides: int) -> tuple[Array, Faces]:
    """Return a closed surface about z: rings of these radii and heights, from below, and a point at each end."""
    around = np.linspace(0.0, 2.0 * math.pi, sides, endpoint=False)
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(sides)], axis=1)
    rings = radii[:, None, None] * circle + heights[:, None, None] * (0.0, 0.0, 1.0)
    vertices = np.concatenate([rings.reshape(-1, 3), [(0.0, 0.0, ends[0]), (0.0, 0.0, ends[1])]])
    i = np.arange(sides)
    j = np.roll(i, -1)
    below = sides * np.arange(len(radii) - 1)[:, None]
    a, b, c, d = below + i, below + j, below + sides + j, below + sides + i  # corners of the quads between two rings
    low, high = np.full(sides, len(vertices) - 2), np.full(sides, len(vertices) - 1)
    top = sides * (len(radii) - 1)
    corners = [(a, b, c), (a, c, d), (low, j, i), (high, top + i, top + j)]
    return vertices, np.concatenate([np.stack(three, axis=-1).reshape(-1, 3) for three in corners])
