"""Targets that move while limits bind: the joints that can still choose make up for those that cannot.

If each joint went to the answer of a solver for itself, a joint that is late would leave the end effector beside its
target. So the goals of a tick are solved again inside the box of its steps, by their priorities. The box is made so
that the body does not overshoot: each joint goes to a pose near by that meets the goals, and as it moves with that pose
it may stop as far beside it as the joint that is farthest behind. Without one that is behind, all joints meet it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from synovia.facade import IK
from synovia.kernels.layout import NEXT, TOP_SPEED
from synovia.model.geometry import Array
from synovia.model.tables import writable
from synovia.servo.box import Box, Led
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback
from synovia.servo.probe import Probe

_PRECISION: Final = 0.1  # part of the tolerance
_SLOWEST: Final = 0.1  # seconds from one move of targets to the next
_PATIENCE: Final = 1.5  # times that, without a move: then they stand still
_NEAR, _NEAR_ANGLE = 0.1, 0.2  # reaches, radians: a body that is farther behind goes by joints
_DRIFT: Final = 0.2  # part of the speeds that leads to the posture
_ROOM: Final = 1.0  # part of the way of the joint that is farthest behind
_BEHIND: Final = 1e-9  # radians, length units: rounding
_LEAST: Final = 1e-300  # instead of no way


class Follow:
    """The goals of a tick in which targets move and limits bind.

    Args:
        ik: The problem.
        axes: The axes of the body.
        probe: The errors of its goals.

    Attributes:
        place: Joint values to which the last tick led the body, (nq,); they meet the goals if limits allow it.
    """

    def __init__(self, ik: IK, axes: Axes, probe: Probe) -> None:
        """Build the problem of a tick, and load the kernels."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.tick import servo_choose, servo_miss

        tolerance = _PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]
        self._axes, self._probe, self._reach = axes, probe, ik.reach
        self._box, self._ahead = Box(ik, tolerance, axes), Led(ik, tolerance)
        self._units = np.where(axes.lengths, ik.reach, 1.0)
        t, none, q = axes.skeleton.tables, axes.table[:0], np.zeros(0)
        tables = writable(t.variables, t.followers, t.coupling)
        choose = ready(servo_choose, *(one[:0] for one in tables), none, q, q, q, 1.0)
        self._choose = partial(choose, *tables, axes.table)
        self._misses = np.zeros(len(axes.table))
        self._write_misses = partial(ready(servo_miss, none, q, 1.0), axes.table, self._misses)
        self.reset()

    def reset(self) -> None:
        """Begin anew, with targets that do not move."""
        self._moved = self._moved_before = -np.inf
        self._targets: Array | None = None
        self.place = self._axes.skeleton.rest_pose().q

    def move(self, targets: Array, time: float) -> None:
        """Note that the targets (1, goals, 17) are left for others at this time."""
        self._targets = targets
        self._moved_before, self._moved = self._moved, time

    def applies(self, q: Array, table: Array, time: float) -> bool:
        """Return whether the targets (1, goals, 17) move, and are near joint values q (nq,)."""
        between = self._moved - self._moved_before
        if not between <= _SLOWEST or time - self._moved > _PATIENCE * between:
            return False
        errors = self._probe.errors(q, table)
        return all(error.position <= _NEAR * self._reach and error.angle <= _NEAR_ANGLE for error in errors)

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
        self.place = feedback.body(there)
        self._write_misses(h)
        behind = (np.abs(self._misses) / self._units).max(initial=0.0)
        if behind < _BEHIND:
            return
        way, room, ends = axes.way(q, there), _ROOM * behind * self._units, np.empty((2, len(axes.table)))
        for end, side in zip(ends, (-room, room), strict=True):
            self._choose(q, axes.shifted(q, way + side), out.copy(), h)
            end[:] = h * axes.table[:, NEXT]
        self.place = feedback.body(out)
        self._box.refine(feedback.body(q), self.place, table, ends.min(0), ends.max(0))
        out[:] = feedback.command(self.place)
