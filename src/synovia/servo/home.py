"""Where the rest goals of a servo lead its joints."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.model.geometry import Array
from synovia.problem.goals import posture_of
from synovia.servo.limits import Axes

_NEAR: Final = 1e-3  # radians, length scales: joints nearer to their reference count as being there


class Home:
    """The reference of all rest goals.

    Args:
        ik: The problem.
        axes: The axes of the body.

    Attributes:
        exists: Whether a joint has a reference.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes) -> None:
        """Find the axes of all rest goals."""
        posture = posture_of(ik.skeleton, ik.goals)
        rest = {i: posture_of(ik.skeleton, [goal]) for i, goal in enumerate(ik.goals) if goal.preference is not None}
        moves = np.isin(axes.joints, list(ik.moving))
        self._of = {i: moves & (one.shares[axes.joints] > 0.0) for i, one in rest.items()}
        self._axes, self._q = axes, posture.q
        self._weights = moves * posture.shares[axes.joints]
        self.exists = bool(self._weights.any())
        self._weights /= self._weights.max(initial=0.0) or 1.0
        self._units = np.where(axes.lengths, ik.reach, 1.0)

    def way(self, q: Array) -> Array:
        """Return the weighted displacement of each axis, (n,), from joint values q (nq,) to the reference."""
        return self._weights * self._axes.way(q, self._q)

    def size(self, way: Array) -> float:
        """Return the largest component of a displacement of all axes, radians or length scales."""
        return float((np.abs(way) / self._units).max(initial=0.0))

    def distance(self, q: Array) -> float:
        """Return the weighted distance of joint values q (nq,) from the reference, radians or length scales."""
        return float(np.linalg.norm(np.sqrt(self._weights) * self._axes.way(q, self._q) / self._units))

    def reached(self, q: Array) -> dict[int, bool]:
        """Return, by index of each rest goal, whether its joints are at their reference at joint values q (nq,)."""
        way = self._axes.way(q, self._q)
        return {i: self.size(way * own) <= _NEAR for i, own in self._of.items()}
