"""Goals, poses and settings as Python code."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from synovia.files.goals import entry_of
from synovia.goals import Goal
from synovia.model import Pose
from synovia.model.geometry import quat_to_matrix, rigid


def changed_settings(settings: Any) -> dict[str, Any]:
    """Return the settings of a solver that differ from the defaults."""
    plain = type(settings)()
    names = settings.__dataclass_fields__
    return {name: getattr(settings, name) for name in names if getattr(settings, name) != getattr(plain, name)}


def start_values(pose: Pose) -> list[str]:
    """Return joint values that differ from rest, mimic joints excepted, as the text of dictionary entries."""
    skeleton, rest = pose.skeleton, pose.skeleton.rest_pose()
    out: list[str] = []
    for row, joint in enumerate(skeleton.joints):
        part = skeleton.q_slice(row)
        if joint.mimic is None and not np.array_equal(pose.q[part], rest.q[part]):
            numbers = [repr(float(f"{value:.12g}") + 0.0) for value in pose.q[part].tolist()]
            value = numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
            out.append(f"{skeleton.address(row)!r}: {value}")
    return out


def arguments_of(goal: Goal) -> list[str]:
    """Return the arguments of a goal's constructor as Python code, from its entry in a goal file."""
    entry = entry_of(goal)
    out = [repr(entry.pop("joint"))] if "joint" in entry else []
    entry.pop("kind")
    for name in ("offset", "other_offset"):  # the offset is a frame if it has a rotation, else a point
        if (turn := entry.pop(f"{name}_rotation", None)) is not None:
            entry[name] = rigid(entry.get(name, (0.0, 0.0, 0.0)), quat_to_matrix(np.array(turn["quat_xyzw"]))).tolist()
    if (turn := entry.pop("rotation", None)) is not None:
        entry |= turn
    if (values := entry.pop("values", None)) is not None:
        entry["pose"] = values
    return out + [f"{name}={_python(value)}" for name, value in entry.items()]


def _python(value: Any) -> str:
    """Return a value as Python code; lists of floats become tuples with nine significant digits."""
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if all(isinstance(part, float) for part in parts):
            return "(" + ", ".join(repr(float(f"{part:.9g}") + 0.0) for part in parts) + ")"
    return repr(cast("object", value))
