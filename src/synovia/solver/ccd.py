"""Cyclic coordinate descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synovia.kernels.layout import SMALLEST_TURN, STIFFNESS, STIFFNESS_FACTOR
from synovia.problem import Reduced
from synovia.solver.base import Heuristic, Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Ccd(Heuristic):
    """Cyclic coordinate descent: rotate one joint at a time, from tips to root, to its optimum within the limits.

    It is simple and robust: no step raises the error, and it suits hinges with limits. Near the target it converges
    slowly, so prefer ``LevenbergMarquardt`` for tight tolerances. Poles are solved last, as in ``Fabrik``.

    Args:
        max_steps: Largest number of sweeps of one attempt.
        attempts: Number of attempts, restarts included.
        seed: Seed of the restarts.
        finish: ``"lm"`` or None, see ``Heuristic``.
        smallest_turn: Rotations below this angle (radians) are skipped.
        stiffness: Factor on the stiffness s of the skeleton's joints. A joint takes a rotation φ towards its preferred
            value (a ball: its rest) in full, and φ / (1 + stiffness s) of a rotation away from it. 0 is the plain
            method. Stiff joints rotate less and later, so every target stays reachable, in more sweeps.

    Example:
        >>> import synovia as sy
        >>> sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.Ccd(smallest_turn=1e-4)).reached
        True

    References:
        Wang & Chen (1991), *A combined optimization method for solving the inverse kinematics problem*; Welman (1993).
    """

    name: ClassVar[str] = "ccd"

    smallest_turn: float = 0.0
    stiffness: float = 1.0

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel for a plain chain, or the kernel for any tree."""
        if reduced.ball_chain and not (self.stiffness and reduced.preferences[:, STIFFNESS].any()):
            from synovia.kernels.heuristic.ccd_chain import ccd_chain

            return ccd_chain
        self.check_limbs(reduced)
        from synovia.kernels.heuristic.ccd import ccd

        return ccd

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        return Heuristic.params(self) | {SMALLEST_TURN: self.smallest_turn, STIFFNESS_FACTOR: self.stiffness}
