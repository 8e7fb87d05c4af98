"""The surface of a body: the skin of a character or the shapes of a robot, from the file of its joints.

Notes name the parts that cannot be shown. They never keep the joints from being shown.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

from synovia.errors import SynoviaError
from synovia.io.load import format_of
from synovia.model import Skeleton
from synovia.viewer.surface.base import MOST_FACES, Part, Surface, joined

__all__ = ["Part", "Surface", "surface_of"]

_READERS: Final = {"glTF": "gltf", "URDF": "urdf", "MJCF": "mjcf"}  # by the name of the format


def surface_of(path: Path, skeleton: Skeleton) -> Surface:
    """Return the surface of a body, empty for formats that hold only joints.

    Args:
        path: The file that the skeleton was read from.
        skeleton: The skeleton.
    """
    module = _READERS.get(format_of(path).name)
    if module is None:
        return Surface()
    read: Callable[[Path, Skeleton], Surface] = import_module(f"synovia.viewer.surface.{module}").read_surface
    try:
        found = read(path, skeleton)
    except (SynoviaError, MemoryError) as error:
        return Surface(notes=(f"no surface: {error}",))
    faces = sum(len(part.faces) for part in found.parts)
    if faces > MOST_FACES:
        return Surface(notes=(*found.notes, f"no surface: {faces} triangles, more than {MOST_FACES}"))
    return Surface(joined(found.parts), found.notes)
