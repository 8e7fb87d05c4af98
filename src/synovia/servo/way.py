"""Goals that hold during the motion: planted feet, balance and planes in every tick, not only at its end.

If each joint of a body moves independently to another pose, goals that hold at both ends fail in between. So a
look-ahead body without goals moves first, with a fraction of the limits. In every tick, the goals are solved by their
priorities from its pose: goals that hold keep their targets, and the targets of the others are their places on the
look-ahead body. The real body follows the solutions. As these move as smoothly as the look-ahead body, the real body
follows without lag; where it still falls behind, the look-ahead body slows down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    ADVANCE,
    GIVEN,
    PLAN_FIRST,
    PLAN_LAST,
    PLAN_MIDDLE,
    PROPOSE,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    TRANSFORM_WIDTH,
)
from synovia.model.clip_tools.chart import Chart
from synovia.model.geometry import Array, Bools
from synovia.model.pose import inside_limits
from synovia.servo.box import Box, Led
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback
from synovia.servo.pace import Pace
from synovia.servo.stops import Stops

_PRECISION: Final = 0.1  # fraction of the tolerance to which goals hold during the motion
_RESTS: Final = 1e-12  # change of joint values in a tick: smaller ones count as rest
_SAME: Final = 1e-4  # change of joint values: closer solutions count as equal
_AWAY: Final = 16  # ticks in which goals that hold may lead the body away from its look-ahead, with decreasing weight
_SHARES: Final = {TOP_SPEED: 0.75, TOP_ACCELERATION: 0.4, TOP_JERK: 0.3}  # fractions of limits for the look-ahead body


class Way:
    """The look-ahead body, and the goals that hold during its motion.

    Args:
        ik: The problem.
        axes: The axes of the real body.
        stops: The stops of these axes after a tick.
        kernels: Returns the kernels of a tick, of a reset and of the stop, for another table of axes.

    Attributes:
        holds: Which goals hold, and so keep their targets.
        q: Joint values of the look-ahead body, (nq,).
        place: Joint values that the real body follows, (nq,).
        pace: Time scaling of the look-ahead body.
        arrived: Whether ``q`` and ``place`` no longer change.
    """

    def __init__(
        self, ik: CompiledProblem, axes: Axes, stops: Stops, kernels: Callable[[Array], tuple[Any, Any, Any]]
    ) -> None:
        """Build the problem of a tick."""
        tolerance = _PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]
        self._led = Led(ik, tolerance)
        self._box = Box(ik, tolerance, axes)
        self.holds: Bools = np.zeros(len(ik.goals), bool)
        ranks = np.array([goal.rank for goal in ik.goals])
        highest = min((rank for rank in ranks.tolist() if rank >= 0), default=0)
        self._first = ranks <= highest  # constraints and goals of the highest priority
        self._skeleton, self._chart = ik.skeleton, Chart.of(ik.skeleton)
        self._axes, self._stops, self._away = axes, stops, 0
        self._real, self._table = axes.table, axes.table.copy()
        self._tick, self._begin, self.rest = kernels(self._table)
        self.q = self.place = ik.default_start.values
        self.pace, self.arrived = Pace(axes.table), False
        self._targets = ik.writer.own

    def reset(self, q: Array, velocity: Array, h: float) -> None:
        """Restart at joint values q (nq,) with a velocity of each axis."""
        self._limit()
        self._begin(velocity, h)
        self.q = self.place = q.copy()
        self.pace, self.arrived, self._away = Pace(self._real), False, 0

    def put(self, places: Places) -> None:
        """Move obstacles to their present places; ``place`` is computed again."""
        self._led.put(places)
        self._box.put(places)
        self.arrived = False

    def _limit(self) -> None:
        """Give the look-ahead body its fraction of the limits."""
        for column, share in _SHARES.items():
            self._table[:, column] = share * self._real[:, column]

    def advance(self, wanted: Array, before: Array, h: float, parts: int, *, table: Array, places: Any) -> Array:
        """Take a tick of the look-ahead body, and return joint values for the real body, (nq,).

        Args:
            wanted: Joint values to go to, (nq,).
            before: Wanted joint values of the tick before, (nq,).
            h: Seconds.
            parts: Further parts of a tick, see ``kernels.layout``.
            table: Targets, (1, goals, 17).
            places: Returns the places of goals at joint values, for a table without targets of some goals.
        """
        self._limit()
        self._given = table, places
        out = np.empty_like(self.q)
        self._tick(self.q, wanted, before, out, h * self.pace.share, PROPOSE | ADVANCE | parts)
        moved = not np.array_equal(out, self.q)
        rests = bool(np.abs(out - self.q).max(initial=0.0) < _RESTS)
        start = self._predicted(out) if moved else self.place
        self.q = out
        if moved or not self.arrived:
            self._targets = self._leading(out, ~self.holds, table, places)
            place = self._led.solve(start, out, self._targets)
            self.holds &= self._first | ~self._led.missed
            if rests:  # prefer a solution that does not depend on the last one, if it is the same pose
                here = self._led.solve(out, out, self._targets)
                place = here if np.abs(here - place).max(initial=0.0) < _SAME else place
            self.arrived = not moved and np.array_equal(place, self.place)
            self.place = place
        return self.place

    def _predicted(self, q: Array) -> Array:
        """Return ``place``, (nq,), moved like the look-ahead body that goes to q: so straight limbs bend alike."""
        step = self._chart.between(self.q[None], q[None])
        return inside_limits(self._skeleton, self._skeleton.follow(self._chart.stepped(self.place[None], step)))[0]

    def refine(self, q: Array, out: Array, h: float, met: Bools, feedback: Feedback) -> None:
        """Change a tick in which the real body cannot follow, so that goals keep their priorities.

        The goals are solved in the box of stops, see ``follow``. The target of a goal that holds is its place at
        ``place``, which is its own target unless goals contradict each other. The target of another goal is its place
        at the proposed stop.

        Args:
            q: Joint values now, (nq,).
            out: Joint values after the tick with independent joints, (nq,); changed in place.
            h: Seconds.
            met: Which goals are met at q.
            feedback: What the robot has reported.
        """
        table, places = self._given
        holds = self.holds & (self._first | met)
        stop, low, high = self._stops.ways(h)
        begin, wish = feedback.body(q), feedback.body(self._axes.shifted(q, stop))
        table = self._leading(wish, ~holds, table, places)
        end = wish.copy()
        self._box.refine(begin, end, self._leading(self.place, holds, table, places), low, high)
        away = self._behind(end) > self._behind(begin)
        self._away = max(self._away + (1 if away else -1), 0)
        share = 1.0 if not away else max(1.0 - self._away / _AWAY, 0.0)
        end = self._axes.shifted(wish, share * self._axes.way(wish, end))
        self._stops.lead(q, feedback.command(end), out, h)

    def _behind(self, q: Array) -> float:
        """Return the time from joint values q (nq,) to ``place`` at top speed, seconds."""
        return float((np.abs(self._axes.way(q, self.place)) / self._real[:, TOP_SPEED]).max(initial=0.0))

    @staticmethod
    def _leading(q: Array, goals: Bools, table: Array, places: Any) -> Array:
        """Return the table of targets in which these goals have their places at joint values q (nq,) as targets."""
        moving = goals & (table[0, :, GIVEN] > 0.0)
        if moving.any():
            given = table[0, moving, GIVEN]
            table = table.copy()
            table[0, moving, GIVEN] = 0.0
            table[0, moving, :TRANSFORM_WIDTH] = places(q, table)[moving]
            table[0, moving, GIVEN] = given
        return table

    def time_to_stop(self) -> float:
        """Return the seconds that the look-ahead body takes to stop."""
        return float(self._table[:, [PLAN_FIRST, PLAN_MIDDLE, PLAN_LAST]].sum(1).max(initial=0.0))
