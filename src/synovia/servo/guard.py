"""Clearance in every tick: a body only goes where it can brake without coming too near to anything.

A tick is allowed if the way through it, and on to the place where the body stops if it brakes afterwards, keeps the
distances of all clearance goals. Distances along the way follow from bounds: no point of a link moves farther than each
joint turns, times the distance of the farthest shape that it carries. So the next pose to measure is one that is not
reached before the distance that is left is used up (conservative advancement, Mirtich 1996).

A tick that is not allowed is chosen anew: the goals are solved in the box of its stops, with clearance above them, so
that the body slides along what is in its way. If that tick is not allowed either, the body brakes, which the tick
before has allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from synovia.facade import IK
from synovia.goals import ClearanceGoal
from synovia.kernels.layout import ADVANCE, PROPOSE, STOP, TARGET_WIDTH, TOP_ACCELERATION
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.shapes.body import packed_shapes
from synovia.servo.box import Box
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback
from synovia.servo.probe import Probe
from synovia.servo.stops import Stops
from synovia.solver import FullBody

_SEEN: Final = 0.1  # reaches beyond their distance: pairs that are farther apart count as so far apart
_LEAST: Final = 0.005  # reaches: a shorter way is not divided, so walls that are thinner may be passed at a corner
_MOST_TICKS: Final = 4  # from one pose to the next, of a body that brakes
_DOUBLED: Final = 64  # after so many poses, the next ones are twice as far apart
_LONG: Final = 4.0  # reaches: longer levers are those of slides that go far, so they are measured anew on each way
_STILL: Final = 1e-6  # radians, length units: then it stands
_PRECISION: Final = 0.1  # part of the tolerance to which goals are solved in a tick
_SLACK: Final = 0.5  # of the tolerance: a way may come so much nearer, or braking and sliding would get stuck
_ROUNDING: Final = 1e-9  # reaches


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
        goals = [goal for goal in ik.goals if isinstance(goal, ClearanceGoal) and goal.rank < 0]
        self._seen = _SEEN * ik.reach
        wide = [ClearanceGoal(goal.distance + self._seen, world=goal.world, pairs=goal.pairs) for goal in goals]
        self._ik = IK(ik.given, wide, FullBody(attempts=1), tolerance=ik.tolerance, root=ik.root)
        self._probe = Probe(self._ik)
        self._no_targets = np.zeros((1, len(wide), TARGET_WIDTH))
        self._axes, self._stops = axes, stops
        self._table = axes.table.copy()
        self._tick, _, self._rest = kernels(self._table)
        self._levers = _levers(axes)
        self._bounded = bool((self._levers <= _LONG * ik.reach).all())
        self._least, self._rounding, self._slack = _LEAST * ik.reach, _ROUNDING * ik.reach, _SLACK * ik.tolerance[0]
        self._box = Box(ik, (_PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]), axes)
        self.left, self.blocked = 0.0, False

    def reset(self, q: Array) -> None:
        """Begin anew at joint values (nq,)."""
        self.left, self.blocked = self._measured(q), False

    def _measured(self, q: Array) -> float:
        """Return what is left at joint values (nq,)."""
        lacking = max(error.position for error in self._probe.errors(q, self._no_targets))
        return self._seen + self._ik.tolerance[0] - lacking

    def allows(self, q: Array, out: Array, h: float, feedback: Feedback) -> bool:
        """Return whether the body may take a tick from joint values q (nq,) to others, which has been advanced.

        The tick takes the time h. If it is allowed, ``left`` is that at ``out``.
        """
        least = -self._slack
        left = self._along(feedback.body(q), feedback.body(out), self.left, least)
        if left < least or not self._can_brake(out, left, least, h, feedback):
            return False
        self.left = left
        return True

    @property
    def too_near(self) -> bool:
        """Whether the body is too near to something already."""
        return self.left < -self._slack

    def comes_away(self, out: Array, feedback: Feedback) -> bool:
        """Return whether a body that is too near is not nearer at joint values (nq,); then ``left`` is that there."""
        left = self._measured(feedback.body(out))
        if left < self.left - self._slack:
            return False
        self.left = left
        return True

    def _can_brake(self, q: Array, left: float, least: float, h: float, feedback: Feedback) -> bool:
        """Return whether the body keeps its distances if it brakes from joint values q (nq,)."""
        self._table[:] = self._axes.table
        end = q.copy()
        self._rest(q, end)
        if self._length(q, end) < left:
            return True  # joints brake without turning back, so no place on the way is farther
        q, count = q.copy(), 0
        step = self._few_ticks(h) * h
        while True:
            out = np.empty_like(q)
            self._tick(q, q, q, out, step, PROPOSE | ADVANCE | STOP)
            length = self._length(q, out)
            if left - length > 0.0:
                left -= length  # no place on this way is nearer
            else:
                left = self._along(feedback.body(q), feedback.body(out), left, least)
            if left < least:
                return False
            if np.abs(self._axes.way(q, out)).max(initial=0.0) < _STILL:
                return True
            q, count = out, count + 1
            if count % _DOUBLED == 0:
                step *= 2.0

    def _few_ticks(self, h: float) -> int:
        """Return how many ticks of time h a body may brake at once, so that its way is nearly straight."""
        bend = float(self._levers @ self._axes.table[:, TOP_ACCELERATION]) / 8.0  # of the way of a second, at most
        if not 0.0 < bend < np.inf:
            return 1
        return int(np.clip(np.sqrt(self._slack / bend) / h, 1, _MOST_TICKS))

    def _along(self, q: Array, to: Array, left: float, least: float) -> float:
        """Return what is left at the end of a way, or where it is first less than ``least``."""
        way, length = self._axes.way(q, to), self._length(q, to)
        done = 0.0
        while done < length:
            done = min(done + max(left, self._least), length)
            left = self._measured(to if done == length else self._axes.shifted(q, done / length * way))
            if left < least:
                break
        return left

    def _length(self, q: Array, to: Array) -> float:
        """Return how far a way moves any point of a shape at most, length units."""
        levers = self._levers if self._bounded else _levers(self._axes, q, to)
        return float(levers @ np.abs(self._axes.way(q, to)))

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


def _levers(axes: Axes, *ends: Array) -> Array:
    """Return how far a unit of each axis moves any point of a shape at most, (n,): length units a radian, or 1.

    Args:
        axes: The axes of the body.
        ends: Joint values (nq,) at both ends of a way; without them, the levers are those of all poses, and infinite
            below a joint that slides without limits.
    """
    skeleton = axes.skeleton
    body = packed_shapes(skeleton)
    far = np.full(len(skeleton), -np.inf)  # of the shapes that each joint carries, from its origin
    for (row, _, _), (*center, radius) in zip(body.links.tolist(), body.covers.tolist(), strict=True):
        far[row] = float(np.linalg.norm(center)) + radius
    for row in range(len(skeleton) - 1, 0, -1):
        parent = skeleton.parents[row]
        if parent >= 0 and far[row] > -np.inf:
            away = float(np.linalg.norm(skeleton.joints[row].rest[:3, 3])) + _slide(skeleton, row, ends)
            far[parent] = max(far[parent], far[row] + away)
    carried = far > -np.inf
    own = np.where(axes.lengths, carried[axes.joints], np.where(carried, far, 0.0)[axes.joints])
    out = own.astype(np.float64)
    for row, axis, ratio in axes.followers:
        if carried[row]:
            out[axis] += abs(ratio) * (1.0 if skeleton.joints[row].kind is Kind.SLIDE else far[row])
    return out


def _slide(skeleton: Skeleton, row: int, ends: Sequence[Array]) -> float:
    """Return how far a joint slides from its place at rest at most, by its limits or on the way between two poses."""
    kind = skeleton.joints[row].kind
    if kind not in (Kind.SLIDE, Kind.FREE):
        return 0.0
    limit = float(np.abs(skeleton.value_range(row)).max()) if kind is Kind.SLIDE else np.inf
    start = skeleton.q_slice(row).start
    lengths = slice(start, start + (1 if kind is Kind.SLIDE else 3))
    return min(limit, max((float(np.linalg.norm(q[lengths])) for q in ends), default=np.inf))
