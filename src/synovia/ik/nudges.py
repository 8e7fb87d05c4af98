"""Leave a stationary point of the error: solve again from a start that is nudged towards a random pose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from synovia.ik.compiled import CompiledProblem
from synovia.ik.solution import Solution
from synovia.ik.status import Status
from synovia.model.change import blend
from synovia.model.geometry import Array

_POSES: Final = 4  # number of random poses; each gives one nudge of the start
_SHARE: Final = 0.06  # fraction of the distance from the start to a random pose
_BETTER: Final = 0.8  # a nudged solution is used if its squared error is below this fraction of the given one


class Nudges:
    """Improves misses of a live problem whose solver stops at stationary points.

    A straight limb that must shorten is at such a point; a nudge makes it bend. The nudged solution is used only if it
    is clearly better, so that a fully stretched body does not jitter. Each call tries one nudge, because trying all
    nudges would make a miss five times as slow as a hit.

    Args:
        problem: The problem.

    Attributes:
        left: Number of nudges still to try; 0 if no nudge can help.
    """

    def __init__(self, problem: CompiledProblem) -> None:
        """Draw the random poses."""
        self._skeleton = problem.skeleton
        # Solvers by levels need no nudges to leave stationary points; restarts leave these points more reliably.
        self._helps = not problem.method.supports_priorities and problem.solver.search.attempts == 1
        self._poses = [self._skeleton.random_pose(seed).q for seed in range(_POSES)]
        self._next = self.left = 0

    def begin(self) -> None:
        """Allow all nudges again, after the problem or the pose has changed."""
        self.left = _POSES

    def end(self) -> None:
        """Stop nudging until ``begin``."""
        self.left = 0

    def improved(self, found: Solution, solve: Callable[[Array], Solution]) -> Solution:
        """Return the solution of one nudge if it is clearly better, else the given solution.

        Args:
            found: The solution to improve.
            solve: Solves from joint values (nq,), in one attempt.
        """
        if not self._helps or found.status in (Status.REACHED, Status.UNREACHABLE):
            self.end()
            return found
        self.left = max(self.left - 1, 0)
        self._next = (self._next + 1) % _POSES
        other = solve(blend(self._skeleton, found.pose.q, self._poses[self._next], _SHARE))
        if _total(other) >= _BETTER * _total(found):
            return found
        self.begin()
        return other


def _total(solution: Solution) -> float:
    """Return the sum of squared errors of a solution; angles in radians, lengths as fractions of the body's size."""
    size = solution.pose.skeleton.size or 1.0
    return sum((error.position / size) ** 2 + error.angle**2 for error in solution.errors)
