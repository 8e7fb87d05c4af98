"""Targets that move while limits bind: the joints that can still choose make up for those that cannot.

If each joint went to the answer of a solver for itself, a joint that is late would leave the end effector beside its
target. So the goals of a tick are solved again, by their priorities, inside the box of its steps. The box has places
where joints would stop after the tick, relative to how their targets move: from where a joint stops after the lowest
velocity that its limits allow, to where it stops after the highest one. As the body can stop where it goes, it does not
overshoot; where limits do not bind, stops are at the targets, and so are the joints.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.obstacles import Places
from synovia.kernels.layout import TOP_SPEED
from synovia.model.geometry import Array
from synovia.servo.box import Box, Led
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback
from synovia.servo.probe import Probe
from synovia.servo.stops import Stops

_PRECISION: Final = 0.1  # part of the tolerance
_SLOWEST: Final = 0.1  # seconds from one move of targets to the next
_PATIENCE: Final = 1.5  # times that, without a move: then they stand still
_NEAR: Final = 0.1  # reaches, and half of the radians: a body that is farther behind goes by joints
_NEARER: Final = 0.02  # one that is on its way begins to follow
_FAST: Final = 0.2  # of the top speed of a joint, which the targets ask for; more slowly, joints keep up by themselves
_DRIFT: Final = 0.2  # part of the speeds that leads to the posture
_BEHIND: Final = 1e-9  # radians, length units: rounding
_LEAST: Final = 1e-300  # instead of no way


class Follow:
    """The goals of a tick in which targets move and limits bind.

    Args:
        ik: The problem.
        axes: The axes of the body.
        probe: The errors of its goals.
        stops: Where its axes stop after a tick.

    Attributes:
        place: Joint values to which the last tick led the body, (nq,).
        met: Whether they meet the goals.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes, probe: Probe, stops: Stops) -> None:
        """Build the problem of a tick."""
        tolerance = _PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]
        self._axes, self._probe, self._reach = axes, probe, ik.reach
        self._box, self._ahead = Box(ik, tolerance, axes), Led(ik, tolerance)
        self._units = np.where(axes.lengths, ik.reach, 1.0)
        self._stops = stops
        self.reset()

    def put(self, places: Places) -> None:
        """Put obstacles where they stand now."""
        self._box.put(places)
        self._ahead.put(places)

    def reset(self) -> None:
        """Begin anew, with targets that do not move."""
        self._moved = self._moved_before = -np.inf
        self._fast = False
        self._targets: Array | None = None
        self.applied = False
        self.place, self.met = self._axes.skeleton.rest_pose().q, False

    def move(self, targets: Array, time: float, way: Array) -> None:
        """Note that the targets (1, goals, 17) are left for others at this time, and how far that moves the axes."""
        self._targets = targets
        self._moved_before, self._moved = self._moved, time
        between = self._moved - self._moved_before
        self._fast = bool((np.abs(way) > _FAST * between * self._axes.table[:, TOP_SPEED]).any())

    def applies(self, q: Array, table: Array, time: float) -> bool:
        """Return whether the targets (1, goals, 17) move, and are near joint values q (nq,)."""
        between = self._moved - self._moved_before
        if not self._fast or not between <= _SLOWEST or time - self._moved > _PATIENCE * between:
            self.applied = False
            return False
        errors, near = self._probe.errors(q, table), _NEAR if self.applied else _NEARER
        self.applied = all(error.position <= near * self._reach and error.angle <= 2.0 * near for error in errors)
        return self.applied

    def lead(self, q: Array, posture: Array, table: Array, h: float) -> tuple[Array, Array]:
        """Return the poses (nq,) next to q that meet the targets of the tick before, and those of this one.

        From the first to the second, joints go to the posture with a part of their speed, if goals leave them free.

        Args:
            q: Joint values now, (nq,).
            posture: Joint values that meet the goals, (nq,).
            table: Targets, (1, goals, 17).
            h: Seconds.
        """
        axes = self._axes
        before = self._ahead.solve(q, q, table if self._targets is None else self._targets)
        way = axes.way(before, posture)
        share = (_DRIFT * h * axes.table[:, TOP_SPEED] / np.maximum(np.abs(way), _LEAST)).min(initial=1.0)
        self._targets = table
        return before, self._ahead.solve(before, axes.shifted(before, share * way), table)

    def refine(self, q: Array, there: Array, out: Array, h: float, table: Array, feedback: Feedback) -> None:
        """Change where a tick leads, if limits keep the body from where it goes.

        Call the kernel ``servo_tick`` with PROPOSE before.

        Args:
            q: Joint values now, (nq,).
            there: Those to which the joints go, (nq,).
            out: Those after the tick as each joint would go, (nq,); changed in place.
            h: Seconds.
            table: Targets, (1, goals, 17).
            feedback: What the robot has reported.
        """
        axes = self._axes
        self.place, self.met = feedback.body(there), True
        way, (stop, low, high) = axes.way(q, there), self._stops.ways(h)
        if (np.abs(way - stop) / self._units).max(initial=0.0) < _BEHIND:
            return
        self.place = feedback.body(axes.shifted(q, stop))
        self.met = self._box.refine(feedback.body(q), self.place, table, low, high)
        self._stops.lead(q, feedback.command(self.place), out, h)
