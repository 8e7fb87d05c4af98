"""Plane: a joint stays on one side of a plane, such as above the floor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from synovia.goals.base import PLANE, POSITION, ROTATION, Ask, Goal, placed
from synovia.model.geometry import align_z, as_direction

if TYPE_CHECKING:
    from synovia.model import Skeleton


class PlaneGoal(Goal):
    """A point on a joint should be on the side of a plane that its normal points to.

    Residual: max(0, n·(c - p)), how deep the point p is behind the plane through c (1 row, length units); 0 in front.

    Args:
        joint: Name, body, role or row of the joint.
        point: World point (3,) on the plane, length units.
        normal: World direction (3,) to the allowed side; None for the way that is up.
        offset: Point on the joint, (3,), in its frame.
        weight: Weight beside goals of the same priority.
        priority: 0 is the highest.
        name: What to call the goal.

    Raises:
        InputError: If a value cannot be used.
    """

    __slots__ = ()
    kind: ClassVar[str] = "plane"

    def __init__(
        self,
        joint: str | int,
        point: Any = (0.0, 0.0, 0.0),
        normal: Any = None,
        *,
        offset: Any = None,
        weight: float = 1.0,
        priority: int = 0,
        name: str | None = None,
    ) -> None:
        """Check and keep the values; the normal becomes the z axis of the target."""
        with placed(joint):
            turn = None if normal is None else align_z(as_direction(normal, "normal"))
        super().__init__(
            joint, position=point, rotation=turn, weight=weight, priority=priority, offset=offset, name=name
        )

    @property
    def asks(self) -> tuple[Ask, ...]:
        """A length."""
        return (Ask(kind=PLANE, lengths=1, takes=self.takes),)

    @property
    def takes(self) -> int:
        """A point, or a transform whose z axis is the normal."""
        return POSITION | ROTATION

    @property
    def measures(self) -> int:
        """A length."""
        return POSITION

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with its normal."""
        if self.target is None or self.given & ROTATION:
            return self
        target = self.target.copy()
        target[:3, :3] = align_z(skeleton.up_vector("normal="))
        return self._with(target=target, given=self.given | ROTATION)
