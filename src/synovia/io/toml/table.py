"""Checked access to the tables of a TOML file, and definitions that all readers and the writer share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from synovia.errors import FormatError, SynoviaError, did_you_mean, restated
from synovia.model.geometry import Array, as_unit_quat, fixed_xyz, quat_to_matrix

SCHEMA: Final = "synovia.skeleton/1"
OFFSETS: Final = ("offset", "other_offset")  # keys of the two offsets of a loop
AXES: Final = {sign + axis: sign + axis for axis in "xyz" for sign in ("", "-")}
_T = TypeVar("_T")


class Table:
    """One table of the file, with checked access to its values.

    Args:
        values: The values by key.
        path: The file, for messages.
        what: Name of the described object, for messages; empty for the head of the file.
        lines: Line of each key and, under the empty key, of the table's header; empty if the lines are unknown.
    """

    def __init__(self, values: Mapping[str, Any], path: Path, what: str, lines: Mapping[str, int]) -> None:
        self.values = values
        self._path = path
        self._what = what
        self._lines = lines

    def where(self, key: str = "") -> str:
        """Return the location of a key, for messages."""
        line = self._lines.get(key, self._lines.get(""))
        parts = [str(self._path), f"line {line}" if line else "", self._what]
        return ", ".join(part for part in parts if part)

    def error(self, what: str, key: str = "", **details: Any) -> FormatError:
        """Return an error that names the location of a key."""
        return FormatError(what, where=self.where(key), **details)

    def at(self, error: SynoviaError) -> FormatError:
        """Convert an error about a value to an error at the key with which its message begins."""
        word = error.what.split()[0]
        key = next((key for key in self.values if key.removesuffix("_deg") == word), "")
        return restated(error, FormatError, self.where(key))

    def only(self, known: Iterable[str]) -> None:
        """Raise an error for unknown keys."""
        names = list(known)
        for key in self.values:
            if key not in names:
                raise self.error(f"unknown key {key!r}", key, hint=did_you_mean(key, names))

    def text(self, key: str) -> str | None:
        """Return a text; None if the key is missing."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{key} is not text", key, value=value, expected="text in quotes")
        return value

    def choice(self, key: str, known: Mapping[str, _T]) -> _T | None:
        """Return the value that belongs to a word; None if the key is missing."""
        word = self.text(key)
        if word is None:
            return None
        if word not in known:
            raise self.error(f"{key} is not known", key, value=word, expected="one of " + ", ".join(known))
        return known[word]

    def words(self, key: str) -> tuple[str, ...] | None:
        """Return a list of texts; None if the key is missing."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(word, str) for word in cast("list[Any]", value)):
            raise self.error(f"{key} is not a list of texts", key, value=value, expected="for example ['Zrotation']")
        return tuple(cast("list[str]", value))

    def flag(self, key: str) -> bool:
        """Return true or false; false if the key is missing."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{key} is not a boolean", key, value=value, expected="true or false")
        return value

    def number(self, key: str) -> float | None:
        """Return a number; None if the key is missing."""
        return self._number(key, self.values[key]) if key in self.values else None

    def numbers(self, key: str, count: int, *, infinite: bool = False) -> list[float] | None:
        """Return a list of ``count`` numbers; None if the key is missing."""
        if key not in self.values:
            return None
        value = self.values[key]
        if not isinstance(value, list) or len(cast("list[Any]", value)) != count:
            raise self.error(f"{key} has the wrong form", key, value=value, expected=f"a list of {count} numbers")
        return [self._number(key, entry, infinite) for entry in cast("list[Any]", value)]

    def angles(self, key: str, count: int, *, infinite: bool = False) -> list[float] | None:
        """Return ``count`` angles in radians, given under ``key`` or in degrees under ``key_deg``."""
        degrees = self.numbers(self.given_key(f"{key}_deg", key), count, infinite=infinite)
        if f"{key}_deg" in self.values and degrees is not None:
            return [math.radians(angle) for angle in degrees]
        return degrees

    def angle(self, key: str) -> float | None:
        """Return one angle in radians, given under ``key`` or in degrees under ``key_deg``."""
        value = self.number(self.given_key(f"{key}_deg", key))
        return math.radians(value) if value is not None and f"{key}_deg" in self.values else value

    def given_key(self, key: str, other: str) -> str:
        """Return the key that is given, of two equivalent keys; the second key if neither is given."""
        if key in self.values and other in self.values:
            raise self.error(f"both {other} and {key} are given", key, expected="one of them")
        return key if key in self.values else other

    def inner(self, key: str, values: Mapping[str, Any]) -> Table:
        """Return the nested table at a key."""
        return Table(values, self._path, self._what, {"": self._lines[key]} if key in self._lines else {})

    def tables(self, key: str, expected: str) -> list[Table]:
        """Return the list of tables at a key; an empty list if the key is missing."""
        entries: Any = self.values.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", entries)):
            raise self.error(f"{key} has the wrong form", key, value=entries, expected=expected)
        return [self.inner(key, entry) for entry in cast("list[dict[str, Any]]", entries)]

    def points(self, key: str) -> list[list[float]]:
        """Return the list of points at a key; an empty list if the key is missing."""
        entries: Any = self.values.get(key, [])
        if not isinstance(entries, list) or any(
            not isinstance(point, list) or len(cast("list[Any]", point)) != 3 for point in cast("list[Any]", entries)
        ):
            raise self.error(f"{key} has the wrong form", key, value=entries, expected="a list of points [x, y, z]")
        return [[self._number(key, x) for x in point] for point in cast("list[list[Any]]", entries)]

    def _number(self, key: str, value: object, infinite: bool = False) -> float:
        """Check that a value is a number, and return the number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{key} is not a number", key, value=value, expected="a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise self.error(f"{key} is not finite", key, value=number, expected="a finite number")
        return number


def decoded(data: bytes, path: Path) -> str:
    """Return the content of a file as text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError("is not UTF-8 text", where=f"{path}, line {line}", expected="TOML in UTF-8") from error


def lines_of(text: str, name: str) -> list[dict[str, int]]:
    """Return the line of each key, for the head of the file and for each ``[[name]]``; key "" has the header's line."""
    tables: list[dict[str, int]] = [{}]
    now = tables[0]
    for number, line in enumerate(text.split("\n"), start=1):
        if head := re.match(r"\s*\[\[\s*(\w+)\s*\]\]", line):
            now = {"": number}
            if head[1] == name:
                tables.append(now)
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            now.setdefault(key[1], number)
    return tables


def rotation_of(table: Table, prefix: str = "") -> Array:
    """Return the rotation of a joint, site, shape, obstacle or offset; ``prefix`` is the prefix of its keys."""
    quat, rpy = f"{prefix}rotation_xyzw", f"{prefix}rpy"
    if table.given_key(quat, rpy if rpy in table.values else f"{rpy}_deg") == quat:
        return quat_to_matrix(as_unit_quat(table.numbers(quat, 4) or (), quat))
    return fixed_xyz(*(table.angles(rpy, 3) or (0.0, 0.0, 0.0)))
