"""The inputs of a run: files, folders and patterns, the output of each input, and shards of the inputs."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Final

from synovia.errors import FileError, InputError
from synovia.io.base import similar_names

_SHOWN: Final = 3  # largest number of names in a message
_CLOSED: Final = ".closed"  # ending of the output for a folder that cannot be opened; such an output is never written
# names in the output folder that are reserved for the run, in upper or lower case
_RESERVED: Final = re.compile(r"(?i:ledger(\.\d+-of-\d+)?\.(csv|log|parquet)|summary\.html|\.unfinished(\..*)?)")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|[nrt\\])")
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t"}
_UNPRINTED: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, surrogates, line and paragraph separators


@dataclass(frozen=True, slots=True)
class Item:
    """One input of a run.

    Args:
        name: Name in the ledger: the path relative to the given folder, with slashes.
        path: The file.
        output: Path of the output relative to the output folder, with slashes.
        rows: First row and end row (exclusive), for a part of a table; None for the whole file.
        problem: Reason why the input cannot be read, for a folder that cannot be opened; "" if none is known.
    """

    name: str
    path: Path
    output: str
    rows: tuple[int, int] | None = None
    problem: str = ""


def is_many(sources: Sequence[str], output: str | None) -> bool:
    """Return whether arguments mean many inputs: several files, a folder, a pattern, or an output folder (``out/``)."""
    return (
        len(sources) > 1
        or any(_is_folder(source) or _is_pattern(source) for source in sources)
        or (output is not None and means_folder(output))
    )


def means_folder(output: str) -> bool:
    """Return whether an output is a folder: one that exists, or a name that ends in a slash."""
    return output.endswith(("/", os.sep)) or _is_folder(output)


def _is_folder(name: str) -> bool:
    """Return whether a folder of this name exists; False if the name is too long."""
    return os.path.isdir(name)  # noqa: PTH112  a path would raise


def _is_pattern(source: str) -> bool:
    """Return whether a text is a pattern such as ``clips/*.bvh`` and not an existing file."""
    return has_magic(source) and not os.path.exists(source)  # noqa: PTH110  a path would raise for a long name


def collect(sources: Sequence[str], output: Path, endings: Iterable[str], ending: str | None = None) -> list[Item]:
    """Return the inputs of a run, sorted by name, each with its output.

    Folders are searched recursively for files with known endings, and links are followed. Hidden files and the output
    folder are skipped. A folder that cannot be opened becomes an input with a ``problem``. Patterns are expanded, and
    ``**`` matches any folders. Outputs have the same subfolders as the inputs. If two inputs differ only in their
    endings, their outputs keep the endings: ``walk.bvh.csv``, ``walk.glb.csv``.

    Args:
        sources: Files, folders and patterns.
        output: The output folder.
        endings: Endings of the files to read from folders, in lower case with the dot.
        ending: Ending of the outputs; None for the ending of each input.

    Raises:
        FileError: If a source does not exist, nothing is found, or two inputs have the same name.
    """
    known = frozenset(endings)
    found: dict[str, Path] = {}
    closed: dict[str, str] = {}  # reasons why folders cannot be opened, by name
    for source in sources:
        for name, path in _found(source, output, known, closed, alone=len(sources) == 1):
            if name in found and found[name] != path:
                what = "two inputs have the same name"
                raise FileError(
                    what,
                    where=str(path),
                    value=str(found[name]),
                    hint="pass the folder that contains both, or rename one",
                )
            found[name] = path
    if found.keys() == closed.keys():
        if closed:
            name = min(closed)
            raise FileError(closed[name], where=str(found[name]))
        raise FileError(
            "no inputs found", where=", ".join(sources), expected=f"files that end in {', '.join(sorted(known))}"
        )
    items = [
        Item(name, found[name], name + _CLOSED, problem=closed[name])
        if name in closed
        else Item(name, found[name], str(PurePosixPath(name).with_suffix(ending)) if ending else name)
        for name in sorted(found)
    ]
    times = Counter(item.output for item in items)
    return [_apart(item, ending, twice=times[item.output] > 1) for item in items]


def _apart(item: Item, ending: str | None, *, twice: bool) -> Item:
    """Return an item; rename its output if another item has the same output, or if the name is reserved for the run."""
    if (twice and ending is not None) or _RESERVED.fullmatch(item.output):
        return replace(item, output=f"{item.name}{ending or PurePosixPath(item.name).suffix}")
    first, slash, rest = item.output.partition("/")
    return replace(item, output=f"{first}_/{rest}") if slash and _RESERVED.fullmatch(first) else item


def shared(outputs: Iterable[str], *, folds_case: bool) -> list[str]:
    """Return the outputs that conflict: several with the same name, or one whose name is a folder of another.

    Args:
        outputs: Paths of outputs relative to their folder.
        folds_case: Whether the disk ignores the case and the Unicode normalization of names.
    """
    names = list(outputs)
    folded = [unicodedata.normalize("NFC", name).casefold() if folds_case else name for name in names]
    times = Counter(folded)
    return [
        name
        for name, key in zip(names, folded, strict=True)
        if times[key] > 1 or any(str(above) in times for above in PurePosixPath(key).parents)
    ]


def escaped(text: str, *, backslash: bool = True) -> str:
    """Return a text with escapes for characters that break lines or cannot be shown.

    Args:
        text: The text.
        backslash: Whether to escape the backslash, too, so that ``unescaped`` restores the text.
    """
    if text.isprintable() and not (backslash and "\\" in text):
        return text
    return "".join(
        repr(sign)[1:-1] if unicodedata.category(sign) in _UNPRINTED or (backslash and sign == "\\") else sign
        for sign in text
    )


def unescaped(text: str) -> str:
    """Return the original text from the result of ``escaped``."""
    return _ESCAPE.sub(_sign, text) if "\\" in text else text


def _sign(escape: re.Match[str]) -> str:
    """Return the character of an escape."""
    letter, digits = escape[1][0], escape[1][1:]
    return chr(int(digits, 16)) if digits else _LETTERS.get(letter, letter)


def _found(
    source: str, output: Path, endings: frozenset[str], closed: dict[str, str], *, alone: bool
) -> Iterable[tuple[str, Path]]:
    """Yield the name and path of each file of a source, and of each folder that cannot be opened.

    Args:
        source: A file, folder or pattern.
        output: The output folder.
        endings: Endings of the files to read from folders.
        closed: Gets the names of folders that cannot be opened, with the reasons.
        alone: Whether this is the only source; else names begin with the folder's name.
    """
    path = Path(source)
    if _is_folder(source):
        yield from _files_below(path, output, endings, "" if alone else f"{path.resolve().name}/", closed)
    elif _is_pattern(source):
        base = _fixed_part(source)
        files = [Path(name) for name in sorted(glob(source, recursive=True))]  # noqa: PTH207  absolute patterns too
        if not files:
            raise FileError("no file matches this pattern", where=source)
        for file in files:
            name = file.relative_to(base).as_posix()
            if file.is_file():
                yield name, file
            elif file.is_dir():
                yield from _files_below(file, output, endings, f"{name}/", closed)
        if "**" in source:  # glob silently skips folders that it cannot open
            yield from _files_below(base, output, frozenset(), "", closed)
    elif os.path.exists(source):  # noqa: PTH110
        yield path.name, path
    else:
        raise FileError("file or folder does not exist", where=source, hint=similar_names(path))


def _fixed_part(pattern: str) -> Path:
    """Return the leading folders of a pattern that contain no wildcard."""
    return Path(*takewhile(lambda part: not has_magic(part), Path(pattern).parts[:-1]))


def _files_below(
    folder: Path, output: Path, endings: frozenset[str], above: str, closed: dict[str, str]
) -> Iterable[tuple[str, Path]]:
    """Yield the files with known endings below a folder, and the folders that cannot be opened.

    Args:
        folder: The folder.
        output: The output folder, which is skipped.
        endings: The endings.
        above: Prefix of the names.
        closed: Gets the names of folders that cannot be opened, with a slash at the end, and the reasons.
    """
    left_out = output.resolve()
    if folder.resolve() == left_out:
        raise InputError("output folder", value=str(output), expected="a folder other than the input folder")
    refused: list[OSError] = []
    seen = {folder.resolve()}  # folders that were visited, because a link may lead to a folder above
    for place, folders, files in os.walk(folder, onerror=refused.append, followlinks=True):
        here = Path(place)
        for name in list(folders):
            real = (here / name).resolve()
            if name.startswith(".") or real == left_out or real in seen:
                folders.remove(name)
            seen.add(real)
        for file in files:
            if not file.startswith(".") and Path(file).suffix.lower() in endings:
                yield above + (here / file).relative_to(folder).as_posix(), here / file
    for error in refused:
        path = Path(error.filename)
        name = f"{above}{path.relative_to(folder).as_posix()}/"
        closed[name] = f"folder cannot be opened ({error.strerror})"
        yield name, path


@dataclass(frozen=True, slots=True)
class Shard:
    """A share of the inputs: every ``of``-th input, beginning with number ``index`` (from 1).

    Args:
        index: Number of the shard, from 1.
        of: Number of shards.
    """

    index: int
    of: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Parse a shard such as ``3/10``.

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
        """Return the tag in the names of this shard's files, such as ``03-of-10``."""
        return f"{self.index:0{len(str(self.of))}}-of-{self.of}"

    def of_items(self, items: Sequence[Item]) -> list[Item]:
        """Return the items of this shard."""
        return list(items[self.index - 1 :: self.of])


def first_names(names: Sequence[str]) -> str:
    """Return the first names of a list, for a message."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
