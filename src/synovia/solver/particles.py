"""Particles: position-based dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synovia.kernels.layout import ROUNDS
from synovia.problem import Reduced
from synovia.solver.base import Heuristic, Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Particles(Heuristic):
    """Joints as particles: pin goals to their targets, and move joints until bone lengths are restored.

    One bone after the other moves each of the joints at its ends by half of its length error, as in cloth simulation.
    Then joints rotate towards their particles, within limits, so that bone lengths are exact again. The motion spreads
    over the body more evenly than with FABRIK, in more steps. Poles are solved last, as in ``Fabrik``.

    Args:
        max_steps: Largest number of iterations of one attempt.
        attempts: Number of attempts, restarts included.
        seed: Seed of the restarts.
        finish: ``"lm"`` or None, see ``Heuristic``.
        rounds: Number of times that each iteration moves every bone, from the tips to the root and back. None: 4, and
            on chains of n > 10 joints n² / 20 (at most 5000), because a pull spreads along a chain as heat along a rod.

    Example:
        >>> import synovia as sy
        >>> rope = sy.Skeleton.chain([(0, 0, 0.1 * k) for k in range(11)])
        >>> sy.solve(rope, sy.PositionGoal(10, (0.4, 0.2, 0.3)), sy.Particles()).reached
        True

    References:
        Jakobsen (2001), *Advanced character physics*; Müller et al. (2007), *Position based dynamics*, eq. 10-11.
    """

    name: ClassVar[str] = "particles"

    rounds: int | None = None

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel."""
        self.check_limbs(reduced)
        from synovia.kernels.heuristic.particles import particles

        return particles

    def params(self) -> dict[int, float]:
        """Return the settings by their indices."""
        return Heuristic.params(self) | {ROUNDS: self.rounds or 0}
