"""Files that people write, TOML or JSON, read into typed fields; an error names place, value and nearest fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec

from synovia.errors import FormatError, UnsupportedError, did_you_mean
from synovia.io.base import read_text
from synovia.text import parse_json, parse_toml

T = TypeVar("T")
_NO_FORMS: Final[Mapping[str, str]] = {}
_SUFFIXES: Final = (".toml", ".json")
# What JSON and msgspec call the kinds of values, in the words of TOML
_WORDS: Final = {
    "object": "a table", "array": "a list", "float": "a number", "int": "a whole number", "str": "text",
}  # fmt: skip


def read_document(
    path: Path,
    kind: type[T],
    *,
    what: str,
    schema: str,
    most: int,
    fields: Callable[[str, object], Collection[str]],
    choices: Collection[str] = (),
    forms: Mapping[str, str] = _NO_FORMS,
) -> T:
    """Return the typed content of a TOML or JSON file.

    Args:
        path: The file.
        kind: The class of its fields.
        what: What such a file is called, for messages: "goal file".
        schema: Value of its field ``schema``.
        most: Most bytes that it may have.
        fields: Gives the known fields of the value at a path like ``goals[0].rotation``.
        choices: What fields called ``kind`` may be.
        forms: How to write values whose field's name ends in a word, by that word.

    Raises:
        FileError: If it cannot be read.
        FormatError: If it is malformed or a value does not fit; the message names the place in the file.
        UnsupportedError: If its name ends neither in ``.toml`` nor in ``.json``.
    """
    where, suffix = str(path), path.suffix.lower()
    if suffix not in _SUFFIXES:
        read_text(path, most=most)  # a file that is not there is the first thing to tell
        raise UnsupportedError(f"name of a {what}", where=where, expected="an ending .toml or .json")
    parse = parse_json if suffix == ".json" else parse_toml
    content = parse(read_text(path, most=most), where)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise _explained(str(error), kind, content, where, what, schema, fields, choices, forms) from error


def _explained(
    message: str,
    kind: type[object],
    content: object,
    where: str,
    what: str,
    schema: str,
    fields: Callable[[str, object], Collection[str]],
    choices: Collection[str],
    forms: Mapping[str, str],
) -> FormatError:
    """Return the error for a value that does not fit: its place, its value, and the nearest field for a wrong one."""
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
        known = fields(path, value)
        hint = did_you_mean(unknown[1], known)
        return FormatError(
            f"unknown field {unknown[1]!r}",
            where=place,
            expected=f"one of {', '.join(known)}",
            hint=hint if hint.startswith("Did") else None,
        )
    if missing := re.search(r"missing required field `(.*)`", problem):
        expected = {"schema": f'schema = "{schema}"', "kind": f"kind: one of {', '.join(choices)}"}.get(missing[1])
        return FormatError(f"field {missing[1]!r} is missing", where=place, expected=expected)
    if choices and path.endswith("kind") and isinstance(value, str):
        near = did_you_mean(value, choices)
        return FormatError("", where=place, value=value, expected=", ".join(choices), hint=near)
    if path == "schema":
        return FormatError("", where=place, value=value, expected=repr(schema))
    if problem.startswith("Invalid enum value"):
        known = _known_words(kind, path.rpartition(".")[2])
        near = did_you_mean(value, known) if isinstance(value, str) else None
        return FormatError("", where=place, value=value, expected=" or ".join(map(repr, known)), hint=near)
    told, _, expected = problem.partition("Expected ")
    form = next((form for word, form in forms.items() if path.endswith(word)), None)
    return FormatError(
        told,
        where=place,
        value=value,
        expected=form or _in_words(expected.partition(", got")[0], where) or None,
    )


def _known_words(kind: type[object], field: str) -> list[str]:
    """Return the words that a field of this name may hold."""
    found: list[str] = []
    for part in msgspec.json.schema(kind)["$defs"].values():
        one = part.get("properties", {}).get(field, {})
        for option in (one, *one.get("anyOf", ())):
            found += [word for word in option.get("enum", ()) if word is not None and word not in found]
    return found


def _in_words(expected: str, where: str) -> str:
    """Return what msgspec expected, in the words of the file's kind; that a field may be left out needs none."""
    plain = expected.replace("`", "").removesuffix(" | null")
    if not where.lower().endswith(".toml"):
        return plain
    return " or ".join(re.sub(r"^\w+", lambda kind: _WORDS.get(kind[0], kind[0]), part) for part in plain.split(" | "))
