"""Read typed files in TOML or JSON. Error messages have the location, the value and the nearest valid field."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar, cast

import msgspec

from synovia.errors import FormatError, UnsupportedError, did_you_mean
from synovia.io.base import read_text
from synovia.text import parse_json, parse_toml

T = TypeVar("T")
_SUFFIXES: Final = (".toml", ".json")
# Words of messages for the types that msgspec names
_WORDS: Final = {
    "object": "a table", "array": "a list", "float": "a number", "int": "a whole number", "str": "text",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class TypedFile(Generic[T]):
    """A kind of typed file in TOML or JSON, with the texts of its error messages.

    Args:
        kind: Class of the content.
        what: Name of such a file in messages, for example "goal file".
        schema: Value of the field ``schema``.
        most: Largest size in bytes.
        fields: Returns the allowed fields of the value at a path, for example ``goals[0].rotation``.
        choices: Allowed values of fields named ``kind``.
        forms: Descriptions of allowed values, by the end of the field's name, such as ``rotation``.
    """

    kind: type[T]
    what: str
    schema: str
    most: int
    fields: Callable[[str, object], Collection[str]]
    choices: Collection[str] = ()
    forms: Mapping[str, str] = field(default_factory=dict[str, str])

    def read(self, path: Path) -> T:
        """Read the typed content of a file.

        Raises:
            FileError: If it cannot be read.
            FormatError: If the file is malformed or a value does not fit; the message names the location in the file.
            UnsupportedError: If its name ends neither in ``.toml`` nor in ``.json``.
        """
        where, suffix = str(path), path.suffix.lower()
        if suffix not in _SUFFIXES:
            read_text(path, most=self.most)  # raises errors about the file itself before its content is decoded
            raise UnsupportedError(f"name of a {self.what}", where=where, expected="an ending .toml or .json")
        parse = parse_json if suffix == ".json" else parse_toml
        content = parse(read_text(path, most=self.most), where)
        try:
            return msgspec.convert(content, self.kind)
        except msgspec.ValidationError as error:
            raise self._explained(str(error), content, where) from error

    def _explained(self, message: str, content: object, where: str) -> FormatError:
        """Return the error for an invalid value, with its location and the nearest valid field."""
        problem, _, path = message.partition(" - at `$")
        path = path.removesuffix("`").removeprefix(".")
        place = f"{where}: {path}" if path else where
        value = content
        for step in re.findall(r"\w+", path):
            if isinstance(value, list):
                value = cast(list[object], value)[int(step)]
            elif isinstance(value, dict):
                value = cast(dict[str, object], value).get(step)
        if unknown := re.search(r"unknown field `(.*)`", problem):
            known = self.fields(path, value)
            hint = did_you_mean(unknown[1], known)
            return FormatError(
                f"unknown field {unknown[1]!r}",
                where=place,
                expected=f"one of {', '.join(known)}",
                hint=hint if hint.startswith("Did") else None,
            )
        if missing := re.search(r"missing required field `(.*)`", problem):
            expected = {"schema": f'schema = "{self.schema}"', "kind": f"kind: one of {', '.join(self.choices)}"}.get(
                missing[1]
            )
            return FormatError(f"field {missing[1]!r} is missing", where=place, expected=expected)
        if self.choices and path.endswith("kind") and isinstance(value, str):
            near = did_you_mean(value, self.choices)
            return FormatError("", where=place, value=value, expected=", ".join(self.choices), hint=near)
        if path == "schema":
            return FormatError("", where=place, value=value, expected=repr(self.schema))
        if problem.startswith("Invalid enum value"):
            known = _known_words(self.kind, path.rpartition(".")[2])
            near = did_you_mean(value, known) if isinstance(value, str) else None
            return FormatError("", where=place, value=value, expected="one of " + ", ".join(known), hint=near)
        problem, _, expected = problem.partition("Expected ")
        form = next((form for word, form in self.forms.items() if path.endswith(word)), None)
        return FormatError(
            problem,
            where=place,
            value=value,
            expected=form or _in_words(expected.partition(", got")[0], where) or None,
        )


def _known_words(kind: type[object], field: str) -> list[str]:
    """Return the words that a field of this name allows."""
    found: list[str] = []
    for part in msgspec.json.schema(kind)["$defs"].values():
        one = part.get("properties", {}).get(field, {})
        for option in (one, *one.get("anyOf", ())):
            found += [word for word in option.get("enum", ()) if word is not None and word not in found]
    return found


def _in_words(expected: str, where: str) -> str:
    """Return the type that msgspec expected, in words of the file format."""
    plain = expected.replace("`", "").removesuffix(" | null")
    if not where.lower().endswith(".toml"):
        return plain
    return " or ".join(re.sub(r"^\w+", lambda kind: _WORDS.get(kind[0], kind[0]), part) for part in plain.split(" | "))
