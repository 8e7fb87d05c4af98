"""Read the visual shapes of the links of a URDF, or else their collision shapes.

References:
    https://wiki.ros.org/urdf/XML/link
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from synovia.errors import SynoviaError
from synovia.io.base import read_bytes
from synovia.io.meshes import read_mesh
from synovia.io.urdf.shapes import mesh_file, origin_of, plain_solid
from synovia.io.xmltree import Element, parse
from synovia.model import MAX_JOINTS, Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.shapes import triangles
from synovia.surface.base import PLAIN, Colour, Faces, Part, Surface, colour_of, limited, rigid_part

_NAMED: Final = 4  # largest number of missing files that a note names for each reason; further files are counted


def read_surface(path: Path, skeleton: Skeleton) -> Surface:
    """Read the surface of a robot from its shapes.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    robot = parse(read_bytes(path), str(path), root="robot", most={"link": MAX_JOINTS, "joint": 4 * MAX_JOINTS})
    return _Reader(path, robot, skeleton).surface()


class _Reader:
    """Reader of the shapes of one robot."""

    def __init__(self, path: Path, robot: Element, skeleton: Skeleton) -> None:
        self.path, self.robot, self.skeleton = path, robot, skeleton
        self.rest = frames_to_transforms(skeleton.rest_pose().frames)
        self.colours = {
            element.attributes.get("name", ""): colour
            for element in robot.children
            if element.tag == "material" and (colour := _colour(element)) is not None
        }
        self.row_of = {joint.body: row for row, joint in enumerate(skeleton.joints) if joint.body is not None}
        self.missing: dict[str, str] = {}  # reason for each missing file, by file name
        self._meshes: dict[Path, tuple[Array, Faces, Colour | None]] = {}

    def surface(self) -> Surface:
        """Return all shapes."""
        parts = limited(self.parts())
        return Surface(parts, self.notes(shown=bool(parts)), bool(self.missing))

    def parts(self) -> Iterator[Part]:
        """Yield the visual shapes of all links, or else their collision shapes."""
        for link in self.robot.children:
            row = self.row_of.get(link.attributes.get("name", "")) if link.tag == "link" else None
            if row is not None:
                shown = False
                for part in self.shapes(link, row, "visual"):
                    shown = True
                    yield part
                if not shown:
                    yield from self.shapes(link, row, "collision")

    def notes(self, *, shown: bool) -> tuple[str, ...]:
        """Return a note about the missing files."""
        if not self.missing:
            return ()
        reasons: dict[str, list[str]] = {}
        for name, why in self.missing.items():
            reasons.setdefault(why, []).append(name)
        listed: list[str] = []
        for why, names in reasons.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            listed.append(f"{', '.join(names[:_NAMED])}{more} ({why})")
        some = "some meshes are not shown" if shown else "no mesh is shown, only the bones"
        return (f"{some}: {', '.join(listed)}",)

    def shapes(self, link: Element, row: int, tag: str) -> Iterator[Part]:
        """Yield the shapes in a link's elements with a tag, ``visual`` or ``collision``."""
        for element in link.children:
            geometry = element.only("geometry") if element.tag == tag else None
            for shape in [] if geometry is None else geometry.children:
                try:
                    found, own = self.shape(shape, origin_of(element))
                except SynoviaError as error:
                    name = PurePosixPath(shape.attributes.get("filename", shape.tag).replace("\\", "/")).name
                    self.missing.setdefault(name, error.what)
                    continue
                material = element.only("material")
                named = (
                    None
                    if material is None
                    else _colour(material) or self.colours.get(material.attributes.get("name", ""))
                )
                for vertices, faces, flat in found:
                    yield rigid_part(vertices, faces, row, self.rest[row], named or own or PLAIN, flat=flat)

    def shape(self, shape: Element, place: Array) -> tuple[Iterable[triangles.Part], Colour | None]:
        """Return the triangles of a shape in a frame (4, 4), and the colour of a mesh; none for unknown elements."""
        if shape.tag != "mesh":
            solid = plain_solid(shape, place)
            return () if solid is None else solid.triangles(), None
        path = mesh_file(self.path, shape)
        if path not in self._meshes:
            vertices, faces, rgba = read_mesh(path)
            self._meshes[path] = vertices, faces, None if rgba is None else colour_of(rgba)
        vertices, faces, colour = self._meshes[path]
        scale = np.array(shape.numbers("scale", 3, default=(1.0, 1.0, 1.0)))
        placed = (vertices * scale) @ place[:3, :3].T + place[:3, 3]
        return [(placed, faces[:, ::-1] if scale.prod() < 0.0 else faces, True)], colour


def _colour(material: Element) -> Colour | None:
    """Return the colour that a material defines; None if it defines none."""
    colour = material.only("color")
    return None if colour is None or "rgba" not in colour.attributes else colour_of(colour.numbers("rgba", 4))
