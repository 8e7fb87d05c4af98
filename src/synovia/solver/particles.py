"""Particles: position-based dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synovia.kernels.layout import PROGRESS, ROUNDS
from synovia.problem import Reduced
from synovia.solver.base import POSE_GOALS, Heuristic, Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Particles(Heuristic):
    """Joints as particles: goals are pinned to their targets, bones pull and push until their lengths are right again.

    Every bone moves the two joints at its ends by half of what its length lacks, one bone after the other, as cloth is
    simulated; then joints turn to where their particles went, limits included, and bones are exact again. It spreads a
    movement over the body more evenly than FABRIK does, in more steps. Poles come after the places, as in ``Fabrik``.

    Args:
        max_steps: Iterations of one attempt.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        finish: ``"lm"`` or None, see ``Heuristic``.
        rounds: How often each iteration moves every bone, inward and outward. None: 4, and on chains of n > 10 joints
            n² / 20 (at most 5000), because a pull passes along a chain like heat through a rod.

    References:
        Jakobsen (2001), *Advanced character physics*; Müller et al. (2007), *Position based dynamics*, eq. 10-11.
    """

    name: ClassVar[str] = "particles"
    supported_goals: ClassVar[frozenset[str]] = POSE_GOALS | {"pole"}

    rounds: int | None = None

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel."""
        self.check_limbs(reduced)
        from synovia.kernels.heuristic.particles import particles, particles_general

        return particles if reduced.pose_only else particles_general

    def params(self) -> dict[int, float]:
        """Return the settings by their places."""
        return {PROGRESS: self.progress[1], ROUNDS: self.rounds or 0}
