"""What every goal has in common: a joint, a weight, a priority and a place in the goal table."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from synovia.errors import InputError
from synovia.geometry import Array, as_matrix, as_numbers, as_transform, as_unit_quat, dimensions, quat_to_matrix, rigid

POSITION, ROTATION = 1, 2  # the bits of the kernels


class Goal:
    """What should happen to one joint. Immutable.

    Args:
        joint: Name, body, role or row of the joint.
        weight: How much its squared error counts beside those of other goals of the same priority; above 0.
        priority: 0 is the highest; a lower priority never worsens a higher one.
        offset: Point (3,) or frame (4, 4) on the joint (its frame, length units) that should meet the target.
        name: What to call the goal; its joint's name without.

    Raises:
        InputError: If a value cannot be used; the message names the goal's joint.
    """

    __slots__ = ("joint", "name", "offset", "priority", "target", "weight")
    what: ClassVar[int] = 0  # the rows that it adds: POSITION, ROTATION or both

    joint: str | int
    weight: float
    priority: int
    offset: Array
    name: str | None
    target: Array | None

    def __init__(
        self,
        joint: str | int,
        *,
        position: Any = None,
        rotation: Any = None,
        weight: float = 1.0,
        priority: int = 0,
        offset: Any = None,
        name: str | None = None,
    ) -> None:
        """Check and keep the values; position and rotation None: stay where the start is."""
        try:
            if isinstance(weight, bool) or not (math.isfinite(weight) and weight > 0.0):
                raise InputError("weight is not positive", value=weight, expected="a finite number above 0")
            if isinstance(priority, bool) or not isinstance(priority, int) or priority < 0:
                raise InputError("priority is no level", value=priority, expected="0 (highest), 1, 2, ...")
            place = None if position is None else as_numbers(position, (3,), "position")
            turn = None if rotation is None else as_matrix(rotation)
            frame = _as_offset(offset)
            if name is not None and not isinstance(name, str):
                raise InputError("name is no text", value=name, expected="a string, or None for the joint's name")
        except (TypeError, OverflowError) as error:
            raise InputError("weight is not a number", where=f"goal on {joint!r}", value=weight) from error
        except InputError as error:
            raise InputError(
                error.what, where=f"goal on {joint!r}", value=error.value, expected=error.expected, hint=error.hint
            ) from error
        target = None
        if place is not None or turn is not None:
            target = rigid((0.0, 0.0, 0.0) if place is None else place, turn)
            target.setflags(write=False)
        frame.setflags(write=False)
        for slot, value in (
            ("joint", joint),
            ("weight", float(weight)),
            ("priority", priority),
            ("offset", frame),
            ("name", name),
            ("target", target),
        ):
            object.__setattr__(self, slot, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse changes: an ``IK`` holds the goals packed, so a changed goal would be ignored."""
        raise AttributeError(f"goals are immutable; make a new one, or pass targets={{...}} to solve (tried {name!r})")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the values, which cannot be set one by one."""
        return _restore, (type(self), {slot: getattr(self, slot) for slot in Goal.__slots__})

    @property
    def label(self) -> str:
        """What the goal is called in messages and target tables."""
        return self.name if self.name is not None else str(self.joint)

    @property
    def rows(self) -> int:
        """Number of residual rows."""
        return 3 * ((self.what & POSITION > 0) + (self.what & ROTATION > 0))

    def __repr__(self) -> str:
        """Return the goal as it is written."""
        return f"{type(self).__name__}({self.joint!r}, weight={self.weight:g}, priority={self.priority})"


def _restore(kind: type[Goal], values: dict[str, Any]) -> Goal:
    """Return the goal that was pickled or copied."""
    goal = object.__new__(kind)
    for slot, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(goal, slot, value)
    return goal


def _as_offset(value: Any) -> Array:
    """Return the 4x4 transform from a goal's frame to its joint's: from nothing, a point (3,) or a transform."""
    if value is None:
        return rigid()
    if dimensions(value) == 2:
        return as_transform(value, "offset")
    return rigid(as_numbers(value, (3,), "offset"))


def pick_rotation(joint: str | int, rotation: Any, quat_xyzw: Any, quat_wxyz: Any) -> Any:
    """Return whichever rotation is given, quaternions as matrices, None without any.

    Raises:
        InputError: If several are given, or a quaternion is not of length 1.
    """
    where = f"goal on {joint!r}"
    if sum(value is not None for value in (rotation, quat_xyzw, quat_wxyz)) > 1:
        raise InputError("rotation is given twice", where=where, expected="rotation, quat_xyzw or quat_wxyz")
    if quat_wxyz is not None:
        w, x, y, z = as_numbers(quat_wxyz, (4,), f"quat_wxyz of {where}")
        return quat_to_matrix(as_unit_quat((x, y, z, w), f"quat_wxyz of {where}"))
    if quat_xyzw is not None:
        return quat_to_matrix(as_unit_quat(quat_xyzw, f"quat_xyzw of {where}"))
    return rotation
