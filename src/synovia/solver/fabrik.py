"""FABRIK: forward and backward reaching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synovia.kernels.layout import PROGRESS
from synovia.problem import Reduced
from synovia.solver.base import POSE_GOALS, Heuristic, Kernel

_SHORTEST = 3  # bones of a chain in lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabrik(Heuristic):
    """Forward and backward reaching: bones are pulled to the target and back to the root, limits in every iteration.

    Fastest on chains and characters of ball joints with position goals at everyday tolerances; rotation goals are
    served by the last three degrees of freedom above them. Poles come after the places: each limb turns about the line
    from its root to its tip, by the ball joint at its root, as far as its limits allow.

    Args:
        max_steps: Iterations of one attempt.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        finish: ``"lm"`` or None, see ``Heuristic``.

    References:
        Aristidou & Lasenby (2011), *FABRIK: a fast, iterative solver for the inverse kinematics problem*.
    """

    name: ClassVar[str] = "fabrik"
    supported_goals: ClassVar[frozenset[str]] = POSE_GOALS | {"pole"}

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of the paper for a plain chain, or the one for any tree."""
        if reduced.ball_chain:
            from synovia.kernels.heuristic.fabrik_chain import fabrik_chain

            return fabrik_chain
        self.check_limbs(reduced)
        from synovia.kernels.heuristic.fabrik import fabrik, fabrik_general

        return fabrik if reduced.pose_only else fabrik_general

    def simd_kernel(self, reduced: Reduced) -> Kernel | None:
        """Return the kernel for many targets of a plain chain; two bones need no iteration."""
        if not reduced.ball_chain or len(reduced.rows) < _SHORTEST:
            return None
        from synovia.kernels.simd.fabrik_chain import fabrik_simd

        return fabrik_simd

    def simd_size(self, reduced: Reduced) -> int:
        """Return the numbers of 32 chains of points."""
        return 32 * 3 * (len(reduced.rows) + 1)

    def params(self) -> dict[int, float]:
        """Return the settings by their places."""
        return {PROGRESS: self.progress[1]}
