"""How the error falls from iteration to iteration, and how several solvers compare on the same targets.

A solver reports where it ended and not the way there. But it is deterministic, so a second solve that is stopped after
k steps gives the error at step k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from synovia.errors import SynoviaError
from synovia.goals import Goal
from synovia.ik import IK
from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.solver import Solver, as_solver
from synovia.viewer.session import Session
from synovia.viewer.wish import address

_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 130, 160, 200)
_FLOOR: Final = 1e-12  # of the reach; a logarithm needs something


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One solver on the targets of a page.

    Args:
        name: The solver.
        steps: Iterations, (k,).
        errors: Error after them, (k,): lengths per reach and radians together, root of the sum of squares.
        pose: Where it ended.
        status: How it ended.
        trouble: Why it cannot take part, empty where it can.
    """

    name: str
    steps: Array
    errors: Array
    pose: Pose | None
    status: str
    trouble: str = ""


def problem_of(session: Session) -> tuple[list[Goal], Pose]:
    """Return the enabled goals, on the skeleton that was given, and the pose to start from."""
    with session.lock:
        called = partial(address, session.given)
        goals: list[Goal] = [wish.goal(called, wanted=True) for wish in session.wishes if wish.enabled]
        return goals, session.start()


def trace(session: Session, settings: Solver, goals: Sequence[Goal], start: Pose) -> Run:
    """Return how one solver fares, in one attempt from a start."""
    whole, rooted = settings.replace(attempts=1), session.rooted
    try:
        ik = IK(rooted.held, goals, whole, tolerance=session.tolerance, root=rooted.mode)
        final = ik.solve(start=start)
    except SynoviaError as error:
        return Run(settings.name, np.zeros(0), np.zeros(0), None, "", error.what)
    steps: list[int] = []
    errors: list[float] = []
    for count in _STEPS:
        if count >= min(final.steps, whole.max_steps):
            break
        steps.append(count)
        errors.append(min([*errors[-1:], _total(ik.errors_after(count, starts=start)[0], ik.reach or 1.0)]))
    steps.append(max([final.steps, *[last + 1 for last in steps[-1:]]]))
    errors.append(min([*errors[-1:], _total(np.array([[e.position, e.angle] for e in final.errors]), ik.reach or 1.0)]))
    name = final.status.name.lower().replace("_", " ")
    return Run(settings.name, np.array(steps, float), np.array(errors), final.pose, name)


def race(session: Session, names: Sequence[str]) -> Iterator[Run]:
    """Yield how several solvers fare on the same targets, all from the rest pose; a first use compiles a solver.

    Args:
        session: The session.
        names: The solvers; settings of the page's own solver are kept.
    """
    goals, _ = problem_of(session)
    start = session.skeleton.rest_pose()
    for name in names:
        settings = session.solver if session.solver.name == name else as_solver(name)
        yield trace(session, settings, goals, start)


def _total(errors: Array, reach: float) -> float:
    """Return one error for those of the goals, (goals, 2): lengths and radians."""
    return max(float(np.linalg.norm(errors / (reach, 1.0))), _FLOOR)
