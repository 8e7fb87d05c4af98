"""Tolerances of goals: bounds by axis of positions, rotations and poses, and cones about directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, Goal, Term, as_lengths, goal_class
from synovia.goals.describe import Field, Sketch, View
from synovia.model.geometry import Array, is_number

_FREE: Final = "free"  # the word for None in files
_OPEN: Final = 1e300  # the value for no bound in kernels
_ENTRY: Final = "for each axis a number (plus or minus), a pair (low, high), or None ('free' in files) for no bounds"
_TURN: Final = 2.0 * math.pi


def as_bounds(value: Any, count: int) -> Array:
    """Return the argument ``bounds`` as an array (count, 2), a row for each axis; infinite values mean no bounds.

    Raises:
        InputError: If the value cannot be used.
    """
    entries = _listed(value)
    if len(entries) != count:
        # for a pose, axes of the position, then of the rotation
        parts = "x, y, z, then the rotations about them" if count > 3 else "x, y, z"
        raise InputError("bounds", value=value, expected=f"{count} entries ({parts}): {_ENTRY}")
    out = np.empty((count, 2))
    for k, entry in enumerate(entries):
        pair, most = _listed(entry), _end(entry, math.inf)
        low, high = (_end(pair[0], -math.inf), _end(pair[1], math.inf)) if len(pair) == 2 else (-most, most)
        if not low <= high or low == math.inf or high == -math.inf:
            raise InputError(f"bounds[{k}]", value=entry, expected=_ENTRY + ", with low <= high")
        out[k] = low, high
    return out + 0.0  # turns -0 into 0


def _listed(value: Any) -> list[Any]:
    """Return the items of a list, tuple or array; an empty list for other values."""
    listed = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
    return list(cast("list[Any]", value)) if listed else []


def _end(value: Any, free: float) -> float:
    """Return one end of a pair of bounds as a float, ``free`` if it is open, NaN if it cannot be used."""
    if value is None or (isinstance(value, str) and value == _FREE):
        return free
    return float(value) if is_number(value) else math.nan


def bounds_field(what: str) -> Field:
    """Return the field ``bounds`` of a goal."""
    return Field(
        name="bounds",
        form="bounds",
        text=f'{what}: a number (plus or minus), a pair [low, high], or "free" for no bounds.',
        take=lambda goal: None if goal.bounds is None else [_stored(entry) for entry in goal.bounds],
    )


def _entry(low: float, high: float) -> Any:
    """Return the bounds of an axis in the form of the argument ``bounds``."""
    ends = tuple(None if math.isinf(end) else end for end in (low, high))
    return ends[1] if low == -high else ends


def _stored(entry: Any) -> Any:
    """Return the bounds of an axis in the form of a goal file."""
    if isinstance(entry, tuple):
        return [_stored(end) for end in cast("tuple[Any, ...]", entry)]
    return _FREE if entry is None else entry


BOUNDS_FRAME: Final = describe.attribute(
    "bounds_frame", "choice", "Axes of the bounds; those of the target if left out.", default="target",
    choices=("target", "tool"),
)  # fmt: skip
CONE: Final = describe.attribute("cone", "length", "Half-angle in radians by which the axis may deviate.")


@goal_class
class BoundedGoal(Goal):
    """A goal for a position, a rotation or both, with optional bounds by axis.

    Args:
        bounds: Bounds by axis, first of the position, then of the rotation; None for none.
        bounds_frame: Axes of the bounds: ``"target"`` or ``"tool"``.
    """

    bounds: Any = field(default=None, kw_only=True)
    bounds_frame: str = field(default="target", kw_only=True)
    ranges: Array = field(default_factory=lambda: np.zeros((0, 2)), init=False)  # (axes, 2); infinite for no bounds

    def __post_init__(self) -> None:
        """Check the bounds. Bounds of 0 on all axes mean no bounds."""
        super().__post_init__()
        if self.bounds_frame not in ("target", "tool"):
            raise InputError("bounds_frame", value=self.bounds_frame, expected="'target' or 'tool'")
        if self.bounds is None:
            return
        bounds = as_bounds(self.bounds, 3 * self.pose_parts.bit_count())
        if self.pose_parts & POSITION:
            finite = bounds[:3][np.isfinite(bounds[:3])]
            as_lengths(finite, finite.shape, "bounds")
        if self.pose_parts & ROTATION:
            bounds[-3:] = [_angles(*ends) for ends in bounds[-3:].tolist()]
        if np.isinf(bounds).all():
            raise InputError(
                "bounds", value=self.bounds, expected="at least one axis with bounds", hint="leave the goal out"
            )
        entries = tuple(_entry(*ends) for ends in bounds.tolist())
        self._keep(bounds=entries, ranges=bounds, **({"needs": "rows"} if bounds.any() else {}))

    @property
    def bounded_parts(self) -> int:
        """Parts of the pose with bounds other than 0: POSITION, ROTATION, both or none."""
        if self.bounds is None:
            return 0
        own = self.pose_parts
        place = POSITION if own & POSITION and self.ranges[:3].any() else 0
        return place | (ROTATION if own & ROTATION and self.ranges[-3:].any() else 0)

    @property
    def constrained_parts(self) -> int:
        """Parts of the pose without bounds, which must meet the target: POSITION, ROTATION, both or none."""
        return self.pose_parts & ~self.bounded_parts

    @property
    def terms(self) -> tuple[Term, ...]:
        """Residuals of the bounds: three values each for a position and a rotation with bounds."""
        found: list[Term] = []
        for part in (POSITION, ROTATION):
            if not self.bounded_parts & part:
                continue
            bounds = np.clip(self.ranges[:3] if part == POSITION else self.ranges[-3:], -_OPEN, _OPEN)
            numbers = (*bounds.T.ravel().tolist(), float(self.bounds_frame == "tool"), float(_odd_axis(bounds)))
            lengths, angles = (3, 0) if part == POSITION else (0, 3)
            found.append(Term(kind="within", lengths=lengths, angles=angles, takes=self.pose_parts, numbers=numbers))
        return tuple(found)

    @property
    def can_move(self) -> bool:
        """Whether the target has no bounds, so that moving the target can help."""
        return not self.bounded_parts

    def distances(self, target: Array, point: Array) -> tuple[float, float]:
        """Return the smallest and largest distance of a point from the positions within the bounds of a target."""
        if not self.bounded_parts & POSITION:
            return super().distances(target, point)
        low, high = self.ranges[:3].T
        # the axes of the bounds may have any orientation, so the positions form a shell about the target
        if self.bounds_frame == "tool":
            away = super().distances(target, point)[0]
            inner, outer = (float(np.linalg.norm(part)) for part in (np.clip(0.0, low, high), np.maximum(-low, high)))
            return max(away - outer, inner - away, 0.0), away + outer
        x = target[:3, :3].T @ (point - target[:3, 3])
        return float(np.linalg.norm(x - np.clip(x, low, high))), float(np.linalg.norm(np.maximum(x - low, high - x)))

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text about the size of the miss; with bounds, of the part outside the bounds."""
        if not self.bounded_parts:
            return super().describe_miss(length, angle, say)
        parts = [say(length)] * (length > 0.0) + [describe.degrees(angle)] * (angle > 0.0)
        return f"is {' and '.join(parts)} outside its bounds"

    def sketch(self, view: View) -> Sketch:
        """Return the marks of the goal, with a box for bounds of the position."""
        drawn = super().sketch(view)
        if not self.bounded_parts & POSITION:
            return drawn
        axes = (view.at if self.bounds_frame == "tool" else view.target)[:3, :3]
        ends = np.clip(self.ranges[:3], -describe.AHEAD * view.size, describe.AHEAD * view.size)
        corners = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1) @ axes.T + view.target[:3, 3]
        pairs = [np.moveaxis(corners, k, 0).reshape(2, 4, 3) for k in range(3)]
        return replace(drawn, paths=[pair[:, i] for pair in pairs for i in range(4)])


def _angles(low: float, high: float) -> tuple[float, float]:
    """Return bounds of an angle; they are infinite if every angle is allowed.

    Raises:
        InputError: If the bounds exceed the angles that rotations can have.
    """
    low, high = (-math.pi if math.isinf(low) else low), (math.pi if math.isinf(high) else high)
    if not (-_TURN <= low <= math.pi and -math.pi <= high <= _TURN):
        raise InputError("bounds", value=(low, high), expected="angles in radians, from -pi to pi")
    return (low, high) if high - low < _TURN else (-math.inf, math.inf)


def _odd_axis(bounds: Array) -> int:
    """Return the axis whose bounds differ most in size from those of the other axes; z if all are alike."""
    sizes = np.minimum(bounds[:, 1] - bounds[:, 0], _TURN)
    order = np.argsort(sizes, kind="stable")
    least, middle, most = sizes[order]
    if least == most:
        return 2
    return int(order[2] if most - middle >= middle - least else order[0])


def cone_values(cone: Any) -> dict[str, Any]:
    """Return the attributes of a goal with a cone; an empty dict for None.

    Raises:
        InputError: If the value cannot be used.
    """
    if cone is None:
        return {}
    if not is_number(cone) or not 0.0 <= cone < math.pi:
        raise InputError("cone", value=cone, expected="an angle in radians, from 0 to less than pi")
    return {"cone": float(cone), **({"needs": "rows"} if cone else {})}


def cone_term(cone: float, *, aims: bool) -> Term:
    """Return the residual of a cone about a direction; with ``aims``, about the direction of a point."""
    return Term(kind="cone", angles=1, takes=POSITION, numbers=(cone, float(aims)))
