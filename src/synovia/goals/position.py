"""Reach: a point on a joint goes to a place in the world."""

from __future__ import annotations

from typing import Any, ClassVar

from synovia.goals import describe
from synovia.goals.base import POSITION, Goal


class PositionGoal(Goal):
    """A point on a joint should be at a position. Residual: target - point, in the world (3 rows, length units).

    Args:
        joint: Name, body, role or row of the joint.
        position: World position (3,), length units of the file; None to stay where the start is.
        weight: Weight beside goals of the same priority.
        priority: 0 is the highest.
        offset: Point on the joint, (3,), in its frame.
        name: What to call the goal.
        ancestors: How many joints above this one may move for it; None for all.

    Raises:
        InputError: If a value cannot be used.
    """

    __slots__ = ()
    kind: ClassVar[str] = "position"
    summary: ClassVar[str] = "A point on a joint should be at a position."
    fields: ClassVar[tuple[describe.Field, ...]] = (describe.position(), describe.offset(), describe.ANCESTORS)
    needs: ClassVar[str] = "position"
    what: ClassVar[int] = POSITION

    def __init__(
        self,
        joint: str | int,
        position: Any = None,
        *,
        weight: float = 1.0,
        priority: int = 0,
        offset: Any = None,
        name: str | None = None,
        ancestors: int | None = None,
    ) -> None:
        """Check and keep the values."""
        super().__init__(
            joint, position=position, weight=weight, priority=priority, offset=offset, name=name, ancestors=ancestors
        )
