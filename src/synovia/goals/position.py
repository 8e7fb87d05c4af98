"""Position: bring a point on a joint to a world position."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar
from typing import Any

from synovia.goals import describe
from synovia.goals.base import POSITION, Goal, goal_class


@goal_class
class PositionGoal(Goal):
    """A point on a joint should be at a position. Residual: target - point, in the world (3 rows, length units).

    Args:
        position: World position (3,), length units of the file; None for the position in the start.
        offset: Point on the joint, (3,), in its frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> solution = sy.solve(sy.bundled("humanoid"), sy.PositionGoal("left_hand", (0.4, 1.3, 0.3)))
        >>> solution.reached
        True
    """

    kind = "position"
    summary = "A point on a joint should be at a position."
    fields = (describe.position(), describe.offset(), describe.ANCESTORS)
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
