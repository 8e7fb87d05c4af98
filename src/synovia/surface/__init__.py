"""Get the surface of a body, the skin of a character or the shapes of a robot, from the file of its joints.

Notes list the parts that cannot be shown. The joints can be shown in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import SynoviaError
from synovia.io.bundled import bundled, bundled_names
from synovia.io.load import format_of
from synovia.model import Kind, Skeleton
from synovia.surface.base import Part, Surface, joined

__all__ = ["Part", "Surface", "surface_of", "surface_of_skeleton"]

# name of the module that reads surfaces, by format
_READERS: Final = {"glTF": "skins", "FBX": "skins", "URDF": "urdf", "MJCF": "mjcf"}
_TEXT: Final = "Synovia TOML"
_CLOSE: Final = 1e-4  # fraction of the body's size: rest transforms that differ by less count as equal


def surface_of(path: Path, skeleton: Skeleton) -> Surface:
    """Read the surface of a body; empty for formats that hold only joints.

    Args:
        path: The file from which the skeleton was read.
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
    return replace(found, parts=joined(found.parts))


def surface_of_skeleton(skeleton: Skeleton) -> Surface:
    """Read the surface of a body from the file of its skeleton (``Skeleton.source``).

    The skeleton may have other limits or another root than the file. Joints are matched by name. For a clip in a format
    without surfaces, such as BVH, the surface of a bundled model with the same joints is used. The surface is empty if
    there is none, or if a joint that moves the surface is missing.
    """
    found: Surface | None = None
    with suppress(OSError, SynoviaError):  # if the file was moved or changed after the skeleton was read
        found = _of_source(skeleton, skeleton)
    if found is None or not (found.parts or found.notes):
        model = next((model for model in _bundled_models() if _same_joints(model, skeleton)), None)
        found = None if model is None else _of_source(model, skeleton)
    return found or Surface()


def _of_source(model: Skeleton, skeleton: Skeleton) -> Surface | None:
    """Return the surface in a model's file, for another skeleton of the same body; None if the file has none."""
    if model.source is None:
        return None
    found = _read(model.source.absolute(), model.source.stat().st_mtime_ns)
    return None if found is None else _moved(*found, skeleton)


@lru_cache(maxsize=1)
def _bundled_models() -> list[Skeleton]:
    """Return the bundled models, the model with most joints first."""
    return sorted(map(bundled, bundled_names()), key=len, reverse=True)


def _moved(own: Skeleton, surface: Surface, skeleton: Skeleton) -> Surface:
    """Return the surface of a skeleton for another skeleton with the same joint names; empty if a joint is missing."""
    if own.joint_names == skeleton.joint_names:
        return surface
    rows = {name: row for row, name in enumerate(skeleton.joint_names)}
    if any(own.joint_names[row] not in rows for part in surface.parts for row in part.rows.tolist()):
        return Surface(notes=surface.notes)
    number = np.array([rows.get(name, 0) for name in own.joint_names])
    return replace(surface, parts=tuple(replace(part, rows=number[part.rows]) for part in surface.parts))


def _same_joints(model: Skeleton, skeleton: Skeleton) -> bool:
    """Return whether a skeleton has all moving joints of a model, with equal rest transforms."""
    rows = {name: row for row, name in enumerate(skeleton.joint_names)}
    for joint, parent in zip(model.joints, model.parents, strict=True):
        if joint.kind is Kind.FIXED or joint.kind is Kind.FREE:
            continue
        row = rows.get(joint.name, -1)
        if row < 0 or skeleton.parents[row] != rows.get(model.joint_names[parent], -1):
            return False
        if np.abs(skeleton.joints[row].rest - joint.rest).max() > _CLOSE * model.size:
            return False
    return True


@lru_cache(maxsize=4)
def _read(path: Path, stamp: int) -> tuple[Skeleton, Surface] | None:
    """Read the joints and the surface of a file; return None for formats that hold only joints.

    Args:
        path: The file. A skeleton in TOML has its surface in a GLB file of the same name next to it.
        stamp: Modification time of the file, for the cache.
    """
    del stamp
    form = format_of(path)
    glb = path.with_suffix(".glb")
    if form.name == _TEXT and glb.is_file():
        path, form = glb, format_of(glb)
    if form.name not in _READERS:
        return None
    skeleton = form.read(path).skeleton
    return skeleton, surface_of(path, skeleton)
