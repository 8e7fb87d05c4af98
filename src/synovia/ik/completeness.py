"""Decide whether a list of branches is complete.

The closed forms and the elimination find the roots of polynomials. Roots meet at singular poses. There, a rounding
error ε moves them by about √ε, so a branch may exceed the limits, or roots may vanish. So all candidates are listed
again without limits and tolerances, and Newton's method refines each of them. The list is complete if no branch is
singular, and every branch that is not clearly outside the limits is listed.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final, Protocol

import numpy as np

from synovia.goals import Goal
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    KIND,
    LOWER,
    RATIO,
    SCALAR,
    TOLERANCE,
    TOLERANCE_ANGLE,
    UPPER,
    VARIABLE,
)
from synovia.kernels.packing import table_of
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.problem import Reduced

SLACK: Final = 1e-9  # radians, or length scales: excess over a limit that counts as rounding
_UNSURE: Final = 1e-8  # radians, or length scales: refined branches that exceed limits by less must be listed
_SINGULAR: Final = 1e-5  # a pose is singular if its least singular value (lengths in length scales) is below this
_RANK: Final = 1e-4  # an arm is regular if its least singular value is above this at one of a few random poses
_POSES: Final = 8
_STEPS: Final = 30  # largest number of steps of Newton's method
_LARGEST: Final = 0.5  # radians, or length scales: largest step of a joint value
_EXACT: Final = 1e-13  # radians, or length scales: Newton's method ends at a smaller error
_MET: Final = 1e-11  # largest error of a refined pose that meets its target
_NEAR: Final = 1e-5  # largest error of a pose that may meet its target apart from rounding
_SAME: Final = 1e-4  # radians, or length scales: poses nearer than this count as equal
_FEW: Final = 8  # number of steps after which Newton's method gives up if the error is above ``_FAR``
_FAR: Final = 0.1
_WHOLE: Final = 2.0 * math.pi


class Branching(Protocol):
    """The part of ``CompiledProblem`` that this module uses but cannot import."""

    reduced: Reduced
    skeleton: Skeleton
    ints: Ints
    floats: Array
    goals: tuple[Goal, ...]
    places: slice
    rest: Array
    reach: float

    @property
    def rows(self) -> tuple[int, ...]:
        """Row of the joint of each goal."""
        ...


class Limits:
    """Limits of the hinges and slides of a problem, with slack for rounding.

    Args:
        problem: A problem that lists branches.
        slack: Whether to widen the limits by ``SLACK`` for the kernel, because it has no slack of its own.
    """

    def __init__(self, problem: Branching, *, slack: bool) -> None:
        """Store the indices, limits and periods of the joint values, and the packed floats with other limits."""
        reduced = problem.reduced
        scalar = np.flatnonzero(reduced.variables[:, BLOCK] == SCALAR)
        self._skeleton, self._places = problem.skeleton, problem.places
        self.at = reduced.variables[scalar, BLOCK_Q].astype(int)
        self.low, self.high = reduced.limits[scalar, LOWER], reduced.limits[scalar, UPPER]
        ends, columns = [*np.flatnonzero(np.diff(self.at, prepend=-2) != 1).tolist(), len(self.at)], self.at.tolist()
        self._runs = [  # slices of results are faster than lists of columns
            (
                slice(problem.places.start + columns[a], problem.places.start + columns[b - 1] + 1),
                self.low[a:b],
                self.high[a:b],
            )
            for a, b in pairwise(ends)
        ]
        self.units, self.periods = np.ones(len(scalar)), np.full(len(scalar), math.inf)
        for i, k in enumerate(scalar.tolist()):
            users = np.flatnonzero(reduced.rows[:, VARIABLE] == k)
            hinges = [Kind(int(reduced.rows[row, KIND])) is Kind.HINGE for row in users]
            if not all(hinges):
                self.units[i] = problem.reach
            elif len(users) == 1 and reduced.couple[users[0], RATIO]:
                self.periods[i] = _WHOLE / abs(float(reduced.couple[users[0], RATIO]))
        self.floats = problem.floats.copy()
        self.free = problem.floats.copy()  # without limits, to list all candidates
        if slack:
            table = table_of(problem.ints, self.floats, "limits")
            table[scalar, LOWER] -= SLACK * self.units
            table[scalar, UPPER] += SLACK * self.units
        table = table_of(problem.ints, self.free, "limits")
        table[scalar, LOWER], table[scalar, UPPER] = -math.inf, math.inf
        self.free[[TOLERANCE, TOLERANCE_ANGLE]] = math.inf

    def clamp(self, rows: Array) -> Array:
        """Clamp the joint values in rows of results, in place; return the rows."""
        for columns, low, high in self._runs:
            values = rows[:, columns]
            np.maximum(values, low, out=values)
            np.minimum(values, high, out=values)
        self._skeleton.follow(rows[:, self._places])
        return rows

    def excess(self, q: Array) -> float:
        """Return the largest excess over the limits, radians or length scales, after the best whole turns."""
        x = q[self.at]
        out = np.maximum(np.maximum(self.low - x, x - self.high), 0.0)
        for i in np.flatnonzero((out > 0.0) & np.isfinite(self.periods)):
            whole = math.copysign(float(self.periods[i]), self.low[i] - x[i])  # towards the limits
            turns = out[i] / abs(whole)
            values = [x[i] + whole * count for count in (math.floor(turns), math.ceil(turns))]
            out[i] = min(max(self.low[i] - y, y - self.high[i], 0.0) for y in values)
        return float((out / self.units).max(initial=0.0))

    def away(self, poses: Array, q: Array) -> Array:
        """Return the largest joint difference of each of some poses (n, nq) from q, apart from whole turns."""
        d = poses[:, self.at] - q[self.at]
        turning = np.isfinite(self.periods)
        d[:, turning] -= self.periods[turning] * np.round(d[:, turning] / self.periods[turning])
        return np.abs(d / self.units).max(axis=1)


def has_rank(problem: Branching, limits: Limits) -> bool:
    """Return whether a random pose of the chain is regular; if none is, a reached target has infinitely many poses."""
    rng = np.random.default_rng(0)
    for _ in range(_POSES):
        q = problem.rest[0].copy()
        q[limits.at] = rng.uniform(-math.pi, math.pi, len(limits.at)) * limits.units
        J = _jacobian(problem, limits, Pose(problem.skeleton, problem.skeleton.follow(q)))
        if J.shape[1] == J.shape[0] and np.linalg.svd(J, compute_uv=False)[-1] > _RANK:
            return True
    return False


def has_all(problem: Branching, limits: Limits, rows: Array, candidates: Array) -> bool:
    """Return whether rows of results have all branches within the limits.

    Args:
        problem: The problem, of one goal with a position and a rotation.
        limits: Its limits.
        rows: The branches that are listed.
        candidates: Results of all candidates, without limits and tolerances.
    """
    target = candidates[:, problem.places.stop + 2 * len(problem.goals) :][:, :16].reshape(-1, 4, 4)
    for row, wanted in zip(candidates, target, strict=True):
        q, before, error = _refined(problem, limits, row[problem.places].copy(), wanted)
        if error > _NEAR and before > _NEAR:
            continue  # no pose that meets the target
        pose = Pose(problem.skeleton, q)
        if error > _MET or np.linalg.svd(_jacobian(problem, limits, pose), compute_uv=False)[-1] < _SINGULAR:
            return False
        if limits.excess(q) < _UNSURE and limits.away(rows[:, problem.places], q).min(initial=math.inf) > _SAME:
            return False
    return True


def _refined(problem: Branching, limits: Limits, q: Array, target: Array) -> tuple[Array, float, float]:
    """Return the pose near q that meets a target, by Newton's method, and the errors of q and of this pose."""
    before = error = best = math.inf
    out = q
    for step in range(_STEPS):
        pose = Pose(problem.skeleton, q)
        e = _error(problem, pose, target)
        error = float(np.linalg.norm(e))
        before = error if step == 0 else before
        if not math.isfinite(error):
            break
        if error < best:
            out, best = q, error
        if error < _EXACT or (step >= _FEW and error > _FAR) or (step > 1 and best < _MET):
            break
        move = np.linalg.lstsq(_jacobian(problem, limits, pose), e, rcond=1e-12)[0]
        move *= min(1.0, _LARGEST / max(float(np.abs(move).max()), 1e-300))
        q = q.copy()
        q[limits.at] += move * limits.units
        q = problem.skeleton.follow(q)
    return out, before, best


def _error(problem: Branching, pose: Pose, target: Array) -> Array:
    """Return the error (6,): displacement from the joint's origin to the target (length scales), rotation vector."""
    wanted = target @ np.linalg.inv(problem.goals[0].frame)
    now = pose.transform(problem.rows[0])
    R = wanted[:3, :3] @ now[:3, :3].T
    axis = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine, cosine = float(np.linalg.norm(axis)), 0.5 * (float(np.trace(R)) - 1.0)
    turn = axis * (math.atan2(sine, cosine) / sine) if sine > 1e-9 and cosine < 0.99 else axis
    if cosine < 0.0 and sine <= 1e-9:
        turn = np.array([math.pi, 0.0, 0.0])
    return np.concatenate([(wanted[:3, 3] - now[:3, 3]) / problem.reach, turn])


def _jacobian(problem: Branching, limits: Limits, pose: Pose) -> Array:
    """Return the Jacobian of the goal's joint, lengths in length scales."""
    columns = [problem.skeleton.dof_columns[int(row)][0] for row in problem.reduced.owner]
    J = pose.jacobian(problem.rows[0])[:, columns]
    J[:3] /= problem.reach
    return J * limits.units if len(limits.units) == J.shape[1] else J
