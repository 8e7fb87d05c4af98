"""Place: a joint takes a position and an orientation in the world."""

from __future__ import annotations

from typing import Any, ClassVar

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, Goal, pick_pose, pick_rotation


class PoseGoal(Goal):
    """A frame on a joint should coincide with a frame in the world (6 rows: position, then rotation vector).

    Args:
        joint: Name, body, role or row of the joint.
        position: World position (3,), length units of the file.
        rotation: World rotation, a ``Rotation`` or a matrix (3, 3).
        transform: Both at once, (4, 4). Without any the goal is to stay where the start is.
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in the other order.
        weight: Weight beside goals of the same priority.
        priority: 0 is the highest.
        offset: Point (3,) or frame (4, 4) on the joint, in its frame.
        name: What to call the goal.
        ancestors: How many joints above this one may move for it; None for all.

    Raises:
        InputError: If a value cannot be used, or only one of position and rotation is given.
    """

    __slots__ = ()
    kind: ClassVar[str] = "pose"
    summary: ClassVar[str] = "A frame on a joint should have a position and an orientation: both, or neither to stay."
    fields: ClassVar[tuple[describe.Field, ...]] = (
        describe.position(),
        describe.rotation(),
        describe.offset(),
        describe.offset_rotation(),
        describe.ANCESTORS,
    )
    needs: ClassVar[str] = "pose"
    what: ClassVar[int] = POSITION | ROTATION

    def __init__(
        self,
        joint: str | int,
        position: Any = None,
        rotation: Any = None,
        *,
        transform: Any = None,
        quat_xyzw: Any = None,
        quat_wxyz: Any = None,
        weight: float = 1.0,
        priority: int = 0,
        offset: Any = None,
        name: str | None = None,
        ancestors: int | None = None,
    ) -> None:
        """Check and keep the values."""
        turn = pick_rotation(joint, rotation, quat_xyzw, quat_wxyz)
        position, turn = pick_pose(joint, position, turn, transform)
        if (position is None) != (turn is None):
            given, other = ("position", "PositionGoal") if turn is None else ("rotation", "RotationGoal")
            where = f"goal on {joint!r}"
            raise InputError(f"only the {given} is given", where=where, expected="both", hint=f"use {other} for one")
        super().__init__(
            joint,
            position=position,
            rotation=turn,
            weight=weight,
            priority=priority,
            offset=offset,
            name=name,
            ancestors=ancestors,
        )
