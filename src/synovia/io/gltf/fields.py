"""Typed access to JSON, with errors that name the location of missing, mistyped and out-of-range values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, cast

from synovia.errors import FormatError

LARGEST: Final = 2**53  # larger JSON numbers are not exact integers


@dataclass(frozen=True, slots=True)
class Element:
    """A JSON object and its location in the file.

    Args:
        data: The object.
        place: Path inside the file, for example ``nodes[12]``; empty for the root.
        file: The file, for messages.
    """

    data: dict[str, Any]
    place: str
    file: str

    def error(self, what: str, key: str = "", **details: Any) -> FormatError:
        """Return an error about this object or one of its fields; ``details`` as in ``SynoviaError``."""
        place = ".".join(part for part in (self.place, key) if part)
        return FormatError(what, where=f"{self.file}: {place}" if place else self.file, **details)

    def has(self, key: str) -> bool:
        """Return whether the field exists."""
        return key in self.data

    def integer(self, key: str, *, default: int | None = None, least: int = 0, most: int = LARGEST) -> int:
        """Return an integer field, or the default if it is missing; without a default, the field is required."""
        if key not in self.data:
            if default is None:
                raise self.error(f"{key} is missing", expected="an integer")
            return default
        value = self.data[key]
        if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
            value = int(value)  # some exporters write an integer as 3.0
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            wanted = f"an integer from {least} to {most}" if most < LARGEST else f"an integer, at least {least}"
            raise self.error(f"{key} cannot be used", key, value=value, expected=wanted)
        return value

    def text(self, key: str, default: str) -> str:
        """Return a text field, or the default if it is missing."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} is not text", key, value=value, expected="a string")
        if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            raise self.error(f"{key} is not valid Unicode", key, value=value, expected="Unicode")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean field, or False if it is missing."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{key} is not a boolean", key, value=value, expected="true or false")
        return value

    def numbers(self, key: str, length: int, default: tuple[float, ...]) -> list[float]:
        """Return a field of finite numbers, or the default if it is missing."""
        if key not in self.data:
            return list(default)
        values = self.list(key)
        out = [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e300]
        if len(values) != length or len(out) != length or not all(map(math.isfinite, out)):
            raise self.error(f"{key} cannot be used", key, value=values, expected=f"{length} finite numbers")
        return out

    def list(self, key: str) -> list[Any]:
        """Return a list field, or an empty list if it is missing."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.error(f"{key} is not a list", key, value=value, expected="a list")
        return cast("list[Any]", value)

    def indices(self, key: str, count: int, what: str) -> list[int]:
        """Return a list of indices of elements.

        Args:
            key: The field.
            count: Number of elements.
            what: Name of an element, for messages.
        """
        values = self.list(key)
        for i, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
                raise self.error(f"no such {what}", f"{key}[{i}]", value=value, expected=_below(count))
        return values

    def child(self, key: str) -> Element | None:
        """Return a field that is an object, or None if it is missing."""
        if key not in self.data:
            return None
        return self._wrap(self.data[key], key)

    def item(self, key: str, number: int) -> Element:
        """Return an element of a list of objects."""
        values = self.list(key)
        if not 0 <= number < len(values):
            raise self.error(f"no such element of {key}", value=number, expected=_below(len(values)))
        return self._wrap(values[number], f"{key}[{number}]")

    def items(self, key: str) -> list[Element]:
        """Return all elements of a list of objects."""
        return [self._wrap(value, f"{key}[{i}]") for i, value in enumerate(self.list(key))]

    def _wrap(self, value: object, key: str) -> Element:
        if not isinstance(value, dict):
            raise self.error("is not an object", key, value=value, expected="an object")
        place = f"{self.place}.{key}" if self.place else key
        return Element(cast("dict[str, Any]", value), place, self.file)


def _below(count: int) -> str:
    """Return the range of valid indices as text."""
    return f"0 to {count - 1}" if count else "none: the list is empty"
