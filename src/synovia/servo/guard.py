"""Clearance in every tick: a body only goes where it can brake without coming too near to anything.

A tick is allowed if the way through it, and on to the place where the body stops if it brakes afterwards, keeps the
distances of all clearance goals (see ``ik.ways``).

A tick that is not allowed is chosen anew: the goals are solved in the box of its stops, with clearance above them, so
that the body slides along what is in its way. If that tick is not allowed either, the body brakes, which the tick
before has allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from synovia.facade import IK
from synovia.ik.ways import ClearWays
from synovia.kernels.layout import ADVANCE, PROPOSE, STOP, TOP_ACCELERATION
from synovia.model.geometry import Array
from synovia.servo.box import Box
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback
from synovia.servo.stops import Stops

_MOST_TICKS: Final = 4  # from one pose to the next, of a body that brakes
_DOUBLED: Final = 64  # after so many poses, the next ones are twice as far apart
_MOMENT: Final = 1e-3  # seconds, short enough for rotations to be small
_STILL: Final = 1e-6  # radians, length units: then it stands
_PRECISION: Final = 0.1  # part of the tolerance to which goals are solved in a tick
_SLACK: Final = 0.5  # of the tolerance: a way may come so much nearer, or braking and sliding would get stuck


class Guard:
    """What is left of the distances of clearance goals, along the ways of a body.

    Args:
        ik: The problem.
        axes: The axes of the body.
        stops: Where they stop after a tick.
        kernels: Returns the kernels of a tick, of a reset and of the place where it stops, for another table of axes.

    Attributes:
        left: How much more than its distance the nearest pair is apart at the last pose, length units; at most that far
            as pairs are seen.
        blocked: Whether clearance has changed the last tick.
    """

    def __init__(self, ik: IK, axes: Axes, stops: Stops, kernels: Callable[[Array], tuple[Any, Any, Any]]) -> None:
        """Build the problems that measure distances and solve a tick."""
        self._ways = ClearWays(ik)
        self._axes, self._stops = axes, stops
        self._table = axes.table.copy()
        self._tick, _, self._rest = kernels(self._table)
        self._slack = _SLACK * ik.tolerance[0]
        self._box = Box(ik, (_PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]), axes)
        self.left, self.blocked = 0.0, False

    def reset(self, q: Array) -> None:
        """Begin anew at joint values (nq,)."""
        self.note(q)
        self.blocked = False

    def allows(self, q: Array, out: Array, h: float, feedback: Feedback) -> bool:
        """Return whether the body may take a tick from joint values q (nq,) to others, which has been advanced.

        The tick takes the time h. If it is allowed, ``left`` is that at ``out``.
        """
        least = -self._slack
        left = self._ways.along(feedback.body(q), feedback.body(out), self.left, least)
        if left < least or not self._can_brake(out, left, least, h, feedback):
            return False
        self.left = left
        return True

    def note(self, q: Array) -> None:
        """Measure what is left at joint values (nq,) of the robot, where no way leads from the last ones."""
        self.left = self._ways.left(q)

    @property
    def too_near(self) -> bool:
        """Whether the body is too near to something already."""
        return self.left < -self._slack

    def comes_away(self, out: Array, feedback: Feedback) -> bool:
        """Return whether a body that is too near is not nearer at joint values (nq,); then ``left`` is that there."""
        left = self._ways.left(feedback.body(out))
        if left < self.left - self._slack:
            return False
        self.left = left
        return True

    def _can_brake(self, q: Array, left: float, least: float, h: float, feedback: Feedback) -> bool:
        """Return whether the body keeps its distances if it brakes from joint values q (nq,)."""
        self._table[:] = self._axes.table
        end = q.copy()
        self._rest(q, end)
        if self._ways.length(feedback.body(q), feedback.body(end)) < left:
            return True  # joints brake without turning back, so no place on the way is farther
        q, count = q.copy(), 0
        step = self._few_ticks(q, h) * h
        while True:
            out = np.empty_like(q)
            self._tick(q, q, q, out, step, PROPOSE | ADVANCE | STOP)
            begin, end = feedback.body(q), feedback.body(out)
            length = self._ways.length(begin, end)
            if left - length > 0.0:
                left -= length  # no place on this way is nearer
            else:
                left = self._ways.along(begin, end, left, least)
            if left < least:
                return False
            if np.abs(self._axes.way(q, out)).max(initial=0.0) < _STILL:
                return True
            q, count = out, count + 1
            if count % _DOUBLED == 0:
                step *= 2.0

    def _few_ticks(self, q: Array, h: float) -> int:
        """Return how many ticks of time h a body may brake at once, so that its way from q (nq,) is nearly straight."""
        gain = _MOMENT * self._axes.table[:, TOP_ACCELERATION]
        bend = self._ways.length(q, self._axes.shifted(q, gain)) / _MOMENT / 8.0  # of the way of a second, at most
        if not 0.0 < bend < np.inf:
            return 1
        return int(np.clip(np.sqrt(self._slack / bend) / h, 1, _MOST_TICKS))

    def refine(self, q: Array, out: Array, h: float, table: Array, feedback: Feedback) -> None:
        """Choose a tick that was proposed anew, so that the body stops where it keeps its distances.

        Args:
            q: Joint values now, (nq,).
            out: Those after the tick, (nq,); changed in place.
            h: Seconds.
            table: Targets, (1, goals, 17).
            feedback: What the robot has reported.
        """
        stop, low, high = self._stops.ways(h)
        end = feedback.body(self._axes.shifted(q, stop))
        self._box.refine(feedback.body(q), end, table, low, high)
        self._stops.lead(q, feedback.command(end), out, h)
