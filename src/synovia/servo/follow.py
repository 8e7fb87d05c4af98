"""Targets that move while limits bind: joints within their limits compensate for joints at their limits.

If joints moved independently to a solution, a late joint would leave the end effector off its target. So the goals of a
tick are solved again, by their priorities, inside the box of stops. The box contains the stops of joints after the
tick, relative to the motion of their targets: from the stop after the lowest velocity that the limits of a joint allow
to the stop after the highest one. As the body can stop in the box, it does not overshoot. Where limits do not bind, the
stops are at the targets, and so are the joints.
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

_PRECISION: Final = 0.1  # fraction of the tolerance
_SLOWEST: Final = 0.1  # seconds: largest period of target changes that counts as motion
_PATIENCE: Final = 1.5  # periods without a change, after which targets count as at rest
_NEAR: Final = 0.1  # length scales, and half of the radians: with a larger error, a following body stops following
_NEARER: Final = 0.02  # same units: with a smaller error, a body begins to follow
_FAST: Final = 0.2  # fraction of a joint's top speed: for slower targets, joints keep up independently
_DRIFT: Final = 0.2  # fraction of the top speeds for the motion to the posture
_BEHIND: Final = 1e-9  # radians, length scales: rounding
_LEAST: Final = 1e-300  # avoids division by zero


class Follow:
    """The goals of a tick in which targets move and limits bind.

    Args:
        ik: The problem.
        axes: The axes of the body.
        probe: Evaluates the errors of the goals.
        stops: The stops of the axes after a tick.

    Attributes:
        place: Joint values to which the last tick led the body, (nq,).
        met: Whether these joint values meet the goals.
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
        """Move obstacles to their present places."""
        self._box.put(places)
        self._ahead.put(places)

    def reset(self) -> None:
        """Restart with targets at rest."""
        self._moved = self._moved_before = -np.inf
        self._fast = False
        self._targets: Array | None = None
        self.applied = False
        self.place, self.met = self._axes.skeleton.rest_pose().q, False

    def move(self, targets: Array, time: float, way: Array) -> None:
        """Record the last targets (1, goals, 17), the time of their change, and the displacement of axes by it."""
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
        """Return poses (nq,) near q that meet the targets of the tick before, and the targets of this tick.

        From the first to the second, joints that goals leave free move to the posture with a fraction of their speed.

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
        """Change a tick if limits keep the body from its wanted joint values.

        Call the kernel ``servo_tick`` with PROPOSE before.

        Args:
            q: Joint values now, (nq,).
            there: Wanted joint values, (nq,).
            out: Joint values after the tick with independent joints, (nq,); changed in place.
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
