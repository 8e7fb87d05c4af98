"""Run several solvers on one problem, and record the error by iteration.

A solver only reports its result. But solvers are deterministic, so another solve that stops after k steps gives the
error at step k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synovia.errors import SynoviaError
from synovia.facade import IK
from synovia.goals import Goal
from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.solver import Solver

_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 130, 160, 200)
_FLOOR: Final = 1e-12  # smallest error, so that its logarithm is finite

Problem = Callable[[Sequence[Goal], Solver], IK]  # makes the problem of some goals with a solver


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Result of one solver on a problem.

    Args:
        name: Name of the solver.
        steps: Iterations, (k,).
        errors: Smallest error up to each of these iterations, (k,). An error is the norm of the errors of all goals:
            lengths relative to the length scale, and radians.
        pose: Last pose.
        status: Status as text.
        trouble: Reason why the solver does not support the problem; empty if it does.
        without: Unsupported features that were left out, such as priorities or a goal.
    """

    name: str
    steps: Array
    errors: Array
    pose: Pose | None
    status: str
    trouble: str = ""
    without: tuple[str, ...] = ()


def trace(problem: Problem, settings: Solver, goals: Sequence[Goal], start: Pose) -> Run:
    """Run one solver in one attempt from a start, without limits on the motion per frame, and return the result."""
    whole = settings.for_diagnosis()
    try:
        ik = problem(goals, whole)
        final = ik.solve(start=start)
    except SynoviaError as error:
        return Run(settings.name, np.zeros(0), np.zeros(0), None, "", error.what)
    steps: list[int] = []
    errors: list[float] = []
    for count in _STEPS:
        if count >= min(final.steps, whole.search.max_steps):
            break
        steps.append(count)
        errors.append(_total(ik.errors_after(count, starts=start)[0], ik.reach or 1.0))
    steps.append(max([final.steps, *(last + 1 for last in steps[-1:])]))
    errors.append(_total(np.array([[e.position, e.angle] for e in final.errors]), ik.reach or 1.0))
    name = final.status.name.lower().replace("_", " ")
    return Run(settings.name, np.array(steps, float), np.minimum.accumulate(errors), final.pose, name)


def race(problem: Problem, goals: Sequence[Goal], solvers: Sequence[Solver], start: Pose) -> Iterator[Run]:
    """Run several solvers on the same goals from the same start, and yield their results.

    The first use compiles a solver. Unsupported priorities are left out; unsupported goals, too, if any goal remains.
    """
    for settings in solvers:
        levels = settings.supports_priorities
        own = [goal if levels or not goal.priority else goal.at_priority(0) for goal in goals]
        kept = [goal for goal in own if _supports(settings, goal)]
        without = [goal.label for goal in own if all(goal is not one for one in kept)]
        if not levels and any(goal.priority for goal in goals):
            without.insert(0, "priorities")
        yield replace(trace(problem, settings, kept or own, start), without=tuple(without if kept else ()))


def _supports(settings: Solver, goal: Goal) -> bool:
    """Return whether a solver supports a goal."""
    try:
        settings.check([goal])
    except SynoviaError:
        return False
    return True


def _total(errors: Array, reach: float) -> float:
    """Return the norm of the errors of all goals, (goals, 2): lengths relative to the length scale, and radians."""
    return max(float(np.linalg.norm(errors / (reach, 1.0))), _FLOOR)
