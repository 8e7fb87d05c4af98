"""Turn: a joint takes an orientation in the world."""

from __future__ import annotations

from typing import Any, ClassVar

from synovia.goals import describe
from synovia.goals.base import ROTATION, Goal, pick_rotation


class RotationGoal(Goal):
    """A joint should have an orientation. Residual: the rotation vector from it to the target (3 rows, radians).

    Args:
        joint: Name, body, role or row of the joint.
        rotation: World rotation, a ``Rotation`` or a matrix (3, 3); None to stay where the start is.
        quat_xyzw: The same as a unit quaternion.
        quat_wxyz: The same in the other order.
        weight: Weight beside goals of the same priority.
        priority: 0 is the highest.
        offset: Frame (4, 4) on the joint that should take the orientation.
        name: What to call the goal.
        ancestors: How many joints above this one may move for it; None for all.

    Raises:
        InputError: If a value cannot be used.
    """

    __slots__ = ()
    kind: ClassVar[str] = "rotation"
    summary: ClassVar[str] = "A joint should have an orientation."
    fields: ClassVar[tuple[describe.Field, ...]] = (describe.rotation(), describe.offset_rotation(), describe.ANCESTORS)
    needs: ClassVar[str] = "rotation"
    what: ClassVar[int] = ROTATION

    def __init__(
        self,
        joint: str | int,
        rotation: Any = None,
        *,
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
        super().__init__(
            joint, rotation=turn, weight=weight, priority=priority, offset=offset, name=name, ancestors=ancestors
        )
