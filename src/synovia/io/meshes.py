"""Read mesh files through trimesh: their triangles, and the corners of their convex hulls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.errors import FormatError, MissingExtraError, UnsupportedError, install_command
from synovia.io.base import optional_package, read_bytes
from synovia.io.gltf.container import read_document
from synovia.io.gltf.scene import parents_of
from synovia.model.geometry import Array
from synovia.model.shapes.solids import ConvexHull
from synovia.model.shapes.triangles import Faces
from synovia.text import counted

MOST_FACES: Final = 2_000_000  # largest number of triangles of one body; sending this many takes 100 MB
_LARGEST: Final = 2**28  # largest size of a mesh file, bytes
_PART: Final = 1000  # additional values that each primitive of a GLB counts, for the overhead of trimesh
_KINDS: Final = ("stl", "obj", "ply", "dae", "glb")


@dataclass(frozen=True, slots=True)
class MeshFile:
    """The corners of the convex hull of a mesh file, read when called.

    Args:
        path: The file.
    """

    path: Path

    def __call__(self) -> Array:
        """Return the corners, (n, 3).

        Raises:
            SynoviaError: If the file cannot be read.
        """
        return _corners(self.path, self.path.stat().st_mtime_ns if self.path.is_file() else 0)

    def __str__(self) -> str:
        """Return the name of the file."""
        return f"mesh {self.path.name}"

    def why_not(self) -> str:
        """Return why the mesh cannot be read, without opening the file; empty if no reason is known."""
        kind = self.path.suffix.lower().lstrip(".")
        if kind not in _KINDS:
            return f"no format of {', '.join(_KINDS)}"
        if not _has("trimesh"):
            return f"needs trimesh: {install_command('meshes')}"
        return "needs pycollada: pip install pycollada" if kind == "dae" and not _has("collada") else ""


@lru_cache(maxsize=64)
def _corners(path: Path, stamp: int) -> Array:
    """Return the corners of the hull of a file; ``stamp`` is its modification time, for the cache."""
    del stamp
    return ConvexHull.around(read_mesh(path)[0]).points


@lru_cache(maxsize=4)
def _has(package: str) -> bool:
    """Return whether a package is installed."""
    return find_spec(package) is not None


def read_mesh(path: Path) -> tuple[Array, Faces, tuple[float, ...] | None]:
    """Read vertices (v, 3), faces (f, 3) and colour (rgba, 0 to 1; None without colour) of a mesh file.

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
    if kind == "dae" and find_spec("collada") is None:  # trimesh needs the package ``collada`` for these files
        raise MissingExtraError("needs pycollada: pip install pycollada", where=str(path))
    if kind == "glb":
        _check_size(path)
    try:
        vertices, faces, colour = _unpacked(data, kind)
    except MissingExtraError:
        raise
    except Exception as error:
        raise FormatError(
            f"mesh cannot be read{_reason(error)}", where=str(path), expected=f"a mesh as .{kind}",
            hint="save it again with the program that made it, or as .obj or .stl",
        ) from error  # fmt: skip
    if not 0 < len(faces) <= MOST_FACES:
        raise FormatError(f"mesh has {counted(len(faces), 'triangle')}", where=str(path), expected=f"1 to {MOST_FACES}")
    if not np.isfinite(vertices).all():
        raise FormatError("mesh has vertices that are not finite", where=str(path))
    return vertices, faces, colour


def _unpacked(data: bytes, kind: str) -> tuple[Array, Faces, tuple[float, ...] | None]:
    """Parse vertices, faces and colour of a mesh; ignore materials that cannot be read."""
    trimesh = optional_package("trimesh", "mesh files need trimesh", "meshes")

    def unpacked(form: bytes) -> tuple[Array, Faces, tuple[float, ...] | None]:
        mesh = trimesh.load_scene(BytesIO(form), file_type=kind, process=False).to_mesh()
        mesh.merge_vertices(merge_tex=True, merge_norm=True)
        vertices = np.array(mesh.vertices, np.float64).reshape(-1, 3)
        return vertices, np.array(mesh.faces, np.int64).reshape(-1, 3), _colour(mesh)

    try:
        found = unpacked(data)
        if len(found[1]) or kind != "dae":
            return found
    except Exception as error:
        if kind != "dae":
            raise
        try:
            return unpacked(_without_materials(data))
        except Exception:  # noqa: BLE001  the first error is about the whole file
            raise error from None
    return unpacked(_without_materials(data))


def _without_materials(data: bytes) -> bytes:
    """Return a COLLADA file without its materials, which meshes do not need."""
    for tag in (b"library_effects", b"library_materials", b"library_images", b"bind_material"):
        parts, at = list[bytes](), 0
        while (begin := data.find(b"<" + tag, at)) >= 0 and (end := data.find(b"</" + tag, begin)) >= 0:
            parts.append(data[at:begin])
            at = data.find(b">", end) + 1 or len(data)
        data = b"".join([*parts, data[at:]])
    return data


def _reason(error: Exception) -> str:
    """Return a reader's message about a damaged file in brackets; empty for errors inside the reader's code."""
    inside = isinstance(error, TypeError | AttributeError | LookupError | AssertionError)
    return "" if inside or not str(error) else f" ({error})"


def _check_size(path: Path) -> None:
    """Raise an error for a GLB that describes too many values for its size, before trimesh unpacks the file.

    Raises:
        SynoviaError: If there are too many values, or the file is not a GLB.
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


def _colour(mesh: Any) -> tuple[float, ...] | None:
    """Return the mean colour of a mesh, None if it has no colour."""
    visual = mesh.visual
    if not visual.defined:
        return None
    shown = [visual]
    if visual.kind == "texture":  # the mean of the image if there is an image, else the colour of the material
        shown = [visual.to_color(), visual.material]
    for one in shown:
        colour = np.asarray(one.main_color, np.float64)
        if colour.shape == (4,):
            return tuple((colour / 255.0).tolist())
    return None
