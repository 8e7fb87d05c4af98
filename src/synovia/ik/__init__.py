"""A compiled problem, its targets and its solutions."""

from synovia.ik.solution import Conflict, GoalError, Reason, Relief, Solution, Solutions
from synovia.ik.status import Status

__all__ = ["Conflict", "GoalError", "Reason", "Relief", "Solution", "Solutions", "Status"]
