"""Full body: goals with strict priorities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from synovia.errors import InputError
from synovia.goals import Goal
from synovia.goals.base import POSITION
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    DAMPING,
    ERROR_DAMPING,
    FIRST_Q,
    IS_ANGLE,
    LARGEST_MOVE,
    LARGEST_STEP,
    REST_STEP,
    SCALAR,
    SOFT,
)
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, is_number
from synovia.problem import Reduced
from synovia.solver.base import KERNEL_GOALS, LARGEST, IteratingSolver, Kernel, Solver


@dataclass(frozen=True, slots=True, kw_only=True)
class FullBody(IteratingSolver):
    """Goals in any number of strict priority levels, for characters and humanoids with a moving root.

    In each step, every level takes its optimum within the limits, among the motions that do not change the levels
    above. So a goal never worsens a goal of a higher priority, even with joints at their limits. Weights apply within a
    level. Where the goals leave a choice, the pose follows a ``RestGoal``; without one, it stays near the start.

    Args:
        max_steps: Largest number of steps of one attempt.
        attempts: Number of attempts: the first starts from the start pose. If it ends close to the goals and to its
            start, up to four more start near it, so that a near target gets a near solution. The others start from
            random poses; with a clearance goal, each of them starts from the clearest of up to 24 poses that meet the
            other goals. Restarts do not help a goal that conflicts with a goal of a higher priority.
        seed: Seed of the random poses.
        error_damping: Damping of a level, as a factor of its squared error.
        constant_damping: Damping that is always added; it keeps singular poses solvable at the target.
        largest_step: Largest motion of a joint for one level in one step, radians; length scales (``IK.reach``) for a
            slide.
        largest_move: Largest motion of a joint in one solve, or in one frame of ``track``: a hard limit in all levels.
            For a velocity limit, give the velocity times the duration of a frame. One value for all joints is in
            radians or length scales. Values by joint, as from ``skeleton.moves_in(seconds)``, are in radians or length
            units; other joints are then unlimited. For a free root, the value applies to each axis and to the rotation.
            A mimic joint also limits its leader. A start that is farther outside the limits of a joint is an error.
            Needs ``attempts=1``.
        rest_step: A ``RestGoal`` has converged when a step is not longer than this, radians or length scales.
        softening: Last fraction of a chain's reach in which the chain straightens slowly, so that limbs do not snap
            straight: a target there, or beyond, is moved nearer. The distance to the given target is then reported as a
            miss. 0.02 suits motion; 0 turns it off.

    References:
        Escande, Mansard & Wieber (2014), *Hierarchical quadratic programming*; Flacco & De Luca (2015), *Discrete-time
        redundancy resolution at the velocity level*; Sugihara (2011) for the damping.

    Example:
        >>> import synovia as sy
        >>> goals = [sy.ContactGoal("left_foot", priority=0), sy.PositionGoal("left_hand", (0, 9, 0), priority=1)]
        >>> solution = sy.solve(sy.bundled("humanoid"), goals, sy.FullBody(), root="free")
        >>> solution.reached, solution.errors[0].position < 1e-4
        (False, True)
    """

    progress: ClassVar[tuple[int, float]] = (10, 0.8)  # more steps than usual: levels of low priority improve last
    name: ClassVar[str] = "full-body"
    supports_priorities: ClassVar[bool] = True
    supported_goals: ClassVar[frozenset[str]] = KERNEL_GOALS | {"rest", "clearance"}
    others: ClassVar[frozenset[str]] = frozenset({"largest_move"})

    max_steps: int = 60
    attempts: int = 10
    error_damping: float = 0.1
    constant_damping: float = 1e-10
    largest_step: float = 0.5
    largest_move: float | Mapping[str | int, float] | tuple[tuple[str | int, float], ...] = LARGEST
    rest_step: float = 1e-3
    softening: float = 0.0

    def __post_init__(self) -> None:
        """Check the settings."""
        Solver.__post_init__(self)
        given: Any = self.largest_move
        if isinstance(given, tuple):  # a mapping is stored in this form
            given = dict(cast("tuple[tuple[str | int, float], ...]", given))
        if isinstance(given, Mapping):
            moves = cast("Mapping[Any, Any]", given)
            kept: Any = tuple((joint, _move(value, f"largest_move of {joint!r}")) for joint, value in moves.items())
        else:
            kept = _move(given, "largest_move")
        object.__setattr__(self, "largest_move", kept)
        if self.bounds_motion and self.attempts > 1:
            raise InputError(
                "a restart would jump",
                where="FullBody",
                value=self.attempts,
                expected="attempts=1 with largest_move",
            )

    @property
    def bounds_motion(self) -> bool:
        """Whether ``largest_move`` bounds the motion."""
        return bool(self.largest_move) if isinstance(self.largest_move, tuple) else self.largest_move != LARGEST

    def in_levels(self, goals: Sequence[Goal], tied: bool = False) -> Mapping[str, Any] | None:
        """Return None, because full-body itself keeps loops closed."""
        return None

    def largest_moves(self, skeleton: Skeleton, reach: float) -> Array | None:
        """Return the largest move of each variable of a skeleton in one solve; a mimic joint restricts its leader.

        Raises:
            InputError: If a joint is named twice.
            UnknownNameError: If a joint does not exist.
        """
        if not self.bounds_motion:
            return None
        t = skeleton.tables
        lengths = (t.variables[:, BLOCK] == SCALAR) & (t.limits[:, IS_ANGLE] == 0.0)
        if isinstance(self.largest_move, tuple):
            rows = np.full(len(skeleton), np.inf)
            for row, value in skeleton.by_row(self.largest_move, "largest_move").items():
                rows[row] = value
            moves = rows[t.owner]
        else:
            one = float(cast("float", self.largest_move))
            rows = np.array([one * (reach if joint.kind is Kind.SLIDE else 1.0) for joint in skeleton.joints])
            moves = np.where(lengths, one * reach, one)
        variable_at = {at: k for k, at in enumerate(t.variables[:, BLOCK_Q].tolist())}
        row_at = {at: row for row, at in enumerate(t.ints[:, FIRST_Q].tolist()) if skeleton.joints[row].mimic}
        for (follower, leader), (ratio, _) in zip(t.followers.tolist(), t.coupling.tolist(), strict=True):
            if ratio != 0.0:
                k = variable_at[leader]
                moves[k] = min(moves[k], rows[row_at[follower]] / abs(ratio))
        return moves

    def reasons(self, missed: Sequence[Goal]) -> Sequence[str]:
        """Return sentences about settings that limit the motion."""
        lines: list[str] = []
        if isinstance(self.largest_move, tuple):
            lines += ["No joint moves more than its largest_move in one solve."] if self.largest_move else []
        elif self.bounds_motion:
            lines.append(f"No joint moves more than largest_move={self.largest_move:g} in one solve.")
        if self.softening > 0.0 and any(goal.constrained_parts & POSITION for goal in missed):
            lines.append(
                f"softening={self.softening:g} reserves the last {100 * self.softening:g} % of a limb's reach."
            )
        return lines

    def for_diagnosis(self) -> FullBody:
        """Return the settings with one attempt and without bounds on motion."""
        return self.replace(attempts=1, largest_move=LARGEST, softening=0.0)

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of all problems."""
        from synovia.kernels.hierarchy.full_body import full_body

        return full_body

    def miss_kernel(self) -> Kernel:
        """Return the kernel that polishes misses level by level."""
        from synovia.kernels.hierarchy.full_body import finish_levels

        return finish_levels

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        return IteratingSolver.params(self) | {
            DAMPING: max(self.constant_damping, 1e-14),
            ERROR_DAMPING: self.error_damping,
            LARGEST_STEP: self.largest_step,
            LARGEST_MOVE: math.inf,  # replaced in the compiled problem by the smallest of all largest moves
            REST_STEP: self.rest_step,
            SOFT: self.softening,
        }

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the scratch memory of the levels."""
        from synovia.kernels.hierarchy.basis import levels_size

        return levels_size(residuals, columns + residuals)  # one-sided goals have their own columns


def _move(value: Any, what: str) -> float:
    """Check and return a largest move.

    Raises:
        InputError: If the value is negative or not finite.
    """
    if not is_number(value) or not 0.0 <= value <= LARGEST:
        raise InputError(
            f"{what} is out of range",
            where="FullBody",
            value=value,
            expected="a finite number from 0, or numbers by joint",
        )
    return float(value)
