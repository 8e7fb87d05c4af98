"""How close counts as reached."""

from __future__ import annotations

from synovia.errors import InputError
from synovia.goals import PositionGoal
from synovia.model import Skeleton
from synovia.model.geometry import as_numbers
from synovia.problem import reduce

_TOLERANCE = (1e-4, 1e-3)  # of the reach, and radians


def checked_tolerance(tolerance: tuple[float, float] | None, reach: float) -> tuple[float, float]:
    """Return the tolerance as two positive numbers."""
    if tolerance is None:
        return _TOLERANCE[0] * reach, _TOLERANCE[1]
    pair = as_numbers(tolerance, (2,), "tolerance")
    if not (pair > 0.0).all():
        raise InputError("tolerance is not positive", value=tolerance, expected="(length, angle), both above 0")
    return float(pair[0]), float(pair[1])


def reach_of_tips(skeleton: Skeleton) -> float:
    """Return the reach of the whole skeleton: that of a goal on every tip at once, length units."""
    rows = [[skeleton.index(name)] for name in skeleton.tips]
    return reduce(skeleton, [PositionGoal(row[0]) for row in rows], rows).reach
