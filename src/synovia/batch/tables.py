"""Files of rows, read and written block by block: CSV, NumPy archives (npz), Arrow and Parquet.

Blocks of rows begin at multiples of ``BLOCK``, whatever reads or writes them, so that answers do not depend on it.
Arrow and Parquet need pyarrow, the extra ``data``.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FileError, FormatError, SynoviaError, UnsupportedError
from synovia.io.base import optional_package

BLOCK: Final = 2**16  # rows that are in memory at once
PART: Final = 2**18  # rows of a part of a large table; a multiple of BLOCK
ENDINGS: Final = (".parquet", ".arrow", ".npz", ".csv")
_ARROW: Final = (".arrow", ".feather")
_BUFFER: Final = 2**20  # bytes that are read of a column at once
_KINDS: Final = "biufcmMSU"  # NumPy's kinds of numbers, times and texts
_WIDEST: Final = 2**13  # bytes of a row of an array: a block of rows must fit into memory
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)


def _arrow(module: str, path: Path) -> Any:
    """Import a module of pyarrow.

    Raises:
        MissingExtraError: If it is not installed.
    """
    return optional_package(module, f"{path.suffix} files need pyarrow", "data", str(path))


class Source:
    """A file of rows for reading; a context manager.

    Args:
        path: The file; its extension decides the format.

    Raises:
        FileError: If it cannot be read.
        FormatError: If its content is malformed.
        MissingExtraError: If its format needs pyarrow.
        UnsupportedError: If the extension is unknown.
    """

    def __init__(self, path: Path) -> None:
        """Open the file and read the names of the columns."""
        self.path = path
        self.count: int | None = None  # number of rows, if the file tells
        self.names: list[str] = []
        self._close = ExitStack()
        ending = path.suffix.lower()
        openers = {".csv": self._open_csv, ".npz": self._open_npz, ".parquet": self._open_parquet}
        opener = openers.get(ending, self._open_arrow if ending in _ARROW else None)
        if opener is None:
            expected = f"one of {', '.join(ENDINGS)}"
            raise UnsupportedError("no table can be read with this extension", where=str(path), expected=expected)
        if path.is_dir() or not path.exists():
            raise FileError("is a folder" if path.is_dir() else "file does not exist", where=str(path))
        try:
            with _told(path):
                self._read = opener()
            twice = [name for name, times in Counter(self.names).items() if times > 1]
            if twice:
                raise FormatError("names of columns", where=str(path), value=twice, expected="each name once")
        except BaseException:
            self._close.close()
            raise

    def __enter__(self) -> Source:
        """Return the source."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._close.close()

    def blocks(self, rows: tuple[int, int] | None = None) -> Generator[Any]:
        """Yield blocks of at most ``BLOCK`` rows: Arrow tables, or dicts of columns.

        Args:
            rows: First row and the row after the last, the first a multiple of ``BLOCK``; None for all.

        Raises:
            FormatError: If the content is malformed.
        """
        none = True
        with _told(self.path), closing(self._read(*(rows or (0, -1)))) as blocks:
            for block in blocks:
                none = False
                yield block
        if none:  # the answer has the names of its columns all the same
            yield {name: np.zeros(0) for name in self.names}

    def _open_csv(self) -> Callable[[int, int], Generator[Any]]:
        """Open comma-separated text."""
        file = self._close.enter_context(self.path.open(newline="", encoding="utf-8-sig"))
        reader = csv.reader(file)
        self.names = next(reader, list[str]())
        if not self.names:
            raise FormatError("file is empty", where=str(self.path))

        def read(first: int, last: int) -> Generator[Any]:
            del first, last  # never divided
            lines: list[list[str]] = []
            for line in reader:
                if not line:
                    continue
                if len(line) != len(self.names):
                    where = f"{self.path}, line {reader.line_num}"
                    raise FormatError("cells", where=where, value=len(line), expected=str(len(self.names)))
                lines.append(line)
                if len(lines) == BLOCK:
                    yield block(lines)
                    lines = []
            if lines:
                yield block(lines)

        def block(lines: list[list[str]]) -> dict[str, Any]:
            """Return lines as columns of texts; those that are no targets are written as they were read."""
            return dict(zip(self.names, map(list, zip(*lines, strict=True)), strict=True))

        return read

    def _open_npz(self) -> Callable[[int, int], Generator[Any]]:
        """Open a NumPy archive, whose arrays are columns."""
        archive = self._close.enter_context(zipfile.ZipFile(self.path))
        heads: dict[str, tuple[tuple[int, ...], np.dtype[Any], int, int]] = {}  # shape, type, bytes a row and before
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename:
                raise FormatError(f"member {name!r}", where=str(self.path), expected="arrays alone, as .npy")
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                reader = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, fortran, kind = reader(file)
                start = file.tell()
            if kind.kind not in _KINDS or (fortran and len(shape) > 1) or not shape:
                raise FormatError(f"array {name!r}", where=str(self.path), expected="plain numbers or texts by row")
            width = kind.itemsize * math.prod(shape[1:])
            if width > _WIDEST:
                expected = f"at most {_WIDEST} bytes a row"
                raise FormatError(f"array {name!r}", where=str(self.path), value=width, expected=expected)
            if entry.file_size - start != shape[0] * width:
                value, expected = entry.file_size - start, f"{shape[0] * width} bytes"
                raise FormatError(f"array {name!r}", where=str(self.path), value=value, expected=expected)
            self.names.append(name)
            heads[name] = shape, kind, width, start
        sizes = {name: head[0][0] for name, head in heads.items()}
        if len(set(sizes.values())) != 1:
            raise FormatError("lengths of the arrays", where=str(self.path), value=sizes, expected="the same for all")
        count = self.count = next(iter(sizes.values()))

        def read(first: int, last: int) -> Generator[Any]:
            end = count if last < 0 else last
            with ExitStack() as stack:
                files = {name: stack.enter_context(archive.open(f"{name}.npy")) for name in heads}
                for name, (_, _, width, start) in heads.items():
                    files[name].seek(start + first * width)
                for at in range(first, end, BLOCK):
                    size = min(BLOCK, end - at)
                    yield {
                        name: np.frombuffer(files[name].read(size * width), kind).reshape(size, *shape[1:])
                        for name, (shape, kind, width, _) in heads.items()
                    }

        return read

    def _open_parquet(self) -> Callable[[int, int], Generator[Any]]:
        """Open a Parquet file."""
        arrow, parquet = _arrow("pyarrow", self.path), _arrow("pyarrow.parquet", self.path)
        # buffered page by page: a row group may be as large as the file
        file = parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False)
        self._close.callback(file.close)
        self.names, self.count = list(file.schema_arrow.names), int(file.metadata.num_rows)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).tolist()

        def read(first: int, last: int) -> Generator[Any]:
            end = int(self.count or 0) if last < 0 else last
            groups = [i for i in range(len(sizes)) if starts[i] < end and starts[i + 1] > first]
            skip = first - starts[groups[0]] if groups else 0
            batches = map(_checked, file.iter_batches(BLOCK, row_groups=groups, use_threads=False))
            yield from _regular(arrow, batches, file.schema_arrow, skip, end - first)

        return read

    def _open_arrow(self) -> Callable[[int, int], Generator[Any]]:
        """Open an Arrow file."""
        arrow, ipc = _arrow("pyarrow", self.path), _arrow("pyarrow.ipc", self.path)
        mapped = self._close.enter_context(arrow.memory_map(str(self.path)))
        file = ipc.open_file(mapped)
        self.names = list(file.schema.names)
        sizes = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
        self.count = sum(sizes)

        def read(first: int, last: int) -> Generator[Any]:
            end = int(self.count or 0) if last < 0 else last
            batches = (_checked(file.get_batch(i)) for i in range(file.num_record_batches))
            yield from _regular(arrow, batches, file.schema, first, end - first)

        return read


def _checked(batch: Any) -> Any:
    """Return a batch after a full check: a damaged file may have offsets outside it, or texts that are not Unicode."""
    batch.validate(full=True)
    return batch


def _regular(arrow: Any, batches: Iterator[Any], schema: Any, skip: int, count: int) -> Generator[Any]:
    """Yield tables of ``BLOCK`` rows, the last one shorter, from batches of any size.

    Args:
        arrow: The module pyarrow.
        batches: The batches.
        schema: Their schema.
        skip: Rows to leave out at the beginning.
        count: Rows to yield.
    """
    held: list[Any] = []
    size = 0
    for batch in batches:
        piece = batch.slice(skip)
        skip -= batch.num_rows - piece.num_rows
        piece = piece.slice(0, count)
        count -= piece.num_rows
        while piece.num_rows:
            part = piece.slice(0, BLOCK - size)
            held.append(part)
            size += part.num_rows
            piece = piece.slice(part.num_rows)
            if size == BLOCK:
                yield arrow.Table.from_batches(held, schema).combine_chunks()
                held, size = [], 0
        if count <= 0:
            break
    if held:
        yield arrow.Table.from_batches(held, schema).combine_chunks()


@contextmanager
def _told(path: Path) -> Generator[None]:
    """Turn errors of readers into ``FormatError`` and ``FileError``."""
    try:
        yield
    except (SynoviaError, MemoryError):
        raise
    except OSError as error:
        if error.errno is None:  # of pyarrow
            raise FormatError(f"is damaged ({str(error).partition(chr(10))[0]})", where=str(path)) from error
        raise FileError(f"cannot be read ({error.strerror})", where=str(path)) from error
    except Exception as error:  # damaged archives and tables raise a dozen exception types
        raise FormatError(f"is damaged ({str(error).partition(chr(10))[0]})", where=str(path)) from error


class Sink(Protocol):
    """A file of rows for writing."""

    def write(self, block: Any) -> None:
        """Write the answers to a block.

        Raises:
            FormatError: If the format cannot hold a column.
        """
        ...


@contextmanager
def open_sink(path: Path, *, force: bool = False) -> Generator[Sink]:
    """Open a file of rows for writing; it is whole or absent.

    Args:
        path: The file; its extension decides the format.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If it exists and ``force`` is not set, or it cannot be written.
        MissingExtraError: If its format needs pyarrow.
        UnsupportedError: If the extension is unknown.
    """
    ending = path.suffix.lower()
    kinds = {".csv": _CsvSink, ".npz": _NpzSink, ".parquet": _ArrowSink, **dict.fromkeys(_ARROW, _ArrowSink)}
    if ending not in kinds:
        expected = f"one of {', '.join(ENDINGS)}"
        raise UnsupportedError("no table can be written with this extension", where=str(path), expected=expected)
    if path.exists() and not force:
        raise FileError("file exists", where=str(path), hint="pass --force to replace it")
    if kinds[ending] is _ArrowSink:
        _arrow("pyarrow", path)  # an error names this file, not the temporary one
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            with ExitStack() as files:
                sink = kinds[ending](temporary, files)
                yield sink
                if isinstance(sink, _NpzSink):
                    sink.complete()
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
    except SynoviaError:
        raise
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", where=str(path)) from error


class _CsvSink:
    """Comma-separated text."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        """Open the file."""
        file = files.enter_context(path.open("w", newline="", encoding="utf-8"))
        self._writer = csv.writer(file, lineterminator="\n")
        self._begun = False

    def write(self, block: Any) -> None:
        """Write the answers to a block."""
        columns = _columns(block)
        if not self._begun:
            self._writer.writerow(columns)
            self._begun = True
        self._writer.writerows(zip(*map(_cells, columns.values()), strict=True))


class _NpzSink:
    """A NumPy archive, put together from a file for each column."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        """Begin without columns."""
        self._path, self._stack = path, files
        self._files: dict[str, IO[bytes]] = {}
        self._heads: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        self._count = 0

    def write(self, block: Any) -> None:
        """Write the answers to a block."""
        size = 0
        for name, column in _columns(block).items():
            values = self._array(name, column)
            size = len(values)
            head = values.shape[1:], values.dtype
            if self._heads.setdefault(name, head) != head:
                raise FormatError(f"column {name!r} changes its type from block to block", where=self._path.name)
            if name not in self._files:
                self._files[name] = self._temporary()
            self._files[name].write(np.ascontiguousarray(values).tobytes())
        self._count += size

    def _array(self, name: str, column: Any) -> NDArray[Any]:
        """Return a column as an array; texts are as long as the longest so far.

        Raises:
            FormatError: If its rows are lists of different lengths.
        """
        try:
            values = np.asarray(_by_numpy(column))
        except ValueError as error:
            hint = "Parquet, Arrow and CSV files hold such lists"
            expected = "lists of the same length in all rows"
            raise FormatError(f"column {name!r}", where=self._path.name, expected=expected, hint=hint) from error
        if values.dtype.kind not in "OU":
            return values
        values = np.array(["" if text is None else str(text) for text in values.tolist()] or [""])[: len(values)]
        before = self._heads[name][1] if name in self._heads else values.dtype
        if before.kind == "U" and before.itemsize < values.dtype.itemsize:
            self._widen(name, before, values.dtype)
        return values.astype(before) if before.kind == "U" and before.itemsize > values.dtype.itemsize else values

    def _widen(self, name: str, before: np.dtype[Any], after: np.dtype[Any]) -> None:
        """Write the texts of a column anew with room for longer ones."""
        with self._files[name] as old:
            self._files[name], self._heads[name] = self._temporary(), ((), after)
            old.seek(0)
            while data := old.read(BLOCK * before.itemsize):
                self._files[name].write(np.frombuffer(data, before).astype(after).tobytes())

    def _temporary(self) -> IO[bytes]:
        """Return a file that exists until it is closed, on the disk of the archive."""
        return self._stack.enter_context(tempfile.TemporaryFile(dir=self._path.parent))

    def complete(self) -> None:
        """Put the archive together."""
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED) as archive:
            for name, file in self._files.items():
                inner, kind = self._heads[name]
                with archive.open(zipfile.ZipInfo(f"{name}.npy", _ZIP_TIME), "w", force_zip64=True) as entry:
                    head = {"descr": kind.str, "fortran_order": False, "shape": (self._count, *inner)}
                    np.lib.format.write_array_header_1_0(entry, head)
                    file.seek(0)
                    shutil.copyfileobj(file, entry, _BUFFER)


class _ArrowSink:
    """An Arrow or Parquet file."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        """Import pyarrow."""
        self._path, self._stack = path, files
        self._arrow = _arrow("pyarrow", path)
        self._writer: Any = None
        self._schema: Any = None

    def write(self, block: Any) -> None:
        """Write the answers to a block."""
        try:
            table = block if hasattr(block, "schema") else self._arrow.table(_listed(block))
            if self._writer is None:
                self._schema, self._writer = table.schema, self._open(table.schema)
                self._stack.callback(self._writer.close)
            self._writer.write_table(table.cast(self._schema))
        except (ValueError, TypeError, NotImplementedError) as error:  # of pyarrow
            what, hint = "a column cannot be stored, or changes its type from block to block", str(error)
            raise FormatError(what, where=self._path.name, hint=hint.partition("\n")[0]) from error

    def _open(self, schema: Any) -> Any:
        """Open the file for tables of a schema."""
        if self._path.suffix.lower() != ".parquet":
            return _arrow("pyarrow.ipc", self._path).new_file(str(self._path), schema)
        texts = [field.name for field in schema if self._arrow.types.is_string(field.type)]
        parquet = _arrow("pyarrow.parquet", self._path)
        # joint values hardly compress, and a dictionary of them costs more than the file
        return parquet.ParquetWriter(
            self._path, schema, compression="lz4", use_dictionary=texts, write_statistics=False
        )


def _columns(block: Any) -> Mapping[str, Any]:
    """Return the columns of a block: arrays and lists, or those of Arrow."""
    if not hasattr(block, "schema"):
        return block
    return {name: block.column(name) for name in block.schema.names}


def _listed(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns for Arrow: arrays of several dimensions as lists."""
    return {
        name: column.tolist() if isinstance(column, np.ndarray) and column.ndim > 1 else column
        for name, column in block.items()
    }


def _by_numpy(column: Any) -> Any:
    """Return a column of Arrow as an array, lists as they are; other columns unchanged."""
    if not hasattr(column, "to_pylist"):
        return column
    return column.to_pylist() if "list" in str(column.type) else column.to_numpy()


def _cells(column: Any) -> Any:
    """Return the cells of a column for ``csv``, which writes numbers exactly and nothing for None."""
    if hasattr(column, "to_pylist"):
        if str(column.type).startswith(("timestamp", "date", "time")):
            column = column.cast("string")
        # NumPy has no gaps among whole numbers
        array = None if column.null_count else column.to_numpy()
        column = column.to_pylist() if array is None or array.dtype.kind == "O" else array
    kind = column.dtype.kind if hasattr(column, "dtype") else ""
    if kind == "S":
        return np.char.decode(column, "utf-8", "replace").tolist()
    return column.astype(str) if kind == "M" else column.tolist() if kind else column
