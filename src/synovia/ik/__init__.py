"""A compiled problem, its targets and its solutions."""

from synovia.ik.branches import Branches
from synovia.ik.conflicts import Conflict, Relaxation
from synovia.ik.redundancy import Redundancy, Span
from synovia.ik.solution import GoalError, Reason, Relief, Solution, Solutions
from synovia.ik.status import Status

__all__ = [
    "Branches", "Conflict", "GoalError", "Reason", "Redundancy", "Relaxation", "Relief", "Solution",
    "Solutions", "Span", "Status",
]  # fmt: skip
