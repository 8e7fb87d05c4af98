"""Clearance in every tick: a body only goes where it can brake without coming too near to anything.

A tick is allowed if its motion, and the braking motion after it, keep the distances of all clearance goals (see
``ik.ways``).

If a tick is not allowed, another one is chosen: the goals are solved in the box of stops, with clearance at a higher
priority, so that the body slides along the obstacle. If that tick is not allowed either, the body brakes, which the
tick before has allowed. The next ticks are chosen in the same manner: otherwise the body would turn towards the
obstacle and brake again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.obstacles import Places
from synovia.ik.ways import ClearWays
from synovia.kernels.layout import PLAN_FIRST, PLAN_LAST, PLAN_VELOCITY, TOP_ACCELERATION, TOP_SPEED, WAY_TIME
from synovia.model.geometry import Array
from synovia.servo.box import Box
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback
from synovia.servo.stops import Stops

_PRECISION: Final = 0.1  # fraction of the tolerance to which goals are solved in a tick
_SLIDE: Final = 0.025  # seconds of sliding after a tick that was not allowed
_LONGEST: Final = 1.5  # factor of the least time of a stop of the whole body
_SLACK: Final = 0.5  # fraction of the tolerance: a motion may come nearer by this, or the body would get stuck


class Guard:
    """The remaining clearances of clearance goals, along the motion of a body.

    Args:
        ik: The problem.
        axes: The axes of the body.
        stops: The stops of these axes after a tick.

    Attributes:
        left: Lower bound of the remaining clearance (distance minus required distance) of each pair at the last pose,
            length units.
        blocked: Whether clearance has changed the last tick.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes, stops: Stops) -> None:
        """Build the problems that measure distances and solve a tick."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.clear import tick_is_clear

        self._slack = _SLACK * ik.tolerance[0]
        self.ways = ways = ClearWays(ik, self._slack)
        self._axes, self._stops = axes, stops
        self._box = Box(ik, (_PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]), axes)
        self.left, self.blocked, self._slide = ways.tables["left"], False, 0.0
        self._is_clear = partial(ready(tick_is_clear, *ways.packed, axes.table[:0]), *ways.packed)

    def reset(self, q: Array) -> None:
        """Restart at joint values (nq,)."""
        self.ways.tables["least"][:] = -self._slack
        self.note(q)
        self.blocked, self._slide = False, 0.0

    def put(self, places: Places, q: Array) -> None:
        """Move obstacles to their present places, and measure clearances at joint values (nq,) of the robot.

        A pair that an obstacle has brought too near may stay so near, but not come nearer. A pair that the obstacle has
        left keeps its whole distance again.
        """
        self.ways.put(places)
        self.left[:] = self.ways.left(q)
        self.ways.tables["least"][:] = np.minimum(self.left, 0.0) - self._slack
        self._box.put(places)

    def begin_slide(self) -> None:
        """Begin to slide after a tick that was not allowed, unless the body slides already."""
        self._slide = self._slide or _SLIDE

    def slides(self, h: float) -> bool:
        """Return whether the body still slides in the next tick, of time h."""
        self._slide = max(self._slide - h, 0.0)
        return self._slide > 0.0

    def allows(self, q: Array, out: Array, h: float, feedback: Feedback) -> bool:
        """Return whether the body may take a tick of time h from joint values q (nq,) to ``out`` (nq,).

        The axes must have been advanced by the tick. If it is allowed, ``left`` is updated to ``out``.
        """
        ways, tables = self.ways, self.ways.tables
        if not ways.bounded:
            ways.reach_to(self._farthest(feedback.body(q), feedback.body(out)))
        tables["begin"][:], tables["end"][:] = q, out
        tables["offset"][:] = 0.0 if feedback.offset is None else feedback.offset
        tables["numbers"][WAY_TIME] = h
        return bool(self._is_clear(self._axes.table))

    def begin_tick(self, q: Array, h: float, feedback: Feedback) -> None:
        """Prepare a tick of time h by levels from joint values q (nq,)."""
        here, ways = feedback.body(q), self.ways
        if feedback.found is not None:  # the measured offset may have changed since the last tick
            self.note(here)
        if not ways.bounded:
            table = self._axes.table
            way = table[:, TOP_SPEED] * (h + _LONGEST * (table[:, TOP_SPEED] / table[:, TOP_ACCELERATION]).max())
            ways.reach_to(np.maximum(*(np.abs(self._axes.shifted(here, sign * way)) for sign in (-1.0, 1.0))))

    def _farthest(self, q: Array, out: Array) -> Array:
        """Return the largest magnitude of joint values (nq,) in a tick from q to ``out`` and in braking after it."""
        table = self._axes.table
        speed = np.maximum(np.abs(table[:, PLAN_VELOCITY]), table[:, TOP_SPEED])
        way = speed * table[:, PLAN_FIRST : PLAN_LAST + 1].sum(axis=1)
        ends = [np.abs(self._axes.shifted(out, sign * way)) for sign in (-1.0, 1.0)]
        return np.maximum.reduce([np.abs(q), np.abs(out), *ends])

    def note(self, q: Array) -> None:
        """Measure clearances at joint values (nq,) of the robot, without a motion from the last pose.

        Pairs that are too near there may stay so near, but not come nearer.
        """
        self.left[:] = self.ways.left(q)
        least = self.ways.tables["least"]
        least[:] = np.where(self.left < least, self.left - self._slack, least)

    @property
    def state(self) -> tuple[Array, Array]:
        """Copies of the remaining and the required clearance of each pair."""
        return self.left.copy(), self.ways.tables["least"].copy()

    @state.setter
    def state(self, state: tuple[Array, Array]) -> None:
        """Restore a state."""
        self.left[:], self.ways.tables["least"][:] = state

    @property
    def too_near(self) -> bool:
        """Whether the body is too near to something now."""
        return bool(self.left.min(initial=0.0) < -self._slack)

    def refine(self, q: Array, out: Array, h: float, table: Array, feedback: Feedback) -> None:
        """Replace a proposed tick by one whose stop keeps the distances.

        Args:
            q: Joint values now, (nq,).
            out: Joint values after the tick, (nq,); changed in place.
            h: Seconds.
            table: Targets, (1, goals, 17).
            feedback: What the robot has reported.
        """
        stop, low, high = self._stops.ways(h)
        end = feedback.body(self._axes.shifted(q, stop))
        self._box.refine(feedback.body(q), end, table, low, high)
        self._stops.lead(q, feedback.command(end), out, h)


class ClosedGuard:
    """The remaining clearances of clearance goals, along the poses of a body with loops; see ``closed``.

    Args:
        ik: The problem.
        body: Returns the expected joint values of the robot for commanded joint values, (..., nq).

    Attributes:
        blocked: Whether clearance has changed the last tick.
    """

    def __init__(self, ik: CompiledProblem, body: Callable[[Array], Array]) -> None:
        """Build the problem that measures distances."""
        self._slack = _SLACK * ik.tolerance[0]
        self._ways, self._body = ClearWays(ik, self._slack), body
        self.blocked = False

    def reset(self, q: Array) -> None:
        """Restart at joint values (nq,); pairs that are too near there may not come nearer."""
        self._least = np.minimum(self._ways.left(self._body(q)), 0.0) - self._slack
        self.blocked = False

    def note(self, q: Array) -> None:
        """Measure clearances at joint values (nq,) after a tick; pairs that have moved apart may not come back."""
        left = np.minimum(self._ways.left(self._body(q)), 0.0) - self._slack
        self._least = np.maximum(self._least, left)
        self.blocked = False

    def put(self, places: Places, q: Array) -> None:
        """Move obstacles to their present places, and measure clearances at joint values (nq,)."""
        self._ways.put(places)
        self.reset(q)

    def keeps(self, poses: Array, _: Array) -> bool:
        """Return whether the motion through poses (T + 1, nq) keeps the distances."""
        left, blocked = self._ways.along(self._body(poses))
        clear = not blocked[1:].any() and bool((left[1:] >= self._least).all())
        self.blocked |= not clear
        return clear
