"""Check the files to which an MJCF model refers, before MuJoCo opens them.

MuJoCo reads every file that a model names, in any folder, and copies parts of a model any number of times. So this
module first reads the model and its included files. MJCF files included by a relative path may be in any folder, as in
shared collections of models, because they contain joints. Shapes outside the model's folder are never opened: they
count as missing, and kinematics does not need them. Any other file that is outside or missing, a document type, or a
count that would exhaust the memory causes an error with its line.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synovia.errors import FormatError
from synovia.io.base import read_bytes
from synovia.io.xmltree import Element, parse

_VERTICES: Final = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))  # vertices of a tetrahedron
_FACES: Final = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
_SIZE: Final = 10.0  # length units; MuJoCo rejects tiny meshes, also after scaling from millimetres
MOST_BODIES: Final = 2500
MOST_ELEMENTS: Final = 15_000
MOST_POINTS: Final = 1000  # largest number of points of deformable objects; each becomes a body
MOST_CELLS: Final = 2**24  # largest number of cells of textures and height fields
MOST_CORNERS: Final = 50_000  # largest number of vertices of built-in meshes; each mesh counts as at least 1000
MOST_STEPS: Final = 10_000  # largest number of steps of a simulation that finds the length ranges of actuators
_MUSCLES: Final = ("muscle", "general")  # actuators that may be muscles
MOST_COPIED: Final = 500_000  # largest number of elements times number of <replicate>s, as each copies the whole model
MOST_EXTRA: Final = 10_000  # largest number of values of a sensor, of a custom field, or in <size>
MOST_USER: Final = 100  # largest number of user values of each element
# Limits for the memory of a simulation, in <size>: user values of each state, and attributes of old files.
MEMORY: Final = {"nuserdata": 10**7, "nstack": 10**8, "njmax": 10**6, "nconmax": 10**6}
LARGEST_FILE: Final = 2**27  # largest size of an MJCF file, bytes
_MOST: Final = {"body": MOST_BODIES, "joint": 4 * MOST_BODIES}
_FOLDERS: Final = ("meshdir", "texturedir", "assetdir")
_NESTED: Final = ("include", "model")  # elements that refer to other MJCF files
_SHAPES: Final = ("mesh", "texture", "hfield", "skin")  # elements that refer to files that kinematics does not need


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a model names.

    Args:
        several: Whether the model consists of several MJCF files.
        shapes: All shape files.
        missing: The shape files that do not exist or may not be opened.
        notes: Sentences about skipped parts.
    """

    several: bool
    shapes: tuple[Shape, ...]
    missing: tuple[Shape, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A model with the files that it includes; their shape files are not looked up yet.

    Args:
        home: The folder of the model.
        models: The MJCF files, the model first.
        folders: Folders in which files are searched, relative to ``home``.
        assets: The elements that name other files, with the folder of their MJCF file and the file name.
        notes: Sentences about irregular parts that were read or skipped.
    """

    home: Path
    models: tuple[Path, ...]
    folders: set[Path]
    assets: list[tuple[Element, Path, str]]
    notes: tuple[str, ...]

    def folders_of(self, folder: Path) -> set[Path]:
        """Return the folders in which to search for files named by an MJCF file in ``folder``."""
        return self.folders | {folder / other for other in self.folders}


def check_files(path: Path) -> Files:
    """Check a model and all files that the model names, and return these files.

    Args:
        path: The model.

    Raises:
        FileError: If the model or a file that it includes cannot be read.
        FormatError: If a file is malformed or its model too large, or if a file other than a shape is missing or may
            not be opened.
    """
    reading = _read(path)
    shapes: dict[Shape, bool] = {}
    for element, folder, value in reading.assets:
        try:
            _resolve(element, reading.home, reading.folders_of(folder), value)
            usable = True
        except FormatError:
            if element.tag not in _SHAPES:
                raise
            usable = False
        if element.tag in _SHAPES and value.strip():
            shape = _shape(element, value)
            shapes[shape] = shapes.get(shape, True) and usable
    missing = tuple(shape for shape, usable in shapes.items() if not usable)
    return Files(len(reading.models) > 1, tuple(shapes), missing, reading.notes)


def companions(path: Path) -> Iterator[Path]:
    """Yield the MJCF files that a model includes, and its shape files inside its folder.

    Raises:
        SynoviaError: If the model or a file that it includes cannot be read.
    """
    reading = _read(path)
    yield from reading.models[1:]
    for _, folder, value in reading.assets:
        inside: list[Path] = []
        for place in _places(reading.home, reading.folders_of(folder), value):
            with suppress(OSError, ValueError, RuntimeError):  # a null byte, a name too long, links in a circle
                if (real := place.resolve()).is_relative_to(reading.home):
                    inside.append(real)
        yield from [place for place in inside if place.is_file()] or inside[:1]


def _read(path: Path) -> _Reading:
    """Read a model and the files that it includes.

    Raises:
        FileError: If a file cannot be read.
        FormatError: If a file is malformed, too large or missing.
    """
    home = path.resolve().parent
    folders = {Path()}
    assets: list[tuple[Element, Path, str]] = []
    budget = Budget()
    waiting = [(path, Path(), "mujoco")]
    seen = {path.resolve(): None}  # a dict keeps the order
    notes: list[str] = []
    while waiting:
        file, folder, kind = waiting.pop()
        root = parse(read_bytes(file, most=LARGEST_FILE), str(file), root=kind or None, most=_MOST)
        budget.count(root)
        notes += root.notes
        for element in _walk(root):
            folders.update(Path(element.attributes[name]) for name in _FOLDERS if name in element.attributes)
            for name, value in element.attributes.items():
                if not name.startswith("file"):
                    continue
                if element.tag not in _NESTED:
                    assets.append((element, folder, value))
                    continue
                for nested in _nested(element, home, {Path(), folder}, value):
                    if nested not in seen:
                        seen[nested] = None
                        waiting.append((nested, nested.parent, ""))
    return _Reading(home, (path, *(file for file in seen if file != path.resolve())), folders, assets, tuple(notes))


def _shape(element: Element, value: str) -> Shape:
    """Return the shape whose file an element names."""
    counts = [int(min(max(1.0, count), 12.0)) for count in (*numbers(element, "gridsize")[2:], 1.0, 1.0)]
    return Shape(element.tag, re.split(r"[\\/]", value.strip())[-1], (counts[0], counts[1]))  # MuJoCo allows 12 in all


def _nested(element: Element, home: Path, folders: set[Path], value: str) -> list[Path]:
    """Return the MJCF files that an element may refer to; a relative path may lead out of the model's folder."""
    name = Path(value.strip())
    if name.is_absolute() or name.drive or not value.strip():
        return [_resolve(element, home, folders, value)]
    found: dict[Path, None] = {}
    for folder in sorted(folders):
        try:
            place = (home / folder / name).resolve()
            if place.is_file():
                found[place] = None
        except (OSError, ValueError, RuntimeError):  # a null byte, a name too long, links in a circle
            continue
    if not found:
        raise element.error(f"file of <{element.tag}> does not exist", value=value, expected=f"a file in {home}")
    return [*found]


def _walk(root: Element) -> Iterator[Element]:
    """Yield an element and all its descendants."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += element.children


def _places(home: Path, folders: set[Path], value: str) -> list[Path]:
    """Return candidate paths of a file that an element names."""
    tried = sorted({(home / folder / value.strip()) for folder in folders})
    return tried + [home / folder / Path(value.strip()).name for folder in folders]  # compiler strippath="true"


def _resolve(element: Element, home: Path, folders: set[Path], value: str) -> Path:
    """Return the file that an element names; it must exist, and all candidates must be in the model's folder."""
    found: Path | None = None
    for candidate in _places(home, folders, value):
        try:
            place = candidate.resolve()
            inside = place.is_relative_to(home)
            there = inside and place.is_file()
        except (OSError, ValueError, RuntimeError) as error:  # a null byte, a name too long, links in a circle
            raise element.error(f"file of <{element.tag}> cannot be used ({error})", value=value) from error
        if not inside:
            raise element.error(
                f"file of <{element.tag}> is outside the model's folder",
                value=value,
                expected=f"a file in {home}",
                hint="copy it there; files outside are never opened",
            )
        if there and found is None:
            found = place
    if found is None:
        raise element.error(
            f"file of <{element.tag}> does not exist",
            value=value,
            expected=f"a file in {home}",
            hint="put it there, or remove the element and what uses it",
        )
    return found


class Budget:
    """Counts the objects that all files of a model create, and raises an error if there are too many."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.ranges: list[Element] = []  # <lengthrange> elements, which set how MuJoCo finds length ranges
        self.actuators: list[Element] = []

    def spend(self, element: Element, what: str, amount: float, most: float) -> None:
        """Add to the count of one kind of object; raise an error above the limit."""
        total = self.spent[what] = self.spent.get(what, 0.0) + amount
        if not total <= most:  # also true for NaN
            raise element.error(
                f"<{element.tag}> creates too many {what}",
                value=total,
                expected=f"at most {most:g} in total, with copies",
            )

    def count(self, root: Element) -> None:
        """Count all elements of a file; elements in a <replicate> count once for each copy."""
        waiting = [(root, 1.0)]
        while waiting:
            element, times = waiting.pop()
            self.add(element, times)
            if element.tag == "actuator":
                self.actuators += element.children
            if element.tag == "replicate":
                self.spend(element, "replicates", 1.0, MOST_ELEMENTS)
                times *= max(1.0, *numbers(element, "count"))
            waiting += [(child, times) for child in element.children]
        self.add_steps()
        replicates, elements = self.spent.get("replicates", 0.0), self.spent["elements"]
        if replicates * elements > MOST_COPIED:
            most = int(MOST_COPIED // elements)
            raise root.error(
                "has too many <replicate>s for its size", value=int(replicates), expected=f"at most {most}"
            )

    def add(self, element: Element, times: float) -> None:
        """Count one element that occurs ``times`` times."""
        tag = element.tag
        if tag == "body":
            self.spend(element, "bodies", times, MOST_BODIES)
        elif tag in ("composite", "flexcomp"):
            points = math.prod(max(1.0, number) for number in numbers(element, "count"))
            points += len(element.attributes.get("point", "").split()) / 3.0
            self.spend(element, "points", times * points, MOST_POINTS)
        elif tag in ("texture", "hfield"):
            sides = 6.0 if tag == "texture" and element.attributes.get("type") in (None, "cube", "skybox") else 1.0
            for pair in (("width", "height"), ("nrow", "ncol")):
                cells = math.prod(max(1.0, *numbers(element, name)) for name in pair)
                self.spend(element, "cells", sides * cells, MOST_CELLS)
        elif tag == "mesh" and "builtin" in element.attributes:
            finest = max(0.0, *numbers(element, "params"))
            self.spend(element, "vertices", max(1000.0, finest * finest), MOST_CORNERS)
        elif tag == "size":
            for name in element.attributes:
                if name.startswith("n"):
                    most = MOST_USER if name.startswith("nuser_") else MEMORY.get(name, MOST_EXTRA)
                    self.at_most(element, name, most)
        elif tag == "lengthrange":
            self.ranges.append(element)
        self.spend(element, "elements", times, MOST_ELEMENTS)
        for name in ("dim", "num"):
            self.at_most(element, name, MOST_EXTRA)
        if tag == "numeric":
            self.at_most(element, "size", MOST_EXTRA)

    def add_steps(self) -> None:
        """Count the steps that MuJoCo simulates to find length ranges, once for each <lengthrange>."""
        for element in [*self.ranges]:
            if any(_lacks_range(actuator, element) for actuator in self.actuators):
                self.ranges.remove(element)
                steps = max(10.0, *numbers(element, "inttotal"))
                steps /= min([step for step in numbers(element, "timestep") if step > 0.0], default=0.01)
                self.spend(element, "steps", steps, MOST_STEPS)

    def at_most(self, element: Element, name: str, most: float) -> None:
        """Raise an error for an attribute with a value above a limit."""
        if not max(0.0, *numbers(element, name)) <= most:
            value = element.attributes[name]
            raise element.error(f"{name} of <{element.tag}> is too large", value=value, expected=f"at most {most:g}")


def _lacks_range(actuator: Element, how: Element) -> bool:
    """Return whether MuJoCo may simulate to find the length range of an actuator, ignoring default classes.

    Args:
        actuator: The actuator.
        how: The <lengthrange> of the model.
    """
    mode = how.attributes.get("mode", "muscle").strip()
    if mode == "none" or (mode == "muscle" and actuator.tag not in _MUSCLES):
        return False
    low, high = numbers(actuator, "lengthrange")[-2:]
    return how.attributes.get("useexisting", "true").strip() != "true" or not low < high


def numbers(element: Element, name: str) -> list[float]:
    """Return the numbers of an attribute after two zeros, so that the list has at least two entries."""
    found = [0.0, 0.0]
    for word in element.attributes.get(name, "").split():
        try:
            found.append(float(word))
        except ValueError:  # MuJoCo reads the digits up to the first other character: "9x" may be 9
            found += [float(digits) for digits in re.findall(r"[0-9]{1,300}", word)]
    return found


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
