"""All branches of a chain of six joints, by elimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar, Final

import numpy as np

from synovia.errors import UnsupportedError
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.kernels.branches.memory import COMPLETE, SIX_JOINTS
from synovia.kernels.layout import GOAL_ROW, RATIO, VARIABLE, size_of_all
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced, hold_all_but
from synovia.problem.structure import above, is_locked, kinds, named
from synovia.solver.base import ClosedForm, Kernel
from synovia.text import counted

_JOINTS: Final = 6
_SLIDES: Final = 1  # largest number of slides; with two, the equations are dependent
_LEAST: Final = 1e-20  # a determinant whose largest coefficient is smaller may be zero apart from rounding
DETERMINANT: Final = slice(  # coefficients of the last determinant in the memory of ``extra_scratch``
    size_of_all(takewhile(lambda table: table.name != "f", SIX_JOINTS), {}),
    size_of_all(takewhile(lambda table: table.name != "stack", SIX_JOINTS), {}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SixJoints(ClosedForm):
    """List all branches of a goal with a position and a rotation, for a chain of six hinges, or of five and a slide.

    Locked joints, and those that do not move, do not count. It only lists branches: ``IK.branches`` uses it where
    ``Segments`` knows no closed form.

    References:
        Raghavan & Roth (1993), *Inverse kinematics of the general 6R manipulator and related linkages*; Manocha & Canny
        (1994), *Efficient inverse kinematics for general 6R manipulators*.
    """

    name: ClassVar[str] = "branches"
    supported_goals: ClassVar[frozenset[str]] = frozenset({"pose", "clearance"})

    def check(self, goals: Sequence[Goal]) -> None:
        """Check that there is one goal with a position and a rotation."""
        ClosedForm.check(self, goals)
        own = [goal for goal in goals if goal.needs != "clearance"]
        if len(own) != 1 or own[0].constrained_parts != POSITION | ROTATION:
            raise self.refused_goals(goals, "one goal", "one PoseGoal", "use the solver 'lm'")

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem in which only the six joints move."""
        index = next(i for i, goal in enumerate(goals) if goal.needs != "clearance")
        rows = [
            row
            for row in above(reduced, int(reduced.goals.table[index, GOAL_ROW]))
            if not is_locked(reduced, int(reduced.rows[row, VARIABLE]))
        ]
        found = kinds(reduced, rows)
        used = reduced.rows[rows, VARIABLE].tolist()
        slides, expected, hint = (
            found.count(Kind.SLIDE),
            "",
            "lock the others: skeleton.with_limits({joint: (value, value)})",
        )
        if len(rows) != _JOINTS or found.count(Kind.HINGE) + slides != _JOINTS:
            expected = "six hinges, or five and a slide"
            if len(rows) == _JOINTS + 1:
                hint = "pass redundancy=, or lock one of seven: skeleton.with_limits({joint: (value, value)})"
            elif len(rows) < _JOINTS:
                hint = "use solve, which finds a pose"
        elif slides > _SLIDES:
            expected = f"at most one slide; {counted(slides, 'joint')} slide"
            hint = "use solve, which finds a pose"
        elif len(set(used)) != _JOINTS or not np.abs(reduced.couple[rows, RATIO]).all():
            expected, hint = "joints that move on their own, without mimic joints", "use solve, which finds a pose"
        if expected:
            where, value = f"goal on {goals[index].joint!r}", named(skeleton, reduced, rows)
            raise UnsupportedError(
                "the chain lists no branches", where=where, value=value, expected=expected, hint=hint
            )
        return hold_all_but(skeleton, reduced, rows)

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel, which only lists branches."""
        from synovia.kernels.branches.six import six_joints

        return six_joints

    def miss_kernel(self) -> Kernel:
        """Return the same kernel, because a list of branches has no misses."""
        from synovia.kernels.branches.six import six_joints

        return six_joints

    def branch_kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel."""
        return self.kernel(reduced)

    def proof_of_branches(self, reduced: Reduced) -> tuple[int | None, float]:
        """Return index and value of the flag by which the kernel reports that it found all branches."""
        return COMPLETE, 1.0

    def confirms_branches(self, memory: Array) -> bool:
        """Return whether the last determinant, which proves that the list is complete, is clearly not zero."""
        return bool(np.abs(memory[DETERMINANT]).max() > _LEAST)

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the scratch memory of ``kernels.branches``."""
        return size_of_all(SIX_JOINTS, {})
