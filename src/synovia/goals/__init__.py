"""Goals for joints or for the whole body.

``kinds`` lists all kinds, the most common first. A class is imported when it is first used.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synovia.goals.aim import AimGoal
    from synovia.goals.base import Goal
    from synovia.goals.center import CenterOfMassGoal
    from synovia.goals.clearance import ClearanceGoal
    from synovia.goals.contact import ContactGoal
    from synovia.goals.custom import CustomGoal
    from synovia.goals.direction import DirectionGoal
    from synovia.goals.distance import DistanceGoal
    from synovia.goals.plane import PlaneGoal
    from synovia.goals.pole import PoleGoal
    from synovia.goals.pose import PoseGoal, PositionGoal, RotationGoal
    from synovia.goals.range import RangeGoal
    from synovia.goals.relative import RelativeGoal
    from synovia.goals.rest import RestGoal

_HOMES = {
    "PositionGoal": "pose",
    "RotationGoal": "pose",
    "PoseGoal": "pose",
    "AimGoal": "aim",
    "DirectionGoal": "direction",
    "PoleGoal": "pole",
    "DistanceGoal": "distance",
    "PlaneGoal": "plane",
    "RangeGoal": "range",
    "CenterOfMassGoal": "center",
    "RelativeGoal": "relative",
    "ContactGoal": "contact",
    "ClearanceGoal": "clearance",
    "RestGoal": "rest",
    "CustomGoal": "custom",
    "Goal": "base",
}
__all__ = [
    "AimGoal",
    "CenterOfMassGoal",
    "ClearanceGoal",
    "ContactGoal",
    "CustomGoal",
    "DirectionGoal",
    "DistanceGoal",
    "Goal",
    "PlaneGoal",
    "PoleGoal",
    "PoseGoal",
    "PositionGoal",
    "RangeGoal",
    "RelativeGoal",
    "RestGoal",
    "RotationGoal",
]


def __getattr__(name: str) -> Any:
    """Import a kind of goal when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'synovia.goals' has no attribute {name!r}")
    value = getattr(import_module(f"synovia.goals.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


@cache
def kinds() -> dict[str, type[Goal]]:
    """Return the kinds of goals by name, the most common first."""
    goals: list[type[Goal]] = [__getattr__(name) for name in _HOMES if name != "Goal"]
    return {goal.kind: goal for goal in goals}
