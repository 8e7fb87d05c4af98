"""The inputs of a run: files, folders and patterns, the output of each, and the shard that this machine does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Final

from synovia.errors import FileError, InputError

_SHOWN: Final = 3  # names in a message
_RESERVED: Final = frozenset({"ledger.csv", "ledger.log", "ledger.parquet", "summary.html"})


@dataclass(frozen=True, slots=True)
class Item:
    """One input of a run.

    Args:
        name: Name in the ledger: the path below the folder that was given, with slashes.
        path: The file.
        output: Path of the output below the output folder, with slashes.
        rows: First row and the row after the last, for a part of a table; None for the whole file.
    """

    name: str
    path: Path
    output: str
    rows: tuple[int, int] | None = None


def is_many(sources: Sequence[str], output: Path | None) -> bool:
    """Return whether arguments mean many inputs: several, a folder, a pattern, or an output folder."""
    return (
        len(sources) > 1
        or any(Path(source).is_dir() or _is_pattern(source) for source in sources)
        or (output is not None and (output.is_dir() or str(output).endswith(("/", os.sep))))
    )


def _is_pattern(source: str) -> bool:
    """Return whether a text is a pattern such as ``clips/*.bvh`` and no file."""
    return has_magic(source) and not Path(source).exists()


def collect(sources: Sequence[str], output: Path, endings: Iterable[str], ending: str | None = None) -> list[Item]:
    """Return the inputs of a run, sorted by name, each with its output.

    A folder is searched with all folders in it for files with known endings; hidden files and the output folder are
    left out. A pattern is expanded; ``**`` stands for any folders. Outputs have the same folders as the inputs. Two
    inputs that differ only in their ending keep it: ``walk.bvh.csv``, ``walk.glb.csv``.

    Args:
        sources: Files, folders and patterns.
        output: The output folder.
        endings: Endings of the files that are taken from folders, in lower case with the dot.
        ending: Ending of the outputs; None for that of each input.

    Raises:
        FileError: If a source does not exist, nothing is found, or two inputs have the same name.
    """
    known = frozenset(endings)
    found: dict[str, Path] = {}
    for source in sources:
        for name, path in _found(source, output, known, alone=len(sources) == 1):
            if name in found and found[name] != path:
                what = "two inputs have the same name"
                raise FileError(what, where=str(path), value=str(found[name]), hint="give the folder above both")
            found[name] = path
    if not found:
        raise FileError("no inputs", where=", ".join(sources), expected=f"files that end in {', '.join(sorted(known))}")
    items = [Item(name, found[name], _with_ending(name, ending)) for name in sorted(found)]
    times = Counter(item.output for item in items)
    return [
        replace(item, output=f"{item.name}{ending or PurePosixPath(item.name).suffix}")
        if (times[item.output] > 1 and ending is not None) or item.output in _RESERVED
        else item
        for item in items
    ]


def _found(source: str, output: Path, endings: frozenset[str], *, alone: bool) -> Iterable[tuple[str, Path]]:
    """Yield the name and path of each file of a source; ``alone`` if it is the only one."""
    path = Path(source)
    if path.is_dir():
        above = "" if alone else f"{path.resolve().name}/"
        yield from ((above + name, file) for name, file in _files_below(path, output, endings))
    elif _is_pattern(source):
        base = _fixed_part(source)
        files = [Path(name) for name in sorted(glob(source, recursive=True))]  # noqa: PTH207  absolute patterns too
        if not files:
            raise FileError("no file has this pattern", where=source)
        for file in files:
            if file.is_file():
                yield file.relative_to(base).as_posix(), file
            elif file.is_dir():
                above = file.relative_to(base).as_posix()
                yield from ((f"{above}/{name}", inner) for name, inner in _files_below(file, output, endings))
    elif path.exists():
        yield path.name, path
    else:
        raise FileError("file does not exist", where=source)


def _fixed_part(pattern: str) -> Path:
    """Return the folders of a pattern before its first sign."""
    fixed: list[str] = []
    for part in Path(pattern).parts[:-1]:
        if has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _files_below(folder: Path, output: Path, endings: frozenset[str]) -> Iterable[tuple[str, Path]]:
    """Yield the files with known endings below a folder, with their paths below it."""
    left_out = output.resolve()
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = [one for one in folders if not one.startswith(".") and (here / one).resolve() != left_out]
        if here.resolve() == left_out:
            raise InputError("output folder", value=str(output), expected="another folder than that of the inputs")
        for file in files:
            if not file.startswith(".") and Path(file).suffix.lower() in endings:
                yield (here / file).relative_to(folder).as_posix(), here / file


def _with_ending(name: str, ending: str | None) -> str:
    """Return a name with another ending."""
    return name if ending is None else str(PurePosixPath(name).with_suffix(ending))


@dataclass(frozen=True, slots=True)
class Shard:
    """A share of the inputs: every ``of``-th one, beginning with number ``index`` (from 1).

    Args:
        index: Number of the shard, from 1.
        of: Number of shards.
    """

    index: int
    of: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Return the shard of a text such as ``3/10``.

        Raises:
            InputError: If the text has another form.
        """
        index, slash, of = text.partition("/")
        if slash and all(part.isascii() and part.isdecimal() and len(part) < 9 for part in (index, of)):
            shard = Shard(int(index), int(of))
            if 1 <= shard.index <= shard.of:
                return shard
        raise InputError("--shard", value=text, expected="I/N with I from 1 to N, for example 3/10")

    @property
    def tag(self) -> str:
        """Return the part of file names that belong to this shard alone."""
        width = len(str(self.of))
        return f"{self.index:0{width}}-of-{self.of}"

    def of_items(self, items: Sequence[Item]) -> list[Item]:
        """Return the items of this shard; the others are left to the other shards."""
        return list(items[self.index - 1 :: self.of])


def first_names(names: Sequence[str]) -> str:
    """Return the first names of a list, for a message."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
