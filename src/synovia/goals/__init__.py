"""The goal language: what should happen to which joint, or to the whole body."""

from synovia.goals.aim import AimGoal
from synovia.goals.base import Goal
from synovia.goals.center import CenterOfMassGoal
from synovia.goals.contact import ContactGoal
from synovia.goals.custom import CustomGoal
from synovia.goals.distance import DistanceGoal
from synovia.goals.plane import PlaneGoal
from synovia.goals.pole import PoleGoal
from synovia.goals.pose import PoseGoal
from synovia.goals.position import PositionGoal
from synovia.goals.range import RangeGoal
from synovia.goals.relative import RelativeGoal
from synovia.goals.rest import RestGoal
from synovia.goals.rotation import RotationGoal

__all__ = [
    "AimGoal",
    "CenterOfMassGoal",
    "ContactGoal",
    "CustomGoal",
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
