"""Serial chains of hinges over a whole clip: kinematics of all frames at once, and bounded least squares.

With residuals e of directions, rotations and positions, and the step Δ of each angle from frame to frame, the cost is

    Σ w² |e|² + Σ smoothness Δ² + Σ BEYOND (|Δ| - bound)₊²

The Gauss-Newton matrix is banded, because Δ connects only neighbouring frames, angle by angle. Finally the angles are
changed as little as possible so that all steps keep their bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.hinge_chain import HingeClip
from synovia.model.pose import world_frames

ROUNDED: Final = 1e-9  # radians: rounding error by which a step may exceed its bound


@dataclass(frozen=True, eq=False, slots=True)
class Direction:
    """A target for the direction from one point of the chain to another.

    Args:
        start: Index in the chain of the joint where the direction begins.
        end: Index in the chain of the joint on which the end point is fixed.
        offset: Position of the end point in the frame of that joint, (3,).
        wanted: Target unit vectors, (T, 3), world axes.
        weight: Weight of the residual, radians.
    """

    start: int
    end: int
    offset: Array
    wanted: Array
    weight: float

    @property
    def numbers(self) -> list[float]:
        """The term as the kernel reads it."""
        return [0, self.start, self.end, *self.offset, self.weight]


@dataclass(frozen=True, eq=False, slots=True)
class Orientation:
    """A target for the orientation of a joint.

    Args:
        joint: Index of the joint in the chain.
        wanted: Target rotations, (T, 3, 3), world axes.
        weight: Weight of the residual, radians.
    """

    joint: int
    wanted: Array
    weight: float

    @property
    def numbers(self) -> list[float]:
        """The term as the kernel reads it."""
        return [1, 0, self.joint, 0.0, 0.0, 0.0, self.weight]


@dataclass(frozen=True, eq=False, slots=True)
class Place:
    """A target for the position of a point.

    Args:
        joint: Index of the joint in the chain.
        offset: Position of the point in the frame of that joint, (3,).
        wanted: Target positions, (T, 3), world axes.
        weight: Weight of the residual, divided by the length of the chain.
    """

    joint: int
    offset: Array
    wanted: Array
    weight: float

    @property
    def numbers(self) -> list[float]:
        """The term as the kernel reads it."""
        return [2, 0, self.joint, *self.offset, self.weight]


Term = Direction | Orientation | Place


class Chain:
    """A serial chain of hinges and fixed joints.

    Args:
        skeleton: The skeleton.
        rows: Rows of the joints, each the parent of the next; hinges or fixed joints, and no mimic joints.
    """

    def __init__(self, skeleton: Skeleton, rows: Sequence[int]) -> None:
        """Store the geometry of the chain."""
        joints = [skeleton.joints[row] for row in rows]
        self.rows = tuple(rows)
        self.base = skeleton.parents[rows[0]]
        self.at = np.array([skeleton.q_slice(row).start for row, j in zip(rows, joints, strict=True) if is_hinge(j)])
        lower, upper = skeleton.limits
        self.hinges = [k for k, joint in enumerate(joints) if is_hinge(joint)]  # index of each hinge in the chain
        self.lower, self.upper = lower[self.at], upper[self.at]
        hinge = np.cumsum([is_hinge(joint) for joint in joints]) - 1
        self._joints = np.array([
            [*joint.rest[:3, :3].ravel(), *joint.rest[:3, 3], *joint.axis, k if is_hinge(joint) else -1]
            for joint, k in zip(joints, hinge.tolist(), strict=True)
        ])  # fmt: skip
        self.length = float(np.linalg.norm(self._joints[1:, 9:12], axis=1).sum()) or 1.0

    def __len__(self) -> int:
        """Return the number of hinges."""
        return len(self.hinges)

    def _clip(self, base: Array, terms: Sequence[Term], smoothness: float = 0.0) -> HingeClip:
        """Return the clip for the kernel: the chain, its terms in each frame, and frames (T, 12) of the joint above."""
        settings = np.array([smoothness, self.length, *self.lower, *self.upper])
        wanted = np.zeros((len(terms), len(base), 9))
        for own, term in zip(wanted, terms, strict=True):
            values = term.wanted.reshape(len(base), -1)
            own[:, : values.shape[1]] = values
        return HingeClip(base, self._joints, np.array([term.numbers for term in terms]), wanted, settings)

    def residuals(self, base: Array, x: Array, terms: Sequence[Term]) -> tuple[Array, Array]:
        """Return weighted residuals (target - value), (T, rows), and the derivative of the values, (T, rows, hinges).

        Args:
            base: (T, 12) world frames of the joint above the chain.
            x: (T, hinges) angles.
            terms: The targets of the chain.
        """
        return self._clip(base, terms).errors(x)

    def follow(
        self, base: Array, x: Array, terms: Sequence[Term], *, bounds: Array, smoothness: float
    ) -> tuple[Array, float]:
        """Minimize the cost of the terms with bounded steps; return the angles (T, hinges) and their cost.

        Args:
            base: (T, 12) world frames of the joint above the chain.
            x: (T, hinges) start.
            terms: The targets of the chain.
            bounds: (T - 1, hinges) largest step of each angle, radians.
            smoothness: Weight of the squared steps.
        """
        x, cost = self._clip(base, terms, smoothness).follow(np.clip(x, self.lower, self.upper), bounds)
        return within_steps(x, bounds), cost


def is_hinge(joint: Joint) -> bool:
    """Return whether a joint is a hinge and not a mimic joint."""
    return joint.kind is Kind.HINGE and joint.mimic is None


def keeps_steps(x: Array, bounds: Array) -> bool:
    """Return whether all steps between frames of values (T, n) are within bounds (T - 1, n)."""
    return bool((np.abs(np.diff(x, axis=0)) <= bounds + ROUNDED).all())


def within_steps(x: Array, bounds: Array) -> Array:
    """Change values (T, n) so that all steps are within bounds (T - 1, n), and the largest change is smallest.

    The result is the mean of two functions whose steps are within bounds: the greatest one below x, and the least one
    above x. It stays between the smallest and the largest value of x, and therefore within limits.

    References:
        McShane (1934), *Extension of range of functions*, theorem 1.
    """
    if keeps_steps(x, bounds):
        return x
    least, most = x.min(axis=0), x.max(axis=0)
    way = np.zeros(x.shape)  # sum of the bounds from the first frame to each frame, clipped to the range of x
    np.cumsum(np.minimum(bounds, most - least + 1.0), axis=0, out=way[1:])
    low = np.minimum(_lowest(x - way) + way, _lowest((x + way)[::-1])[::-1] - way)
    high = np.maximum(-_lowest(-x - way) - way, -_lowest((way - x)[::-1])[::-1] + way)
    return np.clip(0.5 * (low + high), least, most)


def _lowest(x: Array) -> Array:
    """Return the minimum over all frames up to each frame, (T, n)."""
    return np.minimum.accumulate(x, axis=0)


def base_frames(skeleton: Skeleton, q: Array, row: int) -> Array:
    """Return world frames of a joint, (T, 12); row -1 is the world."""
    if row < 0:
        return np.tile(np.array([1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0, 0, 0, 0]), (len(q), 1))
    return np.ascontiguousarray(world_frames(skeleton, q)[:, row])
