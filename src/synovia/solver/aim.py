"""Aim: rotate a joint, or a chain of joints, so that an axis points at a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from synovia.errors import InputError
from synovia.goals import AimGoal, Goal
from synovia.goals.base import ROTATION
from synovia.kernels.layout import BLEND, BLEND_VALUES, COUNT, GOAL_ROW, SHARES, TOP_AXIS, TWIST, UP, size_of_all
from synovia.model import Kind, Skeleton
from synovia.model.geometry import as_direction, as_numbers
from synovia.problem import Reduced, hold_all_but
from synovia.problem.structure import TURNING, above, kinds, named, own_variables
from synovia.solver.base import ClosedForm, Kernel, Solver, out_of_range

_MOST = 7  # largest number of joints that share the rotation
_TOP = (0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim(ClosedForm):
    """Aim goals in closed form: rotate the goal's joint so that its axis points exactly at the target.

    The axis need not pass through the joint's centre, as for an eye or the barrel of a turret. A ball takes the
    smallest rotation from the start pose and, with ``up``, rolls about the line of sight. A hinge, or a ball restricted
    by limits, points as near to the target as possible.

    With several ``shares`` the joints above take part. The first share belongs to the goal's own joint, the next shares
    to the moving joints above it: (3, 2, 1) rotates spine, neck and head by a sixth, a third and a half.

    Args:
        shares: Shares of the rotation, the goal's own joint first; only ratios matter. At most seven.
        up: World direction (3,) towards which ``top`` rolls, for all goals; None: each goal has its own, a head or an
            eye without an explicit axis stays level, and other joints keep the roll of the smallest rotation.
        top: Direction (3,) that is rolled to ``up``, in the frame of the rotating joint; needs ``up``.
        twist: Roll away from ``up``, radians; needs ``up``.
        weight: Fraction of the rotation from the start pose (in a track: the first) to the solution, 0 to 1.

    Raises:
        InputError: If a setting cannot be used, or ``top`` or ``twist`` is given without ``up``.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> gaze = sy.IK(body, sy.AimGoal("head", axis=(0, 0, 1)), sy.Aim())
        >>> gaze.solve((1.0, 1.2, 2.0)).reached
        True
    """

    name: ClassVar[str] = "aim"
    supported_goals: ClassVar[frozenset[str]] = frozenset({"aim"})
    others: ClassVar[frozenset[str]] = frozenset({"shares", "up", "top"})

    shares: tuple[float, ...] = (1.0,)
    up: tuple[float, float, float] | None = None
    top: tuple[float, float, float] = _TOP
    twist: float = 0.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        Solver.__post_init__(self)
        object.__setattr__(self, "shares", tuple(as_numbers(self.shares, (-1,), "shares of Aim").tolist()))
        if not 1 <= len(self.shares) <= _MOST or min(self.shares) < 0.0 or not self.shares[0] > 0.0:
            raise out_of_range(self, "shares", f"one to {_MOST} numbers from 0, the first above 0")
        for name in ("top",) if self.up is None else ("top", "up"):
            direction = as_direction(getattr(self, name), f"{name} of Aim")
            object.__setattr__(self, name, tuple(direction.tolist()))
        for name, alone in (("top", _TOP), ("twist", 0.0)):
            if self.up is None and getattr(self, name) != alone:
                raise InputError(
                    f"{name} needs up", where="Aim", value=getattr(self, name), expected="up= a direction",
                    hint="Without it, the joint keeps the roll of the smallest rotation",
                )  # fmt: skip

    def resolved(self, goal: Goal, skeleton: Skeleton) -> Goal:
        """Return a goal completed by values that depend on the skeleton, as ``Goal.resolved`` does.

        A head or an eye stays level only if the goal has no explicit axis and the settings have no ``up``.

        Raises:
            InputError: If both the goal and the settings have an upward direction.
        """
        out = Solver.resolved(self, goal, skeleton)
        if not isinstance(goal, AimGoal) or not isinstance(out, AimGoal):
            return out
        if not goal.given & ROTATION:
            return out if self.up is None and goal.axis is None else out.rolling_freely()
        if self.up is not None:
            raise InputError(
                "up", where=f"goal on {goal.joint!r}", expected="no up= in the goal, because Aim(up=) sets it"
            )
        return out

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem in which only joints that rotate for a goal move: one for each of ``shares``.

        The first is the goal's own joint, or the nearest one above it that moves; the others are above it.
        """
        moving: list[int] = []
        for goal, row in zip(goals, reduced.goals.table[:, GOAL_ROW].tolist(), strict=True):
            rows = above(reduced, row)[: len(self.shares)]
            turning = all(kind in (Kind.HINGE, *TURNING) for kind in kinds(reduced, rows))
            if len(rows) < len(self.shares) or not turning or not own_variables(reduced, rows):
                wanted = (
                    f"{len(self.shares)} moving balls or hinges, one for each share"
                    if len(self.shares) > 1
                    else "a moving ball or hinge"
                )
                raise self.refusal(goal, named(skeleton, reduced, rows), wanted)
            if set(rows) & set(moving):
                found = f"joints that turn for another goal, {named(skeleton, reduced, rows)}"
                raise self.refusal(goal, found, "joints that turn for no other goal")
            moving += rows
        return hold_all_but(skeleton, reduced, moving)

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel."""
        from synovia.kernels.closed_form.aim import aim_joint

        return aim_joint

    @property
    def polishes(self) -> bool:
        """Whether a miss is polished to the least-squares solution; only a limit or a hinge can cause a miss."""
        return self.weight >= 1.0

    def reasons(self, missed: Sequence[Goal]) -> Sequence[str]:
        """Return a sentence about the setting that keeps the joints from aiming exactly."""
        return (
            [f"weight={self.weight:g} moves only this share of the path from the start."] if self.weight < 1.0 else []
        )

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        return {
            BLEND: self.weight,
            TWIST: math.remainder(self.twist, 2.0 * math.pi),
            COUNT: len(self.shares),
            **dict(enumerate(self.up or (0.0, 0.0, 0.0), UP)),
            **dict(enumerate(self.top, TOP_AXIS)),
            **dict(enumerate(self.shares, SHARES)),
        }

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the memory for two sets of joint values."""
        return size_of_all(BLEND_VALUES, {"variables": columns})
