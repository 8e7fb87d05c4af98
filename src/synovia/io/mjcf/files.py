"""Check the files to which an MJCF model refers, before MuJoCo opens them.

MuJoCo reads every file that a model names, in any folder, and copies parts of a model any number of times. So this
module first reads the model and its included files. MJCF files included by a relative path may be in any folder, as in
shared collections of models, because they contain joints. Shapes outside the model's folder are never opened: they
count as missing, and kinematics does not need them. Any other file that is outside or missing, a document type, or a
count that would exhaust the memory causes an error with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synovia.errors import FormatError
from synovia.io.base import read_bytes
from synovia.io.mjcf.budget import MOST_BODIES, Budget, numbers
from synovia.io.mjcf.stand_ins import Shape
from synovia.io.xmltree import Element, parse

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
    """A model with the files that it includes; the shapes of all these files are not looked up yet.

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
