"""What an MJCF file refers to, looked at before MuJoCo may open it.

MuJoCo reads every file that a model names, wherever it lies, and copies parts of a model as often as it is told to. So
the model and what it includes are read here first: a file outside the model's folder, one that is missing, a document
type or a count that would exhaust memory is refused with its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from synovia.io.base import read_bytes
from synovia.io.mjcf.budget import MOST_BODIES, Budget
from synovia.xmltree import Element, parse

LARGEST_FILE: Final = 2**27  # bytes of XML
MOST_EXTRA: Final = 10_000  # any number in <size>: user data per element, contacts
_MOST: Final = {"body": MOST_BODIES, "joint": 4 * MOST_BODIES}
_FOLDERS: Final = ("meshdir", "texturedir", "assetdir")
_NESTED: Final = ("include", "model")  # elements whose file is MJCF again


def check_files(path: Path) -> bool:
    """Look at a model and at everything that it names.

    Args:
        path: The model.

    Returns:
        Whether it consists of several MJCF files.

    Raises:
        FileError: If the model or a file that it includes cannot be read.
        FormatError: If a file is malformed, is outside the model's folder or missing, or would be too large.
    """
    home = path.resolve().parent
    folders = {Path()}
    assets: list[tuple[Element, Path, str]] = []
    budget = Budget()
    waiting = [(path, Path(), "mujoco")]
    seen = {path.resolve()}
    while waiting:
        file, folder, kind = waiting.pop()
        root = parse(read_bytes(file, most=LARGEST_FILE), str(file), root=kind or None, most=_MOST)
        budget.count(root)
        for element in _walk(root):
            _refuse_size(element)
            folders.update(Path(element.attributes[name]) for name in _FOLDERS if name in element.attributes)
            for name, value in element.attributes.items():
                if not name.startswith("file"):
                    continue
                if element.tag not in _NESTED:
                    assets.append((element, folder, value))
                    continue
                nested = _resolve(element, home, {Path(), folder}, value)
                if nested not in seen:
                    seen.add(nested)
                    waiting.append((nested, nested.parent.relative_to(home), ""))
    for element, folder, value in assets:
        _resolve(element, home, folders | {folder / other for other in folders}, value)
    return len(seen) > 1


def _walk(root: Element) -> Iterator[Element]:
    """Yield an element and all below it."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += element.children


def _resolve(element: Element, home: Path, folders: set[Path], value: str) -> Path:
    """Return a file that an element names, which must exist, and be in the model's folder wherever it is looked for."""
    tried = sorted({(home / folder / value.strip()) for folder in folders})
    tried += [home / folder / Path(value.strip()).name for folder in folders]  # compiler strippath="true"
    found: Path | None = None
    for candidate in tried:
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
                hint="copy it there; nothing outside is opened",
            )
        if there and found is None:
            found = place
    if found is None:
        raise element.error(
            f"file of <{element.tag}> does not exist",
            value=value,
            expected=f"a file in {home}",
            hint="put it there, or remove the element and what uses it: kinematics needs no shapes",
        )
    return found


def _refuse_size(element: Element) -> None:
    """Refuse tables that would exhaust memory."""
    if element.tag == "size":
        for name in element.attributes:
            if name.startswith("n") and not max(0.0, *_numbers(element, name)) <= MOST_EXTRA:
                value = element.attributes[name]
                raise element.error(f"{name} of <size> is too large", value=value, expected=f"at most {MOST_EXTRA}")


def _numbers(element: Element, name: str) -> list[float]:
    """Return the numbers of an attribute; 0 where there is none, which MuJoCo will complain about."""
    try:
        return [float(word) for word in element.attributes[name].split()] or [0.0]
    except ValueError:
        return [0.0]
