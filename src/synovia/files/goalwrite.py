"""Writer of goal files, ``synovia.goals/1``, as ``files.goals`` reads them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import numpy as np

from synovia.errors import UnsupportedError
from synovia.files.goalentries import FIELDS
from synovia.files.goals import SCHEMA
from synovia.goals import (
    AimGoal,
    CenterOfMassGoal,
    ContactGoal,
    DistanceGoal,
    Goal,
    PlaneGoal,
    PoleGoal,
    RangeGoal,
    RelativeGoal,
    RestGoal,
)
from synovia.goals.base import POSITION, ROTATION
from synovia.io.base import as_path, write_bytes
from synovia.model import Pose
from synovia.model.geometry import Array, matrix_to_quat
from synovia.text import toml_key, toml_text

_PARTS: Final = {POSITION: "position", ROTATION: "rotation", POSITION | ROTATION: "pose"}


def write_goals(goals: Iterable[Goal], path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write goals so that ``synovia solve --goals`` reads the same ones.

    Args:
        goals: The goals.
        path: The file, by custom with the extension ``.toml``.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        UnsupportedError: If the file format has no room for a goal.
    """
    write_bytes(as_path(path), goals_text(goals).encode(errors="replace"), force=force)


def goals_text(goals: Iterable[Goal]) -> str:
    """Return the text of a goal file in TOML.

    Raises:
        UnsupportedError: If there is no goal, or the file format has no room for one.
    """
    blocks = [f'schema = "{SCHEMA}"\n']
    for goal in goals:
        lines = [f"{key} = {_literal(value)}" for key, value in entry_of(goal).items()]
        blocks.append("[[goals]]\n" + "\n".join(lines) + "\n")
    if len(blocks) == 1:
        raise UnsupportedError("there is no goal to write", expected="at least one")
    return "\n".join(blocks)


def entry_of(goal: Goal) -> dict[str, Any]:
    """Return a goal as an entry of a goal file; what the reader takes for granted is left out.

    Raises:
        UnsupportedError: If the file format has no room for the goal.
    """
    if goal.kind not in FIELDS:
        raise _no_room(goal, "goals of a kind of their own", ", ".join(FIELDS))
    entry: dict[str, Any] = {"kind": goal.kind}
    if goal.joint is not None:
        entry["joint"] = goal.joint
    entry |= _special(goal)
    if goal.weight != 1.0:
        entry["weight"] = goal.weight
    if goal.priority:
        entry["priority"] = goal.priority
    if goal.ancestors is not None:
        entry["ancestors"] = goal.ancestors
    if goal.name is not None and goal.name != goal.joint:
        entry["name"] = goal.name
    return entry


def _special(goal: Goal) -> dict[str, Any]:
    """Return what the goal's kind has beside joint, weight, priority and name."""
    match goal:
        case AimGoal():
            axis = goal.offset[:3, 2]
            own = {} if np.array_equal(axis, (0.0, 0.0, 1.0)) else {"axis": axis.tolist()}
            return _target(goal, "point") | own | _offset(goal.offset, POSITION)
        case PoleGoal():
            return _target(goal, "point") | _given(root=goal.root, tip=goal.tip)
        case DistanceGoal():
            bounds = _given(minimum=goal.minimum or None, maximum=None if math.isinf(goal.maximum) else goal.maximum)
            frames = _offset(goal.offset, POSITION) | _offset(goal.other_offset, POSITION, "other_offset")
            return _given(other=goal.other) | _target(goal, "point") | bounds | frames
        case RangeGoal():
            bounds = {"lower": goal.lower, "upper": goal.upper}
            return {side: bound for side, bound in bounds.items() if math.isfinite(bound)}
        case PlaneGoal():
            if not goal.given & POSITION:
                raise _no_room(goal, "a plane through wherever the start is", "a point")
            return _target(goal, "point", "normal") | _offset(goal.offset, POSITION)
        case CenterOfMassGoal():
            corners = None if goal.polygon is None else goal.polygon.tolist()
            up = None if goal.up is None else goal.up.tolist()
            return _target(goal, "position") | _given(polygon=corners, up=up)
        case RelativeGoal():
            parts = {} if _PARTS.get(goal.given, "pose") == goal.parts else {"parts": goal.parts}
            frames = _offset(goal.offset, goal.takes) | _offset(goal.other_offset, POSITION | ROTATION, "other_offset")
            return {"other": goal.other} | _target(goal, "position") | parts | frames
        case ContactGoal():
            taken = POSITION | ROTATION if goal.keep == "pose" else POSITION  # a sole's normal is its own field
            axis = None if goal.axis is None else goal.axis.tolist()
            turn = "normal" if goal.keep == "normal" else "rotation"
            keep = {} if goal.keep == "pose" else {"keep": goal.keep}
            return keep | _target(goal, "position", turn) | _given(axis=axis) | _offset(goal.offset, taken)
        case RestGoal():
            return _rest(goal)
        case _:
            if goal.what == POSITION | ROTATION and goal.given not in (0, goal.what):
                raise _no_room(goal, "half a pose", "position and rotation, or neither")
            return _target(goal, "position") | _offset(goal.offset, goal.what)


def _rest(goal: RestGoal) -> dict[str, Any]:
    """Return reference and joints of a rest goal."""
    entry: dict[str, Any] = {}
    parts = goal.parts
    if parts is not None:
        if all(part == 1.0 for part in parts.values()):
            entry["joints"] = list(parts)
        else:
            entry["joints"] = {_named(goal, joint): float(part) for joint, part in parts.items()}
    pose = goal.pose
    if isinstance(pose, Pose):
        names = pose.skeleton.joint_names
        if len(set(names)) < len(names):
            raise _no_room(goal, "values of joints that share a name", "joints with names of their own")
        slices = [pose.skeleton.q_slice(row) for row in range(len(names))]
        values = {name: pose.q[part] for name, part in zip(names, slices, strict=True) if part.stop > part.start}
    elif pose is None or isinstance(pose, Mapping):
        values = dict(cast("Mapping[str | int, Any]", pose or {}))
    else:
        raise _no_room(goal, "joint values without names", "a Pose, or values by name")
    if values:
        rows = {_named(goal, joint): np.asarray(value, float).reshape(-1).tolist() for joint, value in values.items()}
        entry["values"] = {name: row[0] if len(row) == 1 else row for name, row in rows.items()}
    return entry


def _named(goal: Goal, joint: object) -> str:
    """Return the name of a joint that stands before an equals sign."""
    if not isinstance(joint, str):
        raise _no_room(goal, f"values by row ({joint!r})", "the joint's name")
    return joint


def _no_room(goal: Goal, what: str, expected: str) -> UnsupportedError:
    """Return the error for what a goal file cannot say."""
    return UnsupportedError(f"goal files have no room for {what}", where=goal.label, value=goal, expected=expected)


def _given(**values: Any) -> dict[str, Any]:
    """Return the values that are there."""
    return {name: value for name, value in values.items() if value is not None}


def _target(goal: Goal, place: str, turn: str = "rotation") -> dict[str, Any]:
    """Return the parts of the target that the goal itself gives, under the names of its kind."""
    parts: dict[str, Any] = {}
    if goal.target is not None and goal.given & POSITION:
        parts[place] = goal.target[:3, 3].tolist()
    if goal.target is not None and goal.given & ROTATION:
        matrix = goal.target[:3, :3]
        parts[turn] = matrix[:, 2].tolist() if turn == "normal" else _turn(matrix)
    return parts


def _offset(frame: Array, what: int, name: str = "offset") -> dict[str, Any]:
    """Return the parts of a frame on a joint that count."""
    parts: dict[str, Any] = {}
    if what & POSITION and frame[:3, 3].any():
        parts[name] = frame[:3, 3].tolist()
    if what & ROTATION and not np.array_equal(frame[:3, :3], np.eye(3)):
        parts[f"{name}_rotation"] = _turn(frame[:3, :3])
    return parts


def _turn(matrix: Array) -> dict[str, Any]:
    """Return a rotation."""
    return {"quat_xyzw": matrix_to_quat(matrix).tolist()}


def _literal(value: Any) -> str:
    """Return a value in TOML's words; numbers with as many digits as they need to come back the same."""
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{toml_key(key)} = {_literal(part)}" for key, part in pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(part) for part in cast("list[Any]", value)) + "]"
    return repr(float(value)) if isinstance(value, float) else str(int(value))
