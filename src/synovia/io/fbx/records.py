"""Read and write the record tree of a binary FBX file.

A record has a name, values and nested records. Values keep the types of the file as Python and NumPy types:

    int, np.int64, np.int16        whole numbers of 32, 64 and 16 bits
    float, np.float32              numbers of 64 and 32 bits
    np.uint8, np.bool_, np.int8    one byte
    str, bytes                     text (other bytes than UTF-8 as surrogates) and raw bytes
    arrays of int32, int64, float32, float64, bool, uint8

Up to version 7.4, offsets in the file have 32 bits; from 7.5 on they have 64.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.base import most_numbers

MAGIC: Final = b"Kaydara FBX Binary  \0\x1a\0"
WIDE: Final = 7500  # first version whose offsets have 64 bits
# Readers check that the id of a file, its creation time and the code after the last record fit together. These three
# fit; they belong to files without a time.
FILE_ID: Final = bytes.fromhex("28b32aebb624ccc2bfc8b02aa92bfcf1")
CREATED: Final = "1970-01-01 10:00:00:000"
FOOT: Final = bytes.fromhex("fabcab09d0c8d466b176fb831cf7267e")
_END: Final = bytes.fromhex("f85a8c6adef5d97eece90ce3758f290b")
_AFTER_VERSION: Final = 120  # zero bytes between the version and the end of the file
_DEEPEST: Final = 64  # largest nesting depth of records; usual files have less than 10
_DEFLATED: Final = 128  # bytes: arrays of at least this size are compressed
_SCALARS: Final = {  # layout and Python type of a value, by type letter
    "Y": ("<h", np.int16),
    "I": ("<i", int),
    "L": ("<q", np.int64),
    "F": ("<f", np.float32),
    "D": ("<d", float),
    "C": ("<B", np.uint8),
    "B": ("<?", np.bool_),
    "Z": ("<b", np.int8),
}
_ARRAYS: Final = {"i": "<i4", "l": "<i8", "f": "<f4", "d": "<f8", "b": "?", "c": "u1"}
_LETTERS: Final[dict[type, str]] = {
    bool: "C", int: "I", float: "D", np.int64: "L", np.int16: "Y", np.float64: "D", np.float32: "F", np.uint8: "C",
    np.bool_: "B", np.int8: "Z",
}  # fmt: skip
_LETTER_OF_ARRAY: Final = {np.dtype(form).str.lstrip("<|"): letter for letter, form in _ARRAYS.items()}


@dataclass(slots=True)
class Record:
    """A record.

    Args:
        name: Name of the record.
        values: Values of the record, of the types above.
        below: Nested records.
        block: Whether the record has braces in text form, even without nested records.
    """

    name: str
    values: list[Any] = field(default_factory=list[Any])
    below: list[Record] = field(default_factory=list["Record"])
    block: bool = False

    def all(self, name: str) -> Iterator[Record]:
        """Yield the nested records with a name."""
        return (record for record in self.below if record.name == name)

    def first(self, name: str) -> Record | None:
        """Return the first nested record with a name; None if there is none."""
        return next(self.all(name), None)

    def value(self, name: str) -> Any:
        """Return the first value of the first nested record with a name; None if there is none."""
        found = self.first(name)
        return found.values[0] if found is not None and found.values else None

    def begins(self, *texts: str) -> bool:
        """Return whether the first value is one of the given texts."""
        return bool(self.values) and isinstance(self.values[0], str) and self.values[0] in texts

    def add(self, name: str, *values: Any) -> Record:
        """Append a nested record and return it."""
        self.below.append(Record(name, list(values)))
        return self.below[-1]


@dataclass(slots=True)
class Tree:
    """The records of a file.

    Args:
        version: Version times 1000, such as 7400.
        below: The top-level records.
        foot: Code after the last record, 16 bytes.
    """

    version: int
    below: list[Record]
    foot: bytes = FOOT


def is_binary(data: bytes) -> bool:
    """Return whether a file begins like a binary FBX file."""
    return data.startswith(MAGIC[:20])


def read_tree(data: bytes, where: str) -> Tree:
    """Return the records of a binary file.

    Args:
        data: The file.
        where: Name of the file, for messages.

    Raises:
        FormatError: If the file is malformed.
    """
    return _Reader(data, where).tree()


class _Reader:
    """Reader of one binary file."""

    def __init__(self, data: bytes, where: str) -> None:
        """Read the head."""
        self.data, self.where = data, where
        if len(data) < len(MAGIC) + 4 or not is_binary(data):
            raise self.error("is not binary FBX", 0)
        self.version = int(struct.unpack_from("<I", data, len(MAGIC))[0])
        self.head = struct.Struct("<QQQB" if self.version >= WIDE else "<IIIB")
        self.left = most_numbers(len(data))

    def error(self, what: str, at: int) -> FormatError:
        """Return an error that names a byte of the file."""
        return FormatError(what, where=f"{self.where}: byte {at}")

    def tree(self) -> Tree:
        """Read all records, and return the tree of the file."""
        below, at = self.records(len(MAGIC) + 4, len(self.data), 0)
        foot = self.data[at : at + len(FOOT)]
        return Tree(self.version, below, foot if len(foot) == len(FOOT) else FOOT)

    def records(self, at: int, end: int, depth: int) -> tuple[list[Record], int]:
        """Return the records up to the empty record that closes the list, and the offset after this record."""
        out: list[Record] = []
        while at < end:
            if at + self.head.size > end:
                raise self.error("file ends within a record", at)
            stop, count, size, length = self.head.unpack_from(self.data, at)
            if stop == 0:
                return out, at + self.head.size
            first = at + self.head.size + length
            if not first + size <= stop <= end:
                raise self.error("record has a wrong length", at)
            record = Record(self.data[at + self.head.size : first].decode(errors="surrogateescape"))
            self.values(record, first, first + size, count)
            if first + size < stop:
                if depth >= _DEEPEST:
                    raise self.error(f"more than {_DEEPEST} records within each other", at)
                record.below, closed = self.records(first + size, stop, depth + 1)
                record.block = True
                if closed != stop:
                    raise self.error(f"record {record.name!r} has a wrong length", at)
            out.append(record)
            at = stop
        return out, at

    def values(self, record: Record, at: int, end: int, count: int) -> None:
        """Read the values of a record."""
        if count > end - at:
            raise self.error(f"record {record.name!r} has fewer values than it declares", at)
        for _ in range(count):
            letter, begin = chr(self.data[at]) if at < end else "", at
            at += 1
            if letter in _SCALARS:
                form, kept = _SCALARS[letter]
                size = struct.calcsize(form)
                self.within(at + size, end, begin)
                record.values.append(kept(struct.unpack_from(form, self.data, at)[0]))
            elif letter in ("S", "R"):
                self.within(at + 4, end, begin)
                size = 4 + struct.unpack_from("<I", self.data, at)[0]
                self.within(at + size, end, begin)
                raw = self.data[at + 4 : at + size]
                record.values.append(raw.decode(errors="surrogateescape") if letter == "S" else raw)
            elif letter in _ARRAYS:
                self.within(at + 12, end, begin)
                number, packed, size = struct.unpack_from("<III", self.data, at)
                self.within(at + 12 + size, end, begin)
                raw = self.data[at + 12 : at + 12 + size]
                record.values.append(self.array(raw, np.dtype(_ARRAYS[letter]), number, packed, begin))
                size += 12
            else:
                raise self.error(f"record {record.name!r} has a value of unknown type {letter!r}", begin)
            at += size
        if at != end:
            raise self.error(f"values of record {record.name!r} have a wrong length", at)

    def within(self, at: int, end: int, begin: int) -> None:
        """Raise an error if a value extends beyond its record."""
        if at > end:
            raise self.error("value is longer than its record", begin)

    def array(self, raw: bytes, dtype: np.dtype[Any], number: int, packed: int, at: int) -> Any:
        """Return an array value, decompressed if necessary."""
        self.left -= number
        if self.left < 0:
            raise self.error("file describes more numbers than its size allows", at)
        if packed == 1:
            try:
                inflater = zlib.decompressobj()
                raw = inflater.decompress(raw, number * dtype.itemsize + 1)
            except zlib.error as error:
                raise self.error(f"array cannot be unpacked ({error})", at) from error
        elif packed:
            raise self.error(f"array has unknown encoding {packed}", at)
        if len(raw) != number * dtype.itemsize:
            raise self.error(f"array does not have its {number} numbers", at)
        if dtype == np.bool_:
            return np.frombuffer(raw, np.uint8) != 0
        return np.frombuffer(raw, dtype)


def write_tree(tree: Tree) -> bytes:
    """Return the content of a binary file with the given records.

    Raises:
        FormatError: If the file needs offsets of more than 32 bits, which its version does not have.
        ValueError: If a value has no type in the file.
    """
    head = struct.Struct("<QQQB" if tree.version >= WIDE else "<IIIB")
    out = bytearray(MAGIC + struct.pack("<I", tree.version))
    try:
        for record in tree.below:
            _append(out, record, head)
    except struct.error as error:
        hint = "write fewer frames, or copy a file of version 7.5"
        raise FormatError("file would be too large for its version of FBX", hint=hint) from error
    out += bytes(head.size)
    out += tree.foot + bytes(4)
    out += bytes(16 - len(out) % 16)
    return bytes(out + struct.pack("<I", tree.version) + bytes(_AFTER_VERSION) + _END)


def _append(out: bytearray, record: Record, head: struct.Struct) -> None:
    """Append a record to the bytes of a file."""
    begin = len(out)
    name = record.name.encode(errors="surrogateescape")
    values = b"".join([_packed(value) for value in record.values])
    out += bytes(head.size) + name + values
    for each in record.below:
        _append(out, each, head)
    if record.below or record.block:
        out += bytes(head.size)
    head.pack_into(out, begin, len(out), len(record.values), len(values), len(name))


def _packed(value: Any) -> bytes:
    """Return the bytes of a value, with its type letter."""
    if isinstance(value, np.ndarray):
        return _packed_array(cast("NDArray[Any]", value))
    if isinstance(value, str | bytes):
        raw = value.encode(errors="surrogateescape") if isinstance(value, str) else value
        return (b"S" if isinstance(value, str) else b"R") + struct.pack("<I", len(raw)) + raw
    letter = next((letter for kind, letter in _LETTERS.items() if type(value) is kind), None)
    if letter is None:
        raise ValueError(f"no such type in FBX: {value!r}")
    return letter.encode() + struct.pack(_SCALARS[letter][0], value)


def _packed_array(value: NDArray[Any]) -> bytes:
    """Return the bytes of an array, with its type letter; compressed unless it is small."""
    letter = _LETTER_OF_ARRAY.get(value.dtype.str.lstrip("<>|="))
    if letter is None or value.ndim != 1:
        raise ValueError(f"no such array in FBX: {value.dtype}, {value.shape}")
    raw = value.astype(_ARRAYS[letter], copy=False).tobytes()
    packed = len(raw) >= _DEFLATED
    data = zlib.compress(raw, 6) if packed else raw
    return letter.encode() + struct.pack("<III", len(value), int(packed), len(data)) + data
