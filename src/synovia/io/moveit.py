"""Read MoveIt scenes (``.scene``): collision objects as text, as written by RViz and ``saveGeometryToStream``.

    kitchen
    * table
    0.5 0 0.4
    0 0 0 1
    1
    box
    0.6 1.2 0.05
    0 0 0
    0 0 0 1
    0 0 0 0
    0
    .

The first line is the name of the scene. An object has its name, its pose (position, then quaternion xyzw), the number
of its shapes, each with sizes, pose in the object and colour, and the number of its subframes. Older files have neither
the pose of the object nor subframes; as in MoveIt, the line after the first name distinguishes the versions. Lengths
are in metres, and z points up.

References:
    https://github.com/moveit/moveit2: planning_scene.cpp, loadGeometryFromStream;
    https://github.com/moveit/geometric_shapes: shape_operations.cpp, constructShapeFromText
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from synovia.errors import FormatError, InputError, SynoviaError, restated
from synovia.io.base import Format, read_text
from synovia.model.geometry import Array, as_unit_quat, quat_to_matrix, rigid
from synovia.model.shapes.solids import OF_BODIES, ConvexHull, HalfSpace, Shape
from synovia.model.shapes.world import Obstacle, World, unlike
from synovia.text import listed

_LARGEST: Final = 2**26  # largest size of a file, bytes
_SIDES: Final = 48  # number of sides of the pyramid that replaces a cone
_MOST: Final = 10_000_000  # largest number of corners or triangles of a mesh


def read_world(path: Path) -> World:
    """Read the objects of a scene.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed; the message names the line.
    """
    return _Reader(path).world()


class _Reader:
    """Reader of one scene."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = read_text(path, most=_LARGEST).split("\n")
        self.at = 0  # index of the next line; also the number of the current line, counted from 1
        self.words: list[str] = []  # words left in the current line, in reverse order
        self.changed: dict[str, list[str]] = {}  # names of objects by note

    def world(self) -> World:
        """Return all objects."""
        self.at = 1  # skips the name of the scene
        start = next((row for row in range(1, len(self.lines)) if self.lines[row].startswith("*")), None)
        posed = start is not None and len(self.lines[start + 1].split() if start + 1 < len(self.lines) else []) > 1
        found: list[Obstacle] = []
        while (mark := self.word("* or .")) != ".":
            if mark != "*":
                raise self.error("", mark, "* before an object, or . at the end")
            name = self.rest()
            shapes, place = self.object(name, posed=posed)
            if shapes:
                found.append(Obstacle(tuple(shapes), name=name or None, transform=place))
        notes = [f"{what}: {listed([*dict.fromkeys(some)])}." for what, some in self.changed.items()]
        names = unlike(obstacle.name for obstacle in found)
        named = tuple(replace(obstacle, name=name) for obstacle, name in zip(found, names, strict=True))
        return World(named, meters_per_unit=1.0, up="z", notes=tuple(notes), source=self.path)

    def object(self, name: str, *, posed: bool) -> tuple[list[Shape], Array]:
        """Read the shapes of an object in its frame, and its frame."""
        place = self.pose() if posed else rigid()
        shapes: list[Shape] = []
        for _ in range(self.count("number of shapes")):
            kind, line = self.word("a kind of shape"), self.at
            try:
                shape = self.shape(kind, name)
                own = self.pose()
                self.numbers(4, "a colour")
                if shape is not None:
                    shapes.append(shape.moved(own))
            except FormatError:
                raise
            except SynoviaError as error:
                raise restated(error, FormatError, f"{self.path}, line {line}, object {name!r}") from error
        if posed:
            for _ in range(self.count("number of subframes")):
                self.word("the name of a subframe")
                self.pose()
                self.note("Subframes of these objects were not kept", name)
        return shapes, place

    def shape(self, kind: str, name: str) -> Shape | None:
        """Read a shape in its own frame; for shapes that are not kept, add a note and return None."""
        solid = OF_BODIES.get(kind.lower())
        if solid is not None and (lengths := solid.lengths()):
            return solid.at(rigid(), self.numbers(sum(lengths.values()), " and ".join(lengths)))
        match kind.lower():
            case "cone":
                radius, length = self.numbers(2, "radius and length")
                self.note("Cones of these objects were replaced by convex hulls around them", name)
                return ConvexHull(_cone(radius, length))
            case "plane":
                a, b, c, d = self.numbers(4, "four numbers of a plane")
                normal = np.array((a, b, c))
                self.note("Planes of these objects were replaced by half-spaces, with the normal outwards", name)
                point = -d * normal / max(float(normal @ normal), 1e-300)
                return HalfSpace(point=point, normal=normal)
            case "mesh":
                corners, triangles = (self.count(what, _MOST) for what in ("number of corners", "number of triangles"))
                points = self.table(corners, "a corner")
                self.table(triangles, "a triangle")
                if not corners:
                    self.note("Meshes without corners of these objects were not kept", name)
                    return None
                self.note("Meshes of these objects were replaced by their convex hulls", name)
                return ConvexHull.around(points)
            case _:
                raise self.error("kind of shape", kind, "sphere, box, cylinder, cone, plane or mesh")

    def note(self, what: str, name: str) -> None:
        """Add an object to the note about a difference from the file."""
        self.changed.setdefault(what, []).append(name)

    def pose(self) -> Array:
        """Read a pose: position, then quaternion xyzw."""
        x, y, z, *quat = self.numbers(7, "a pose: x y z, then a quaternion x y z w")
        try:
            return rigid((x, y, z), quat_to_matrix(as_unit_quat(quat)))
        except InputError as error:
            raise restated(error, FormatError, f"{self.path}, line {self.at}") from error

    def count(self, what: str, most: int = 100_000) -> int:
        """Read a whole number."""
        word = self.word(what)
        if not re.fullmatch(r"\d{1,9}", word) or int(word) > most:
            raise self.error(what, word, f"0 to {most}")
        return int(word)

    def table(self, rows: int, what: str) -> Array:
        """Read rows of three numbers, (rows, 3)."""
        lines = self.lines[self.at : self.at + rows]
        if not self.words and len(lines) == rows and rows:
            with suppress(ValueError):  # not three numbers in each line: the loop below raises an error with the line
                found = np.array([line.split() for line in lines], np.float64)
                if found.shape == (rows, 3) and np.isfinite(found).all():
                    self.at += rows
                    return found
        return np.array([self.numbers(3, what) for _ in range(rows)]).reshape(-1, 3)

    def numbers(self, count: int, what: str) -> list[float]:
        """Read the next numbers."""
        found: list[float] = []
        for _ in range(count):
            word = self.word(what)
            try:
                found.append(float(word))
            except ValueError as error:
                raise self.error(what, word, f"{what}, as numbers") from error
            if not math.isfinite(found[-1]):
                raise self.error(what, word, "finite numbers")
        return found

    def word(self, what: str) -> str:
        """Read the next word.

        Raises:
            FormatError: If the file ends.
        """
        while not self.words:
            if self.at >= len(self.lines):
                raise FormatError(f"{self.path}: file ends", expected=what)
            self.words = self.lines[self.at].split()[::-1]
            self.at += 1
        return self.words.pop()

    def rest(self) -> str:
        """Read the rest of the current line."""
        text = " ".join(reversed(self.words))
        self.words = []
        return text

    def error(self, what: str, word: str, expected: str) -> FormatError:
        """Return an error about a word of the current line."""
        return FormatError(what, where=f"{self.path}, line {self.at}", value=word, expected=expected)


def _cone(radius: float, length: float) -> Array:
    """Return the corners of a pyramid around a cone along z; the origin is at half its height."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SIDES, endpoint=False)
    outer = radius / math.cos(math.pi / _SIDES)
    base = np.stack([outer * np.cos(angle), outer * np.sin(angle), np.full(_SIDES, -0.5 * length)], axis=1)
    return np.concatenate([base, [(0.0, 0.0, 0.5 * length)]])


def _looks_like(head: bytes) -> bool:
    """Return whether a file begins like a scene: a name, then an object or the end mark."""
    return re.match(rb"[^\n*]*+\n(?:[^\S\n]*+\n)*+(?:\* [^\n]*\n|\.\s*+$)", head) is not None


def _read(path: Path) -> NoReturn:
    """Raise an error, because a scene has no skeleton."""
    raise FormatError("a scene of MoveIt holds no skeleton", where=str(path), hint="load_world reads it")


FORMAT: Final = Format("MoveIt scene", (".scene",), _looks_like, _read)
