"""A compiled problem, the targets that it takes, and its solutions."""

from synovia.ik.solution import GoalError, Solution
from synovia.ik.solutions import Solutions, Tracked
from synovia.ik.status import Status

__all__ = ["GoalError", "Solution", "Solutions", "Status", "Tracked"]
