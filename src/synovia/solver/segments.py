"""Chains cut into segments with closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar, Final

import numpy as np

from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.kernels.layout import (
    BLOCK,
    BRANCHES,
    DAMPING,
    ERROR_DAMPING,
    GOAL_ROW,
    PROGRESS,
    TURN,
    VARIABLE,
    size_of_all,
)
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced
from synovia.problem.structure import ALIKE, above, axes, kinds, limb_rows, meet, named, parallel
from synovia.solver.base import ClosedForm, Kernel, Search

# index in the scratch memory of the flag for singular poses
_SINGULAR: Final = size_of_all(takewhile(lambda table: table.name != "singular", BRANCHES), {})
_EXPECTED: Final = (
    "a ball, a hinge (or ball) and a ball, as in arms and legs; or six hinges of which the last three meet in a "
    "point, or the second to fourth are parallel and the last two meet; or seven hinges of which the first three meet "
    "in a point, and the fifth and sixth meet"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments(ClosedForm):
    """Structural reduction: a chain is cut into segments with closed forms, each with a local target.

    The joints above the goal determine the structure:

    - a limb of any body: ball, hinge and ball (or three balls). Shoulder and elbow place the wrist, and the wrist sets
      the rotation. The elbow swivels about the line from shoulder to wrist, as near to the pole (``PoleGoal``) or to
      the start pose as the limits of shoulder and wrist allow;
    - robot arms of six hinges with a spherical wrist (the last three axes meet in a point): Pieper's quartic;
    - robot arms of six hinges with three parallel axes, the second to fourth, whose last two axes meet, such as those
      of Universal Robots;
    - robot arms of seven hinges whose first three axes meet in a point, and the fifth and sixth in another, such as
      those of Franka and KUKA's iiwa. The last joint is rotated away from the start, in ever finer steps, until the
      other six have a branch within the limits. If none is found, Levenberg-Marquardt solves the problem, with
      restarts.

    ``IK`` rejects other joints. The solution is the branch within the limits that is nearest to the start;
    ``IK.branches`` lists all branches. If none meets the target, descent improves the best candidate to the
    least-squares solution. With a ``ClearanceGoal``, only branches that satisfy it are used; without such a branch, the
    steps of ``FullBody`` continue.

    Args:
        seed: Seed of the random starts that arms of seven hinges, and misses at a saddle point, may need.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> arm = sy.IK(body, sy.PoseGoal("left_hand"), sy.Segments())
        >>> arm.solve(body.random_pose(0).transform("left_hand")).reached
        True

    References:
        Pieper (1968), *The kinematics of manipulators under computer control*; Tolani, Goswami & Badler (2000); He &
        Liu (2021), *Analytical inverse kinematics for Franka Emika Panda*; Elias & Wen (2025), *IK-Geo: unified robot
        inverse kinematics using subproblem decomposition*.
    """

    name: ClassVar[str] = "segments"
    supported_goals: ClassVar[frozenset[str]] = frozenset({"position", "pose", "limb", "clearance"})

    seed: int = 0

    @property
    def search(self) -> Search:
        """One step and one attempt; the seed is for the descent of arms with seven hinges."""
        return Search(seed=self.seed)

    @property
    def polishes(self) -> bool:
        """Return True: a miss is polished to the least-squares solution."""
        return True

    def check(self, goals: Sequence[Goal]) -> None:
        """Check that there is one goal with a position."""
        ClosedForm.check(self, goals)
        if sum(bool(goal.constrained_parts & POSITION) for goal in goals) != 1:
            hint = "use the solver 'two-bone' for several limbs, or 'lm'"
            raise self.refused_goals(
                goals, "one goal with a position", "one PoseGoal or, for a limb, PositionGoal", hint
            )

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem in which only the joints of the structure move."""
        goal, row, end = next(
            (goal, int(reduced.goals.table[i, GOAL_ROW]), goal_joints[i][0])
            for i, goal in enumerate(goals)
            if goal.constrained_parts & POSITION
        )
        rows = above(reduced, row)
        if limb := limb_rows(reduced, goal, row, end):
            self.check_poles(reduced, skeleton, goals, {limb[-2]: limb[-1]})
            return self.hold_others(reduced, skeleton, goal, limb)
        why = self._why_no_arm(reduced, goal, rows)
        held = reduced if why else self.hold_others(reduced, skeleton, goal, rows)
        if why or not structure_of(held):
            why = why or "no three of its axes meet or are parallel where they must"
            raise self.refusal(goal, f"{why}: {named(skeleton, reduced, rows)}", _EXPECTED)
        for pole in goals:
            if pole is not goal:
                hint = "leave it out, or use the solver 'lm'"
                raise self.refusal(pole, "a pole on an arm of hinges", "the pole of a limb", hint)
        return held

    @staticmethod
    def _why_no_arm(reduced: Reduced, goal: Goal, rows: Sequence[int]) -> str | None:
        """Return the reason why these joints are not a supported arm of hinges; None if they are one."""
        form = kinds(reduced, rows)
        if form not in ([Kind.HINGE] * 6, [Kind.HINGE] * 7):
            return f"{len(form)} moving joints that are neither a limb nor six or seven hinges"
        if not goal.constrained_parts & ROTATION:
            return f"{len(form)} hinges with only a position leave {len(form) - 3} rotations free"
        together = range(rows[-1], rows[-1] + len(rows))
        return None if rows[::-1] == [*together] else "joints of the arm are separated by others that do not move"

    def params(self) -> dict[int, float]:
        """Return the parameters of the descent of arms with seven hinges, by their indices."""
        return {PROGRESS: self.progress[1], DAMPING: 1e-9, ERROR_DAMPING: 0.02}

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of the limb or of the arm."""
        structure = structure_of(reduced)
        if structure == "limb":
            from synovia.kernels.closed_form.segments_limb import segments_limb

            return segments_limb
        if structure == "seven":
            from synovia.kernels.closed_form.segments_seven import segments_seven

            return segments_seven
        if structure == "spherical":
            from synovia.kernels.closed_form.segments_spherical import segments_spherical

            return segments_spherical
        from synovia.kernels.closed_form.segments_parallel import segments_parallel

        return segments_parallel

    def branch_kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of the problem, which also lists branches."""
        return self.kernel(reduced)

    def proof_of_branches(self, reduced: Reduced) -> tuple[int | None, float]:
        """Return the flag for singular poses: if it is 0, the closed forms of six hinges have found all branches."""
        return _SINGULAR if structure_of(reduced) in ("spherical", "parallel") else None, 0.0

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the memory for branches and for the roots of a polynomial."""
        return size_of_all(BRANCHES, {})


def _is_limb(reduced: Reduced) -> bool:
    """Return whether a ball moves: limbs have balls, arms have only hinges."""
    return bool((reduced.variables[:, BLOCK] == TURN).any())


def structure_of(reduced: Reduced) -> str | None:
    """Return the name of the closed form: limb, seven, spherical or parallel; None for other joints."""
    if _is_limb(reduced):
        return "limb"
    rows = np.flatnonzero(reduced.rows[:, VARIABLE] >= 0).tolist()
    z, o = axes(reduced, rows)
    if len(rows) == 7:
        return "seven" if reduced.serial and _has_shoulder_and_wrist(z, o, reduced.reach) else None
    wrist = meet(z[3], o[3], z[4], o[4], reduced.reach)
    if wrist is not None and not parallel(z[4], z[5]) and not (parallel(z[0], z[1]) and parallel(z[1], z[2])):
        aside = float(np.linalg.norm(np.cross(z[5], wrist - o[5])))
        if aside <= ALIKE * reduced.reach:
            return "spherical"
    three = parallel(z[1], z[2]) and parallel(z[2], z[3])
    if three and not parallel(z[0], z[1]) and not parallel(z[3], z[4]):
        return "parallel" if meet(z[4], o[4], z[5], o[5], reduced.reach) is not None else None
    return None


def _has_shoulder_and_wrist(z: Array, o: Array, reach: float) -> bool:
    """Return whether axes 1 to 3 of seven meet in a point, and axes 5 and 6 in another, neither on axis 4."""
    shoulder, wrist = meet(z[0], o[0], z[1], o[1], reach), meet(z[4], o[4], z[5], o[5], reach)
    if shoulder is None or wrist is None or parallel(z[1], z[2]):
        return False

    def aside(i: int, point: Array) -> float:
        return float(np.linalg.norm(np.cross(z[i], point - o[i])))

    return aside(2, shoulder) <= ALIKE * reach and min(aside(3, shoulder), aside(3, wrist)) > ALIKE * reach
