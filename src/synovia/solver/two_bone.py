"""Arms and legs of two bones in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.kernels.layout import BLEND, BLEND_VALUES, GOAL_ROW, PACE, SOFTEN, TWIST, size_of_all
from synovia.model import Skeleton
from synovia.problem import Reduced, hold_all_but
from synovia.problem.structure import above, limb_rows, named, own_variables
from synovia.solver.base import ClosedForm, Kernel

_LIMB = "a ball and below it a hinge or ball, that is shoulder and elbow, or hip and knee"


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoBone(ClosedForm):
    """Arms and legs in closed form: the two nearest joints above each goal move, and all other joints stay.

    The goal determines the limb: its joint is the tip (for a ``PoseGoal`` it also controls the rotation), the moving
    joint above is the elbow or knee (a hinge or a ball), and the next one the shoulder or hip (a ball). Fixed joints
    between them are part of the bones. One ``IK`` may have several limbs, each with one ``PositionGoal`` or
    ``PoseGoal``.

    The bending plane is that of the start pose, moved by the smallest rotation. A ``PoleGoal`` on the elbow or knee
    sets its direction. In ``IK.track`` the plane then rotates by at most ``pace`` per length scale that the goals move,
    so a pole that crosses the line from root to tip swings the limb round instead of snapping it. Until the plane
    reaches the pole, frames miss the pole goal and report the error.

    Args:
        softening: Last fraction s of the limb's reach L in which the limb straightens slowly, so that the knee does not
            snap. For a target at a distance x > (1 - s) L from the root, the tip goes to the distance L (1 - s exp(-(x
            - (1 - s) L) / (s L))). The distance to the given target is then reported as a miss. 0.02 suits motion; with
            0, the limb is straight exactly at distance L.
        twist: Rotation of the plane about the line from root to tip, radians: away from the pole, or without a pole
            away from the plane of the start pose (in a track, that of the first frame).
        weight: Fraction of the motion from the start pose (in a track, that of the first frame) to the solution, 0 to
            1.
        pace: Largest rotation of the plane towards a pole in a track, radians per length scale that the goals move. For
            a limb of 0.4 m, 35 is 5 degrees a millimetre.

    References:
        Tolani, Goswami & Badler (2000), *Real-time inverse kinematics techniques for anthropomorphic limbs*; the third
        of Paden and Kahan's subproblems.

    Example:
        >>> import synovia as sy
        >>> leg = sy.IK(sy.bundled("humanoid"), sy.PositionGoal("left_foot"), sy.TwoBone(softening=0.02))
        >>> leg.solve((0.1, 0.3, 0.2)).reached
        True
    """

    name: ClassVar[str] = "two-bone"
    supported_goals: ClassVar[frozenset[str]] = frozenset({"position", "pose", "limb"})

    softening: float = 0.0
    twist: float = 0.0
    weight: float = 1.0
    pace: float = 35.0

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem in which only the limbs move."""
        moving: list[int] = []
        limbs: dict[int, int] = {}
        for goal, row, joints in zip(goals, reduced.goals.table[:, GOAL_ROW].tolist(), goal_joints, strict=True):
            if not goal.constrained_parts & POSITION:
                continue
            limb = limb_rows(reduced, goal, row, joints[0])
            if not limb or not own_variables(reduced, limb):
                expected = _LIMB + (", and the tip a ball" if goal.constrained_parts & ROTATION else "")
                found = named(skeleton, reduced, above(reduced, row)[:3])
                raise self.refusal(goal, found, expected, "use the solver 'segments' or 'lm'")
            carries = any(set(above(reduced, r)) & set(limb) for r in moving)
            if carries or set(above(reduced, limb[0])) & set(moving):
                found = f"a limb of {named(skeleton, reduced, limb)} that shares joints with another"
                raise self.refusal(goal, found, "limbs that share no joints", "use the solver 'lm' for those")
            moving += limb
            limbs[limb[-2]] = limb[-1]
        if not moving:
            raise self.refusal(goals[0], "only poles", "a PositionGoal or PoseGoal for the tip", "add one")
        self.check_poles(reduced, skeleton, goals, limbs)
        return hold_all_but(skeleton, reduced, moving)

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel."""
        from synovia.kernels.closed_form.two_bone import two_bone

        return two_bone

    @property
    def pole_pace(self) -> str:
        """Largest rotation of a limb's plane that ``pace`` allows, in words."""
        return f"pace={self.pace:g} radians per length scale that the goals move"

    def reasons(self, missed: Sequence[Goal]) -> Sequence[str]:
        """Return sentences about the settings that keep a tip from its position, or a plane from its pole."""
        reasons: list[str] = []
        if self.softening and any(goal.constrained_parts & POSITION for goal in missed):
            reasons.append(f"softening={self.softening:g} stops the tip short in the last part of the reach.")
        if self.weight < 1.0:
            reasons.append(f"weight={self.weight:g} moves only this share of the path from the start.")
        if self.twist and any(goal.turns_limb for goal in missed):
            reasons.append(f"twist={self.twist:g} turns the plane of the bend away from a pole by this angle.")
        return reasons

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        twist = math.remainder(self.twist, 2.0 * math.pi)
        return {BLEND: self.weight, TWIST: twist, SOFTEN: min(self.softening, 1.0), PACE: self.pace}

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the memory for the motion of the goals, one value, and two sets of joint values."""
        return size_of_all(BLEND_VALUES, {"variables": columns})
