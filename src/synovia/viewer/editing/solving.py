"""The input of the solver of a page: its settings and the enabled goals."""

from __future__ import annotations

from collections.abc import Sequence

from synovia.facade import IK
from synovia.goals import Goal
from synovia.model import Pose
from synovia.solver import Solver, as_solver
from synovia.viewer.editing.history import History
from synovia.viewer.editing.limits import SpeedLimits
from synovia.viewer.editing.state import State


class Solving:
    """The solver of a page, and the problem that it solves.

    Args:
        state: The state of the page.
        history: The history of the page.
    """

    def __init__(self, state: State, history: History) -> None:
        """Store state and history."""
        self._state, self._history = state, history

    @property
    def solver(self) -> Solver:
        """The settings of the solver."""
        return self._state.solver

    @property
    def version(self) -> int:
        """Number that changes whenever the problem changes, but not when only targets change."""
        return self._state.version

    def set_solver(self, solver: Solver | str) -> None:
        """Change the solver's settings; a solver's name stands for its default settings with one attempt."""
        with self._state.lock:
            named, settings = isinstance(solver, str), as_solver(solver)
            self._history.remember(None if named else "solver")
            self._state.solver = settings.without_restarts() if named else settings
            self._state.touch(structure=True)

    @property
    def limits(self) -> SpeedLimits:
        """Speed limits within which the body follows the solution."""
        return self._state.limits

    def set_limits(self, limits: SpeedLimits) -> None:
        """Change the speed limits."""
        with self._state.lock:
            self._history.remember("limits")
            self._state.limits = limits
            self._state.touch(structure=True)

    def goals(self) -> list[Goal]:
        """Return the enabled goals on the given skeleton."""
        state = self._state
        with state.lock:
            return [one.goal(state.given.address, eased=False) for one in state.editors if one.enabled]

    @property
    def on_clip(self) -> bool:
        """Whether a clip is chosen, so that layers and not goals are solved."""
        return self._state.play.motion is not None

    def rest(self) -> Pose:
        """Return the rest pose of the solved skeleton."""
        return self._state.skeleton.rest_pose()

    def problem(self, goals: Sequence[Goal], solver: Solver) -> IK:
        """Return the problem of the given goals, with the root mode and the tolerance of the page.

        Raises:
            SynoviaError: If the solver does not support the problem.
        """
        rooted = self._state.rooted
        return IK(rooted.held, goals, solver, tolerance=self._state.tolerance, root=rooted.mode)
