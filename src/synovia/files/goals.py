"""Read and write goal files in TOML or JSON, ``synovia.goals/1``. The JSON schema is ``schemas/goals-1.json``.

    schema = "synovia.goals/1"

    [[goals]]
    kind = "pose"
    joint = "hand"
    position = [0.4, 0.1, 0.5]
    rotation = { euler = "xyz", degrees = [180, 0, 0] }

Lengths are in the unit of the model's file. A goal without a target keeps its joint where it is in the start pose.
Reader, writer and schema get the fields of each kind from the description in its class (``goals.describe.Field``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, Union, cast

import msgspec
import numpy as np
from msgspec import Meta, Struct

from synovia.arguments import check_kind, checked_joints
from synovia.errors import FormatError, InputError, UnknownNameError, UnsupportedError, restated
from synovia.files.rotations import ROTATION_FORMS, RotationSpec, to_matrix
from synovia.files.typed import TypedFile
from synovia.goals import Goal, kinds
from synovia.goals.base import GoalList
from synovia.goals.describe import Field, cannot_store
from synovia.io.base import as_path, write_bytes
from synovia.model import Skeleton
from synovia.model.geometry import matrix_to_quat, rigid
from synovia.model.shapes.world import World
from synovia.text import toml_key, toml_text

SCHEMA: Final = "synovia.goals/1"
_LARGEST: Final = 2**24  # largest size of a file, bytes; a goal takes about 100 bytes
_Three = tuple[float, float, float]
# Python type of each form of a field, with the bounds of its values
_FORMS: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "point": (_Three, {}),
    "direction": (_Three, {}),
    "rotation": (RotationSpec, {}),
    "joint": (str | int, {}),
    "number": (float, {}),
    "weight": (float, {"gt": 0}),
    "length": (float, {"ge": 0}),
    "count": (int, {"ge": 0}),
    "name": (str, {"min_length": 1}),
    "bounds": (list[float | str | tuple[float | str, float | str]], {"min_length": 3, "max_length": 6}),
    "polygon": (list[_Three], {"min_length": 1}),
    "parts": (list[str | int] | dict[str, float], {}),
    "values": (dict[str, float | list[float]], {}),
    "pairs": (list[Literal["self", "world"] | tuple[str | int, str | int]], {"min_length": 1}),
}
_STRICT: Final[dict[str, Any]] = {"forbid_unknown_fields": True, "frozen": True}
# all kinds except the goal of Python functions, which has no fields
KINDS: Final = {kind: goal for kind, goal in kinds().items() if goal.fields}


def _entry(kind: str, goal: type[Goal]) -> type[Struct]:
    """Return a new class of entries for a kind of goal."""
    fields: list[Any] = []
    for field in goal.entry_fields():
        if field.choices:
            form: Any = Annotated[Literal[field.choices] | None, Meta(description=field.text)]
        else:
            of, bounds = _FORMS[field.form]
            form = Annotated[of, Meta(description=field.text, **bounds)]
        fixed = isinstance(field.default, float | int)
        if field.required:
            fields.append((field.name, form))
        elif fixed:
            fields.append((field.name, form, field.default))
        else:
            fields.append((field.name, form if field.choices else form | None, None))
    return msgspec.defstruct(
        goal.__name__.removesuffix("Goal") + "Entry",
        fields,
        tag_field="kind",
        tag=kind,
        omit_defaults=True,
        kw_only=True,
        namespace={"__doc__": goal.summary},
        **_STRICT,
    )


_MOVING: Final[Any] = Annotated[
    list[str | int], Meta(min_length=1, description="Joints that may move, by name, role or row; left out for all.")
]
_ENTRIES: Final = {kind: _entry(kind, goal) for kind, goal in KINDS.items()}
Entries = Union[tuple(_ENTRIES.values())]  # pyright: ignore[reportInvalidTypeArguments]  # noqa: UP007
GoalFile: Final[Any] = msgspec.defstruct(
    "GoalFile",
    [
        ("schema", Literal["synovia.goals/1"]),
        ("goals", Annotated[list[Entries], Meta(min_length=1)]),
        ("moving", _MOVING | None, None),
    ],
    namespace={"__doc__": "Goals for one model."},
    **_STRICT,
)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of goal files."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(GoalFile)}


def read_goals(
    path: str | os.PathLike[str], skeleton: Skeleton | None = None, *, world: World | None = None
) -> GoalList:
    """Read the goals of a TOML or JSON file, such as one from ``write_goals``.

    If the file lists the joints that may move, the result has them as ``moving``, which ``IK`` and ``solve`` respect.

    Args:
        path: The file.
        skeleton: If given, the joints of the goals must exist in it.
        world: Obstacles for the clearance goals of the file.

    Raises:
        FileError: If it cannot be read.
        FormatError: If the file is malformed, a value cannot be used or the skeleton lacks a joint; the message names
            the place in the file.
        UnsupportedError: If its name ends neither in ``.toml`` nor in ``.json``.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> sy.solve(body, sy.read_goals("goals.toml", body))  # doctest: +SKIP
    """
    if skeleton is not None:
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    if world is not None:
        check_kind("world", world, World, "sy.load_world(path) reads one")
    form = TypedFile(GoalFile, "goal file", SCHEMA, _LARGEST, _known_fields, choices=KINDS, forms=ROTATION_FORMS)
    file = form.read(as_path(path))
    goals = GoalList(moving=None if file.moving is None else tuple(file.moving))
    if skeleton is not None:
        try:
            for joint in goals.moving or ():
                skeleton.value_index(joint)
        except (InputError, UnknownNameError) as error:
            raise restated(error, FormatError, f"{path}: moving") from error
    for i, entry in enumerate(file.goals):
        try:
            goal = to_goal(entry, world)
            if skeleton is not None:
                goal.resolved(skeleton).located(skeleton)
        except (InputError, UnknownNameError) as error:
            raise restated(error, FormatError, f"{path}: goals[{i}]") from error
        goals.append(goal)
    return goals


def _known_fields(path: str, value: object) -> tuple[str, ...]:
    """Return the names of the fields that the format allows at a path in the file."""
    if path.endswith("rotation"):
        return RotationSpec.__struct_fields__
    if path and isinstance(value, dict):
        kind = str(cast(dict[str, object], value)["kind"])
        return "kind", *(field.name for field in KINDS[kind].entry_fields())
    return GoalFile.__struct_fields__


def to_goal(entry: Any, world: World | None = None) -> Goal:
    """Return the goal that an entry describes.

    Args:
        entry: The entry.
        world: Obstacles, for goals that have a world.

    Raises:
        InputError: If a value cannot be used.
    """
    goal = KINDS[entry.__struct_config__.tag]
    given = {field.name: (field, getattr(entry, field.name)) for field in goal.entry_fields()}
    arguments: dict[str, Any] = {
        field.argument or name: to_matrix(value, name) if field.form == "rotation" else value
        for name, (field, value) in given.items()
        if value is not None
    }
    for name in ("offset", "other_offset"):  # a point, or a frame if the entry also has a rotation
        if (turned := arguments.pop(f"{name}_rotation", None)) is not None:
            arguments[name] = rigid(arguments.get(name, (0.0, 0.0, 0.0)), turned)
    if goal.takes_world:
        arguments["world"] = world
    return goal(**arguments)


def write_goals(
    goals: Iterable[Goal],
    path: str | os.PathLike[str],
    *,
    moving: Iterable[str | int] | None = None,
    force: bool = False,
) -> None:
    """Write goals to a TOML file for ``read_goals`` and ``synovia solve --goals``.

    Args:
        goals: The goals.
        path: The file, usually ``*.toml``.
        moving: The joints that may move, as in ``IK``. None for those listed with goals from ``read_goals``, else all.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        UnsupportedError: If a goal file cannot store a goal.

    Example:
        >>> import synovia as sy
        >>> sy.write_goals([sy.PositionGoal("left_hand", (0.4, 1.3, 0.3))], "goals.toml")  # doctest: +SKIP
    """
    write_bytes(as_path(path), goals_text(goals, moving).encode(errors="replace"), force=force)


def goals_text(goals: Iterable[Goal], moving: Iterable[str | int] | None = None) -> str:
    """Return the text of a goal file in TOML; arguments as in ``write_goals``.

    Raises:
        InputError: If ``moving`` cannot be used.
        UnsupportedError: If there is no goal, or a goal file cannot store a goal.
    """
    moving = goals.moving if moving is None and isinstance(goals, GoalList) else moving
    blocks = [f'schema = "{SCHEMA}"\n']
    if moving is not None:
        blocks[0] += f"moving = {literal([*checked_joints(moving)])}\n"
    for goal in goals:
        lines = [f"{key} = {literal(value)}" for key, value in entry_of(goal).items()]
        blocks.append("[[goals]]\n" + "\n".join(lines) + "\n")
    if len(blocks) == 1:
        raise UnsupportedError("goals", expected="at least one goal")
    return "\n".join(blocks)


def entry_of(goal: Goal) -> dict[str, Any]:
    """Return a goal as an entry of a goal file, without defaults.

    Raises:
        UnsupportedError: If a goal file cannot store the goal.
    """
    if goal.kind not in KINDS:
        raise cannot_store(goal, f"goals of kind {goal.kind!r}", ", ".join(KINDS))
    values = {field: field.take(goal) for field in goal.entry_fields()}
    return {"kind": goal.kind} | {
        field.name: _plain(field, value)
        for field, value in values.items()
        if value is not None and not np.array_equal(value, field.default)
    }


def _plain(field: Field, value: Any) -> Any:
    """Return a value as the file stores it."""
    if field.form == "rotation":
        return {"quat_xyzw": matrix_to_quat(value).tolist()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def literal(value: Any) -> str:
    """Return a value in TOML syntax; numbers have enough digits to be read back unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{toml_key(key)} = {literal(part)}" for key, part in pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(literal(part) for part in cast("list[Any]", value)) + "]"
    return repr(float(value)) if isinstance(value, float) else str(int(value))
