"""``solve``: one question, one answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from synovia.goals import Goal
from synovia.ik.ik import IK
from synovia.ik.solution import Solution
from synovia.model import Pose, Skeleton
from synovia.solver import Solver


def solve(
    skeleton: Skeleton,
    goals: Goal | Iterable[Goal],
    solver: Solver | str | None = None,
    start: Pose | Any = None,
    *,
    tolerance: tuple[float, float] | None = None,
    root: str | Sequence[str] = "fixed",
    deadline: float | None = None,
) -> Solution:
    """Return the pose of a skeleton that meets goals; build an ``IK`` instead to ask more than once.

    Args:
        skeleton: The skeleton.
        goals: One goal or several.
        solver: Settings, a solver's name, or None for the default.
        start: Pose to start from, or joint values (nq,); None for the rest pose.
        tolerance: As in ``IK``.
        root: As in ``IK``.
        deadline: As in ``IK.solve``, from when the problem is packed and its kernel loaded.
    """
    return IK(skeleton, goals, solver, tolerance=tolerance, root=root).solve(start=start, deadline=deadline)


def rebuild(
    skeleton: Skeleton, goals: tuple[Goal, ...], solver: Solver, tolerance: tuple[float, float], root: str
) -> IK:
    """Return the same ``IK`` in another process."""
    return IK(skeleton, goals, solver, tolerance=tolerance, root=root)
