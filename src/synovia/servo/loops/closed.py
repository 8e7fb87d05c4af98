"""Ticks of a body with loops: closed in each one, and with a stop that is known to stay closed and inside all limits.

The joints of a loop cannot brake independently: where one brakes, the others have to. So a body with loops has one stop
for all of its joints. From the position, velocity and acceleration of the last samples, all joints come to rest in the
same time. These samples belong to a motion with closed loops, so the stop nearly keeps the loops closed, and Newton's
method closes each of its poses. The limits are checked at these poses as for the commands.

A tick is only taken if the stop after it keeps all limits: joint values, velocities, accelerations and jerks. Otherwise
the tick is interpolated between the known stop and the wanted tick. The last resort is the known stop itself, whose
poses have been checked before. So the loops are closed in every tick, and limits hold if ticks are even. With uneven
ticks, and for stops of more than 64 ticks, a margin covers the time between samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from synovia.kernels.layout import (
    AT_ACCELERATION,
    AT_JERK,
    AT_POSITION,
    AT_VELOCITY,
    AXIS_ACCELERATION,
    AXIS_VELOCITY,
    AXIS_WIDTH,
    BLOCK_Q,
    GAP,
    GAP_BEFORE,
    LIMIT_WIDTH,
    LOWER,
    NEXT,
    PROPOSE,
    REASON,
    RECOVERING,
    STOP,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    UPPER,
    VARIABLE_WIDTH,
)
from synovia.model.change import blend
from synovia.model.geometry import Array, Bools
from synovia.model.loops.mechanism import INDEPENDENT, TIGHT, Mechanism
from synovia.model.pose import drawn_values
from synovia.model.tables import Ints
from synovia.servo.limits import Axes
from synovia.servo.loops.braking import Known, standing, stop_of, ways_of

Judge: TypeAlias = "Callable[[Array, Array], bool]"
_STEPS: Final = 20  # Newton steps to close a pose near a closed one
_SHARES: Final = {TOP_SPEED: 0.95, TOP_ACCELERATION: 0.6, TOP_JERK: 0.4}  # fractions of the limits for planned motion
_KEPT: Final = 1.0 - 1e-7  # fraction of the limits for checked samples: the rest is for rounding
_BETWEEN: Final = 0.98  # the same fraction where samples are farther apart than ticks
_EXACT: Final = 64  # samples of a stop; a stop of at most this many ticks is checked tick by tick
_FIRST: Final = 8  # first ticks of a longer stop that are checked one by one
_AFTER: Final = 3  # samples at rest that end the stop
_PARTS: Final = (1.0, 0.5, 0.25, 0.125, 0.03125)  # fractions between the known stop (0) and the wanted tick (1)
_AHEAD: Final = 2.0  # look-ahead as a multiple of the stopping distance, added to _TICKS
_TICKS: Final = 6.0  # look-ahead in ticks at full speed
_HALVES: Final = 4  # largest number of lengths tried, each half of the last, for a look-ahead that can be closed
_TRACE: Final = 0.2  # radians, length scales: step along a path that is traced in advance
_TRACED: Final = 64  # largest number of these steps
_PROGRESS: Final = 0.1  # fraction of each step by which the remaining distance has to fall
_SAME: Final = 1e-6  # radians, length units: closer poses count as equal
_INSIDE: Final = 1e-12  # radians, length units: rounding
_ROUNDED: Final = 1e-9  # fraction of a tick: rounding
_TOLD: Final = 1e-9  # fraction of a limit: rounding
_NEARER: Final = 0.999  # fraction of the last remaining distance: a smaller distance counts as progress
_PATIENCE: Final = 0.3  # seconds without progress, in addition to the time to turn around
_SLIGHT: Final = 1e-9  # radians, length units: smaller displacements count as zero
_LANDED: Final = 1e-10  # radians, length units
_REASONS: Final = (AT_VELOCITY, AT_ACCELERATION, AT_JERK)
_STATE: Final = [AXIS_VELOCITY, AXIS_ACCELERATION, GAP, GAP_BEFORE]


class ClosedTick:
    """The tick of a body with loops; replaces the kernel of a tick.

    Args:
        axes: The axes of the body.
        moving: Rows of the skeleton that may move.
        mechanism: The loops.
        kernels: Returns the kernels of a tick and of a reset for other variables.
        judges: Further checks. Each gets poses (T + 1, nq), from the pose before a tick to the end of the stop after
            the tick, and the seconds between them, (T,).

    Attributes:
        slowed: Whether the last tick was not the wanted one.
    """

    def __init__(
        self,
        axes: Axes,
        moving: Iterable[int],
        mechanism: Mechanism,
        kernels: Callable[[Ints, Array, Array], tuple[Any, Any]],
        judges: Iterable[Judge],
    ) -> None:
        """Make the axes of the planned motion, which move independently."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.tick import servo_replan

        self._axes, self._table, self._mechanism = axes, axes.table, mechanism
        self._skeleton = axes.skeleton
        self._moves: Bools = np.isin(axes.joints, [*moving])
        self._held = None if self._moves.all() else ~self._moves[axes.firsts]
        self._units = np.where(axes.lengths, mechanism.reach, 1.0)
        count = len(axes.joints)
        # one more axis that never arrives: so the others are synchronized again in each tick
        self._own = np.zeros((count + 1, AXIS_WIDTH))
        self._own[-1, [TOP_SPEED, TOP_ACCELERATION, TOP_JERK]] = 1.0
        variables = np.zeros((count + 1, VARIABLE_WIDTH), np.int32)
        variables[:, BLOCK_Q] = np.arange(count + 1)
        self._limits = np.zeros((count + 1, LIMIT_WIDTH))
        self._limits[:, LOWER], self._limits[:, UPPER] = -np.inf, np.inf
        self._propose, self._begin = kernels(variables, self._limits, self._own)
        self._replan = partial(ready(servo_replan, self._own[:0]), self._own)
        self._zeros = np.zeros(count + 1)
        self._judges: list[Judge] = [*judges]
        self._known = standing(axes.skeleton.rest_pose().q, count)
        self._over = np.zeros(count, np.int64)  # kinds of limits that the last rejected stop exceeds
        self._clamped: Bools = np.zeros((0, axes.skeleton.nq), bool)  # values that were clamped before closing
        self.slowed = False
        self._even = True  # whether all ticks since the reset took the same time
        self._before = self._known.start  # joint values before the tick
        self._left, self._wanted, self._waited = 0.0, self._known.start, 0.0

    def reset(self, q: Array, h: float) -> Array:
        """Restart at joint values (nq,), with the velocities of the axes; return the joint values with closed loops."""
        self._limit()
        self._begin(self._zeros, h)
        self._even = True
        poses, closes = self._closed(q[None], np.zeros((1, len(self._table))))
        q = poses[0] if closes else q
        v = self._tangent(q) @ (self._table[:, AXIS_VELOCITY] * self._moves)
        self._table[:, AXIS_VELOCITY] = v
        known = self._stop(q, v, np.zeros(len(v)), h)
        self._known = standing(q, len(v)) if known is None else known
        self._left, self._wanted, self._waited = 0.0, q, 0.0
        return q

    def _limit(self) -> None:
        """Give the axes of the planned motion their fraction of the limits."""
        for column, share in _SHARES.items():
            self._own[:-1, column] = share * self._table[:, column]

    def rest(self, _: Array, out: Array) -> None:
        """Write the end of the known stop to ``out`` (nq,)."""
        out[:] = self._known.end

    def __call__(self, q: Array, wanted: Array, before: Array, out: Array, h: float, parts: int) -> None:
        """Take a tick, as the kernel does with PROPOSE and ADVANCE."""
        table, reasons = self._table, np.zeros(len(self._table))
        self._even = self._even and abs(h - float(table[0, GAP])) <= _ROUNDED * h
        self._before = q
        self.slowed = True
        follows = bool(parts & STOP) or not self._take(q, wanted, before, out, h, reasons)
        if follows:
            out[:], known = self._followed(h)
            if known is None:  # the known stop cannot be closed: stand still
                known = standing(q, len(table))
            self._known = known
        found = self._differences(q, out[None], np.array([h]))
        if follows:
            reasons[self._worst(found, 1.0 + _TOLD)[0]] = RECOVERING
        table[:, AXIS_VELOCITY], table[:, AXIS_ACCELERATION] = found[0][-1], found[1][-1]
        table[:, GAP_BEFORE], table[:, GAP] = table[:, GAP], h
        table[:, REASON] = reasons
        self.watch(out, wanted, 0.0 if parts & STOP else h)

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
        return bool(closed)  # an open pose cannot be reached: to stay near it is not being stuck

    def _take(self, q: Array, wanted: Array, before: Array, out: Array, h: float, reasons: Array) -> bool:
        """Take the tick that leads to ``wanted``, or a part of it; write ``out``.

        Returns:
            Whether such a tick exists after which the body can stop.
        """
        place, speeds = self._wish(q, wanted, before, h)
        reasons[:] = self._own[:-1, REASON] * (self._own[:-1, REASON] < RECOVERING)
        planned, _ = self._followed(h)
        plan = self._axes.way(q, planned) / h
        for part in _PARTS:
            if part == 1.0 and place is not None:
                end: Array | None = place
            else:
                ways = (plan + part * (speeds - plan)) * h
                end = q if not ways.any() else self._beside(q, ways)
            if end is None:
                reasons[self._moves] = AT_POSITION
                continue
            found = self._differences(q, end[None], np.array([h]))
            worst, kind = self._worst(found, _KEPT)
            if worst.any():
                reasons[worst] = kind[worst]
                continue
            known = self._stop(end, found[0][-1], found[1][-1], h, q)
            if known is not None:
                out[:], self._known = end, known
                self.slowed = part < 1.0
                return True
            reasons[self._over > 0] = self._over[self._over > 0]
        return False

    def _wish(self, q: Array, wanted: Array, before: Array, h: float) -> tuple[Array | None, Array]:
        """Return a closed pose that this tick reaches, None if it reaches none, and velocities (n,) towards ``wanted``.

        The velocities belong to a motion along which the loops can be closed, to a pose near q.
        """
        axes, own, table, count = self._axes, self._own, self._table, len(self._table)
        own[:-1, _STATE] = table[:, _STATE]
        own[-1, [GAP, GAP_BEFORE]] = h
        self._limit()
        tangent = self._tangent(q)
        own[:-1, AXIS_VELOCITY] = tangent @ table[:, AXIS_VELOCITY]
        own[:-1, AXIS_ACCELERATION] = tangent @ table[:, AXIS_ACCELERATION]
        self._replan()
        place, whole = self._ahead(q, wanted, h)
        aim, last = np.zeros(count + 1), np.zeros(count + 1)
        aim[:-1] = last[:-1] = axes.way(q, place) * self._moves
        if whole:
            last[:-1] -= axes.way(before, wanted) * self._moves
        aim[-1] = _LANDED
        self._limits[axes.numbers, LOWER] = axes.low - q[axes.number_q]
        self._limits[axes.numbers, UPPER] = axes.high - q[axes.number_q]
        out = np.zeros(count + 1)
        self._propose(self._zeros, aim, last, out, h, PROPOSE)
        speeds = own[:-1, NEXT]
        lands = bool(np.abs(speeds * h - aim[:-1])[self._moves].max(initial=0.0) <= _LANDED)
        return place if lands else None, tangent @ (speeds * self._moves)

    def _ahead(self, q: Array, wanted: Array, h: float) -> tuple[Array, bool]:
        """Return a closed pose between q and ``wanted``, (nq,), and whether it is ``wanted``."""
        way = self._axes.way(q, wanted) * self._moves
        v, A, J = (np.abs(self._own[:-1, column]) for column in (AXIS_VELOCITY, TOP_ACCELERATION, TOP_JERK))
        far = _AHEAD * (0.5 * v * v / A + 0.5 * v * A / J) + _TICKS * h * self._own[:-1, TOP_SPEED]
        longest = float((np.abs(way) / far).max(initial=0.0))
        share = 1.0 / max(longest, 1.0)
        for _ in range(_HALVES):
            place = self._beside(q, share * way)
            if place is not None:
                break
            share *= 0.5
        else:
            return q, False
        return place, share == 1.0 and bool(np.abs(self._axes.way(place, wanted)).max(initial=0.0) <= _SAME)

    def beside(self, q: Array, share: float, seed: int) -> Array:
        """Return a closed pose (nq,) after a share of a closed path from joint values q towards a random pose."""
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
        poses, closes = self._closed(q[None], way[None])
        return poses[0] if closes else None

    def _closed(self, q: Array, ways: Array) -> tuple[Array, bool]:
        """Return closed poses within the limits, (T, nq), near q shifted by ``ways`` (T, n), and whether all closed."""
        guess = self._axes.shifted(np.repeat(q, len(ways), axis=0), ways)
        inside = np.empty_like(guess)
        self._skeleton.validate(guess.reshape(-1), inside.reshape(-1))
        self._clamped = np.abs(inside - guess) > _INSIDE
        out, lacks = self._mechanism.run(inside, _STEPS, self._held)
        return out, bool(lacks.max(initial=0.0) <= TIGHT)

    def _followed(self, h: float) -> tuple[Array, Known | None]:
        """Return the pose (nq,) after the time h on the known stop, and the rest of the stop; None if it stays open."""
        known = self._known
        left = known._replace(passed=known.passed + h)
        pose = known.pose(left.passed, _ROUNDED * h)
        if pose is not None:
            return pose, left
        poses, closes = self._closed(known.start[None], known.ways(np.array([left.passed])))
        return (poses[0], left) if closes else (self._before, None)

    def _stop(self, q: Array, v: Array, a: Array, h: float, before: Array | None = None) -> Known | None:
        """Return the stop from q that continues the last samples, None if it breaks a limit.

        Args:
            q: Joint values, (nq,).
            v: Velocity of each axis in the last tick, (n,).
            a: Acceleration of the last samples, (n,).
            h: Time of the tick.
            before: Joint values before the tick, (nq,); the table has the motion up to there. None at a reset: then
                only closed loops are checked.
        """
        speed, acceleration, time = self._begun(v, a, h)
        count = math.ceil(time / h)
        if count <= _EXACT:
            times = h * np.arange(1.0, count + 1.0)
            step, kept = h, _KEPT if self._even else _BETWEEN
        else:
            rest = np.linspace(_FIRST * h, time, _EXACT - _FIRST + 1)
            times = np.concatenate([h * np.arange(1.0, _FIRST + 1.0), rest[1:]])
            step, kept = float(rest[1] - rest[0]), _BETWEEN
        ways = ways_of(speed, acceleration, time, times)
        poses, closes = self._closed(q[None], ways) if count else (q[None], True)
        if not closes or (before is not None and count and self._touches(q, poses, ways)):
            self._over = np.where(self._moves, AT_POSITION, 0)
            return None
        times = np.concatenate([times, (times[-1] if count else 0.0) + step * np.arange(1.0, _AFTER + 1.0)])
        poses = np.concatenate([poses[:count], np.repeat(poses[-1:], _AFTER, axis=0)])
        if before is not None and not self._keeps(before, np.concatenate([q[None], poses]), h, times, kept):
            return None
        return Known(q, speed, acceleration, time, times, poses)

    def _begun(self, v: Array, a: Array, h: float) -> tuple[Array, Array | None, float]:
        """Return velocity, acceleration and time of the stop after some samples; joints that cannot move rest."""
        moves = self._moves
        speed, acceleration = np.zeros(len(v)), np.zeros(len(v))
        speed[moves], found, time = stop_of(v[moves], a[moves], h, self._table[moves])
        if found is None:
            return speed, None, time
        acceleration[moves] = found
        return speed, acceleration, time

    def _keeps(self, before: Array, poses: Array, h: float, times: Array, part: float) -> bool:
        """Return whether a tick of time h and the stop after it keep a fraction of all limits.

        Args:
            before: Pose before the tick, (nq,).
            poses: Pose after the tick and poses of the stop, (T + 1, nq).
            h: Seconds of the tick.
            times: Times of the poses of the stop since its start, seconds, (T,).
            part: Fraction of the limits.
        """
        steps = np.concatenate([[h], np.diff(times, prepend=0.0)])
        worst, kind = self._worst(self._differences(before, poses, steps), part)
        self._over = np.where(worst, kind, 0)
        return not worst.any() and all(judge(np.concatenate([before[None], poses]), steps) for judge in self._judges)

    def _touches(self, q: Array, poses: Array, ways: Array) -> bool:
        """Return whether a joint value reaches or leaves one of its limits on the path from q through poses (T, nq).

        There the motion would bend between two samples. A value that leaves its limit in the first sample does not
        bend. A value at its limit that its displacements ``ways`` (T, n) would move beyond bends at once: with even
        ticks the samples show such a bend, with uneven ticks it counts as reaching the limit.
        """
        axes, (low, high) = self._axes, (self._axes.low + _LANDED, self._axes.high - _LANDED)
        here, there = q[axes.number_q], poses[:, axes.number_q]
        inside = (here > low) & (here < high)
        at = (there <= low) | (there >= high) | self._clamped[:, axes.number_q]
        bends = inside | ~at.all(axis=0)
        if not self._even:
            bends |= np.abs(ways[:, axes.numbers]).max(axis=0, initial=0.0) > _SLIGHT
        turns = self._clamped.any(axis=0) & ~self._clamped.all(axis=0)
        return bool((at.any(axis=0) & bends & (low < high)).any() or turns.any())

    def _differences(self, q: Array, poses: Array, steps: Array) -> tuple[Array, Array, Array]:
        """Return velocities, accelerations and jerks of samples after q, each (T, n), as finite differences.

        Args:
            q: Joint values now, (nq,); the table has the motion up to here.
            poses: Joint values after q, (T, nq).
            steps: Seconds between the samples, (T,).
        """
        table = self._table
        times = np.concatenate([table[0, [GAP_BEFORE, GAP]], steps])
        v = self._axes.ways(np.concatenate([q[None], poses[:-1]]), poses) / steps[:, None]
        a = 2.0 * np.diff(v, axis=0, prepend=table[None, :, AXIS_VELOCITY]) / (times[1:-1] + times[2:])[:, None]
        j = np.diff(a, axis=0, prepend=table[None, :, AXIS_ACCELERATION])
        return v, a, 3.0 * j / (times[:-2] + times[1:-1] + times[2:])[:, None]

    def _worst(self, found: tuple[Array, ...], part: float) -> tuple[Bools, Ints]:
        """Return which axes exceed a fraction of a limit, (n,), and the first kind of limit that each axis exceeds."""
        over, kind = np.zeros(len(self._table), bool), np.zeros(len(self._table), np.int32)
        for values, column, reason in zip(found, (TOP_SPEED, TOP_ACCELERATION, TOP_JERK), _REASONS, strict=True):
            beyond = (np.abs(values).max(axis=0) > part * self._table[:, column]) & self._moves
            kind[beyond & ~over] = reason
            over |= beyond
        return over, kind
