"""Position: bring a point on a joint to a world position."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar
from typing import Any

from synovia.goals import describe
from synovia.goals.base import POSITION, goal_class
from synovia.goals.bounds import BOUNDS_FRAME, BoundedGoal, bounds_field


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
