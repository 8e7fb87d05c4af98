"""The goal language: what should happen to which joint."""

from synovia.goals.base import Goal
from synovia.goals.pose import PoseGoal
from synovia.goals.position import PositionGoal
from synovia.goals.rotation import RotationGoal

__all__ = ["Goal", "PoseGoal", "PositionGoal", "RotationGoal"]
