"""Compute the size of unpacked Arrow and Parquet data from metadata; pyarrow would unpack the data, or could crash.

References:
    Apache Arrow, *Columnar Format*, "Recordbatch Body Compression", and the schema ``Message.fbs``.
    Apache Parquet, ``parquet.thrift``; Apache Thrift, *Thrift Compact protocol encoding*.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

_TAIL: Final = 8  # bytes after the metadata of Parquet: the length of the metadata, and a signature
_Wanted = Mapping[int, Any]  # fields of a struct to read, by number: a nested mapping for a struct, None for an integer
_METADATA: Final[_Wanted] = {4: {1: {3: {5: None, 6: None}}, 3: None}}  # row groups: columns with metadata; rows


class Chunk(NamedTuple):
    """A column of a row group.

    Args:
        values: Number of values.
        size: Unpacked size of its pages, bytes.
    """

    values: int
    size: int


class Group(NamedTuple):
    """A row group.

    Args:
        rows: Number of rows.
        chunks: Columns of the row group.
    """

    rows: int
    chunks: tuple[Chunk, ...]


def parquet_groups(path: Path) -> tuple[Group, ...]:
    """Return the row groups of a Parquet file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the metadata is damaged; also IndexError, KeyError, struct.error, RecursionError.
    """
    found = path.stat()
    return _groups(str(path), found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=1)  # parts of the same table are read in succession
def _groups(path: str, size: int, changed: int) -> tuple[Group, ...]:
    """Return the row groups of a file; the size and the time of the last change are part of the cache key."""
    del changed
    with Path(path).open("rb") as file:
        file.seek(-_TAIL, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        if length > size - _TAIL:
            raise ValueError("metadata are longer than the file")
        file.seek(-_TAIL - length, os.SEEK_END)
        content = _Thrift(file.read(length)).struct(_METADATA)
    return tuple(
        Group(group[3], tuple(Chunk(chunk[3][5], chunk[3][6]) for chunk in group[1])) for group in content.get(4, [])
    )


class _Thrift:
    """A reader of Thrift's compact protocol.

    Args:
        data: The bytes to read.
    """

    def __init__(self, data: bytes) -> None:
        """Start reading at the beginning of the data."""
        self._data, self._place = data, 0

    def byte(self) -> int:
        """Return the next byte."""
        self._place += 1
        return self._data[self._place - 1]

    def whole(self) -> int:
        """Return the next unsigned integer (a varint)."""
        out = shift = 0
        while True:
            part = self.byte()
            out |= (part & 127) << shift
            if part < 128:
                return out
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def signed(self) -> int:
        """Return the next signed integer (a zigzag varint)."""
        number = self.whole()
        return (number >> 1) ^ -(number & 1)

    def struct(self, wanted: _Wanted) -> dict[int, Any]:
        """Return the wanted fields of a struct."""
        out: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.signed()
            kind = head & 15
            if number in wanted:
                out[number] = self.value(kind, cast("_Wanted", wanted[number] or {}))
            else:
                self.skip(kind)
        return out

    def value(self, kind: int, wanted: _Wanted) -> Any:
        """Return the next value: an integer, a struct or a list."""
        if kind in (4, 5, 6):
            return self.signed()
        if kind == 12:
            return self.struct(wanted)
        if kind == 9:
            count, inner = self.many()
            return [self.value(inner, wanted) for _ in range(count)]
        raise ValueError("a field has an unexpected type")

    def many(self) -> tuple[int, int]:
        """Read the header of a list; return the number and the kind of its elements."""
        head = self.byte()
        return self.whole() if head >> 4 == 15 else head >> 4, head & 15

    def skip(self, kind: int, *, element: bool = False) -> None:
        """Skip a value. With ``element``, the value is an element of a list or map, where a Boolean takes one byte."""
        if kind in (1, 2):
            self._place += element
        elif kind == 3:
            self._place += 1
        elif kind in (4, 5, 6):
            self.whole()
        elif kind == 7:
            self._place += 8
        elif kind == 8:
            size = self.whole()  # not part of the next line, because reading the size advances the position
            self._place += size
        elif kind in (9, 10):
            count, inner = self.many()
            self._skip_all(count, (inner,))
        elif kind == 11:
            if count := self.whole():
                kinds = self.byte()
                self._skip_all(count, (kinds >> 4, kinds & 15))
        elif kind == 12:
            self.struct({})
        else:
            raise ValueError("a field has an unknown type")

    def _skip_all(self, count: int, kinds: tuple[int, ...]) -> None:
        """Skip the elements of a list or a map."""
        for _ in range(count):
            if self._place > len(self._data):
                raise ValueError("metadata are truncated")
            for kind in kinds:
                self.skip(kind, element=True)


def arrow_batches(messages: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """Yield the number of rows and the unpacked size in bytes of the compressed buffers of each Arrow batch.

    No buffer is unpacked: the values come from the metadata and the start of each buffer. Dictionary batches give 0
    rows.

    Args:
        messages: The messages of the file.
    """
    for message in messages:
        if message.type not in ("record batch", "dictionary"):
            continue
        head = _Flat(message.metadata.to_pybytes())
        batch = head.table(head.root, 2)
        if message.type == "dictionary":
            batch = head.table(batch, 1)
        body, unpacked = message.body, 0
        if head.field(batch, 3):  # the batch is compressed
            for offset, length in head.pairs(batch, 2):
                packed = body.slice(offset, min(length, 8)).to_pybytes()
                size = int.from_bytes(packed, "little", signed=True) if len(packed) == 8 else 0
                unpacked += length - 8 if size == -1 else max(size, 0)
        yield head.number(batch, 0) if message.type == "record batch" else 0, unpacked


class _Flat:
    """The tables of a FlatBuffer.

    Args:
        data: The buffer.
    """

    def __init__(self, data: bytes) -> None:
        """Find the root table."""
        self._data = data
        self.root: int = self._at("<I", 0)

    def _at(self, form: str, place: int) -> int:
        """Return the number in a format at a position of the buffer."""
        return struct.unpack_from(form, self._data, place)[0]

    def field(self, table: int, number: int) -> int:
        """Return the position of a table's field; 0 if the table does not have the field."""
        fields = table - self._at("<i", table)
        within = 4 + 2 * number
        offset = self._at("<H", fields + within) if within < self._at("<H", fields) else 0
        return table + offset if offset else 0

    def number(self, table: int, number: int) -> int:
        """Return a table's field as an 8-byte integer; 0 if the table does not have the field."""
        place = self.field(table, number)
        return self._at("<q", place) if place else 0

    def table(self, table: int, number: int) -> int:
        """Return the position of the table to which a table's field refers."""
        place = self.field(table, number)
        return place + self._at("<I", place)

    def pairs(self, table: int, number: int) -> Iterator[tuple[int, int]]:
        """Yield the elements of a table's field that is a list of pairs of 8-byte integers."""
        place = self.field(table, number)
        if place:
            start = place + self._at("<I", place)
            for k in range(self._at("<I", start)):
                yield self._at("<q", start + 4 + 16 * k), self._at("<q", start + 12 + 16 * k)
