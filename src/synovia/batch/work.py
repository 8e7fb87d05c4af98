"""Process one item of a task in any process, and describe the result in plain values."""

from __future__ import annotations

import errno
import secrets
import time
import traceback
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from synovia.batch.content import Content, content_of, file_hash
from synovia.batch.inputs import Item, escaped
from synovia.errors import FileError, MissingExtraError, SynoviaError

DONE: Final = "done"
FAILED: Final = "failed"  # status of an item if its input or the settings are wrong, so that another run fails again
CRASHED: Final = "crashed"  # status of an item if the process died; another run may succeed
GONE: Final = "gone"  # status of an item if the input was deleted after its output was made
# the name of an unfinished file ends with this many last characters of the output's name, as systems limit its length
_ENDING: Final = 60
# errors after which no other file can be written either
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
Figure = str | int | float | bool | None


class Picture(NamedTuple):
    """A picture of an output.

    Args:
        png: The picture.
        paired: Whether each still shows the input on the left and the output on the right.
    """

    png: bytes
    paired: bool = False


class Task(Protocol):
    """A function from an input file to an output file, with its settings; it can be pickled."""

    name: ClassVar[str]  # name of the command

    def settings(self) -> dict[str, Any]:
        """Return the settings that, with the input, determine the output, as JSON values."""
        ...

    def prepare(self) -> None:
        """Load models and kernels in this process."""
        ...

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the output of an input; return figures for the ledger."""
        ...

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output, next to its input if the input still exists; None for no picture."""
        del output, source
        return None


class Portion(NamedTuple):
    """An item to work on.

    Args:
        number: Number of the item in this run.
        item: The item.
        folder: Folder for the unfinished files of all portions.
    """

    number: int
    item: Item
    folder: Path


class Result(NamedTuple):
    """The result of a portion.

    Args:
        number: Number of the item in this run.
        status: ``DONE``, ``FAILED`` or ``CRASHED``.
        content: The content of the input; without a hash if another run with the same input may succeed: the input was
            unreadable, or the failure came from a disk, a package or memory.
        made: Hash of the output.
        figures: Figures for the ledger.
        error: Reason for a failure, one line.
        trace: Traceback of an unexpected exception, or the end of stderr of a process that died.
        seconds: Processing time.
        attempts: Number of processes that tried the portion.
        fatal: Whether other outputs cannot be written either, for example on a full disk.
        file: The output, in the portion's folder.
    """

    number: int
    status: str
    content: Content = Content()
    made: str = ""
    figures: Mapping[str, Figure] = {}
    error: str = ""
    trace: str = ""
    seconds: float = 0.0
    attempts: int = 1
    fatal: bool = False
    file: Path | None = None


def work_on(task: Task, portion: Portion) -> Result:
    """Process one portion, and return the result; every exception becomes a result."""
    begun = time.perf_counter()
    content, made, trace, fatal = Content(), "", "", False
    # The name is unique: an earlier process may have died on the same portion, or may still write its file.
    file = portion.folder / f"{portion.number}-{secrets.token_hex(4)}-{Path(portion.item.output).name[-_ENDING:]}"
    figures: dict[str, Figure] = {}
    try:
        content = content_of(portion.item.path)
        with suppress(OSError):  # another program may have removed the folder, so create it again
            portion.folder.mkdir(exist_ok=True)
        if portion.item.problem:
            raise FileError(portion.item.problem, where=str(portion.item.path))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figures = dict(task.work(portion.item, file))
        if notes := joined([str(figures.get("notes") or ""), *user_warnings(caught)]):
            figures["notes"] = _portable(notes, portion, file)
        made = file_hash(file)
        status, error = DONE, ""
    except MemoryError:
        status, error, content = FAILED, f"{escaped(portion.item.name)}: does not fit in memory", Content()
    except Exception as problem:  # noqa: BLE001  any exception becomes a row of the ledger
        status, error = FAILED, _portable(str(problem), portion, file)
        if not isinstance(problem, SynoviaError):
            error, trace = f"{escaped(portion.item.name)}: {type(problem).__name__}: {error}", traceback.format_exc()
        unwritten = isinstance(problem, FileError) and (problem.where or "").startswith(str(file))
        fatal = _is_full(problem) or (unwritten and portion.folder.is_dir())
        if _is_of_surroundings(problem, portion):
            content = Content()
    seconds = time.perf_counter() - begun
    return Result(portion.number, status, content, made, figures, error, trace, seconds, 1, fatal, file)


def _is_of_surroundings(problem: BaseException, portion: Portion) -> bool:
    """Return whether an error comes from a disk, memory, a folder or the installation, and not from the input."""
    if isinstance(problem, MissingExtraError | MemoryError) or (isinstance(problem, OSError) and problem.errno):
        return True
    if isinstance(problem, FileError) and (problem.where or "").startswith(str(portion.folder)):
        return True
    return problem.__cause__ is not None and _is_of_surroundings(problem.__cause__, portion)


def one_line(problem: BaseException) -> str:
    """Return an error on one line."""
    return _one_line(str(problem))


def _one_line(text: str) -> str:
    """Return a text on one line, with control characters escaped."""
    return escaped(" ".join(text.split()), backslash=False)


def user_warnings(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the warnings that concern a user's file."""
    return [" ".join(str(one.message).split()) for one in caught if issubclass(one.category, UserWarning)]


def joined(notes: Iterable[str]) -> str:
    """Return notes as one text, without duplicates."""
    return "; ".join(dict.fromkeys(filter(None, notes)))


def _portable(text: str, portion: Portion, file: Path) -> str:
    """Return a text on one line, with paths replaced by names, because folders differ between machines."""
    output = PurePath(portion.item.output)
    for path, name in ((portion.item.path, portion.item.name), (file, portion.item.output), (file.name, output.name)):
        for written in dict.fromkeys((str(path), " ".join(str(path).split()))):
            text = text.replace(written, escaped(name))
    return _one_line(text)


def _is_full(problem: BaseException) -> bool:
    """Return whether an error comes from a full or read-only disk."""
    if isinstance(problem, OSError) and problem.errno in _FULL:
        return True
    return problem.__cause__ is not None and _is_full(problem.__cause__)
