"""Read text FBX files (ASCII) into the same records as binary FBX.

Text does not give the types of its numbers. The types follow from the record names, as in files of Autodesk's library.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

import numpy as np

from synovia.errors import FormatError
from synovia.io.base import most_numbers
from synovia.io.fbx.records import FILE_ID, Record, Tree

_TOKEN: Final = re.compile(
    r"""\s+|;[^\n]*|"(?P<text>[^"]*)"|(?P<mark>[{},])|(?P<key>[A-Za-z_][^\s:,{}";]*)[ \t]*:|\*(?P<count>\d{1,18})"""
    r"""|(?P<word>[^\s,{}:";]+)"""
)
_WHOLE: Final = re.compile(r"[+-]?\d{1,400}")  # an integer; int() accepts at most 4300 digits
_VERSION: Final = re.compile(r";\s*FBX\s+(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
_DEEPEST: Final = 64
# Records with 64-bit integers, and records with floating-point numbers, even if these look like integers:
_LONG: Final = frozenset({"LocalTime", "ReferenceTime", "Node", "RootNode", "KTime", "C"})
_REAL: Final = frozenset(
    {
        "Default", "Link_DeformAcuracy", "DeformPercent", "ModelUVTranslation", "ModelUVScaling", "Position", "LookAt",
        "Up", "TextureAlpha", "AudioColor", "CameraOrthoZoom",
    }
)  # fmt: skip
_OFFSET: Final = re.compile(r"\w*OFFSET[XYZ]")  # names of records of constraints
# Arrays of 32-bit integers, of 64-bit integers, and of float32; all others are of float64:
_WHOLE_ARRAYS: Final = frozenset(
    {
        "PolygonVertexIndex", "Edges", "Indexes", "Materials", "Smoothing", "NormalsIndex", "UVIndex", "ColorIndex",
        "TangentsIndex", "BinormalsIndex", "PointsIndex", "PolygonGroup", "KeyAttrFlags", "KeyAttrRefCount",
        "ByPolygonVertex", "Visibility", "TextureId", "Hole",
    }
)  # fmt: skip
_LONG_ARRAYS: Final = frozenset({"KeyTime"})
_SHORT_ARRAYS: Final = frozenset({"KeyValueFloat", "KeyAttrDataFloat"})
# Property types (the second text of a P record) with integers, float32 and 64-bit integers; all others have float64:
_WHOLE_TYPES: Final = frozenset(
    {
        "int",
        "Integer",
        "enum",
        "Enum",
        "bool",
        "Bool",
        "Visibility Inheritance",
        "Short",
        "UShort",
        "UInteger",
        "Action",
    }
)
_SHORT_TYPES: Final = frozenset({"Float", "float"})
_LONG_TYPES: Final = frozenset({"KTime", "Time", "ULongLong", "LongLong"})
_NAMED: Final = frozenset({"SceneInfo", "TextureName", "Media"})  # records outside Objects that contain object names
_CLASS: Final = "\0\1"  # separator between the name of an object and its class in binary files


def read_text_tree(text: str, where: str) -> Tree:
    """Return the records of a text file.

    Args:
        text: The file.
        where: Name of the file, for messages.

    Raises:
        FormatError: If the file is malformed.
    """
    return _Reader(text, where).tree()


class _Reader:
    """Reader of one text file."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.at = self.begin = 0
        self.kind, self.token = "", ""
        self.left = most_numbers(len(text))

    def error(self, what: str) -> FormatError:
        """Return an error that names the line of the current token."""
        return FormatError(what, where=f"{self.where}: line {1 + self.text.count(chr(10), 0, self.begin)}")

    def tree(self) -> Tree:
        """Read all records, and return the tree of the file."""
        self.step()
        root = Record("")
        self.records(root, 0)
        if self.kind != "end":
            raise self.error(f"expected a record, got {self.token!r}")
        if not root.below:
            raise self.error("file has no records")
        head = root.first("FBXHeaderExtension")
        version = None if head is None else head.value("FBXVersion")
        if not isinstance(version, int):
            found = _VERSION.match(self.text)
            version = int("".join(found.groups())) * 10 if found else 7400
        if root.first("FileId") is None:
            root.below.insert(1, Record("FileId", [FILE_ID]))
        return Tree(version, root.below)

    def step(self) -> None:
        """Advance to the next token."""
        self.kind = ""
        while not self.kind:
            self.begin = self.at
            found = _TOKEN.match(self.text, self.at)
            if found is None:
                if self.at < len(self.text):
                    raise self.error(f"cannot be read at {self.text[self.at : self.at + 20]!r}")
                self.kind, self.token = "end", ""
                return
            self.at = found.end()
            self.kind = found.lastgroup or ""
            self.token = found[found.lastgroup] if found.lastgroup else ""

    def at_mark(self, mark: str) -> bool:
        """Return whether the current token is a given brace or comma."""
        return self.kind == "mark" and self.token == mark

    def records(self, above: Record, depth: int) -> None:
        """Read the nested records of a record."""
        if depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} records within each other")
        while self.kind == "key":
            record = above.add(self.token)
            self.step()
            self.values(record)
            if self.at_mark("{"):
                self.step()
                record.block = True
                self.records(record, depth + 1)
                if not self.at_mark("}"):
                    raise self.error(f"record {record.name!r} is not closed")
                self.step()
            _typed(record, above.name)

    def values(self, record: Record) -> None:
        """Read the values of a record; unquoted words stay text."""
        while self.kind in ("text", "word", "count") or self.at_mark(","):
            if self.kind == "count":
                record.values.append(self.array(record.name))
                continue
            if self.kind == "text":
                record.values.append(self.token.replace("&quot;", '"').replace("&cr;", "\r").replace("&lf;", "\n"))
            elif self.kind == "word":
                record.values.append(_Word(self.token))
            self.step()

    def array(self, name: str) -> Any:
        """Read an array, ``*COUNT { a: NUMBERS }``."""
        count = int(self.token)
        opened = re.compile(r"\s*\{\s*a\s*:([^{}]*)\}").match(self.text, self.at)
        if opened is None:
            raise self.error(f"array of record {name!r} is not closed")
        self.left -= count
        parts = opened[1].split(",") if opened[1].strip() else []
        if self.left < 0 or len(parts) != count:
            raise self.error(f"array of record {name!r} does not have its {count} numbers")
        try:
            if name in _LONG_ARRAYS or name in _WHOLE_ARRAYS:
                out = np.array([int(part) for part in parts], np.int64)
                out = out if name in _LONG_ARRAYS else out.astype(np.int32)
            else:
                out = np.array([float(part) for part in parts], np.float32 if name in _SHORT_ARRAYS else np.float64)
        except (ValueError, OverflowError) as error:
            raise self.error(f"array of record {name!r} has something else than numbers") from error
        self.at = opened.end()
        self.step()
        return out


class _Word(str):
    """A word without quotes: a number or a letter."""

    __slots__ = ()


def _typed(record: Record, above: str) -> None:
    """Convert the values of a record to their types in binary files, in place."""
    values = record.values
    whole, real, short, start = False, record.name in _REAL or bool(_OFFSET.fullmatch(record.name)), False, 0
    if record.name == "P" and above.startswith("Properties"):
        kind = str(values[1]) if len(values) > 1 else ""
        whole, start = kind in _WHOLE_TYPES, 4
        real, short = not whole and kind not in _LONG_TYPES, kind in _SHORT_TYPES
    for at, value in enumerate(values):
        if isinstance(value, _Word):
            long = record.name in _LONG or (above == "Objects" and at == 0) or (start and not whole and not real)
            number = _number(value, long=bool(long), real=real and at >= start)
            values[at] = np.float32(number) if short and isinstance(number, float) else number
    if above == "Objects" or record.name in _NAMED:
        for at, value in enumerate(values[:2]):
            if isinstance(value, str) and "::" in value:
                kind, _, name = value.partition("::")
                values[at] = name + _CLASS + kind
                break
    if record.name == "Content" and values and all(isinstance(value, str) for value in values):
        try:
            record.values = [base64.b64decode("".join(values), validate=True)]
        except (binascii.Error, ValueError):
            record.values = [b""]


def _number(word: str, *, long: bool, real: bool) -> Any:
    """Convert a word to a number, or to a byte for a letter."""
    if _WHOLE.fullmatch(word) and not real:
        number = int(word)
        if long or not -(2**31) <= number < 2**31:
            return np.int64(max(min(number, 2**63 - 1), -(2**63)))
        return number
    try:
        return float(word)
    except ValueError:
        return np.uint8(ord(word[0]) & 0xFF)
