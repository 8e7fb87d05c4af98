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

import math
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import msgspec
import numpy as np
from msgspec import Meta, Struct

from synovia.errors import FormatError, InputError, UnsupportedError, did_you_mean
from synovia.geometry import Array, as_matrix, as_unit_quat, quat_to_matrix, rigid
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.io.base import read_bytes, read_text
from synovia.jsontext import parse_json

SCHEMA: Final = "synovia.goals/1"
_LARGEST: Final = 2**24  # bytes; a goal takes about a hundred

_Three = tuple[float, float, float]
_Four = tuple[float, float, float, float]
_Joint = Annotated[str | int, Meta(description="Name, body, role or row of the joint.")]
_Point = Annotated[_Three, Meta(description="World position x, y, z in the length unit of the model's file.")]
_OffsetPoint = Annotated[_Three, Meta(description="Point on the joint, in its frame, that should meet the target.")]
_Weight = Annotated[float, Meta(gt=0, description="Weight beside goals of the same priority.")]
_Priority = Annotated[int, Meta(ge=0, description="0 is the highest.")]
_Name = Annotated[str, Meta(min_length=1, description="What to call the goal.")]


class Turn(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A rotation in exactly one way: quat_xyzw, quat_wxyz, matrix, or euler with degrees."""

    quat_xyzw: Annotated[_Four, Meta(description="Unit quaternion, the real part last.")] | None = None
    quat_wxyz: Annotated[_Four, Meta(description="Unit quaternion, the real part first.")] | None = None
    matrix: Annotated[tuple[_Three, _Three, _Three], Meta(description="Rows of a rotation matrix.")] | None = None
    euler: (
        Annotated[
            str,
            Meta(
                pattern="^([xyz]{1,3}|[XYZ]{1,3})$",
                description="Axes in the order of the turns: xyz about the fixed axes, XYZ about the turned ones.",
            ),
        ]
        | None
    ) = None
    degrees: Annotated[list[float], Meta(description="One angle for each axis of euler, degrees.")] | None = None


_Rotation = Annotated[Turn, Meta(description="World rotation of the joint.")]
_OffsetTurn = Annotated[Turn, Meta(description="Rotation of the frame on the joint that should meet the target.")]


class _Shared(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, kw_only=True):
    """Fields of every goal."""

    joint: _Joint
    weight: _Weight = 1.0
    priority: _Priority = 0
    name: _Name | None = None


class PositionEntry(_Shared, tag_field="kind", tag="position", frozen=True, kw_only=True):
    """A point on a joint should be at a position."""

    position: _Point | None = None
    offset: _OffsetPoint | None = None


class RotationEntry(_Shared, tag_field="kind", tag="rotation", frozen=True, kw_only=True):
    """A joint should have an orientation."""

    rotation: _Rotation | None = None
    offset_rotation: _OffsetTurn | None = None


class PoseEntry(_Shared, tag_field="kind", tag="pose", frozen=True, kw_only=True):
    """A frame on a joint should have a position and an orientation: both, or neither to stay."""

    position: _Point | None = None
    rotation: _Rotation | None = None
    offset: _OffsetPoint | None = None
    offset_rotation: _OffsetTurn | None = None


Entry = PositionEntry | RotationEntry | PoseEntry


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


def to_goal(entry: Entry) -> Goal:
    """Return the goal that an entry describes.

    Raises:
        InputError: If a value cannot be used.
    """
    keep: dict[str, Any] = {"weight": entry.weight, "priority": entry.priority, "name": entry.name}
    if isinstance(entry, PositionEntry):
        return PositionGoal(entry.joint, entry.position, offset=entry.offset, **keep)
    offset = None
    turned = None if entry.offset_rotation is None else to_matrix(entry.offset_rotation, "offset_rotation")
    point = entry.offset if isinstance(entry, PoseEntry) else None
    if turned is not None or point is not None:
        offset = rigid(point or (0.0, 0.0, 0.0), turned)
    rotation = None if entry.rotation is None else to_matrix(entry.rotation)
    if isinstance(entry, RotationEntry):
        return RotationGoal(entry.joint, rotation, offset=offset, **keep)
    return PoseGoal(entry.joint, entry.position, rotation, offset=offset, **keep)


def to_matrix(turn: Turn, what: str = "rotation") -> Array:
    """Return the rotation matrix of a rotation as files write it.

    Raises:
        InputError: If none or several ways are given, or the values are no rotation.
    """
    ways = [way for way in ("quat_xyzw", "quat_wxyz", "matrix", "euler") if getattr(turn, way) is not None]
    if len(ways) != 1 or (turn.degrees is not None) != (turn.euler is not None):
        given = [*ways, *(["degrees"] if turn.degrees is not None else [])]
        raise InputError(
            f"{what} is given in {len(ways)} ways" if len(ways) != 1 else f"{what} has only one of euler and degrees",
            value=given,
            expected="one of quat_xyzw, quat_wxyz, matrix, or euler with degrees",
        )
    if turn.quat_xyzw is not None:
        return quat_to_matrix(as_unit_quat(turn.quat_xyzw, f"quat_xyzw of {what}"))
    if turn.quat_wxyz is not None:
        w, x, y, z = turn.quat_wxyz
        return quat_to_matrix(as_unit_quat((x, y, z, w), f"quat_wxyz of {what}"))
    if turn.matrix is not None:
        return as_matrix(np.array(turn.matrix), what)
    return _euler_matrix(turn.euler or "", turn.degrees or [], what)


def _euler_matrix(order: str, degrees: list[float], what: str) -> Array:
    """Return the matrix of turns: lower case about fixed axes (each from the left), upper case about turned ones."""
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", order) or any(a == b for a, b in pairwise(order)):
        raise InputError(
            f"order of Euler angles of {what} cannot be used",
            value=order,
            expected="up to three of xyz (fixed axes) or XYZ (turned axes), none twice in a row",
        )
    if len(degrees) != len(order) or not all(math.isfinite(angle) for angle in degrees):
        raise InputError(
            f"Euler angles of {what} do not fit", value=degrees, expected=f"{len(order)} finite angles in degrees"
        )
    out = np.eye(3)
    for axis, angle in zip(order, degrees, strict=True):
        i = "xyz".index(axis.lower())
        j, k = (i + 1) % 3, (i + 2) % 3
        c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        one = np.eye(3)
        one[j, j], one[j, k], one[k, j], one[k, k] = c, -s, s, c
        out = one @ out if order.islower() else out @ one
    return out


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


_FIELDS: Final[dict[str, type[Struct]]] = {"position": PositionEntry, "rotation": RotationEntry, "pose": PoseEntry}


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
            known = ("kind", *_FIELDS[str(cast(dict[str, object], value)["kind"])].__struct_fields__)
        listed = ", ".join(known)
        hint = did_you_mean(unknown[1], known)
        return FormatError(
            f"unknown field {unknown[1]!r}",
            where=place,
            expected=f"fields {listed}",
            hint=hint if hint.startswith("did") else None,
        )
    if missing := re.search(r"missing required field `(.*)`", problem):
        expected = {"schema": f'schema = "{SCHEMA}"', "kind": f"kind: one of {', '.join(_FIELDS)}"}.get(missing[1])
        return FormatError(f"field {missing[1]!r} is missing", where=place, expected=expected)
    if path.endswith("kind") and isinstance(value, str):
        near = did_you_mean(value, _FIELDS)
        return FormatError("no such kind of goal", where=place, value=value, expected=", ".join(_FIELDS), hint=near)
    if path == "schema":
        return FormatError("no goal file of this version", where=place, value=value, expected=repr(SCHEMA))
    what, _, expected = problem.partition("Expected ")
    return FormatError(
        what or "value does not fit",
        where=place,
        value=value,
        expected=expected.partition(", got")[0].replace("`", "") or None,
    )
