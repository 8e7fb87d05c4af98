"""Writer of goal files, ``synovia.goals/1``, as ``ik.goalfile`` reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.errors import UnsupportedError
from synovia.geometry import Array, matrix_to_quat
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.io.base import write_bytes

_SCHEMA: Final = "synovia.goals/1"
_KINDS: Final[dict[type[Goal], str]] = {PositionGoal: "position", RotationGoal: "rotation", PoseGoal: "pose"}


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
    write_bytes(Path(path), goals_text(goals).encode(errors="replace"), force=force)


def goals_text(goals: Iterable[Goal]) -> str:
    """Return the text of a goal file in TOML.

    Raises:
        UnsupportedError: If the file format has no room for a goal.
    """
    blocks = [f'schema = "{_SCHEMA}"\n']
    for goal in goals:
        lines = [f"{key} = {_literal(value)}" for key, value in entry_of(goal).items()]
        blocks.append("[[goals]]\n" + "\n".join(lines) + "\n")
    return "\n".join(blocks)


def entry_of(goal: Goal) -> dict[str, Any]:
    """Return a goal as an entry of a goal file; what the reader takes for granted is left out.

    Raises:
        UnsupportedError: If the file format has no room for the goal.
    """
    if type(goal) not in _KINDS:
        raise UnsupportedError("goal files have no room for this goal", value=goal, expected=", ".join(_KINDS.values()))
    entry: dict[str, Any] = {"kind": _KINDS[type(goal)], "joint": goal.joint}
    if goal.target is not None:
        entry |= _frame(goal.target, goal.what, "position", "rotation")
    if not np.array_equal(goal.offset, np.eye(4)):
        parts = _frame(goal.offset, goal.what, "offset", "offset_rotation")
        if not goal.offset[:3, 3].any():
            parts.pop("offset", None)
        if np.array_equal(goal.offset[:3, :3], np.eye(3)):
            parts.pop("offset_rotation", None)
        entry |= parts
    if goal.weight != 1.0:
        entry["weight"] = goal.weight
    if goal.priority:
        entry["priority"] = goal.priority
    if goal.name is not None and goal.name != goal.joint:
        entry["name"] = goal.name
    return entry


def _frame(frame: Array, what: int, place: str, turn: str) -> dict[str, Any]:
    """Return the parts of a frame that a goal asks for."""
    parts: dict[str, Any] = {}
    if what & POSITION:
        parts[place] = frame[:3, 3].tolist()
    if what & ROTATION:
        parts[turn] = {"quat_xyzw": matrix_to_quat(frame[:3, :3]).tolist()}
    return parts


def _literal(value: Any) -> str:
    """Return a value in TOML's words; numbers with as many digits as they need to come back the same."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_literal(part)}" for key, part in value.items()) + " }"  # type: ignore[misc]
    if isinstance(value, list):
        return "[" + ", ".join(_literal(part) for part in value) + "]"  # type: ignore[misc]
    return repr(value)
