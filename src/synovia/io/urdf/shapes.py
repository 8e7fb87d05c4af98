"""Read the collision shapes of the links of a URDF; meshes count as their convex hulls.

Notes list shapes that cannot be read. They also list unreadable <visual> shapes of links without <collision>: such a
link has an extent, but the extent is unknown.

References:
    https://wiki.ros.org/urdf/XML/link
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import numpy as np

from synovia.errors import FileError, SynoviaError
from synovia.io.base import NO_SHAPES
from synovia.io.xmltree import Element
from synovia.model.geometry import Array, fixed_xyz, rigid
from synovia.text import first_few

if TYPE_CHECKING:
    from synovia.model.shapes.solids import Solid

_HOMES: Final = ("urdf", "robots", "robot")  # folders whose parent holds the meshes


class Collisions:
    """Reader of the collision shapes of one robot.

    Args:
        path: The robot.
    """

    def __init__(self, path: Path) -> None:
        """Start without notes."""
        self._path = path
        self._missing: dict[str, list[str]] = {}  # names of shapes by reason
        self._incomplete: set[str] = set()  # names of links with a missing shape
        self._files: dict[str, Path] = {}  # mesh files by name in the URDF

    def of(self, link: Element) -> tuple[Solid, ...]:
        """Return the shapes of a link, in its frame."""
        if not any(element.tag == "collision" for element in link.children):
            for _ in self._shapes(link, "visual"):  # only to note shapes that cannot be read
                pass
            return ()
        return tuple(self._shapes(link, "collision"))

    def is_incomplete(self, link: Element) -> bool:
        """Return whether a shape of a link is missing; call ``of`` first."""
        return link.attributes.get("name", "") in self._incomplete

    def notes(self) -> list[str]:
        """Return a note for each reason why shapes are missing."""
        return [f"{NO_SHAPES} ({why}): {first_few([*dict.fromkeys(names)])}." for why, names in self._missing.items()]

    def _shapes(self, link: Element, tag: str) -> Iterator[Solid]:
        """Yield the shapes in those elements of a link that have a given tag."""
        own = link.attributes.get("name", "")
        for element in link.children:
            if element.tag != tag:
                continue
            try:
                geometry = element.only("geometry")
                parts = [] if geometry is None else geometry.children
                place = origin_of(element) if parts else rigid()
            except SynoviaError as error:
                self._note(own, own, error)
                continue
            for part in parts:
                try:
                    yield self._shape(part, place)
                except SynoviaError as error:
                    name = part.attributes.get("filename") or f"<{part.tag}> of {own}"
                    self._note(own, PurePosixPath(name.replace("\\", "/")).name, error)

    def _note(self, link: str, name: str, error: SynoviaError) -> None:
        """Record why a shape of a link is missing."""
        self._incomplete.add(link)
        self._missing.setdefault(error.what, []).append(repr(name))

    def _shape(self, part: Element, place: Array) -> Solid:
        """Return a shape of a link.

        Raises:
            SynoviaError: If the shape cannot be read.
        """
        from synovia.io.meshes import MeshFile
        from synovia.model.shapes.solids import ConvexHull

        if part.tag == "mesh":
            named = part.attributes.get("filename", "")
            if named not in self._files:
                self._files[named] = mesh_file(self._path, part)
            file = MeshFile(self._files[named])
            if why := file.why_not():
                raise FileError(why, where=part.place, value=named)
            scale = part.numbers("scale", 3, default=(1.0, 1.0, 1.0))
            return ConvexHull.later(file, place @ np.diag((*scale, 1.0)))
        shape = plain_solid(part, place)
        if shape is None:
            raise FileError("unknown kind", where=part.place, value=part.tag)
        return shape


def plain_solid(part: Element, place: Array) -> Solid | None:
    """Return the solid of an element in a frame (4, 4); None if the element is something else."""
    from synovia.model.shapes.solids import OF_BODIES

    kind = OF_BODIES.get(part.tag)
    if kind is None or not kind.lengths():
        return None
    return kind.at(place, [number for name, count in kind.lengths().items() for number in part.numbers(name, count)])


def origin_of(element: Element) -> Array:
    """Return the transform of an element's <origin>; rpy are rotations about the fixed x, then y, then z axis."""
    origin = element.only("origin")
    if origin is None:
        return rigid()
    turn = fixed_xyz(*origin.numbers("rpy", 3, default=(0.0, 0.0, 0.0)))
    return rigid(origin.numbers("xyz", 3, default=(0.0, 0.0, 0.0)), turn)


def mesh_file(path: Path, shape: Element) -> Path:
    """Return the path of a mesh file, which must be inside the robot's folder (``mesh_places``).

    Args:
        path: The robot.
        shape: The element ``<mesh>``.

    Raises:
        FileError: If the file is outside the folder or does not exist.
    """
    places = mesh_places(path, shape)
    for place in places:
        with suppress(OSError):  # raised for a name that is too long
            if place.is_file():
                return place
    why = "not found" if places else "outside the robot's folder"
    raise FileError(why, where=shape.place, value=shape.attributes["filename"])


def mesh_places(path: Path, shape: Element) -> list[Path]:
    """Return candidate paths of a mesh file inside the robot's folder, the likeliest first.

    For a robot in a folder with a name such as ``urdf``, the robot's folder is the parent of that folder.
    ``package://NAME/`` refers to the nearest folder NAME that contains the robot, else to the robot's folder.

    Args:
        path: The robot.
        shape: The element ``<mesh>``.

    Raises:
        FileError: If the element has no valid file name.
        FormatError: If the mesh element has no file name at all.
    """
    named = unquote(shape.text("filename")).strip()
    home = path.resolve().parent
    package, rest = "", named
    if "://" in named:
        scheme, _, rest = named.partition("://")
        if scheme not in ("package", "file", "model"):
            raise FileError("not a file address", where=shape.place, value=named)
        if scheme != "file":
            package, _, rest = rest.partition("/")
    roots = [home.parent, home] if home.name in _HOMES else [home]
    if package:
        roots = [above for above in (home, *home.parents[:4]) if above.name == package] + roots
    if "\0" in rest or "\\" in rest:
        raise FileError("not a valid file name", where=shape.place, value=named)
    places: dict[Path, None] = {}
    for root in dict.fromkeys(roots):
        for start in (root, home):
            with suppress(OSError, RuntimeError, ValueError):  # a loop of links, a name that is too long
                target = (start / rest).resolve()
                if target.is_relative_to(root):
                    places[target] = None
    return [*places]
