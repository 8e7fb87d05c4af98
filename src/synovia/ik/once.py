"""``solve``: one question, one answer."""

from __future__ import annotations

from collections.abc import Iterable

from synovia.goals import Goal
from synovia.ik.ik import IK
from synovia.ik.solution import Solution
from synovia.ik.starts import Start
from synovia.model import Skeleton
from synovia.model.root import Root
from synovia.solver import Solver, SolverName


def solve(
    skeleton: Skeleton,
    goals: Goal | Iterable[Goal],
    solver: Solver | SolverName | None = None,
    start: Start | None = None,
    *,
    tolerance: tuple[float, float] | None = None,
    root: Root = "fixed",
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
