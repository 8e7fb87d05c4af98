"""The ledger of an output folder: the input, settings, version and result of each output.

``ledger.csv`` has a row for each output, sorted by input. The rows have no times, so interruptions of a run do not
change the file. If an input is deleted, its row gets the status ``gone`` and stays until the output is deleted.
``ledger.log`` next to it has a line of JSON for each event: claims of outputs before the work begins, and outcomes with
times, attempts and stacks. Every event is appended at once, so that nothing is lost when a process is killed. Both
files together restore the ledger. Names are written with escapes for line breaks (``escaped``), so that a row is a
line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, cast

from synovia.batch.content import NO_STAMPS, Stamp, Stamps, file_hash, is_unchanged, stamp_of
from synovia.batch.inputs import Item, Shard, escaped, unescaped
from synovia.batch.work import CRASHED, DONE, FAILED, GONE, Figure
from synovia.errors import FileError, FormatError
from synovia.io.base import read_text, write_bytes

NAME: Final = "ledger"
PAGE: Final = "summary.html"
UNFINISHED: Final = ".unfinished"
_LONGEST_HEAD: Final = 2**16  # largest number of characters of the header line
_FIRST: Final = ("input", "status", "verdict", "error", "notes")
_LAST: Final = ("output", "output_sha256", "sha256", "settings")
_ALWAYS: Final = frozenset({"input", "status", "error", "output", "sha256", "settings"})  # columns of every ledger
_NAMES: Final = ("input", "output")
_PAGE_MARK: Final = b"<!-- ledger "
_LOG_MARK: Final = b'{"event"'
_MARKED: Final = 400  # number of bytes at the start of a file that show whether a run wrote it
_SOME: Final = frozenset({"verdict", "notes"})  # figures whose columns are among the first ones
_STATUSES: Final = (DONE, FAILED, CRASHED, GONE)
_REPLACED: Final = "replaced"  # event after which a row is no longer valid
_INSTEAD: Final = "move it, or give another folder, or --force to replace it"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the ledger.

    Args:
        input: Name of the input.
        output: Path of the output below the folder.
        status: ``done``, ``failed``, ``crashed``, or ``gone`` if the input was deleted after it was done.
        sha256: Hash of the input's content.
        settings: Hash of the settings and the version.
        error: Reason for a failure.
        figures: Figures of the result, as text.
        output_sha256: Hash of the output's content.
    """

    input: str
    output: str
    status: str
    sha256: str
    settings: str
    error: str = ""
    figures: Mapping[str, str] = field(default_factory=dict[str, str])
    output_sha256: str = ""

    def figure(self, name: str) -> float:
        """Return a figure as a number; 0 if it is missing or no number."""
        try:
            return float(self.figures.get(name, ""))
        except ValueError:
            return 0.0

    def fields(self) -> dict[str, str]:
        """Return the values by column."""
        own = {"input": self.input, "status": self.status, "error": self.error, "output": self.output}
        own |= {"output_sha256": self.output_sha256, "sha256": self.sha256, "settings": self.settings}
        return own | dict(self.figures)

    def written(self) -> dict[str, str]:
        """Return the values by column, with control characters escaped; names fit on one line."""
        return {name: escaped(text) if name in _NAMES else _readable(text) for name, text in self.fields().items()}


def _readable(text: str) -> str:
    """Return a text with escapes for control characters other than line breaks."""
    return "\n".join(escaped(line, backslash=False) for line in text.split("\n"))


def row_of(fields: Mapping[str, str]) -> Row:
    """Return a row built from values by column."""
    named = (*_FIRST, *_LAST)
    figures = {name: text for name, text in fields.items() if text and (name not in named or name in _SOME)}
    own = {name: fields.get(name, "") for name in named if name not in _SOME}
    return Row(**own, figures=figures)


def as_text(value: Figure) -> str:
    """Return a figure as text that can be read back exactly."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value + 0.0) if isinstance(value, float) else str(value)


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Return a short hash of settings."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def columns_of(rows: Iterable[Row]) -> list[str]:
    """Return the columns of a ledger; figures are in alphabetical order."""
    figures = {name for row in rows for name in row.figures} - _SOME
    return [*_FIRST, *sorted(figures), *_LAST]


def csv_bytes(rows: Sequence[Row]) -> bytes:
    """Return rows as comma-separated text."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.written() for row in rows)
    return out.getvalue().encode()


def parquet_bytes(rows: Sequence[Row]) -> bytes | None:
    """Return rows as a Parquet file with numbers as numbers; None without pyarrow."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        return None
    table: dict[str, Any] = {}
    fields = [row.written() for row in rows]
    for name in columns_of(rows):
        texts = [values.get(name, "") for values in fields]
        table[name] = texts if name in _FIRST or name in _LAST else _numbers(texts)
    out = io.BytesIO()
    parquet.write_table(arrow.table(table), out, compression="zstd")
    return out.getvalue()


def _numbers(texts: list[str]) -> list[float | None] | list[str]:
    """Convert texts to numbers, empty texts to None; return the texts unchanged if one is no number."""
    try:
        return [float(text) if text else None for text in texts]
    except ValueError:
        return texts


class _Seen(NamedTuple):
    """Data of the log about the input and output of a row.

    Args:
        when: Time of the event in seconds; 0 for a row read from ``ledger.csv``.
        path: The input.
        files: Stamps of the files of the input.
        made: Stamp of the output.
    """

    when: float = 0.0
    path: str | None = None
    files: Stamps = NO_STAMPS
    made: Stamp | None = None


class Ledger:
    """The ledger of a folder, open for one run; a context manager.

    Args:
        folder: The output folder, which exists.
        shard: The shard of this run; None for all inputs. Each shard has its own ledger and log; a run without a shard
            merges them.
        force: Whether to replace files that no run wrote, and a damaged ledger.

    Raises:
        FileError: If another run uses the folder, a file cannot be read, or a foreign file or folder has a name that a
            run needs.
        FormatError: If the ledger is damaged.
    """

    def __init__(self, folder: Path, shard: Shard | None = None, *, force: bool = False) -> None:
        """Lock the log and read the rows of earlier runs."""
        self.folder, self._force = folder, force
        self._tag = "" if shard is None else f".{shard.tag}"
        self._log_path = folder / f"{NAME}{self._tag}.log"
        self.rows: dict[str, Row] = {}
        # input of each output of this ledger, by output; None if it is unknown
        self.claimed: dict[str, str | None] = {}
        self.commands: dict[str, str] = {}  # command of a run, by the hash of its settings
        self._seen: dict[str, _Seen] = {}  # latest data of the log, by output
        self._foreign: set[str] = set()  # in the run of a shard: outputs whose rows are in the main ledger
        _check_names(folder, self._tag, force=force)
        self.is_new = not self._log_path.exists()
        with ExitStack() as files:
            if shard is not None:
                files.enter_context(_locked(folder / f"{NAME}.log", shared=True))
            self._log = files.enter_context(_locked(self._log_path))
            self._others = [] if shard is not None else self._shards()
            if shard is not None:
                self._read(folder / f"{NAME}.csv")
                self._foreign = set(self.rows)
            for path in (*self._others, self.path):
                self._read(path)
            self._files = files.pop_all()

    @property
    def path(self) -> Path:
        """The file of the ledger."""
        return self.folder / f"{NAME}{self._tag}.csv"

    def __enter__(self) -> Ledger:
        """Return the ledger."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log, which releases the lock."""
        self._files.close()

    def remove_if_empty(self) -> None:
        """Remove the log if this run created it and recorded no row."""
        if self.is_new and not self.rows:
            with suppress(OSError):  # Windows cannot remove an open file
                self._log_path.unlink()

    def _shards(self) -> list[Path]:
        """Return the ledgers of shards in this folder.

        Raises:
            FileError: If a run of a shard is in progress.
        """
        found = sorted({path.with_suffix("") for path in self.folder.glob(f"{NAME}.*-of-*.log") if _is_log(path)})
        for path in found:
            _locked(path.with_name(path.name + ".log")).close()
        return [path.with_name(path.name + ".csv") for path in found]

    def _read(self, path: Path) -> None:
        """Read a ledger, then the log next to it."""
        if path.exists():
            try:
                for row in _rows_of(path):
                    self._keep(row, _Seen())
            except (FileError, FormatError):
                if not self._force:
                    raise
        log = path.with_suffix(".log")
        if log.exists():
            with log.open("rb") as file:
                for line in file:
                    self._replay(line)

    def _replay(self, line: bytes) -> None:
        """Apply a line of the log; ignore a line that is damaged, or that was cut when a process was killed."""
        # a quick test, because decoding 100 000 damaged lines takes a second
        if line[:1] != b"{" or b"}" not in line[-2:]:
            return
        with suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            event = json.loads(line)
            if event["event"] == "claim":
                self.claimed[str(event["output"])] = _text(event.get("path"))
            elif event["event"] == "run":
                self.commands[settings_hash(event["settings"])] = str(event["settings"]["command"])
            elif event["event"] == _REPLACED:
                self._forget(str(event["output"]), _Seen(float(event["time"])))
            elif event["event"] in _STATUSES:
                row = row_of({str(name): str(value) for name, value in event["row"].items()})
                files = {str(name): _stamp(values) for name, values in event.get("files", {}).items()}
                self._keep(row, _Seen(float(event["time"]), _text(event.get("path")), files, _stamp(event.get("made"))))

    def _keep(self, row: Row, seen: _Seen) -> None:
        """Store a row, unless a later row of the same output is known."""
        self.claimed.setdefault(row.output, seen.path)
        if self._forget(row.output, seen):
            self.rows[row.output] = row
            self._foreign.discard(row.output)

    def _forget(self, output: str, seen: _Seen) -> bool:
        """Remove the row of an output after an event, and return True; do nothing if a later event is known."""
        if seen.when < self._seen.get(output, _Seen()).when:
            return False
        self.rows.pop(output, None)
        self._seen[output] = seen
        return True

    def input_of(self, output: str) -> str | None:
        """Return the input of an output; None if unknown."""
        seen = self._seen.get(output, _Seen())
        return self.claimed.get(output) if seen.path is None else seen.path

    def is_unchanged(self, output: str, path: Path) -> bool:
        """Return whether an input is the input of an output's row, and its stamps prove that it is unchanged."""
        seen = self._seen.get(output, _Seen())
        return seen.path == _absolute(path) and is_unchanged(seen.files, seen.when)

    def is_intact(self, output: str) -> bool:
        """Return whether an output is unchanged since it was made; read its content if the stamp is no proof."""
        seen, path = self._seen.get(output, _Seen()), self.folder / output
        if seen.made is not None and is_unchanged({str(path): seen.made}, seen.when):
            return True
        try:
            made = self.rows[output].output_sha256
            return path.is_file() and (file_hash(path) == made if made else path.stat().st_size > 0)
        except OSError:
            return False

    def check(self) -> None:
        """Check that the log is still in the output folder.

        Raises:
            FileError: If the output folder was removed or moved.
        """
        try:
            if os.path.samestat(os.stat(self._log_path), os.fstat(self._log.fileno())):  # noqa: PTH116
                return
        except OSError:
            pass
        hint = "run the command again"
        raise FileError("the output folder was removed or moved", where=str(self.folder), hint=hint)

    def write_log(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Append events to the log.

        Raises:
            FileError: If it cannot be written.
        """
        lines = b"".join(json.dumps(event, ensure_ascii=True).encode() + b"\n" for event in events)
        try:
            while lines:
                lines = lines[os.write(self._log.fileno(), lines) :]
        except OSError as error:
            raise FileError(f"cannot be written ({error.strerror})", where=str(self._log_path)) from error

    def claim(self, items: Iterable[Item]) -> None:
        """Record that outputs belong to this ledger, before they are moved into the folder."""
        new = {item.output: item for item in items if item.output not in self.claimed}
        paths = {output: _absolute(item.path) for output, item in new.items()}
        self.write_log(
            {"event": "claim", "input": item.name, "output": output, "path": paths[output]}
            for output, item in new.items()
        )
        self.claimed.update(paths)

    def replace(self, output: str) -> None:
        """Remove the row of an output before its file is replaced, so that a killed run leaves no wrong row."""
        if output in self.rows:
            now = time.time()
            self.write_log([{"event": _REPLACED, "output": output, "time": now}])
            self._forget(output, _Seen(now))

    def record(self, row: Row, path: Path, files: Stamps, more: Mapping[str, Any]) -> None:
        """Record an outcome.

        Args:
            row: The row.
            path: The input.
            files: Stamps of the files of the input.
            more: Data that only the log stores: times, attempts, stacks.
        """
        made = stamp_of(self.folder / row.output) if row.status == DONE else None
        seen = _Seen(time.time(), _absolute(path), files, made)
        self.write_log([_event(row, seen) | dict(more)])
        self._keep(row, seen)

    def part_with(self, others: Iterable[str]) -> None:
        """Give the status ``gone`` to rows whose input was deleted; remove rows whose output is missing.

        Args:
            others: Outputs that do not belong to this run.
        """
        for output in others:
            row, place = self.rows[output], self._seen[output].path
            there = _is_file(self.folder / output)
            deleted = place is not None and not _is_file(Path(place))
            if (row.status in (DONE, GONE) and not there) or (row.status not in (DONE, GONE) and deleted):
                del self.rows[output]
            elif row.status == DONE and deleted:
                self.rows[output] = replace(row, status=GONE)

    def sorted_rows(self) -> list[Row]:
        """Return the rows sorted by input, then by output."""
        own = (row for output, row in self.rows.items() if output not in self._foreign)
        return sorted(own, key=lambda row: (row.input, row.output))

    def write(self) -> list[Row]:
        """Write the ledger if it has changed; return its rows."""
        rows = self.sorted_rows()
        data = csv_bytes(rows)
        if not self.path.exists() or self.path.read_bytes() != data:
            write_bytes(self.path, data, force=True)
        return rows

    def unite(self) -> None:
        """Write the rows of shards to this ledger's log, then remove the ledgers of the shards."""
        if not self._others:
            return
        claims = sorted(self.claimed.items())
        self.write_log({"event": "claim", "output": output, "path": path} for output, path in claims)
        self.write_log(_event(row, self._seen[output]) for output, row in self.rows.items())
        for path in self._others:
            for file in (path, path.with_suffix(".log")):
                file.unlink(missing_ok=True)
        self._others = []


def _is_file(path: Path) -> bool:
    """Return whether a file exists; False for a name that is too long for the system."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _event(row: Row, seen: _Seen) -> dict[str, Any]:
    """Return a row as an event of the log."""
    event = {"event": row.status, "row": row.fields(), "time": seen.when, "path": seen.path}
    return event | {"files": seen.files, "made": seen.made}


def _stamp(values: Any) -> Stamp | None:
    """Parse the stamp of an event.

    Raises:
        TypeError: If the value has another form; also ValueError.
    """
    if values is None:
        return None
    device, number, size, modified, changed = map(int, values)
    return device, number, size, modified, changed


def _text(value: Any) -> str | None:
    """Return a value of an event as text; None stays None."""
    return None if value is None else str(value)


def _absolute(path: Path) -> str:
    """Return an absolute path. Links are not resolved, because they may change."""
    return os.path.abspath(path)  # noqa: PTH100


def _rows_of(path: Path) -> list[Row]:
    """Read the rows of a ledger file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is no ledger.
    """
    text = read_text(path)
    try:
        table = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise FormatError(f"is not a ledger of Synovia ({error})", where=str(path), hint=_INSTEAD) from error
    head = table[0] if table else []
    if not set(head) >= _ALWAYS:
        raise FormatError("is not a ledger of Synovia", where=str(path), hint=_INSTEAD)
    rows: list[Row] = []
    for line, cells in enumerate(table[1:], 2):
        if len(cells) != len(head):
            raise FormatError(
                "row and header of the ledger have different lengths", where=f"{path}, line {line}", hint=_INSTEAD
            )
        fields = dict(zip(head, cells, strict=True))
        rows.append(row_of(fields | {name: unescaped(fields[name]) for name in _NAMES}))
    return rows


def _check_names(folder: Path, tag: str, *, force: bool) -> None:
    """Check that no foreign file or folder has a name that a run needs.

    Args:
        folder: The output folder.
        tag: Tag of the shard in file names; "" for no shard.
        force: Whether to replace foreign files; folders are never replaced.

    Raises:
        FileError: If there is such a file or folder, or a file cannot be read.
    """
    log, scratch = folder / f"{NAME}{tag}.log", folder / f"{UNFINISHED}{tag}"
    kinds: dict[Path, Callable[[Path], bool]] = {log: _is_log, folder / f"{NAME}{tag}.csv": _is_table}
    if not tag:
        kinds |= {folder / PAGE: _is_page, folder / f"{NAME}.parquet": _is_parquet}
    for path, is_ours in kinds.items():
        if path.is_dir():
            what = f"is a folder, but a run writes a file named {path.name}"
            raise FileError(what, where=str(path), hint="rename it, or give another output folder")
        if not path.exists() or is_ours(path):
            continue
        if not force:
            raise FileError(f"{path.name} was not written by Synovia", where=str(path), hint=_INSTEAD)
        if path == log:
            path.unlink()
    if scratch.exists() and not log.exists():
        what = "exists, but a run needs a folder of this name for unfinished files"
        raise FileError(what, where=str(scratch), hint="rename it, or give another output folder")


def _starts_with(path: Path, mark: bytes) -> bool:
    """Return whether the first bytes of a file contain a mark."""
    try:
        with path.open("rb") as file:
            return mark in file.read(_MARKED)
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", where=str(path)) from error


def _is_log(path: Path) -> bool:
    """Return whether a file is the log of a run; a log is empty before the first result."""
    return path.stat().st_size == 0 or _starts_with(path, _LOG_MARK)


def _is_table(path: Path) -> bool:
    """Return whether the first line of a file is the header of a ledger."""
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            return set(next(csv.reader([file.readline(_LONGEST_HEAD)]), ())) >= _ALWAYS
    except (OSError, csv.Error):
        return False


def _is_page(path: Path) -> bool:
    """Return whether a file is the summary page of a run."""
    return _starts_with(path, _PAGE_MARK)


def _is_parquet(path: Path) -> bool:
    """Return whether a file is the Parquet ledger of a run; True without pyarrow, since none is written then."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        return True
    try:
        return set(parquet.read_schema(path).names) >= _ALWAYS
    except Exception:  # noqa: BLE001  damaged files raise a dozen exception types
        return False


def _locked(path: Path, *, shared: bool = False) -> BinaryIO:
    """Open and lock a log for appending, and return the open file; the lock ends with the process.

    Args:
        path: The log.
        shared: Whether to lock it in shared mode.

    Raises:
        FileError: If another run has locked the log, or it cannot be written.
    """
    with ExitStack() as files:
        try:
            file = files.enter_context(path.open("a+b", buffering=0))
            if not _lock(file, shared=shared):
                hint = "wait for it, or give another output folder"
                raise FileError("another run is using this folder", where=str(path.parent), hint=hint)
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # if a killed process left an incomplete line
                    file.write(b"\n")
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"cannot be written ({error.strerror})", where=str(path)) from error
        files.pop_all()
        return cast("BinaryIO", file)


def _lock(file: Any, *, shared: bool) -> bool:
    """Lock a file until it is closed; return False if another process has locked it.

    Raises:
        OSError: If the disk does not support locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no module ``fcntl``
        import msvcrt

        windows: Any = msvcrt
        file.seek(2**40)  # lock bytes beyond the end of the log, so that other processes can still read the log
        with suppress(OSError):
            if not shared:  # Windows has no shared locks
                windows.locking(file.fileno(), windows.LK_NBLCK, 1)
            return True
        return False
    with suppress(BlockingIOError):
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True
    return False
