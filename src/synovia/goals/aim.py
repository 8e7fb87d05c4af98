"""Aim: an axis of a joint points at a world point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.goals import describe
from synovia.goals.base import POSITION, Goal, Term, as_lengths, goal_class
from synovia.goals.describe import Place, Sketch, View
from synovia.model.geometry import Array, align_z, as_direction, between_directions, rigid, unit

if TYPE_CHECKING:
    from synovia.model import Skeleton

_Z: Final = (0.0, 0.0, 1.0)
_FAR: Final = 0.5  # sizes of the body: longest line in a picture


@goal_class
class AimGoal(Goal):
    """An axis of a joint should point at a point: a gaze, a lamp, a pointing finger.

    Residual: the rotation vector θ n of the smallest rotation that takes the axis u to the direction d of the point,
    n = u × d / |u × d|, θ = atan2(|u × d|, u·d) (3 rows, radians). The rotation about the axis is free. At the point
    itself, the direction is undefined and the residual is 0.

    Args:
        point: World point (3,), length units; None to keep the point that the start aims at.
        axis: Axis in the joint's frame, (3,); its length does not matter. None for the face of a head, which is known
            by its role and looks ahead at rest, and for the z axis of any other joint.
        offset: Point on the joint that the axis passes through, (3,), in its frame.
        ancestors: How many joints above its own may move for it; None for all.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> AimGoal("head", (0.0, 1.6, 3.0), ancestors=1)
        AimGoal('head', point=(0, 1.6, 3), ancestors=1)
    """

    kind = "aim"
    summary = "An axis of a joint should point at a point: the face of a head, else the z axis, if none is given."
    fields = (
        describe.position("point"),
        describe.attribute("axis", "direction", describe.AXIS, control=True),
        describe.offset(),
        describe.ANCESTORS,
    )
    needs = "aim"

    point: InitVar[Any] = None
    _: KW_ONLY
    axis: Any = None
    offset: Any = None
    ancestors: int | None = None

    def __post_init__(self, point: Any) -> None:
        """Check the values; the axis becomes the z axis of the goal's frame."""
        place = (0.0, 0.0, 0.0) if self.offset is None else as_lengths(self.offset, (3,), "offset")
        axis = None if self.axis is None else as_direction(self.axis, "axis")
        self._keep(offset=rigid(place, None if axis is None else align_z(axis)), axis=axis)
        super().__post_init__()
        self._aim_at(point)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with its axis, as the z axis of its frame."""
        if self.axis is not None:
            return self
        axis = axis_of(skeleton, skeleton.locate(self.joints[0])[0])
        return self._with(offset=rigid(self.offset[:3, 3], align_z(axis)), axis=axis)

    @property
    def terms(self) -> tuple[Term, ...]:
        """An angle, in three rows."""
        return (Term(kind="aim", angles=3, takes=POSITION),)

    def met_at(self, now: Array, others: Sequence[Array]) -> Array | None:
        """Return points straight ahead, at a distance of one length unit."""
        out = now.copy()
        out[:, :3, 3] += now[:, :3, 2]
        return out

    def part_way(self, now: Array, others: Sequence[Array], target: Array, weight: Array) -> Array | None:
        """Return points at the distance of the target, in directions between the axis and its own."""
        out, way = target.copy(), target[:, :3, 3] - now[:, :3, 3]
        far = np.linalg.norm(way, axis=1, keepdims=True)
        out[:, :3, 3] = now[:, :3, 3] + far * between_directions(now[:, :3, 2], unit(way), weight)
        return out

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return the angle between the axis and the direction of the point."""
        return f"points {describe.degrees(angle)} past its target"

    def sketch(self, view: View) -> Sketch:
        """Return a line to the point; if the point is far away, a part of it, so that the body stays large."""
        p, t = view.at[:3, 3], view.target[:3, 3]
        if float(np.linalg.norm(t - p)) <= _FAR * view.size:
            return Sketch(target=t, paths=[np.stack([p, t])], note="angle", on_joint=False)
        return Sketch(paths=[describe.ray(p, t - p, _FAR * view.size)], note="angle")

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the axis of the joint."""
        return {"axis": tuple(axis_of(skeleton, row).tolist())}

    @classmethod
    def first_target(cls, place: Place, values: dict[str, Any]) -> Array:
        """Return a point straight ahead."""
        target = place.at.copy()
        way = place.frames(place.row)[:3, :3] @ np.asarray(values["axis"], float)
        target[:3, 3] = describe.ray(target[:3, 3], way, describe.AHEAD * place.size)[1]
        return target


def axis_of(skeleton: Skeleton, row: int) -> Array:
    """Return the axis of a joint that aims, in its frame: the face of a head, else the z axis."""
    face = skeleton.face if skeleton.role_rows.get("head") == row else None
    return np.array(_Z) if face is None else face
