"""Read the obstacles of a file in any supported format."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

from synovia.errors import SynoviaError
from synovia.io.base import NO_SHAPES, as_path
from synovia.io.load import first_notes, format_of, guarded
from synovia.model.shapes.solids import ConvexHull, Shape
from synovia.model.shapes.world import Obstacle, World
from synovia.text import listed

# Modules that define a format, and modules whose ``read_world`` reads its obstacles
_READERS: Final = {
    "toml": "toml.world",
    "urdf": "urdf.read",
    "mjcf": "mjcf.model",
    "gltf": "gltf.world",
    "moveit": "moveit",
}
_SNIFF: Final = 4096  # bytes at the start of a file that identify its content


def load_world(path: str | os.PathLike[str]) -> World:
    """Read obstacles from a Synovia TOML, URDF, MJCF, glTF/GLB or MoveIt scene file.

    - Synovia TOML, as ``save_world`` writes it.
    - URDF: the shapes of all ``<collision>`` elements, an obstacle for each link, with the joints at rest.
    - MJCF: the geoms that collide, an obstacle for each body and for each geom of the world body.
    - glTF: the convex hull of each mesh.
    - MoveIt ``.scene``: its collision objects.

    A ``UserWarning`` lists the parts of the file that were not kept, such as missing meshes; ``world.notes`` has the
    same sentences. Lengths stay in the unit of the file; ``world.matched(skeleton)`` converts them.

    Args:
        path: The file. Its content decides the format, or else its extension.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If its content is malformed; the message names the line or the element.
        MissingExtraError: If the format needs a package that is not installed (MJCF).

    Example:
        >>> import synovia as sy
        >>> world = sy.load_world("kitchen.toml")  # doctest: +SKIP
        >>> world.names, world.notes  # doctest: +SKIP
    """
    where = as_path(path)
    world = read_world(where)
    if world.notes:
        warnings.warn(f"{where}: {first_notes(world.notes, 'world.notes')}", UserWarning, stacklevel=2)
    return world


def read_world(where: Path) -> World:
    """Read the obstacles of a file with their meshes; like ``load_world``, but without warnings."""
    known = {module: import_module(f"synovia.io.{module}").FORMAT for module in _READERS}
    fmt = format_of(where, [*known.values()])
    reader = next(_READERS[module] for module, each in known.items() if each is fmt)
    read: Callable[[Path], World] = import_module(f"synovia.io.{reader}").read_world
    return guarded(where, lambda: _with_meshes(read(where)))


def is_world(path: Path) -> bool:
    """Return whether a file holds obstacles but no body: a world in TOML, or a MoveIt scene."""
    head = b""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(_SNIFF)
    return (
        path.suffix.lower() == ".scene" or re.search(rb"""(?m)^\s*schema\s*=\s*["']synovia\.world/""", head) is not None
    )


def _with_meshes(world: World) -> World:
    """Open the meshes of a world, and return the world without unreadable meshes, with a note about these."""
    lost: dict[str, list[str]] = {}
    kept: list[Obstacle] = []
    for obstacle in world:
        shapes: list[Shape] = []
        for shape in obstacle.shapes:
            try:
                if isinstance(shape, ConvexHull):
                    _ = shape.points  # opens the mesh file
                shapes.append(shape)
            except SynoviaError as error:
                lost.setdefault(error.what, []).append(str(obstacle.name))
        if shapes:
            kept.append(obstacle if len(shapes) == len(obstacle.shapes) else replace(obstacle, shapes=tuple(shapes)))
    if not lost:
        return world
    notes = [f"{NO_SHAPES} ({why}) of obstacles {listed(names)}." for why, names in lost.items()]
    return replace(world, obstacles=tuple(kept), notes=(*world.notes, *notes))
