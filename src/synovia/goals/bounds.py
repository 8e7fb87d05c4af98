"""Bounds of position, rotation and pose goals: tolerances by axis."""

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

_FREE: Final = "free"  # stands for None in files
_OPEN: Final = 1e300  # stands for no bound in the kernels
_ENTRY: Final = "for each axis a number (plus or minus), a pair (low, high), or None for no bounds"
_TURN: Final = 2.0 * math.pi


def as_bounds(value: Any, count: int) -> Array:
    """Return the bounds of some axes, (count, 2), infinite for none.

    Raises:
        InputError: If the value cannot be used.
    """
    entries = list(value) if isinstance(value, list | tuple | np.ndarray) else None
    if entries is None or len(entries) != count:
        parts = "x, y, z, then the rotations about them" if count > 3 else "x, y, z"  # axes
        raise InputError("bounds", value=value, expected=f"{count} entries ({parts}): {_ENTRY}")
    out = np.empty((count, 2))
    for k, entry in enumerate(cast("list[Any]", entries)):
        pair = cast("Any", entry) if isinstance(entry, list | tuple | np.ndarray) and len(entry) == 2 else None
        most = _end(entry, math.inf)
        ends = (-most, most) if pair is None else (_end(pair[0], -math.inf), _end(pair[1], math.inf))
        if not ends[0] <= ends[1] or ends[0] == math.inf or ends[1] == -math.inf:
            raise InputError(f"bounds[{k}]", value=entry, expected=_ENTRY + ", with low <= high")
        out[k] = ends
    return out + 0.0  # no -0


def _end(value: Any, free: float) -> float:
    """Return one end of a pair of bounds; NaN if it cannot be used."""
    if value is None or (isinstance(value, str) and value == _FREE):
        return free
    return float(value) if is_number(value) else math.nan


def bounds_field(what: str) -> Field:
    """Return the field of the bounds."""
    return Field(
        name="bounds",
        form="bounds",
        text=f'{what}: a number (plus or minus), a pair [low, high], or "free" for no bounds.',
        take=lambda goal: None if goal.bounds is None else [_stored(entry) for entry in goal.bounds],
    )


def _entry(low: float, high: float) -> Any:
    """Return the bounds of an axis as an argument has them."""
    ends = tuple(None if math.isinf(end) else end for end in (low, high))
    return ends[1] if low == -high else ends


def _stored(entry: Any) -> Any:
    """Return the bounds of an axis as a goal file stores them."""
    if isinstance(entry, tuple):
        return [_stored(end) for end in cast("tuple[Any, ...]", entry)]
    return _FREE if entry is None else entry


BOUNDS_FRAME: Final = describe.attribute(
    "bounds_frame", "choice", "Axes of the bounds; those of the target if left out.", default="target",
    choices=("target", "tool"),
)  # fmt: skip


@goal_class
class BoundedGoal(Goal):
    """A goal for a position, a rotation or both, with optional bounds by axis.

    Args:
        bounds: Bounds by axis, first of the position, then of the rotation; None for none.
        bounds_frame: ``"target"`` or ``"tool"``: the axes of the bounds.
    """

    bounds: Any = field(default=None, kw_only=True)
    bounds_frame: str = field(default="target", kw_only=True)
    ranges: Array = field(default_factory=lambda: np.zeros((0, 2)), init=False)  # (axes, 2), infinite for no bounds

    def __post_init__(self) -> None:
        """Check the bounds; bounds of 0 on all axes are none."""
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
        """Parts of the pose with bounds other than 0."""
        if self.bounds is None:
            return 0
        own = self.pose_parts
        place = POSITION if own & POSITION and self.ranges[:3].any() else 0
        return place | (ROTATION if own & ROTATION and self.ranges[-3:].any() else 0)

    @property
    def constrained_parts(self) -> int:
        """The parts without bounds."""
        return self.pose_parts & ~self.bounded_parts

    @property
    def terms(self) -> tuple[Term, ...]:
        """The parts with bounds, three values each."""
        found: list[Term] = []
        for part in (POSITION, ROTATION):
            if not self.bounded_parts & part:
                continue
            bounds = np.clip(self.ranges[:3] if part == POSITION else self.ranges[-3:], -_OPEN, _OPEN)
            numbers = (*bounds.T.ravel().tolist(), float(self.bounds_frame == "tool"), float(_odd_axis(bounds)))
            rows = {"lengths": 3} if part == POSITION else {"angles": 3}
            found.append(Term(kind="within", takes=self.pose_parts, numbers=numbers, **rows))
        return tuple(found)

    @property
    def can_move(self) -> bool:
        """Whether the target is met exactly or not at all, so that moving it can help."""
        return not self.bounded_parts

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return the size of the miss, outside the bounds if there are any."""
        if not self.bounded_parts:
            return super().describe_miss(length, angle, say)
        parts = [say(length)] * (length > 0.0) + [describe.degrees(angle)] * (angle > 0.0)
        return f"is {' and '.join(parts)} outside its bounds"

    def sketch(self, view: View) -> Sketch:
        """Return the marks, with a box for bounds of the position."""
        drawn = super().sketch(view)
        if not self.bounded_parts & POSITION:
            return drawn
        axes = (view.at if self.bounds_frame == "tool" else view.target)[:3, :3]
        far = describe.AHEAD * view.size
        low, high = np.clip(self.ranges[:3].T, -far, far)
        corners = [np.where([i & 1, i & 2, i & 4], high, low) @ axes.T + view.target[:3, 3] for i in range(8)]
        edges = [np.stack([corners[i], corners[i ^ bit]]) for i in range(8) for bit in (1, 2, 4) if not i & bit]
        return replace(drawn, paths=edges)


def _angles(low: float, high: float) -> tuple[float, float]:
    """Return bounds of an angle; infinite if they allow every angle.

    Raises:
        InputError: If they are outside of those that rotations have.
    """
    low, high = (-math.pi if math.isinf(low) else low), (math.pi if math.isinf(high) else high)
    if not (-_TURN <= low <= math.pi and -math.pi <= high <= _TURN):
        raise InputError("bounds", value=(low, high), expected="angles in radians, from -pi to pi")
    return (low, high) if high - low < _TURN else (-math.inf, math.inf)


def _odd_axis(bounds: Array) -> int:
    """Return the axis whose bounds differ most in size from those of the others; z if they are alike."""
    sizes = np.minimum(bounds[:, 1] - bounds[:, 0], _TURN)
    order = np.argsort(sizes, kind="stable")
    least, middle, most = sizes[order]
    if least == most:
        return 2
    return int(order[2] if most - middle >= middle - least else order[0])
