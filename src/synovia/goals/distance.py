"""Distance: bound the distance between a joint and another joint or a point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar
from typing import TYPE_CHECKING, Any

import numpy as np

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, Goal, Term, as_lengths, as_offset, goal_class
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, as_numbers

if TYPE_CHECKING:
    from synovia.model import Skeleton

_LENGTH = "Distance in the length unit of the model's file."


@goal_class
class DistanceGoal(Goal):
    """The distance between a joint and another joint, or a point in the world, should be within bounds.

    Residual, for a distance d: minimum - d if d is too small, maximum - d if d is too large, else 0 (1 row, length
    units). Equal bounds fix the distance.

    Args:
        other: The other joint.
        point: World point (3,) instead of another joint. Without both, the joint's position at the start.
        minimum: Least distance, length units; 0 for no bound.
        maximum: Largest distance, length units; infinity for no bound. At least one bound is required.
        offset: Point on the joint, (3,), in its frame.
        other_offset: Point on the other joint, (3,), in its frame.

    Raises:
        InputError: If a value cannot be used, there is no bound, or both another joint and a point are given.

    Example:
        >>> import synovia as sy
        >>> solution = sy.solve(sy.bundled("humanoid"), sy.DistanceGoal("left_hand", "right_hand", maximum=0.2))
        >>> solution.reached
        True
    """

    kind = "distance"
    needs = "rows"
    summary = "The distance between a joint and another, or a point, should be within bounds."
    fields = (
        describe.attribute(
            "other", "joint", describe.OTHER_JOINT, control=True, label="Other joint", absent="(the point)"
        ),
        describe.position("point"),
        describe.attribute("minimum", "length", _LENGTH, default=0.0, control=True),
        describe.Field(
            name="maximum",
            form="length",
            text=_LENGTH,
            take=lambda goal: goal.maximum if math.isfinite(goal.maximum) else None,
            control=True,
        ),
        describe.offset(),
        describe.offset("other_offset", describe.OTHER_POINT),
    )

    other: str | int | None = None
    _: KW_ONLY
    point: InitVar[Any] = None
    minimum: float = 0.0
    maximum: float = math.inf
    offset: Any = None
    other_offset: Any = None  # converted to a frame (4, 4)

    def __post_init__(self, point: Any) -> None:
        """Check the values."""
        super().__post_init__()
        other = self.other
        if other is not None and not isinstance(other, str | int | np.integer):
            raise InputError("other", value=other, expected="a joint", hint="use point= for a place in the world")
        if other == self.joint:
            raise InputError("other", value=other, expected="another joint")
        if other is not None and point is not None:
            raise InputError("point", expected="either another joint or a point")
        ends = ("minimum", "maximum")
        least, most = (float(as_numbers(getattr(self, name), (), name, finite=False)) for name in ends)
        if not 0.0 <= least <= most or math.isinf(least):
            raise InputError("bounds", value=(least, most), expected="0 <= minimum <= maximum")
        as_lengths(least, (), "minimum")
        if least == 0.0 and math.isinf(most):
            raise InputError("bounds", expected="minimum= above 0, a finite maximum=, or both")
        self._keep(minimum=least, maximum=most, other_offset=as_offset(self.other_offset, "other_offset"))
        self._aim_at(point)

    @property
    def joints(self) -> tuple[str | int, ...]:
        """The goal's joint, and the other joint if it is given."""
        return super().joints if self.other is None else (*super().joints, self.other)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual: one length."""
        frames = () if self.other is None else (self.other_offset,)
        return (
            Term(
                kind="distance", lengths=1, takes=POSITION if self.other is None else 0, frames=frames,
                numbers=(self.minimum, min(self.maximum, 1e300)),
            ),
        )  # fmt: skip

    def part_way(self, now: Array, others: Sequence[Array], target: Array, weight: Array) -> Array | None:
        """Return None, because bounds define no target that could be interpolated."""
        return None

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text with the difference between the distance and its bounds."""
        to = "" if self.other is None else f" to {self.other!r}"
        return f"is {say(length)} outside the allowed distance{to}"

    def sketch(self, view: View) -> Sketch:
        """Return the measured line, with the nearest point on it at an allowed distance."""
        p = view.at[:3, 3]
        o = (view.others[0] @ self.other_offset)[:3, 3] if view.others else view.target[:3, 3]
        lack = view.length if float(np.linalg.norm(p - o)) < self.minimum else -view.length
        return Sketch(target=None if view.reached else describe.ray(p, p - o, lack)[1], paths=[np.stack([o, p])])

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the arguments of a new goal: bounds from 0 to a tenth of the body's size."""
        return {"minimum": 0.0, "maximum": 0.1 * (skeleton.size or 1.0)}
