"""The solver of an edit: goals in strict priorities, with all joints but some held where the clip has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from synovia.goals import Goal
from synovia.model import Skeleton
from synovia.problem import Reduced, hold_all_but
from synovia.solver import FullBody


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSolver(FullBody):
    """A full body of which only some joints move.

    Args:
        only: Rows of the skeleton that may move; None for all.
    """

    others: ClassVar[frozenset[str]] = FullBody.others | {"only"}

    only: frozenset[int] | None = None

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem in which only these joints move."""
        if self.only is None:
            return reduced
        return hold_all_but(skeleton, reduced, [k for k, row in enumerate(reduced.joints.tolist()) if row in self.only])
