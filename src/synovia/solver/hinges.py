"""One and two hinges in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from synovia.errors import UnsupportedError
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.kernels.layout import GOAL_ROW, KIND
from synovia.model import Kind, Skeleton
from synovia.problem import Reduced, hold_all_but
from synovia.problem.structure import above, kinds, named, own_variables, refusal
from synovia.solver.base import Kernel, Solver


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinges(Solver):
    """One or two hinges (or slides) in closed form: the pose nearest to a target of all within the limits.

    For one goal: a position for one or two joints, or a rotation for one hinge. The answer is exact where the target
    can be met, and otherwise the best of all, not of a neighbourhood; a miss is therefore always ``UNREACHABLE``.
    ``IK.branches`` lists every way to meet it.

    Args:
        joints: How many of the moving joints nearest to the goal move, 1 or 2, the others staying as they are; 0 for
            all there are, at most two.
        max_steps: Not used: there is one step.
        attempts: Attempts; one, as another start would give the same.
        seed: Not used.

    References:
        Paden (1986), Kahan (1983), subproblems 1 and 2; the least squares of two skew axes by a polynomial of the
        eighth degree, as in Elias & Wen (2025), *IK-Geo: unified robot inverse kinematics using subproblem
        decomposition*.
    """

    name: ClassVar[str] = "hinges"
    closed: ClassVar[bool] = True
    supported_goals: ClassVar[frozenset[str]] = frozenset({"position", "rotation"})

    max_steps: int = 1
    attempts: int = 1
    joints: int = 0

    def check(self, goals: Sequence[Goal]) -> None:
        """Refuse all but one position or one rotation."""
        Solver.check(self, goals)
        if len(goals) != 1 or goals[0].place not in (POSITION, ROTATION):
            raise UnsupportedError(
                "hinges takes one goal: a position or a rotation",
                where=", ".join(f"goal on {goal.joint!r}" for goal in goals),
                value=list(goals),
                expected="one PositionGoal, or one RotationGoal for a single hinge",
                hint="use solver='segments' or 'lm'",
            )

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem of the joints that move."""
        del goal_joints
        goal, row = goals[0], int(reduced.goals.table[0, GOAL_ROW])
        rows = [r for r in above(reduced, row) if not self._idle(reduced, r, row, goal)]
        rows = rows[: self.joints] if self.joints else rows
        found = kinds(reduced, rows)
        most = 1 if goal.place == ROTATION else 2
        same = found in ([Kind.HINGE], [Kind.SLIDE], [Kind.HINGE] * 2, [Kind.SLIDE] * 2)
        if not same or len(rows) > most or (goal.place == ROTATION and found != [Kind.HINGE]):
            expected = "one hinge above it" if most == 1 else "one or two hinges above it, or one or two slides"
            hint = "joints=1 or joints=2 moves the nearest alone" if len(rows) > most else "use solver='lm'"
            raise refusal(self.name, goal, named(skeleton, reduced, rows), expected, hint)
        if not own_variables(reduced, rows):
            raise refusal(
                self.name, goal, named(skeleton, reduced, rows), "joints that follow no other", "use solver='lm'"
            )
        return hold_all_but(skeleton, reduced, rows)

    @staticmethod
    def _idle(reduced: Reduced, row: int, end: int, goal: Goal) -> bool:
        """Return whether a row cannot move the goal: a turn about the point that is to be placed."""
        turns = Kind(int(reduced.rows[row, KIND])) is not Kind.SLIDE
        return goal.place == POSITION and row == end and turns and not reduced.goals.offsets[0, 9:].any()

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel."""
        from synovia.kernels.closed_form.hinges import hinges

        return hinges

    def branch_kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel that lists the branches."""
        from synovia.kernels.closed_form.hinges import hinges_branches

        return hinges_branches

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return room for the candidates, and for the roots of a polynomial."""
        del residuals, columns
        from synovia.kernels.closed_form.hinges import SPARE

        return SPARE
