"""The Jacobian family: settings of methods that share their kernels, and secondary objectives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from synovia.arguments import ChecksArguments
from synovia.errors import InputError, UnsupportedError
from synovia.goals import Goal
from synovia.kernels.layout import (
    CENTRE_WEIGHT,
    DAMPING,
    ERROR_DAMPING,
    FORM,
    GRADIENT_WEIGHT,
    LARGEST_ERROR,
    LARGEST_TURN,
    MANIPULABILITY_WEIGHT,
    MARGIN,
    MARGIN_WEIGHT,
    METHOD,
    POSTURE_WEIGHT,
    REST_WEIGHT,
)
from synovia.model.geometry import is_number
from synovia.problem import Reduced
from synovia.solver.base import ALL_GOALS, LARGEST, IteratingSolver, Kernel, Solver, keeps_clear, out_of_range

if TYPE_CHECKING:
    from synovia.model import Pose

_NO_CLAMP = 1e100
_LEAST_DAMPING = 1e-12  # smallest damping, which keeps the equations of a step solvable
_MARGIN = 0.1
_FORMS = ("geometric", "partial")
_UNCLEAR = frozenset({"largest_error", "jacobian", "null_space"})  # settings that cannot be used with clearance goals
_CLEAR_GOALS = ALL_GOALS | {"clearance"}
# number of bones from which ``chain_newton`` is used; in shorter chains, a bone often does not rotate in the nearest
# pose
_LONG_CHAIN = 8
_MOST_JOINTS = 16  # largest number of joints of an arm in a SIMD batch; see kernels.simd.arm


@dataclass(frozen=True, slots=True, kw_only=True)
class NullSpace(ChecksArguments):
    """Secondary objectives: a function H(q) that is minimised in the null space of the goals.

    H is a weighted sum of the terms below. Each step is dq = J⁺e + (J⁺J - 1)∇H, where the projector removes the part of
    ∇H that would move the goals. Once all goals are reached, the solver continues along the poses that reach them, to
    the nearest minimum of H. If a goal is missed, H does not change the solution.

    Args:
        posture: Weight of Σ αi (qi - qi,opt)², the distance from the preferred values. αi is the stiffness of a joint
            (``Joint.stiffness``); joints without stiffness have no weight. For a ball, the distance is its angle from
            rest. A ``RestGoal`` needs no ``NullSpace``: it has its own weights and values.
        center: Weight of Σ (q - mid)² / half² over all limited joints, the distance from the middle of their ranges.
        margins: Weight of Σ d² / half², where d is the depth of a value in a margin at an end of its range, and 0
            between the margins. Limits are hard constraints with or without this term.
        margin: Width of the margins as a fraction of half the range. Needs ``margins``.
        manipulability: Weight of -log √det(J Jᵀ), which avoids singular poses. J is the Jacobian of all goals except
            custom ones.
        gradient: Gradient of a user-defined term: a function that takes a ``Pose`` and returns the derivative, (nv,),
            with respect to the velocities of all joints in order: 1 for a hinge or slide, 3 for a ball (angular
            velocity in the joint's frame), 6 for a free joint (translation first). A term with a second derivative of
            about 1 per squared radian converges in the fewest steps. The term moves only joints on which a goal
            depends; add other joints by a ``RestGoal``. Python calls it in every step, so a solve takes milliseconds
            instead of microseconds.

    Keep the elbow low, with a gradient by differences:

    >>> import numpy as np
    >>> import synovia as sy
    >>> arm = sy.bundled("arm7")
    >>> def lower_elbow(pose):
    ...     nudge = 1e-6 * np.eye(7)
    ...     height = lambda q: sy.Pose(pose.skeleton, q).position("joint4")[2]
    ...     return [(height(pose.q + d) - height(pose.q - d)) / 2e-6 for d in nudge]
    >>> low = sy.LevenbergMarquardt(null_space=sy.NullSpace(gradient=lower_elbow))
    >>> goal = sy.PositionGoal("tool", (0.4, 0.1, 0.5))
    >>> bool(sy.solve(arm, goal, low).pose.position("joint4")[2] < sy.solve(arm, goal).pose.position("joint4")[2])
    True

    Raises:
        InputError: If a weight is negative or not finite, the gradient is not a function, or ``margin`` is given
            without ``margins``.

    References:
        Liégeois (1977), *Automatic supervisory control of the configuration and behavior of multibody mechanisms*;
        Yoshikawa (1985), *Manipulability of robotic mechanisms*.
    """

    posture: float = 1.0
    center: float = 0.0
    margins: float = 0.0
    margin: float = _MARGIN
    manipulability: float = 0.0
    gradient: Callable[[Pose], Any] | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        for setting in fields(self):
            value: Any = getattr(self, setting.name)
            if setting.name == "gradient":
                if value is not None and not callable(value):
                    raise out_of_range(self, "gradient", "a function of a pose")
                continue
            if not is_number(value) or not 0.0 <= value <= LARGEST:
                raise out_of_range(self, setting.name, "a finite number from 0")
            object.__setattr__(self, setting.name, float(value))
        if self.gradient is None and not self.posture + self.center + self.margins + self.manipulability > 0.0:
            raise InputError("NullSpace has no objective", expected="at least one weight above 0, or a gradient")
        if not 0.0 < self.margin <= 1.0:
            raise out_of_range(self, "margin", "a number above 0, at most 1")
        if self.margin != _MARGIN and self.margins == 0.0:
            raise InputError(
                "margin needs margins", where="NullSpace", value=self.margin, expected="margins= a weight above 0"
            )

    def params(self) -> dict[int, float]:
        """Return the settings by their indices in ``kernels.layout``."""
        return {
            POSTURE_WEIGHT: self.posture,
            CENTRE_WEIGHT: self.center,
            MARGIN_WEIGHT: self.margins,
            MARGIN: self.margin,
            MANIPULABILITY_WEIGHT: self.manipulability,
            GRADIENT_WEIGHT: float(self.gradient is not None),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianMethod(IteratingSolver):
    """Settings of every method of the family; see its subclasses.

    Residuals are in radians, and in lengths divided by the length scale. Joint values stay within their limits: a step
    holds each joint that is at a limit and would exceed it, and is solved for the other joints. The next step may move
    the joint again.

    With a ``ClearanceGoal``, ``lm``, ``dls`` and ``pinv`` use the steps of ``FullBody`` with their own damping and
    search: the clearance first, then all other goals together. Then a ``CustomGoal``, ``null_space``, and values of
    ``jacobian`` and ``largest_error`` other than the default are refused, and only ``largest_turn`` bounds a step.

    Args:
        max_steps: Largest number of steps of one attempt; motion in the null space may take as many again.
        attempts: Number of attempts, restarts included.
        seed: Seed of the restarts.
        largest_error: Bound to which a step clamps the error of a goal (length scales, radians). None: no bound.
        largest_turn: Largest change of a joint in one step, radians (slides: length scales). None: no bound.
        jacobian: ``"geometric"`` by cross products, ``"partial"`` by partial derivatives of the transforms. Both agree
            to rounding; ``"geometric"`` is faster.
        null_space: Secondary objectives in the null space of the goals.

    Raises:
        InputError: If a setting is out of range.
    """

    others: ClassVar[frozenset[str]] = frozenset({"jacobian", "null_space"})
    supported_goals: ClassVar[frozenset[str]] = ALL_GOALS
    method: ClassVar[int]  # index in ``kernels.jacobian.methods``

    largest_error: float | None = None
    largest_turn: float | None = 1.0
    jacobian: Literal["geometric", "partial"] = "geometric"
    null_space: NullSpace | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        Solver.__post_init__(self)
        if not isinstance(self.jacobian, str) or self.jacobian not in _FORMS:
            raise out_of_range(self, "jacobian", " or ".join(map(repr, _FORMS)))
        if self.null_space is not None and not isinstance(self.null_space, NullSpace):
            raise out_of_range(self, "null_space", "sy.NullSpace(...) or None")

    @property
    def polishes(self) -> bool:
        """Return True: Newton's method polishes a miss to a minimum."""
        return True

    def is_plain(self, reduced: Reduced) -> bool:
        """Return whether the method has the default clamps of a step and no secondary objectives."""
        return (
            self.largest_error is None
            and self.largest_turn == 1.0
            and self.jacobian == "geometric"
            and self.null_space is None
            and not reduced.posture[:, REST_WEIGHT].any()
        )

    def check(self, goals: Sequence[Goal]) -> None:
        """Check that this algorithm supports the goals.

        Raises:
            UnsupportedError: If a goal is not supported, or not together with a clearance goal or with these settings.
        """
        Solver.check(self, goals)
        if keeps_clear(goals):
            self.check_plain(goals, "with a clearance goal")

    def check_plain(self, goals: Sequence[Goal], where: str) -> None:
        """Check that full-body can solve goals in place of this algorithm.

        Args:
            goals: The goals.
            where: Reason for the replacement, for the message.

        Raises:
            UnsupportedError: If a goal is a Python function, or a setting has no counterpart.
        """
        for goal in goals:
            if goal.needs == "custom":
                raise UnsupportedError(
                    f"{self.name} does not support this goal {where}",
                    where=f"goal {goal.label!r}",
                    value=goal,
                    expected="goals that are built in",
                )
        for setting in fields(self):
            value, standard = getattr(self, setting.name), setting.default
            if setting.name in _UNCLEAR and value != standard:
                raise UnsupportedError(
                    f"{self.name} has no {setting.name} {where}",
                    where=type(self).__name__,
                    value=value,
                    expected=f"{setting.name}={standard!r}",
                    hint="use a RestGoal as the secondary objective" if setting.name == "null_space" else None,
                )

    def in_levels(self, goals: Sequence[Goal], tied: bool = False) -> Mapping[str, Any] | None:
        """Return this damping and search as settings of full-body, for clearance goals or loops; else None."""
        if tied and "clearance" not in self.supported_goals:
            raise self.opens_loops()
        if tied:
            self.check_plain(goals, "with loops")
        elif not keeps_clear(goals):
            return None
        params = self.params()
        return self.search._asdict() | {
            "error_damping": params.get(ERROR_DAMPING, 0.0),
            "constant_damping": params.get(DAMPING, _LEAST_DAMPING),
            "largest_step": LARGEST if self.largest_turn is None else self.largest_turn,
        }

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of the family."""
        from synovia.kernels.jacobian.family import family

        return family

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the family's scratch memory."""
        from synovia.kernels.jacobian.shared import scratch_size

        return scratch_size(residuals, columns)

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        return IteratingSolver.params(self) | {
            METHOD: self.method,
            FORM: _FORMS.index(self.jacobian),
            LARGEST_ERROR: _NO_CLAMP if self.largest_error is None else self.largest_error,
            LARGEST_TURN: _NO_CLAMP if self.largest_turn is None else self.largest_turn,
            **({} if self.null_space is None else self.null_space.params()),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianTranspose(JacobianMethod):
    """Jacobian transpose: dq = α Jᵀe with the step α = <e, JJᵀe> / <JJᵀe, JJᵀe> of least error.

    A step solves no system of equations, so it is cheap and no pose is singular. But steepest descent needs hundreds of
    steps where the other methods need ten.

    The settings are those of ``synovia.solver.JacobianMethod``.

    Example:
        >>> import synovia as sy
        >>> arm = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"), sy.JacobianTranspose(max_steps=500))
        >>> arm.solve((0.4, 0.1, 0.5)).reached
        True

    References:
        Buss (2004), *Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and damped least squares
        methods*, section 3.
    """

    name: ClassVar[str] = "transpose"
    method: ClassVar[int] = 0
    progress: ClassVar[tuple[int, float]] = (20, 0.9)  # more steps than usual: the transpose method is slow

    max_steps: int = 1000
    attempts: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoInverse(JacobianMethod):
    """Pseudo-inverse: solve (JJᵀ) b = e with a factorisation for symmetric matrices, dq = Jᵀb.

    This is the shortest step that removes the whole error to first order. It is damped only near poses with singular
    JJᵀ, such as a straight arm. Far from the target the full step is too long, so error and step are clamped. With a
    ``ClearanceGoal``, a step that makes the pose worse is damped.

    The settings are those of ``synovia.solver.JacobianMethod``.

    Example:
        >>> import synovia as sy
        >>> sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.PseudoInverse()).reached
        True

    References:
        Whitney (1969), *Resolved motion rate control of manipulators and human prostheses*; Nakamura & Hanafusa (1986),
        *Inverse kinematic solutions with singularity robustness for robot manipulator control*, for the damping.
    """

    name: ClassVar[str] = "pinv"
    supported_goals: ClassVar[frozenset[str]] = _CLEAR_GOALS
    method: ClassVar[int] = 1

    max_steps: int = 60
    attempts: int = 100
    largest_error: float | None = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectivelyDamped(JacobianMethod):
    """Selectively damped least squares: every singular vector of the Jacobian is damped by how far it moves the goals.

    It needs no damping constant and does not oscillate near singular poses. Each step computes a singular value
    decomposition. ``largest_turn`` is γmax.

    The settings are those of ``synovia.solver.JacobianMethod``.

    Example:
        >>> import synovia as sy
        >>> arm = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"), sy.SelectivelyDamped())
        >>> arm.solve((0.4, 0.1, 0.5)).reached
        True

    References:
        Buss & Kim (2005), *Selectively damped least squares for inverse kinematics*.
    """

    name: ClassVar[str] = "sdls"
    method: ClassVar[int] = 3
    progress: ClassVar[tuple[int, float]] = (10, 0.5)

    max_steps: int = 200
    attempts: int = 100
    largest_turn: float | None = math.pi / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Damped(JacobianMethod):
    """Settings of the damped methods, which have faster kernels for default clamps without secondary objectives."""

    supported_goals: ClassVar[frozenset[str]] = _CLEAR_GOALS
    method: ClassVar[int] = 2

    max_steps: int = 60
    attempts: int = 100

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel for arms, for any tree, or for all settings of the family."""
        if not self.is_plain(reduced):
            return JacobianMethod.kernel(self, reduced)
        if reduced.serial:
            from synovia.kernels.jacobian.arm import arm

            return arm
        from synovia.kernels.jacobian.levenberg import levenberg

        return levenberg

    def simd_kernel(self, reduced: Reduced) -> Kernel | None:
        """Return the kernel for a SIMD batch of targets of one arm; None for other problems."""
        if not reduced.serial or len(reduced.rows) > _MOST_JOINTS or not self.is_plain(reduced):
            return None
        from synovia.kernels.simd.arm import arm_simd

        return arm_simd


@dataclass(frozen=True, slots=True, kw_only=True)
class LevenbergMarquardt(_Damped):
    """Levenberg-Marquardt with damping that follows the error: λ = constant_damping + error_damping · e·e.

    The default solver: fast and exact; it supports all goals, and handles limits by an active set. For a long chain of
    balls without limits and one position goal it uses Newton's method in three variables (``chain_newton``), which
    finds the pose with the smallest rotations of bones. It needs no damping, and as many steps for a thousand joints as
    for ten.

    Args:
        error_damping: Factor of the squared error.
        constant_damping: Damping that remains at the target; it keeps singular poses solvable.
        **others: Settings of ``synovia.solver.JacobianMethod``.

    Example:
        >>> import synovia as sy
        >>> centered = sy.LevenbergMarquardt(null_space=sy.NullSpace(center=0.1))  # near the middle of the ranges
        >>> sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)), centered).reached
        True

    References:
        Sugihara (2011), *Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method*, eq. 20.
    """

    name: ClassVar[str] = "lm"
    error_damping: float = 0.02
    constant_damping: float = 1e-9

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel for long chains of balls, for arms, for any tree, or for all settings of the family."""
        if reduced.ball_chain and len(reduced.rows) >= _LONG_CHAIN and self.is_plain(reduced):
            from synovia.kernels.jacobian.chain_newton import chain_newton

            return chain_newton
        return _Damped.kernel(self, reduced)

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        return _Damped.params(self) | {
            DAMPING: max(self.constant_damping, _LEAST_DAMPING),
            ERROR_DAMPING: self.error_damping,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DampedLeastSquares(_Damped):
    """Damped least squares with constant damping: dq = Jᵀ (J Jᵀ + λ² 1)⁻¹ e.

    The classic method: robust near singular poses, and slower near the target than ``LevenbergMarquardt``.

    Args:
        damping: λ, in radians and length scales.
        **others: Settings of ``synovia.solver.JacobianMethod``.

    Example:
        >>> import synovia as sy
        >>> goal = sy.PositionGoal("tool", (0.4, 0.1, 0.5))
        >>> sy.solve(sy.bundled("arm7"), goal, sy.DampedLeastSquares(damping=0.1)).reached
        True

    References:
        Wampler (1986), *Manipulator inverse kinematic solutions based on vector formulations and damped least-squares
        methods*.
    """

    name: ClassVar[str] = "dls"
    damping: float = 0.03

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        return _Damped.params(self) | {DAMPING: max(self.damping * self.damping, _LEAST_DAMPING)}
