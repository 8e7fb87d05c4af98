"""Solving: a skeleton, goals and a solver make an ``IK``; asking it makes a ``Solution``."""

from synovia.ik.ik import IK
from synovia.ik.once import solve
from synovia.ik.reasons import Reason, Relief
from synovia.ik.solution import GoalError, Solution
from synovia.ik.solutions import Solutions, Tracked
from synovia.ik.status import Status

__all__ = ["IK", "GoalError", "Reason", "Relief", "Solution", "Solutions", "Status", "Tracked", "solve"]
