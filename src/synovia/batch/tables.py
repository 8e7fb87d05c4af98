"""Files of rows, read and written block by block: CSV, NumPy archives (npz), Arrow and Parquet.

Blocks of rows begin at multiples of ``BLOCK``, whatever reads or writes them, so that answers do not depend on it.
Arrow and Parquet need pyarrow, the extra ``data``.
"""

from __future__ import annotations

import csv
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol

import numpy as np

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
                    yield self._csv_block(lines)
                    lines = []
            if lines:
                yield self._csv_block(lines)

        return read

    def _csv_block(self, lines: list[list[str]]) -> dict[str, Any]:
        """Return lines as columns of texts; those that are no targets are written as they were read."""
        return {name: list(cells) for name, cells in zip(self.names, zip(*lines, strict=True), strict=True)}

    def _open_npz(self) -> Callable[[int, int], Generator[Any]]:
        """Open a NumPy archive, whose arrays are columns."""
        archive = self._close.enter_context(zipfile.ZipFile(self.path))
        heads: dict[str, tuple[tuple[int, ...], np.dtype[Any], int]] = {}
        for entry in archive.infolist():
            if not entry.filename.endswith(".npy"):
                raise FormatError(f"member {entry.filename!r}", where=str(self.path), expected="arrays alone, as .npy")
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                reader = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, fortran, kind = reader(file)
                name = entry.filename.removesuffix(".npy")
                if kind.kind not in _KINDS or (fortran and len(shape) > 1) or not shape:
                    raise FormatError(f"array {name!r}", where=str(self.path), expected="plain numbers or texts by row")
                width, start = kind.itemsize * math.prod(shape[1:]), file.tell()
                if width > _WIDEST:
                    expected = f"at most {_WIDEST} bytes a row"
                    raise FormatError(f"array {name!r}", where=str(self.path), value=width, expected=expected)
                if entry.file_size - start != shape[0] * width:
                    value, expected = entry.file_size - start, f"{shape[0] * width} bytes"
                    raise FormatError(f"array {name!r}", where=str(self.path), value=value, expected=expected)
                heads[name] = shape, kind, start
        sizes = {name: head[0][0] for name, head in heads.items()}
        if len(set(sizes.values())) != 1:
            raise FormatError("lengths of the arrays", where=str(self.path), value=sizes, expected="the same for all")
        self.names, self.count = list(heads), next(iter(sizes.values()))

        def read(first: int, last: int) -> Generator[Any]:
            end = int(self.count or 0) if last < 0 else last
            with ExitStack() as stack:
                files: dict[str, tuple[IO[bytes], int]] = {}
                for name, (shape, kind, start) in heads.items():
                    file = stack.enter_context(archive.open(f"{name}.npy"))
                    width = kind.itemsize * int(np.prod(shape[1:], dtype=np.int64))
                    file.seek(start + first * width)
                    files[name] = file, width
                for at in range(first, end, BLOCK):
                    size = min(BLOCK, end - at)
                    block: dict[str, Any] = {}
                    for name, (file, width) in files.items():
                        data = file.read(size * width)
                        block[name] = np.frombuffer(data, heads[name][1]).reshape(size, *heads[name][0][1:])
                    yield block

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
    except SynoviaError:
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
        """Write the answers to a block."""
        ...

    def close(self) -> None:
        """Complete the file."""
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
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            sink = kinds[ending](temporary)
            try:
                yield sink
            finally:
                sink.close()
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
    except SynoviaError:
        raise
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", where=str(path)) from error


class _CsvSink:
    """Comma-separated text."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._begun = False

    def write(self, block: Any) -> None:
        """Write the answers to a block."""
        columns = _plain(block)
        if not self._begun:
            self._writer.writerow(columns)
            self._begun = True
        self._writer.writerows(zip(*map(_cells, columns.values()), strict=True))

    def close(self) -> None:
        """Complete the file."""
        self._file.close()


class _NpzSink:
    """A NumPy archive, put together from a file for each column."""

    def __init__(self, path: Path) -> None:
        """Store the path."""
        self._path = path
        self._files: dict[str, IO[bytes]] = {}
        self._heads: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        self._count = 0

    def write(self, block: Any) -> None:
        """Write the answers to a block."""
        size = 0
        for i, (name, column) in enumerate(_plain(block).items()):
            values = np.asarray(column)
            size = len(values)
            if values.dtype.kind in "OU":
                texts = [str(text or "") for text in values.tolist()]
                widest = max(map(len, texts), default=1)
                before = self._heads[name][1].itemsize // 4 if name in self._heads else 1
                if name in self._files and widest > before:
                    self._widen(name, before, widest)
                values = np.array(texts, f"<U{max(widest, before)}")
            if name not in self._files:
                file = self._path.with_name(f"column{i}").open("w+b")
                self._files[name] = file
            self._heads[name] = values.shape[1:], values.dtype
            self._files[name].write(np.ascontiguousarray(values).tobytes())
        self._count += size

    def _widen(self, name: str, before: int, after: int) -> None:
        """Write the texts of a column anew with room for longer ones."""
        old = self._files[name]
        new = Path(old.name).with_suffix(".wide").open("w+b")
        old.seek(0)
        while data := old.read(BLOCK * 4 * before):
            new.write(np.frombuffer(data, f"<U{before}").astype(f"<U{after}").tobytes())
        old.close()
        Path(new.name).replace(old.name)
        self._files[name] = new

    def close(self) -> None:
        """Complete the file."""
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED) as archive:
            for name, file in self._files.items():
                inner, kind = self._heads[name]
                info = zipfile.ZipInfo(f"{name}.npy", _ZIP_TIME)
                with archive.open(info, "w", force_zip64=True) as entry:
                    head = {"descr": kind.str, "fortran_order": False, "shape": (self._count, *inner)}
                    np.lib.format.write_array_header_1_0(entry, head)
                    file.seek(0)
                    while data := file.read(2**20):
                        entry.write(data)
                file.close()


class _ArrowSink:
    """An Arrow or Parquet file."""

    def __init__(self, path: Path) -> None:
        """Store the path."""
        self._path = path
        self._arrow = _arrow("pyarrow", path)
        self._writer: Any = None
        self._schema: Any = None

    def write(self, block: Any) -> None:
        """Write the answers to a block."""
        table = block if hasattr(block, "schema") else self._arrow.table(dict(block))
        if self._writer is None:
            if self._path.suffix.lower() == ".parquet":
                texts = [field.name for field in table.schema if self._arrow.types.is_string(field.type)]
                parquet = _arrow("pyarrow.parquet", self._path)
                # joint values hardly compress, and a dictionary of them costs more than the file
                self._writer = parquet.ParquetWriter(
                    self._path, table.schema, compression="lz4", use_dictionary=texts, write_statistics=False
                )
            else:
                self._writer = _arrow("pyarrow.ipc", self._path).new_file(str(self._path), table.schema)
            self._schema = table.schema
        try:
            self._writer.write_table(table.cast(self._schema))
        except ValueError as error:  # of pyarrow
            hint = str(error).partition("\n")[0]
            raise FormatError(
                "a column changes its type from block to block", where=self._path.name, hint=hint
            ) from error

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()


def _plain(block: Any) -> Mapping[str, Any]:
    """Return a block as NumPy arrays or lists by column."""
    if not hasattr(block, "schema"):
        return dict(block)
    return {name: _plain_column(block.column(name)) for name in block.schema.names}


def _plain_column(column: Any) -> Any:
    """Return an Arrow column as an array, lists as rows of an array."""
    kind = str(column.type)
    if "list" in kind:
        return np.array(column.to_pylist())
    return column.to_pylist() if kind == "string" else column.to_numpy()


def _cells(column: Any) -> list[Any]:
    """Return the cells of a column; texts and numbers as they are read back exactly."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [repr(value) if isinstance(value, float) else "" if value is None else value for value in values]
