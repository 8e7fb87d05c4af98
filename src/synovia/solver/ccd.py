"""Cyclic coordinate descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synovia.kernels.layout import SMALLEST_TURN, STIFFNESS, STIFFNESS_FACTOR
from synovia.problem import Reduced
from synovia.solver.base import Heuristic, Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Ccd(Heuristic):
    """Cyclic coordinate descent: one joint at a time, from the tips to the root, takes its best turn within its limits.

    It is simple and robust: no step raises the error, and it suits hinges with limits. Near the target it converges
    slowly, so prefer ``LevenbergMarquardt`` for tight tolerances. Poles come last, as in ``Fabrik``.

    Args:
        max_steps: Sweeps of one attempt.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        finish: ``"lm"`` or None, see ``Heuristic``.
        smallest_turn: Turns below this angle (radians) are skipped.
        stiffness: Factor on the stiffness s of the skeleton's joints. A joint makes a turn φ towards its preferred
            value (a ball: its rest) in full, and φ / (1 + stiffness s) of a turn away from it. 0 is the plain method.
            Stiff joints turn less and later but do turn: every target stays within reach, in more sweeps.

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
        """Return the kernel of the plain chain, or the one for any tree."""
        if reduced.ball_chain and not (self.stiffness and reduced.preferences[:, STIFFNESS].any()):
            from synovia.kernels.heuristic.ccd_chain import ccd_chain

            return ccd_chain
        self.check_limbs(reduced)
        from synovia.kernels.heuristic.ccd import ccd

        return ccd

    def params(self) -> dict[int, float]:
        """Return the settings by their places."""
        return Heuristic.params(self) | {SMALLEST_TURN: self.smallest_turn, STIFFNESS_FACTOR: self.stiffness}
