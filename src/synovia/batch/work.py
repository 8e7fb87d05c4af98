"""Do one item of a task in any process, and describe the outcome in plain values."""

from __future__ import annotations

import errno
import hashlib
import secrets
import time
import traceback
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from synovia.batch.inputs import Item
from synovia.errors import FileError, SynoviaError

DONE: Final = "done"
FAILED: Final = "failed"  # the input or the settings are the reason: the same happens again
CRASHED: Final = "crashed"  # the process that worked on it died; another run may succeed
GONE: Final = "gone"  # the input was deleted after it was done
SAME: Final = "same"  # the input has not changed since the last run
_HASHES: Final[dict[tuple[str, int, int], str]] = {}  # of the last file, by name, size and time
_ENDING: Final = 60  # letters of an output's name in that of the unfinished file: systems limit its length
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})  # nothing else can be written either
Figure = str | int | float | bool | None


class Picture(NamedTuple):
    """A picture of an output.

    Args:
        png: The picture.
        paired: Whether each still shows the input at the left and the output at the right.
    """

    png: bytes
    paired: bool = False


class Task(Protocol):
    """A function from an input file to an output file, with its settings; it can be pickled."""

    name: ClassVar[str]  # of the command

    def settings(self) -> dict[str, Any]:
        """Return everything that decides about the output beside the input, as values that JSON can hold."""
        ...

    def prepare(self) -> None:
        """Load models and kernels in this process."""
        ...

    def run(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the output of an input; return figures for the ledger."""
        ...

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output, beside its input if that is there; None if there is none."""
        del output, source
        return None


class Job(NamedTuple):
    """An item to work on.

    Args:
        number: Number of the item in this run.
        item: The item.
        known: Hash of the content that is done already, "" if none is.
        folder: Folder for unfinished files of all jobs.
    """

    number: int
    item: Item
    known: str
    folder: Path


class Outcome(NamedTuple):
    """The outcome of a job.

    Args:
        number: Number of the item in this run.
        status: ``DONE``, ``FAILED``, ``CRASHED`` or ``SAME``.
        sha256: Hash of the input's content, "" if it cannot be read.
        stat: Size in bytes, and time of the last change in nanoseconds, of the input.
        figures: Figures for the ledger.
        error: Reason of a failure, one line.
        trace: Stack of an error that is a bug, or the last words of a process that died.
        seconds: Time that it took.
        attempts: Number of processes that worked on it.
        fatal: Whether nothing else can be written either: the disk is full.
        file: The output, in the job's folder.
    """

    number: int
    status: str
    sha256: str = ""
    stat: tuple[int, int] = (0, 0)
    figures: Mapping[str, Figure] = {}
    error: str = ""
    trace: str = ""
    seconds: float = 0.0
    attempts: int = 1
    fatal: bool = False
    file: Path | None = None


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    Raises:
        OSError: If it cannot be read.
    """
    key = (str(path), *stat_of(path))
    if key in _HASHES:
        return _HASHES[key]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    _HASHES.clear()  # the parts of a table come one after the other
    return _HASHES.setdefault(key, digest)


def stat_of(path: Path) -> tuple[int, int]:
    """Return the size and the time of the last change of a file, zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def work_on(task: Task, job: Job) -> Outcome:
    """Do one job; every error becomes an outcome."""
    begun = time.perf_counter()
    stat = stat_of(job.item.path)
    sha256, trace, fatal = "", "", False
    # a name of its own: an earlier process may have died on the same job, or still be at it
    file = job.folder / f"{job.number}-{secrets.token_hex(4)}-{Path(job.item.output).name[-_ENDING:]}"
    figures: dict[str, Figure] = {}
    try:
        if job.item.path.is_file():  # the reader of the format says what else it is
            sha256 = file_hash(job.item.path)
        if sha256 and sha256 == job.known:
            return Outcome(job.number, SAME, sha256, stat, seconds=time.perf_counter() - begun)
        if job.item.problem:
            raise FileError(job.item.problem, where=str(job.item.path))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figures = dict(task.run(job.item, file))
        if notes := joined([str(figures.get("notes") or ""), *user_warnings(caught)]):
            figures["notes"] = _portable(notes, job, file)
        status, error = DONE, ""
    except MemoryError:
        status, error = FAILED, f"{job.item.name}: does not fit in memory"
    except Exception as problem:  # noqa: BLE001  a bug in one clip is a row of the ledger, too
        status, error = FAILED, one_line(problem)
        if not isinstance(problem, SynoviaError):
            error, trace = f"{job.item.name}: {type(problem).__name__}: {error}", traceback.format_exc()
        error = _portable(error, job, file)
        unwritten = isinstance(problem, FileError) and (problem.where or "").startswith(str(file))
        fatal = unwritten or _is_full(problem)
    seconds = time.perf_counter() - begun
    return Outcome(job.number, status, sha256, stat, figures, error, trace, seconds, 1, fatal, file)


def one_line(problem: BaseException) -> str:
    """Return an error on one line."""
    return " ".join(str(problem).split())


def user_warnings(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the warnings that concern a user's file."""
    return [" ".join(str(one.message).split()) for one in caught if issubclass(one.category, UserWarning)]


def joined(notes: Iterable[str]) -> str:
    """Return notes as one text, each once."""
    return "; ".join(dict.fromkeys(filter(None, notes)))


def _portable(text: str, job: Job, file: Path) -> str:
    """Return a text without the folders, which differ between machines."""
    text = text.replace(str(job.item.path), job.item.name).replace(str(file), job.item.output)
    return text.replace(file.name, PurePath(job.item.output).name)


def _is_full(problem: BaseException) -> bool:
    """Return whether an error comes from a full or read-only disk."""
    if isinstance(problem, OSError) and problem.errno in _FULL:
        return True
    return problem.__cause__ is not None and _is_full(problem.__cause__)
