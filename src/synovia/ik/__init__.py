"""A compiled problem, its targets and its solutions."""

from synovia.ik.branches import Branches
from synovia.ik.redundancy import Redundancy, Span
from synovia.ik.solution import Conflict, GoalError, Reason, Relief, Solution, Solutions
from synovia.ik.status import Status

__all__ = [
    "Branches", "Conflict", "GoalError", "Reason", "Redundancy", "Relief", "Solution", "Solutions", "Span", "Status",
]  # fmt: skip
