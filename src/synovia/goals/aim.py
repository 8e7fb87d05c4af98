"""Look: an axis of a joint points at a place in the world."""

from __future__ import annotations

from typing import Any, ClassVar

from synovia.goals.base import AIM, POSITION, ROTATION, Ask, Goal, as_lengths, placed
from synovia.model.geometry import align_z, as_direction, rigid


class AimGoal(Goal):
    """An axis of a joint should point at a point: a gaze, a lamp, a pointing finger.

    Residual: the rotation vector θ n of the smallest turn that takes the axis u onto the way d to the point, n = u × d
    / |u × d|, θ = atan2(|u × d|, u·d) (3 rows, radians). The turn about the axis itself is free. At the point itself
    there is no direction, and the goal asks nothing.

    Args:
        joint: Name, body, role or row of the joint.
        point: World point (3,), length units; None to go on looking where the start looks.
        axis: Axis in the joint's frame, (3,); its length does not matter.
        offset: Point on the joint that the axis passes through, (3,), in its frame.
        weight: Weight beside goals of the same priority.
        priority: 0 is the highest.
        name: What to call the goal.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> AimGoal("head", (0.0, 1.6, 3.0), axis=(0, 0, 1))
        AimGoal('head', point=(0, 1.6, 3))
    """

    __slots__ = ()
    kind: ClassVar[str] = "aim"

    def __init__(
        self,
        joint: str | int,
        point: Any = None,
        *,
        axis: Any = (0.0, 0.0, 1.0),
        offset: Any = None,
        weight: float = 1.0,
        priority: int = 0,
        name: str | None = None,
    ) -> None:
        """Check and keep the values; the axis becomes the z axis of the goal's frame."""
        with placed(joint):
            place = (0.0, 0.0, 0.0) if offset is None else as_lengths(offset, (3,), "offset")
            frame = rigid(place, align_z(as_direction(axis, "axis")))
        super().__init__(joint, position=point, weight=weight, priority=priority, offset=frame, name=name)

    @property
    def asks(self) -> tuple[Ask, ...]:
        """An angle, in three rows."""
        return (Ask(kind=AIM, angles=3, takes=POSITION),)

    @property
    def takes(self) -> int:
        """The point."""
        return POSITION

    @property
    def measures(self) -> int:
        """An angle."""
        return ROTATION
