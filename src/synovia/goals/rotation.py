"""Rotation: bring a joint to an orientation in the world."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar
from typing import Any

from synovia.goals import describe
from synovia.goals.base import ROTATION, as_pose, goal_class
from synovia.goals.bounds import BOUNDS_FRAME, BoundedGoal, bounds_field


@goal_class
class RotationGoal(BoundedGoal):
    """A joint should have an orientation. Residual: the rotation vector to the target (3 rows, radians).

    Args:
        rotation: World rotation, a ``Rotation`` or a matrix (3, 3); None for the rotation in the start.
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in wxyz order.
        offset: Frame (4, 4) on the joint that should take the orientation.
        bounds: Tolerance by axis, three entries (x, y, z): an angle for plus or minus, a pair (low, high), or None for
            a free axis; radians. They bound the rotation from the target to the frame, which is split into two: a twist
            about one axis, from -pi to pi, and the smallest rotation that then tilts this axis. The twist is about the
            axis whose bounds differ most in size from the others (z if they are alike). Its entry bounds the twist; the
            others bound the components of the rotation vector of the tilt. So ``(0.1, 0.1, None)`` tilts z by at most
            0.1 in x and in y, and leaves the rotation about z free. The goal is met if what lies outside the bounds is
            within the tolerance. None for no bounds.
        bounds_frame: ``"target"`` for tilts about the axes of the target, ``"tool"`` about those of the frame.

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
    fields = (
        describe.rotation(),
        describe.offset_rotation(),
        bounds_field("Bounds of the rotations about x, y and z"),
        BOUNDS_FRAME,
        describe.ANCESTORS,
    )
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
