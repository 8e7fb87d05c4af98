"""Direction: point an axis of a joint along a world direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar
from typing import TYPE_CHECKING, Any

from synovia.goals import describe
from synovia.goals.base import POSITION, Goal, Term, goal_class
from synovia.goals.bounds import CONE, cone_term, cone_values
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, align_z, as_direction, between_directions, rigid, unit

if TYPE_CHECKING:
    from synovia.model import Skeleton


@goal_class
class DirectionGoal(Goal):
    """An axis of a joint should point along a world direction: a palm down, a torso upright, a torch straight ahead.

    Residual: the rotation vector θ n of the smallest rotation that takes the axis u to the direction d, n = u × d
    / |u × d|, θ = atan2(|u × d|, u·d) (3 rows, radians). The rotation about the axis is free, and the position of the
    joint does not matter.

    Args:
        axis: Axis in the joint's frame, (3,); its length does not matter.
        direction: World direction (3,); its length does not matter. None to keep the direction of the start.
        cone: Half-angle in radians by which the axis may deviate; None for 0.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> DirectionGoal("left_hand", (0, 0, 1), direction=(0, -1, 0))
        DirectionGoal('left_hand', direction=(0, -1, 0))
    """

    kind = "direction"
    summary = "An axis of a joint (its z axis if none is given) should point along a world direction."
    fields = (
        describe.axis_of_offset(),
        describe.Field(
            name="direction",
            form="direction",
            text=describe.DIRECTION,
            take=describe.position_of,
            control=True,
        ),
        CONE,
    )
    needs = "aim"
    vector = "direction"

    axis: InitVar[Any] = (0.0, 0.0, 1.0)
    direction: InitVar[Any] = None
    _: KW_ONLY
    cone: float | None = None

    def __post_init__(self, axis: Any, direction: Any) -> None:
        """Check the values; the axis becomes the z axis of the goal's frame."""
        self._keep(offset=rigid((0.0, 0.0, 0.0), align_z(as_direction(axis, "axis"))))
        way = None if direction is None else as_direction(direction, "direction")
        super().__post_init__()
        self._aim_at(way)
        self._keep(**cone_values(self.cone))

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual: an angle in three rows; with a cone, in one row."""
        if self.cone:
            return (cone_term(self.cone, aims=False),)
        return (Term(kind="direction", angles=3, takes=POSITION),)

    def met_at(self, now: Array, others: Sequence[Array]) -> Array | None:
        """Return the current directions of the axis as the targets that the poses meet."""
        out = now.copy()
        out[:, :3, 3] = now[:, :3, 2]
        return out

    def part_way(self, now: Array, others: Sequence[Array], target: Array, weight: Array) -> Array | None:
        """Interpolate directions between the axis and the target."""
        out = target.copy()
        out[:, :3, 3] = between_directions(now[:, :3, 2], unit(target[:, :3, 3]), weight)
        return out

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text with the angle between the axis and its target direction."""
        return f"points {describe.degrees(angle)} {'outside its cone' if self.cone else 'away from its direction'}"

    def sketch(self, view: View) -> Sketch:
        """Return a line along the direction and, for a miss, a line along the axis."""
        p, length = view.at[:3, 3], describe.AHEAD * view.size
        lines = [describe.ray(p, view.target[:3, 3], length), describe.ray(p, view.at[:3, 2], 0.5 * length)]
        return Sketch(paths=lines[: 1 if view.reached else 2], note="angle")

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the arguments of a new goal: the z axis, and its direction at rest."""
        return {"axis": (0.0, 0.0, 1.0), "direction": tuple(skeleton.rest_pose().matrix(row)[:, 2].tolist())}
