"""Pose: bring a joint to a position and an orientation in the world."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar
from typing import Any

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, as_pose, goal_class
from synovia.goals.bounds import BOUNDS_FRAME, BoundedGoal, bounds_field


@goal_class
class PoseGoal(BoundedGoal):
    """A frame on a joint should coincide with a frame in the world (6 rows: position, then rotation vector).

    Args:
        position: World position (3,), length units of the file.
        rotation: World rotation, a ``Rotation`` or a matrix (3, 3).
        transform: Position and rotation at once, (4, 4). Without position and rotation, the joint keeps the pose of the
            start.
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in wxyz order.
        offset: Point (3,) or frame (4, 4) on the joint, in its frame.
        bounds: Tolerance by axis, six entries: three of the displacement from the target, as in ``PositionGoal`` but
            along the axes of ``bounds_frame``, then three of the rotation, as in ``RotationGoal``. None for no bounds.
        bounds_frame: ``"target"`` for the axes of the target, ``"tool"`` for those of the frame.

    Raises:
        InputError: If a value cannot be used, or only one of position and rotation is given.

    Example:
        >>> import synovia as sy
        >>> down = sy.Rotation.from_euler("x", 180, degrees=True)
        >>> sy.solve(sy.bundled("arm7"), sy.PoseGoal("tool", (0.4, 0.1, 0.5), down)).reached
        True
        >>> turning = sy.PoseGoal("tool", (0.4, 0.1, 0.5), down, bounds=(0, 0, 0, 0, 0, None))  # free about its z axis
        >>> sy.solve(sy.bundled("arm7"), turning).reached
        True
    """

    kind = "pose"
    summary = "A frame on a joint should have a position and an orientation: both, or neither to stay."
    fields = (
        describe.position(),
        describe.rotation(),
        describe.offset(),
        describe.offset_rotation(),
        bounds_field("Bounds of x, y and z, then of the rotations about them"),
        BOUNDS_FRAME,
        describe.ANCESTORS,
    )
    needs = "pose"
    pose_parts = POSITION | ROTATION

    position: InitVar[Any] = None
    rotation: InitVar[Any] = None
    _: KW_ONLY
    transform: InitVar[Any] = None
    quat_xyzw: InitVar[Any] = None
    quat_wxyz: InitVar[Any] = None
    offset: Any = None
    ancestors: int | None = None

    def __post_init__(self, position: Any, rotation: Any, transform: Any, quat_xyzw: Any, quat_wxyz: Any) -> None:
        """Check the values."""
        super().__post_init__()
        place, turn = as_pose(position, rotation, transform, quat_xyzw, quat_wxyz)
        if (place is None) != (turn is None):
            missing, other = ("rotation", "PositionGoal") if turn is None else ("position", "RotationGoal")
            raise InputError(missing, expected="position and rotation together", hint=f"use {other} for one")
        self._aim_at(place, turn)


@goal_class
class PositionGoal(BoundedGoal):
    """A point on a joint should be at a position. Residual: target - point, in the world (3 rows, length units).

    Args:
        position: World position (3,), length units of the file; None for the position in the start.
        offset: Point on the joint, (3,), in its frame.
        bounds: Tolerance by axis, three entries (x, y, z): a number for plus or minus, a pair (low, high), or None for
            a free axis; length units. They bound the displacement from the target to the point. The goal is met if what
            lies outside the bounds is within the tolerance. None for no bounds.
        bounds_frame: ``"target"`` for bounds along the axes of the world, ``"tool"`` for those of the joint.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> solution = sy.solve(sy.bundled("humanoid"), sy.PositionGoal("left_hand", (0.4, 1.3, 0.3)))
        >>> solution.reached
        True
        >>> slot = sy.PositionGoal("tool", (0.4, 0.0, 0.5), bounds=(0, None, (0, 0.1)))  # any y, and up to 0.1 above
        >>> sy.solve(sy.bundled("arm7"), slot).reached
        True
    """

    kind = "position"
    summary = "A point on a joint should be at a position."
    fields = (
        describe.position(),
        describe.offset(),
        bounds_field("Bounds of x, y and z"),
        BOUNDS_FRAME,
        describe.ANCESTORS,
    )
    needs = "position"
    pose_parts = POSITION

    position: InitVar[Any] = None
    _: KW_ONLY
    offset: Any = None
    ancestors: int | None = None

    def __post_init__(self, position: Any) -> None:
        """Check the values."""
        super().__post_init__()
        self._aim_at(position)


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
