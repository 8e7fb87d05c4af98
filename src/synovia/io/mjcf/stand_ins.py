"""Make small files in place of shapes that MuJoCo cannot or may not open.

Kinematics does not need shapes, but MuJoCo compiles a model only with all files that the model names. MuJoCo searches a
file by the last part of its path, first among the assets passed in memory, then in folders.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_VERTICES: Final = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))  # vertices of a tetrahedron
_FACES: Final = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
_SIZE: Final = 10.0  # length units; MuJoCo rejects tiny meshes, also after scaling from millimetres


@dataclass(frozen=True, slots=True)
class Shape:
    """The file of a mesh, a texture, a height field or a skin.

    Args:
        kind: ``"mesh"``, ``"texture"``, ``"hfield"`` or ``"skin"``.
        name: The last part of its path.
        grid: Number of rows and columns of images in a texture.
    """

    kind: str
    name: str
    grid: tuple[int, int] = (1, 1)


def stand_ins(shapes: Iterable[Shape], size: float) -> dict[str, bytes]:
    """Return the content of a stand-in for each shape by name; ``size`` is the relative size of meshes."""
    one_of = {shape.name.lower(): shape for shape in shapes}  # MuJoCo ignores the case of names
    return {shape.name: _content(shape, _SIZE * size) for shape in one_of.values()}


def _content(shape: Shape, size: float) -> bytes:
    """Return the content of a stand-in; the file extension determines the format of a mesh."""
    if shape.kind in ("texture", "hfield"):
        return _png(2 * shape.grid[0], 2 * shape.grid[1])  # a height field needs at least two rows and columns
    if shape.kind == "skin":
        return _skin()
    points = [tuple(size * x for x in vertex) for vertex in _VERTICES]
    ending = shape.name.rpartition(".")[2].lower()
    if ending == "obj":
        lines = ["v {} {} {}".format(*point) for point in points]
        lines += ["f {} {} {}".format(*(i + 1 for i in face)) for face in _FACES]
        return "\n".join([*lines, ""]).encode()
    if ending == "msh":
        head = struct.pack("<4i", len(points), 0, 0, len(_FACES))
        return head + struct.pack("<12f", *(x for p in points for x in p)) + struct.pack("<12i", *sum(_FACES, ()))
    faces = [struct.pack("<12fH", 0, 0, 0, *(x for i in face for x in points[i]), 0) for face in _FACES]
    return bytes(80) + struct.pack("<I", len(faces)) + b"".join(faces)  # content of an STL file


def _png(rows: int, columns: int) -> bytes:
    """Return a grey PNG image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    lines = zlib.compress((b"\0" + b"\x80\x80\x80" * columns) * rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def _skin() -> bytes:
    """Return a skin of one triangle, bound to the world body."""
    triangle = struct.pack("<9f", *sum(_VERTICES[:3], ())) + struct.pack("<3i", 0, 1, 2)
    bone = b"world".ljust(40, b"\0") + struct.pack("<7f", 0, 0, 0, 1, 0, 0, 0)
    return struct.pack("<4i", 3, 0, 1, 1) + triangle + bone + struct.pack("<4i3f", 3, 0, 1, 2, 1, 1, 1)
