"""Ticks of a body with loops: closed in each one, and with a stop that is known to stay closed and inside all limits.

What joints can do for themselves, the joints of a loop cannot: where one brakes, the others have to. So a body with
loops has one stop for all of its joints. From the place, the velocity and the acceleration of the last samples, all
joints come to rest in the same time. As these are those of a motion that keeps the loops closed, the stop nearly does,
and Newton's method closes each of its poses. The samples of that are judged as the commands are.

A tick is only taken if the stop after it keeps all limits: joint values, velocities, accelerations and jerks. Otherwise
the body goes a part of the way from the stop that is known to the tick that it wants. That stop itself is what remains:
its next pose has been judged before. So the loops are closed in every tick, and limits hold if ticks are even. Ticks of
other lengths, and stops of more than 64 ticks, are judged between samples by a margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

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
    EMERGENCY,
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
from synovia.model.geometry import Array, Bools
from synovia.model.loops.mechanism import INDEPENDENT, TIGHT, Mechanism
from synovia.model.tables import Ints
from synovia.servo.limits import Axes

_STEPS: Final = 20  # to close a pose beside a closed one
_SHARES: Final = {TOP_SPEED: 0.95, TOP_ACCELERATION: 0.6, TOP_JERK: 0.4}  # parts of the limits that a way uses
_BRAKES: Final = 0.85  # part of the limits that a stop uses before loops bend it
_KEPT: Final = 1.0 - 1e-7  # part of the limits that judged samples keep: the rest is for rounding
_BETWEEN: Final = 0.98  # the same where samples are farther apart than ticks
_EXACT: Final = 64  # ticks of a stop that are judged one by one
_FIRST: Final = 8  # of a longer one
_AFTER: Final = 3  # samples at rest, which the stop ends with
_PARTS: Final = (1.0, 0.5, 0.25, 0.125, 0.03125)  # of the way from the stop to the tick that the body wants
_AHEAD: Final = 2.0  # times the way of a stop, and
_TICKS: Final = 6.0  # ticks at full speed: how far ahead the body looks
_HALVES: Final = 4  # of the way ahead that cannot be closed
_TRACE: Final = 0.2  # radians, reaches: steps of a way that is looked at beforehand
_TRACED: Final = 64  # of them, at most
_PROGRESS: Final = 0.1  # part of each that has to bring the body nearer
_SAME: Final = 1e-6  # radians, length units: places that near are one
_ROUNDED: Final = 1e-12  # radians, length units
_NEARER: Final = 0.999  # part of the way that was left: less is nearer
_PATIENCE: Final = 0.3  # seconds
_SLIGHT: Final = 1e-9  # radians, length units: a way that is none
_LANDED: Final = 1e-10  # radians, length units
_DURATIONS: Final = 64  # of a stop with a limit of the jerk, tried
_LONGER: Final = 1.12  # factor from one to the next
_INSTANTS: Final = np.linspace(0.0, 1.0, 13)  # of a stop, at which these are judged
_REASONS: Final = (AT_VELOCITY, AT_ACCELERATION, AT_JERK)
_STATE: Final = [AXIS_VELOCITY, AXIS_ACCELERATION, GAP, GAP_BEFORE]


class Known(NamedTuple):
    """A stop that is known.

    Args:
        start: Where it begins, (nq,).
        velocity: Velocity of each axis there, (n,).
        acceleration: Acceleration there; None if it may change at once.
        time: Seconds until the body rests.
        times: Seconds at which it was judged, the last ones at rest.
        poses: Poses at these times, (T, nq).
        passed: Seconds that have passed since the start.
    """

    start: Array
    velocity: Array
    acceleration: Array | None
    time: float
    times: Array
    poses: Array
    passed: float = 0.0


def ways_of(velocity: Array, acceleration: Array | None, time: float, times: Array) -> Array:
    """Return how far axes have gone at some times (T,) of a stop, (T, n).

    Velocities fall evenly to zero or, with an acceleration at the begin, as the cubic polynomials that end without one.
    """
    if time <= 0.0:
        return np.zeros((len(times), len(velocity)))
    s = np.minimum(times / time, 1.0)[:, None]
    if acceleration is None:
        return velocity * time * s * (1.0 - 0.5 * s)
    return (
        velocity * time * s * (1.0 + s * s * (0.5 * s - 1.0))
        + acceleration * time * time * s * s * (0.5 + s * (0.25 * s - 2.0 / 3.0))
    )  # fmt: skip


class ClosedTick:
    """What takes the ticks of a body with loops, instead of the kernel of a tick.

    Args:
        axes: The axes of the body.
        moving: Rows of the skeleton that may move.
        mechanism: The loops.
        kernels: Returns the kernels of a tick and of a reset for other variables.
    """

    def __init__(
        self,
        axes: Axes,
        moving: Iterable[int],
        mechanism: Mechanism,
        kernels: Callable[[Ints, Array, Array], tuple[Any, Any]],
    ) -> None:
        """Make the axes of the way, which go for themselves."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.tick import servo_replan

        self._axes, self._table, self._mechanism = axes, axes.table, mechanism
        self._skeleton = axes.skeleton
        self._moves: Bools = np.isin(axes.joints, [*moving])
        self._held = None if self._moves.all() else ~self._moves[axes.firsts]
        self._units = np.where(axes.lengths, mechanism.reach, 1.0)
        count = len(axes.joints)
        # one more axis, which never arrives: so the others arrive together anew in each tick
        self._own = np.zeros((count + 1, AXIS_WIDTH))
        self._own[-1, [TOP_SPEED, TOP_ACCELERATION, TOP_JERK]] = 1.0
        variables = np.zeros((count + 1, VARIABLE_WIDTH), np.int32)
        variables[:, BLOCK_Q] = np.arange(count + 1)
        self._limits = np.zeros((count + 1, LIMIT_WIDTH))
        self._limits[:, LOWER], self._limits[:, UPPER] = -np.inf, np.inf
        self._propose, self._begin = kernels(variables, self._limits, self._own)
        self._replan = partial(ready(servo_replan, self._own[:0]), self._own)
        self._begin(np.zeros(count + 1), 1.0)
        self._zeros = np.zeros(count + 1)
        self._known = self._standing(axes.skeleton.rest_pose().q)
        self._over = np.zeros(count, np.int64)  # kinds of limits that the last stop that was not taken exceeds
        self._clamped: Bools = np.zeros((0, axes.skeleton.nq), bool)  # what was beyond its limits before it was closed
        self._even = True  # whether all ticks since the reset took the same time
        self._left, self._wanted, self._waited = 0.0, self._known.start, 0.0

    def reset(self, q: Array, h: float) -> Array:
        """Begin anew at joint values (nq,), with the velocities of the axes; return those values with closed loops."""
        self._begin(self._zeros, h)
        self._even = True
        poses, closes = self._closed(q[None], np.zeros((1, len(self._table))))
        q = poses[0] if closes else q
        v = self._tangent(q) @ (self._table[:, AXIS_VELOCITY] * self._moves)
        self._table[:, AXIS_VELOCITY] = v
        known = self._stop(q, v, np.zeros(len(v)), h)
        self._known = self._standing(q) if known is None else known
        self._left, self._wanted, self._waited = 0.0, q, 0.0
        return q

    def rest(self, _: Array, out: Array) -> None:
        """Write to ``out`` (nq,) where the stop that is known ends."""
        out[:] = self._known.poses[-1]

    def __call__(self, q: Array, wanted: Array, before: Array, out: Array, h: float, parts: int) -> None:
        """Take a tick, as the kernel does with PROPOSE and ADVANCE."""
        table, reasons = self._table, np.zeros(len(self._table))
        self._even = self._even and abs(h - float(table[0, GAP])) <= 1e-9 * h
        if parts & STOP or not self._take(q, wanted, before, out, h, reasons):
            out[:], known = self._followed(h)
            if known is None:
                reasons[self._moves] = EMERGENCY
                known = self._standing(out)
            self._known = known
        v, a, _, found = self._differences(q, out[None], np.array([h]))
        if parts & STOP or reasons.any():
            over, _ = self._worst(found, 1.0 + 1e-9)
            reasons[over & (reasons < RECOVERING)] = RECOVERING
        table[:, AXIS_VELOCITY], table[:, AXIS_ACCELERATION] = v[-1], a[-1]
        table[:, GAP_BEFORE], table[:, GAP] = table[:, GAP], h
        table[:, REASON] = reasons
        self._watch(out, wanted, 0.0 if parts & STOP else h)

    def _watch(self, q: Array, wanted: Array, h: float) -> None:
        """Note how long the body, at q (nq,) now, has come no nearer to joint values that do not move."""
        left = float(np.abs(self._axes.way(q, wanted))[self._moves].max(initial=0.0))
        if left < _NEARER * self._left or left <= _SAME or not np.array_equal(wanted, self._wanted):
            self._left, self._wanted, self._waited = left, wanted.copy(), 0.0
        else:
            self._waited += h

    @property
    def stuck(self) -> bool:
        """Whether the body has come no nearer to where it goes for longer than it takes to turn around."""
        v, A, J = (self._table[self._moves, column] for column in (TOP_SPEED, TOP_ACCELERATION, TOP_JERK))
        if self._waited <= _PATIENCE + 2.0 * float((v / A + A / J).max(initial=0.0)):
            return False
        return bool(
            self._mechanism.lacks(self._wanted[None]).max(initial=0.0) <= _SAME
        )  # what is open has no way to it

    def _take(self, q: Array, wanted: Array, before: Array, out: Array, h: float, reasons: Array) -> bool:
        """Take the tick that leads to ``wanted``, or a part of it, to ``out``.

        Returns:
            Whether there is one after which the body can stop.
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
            v, a, _, found = self._differences(q, end[None], np.array([h]))
            worst, kind = self._worst(found, _KEPT)
            known = None if worst.any() else self._stop(end, v[-1], a[-1], h, q)
            if known is not None:
                out[:], self._known = end, known
                return True
            if worst.any():
                reasons[worst] = kind[worst]
            else:
                reasons[self._over > 0] = self._over[self._over > 0]
        return False

    def _wish(self, q: Array, wanted: Array, before: Array, h: float) -> tuple[Array | None, Array]:
        """Return the velocities of all axes that lead to ``wanted``, (n,), and a place if they lead there in one tick.

        They are those of a way along which the loops can be closed, to a place near q.
        """
        axes, own, table, count = self._axes, self._own, self._table, len(self._table)
        own[:-1, _STATE] = table[:, _STATE]
        own[-1, [GAP, GAP_BEFORE]] = h
        for column, share in _SHARES.items():
            own[:-1, column] = share * table[:, column]
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
        """Return a closed pose on the way to ``wanted``, (nq,), and whether that is it."""
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

    def beside(self, q: Array, far: float) -> Array:
        """Return a random closed pose about so far from joint values q, (nq,), radians or reaches; q if none is found."""
        seed = int(1e6 * far)
        way = np.random.default_rng(seed).normal(scale=far, size=len(self._table)) * self._units * self._moves
        place = self._beside(q, self._tangent(q) @ way)
        return q if place is None else place

    def connects(self, q: Array, to: Array) -> bool:
        """Return whether a way along which the loops are closed leads from joint values q to others, (nq,)."""
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
        """Return the projection (n, n) of velocities on those that keep the loops closed."""
        J = self._mechanism.rows(q[None])[1][0] * self._moves
        _, values, ways = np.linalg.svd(J, full_matrices=False)
        ways = ways[values > INDEPENDENT]
        return np.eye(len(self._table)) - (ways.T * self._units[:, None]) @ (ways / self._units)

    def _beside(self, q: Array, way: Array) -> Array | None:
        """Return the closed pose beside the one that each axis goes to from q, (nq,); None if there is none."""
        poses, closes = self._closed(q[None], way[None])
        return poses[0] if closes else None

    def _closed(self, q: Array, ways: Array) -> tuple[Array, bool]:
        """Return closed poses within the limits (T, nq) beside those that axes go to from q, and whether all are."""
        guess = self._axes.shifted(np.repeat(q, len(ways), axis=0), ways)
        inside = np.empty_like(guess)
        self._skeleton.validate(guess.reshape(-1), inside.reshape(-1))
        self._clamped = np.abs(inside - guess) > _ROUNDED
        out, lacks = self._mechanism.run(inside, _STEPS, self._held)
        return out, bool(lacks.max(initial=0.0) <= TIGHT)

    def _standing(self, q: Array) -> Known:
        """Return the stop of a body that stands still."""
        none = np.zeros(len(self._table))
        return Known(q, none, None, 0.0, np.zeros(1), q[None].copy())

    def _followed(self, h: float) -> tuple[Array, Known | None]:
        """Return the pose after the time h on the stop that is known, (nq,), and what is left of it; None if open."""
        known = self._known
        t = known.passed + h
        left = known._replace(passed=t)
        if t >= known.times[-1]:
            return known.poses[-1], left
        k = int(np.argmin(np.abs(known.times - t)))
        if abs(float(known.times[k]) - t) <= 1e-9 * h:
            return known.poses[k], left
        ways = ways_of(known.velocity, known.acceleration, known.time, np.array([t]))
        poses, closes = self._closed(known.start[None], ways)
        return poses[0], left if closes else None

    def _stop(self, q: Array, v: Array, a: Array, h: float, before: Array | None = None) -> Known | None:
        """Return the stop from q after samples with these velocities and accelerations, if it keeps all limits.

        Without ``before``, the pose of a tick of time h before, the samples are those of the axes, at q.
        """
        V, A, J = (self._table[:, column] for column in (TOP_SPEED, TOP_ACCELERATION, TOP_JERK))
        limited = bool(np.isfinite(J[self._moves]).any())
        if limited:
            u, acceleration = v + 0.5 * h * a, a
            time = self._duration(u, a, V, A, J)
        else:
            time = max(float((np.abs(v) / (_BRAKES * A)).max(initial=0.0)) - 0.5 * h, 0.0)
            u, acceleration = v * (time / (time + 0.5 * h)), None
        count = math.ceil(time / h)
        if count <= _EXACT:
            times = h * np.arange(1.0, count + 1.0)
            step, kept = h, _KEPT if self._even else _BETWEEN
        else:
            rest = np.linspace(_FIRST * h, time, _EXACT - _FIRST + 1)
            times = np.concatenate([h * np.arange(1.0, _FIRST + 1.0), rest[1:]])
            step, kept = float(rest[1] - rest[0]), _BETWEEN
        ways = ways_of(u, acceleration, time, times)
        poses, closes = self._closed(q[None], ways) if count else (q[None], True)
        if not closes or (before is not None and self._touches(q, poses, ways)):
            self._over = np.where(self._moves, AT_POSITION, 0)
            return None
        begin = float(times[-1]) if count else 0.0
        times = np.concatenate([times, begin + step * np.arange(1.0, _AFTER + 1.0)])
        poses = np.concatenate([poses[: len(times) - _AFTER] if count else poses[:0], np.repeat(poses[-1:], _AFTER, 0)])
        found = self._differences(
            q if before is None else before,
            poses if before is None else np.concatenate([q[None], poses]),
            np.diff(times, prepend=0.0) if before is None else np.concatenate([[h], np.diff(times, prepend=0.0)]),
        )[3]
        worst, kind = self._worst(found, kept)
        if worst.any() and before is not None:
            self._over = np.where(worst, kind, 0)
            return None
        return Known(q, u, acceleration, time, times, poses)

    def _touches(self, q: Array, poses: Array, ways: Array) -> bool:
        """Return whether a number gets to one of its limits, or leaves it, on the way from q through poses (T, nq).

        There the motion would bend between two samples. What leaves a limit at once does not. What is at a limit, but
        would go beyond it by its ways (T, n), bends now: that is judged only if ticks are even.
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

    def _duration(self, u: Array, a: Array, V: Array, A: Array, J: Array) -> float:
        """Return the shortest time of a stop from a velocity and an acceleration that keeps the limits of all axes."""
        moving = self._moves
        u, a, V, A, J = u[moving], a[moving], V[moving], A[moving], J[moving]
        if not u.any() and not a.any():
            return 0.0
        least = max(
            float(np.sqrt(np.abs(u) / J).max(initial=0.0)), float((np.abs(a) / J).max(initial=0.0)),
            float((np.abs(u) / A).max(initial=0.0)),
        )  # fmt: skip
        T = least * _LONGER ** np.arange(_DURATIONS)[:, None, None]
        s = _INSTANTS[None, :, None]
        bend = u / T * (6.0 * s * (s - 1.0)) + a * (1.0 - s * (4.0 - 3.0 * s))
        jerk = u / T**2 * (12.0 * s - 6.0) + a / T * (6.0 * s - 4.0)
        speed = u * (1.0 - s * s * (3.0 - 2.0 * s)) + a * T * (s * (1.0 - s) ** 2)
        most = np.maximum(_BRAKES * A, np.abs(a))
        good = (np.abs(bend) <= most).all((1, 2)) & (np.abs(jerk) <= _BRAKES * J).all((1, 2))
        fast = good & (np.abs(speed) <= V).all((1, 2))
        found = np.flatnonzero(fast if fast.any() else good)
        return float(T[found[0] if len(found) else -1, 0, 0])

    def _differences(self, q: Array, poses: Array, steps: Array) -> tuple[Array, Array, Array, tuple[Array, ...]]:
        """Return velocities, accelerations and jerks of samples after q, as commands are judged; and all as a tuple.

        Args:
            q: Joint values now, (nq,), whose motion is in the table.
            poses: Those after it, (T, nq).
            steps: Seconds between them, (T,).
        """
        table = self._table
        before, gap, gap_before = table[0, [AXIS_VELOCITY]], float(table[0, GAP]), float(table[0, GAP_BEFORE])
        before = table[:, AXIS_VELOCITY]
        v = self._axes.way(np.concatenate([q[None], poses[:-1]]), poses) / steps[:, None]
        times = np.concatenate([[gap_before, gap], steps])
        a = 2.0 * np.diff(v, axis=0, prepend=before[None]) / (times[1:-1] + times[2:])[:, None]
        j = (
            3.0
            * np.diff(a, axis=0, prepend=table[None, :, AXIS_ACCELERATION])
            / (times[:-2] + times[1:-1] + times[2:])[:, None]
        )
        return v, a, j, (v, a, j)

    def _worst(self, found: tuple[Array, ...], part: float) -> tuple[Bools, Array]:
        """Return which axes exceed a part of a limit, (n,), and the first kind of limit that each one exceeds."""
        over, kind = np.zeros(len(self._table), bool), np.zeros(len(self._table), np.int64)
        for values, column, reason in zip(found, (TOP_SPEED, TOP_ACCELERATION, TOP_JERK), _REASONS, strict=True):
            beyond = (np.abs(values).max(axis=0) > part * self._table[:, column]) & self._moves
            kind[beyond & ~over] = reason
            over |= beyond
        return over, kind
