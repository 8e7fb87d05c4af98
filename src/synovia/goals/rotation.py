"""Rotation: bring a joint to an orientation in the world."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar
from typing import Any

from synovia.goals import describe
from synovia.goals.base import ROTATION, Goal, as_pose, goal_class


@goal_class
class RotationGoal(Goal):
    """A joint should have an orientation. Residual: the rotation vector to the target (3 rows, radians).

    Args:
        rotation: World rotation, a ``Rotation`` or a matrix (3, 3); None for the rotation in the start.
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in wxyz order.
        offset: Frame (4, 4) on the joint that should take the orientation.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> down = sy.Rotation.from_euler("x", 180, degrees=True)
        >>> sy.solve(sy.bundled("arm7"), sy.RotationGoal("tool", down)).reached
        True
    """

    kind = "rotation"
    summary = "A joint should have an orientation."
    fields = (describe.rotation(), describe.offset_rotation(), describe.ANCESTORS)
    needs = "rotation"
    pose_parts = ROTATION

    rotation: InitVar[Any] = None
    _: KW_ONLY
    quat_xyzw: InitVar[Any] = None
    quat_wxyz: InitVar[Any] = None
    offset: Any = None
    ancestors: int | None = None

    def __post_init__(self, rotation: Any, quat_xyzw: Any, quat_wxyz: Any) -> None:
        """Check the values."""
        super().__post_init__()
        _, turn = as_pose(None, rotation, None, quat_xyzw, quat_wxyz)
        self._aim_at(None, turn)
