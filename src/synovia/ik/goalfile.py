"""Goal files: goals as TOML or JSON, ``synovia.goals/1``. Its JSON schema is ``schemas/goals-1.json``.

    schema = "synovia.goals/1"

    [[goals]]
    kind = "pose"
    joint = "hand"
    position = [0.4, 0.1, 0.5]
    rotation = { euler = "xyz", degrees = [180, 0, 0] }

Lengths are in the unit of the model's file. A goal without a target keeps its joint where the start has it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Struct

from synovia.errors import FormatError, InputError, UnsupportedError, did_you_mean
from synovia.goals import Goal
from synovia.ik.goalentries import FIELDS, Entry, Turn, to_goal, to_matrix
from synovia.io.base import read_bytes, read_text
from synovia.jsontext import parse_json

SCHEMA: Final = "synovia.goals/1"
_LARGEST: Final = 2**24  # bytes; a goal takes about a hundred

__all__ = ["GoalFile", "Turn", "json_schema", "read_goals", "to_goal", "to_matrix"]


class GoalFile(Struct, forbid_unknown_fields=True, frozen=True):
    """Goals for one model."""

    schema: Literal["synovia.goals/1"]
    goals: Annotated[list[Entry], Meta(min_length=1)]


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of goal files."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(GoalFile)}


def read_goals(path: Path) -> list[Goal]:
    """Return the goals of a TOML or JSON file.

    Raises:
        FileError: If it cannot be read.
        FormatError: If it is malformed or a value cannot be used; the message names the place in the file.
        UnsupportedError: If its name ends neither in ``.toml`` nor in ``.json``.
    """
    where = str(path)
    read_bytes(path, most=_LARGEST)
    kind = path.suffix.lower()
    if kind not in (".toml", ".json"):
        raise UnsupportedError("is no goal file", where=where, expected="a name that ends in .toml or .json")
    text = read_text(path)
    content = parse_json(text, where) if kind == ".json" else _parse_toml(text, where)
    try:
        file = msgspec.convert(content, GoalFile)
    except msgspec.ValidationError as error:
        raise _explained(str(error), content, where) from error
    return [_placed(entry, f"{where}: goals[{i}]") for i, entry in enumerate(file.goals)]


def _placed(entry: Entry, where: str) -> Goal:
    """Return the goal of an entry; an error gets the entry's place in the file."""
    try:
        return to_goal(entry)
    except InputError as error:
        raise FormatError(
            error.what, where=where, value=error.value, expected=error.expected, hint=error.hint
        ) from error


def _parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the content of a TOML text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"no TOML: {error}", where=where) from error
    except RecursionError as error:
        raise FormatError("nested too deeply", where=where) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise FormatError("a number has too many digits", where=where) from error


def _explained(message: str, content: object, where: str) -> FormatError:
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
        known = GoalFile.__struct_fields__
        if path.endswith("rotation"):
            known = Turn.__struct_fields__
        elif path and isinstance(value, dict):
            known = ("kind", *FIELDS[str(cast(dict[str, object], value)["kind"])])
        listed = ", ".join(known)
        hint = did_you_mean(unknown[1], known)
        return FormatError(
            f"unknown field {unknown[1]!r}",
            where=place,
            expected=f"fields {listed}",
            hint=hint if hint.startswith("did") else None,
        )
    if missing := re.search(r"missing required field `(.*)`", problem):
        expected = {"schema": f'schema = "{SCHEMA}"', "kind": f"kind: one of {', '.join(FIELDS)}"}.get(missing[1])
        return FormatError(f"field {missing[1]!r} is missing", where=place, expected=expected)
    if path.endswith("kind") and isinstance(value, str):
        near = did_you_mean(value, FIELDS)
        return FormatError("no such kind of goal", where=place, value=value, expected=", ".join(FIELDS), hint=near)
    if path == "schema":
        return FormatError("no goal file of this version", where=place, value=value, expected=repr(SCHEMA))
    what, _, expected = problem.partition("Expected ")
    return FormatError(
        what or "value does not fit",
        where=place,
        value=value,
        expected=expected.partition(", got")[0].replace("`", "") or None,
    )
