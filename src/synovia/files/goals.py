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

from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Struct

from synovia.errors import FormatError, InputError, restated
from synovia.files.goalentries import FIELDS, Entry, to_goal
from synovia.files.rotations import TURN_FORMS, Turn, to_matrix
from synovia.files.typed import read_document
from synovia.goals import Goal

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
    file = read_document(
        path, GoalFile, what="goal file", schema=SCHEMA, most=_LARGEST, fields=_fields, choices=FIELDS, forms=TURN_FORMS
    )
    return [_placed(entry, f"{path}: goals[{i}]") for i, entry in enumerate(file.goals)]


def _fields(path: str, value: object) -> tuple[str, ...]:
    """Return the fields that are known at a place in the file."""
    if path.endswith("rotation"):
        return Turn.__struct_fields__
    if path and isinstance(value, dict):
        return "kind", *FIELDS[str(cast(dict[str, object], value)["kind"])]
    return GoalFile.__struct_fields__


def _placed(entry: Entry, where: str) -> Goal:
    """Return the goal of an entry; an error gets the entry's place in the file."""
    try:
        return to_goal(entry)
    except InputError as error:
        raise restated(error, FormatError, where) from error
