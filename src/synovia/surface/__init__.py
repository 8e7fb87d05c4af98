"""The surface of a body: the skin of a character or the shapes of a robot, from the file of its joints.

Notes name the parts that cannot be shown. They never keep the joints from being shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import SynoviaError
from synovia.io.load import format_of
from synovia.model import Skeleton
from synovia.surface.base import MOST_FACES, Part, Surface, joined

__all__ = ["Part", "Surface", "surface_of", "surface_of_skeleton"]

_READERS: Final = {"glTF": "gltf", "URDF": "urdf", "MJCF": "mjcf"}  # by the name of the format
_BESIDE: Final = "TOML"  # a file of this format has its surface in a GLB file of the same name beside it


def surface_of(path: Path, skeleton: Skeleton) -> Surface:
    """Return the surface of a body, empty for formats that hold only joints.

    Args:
        path: The file that the skeleton was read from.
        skeleton: The skeleton.
    """
    module = _READERS.get(format_of(path).name)
    if module is None:
        return Surface()
    read: Callable[[Path, Skeleton], Surface] = import_module(f"synovia.surface.{module}").read_surface
    try:
        found = read(path, skeleton)
    except (SynoviaError, MemoryError) as error:
        return Surface(notes=(f"no surface: {error}",))
    faces = sum(len(part.faces) for part in found.parts)
    if faces > MOST_FACES:
        return Surface(notes=(*found.notes, f"no surface: {faces} triangles, more than {MOST_FACES}"))
    return replace(found, parts=joined(found.parts))


def surface_of_skeleton(skeleton: Skeleton) -> Surface:
    """Return the surface of a body from the file of its skeleton (``Skeleton.source``).

    The skeleton may have other limits or another root than that of the file. Joints are found by name. The surface is
    empty if there is no file, or if a joint that moves the surface is missing.
    """
    if skeleton.source is None:
        return Surface()
    try:
        stamp = skeleton.source.stat().st_mtime_ns
        names, surface = _read(skeleton.source.absolute(), stamp)
    except (OSError, SynoviaError):  # the file was moved or changed after the skeleton was read
        return Surface()
    if names == skeleton.joint_names:
        return surface
    rows = {name: row for row, name in enumerate(skeleton.joint_names)}
    if any(names[row] not in rows for part in surface.parts for row in part.rows.tolist()):
        return Surface(notes=surface.notes)
    number = np.array([rows.get(name, 0) for name in names])
    return replace(surface, parts=tuple(replace(part, rows=number[part.rows]) for part in surface.parts))


@lru_cache(maxsize=4)
def _read(path: Path, stamp: int) -> tuple[tuple[str, ...], Surface]:
    """Return the joints and the surface of a file; ``stamp`` is the time of its last change."""
    del stamp
    form = format_of(path)
    if _BESIDE in form.name:
        path = path.with_suffix(".glb")
        if not path.is_file():
            return (), Surface()
        form = format_of(path)
    skeleton = form.read(path).skeleton
    return skeleton.joint_names, surface_of(path, skeleton)
