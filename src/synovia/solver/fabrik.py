"""FABRIK: forward and backward reaching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synovia.problem import Reduced
from synovia.solver.base import Heuristic, Kernel

_SHORTEST = 3  # smallest number of bones of a chain that is solved in a SIMD batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabrik(Heuristic):
    """Forward and backward reaching: pull bones to the target and back to the root, with limits in each iteration.

    It is fastest on chains and characters of ball joints with position goals at everyday tolerances. The last three
    degrees of freedom above a rotation goal serve the rotation. Poles are solved last: once the other goals are met,
    the ball joint at the root of each limb rotates the limb about the line from root to tip, as far as limits allow.

    Args:
        max_steps: Largest number of iterations of one attempt.
        attempts: Number of attempts, restarts included.
        seed: Seed of the restarts.
        finish: ``"lm"`` or None, see ``Heuristic``.

    References:
        Aristidou & Lasenby (2011), *FABRIK: a fast, iterative solver for the inverse kinematics problem*.

    Example:
        >>> import synovia as sy
        >>> chain = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.1, 2, 0), (0, 3, 0)])
        >>> sy.solve(chain, sy.PositionGoal("joint3", (1.5, 1.0, 0.5)), sy.Fabrik()).reached
        True
    """

    name: ClassVar[str] = "fabrik"

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of the paper for a chain without branches, or the kernel for any tree."""
        if reduced.ball_chain:
            from synovia.kernels.heuristic.fabrik_chain import fabrik_chain

            return fabrik_chain
        self.check_limbs(reduced)
        from synovia.kernels.heuristic.fabrik import fabrik

        return fabrik

    def simd_kernel(self, reduced: Reduced) -> Kernel | None:
        """Return the kernel for a SIMD batch of a plain chain; None for two bones, which need no iteration."""
        if not reduced.ball_chain or len(reduced.rows) < _SHORTEST:
            return None
        from synovia.kernels.simd.fabrik_chain import fabrik_simd

        return fabrik_simd

    def simd_size(self, reduced: Reduced) -> int:
        """Return the size of the memory for the points of 32 chains."""
        return 32 * 3 * (len(reduced.rows) + 1)
