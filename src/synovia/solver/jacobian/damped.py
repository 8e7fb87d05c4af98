"""Damped least squares and Levenberg-Marquardt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synovia.problem import Reduced
from synovia.solver.base import Kernel
from synovia.solver.jacobian.base import JacobianMethod

_LONG = 8  # bones; with fewer the nearest pose often asks of one bone that it vanish
_MOST_JOINTS = 16  # of an arm in lanes; see kernels.simd.arm


@dataclass(frozen=True, slots=True, kw_only=True)
class _Damped(JacobianMethod):
    """What the damped methods share: kernels of their own where nothing else is asked for."""

    method: ClassVar[int] = 2

    max_steps: int = 60
    attempts: int = 100

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel for arms, the one for any tree, or the family's."""
        if not self.bare(reduced):
            return JacobianMethod.kernel(self, reduced)
        if reduced.serial:
            from synovia.kernels.jacobian.arm import arm

            return arm
        from synovia.kernels.jacobian.levenberg import levenberg, levenberg_general

        return levenberg if reduced.pose_only else levenberg_general

    def simd_kernel(self, reduced: Reduced) -> Kernel | None:
        """Return the kernel for many targets of one arm."""
        if not reduced.serial or len(reduced.rows) > _MOST_JOINTS or not self.bare(reduced):
            return None
        from synovia.kernels.simd.arm import arm_simd

        return arm_simd


@dataclass(frozen=True, slots=True, kw_only=True)
class LevenbergMarquardt(_Damped):
    """Levenberg-Marquardt with damping that follows the error: λ = constant_damping + error_damping · e·e.

    The default solver: fast, exact, any goals, limits by an active set. Residuals are radians and lengths per reach. A
    long chain of balls without limits and one position goal takes Newton's method in three numbers (``chain_newton``):
    the pose whose bones turn least, as many steps for a thousand joints as for ten.

    Args:
        max_steps: Steps of one attempt.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        error_damping: Factor of the squared error.
        constant_damping: Damping that remains at the target; keeps singular poses solvable.
        largest_error: As in every method of the family (see ``PseudoInverse``).
        largest_turn: As there.
        jacobian: As there.
        null_space: As there.

    References:
        Sugihara (2011), *Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method*, eq. 20.
    """

    name: ClassVar[str] = "lm"
    error_damping: float = 0.02
    constant_damping: float = 1e-9

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel for long chains of balls, for arms, for any tree, or the family's."""
        if reduced.ball_chain and len(reduced.rows) >= _LONG and self.bare(reduced):
            from synovia.kernels.jacobian.chain_newton import chain_newton

            return chain_newton
        return _Damped.kernel(self, reduced)

    def damping_terms(self) -> tuple[float, float]:
        """Return constant damping and the factor of the squared error."""
        return (max(self.constant_damping, 1e-12), self.error_damping)


@dataclass(frozen=True, slots=True, kw_only=True)
class DampedLeastSquares(_Damped):
    """Damped least squares with constant damping λ² (Wampler 1986): the classic, slower near the target.

    Args:
        max_steps: Steps of one attempt.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        damping: λ, in radians and lengths per reach.
        largest_error: As in every method of the family (see ``PseudoInverse``).
        largest_turn: As there.
        jacobian: As there.
        null_space: As there.
    """

    name: ClassVar[str] = "dls"
    damping: float = 0.03

    def damping_terms(self) -> tuple[float, float]:
        """Return constant damping and no factor of the error."""
        return (max(self.damping * self.damping, 1e-12), 0.0)
