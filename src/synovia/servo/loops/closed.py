"""The loops of a body in a servo: closed poses, the paths between them, and whether the body is stuck.

Ticks keep loops closed by themselves, see ``kernels.servo.whole``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from synovia.kernels.layout import AXIS_ACCELERATION, AXIS_VELOCITY, TOP_ACCELERATION, TOP_JERK, TOP_SPEED
from synovia.model.change import blend
from synovia.model.geometry import Array, Bools
from synovia.model.loops.mechanism import INDEPENDENT, TIGHT, Mechanism
from synovia.model.pose import drawn_values
from synovia.servo.limits import Axes

_STEPS: Final = 20  # Newton steps to close a pose near a closed one
_TRACE: Final = 0.2  # radians, length scales: step along a path that is traced in advance
_TRACED: Final = 64  # largest number of these steps
_PROGRESS: Final = 0.1  # fraction of each step by which the remaining distance has to fall
_SAME: Final = 1e-6  # radians, length units: closer poses count as equal
_NEARER: Final = 0.999  # fraction of the last remaining distance: a smaller distance counts as progress
_PATIENCE: Final = 0.3  # seconds without progress, in addition to the time to turn around


class Closure:
    """The loops of a body.

    Args:
        axes: The axes of the body.
        moving: Rows of the skeleton that may move.
        mechanism: The loops.
    """

    def __init__(self, axes: Axes, moving: Iterable[int], mechanism: Mechanism) -> None:
        """Find the axes that move."""
        self._axes, self._table, self._mechanism = axes, axes.table, mechanism
        self._skeleton = axes.skeleton
        self._moves: Bools = np.isin(axes.joints, [*moving])
        self._held = None if self._moves.all() else ~self._moves[axes.firsts]
        self._units = np.where(axes.lengths, mechanism.reach, 1.0)
        self._left, self._wanted, self._waited = 0.0, axes.skeleton.rest_pose().q, 0.0

    def reset(self, q: Array) -> Array:
        """Restart at joint values (nq,), and return them with closed loops.

        The motion of the axes is changed to one that keeps the loops closed.
        """
        closed = self._beside(q, np.zeros(len(self._table)))
        q = q if closed is None else closed
        tangent = self._tangent(q)
        for column in (AXIS_VELOCITY, AXIS_ACCELERATION):
            self._table[:, column] = tangent @ (self._table[:, column] * self._moves)
        self._left, self._wanted, self._waited = 0.0, q, 0.0
        return q

    def watch(self, q: Array, wanted: Array, h: float) -> None:
        """Record for how long the body, at q (nq,) now, has not come nearer to unchanged wanted joint values."""
        left = float(np.abs(self._axes.way(q, wanted))[self._moves].max(initial=0.0))
        if left < _NEARER * self._left or left <= _SAME or not np.array_equal(wanted, self._wanted):
            self._left, self._wanted, self._waited = left, wanted.copy(), 0.0
        else:
            self._waited += h

    @property
    def stuck(self) -> bool:
        """Whether the body has not come nearer to its goal for longer than it takes to turn around."""
        v, A, J = (self._table[self._moves, column] for column in (TOP_SPEED, TOP_ACCELERATION, TOP_JERK))
        if self._waited <= _PATIENCE + 2.0 * float((v / A + A / J).max(initial=0.0)):
            return False
        closed = self._mechanism.lacks(self._wanted[None]).max(initial=0.0) <= _SAME
        return bool(closed)  # a body near an unreachable pose with open loops is not stuck

    def beside(self, q: Array, share: float, seed: int) -> Array:
        """Return a closed pose (nq,) at a fraction ``share`` of a closed path from joint values q to a random pose."""
        rows = np.unique(self._axes.joints[self._moves]).tolist()
        end = blend(self._skeleton, q[None], drawn_values(self._skeleton, 1, seed, rows=rows, around=q), share)
        return self._mechanism.way(q[None], end, ~self._mechanism.mobility.dependent)[0][0]

    def connects(self, q: Array, to: Array) -> bool:
        """Return whether a path with closed loops leads from joint values q to others, (nq,)."""
        for _ in range(_TRACED):
            way = self._axes.way(q, to) * self._moves
            far = float((np.abs(way) / self._units).max(initial=0.0))
            place = self._beside(q, min(_TRACE / max(far, _TRACE), 1.0) * way)
            if place is None:
                return False
            if far <= _TRACE:
                return bool(np.abs(self._axes.way(place, to)).max(initial=0.0) <= _SAME)
            left = float((np.abs(self._axes.way(place, to)) / self._units).max(initial=0.0))
            if left > far - _PROGRESS * _TRACE:
                return False
            q = place
        return False

    def _tangent(self, q: Array) -> Array:
        """Return the projection (n, n) of velocities onto the velocities that keep the loops closed."""
        J = self._mechanism.rows(q[None])[1][0] * self._moves
        _, values, ways = np.linalg.svd(J, full_matrices=False)
        ways = ways[values > INDEPENDENT]
        return np.eye(len(self._table)) - (ways.T * self._units[:, None]) @ (ways / self._units)

    def _beside(self, q: Array, way: Array) -> Array | None:
        """Return the closed pose near q shifted by a displacement of each axis, (nq,); None if it cannot be closed."""
        guess = self._axes.shifted(q, way)
        inside = np.empty_like(guess)
        self._skeleton.validate(guess, inside)
        poses, lacks = self._mechanism.run(inside[None], _STEPS, self._held)
        return poses[0] if lacks.max(initial=0.0) <= TIGHT else None
