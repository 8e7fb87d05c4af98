"""Moving roots: the skeleton's own free joint, an added free joint, or added slides and hinges for single axes.

Slides move along the world axes. Hinges (roll about x, pitch about y, yaw about z) rotate about the rest position of
the root, which moves with the slides; yaw is outermost, then pitch, then roll. With such axes, a free joint of the
skeleton keeps its value of the start.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, cast

import numpy as np

from synovia.errors import InputError
from synovia.model.geometry import Array, rigid
from synovia.model.joint import Joint, Kind
from synovia.model.tree import ancestors

RootAxis = Literal["x", "y", "z", "roll", "pitch", "yaw"]
Root = Literal["fixed", "free"] | str | Sequence[RootAxis]  # a str may list axes, such as "xy" or "x,y,yaw"
_AXES = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "yaw": (0.0, 0.0, 1.0),
    "pitch": (0.0, 1.0, 0.0),
    "roll": (1.0, 0.0, 0.0),
}
_FREE_NUMBERS = 7  # number of joint values of a free joint; unique, because six axes are replaced by a free joint


def as_root(value: Any) -> str:
    """Return how the root moves: ``"fixed"``, ``"free"``, or its axes, in the order x,y,z,yaw,pitch,roll.

    Args:
        value: One of those words, axes in one string ("xy", "x,y,yaw"), or a list of axes.

    Raises:
        InputError: If the value is none of these.
    """
    if isinstance(value, str) and value in ("fixed", "free"):
        return value
    words: list[object] = []
    if isinstance(value, str):
        for word in value.replace(",", " ").split():
            words += word if set(word) <= set("xyz") else [word]
    elif isinstance(value, list | tuple):
        words += cast("Sequence[object]", value)
    if not words or len(set(map(str, words))) < len(words) or any(str(word) not in _AXES for word in words):
        raise InputError(
            "root",
            value=cast("object", value),
            expected=f"'fixed', 'free', or axes of {', '.join(_AXES)}, each once, such as 'xy' or 'x,y,yaw'",
        )
    return "free" if len(words) == len(_AXES) else ",".join(axis for axis in _AXES if axis in words)


def free_root(joints: Sequence[Joint], parents: Sequence[int]) -> int | None:
    """Return the row of the first moving joint if it is free and above all other moving joints; else None."""
    moving = [row for row, joint in enumerate(joints) if joint.kind is not Kind.FIXED]
    if not moving or joints[moving[0]].kind is not Kind.FREE:
        return None
    return moving[0] if all(moving[0] in ancestors(parents, row) for row in moving) else None


def root_joints(root: str, pivot: Array, taken: Collection[str | None]) -> list[Joint]:
    """Return the joints of a moving root: a free joint, or a slide or hinge for each axis.

    Args:
        root: A result of ``as_root`` other than ``"fixed"``.
        pivot: Intersection of the axes, (3,).
        taken: Names of other joints.
    """

    def unused(name: str) -> str:
        return unused(name + "_") if name in taken else name

    if root == "free":
        return [Joint(name=unused("root"), kind=Kind.FREE)]
    out: list[Joint] = []
    for axis in root.split(","):
        kind = Kind.SLIDE if axis in "xyz" else Kind.HINGE
        parent, rest = (out[-1].name, rigid()) if out else (None, rigid(pivot))
        out.append(Joint(unused(f"root_{axis}"), parent, kind, rest, np.array(_AXES[axis])))
    return out


def root_of(names: Sequence[str]) -> str | None:
    """Return the root, in the form of ``as_root``, whose joints have these names, in order; None if there is none.

    Args:
        names: Names of the joints added before those of a file, see ``root_joints``.
    """
    if len(names) == 1 and names[0].rstrip("_") == "root":
        return "free"
    axes = [name.rstrip("_").removeprefix("root_") for name in names]
    named = all(name.startswith("root_") for name in names)
    return as_root(axes) if names and named and set(axes) <= set(_AXES) and len(set(axes)) == len(axes) else None


def with_root_at_rest(q: Array, numbers: int) -> Array:
    """Prepend the rest values of an added root with ``numbers`` values to joint values (..., nq)."""
    rest = np.zeros((*q.shape[:-1], numbers))
    if numbers == _FREE_NUMBERS:
        rest[..., -1] = 1.0
    return np.concatenate([rest, q], axis=-1)
