"""Shapes of robots: mesh files, boxes, cylinders, ellipsoids and capsules."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.errors import FormatError, MissingExtraError, SynoviaError, UnsupportedError
from synovia.io.base import read_bytes
from synovia.model.geometry import Array
from synovia.surface.base import MOST_FACES, Colour, Faces, colour_of

_LARGEST: Final = 2**28  # bytes of a mesh file
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
    trimesh: Any = import_module("trimesh")
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
        raise FormatError(f"mesh has {len(faces)} triangles", where=str(path), expected=f"1 to {MOST_FACES}")
    if not np.isfinite(vertices).all():
        raise FormatError("mesh has vertices that are not finite", where=str(path))
    return vertices, faces, colour


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
    return _arrays(import_module("trimesh").creation.box(extents=size))


def cylinder(radius: float, length: float) -> tuple[Array, Faces]:
    """Return a cylinder about the origin, along z."""
    return _arrays(import_module("trimesh").creation.cylinder(radius=radius, height=length, sections=24))


def capsule(radius: float, length: float) -> tuple[Array, Faces]:
    """Return a capsule about the origin, along z: a cylinder of this length with hemispheres at its ends."""
    vertices, faces = _arrays(import_module("trimesh").creation.capsule(radius=radius, height=length, count=(16, 16)))
    return vertices - (0.0, 0.0, 0.5 * (vertices[:, 2].max() + vertices[:, 2].min())), faces


def ball(radii: Array) -> tuple[Array, Faces]:
    """Return an ellipsoid about the origin with these semi-axes, (3,)."""
    vertices, faces = _arrays(import_module("trimesh").creation.icosphere(subdivisions=2, radius=1.0))
    return vertices * radii, faces


def _arrays(mesh: Any) -> tuple[Array, Faces]:
    """Return a mesh's vertices and faces."""
    return np.array(mesh.vertices, np.float64), np.array(mesh.faces, np.int64)
