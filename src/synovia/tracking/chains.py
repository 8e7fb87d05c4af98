"""Serial chains of hinges over a whole clip: kinematics of all frames at once, and bounded least squares.

With residuals e of directions, rotations and positions, and the step Δ of each angle from frame to frame, the cost is

    Σ w² |e|² + Σ smoothness Δ² + Σ BEYOND (|Δ| - bound)₊²

The Gauss-Newton matrix is banded, because Δ connects only neighbouring frames, angle by angle. Finally the angles are
changed as little as possible so that all steps keep their bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array, cross, matrix_to_quat, rotation_between
from synovia.model.pose import world_frames
from synovia.tracking.trajectory.solve import Damping, solve_banded

BEYOND: Final = 100.0  # weight of a step's excess over its bound; weights of directions are about 1
_STEPS: Final = 30  # largest number of least-squares steps
ENOUGH: Final = 1e-4  # fraction of the cost: the descent stops if a step lowers the cost by less
FINE: Final = 1e-5  # cost per frame, squared radians: the descent also stops if a step lowers the cost by less
_LARGEST: Final = 0.7  # radians: largest step, because the linear model is poor for larger ones
_DAMPING: Final = 1e-6  # damping of the first step, as a fraction of the curvature of each angle
_MOST_DAMPING: Final = 1e4
_LEAST: Final = 0.02  # smallest curvature that damping uses, for angles that no term determines
_SETS: Final = 8  # largest number of solves that search for the angles and steps at their bounds
_HELD: Final = 1e9  # curvature that keeps an angle at its bound
_SMALL: Final = 1e-9  # sine of a rotation; at smaller values, sine and angle count as equal
_BACK: Final = -0.9  # cosine of a rotation; at smaller values, its axis is computed from quaternions
ROUNDED: Final = 1e-9  # radians: rounding error by which a step may exceed its bound
_SHORT: Final = 1e-9  # fraction of the chain's length: points at a smaller distance do not define a direction


@dataclass(frozen=True, eq=False, slots=True)
class Direction:
    """A target for the direction from one point of the chain to another.

    Args:
        start: Index in the chain of the joint where the direction begins.
        end: Index in the chain of the joint that carries the end point.
        offset: Position of the end point in the frame of that joint, (3,).
        wanted: Target unit vectors, (T, 3), world axes.
        weight: Weight of the residual, radians.
    """

    start: int
    end: int
    offset: Array
    wanted: Array
    weight: float


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
        own = [replace(joint, name=f"{k}", parent=k, limit=None) for k, joint in enumerate(joints)]
        self._own = Skeleton([Joint("base", kind=Kind.FREE), *own])  # a free joint in place of the parent of the chain
        self.at = np.array([skeleton.q_slice(row).start for row, j in zip(rows, joints, strict=True) if is_hinge(j)])
        lower, upper = skeleton.limits
        self.hinges = [k for k, joint in enumerate(joints) if is_hinge(joint)]  # index of each hinge in the chain
        self.lower, self.upper = lower[self.at], upper[self.at]
        self._axes = np.array([joints[k].axis for k in self.hinges])
        self.length = float(self._own.lengths[2:].sum()) or 1.0
        self.above = np.cumsum([is_hinge(joint) for joint in joints]).tolist()  # number of hinges that move each joint

    def __len__(self) -> int:
        """Return the number of hinges."""
        return len(self.hinges)

    def frames(self, base: Array, x: Array) -> tuple[Array, Array, Array, Array]:
        """Return rotations (T, n, 3, 3) and positions (T, n, 3) of the joints, and axes and origins of the hinges.

        Args:
            base: (T, 7) position and orientation of the joint above the chain, as values of a free joint.
            x: (T, hinges) angles.
        """
        frames = world_frames(self._own, np.concatenate([base, x], axis=1))[:, 1:]
        rotations, positions = frames[..., :9].reshape(len(x), -1, 3, 3), frames[..., 9:]
        axes = np.einsum("tkij,kj->tki", rotations[:, self.hinges], self._axes)
        return rotations, positions, axes, positions[:, self.hinges]

    def residuals(
        self, base: Array, x: Array, terms: Sequence[Term], *, derivative: bool = True
    ) -> tuple[Array, Array]:
        """Return weighted residuals (T, rows), target minus actual, and the derivative of the actual (T, rows, hinges).

        Args:
            base: (T, 7) position and orientation of the joint above the chain, as values of a free joint.
            x: (T, hinges) angles.
            terms: The targets of the chain.
            derivative: Whether to compute the derivative; it is empty otherwise.
        """
        rotations, positions, axes, origins = self.frames(base, x)
        e = np.empty((len(x), 3 * len(terms)))
        J = np.zeros((len(x) if derivative else 0, 3 * len(terms), len(self)))
        for n, term in enumerate(terms):
            at = slice(3 * n, 3 * n + 3)
            if isinstance(term, Orientation):
                e[:, at] = term.weight * _rotation_vector(rotations[:, term.joint], term.wanted)
                if derivative:
                    k = self.above[term.joint]
                    J[:, at, :k] = term.weight * np.swapaxes(axes[:, :k], 1, 2)
                continue
            last = term.joint if isinstance(term, Place) else term.end
            point = positions[:, last] + rotations[:, last] @ term.offset
            k = self.above[last]
            if isinstance(term, Place):
                weight = term.weight / self.length
                e[:, at] = weight * (term.wanted - point)
                if derivative:
                    J[:, at, :k] = weight * np.swapaxes(cross(axes[:, :k], point[:, None] - origins[:, :k]), 1, 2)
                continue
            way = point - positions[:, term.start]
            length = np.maximum(np.linalg.norm(way, axis=1), _SHORT * self.length)[:, None]
            d = way / length
            e[:, at] = term.weight * (term.wanted - d)
            if derivative:
                both = self.above[term.start]
                arms = np.concatenate(
                    [np.repeat(way[:, None], both, axis=1), point[:, None] - origins[:, both:k]], axis=1
                )
                speeds = cross(axes[:, :k], arms) / length[:, None]
                speeds -= (speeds @ d[:, :, None]) * d[:, None]
                J[:, at, :k] = term.weight * np.swapaxes(speeds, 1, 2)
        return e, J

    def follow(
        self, base: Array, x: Array, terms: Sequence[Term], *, bounds: Array, smoothness: float
    ) -> tuple[Array, float]:
        """Minimize the cost of the terms with bounded steps; return the angles (T, hinges) and their cost.

        Args:
            base: (T, 7) position and orientation of the joint above the chain, as values of a free joint.
            x: (T, hinges) start.
            terms: The targets of the chain.
            bounds: (T - 1, hinges) largest step of each angle, radians.
            smoothness: Weight of the squared steps.
        """
        x = np.clip(x, self.lower, self.upper)
        e, slopes = self.residuals(base, x, terms)
        cost = _cost(e, x, bounds, smoothness)

        def step(blocks: Array, gradient: Array, box: _Box, damping: float) -> tuple[tuple[Array, Array, Array], float]:
            trial = _nearby(blocks, gradient, damping, box, bounds, smoothness)
            e, slopes = self.residuals(base, trial, terms)
            return (trial, e, slopes), _cost(e, trial, bounds, smoothness)

        damping = Damping(least=_DAMPING, most=_MOST_DAMPING, after_failure=1e-2)
        for _ in range(_STEPS):
            back = np.swapaxes(slopes, 1, 2)
            blocks, gradient = back @ slopes, (back @ e[:, :, None])[:, :, 0]
            low, high = np.maximum(self.lower, x - _LARGEST), np.minimum(self.upper, x + _LARGEST)
            better = damping.descend(cost, partial(step, blocks, gradient, _Box(x, low, high)))
            if better is None:
                break
            gained = cost - better[1]
            (x, e, slopes), cost = better
            if gained <= ENOUGH * cost + FINE * len(x):
                break
        return within_steps(x, bounds), cost


def _cost(e: Array, x: Array, bounds: Array, smoothness: float) -> float:
    """Return the cost summed over all frames."""
    way = np.diff(x, axis=0)
    beyond = np.maximum(np.abs(way) - bounds, 0.0)
    return float(np.sum(e * e) + smoothness * np.sum(way * way) + BEYOND * np.sum(beyond * beyond))


class _Box(NamedTuple):
    """Angles (T, n), with the bounds of the box in which the angles may be after a step."""

    x: Array
    low: Array
    high: Array


def _nearby(blocks: Array, gradient: Array, damping: float, box: _Box, bounds: Array, smoothness: float) -> Array:
    """Minimize the quadratic model of the cost in a box, (T, n).

    Repeated solves find the angles at the box's bounds and the steps beyond their bounds (a semismooth Newton method):
    each solve holds the angles and steps that the previous solve found at their bounds.

    Args:
        blocks: (T, n, n) Gauss-Newton matrices of the terms.
        gradient: (T, n) minus half the gradient of the terms.
        damping: Damping relative to the curvature of each angle.
        box: The angles and their box.
        bounds: (T - 1, n) largest steps.
        smoothness: Weight of squared steps.
    """
    x, low, high = box
    count, n = x.shape
    diagonal = np.einsum("tii->ti", blocks)
    damped = diagonal + damping * np.maximum(diagonal + 2.0 * smoothness, _LEAST)
    band = np.zeros((n + 1, count, n))
    for k in range(1, n):
        band[k, :, : n - k] = np.einsum("tii->ti", blocks[:, k:, : n - k])
    # right-hand side for angles as unknowns, instead of changes of angles
    right = gradient + np.einsum("tij,tj->ti", blocks, x) + (damped - diagonal) * x
    y, side, far = x, np.zeros(x.shape), np.zeros(bounds.shape)
    for _ in range(_SETS):
        tie = np.where(far != 0.0, smoothness + BEYOND, smoothness)
        band[0], goal = damped, right.copy()
        band[0, :-1] += tie
        band[0, 1:] += tie
        band[n, :-1] = -tie
        push = BEYOND * far * bounds
        goal[1:] += push
        goal[:-1] -= push
        held = side != 0.0
        band[0, held] += _HELD
        goal += _HELD * np.where(side > 0.0, high, np.where(side < 0.0, low, 0.0))
        y = solve_banded(band.reshape(n + 1, -1).copy(), goal)
        way = np.diff(y, axis=0)
        new_far = np.where(way > bounds, 1.0, np.where(way < -bounds, -1.0, 0.0))
        # release held angles that move back inside
        new_side = np.where(y > high, 1.0, np.where(y < low, -1.0, 0.0))
        same = (new_far == far).all() and (new_side == side).all()
        far, side = new_far, new_side
        if same:
            break
    return np.clip(y, low, high)


def is_hinge(joint: Joint) -> bool:
    """Return whether a joint is a hinge and not a mimic joint."""
    return joint.kind is Kind.HINGE and joint.mimic is None


def _rotation_vector(a: Array, b: Array) -> Array:
    """Return the rotation vectors (T, 3), world axes, from rotations a to b, (T, 3, 3)."""
    turn = b @ np.swapaxes(a, 1, 2)
    w = 0.5 * np.stack([turn[:, i, j] - turn[:, j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=1)
    sine, cosine = np.sqrt(np.sum(w * w, axis=1)), 0.5 * (np.einsum("tii->t", turn) - 1.0)
    w *= np.where(sine > _SMALL, np.arctan2(sine, cosine) / np.maximum(sine, _SMALL), 1.0)[:, None]
    if (back := cosine < _BACK).any():  # near a half turn, the antisymmetric part does not determine the axis
        w[back] = -rotation_between(*(matrix_to_quat(np.swapaxes(R[back], 1, 2)) for R in (a, b)))
    return w


def keeps_steps(x: Array, bounds: Array) -> bool:
    """Return whether all steps between frames of values (T, n) are within bounds (T - 1, n)."""
    return bool((np.abs(np.diff(x, axis=0)) <= bounds + ROUNDED).all())


def within_steps(x: Array, bounds: Array) -> Array:
    """Change values (T, n) by the smallest possible largest change so that all steps are within bounds (T - 1, n).

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


def base_values(skeleton: Skeleton, q: Array, row: int) -> Array:
    """Return world position and orientation of a joint, (T, 7), as values of a free joint; row -1 is the world."""
    if row < 0:
        return np.tile((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (len(q), 1))
    frames = world_frames(skeleton, q)[:, row]
    return np.concatenate([frames[:, 9:], matrix_to_quat(frames[:, :9].reshape(-1, 3, 3))], axis=1)
