"""Files of rows, read and written block by block: CSV, NumPy archives (npz), Arrow and Parquet.

A block needs a few megabytes for any table: tables with many columns or long texts are read in shorter blocks. A small
file can hold a large table, by compression or repeated values. The memory for unpacking is computed first, and a file
above the limit is refused. The answer to a row does not depend on the other rows of its block. Arrow and Parquet need
pyarrow, the extra ``data``.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from synovia.batch.unpacking import arrow_batches, parquet_groups
from synovia.errors import FileError, FormatError, SynoviaError, UnsupportedError
from synovia.io.base import optional_package

BLOCK: Final = 2**16  # largest number of rows in a block, and in a row group of Parquet
BLOCK_BYTES: Final = 2**23  # bytes of memory that a block may use, estimated before reading
PART: Final = 2**18  # number of rows in one part of a large table
MOST_COLUMNS: Final = 2**15
_CELL: Final = 64  # size of a short Python string in memory, bytes
_LONGEST_LINE: Final = 2**22  # largest number of characters in a row of text
_UNPACKED: Final = 2**25  # bytes that a file may unpack at once, in addition to twice its size
_PAGE: Final = 2**20  # default size of a page of a column in Parquet, bytes
# largest number of compressed columns in an archive, because all of them are unpacked at the same time
_COMPRESSED: Final = 2**13
ENDINGS: Final = (".parquet", ".arrow", ".npz", ".csv")
_ARROW: Final = (".arrow", ".feather")
_ARROW_MAGIC: Final = 8  # bytes before the messages of an Arrow file
_BUFFER: Final = 2**20  # bytes of a column that are read at once
_KINDS: Final = "biufcmMSU"  # NumPy's kinds of numbers, times and texts
_WIDEST: Final = 2**13  # largest size in bytes of a row of an array
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)


def rows_at_once(row_bytes: float) -> int:
    """Return the number of rows in a block, for a memory size per row in bytes."""
    rows = BLOCK
    while rows > 1 and rows * row_bytes > BLOCK_BYTES:
        rows //= 2
    return rows


def _arrow(module: str, path: Path) -> Any:
    """Import and return a module of pyarrow.

    Raises:
        MissingExtraError: If it is not installed.
    """
    return optional_package(module, f"{path.suffix} files need pyarrow", "data", str(path))


_Reader = Callable[[int, int, int], Generator[Any]]  # first row, end row (exclusive) or -1, extra bytes per row


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
        self.count: int | None = None  # number of rows; None if the file does not store the number
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
            with _named_errors(path):
                self._read = opener()
            if len(self.names) > MOST_COLUMNS:
                raise FormatError("columns", where=str(path), value=len(self.names), expected=f"at most {MOST_COLUMNS}")
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

    def blocks(self, rows: tuple[int, int] | None = None, *, answer_bytes: int = 0) -> Generator[Any]:
        """Yield blocks of at most ``BLOCK`` rows: Arrow tables, or dicts of columns.

        Args:
            rows: First row and end row (exclusive); None for all.
            answer_bytes: Bytes of memory for the answer to a row.

        Raises:
            FormatError: If the content is malformed.
        """
        none = True
        with _named_errors(self.path), closing(self._read(*(rows or (0, -1)), answer_bytes)) as blocks:
            for block in blocks:
                none = False
                yield block
        if none:  # yield one empty block, so that the answer has its column names
            yield {name: np.zeros(0) for name in self.names}

    def _open_csv(self) -> _Reader:
        """Open comma-separated text, and return the reader of its blocks."""
        file = self._close.enter_context(self.path.open(newline="", encoding="utf-8-sig"))
        lines = _Lines(file, self.path)
        reader = csv.reader(lines)
        self.names = next(reader, list[str]())
        if not self.names:
            raise FormatError("file is empty", where=str(self.path))

        def read(first: int, last: int, answer_bytes: int) -> Generator[Any]:
            del first, last  # CSV files are never divided into parts
            most = rows_at_once(_CELL * len(self.names) + answer_bytes)
            rows: list[list[str]] = []
            letters = 0  # number of characters in the current block
            lines.taken = 0
            for row in reader:
                letters += lines.taken
                lines.taken = 0
                if not row:
                    continue
                if len(row) != len(self.names):
                    where = f"{self.path}, line {reader.line_num}"
                    raise FormatError("cells", where=where, value=len(row), expected=str(len(self.names)))
                rows.append(row)
                if len(rows) == most or letters > BLOCK_BYTES // 4:  # a character takes up to four bytes
                    yield block(rows)
                    rows, letters = [], 0
            if rows:
                yield block(rows)

        def block(rows: list[list[str]]) -> dict[str, Any]:
            """Return rows as columns of texts, so that columns other than targets are written exactly as read."""
            return dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=True))

        return read

    def _open_npz(self) -> _Reader:
        """Open a NumPy archive, whose arrays are columns, and return the reader of its blocks."""
        archive = self._close.enter_context(zipfile.ZipFile(self.path))
        packed = sum(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())
        if packed > _COMPRESSED or len(archive.infolist()) > MOST_COLUMNS:
            most = f"at most {MOST_COLUMNS} columns, {_COMPRESSED} of them compressed"
            raise FormatError("columns", where=str(self.path), value=len(archive.infolist()), expected=most)
        heads: dict[str, tuple[tuple[int, ...], np.dtype[Any], int, int]] = {}  # shape, type, bytes per row, offset
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename:
                raise FormatError(f"member {name!r}", where=str(self.path), expected="only .npy arrays")
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                reader = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, fortran, kind = reader(file)
                start = file.tell()
            if kind.kind not in _KINDS or (fortran and len(shape) > 1) or not shape:
                raise FormatError(f"array {name!r}", where=str(self.path), expected="numbers or texts, one per row")
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
        row_bytes = _CELL * len(heads) + sum(head[2] for head in heads.values())
        self._check_row(row_bytes)

        def read(first: int, last: int, answer_bytes: int) -> Generator[Any]:
            end = count if last < 0 else last
            most = rows_at_once(row_bytes + answer_bytes)
            with ExitStack() as stack:
                files = {name: stack.enter_context(archive.open(f"{name}.npy")) for name in heads}
                for name, (_, _, width, start) in heads.items():
                    files[name].seek(start + first * width)
                for at in range(first, end, most):
                    size = min(most, end - at)
                    yield {
                        name: np.frombuffer(files[name].read(size * width), kind).reshape(size, *shape[1:])
                        for name, (shape, kind, width, _) in heads.items()
                    }

        return read

    def _check_row(self, row_bytes: float) -> None:
        """Raise an error for a table whose rows need too much memory.

        Raises:
            FormatError: If a row is larger than ``BLOCK_BYTES``.
        """
        if row_bytes > BLOCK_BYTES:
            expected = f"at most {BLOCK_BYTES}"
            raise FormatError("size of a row in bytes", where=str(self.path), value=int(row_bytes), expected=expected)

    def _check_unpacked(self, size: int, what: str) -> None:
        """Raise an error for a file that needs much more memory at once than its size on disk.

        Raises:
            FormatError: If the unpacked size is above the limit.
        """
        most = _UNPACKED + 2 * self.path.stat().st_size
        if size > most:
            hint = f"write it with smaller {what}"
            raise FormatError(
                f"unpacked {what}", where=str(self.path), value=size, expected=f"at most {most} bytes", hint=hint
            )

    def _open_parquet(self) -> _Reader:
        """Open a Parquet file, and return the reader of its blocks."""
        arrow, parquet = _arrow("pyarrow", self.path), _arrow("pyarrow.parquet", self.path)
        with closing(parquet.ParquetFile(self.path, pre_buffer=False)) as head:
            columns = [head.schema.column(i) for i in range(len(head.schema.names))]
            kinds = head.schema_arrow
        if len(columns) > MOST_COLUMNS:
            raise FormatError("columns", where=str(self.path), value=len(columns), expected=f"at most {MOST_COLUMNS}")
        texts = [
            field.name for field in kinds if arrow.types.is_string(field.type) or arrow.types.is_binary(field.type)
        ]
        # buffer single pages, because a row group may be as large as the file; dictionaries store repeated texts once
        buffer = min(_BUFFER, max(4096, BLOCK_BYTES // max(len(columns), 1)))
        file = parquet.ParquetFile(self.path, buffer_size=buffer, pre_buffer=False, read_dictionary=texts)
        self._close.callback(file.close)
        self.names, self.count = list(file.schema_arrow.names), int(file.metadata.num_rows)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).tolist()
        row_bytes = self._row_bytes(columns)

        def read(first: int, last: int, answer_bytes: int) -> Generator[Any]:
            end = int(self.count or 0) if last < 0 else last
            groups = [i for i in range(len(sizes)) if starts[i] < end and starts[i + 1] > first]
            skip = first - starts[groups[0]] if groups else 0
            most = rows_at_once(row_bytes + answer_bytes)
            batches = map(_checked, file.iter_batches(most, row_groups=groups, use_threads=False))
            yield from _regular(arrow, batches, kinds, skip, end - first, most)

        return read

    def _row_bytes(self, columns: Sequence[Any]) -> float:
        """Return the bytes per row of a Parquet file without its texts, the largest over its row groups.

        Raises:
            FormatError: If a row, or the data to unpack at once, needs too much memory.
        """
        widest = 0.0
        for group in parquet_groups(self.path):
            row = pages = 0.0
            for kind, chunk in zip(columns, group.chunks, strict=True):
                size = kind.length if kind.physical_type == "FIXED_LEN_BYTE_ARRAY" else 16
                if kind.max_repetition_level:  # a column of lists, in which one row may hold all values
                    self._check_unpacked(size * chunk.values, "row groups")
                    size *= chunk.values / max(group.rows, 1)
                self._check_unpacked(chunk.size, "row groups")
                row += size
                pages += min(chunk.size, _PAGE)
            self._check_unpacked(int(pages), "row groups")
            widest = max(widest, row)
        self._check_row(widest)
        return widest

    def _open_arrow(self) -> _Reader:
        """Open an Arrow file, and return the reader of its blocks."""
        arrow, ipc = _arrow("pyarrow", self.path), _arrow("pyarrow.ipc", self.path)
        mapped = self._close.enter_context(arrow.memory_map(str(self.path)))
        self.count = 0
        mapped.seek(_ARROW_MAGIC)
        for rows, unpacked in arrow_batches(ipc.MessageReader.open_stream(mapped)):
            self._check_unpacked(unpacked, "record batches")
            self.count += rows
        mapped.seek(0)
        file = ipc.open_file(mapped)
        self.names = list(file.schema.names)

        def read(first: int, last: int, answer_bytes: int) -> Generator[Any]:
            end = int(self.count or 0) if last < 0 else last
            most = rows_at_once(_CELL + answer_bytes)
            batches = (_checked(file.get_batch(i)) for i in range(file.num_record_batches))
            yield from _regular(arrow, batches, file.schema, first, end - first, most)

        return read


class _Lines:
    """Iterator over the lines of a text file that raises an error for rows that are too long.

    Args:
        file: The file.
        path: Path of the file, for messages.
    """

    def __init__(self, file: TextIO, path: Path) -> None:
        """Begin at the first line."""
        self._file, self._path = file, path
        self.taken = 0  # number of characters read since the last row; the reader of rows resets it to 0

    def __iter__(self) -> Iterator[str]:
        """Return the lines."""
        return self

    def __next__(self) -> str:
        """Return the next line.

        Raises:
            FormatError: If the row is too long.
        """
        line = self._file.readline(_LONGEST_LINE + 1)
        self.taken += len(line)
        if self.taken > _LONGEST_LINE:
            raise FormatError("row is too long", where=str(self._path), expected=f"at most {_LONGEST_LINE} characters")
        if not line:
            raise StopIteration
        return line


def _checked(batch: Any) -> Any:
    """Check a batch completely: a damaged file may have offsets out of range or texts that are not Unicode."""
    batch.validate(full=True)
    return batch


def _regular(arrow: Any, batches: Iterator[Any], schema: Any, skip: int, count: int, most: int) -> Generator[Any]:
    """Yield tables of a given size from batches of any size.

    Args:
        arrow: The module pyarrow.
        batches: The batches; their texts may be dictionary-encoded.
        schema: The schema of the tables.
        skip: Number of rows to skip at the beginning.
        count: Number of rows to yield.
        most: Rows per table; the last table, and tables with long texts, have fewer.
    """
    held: list[Any] = []
    size, weight = 0, 0.0
    for batch in batches:
        piece = batch.slice(skip)
        skip -= batch.num_rows - piece.num_rows
        piece = piece.slice(0, count)
        count -= piece.num_rows
        row_bytes = _mean_bytes(arrow, piece)
        longest = rows_at_once(row_bytes)
        while piece.num_rows:
            part = piece.slice(0, min(most - size, longest))
            held.append(part)
            size += part.num_rows
            weight += row_bytes * part.num_rows
            piece = piece.slice(part.num_rows)
            if size == most or weight > BLOCK_BYTES / 2:
                yield _plain_table(arrow, held, schema)
                held, size, weight = [], 0, 0.0
        if count <= 0:
            break
    if held:
        yield _plain_table(arrow, held, schema)


def _plain_table(arrow: Any, pieces: list[Any], schema: Any) -> Any:
    """Return pieces of batches as one table; decode dictionaries that the schema does not have."""
    return arrow.Table.from_batches(pieces).combine_chunks().cast(schema)


def _mean_bytes(arrow: Any, batch: Any) -> float:
    """Return the mean bytes per row of a batch after its dictionary-encoded texts are decoded."""
    total = 0.0
    for column in batch.columns:
        if not arrow.types.is_dictionary(column.type):
            total += column.nbytes
            continue
        total += 8 * len(column)
        kind = column.type.value_type
        if arrow.types.is_string(kind) or arrow.types.is_binary(kind) or arrow.types.is_large_string(kind):
            lengths = import_module("pyarrow.compute").binary_length(column.dictionary)
            taken = lengths.to_numpy(zero_copy_only=False)[column.indices.drop_null().to_numpy()]
            total += float(np.nansum(taken))
    return total / max(batch.num_rows, 1)


@contextmanager
def _named_errors(path: Path) -> Generator[None]:
    """Convert errors of readers to ``FormatError`` and ``FileError``."""
    try:
        yield
    except (SynoviaError, MemoryError):
        raise
    except OSError as error:
        if error.errno is None:  # raised by pyarrow
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
    """Open a file of rows for writing; the file appears only when it is complete.

    Args:
        path: The file; its extension decides the format.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
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
        _arrow("pyarrow", path)  # check here, so that an error names this file and not the temporary one
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            with ExitStack() as files:
                sink = kinds[ending](temporary, files)
                yield sink
                if not isinstance(sink, _CsvSink):
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
    """A NumPy archive, assembled from one temporary file per column."""

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
            if name not in self._files:
                self._files[name] = self._temporary()
            head = values.shape[1:], self._texts(name, values) if values.dtype.kind in "OU" else values.dtype
            if self._heads.setdefault(name, head) != head:
                raise FormatError(f"column {name!r} changes its type from block to block", where=self._path.name)
            rows = rows_at_once(head[1].itemsize)
            for at in range(0, size, rows):  # in blocks, because fixed-width texts all take the size of the longest
                self._files[name].write(_fixed(values[at : at + rows], head[1]).tobytes())
        self._count += size

    def _texts(self, name: str, values: NDArray[Any]) -> np.dtype[Any]:
        """Return the fixed-width type of a column of texts; widen the written texts if a block has longer ones.

        Raises:
            FormatError: If a text is too long.
        """
        longest = max((len(_text(value)) for value in values.tolist()), default=1) or 1
        if 4 * longest > _WIDEST:
            expected = f"texts of at most {_WIDEST // 4} characters, because each takes the space of the longest"
            hint = "use a Parquet, Arrow or CSV file for long texts"
            raise FormatError(f"column {name!r}", where=self._path.name, value=longest, expected=expected, hint=hint)
        kind = np.dtype(f"U{longest}")
        before = self._heads[name][1] if name in self._heads else kind
        if before.kind == "U" and before.itemsize < kind.itemsize:
            self._widen(name, before, kind)
        return before if before.kind == "U" and before.itemsize > kind.itemsize else kind

    def _array(self, name: str, column: Any) -> NDArray[Any]:
        """Return a column as an array.

        Raises:
            FormatError: If its rows are lists of different lengths.
        """
        try:
            given: Any = _by_numpy(column)
            if isinstance(given, list):
                cells = cast("list[Any]", given)
                if all(isinstance(cell, str) for cell in cells):
                    return np.array(cells, object)  # fixed-width texts would all have the size of the longest text
            return np.asarray(cast("Any", given))
        except ValueError as error:
            hint = "use a Parquet, Arrow or CSV file for lists of different lengths"
            expected = "lists of the same length in all rows"
            raise FormatError(f"column {name!r}", where=self._path.name, expected=expected, hint=hint) from error

    def _widen(self, name: str, before: np.dtype[Any], after: np.dtype[Any]) -> None:
        """Rewrite the texts of a column with a wider type."""
        with self._files[name] as old:
            self._files[name], self._heads[name] = self._temporary(), ((), after)
            old.seek(0)
            while data := old.read(rows_at_once(after.itemsize) * before.itemsize):
                self._files[name].write(np.frombuffer(data, before).astype(after).tobytes())

    def _temporary(self) -> IO[bytes]:
        """Return a new temporary file on the disk of the archive; closing deletes it."""
        return self._stack.enter_context(tempfile.TemporaryFile(dir=self._path.parent))

    def complete(self) -> None:
        """Write the archive from the files of the columns."""
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED) as archive:
            for name, file in self._files.items():
                inner, kind = self._heads[name]
                with archive.open(zipfile.ZipInfo(f"{name}.npy", _ZIP_TIME), "w", force_zip64=True) as entry:
                    head = {"descr": kind.str, "fortran_order": False, "shape": (self._count, *inner)}
                    np.lib.format.write_array_header_1_0(entry, head)
                    file.seek(0)
                    shutil.copyfileobj(file, entry, _BUFFER)


def _text(value: Any) -> str:
    """Return a cell as text; an empty text for None."""
    return "" if value is None else str(value)


def _fixed(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """Return values as a C-contiguous array; texts get the given fixed-width type."""
    if values.dtype.kind in "OU" and kind.kind == "U":
        return np.array([_text(value) for value in values.tolist()], kind)
    return np.ascontiguousarray(values)


class _ArrowSink:
    """An Arrow or Parquet file."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        """Import pyarrow."""
        self._path, self._stack = path, files
        self._arrow = _arrow("pyarrow", path)
        self._writer: Any = None
        self._schema: Any = None
        self._held: list[Any] = []  # tables of the current row group that are not written yet

    def write(self, block: Any) -> None:
        """Write the answers to a block."""
        try:
            table = block if hasattr(block, "schema") else self._arrow.table(_listed(block))
            if self._writer is None:
                self._schema, self._writer = table.schema, self._open(table.schema)
                self._stack.callback(self._writer.close)
            self._held.append(table.cast(self._schema))
            full = (
                sum(one.num_rows for one in self._held) >= BLOCK or sum(one.nbytes for one in self._held) >= BLOCK_BYTES
            )
            if full or self._path.suffix.lower() != ".parquet":
                self.complete()
        except (ValueError, TypeError, NotImplementedError) as error:  # raised by pyarrow
            what, hint = "a column cannot be stored, or changes its type from block to block", str(error)
            raise FormatError(what, where=self._path.name, hint=hint.partition("\n")[0]) from error

    def complete(self) -> None:
        """Write the pending tables."""
        if self._held:
            self._writer.write_table(self._arrow.concat_tables(self._held))
            self._held = []

    def _open(self, schema: Any) -> Any:
        """Open the file for tables of a schema, and return its writer."""
        if self._path.suffix.lower() != ".parquet":
            return _arrow("pyarrow.ipc", self._path).new_file(str(self._path), schema)
        texts = [field.name for field in schema if self._arrow.types.is_string(field.type)]
        parquet = _arrow("pyarrow.parquet", self._path)
        # use dictionaries only for texts: joint values hardly repeat, so their dictionary would be larger than the data
        return parquet.ParquetWriter(
            self._path, schema, compression="lz4", use_dictionary=texts, write_statistics=False
        )


def _columns(block: Any) -> Mapping[str, Any]:
    """Return the columns of a block by name: arrays and lists, or Arrow columns."""
    if not hasattr(block, "schema"):
        return block
    return {name: block.column(name) for name in block.schema.names}


def _listed(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns for Arrow, with arrays of several dimensions as lists."""
    return {
        name: column.tolist() if isinstance(column, np.ndarray) and column.ndim > 1 else column
        for name, column in block.items()
    }


def _by_numpy(column: Any) -> Any:
    """Convert an Arrow column to an array, or to a Python list if its rows are lists; return others unchanged."""
    if not hasattr(column, "to_pylist"):
        return column
    return column.to_pylist() if "list" in str(column.type) else column.to_numpy()


def _cells(column: Any) -> Any:
    """Return the cells of a column for ``csv``, which writes numbers exactly and None as an empty cell."""
    if hasattr(column, "to_pylist"):
        if str(column.type).startswith(("timestamp", "date", "time")):
            column = column.cast("string")
        # NumPy has no missing values for integers
        array = None if column.null_count else column.to_numpy()
        column = column.to_pylist() if array is None or array.dtype.kind == "O" else array
    kind = column.dtype.kind if hasattr(column, "dtype") else ""
    if kind == "S":
        return np.char.decode(column, "utf-8", "replace").tolist()
    return column.astype(str) if kind == "M" else column.tolist() if kind else column
