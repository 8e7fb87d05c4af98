"""One and two hinges in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.kernels.layout import BRANCHES, GOAL_ROW, KIND, size_of_all
from synovia.model import Kind, Skeleton
from synovia.problem import Reduced
from synovia.problem.structure import above, kinds, named
from synovia.solver.base import ClosedForm, Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinges(ClosedForm):
    """One or two hinges (or slides) in closed form: the pose within the limits that is nearest to a target.

    It supports one goal: a position for one or two joints, or a rotation for one hinge. The solution is exact if the
    target can be met, and otherwise the global optimum; so a miss is ``UNREACHABLE``. ``IK.branches`` lists all poses
    that meet the goal. With a ``ClearanceGoal``, only poses that satisfy it are used, and a miss may have other causes.

    Args:
        joints: Number of moving joints, 1 or 2, nearest to the goal; the other joints stay. 0: all, at most two.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> wrist = sy.IK(arm, sy.PositionGoal("tool"), sy.Hinges(joints=2))
        >>> wrist.solve(arm.rest_pose().position("tool")).reached
        True

    References:
        Paden (1986), Kahan (1983), subproblems 1 and 2; the least squares of two skew axes by a polynomial of the
        eighth degree, as in Elias & Wen (2025), *IK-Geo: unified robot inverse kinematics using subproblem
        decomposition*.
    """

    name: ClassVar[str] = "hinges"
    supported_goals: ClassVar[frozenset[str]] = frozenset({"position", "rotation", "clearance"})

    joints: int = 0

    def check(self, goals: Sequence[Goal]) -> None:
        """Check that there is one goal, a position or a rotation."""
        ClosedForm.check(self, goals)
        own = [goal for goal in goals if goal.needs != "clearance"]
        if len(own) != 1 or own[0].constrained_parts not in (POSITION, ROTATION):
            expected = "one PositionGoal, or one RotationGoal for a single hinge"
            hint = "use the solver 'segments' or 'lm'"
            raise self.refused_goals(goals, "one goal: a position or a rotation", expected, hint)

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem in which only the chosen joints move."""
        goal, row = goals[0], int(reduced.goals.table[0, GOAL_ROW])
        rows = [r for r in above(reduced, row) if not self._idle(reduced, r, row, goal)]
        rows = rows[: self.joints] if self.joints else rows
        found = kinds(reduced, rows)
        most = 1 if goal.constrained_parts == ROTATION else 2
        same = found in ([Kind.HINGE], [Kind.SLIDE], [Kind.HINGE] * 2, [Kind.SLIDE] * 2)
        if not same or len(rows) > most or (goal.constrained_parts == ROTATION and found != [Kind.HINGE]):
            expected = "one hinge above it" if most == 1 else "one or two hinges above it, or one or two slides"
            hint = (
                "Hinges(joints=1) or Hinges(joints=2) moves only the nearest"
                if len(rows) > most
                else "use the solver 'lm'"
            )
            raise self.refusal(goal, named(skeleton, reduced, rows), expected, hint)
        return self.hold_others(reduced, skeleton, goal, rows)

    @staticmethod
    def _idle(reduced: Reduced, row: int, end: int, goal: Goal) -> bool:
        """Return whether a row cannot move the goal, because it rotates about the goal's point."""
        turns = Kind(int(reduced.rows[row, KIND])) is not Kind.SLIDE
        return goal.constrained_parts == POSITION and row == end and turns and not reduced.goals.offsets[0, 9:].any()

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel."""
        from synovia.kernels.closed_form.hinges import hinges

        return hinges

    def branch_kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of the problem, which also lists branches."""
        return self.kernel(reduced)

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the memory for candidates and for the roots of a polynomial."""
        return size_of_all(BRANCHES, {})
