"""Joints that move independently, each as fast as its limits allow.

Users drive joints directly, to values or with velocities, with or without goals of the servo. Each driven joint has a
reference value that goes ahead of the body: an axis of its own, with the limits and the motion law of the joint. So the
reference stops inside the position limits, and it does not jump when its target does. The goals are solved with the
joint at this reference. A body that no goal holds back moves exactly with it.

A live body that follows given joint values (``LimitedBody``) has the same law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.kernels.layout import (
    AT_POSITION,
    AT_VELOCITY,
    AXIS_ACCELERATION,
    AXIS_VELOCITY,
    BLOCK,
    LOWER,
    OFFSET,
    RATIO,
    REASON,
    SCALAR,
    STOP,
    STRETCH,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    UPPER,
    VARIABLE_WIDTH,
)
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, Bools, is_finite, is_number
from synovia.model.motion_limits import by_joint
from synovia.model.tables import Ints, writable
from synovia.servo.inputs import question_jogs, question_values
from synovia.servo.limits import Axes

_AHEAD: Final = 1e6  # radians, length units: distance to the target of a jogged joint without limits
_MOST: Final = 1e6  # largest value and velocity
_AT: Final = 1e-9  # radians, length units, and per second: smaller differences count as zero
_KEEPS_UP: Final = 1e-6  # fraction of the ordered velocity by which a joint may be off
_BLOCKED: Final = 0.2  # seconds for which a joint counts as blocked by goals
_LAG: Final = 0.25  # fraction of the time from rest to top speed by which a joint may be late, with a jerk limit
_BEHIND: Final = 1.0  # ticks at top speed: with this lag of the body, the look-ahead runs at half pace
_SLOWEST: Final = 0.02  # least pace: seconds of the look-ahead per second
_SLEW: Final = 0.2  # change of the pace, as a fraction of what acceleration limits allow
_WAITS: Final = 0.5  # seconds at top speed: a reference that is farther ahead of its joint waits


def joint_ticks(tables: Any, axes: Array) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the kernels of a tick of independent joints, and of a reset, for tables of a body and its axes.

    The tables are variables, limits, followers and coupling, see ``kernels.servo.tick.servo_tick``.
    """
    from synovia.kernels.compiler.jit import ready
    from synovia.kernels.servo.tick import servo_reset, servo_tick

    none, q = axes[:0], np.zeros(0)
    tick = ready(servo_tick, *(table[:0] for table in tables), none, q, q, q, q, 1.0, 0)
    return partial(tick, *tables, axes), partial(ready(servo_reset, none, q, 1.0), axes)


class Pace:
    """Time scaling of the look-ahead that leads a body.

    Args:
        table: The axes of the body, see ``kernels.layout``.
        lag: Fraction of the time from rest to top speed by which the body may be late; used with a jerk limit.
            If the pace reacted sooner, the body and its look-ahead would oscillate.

    Attributes:
        share: The pace: seconds of the look-ahead per second, at most 1.
    """

    def __init__(self, table: Array, lag: float = 0.0) -> None:
        """Begin at full pace."""
        self._table, self._lag = table, lag
        self.share = 1.0

    def adapt(self, behind: Array, h: float) -> None:
        """Slow down if the body falls behind, and speed up again.

        Args:
            behind: Distance of each axis from the look-ahead, radians or length units.
            h: Time of a tick, seconds.
        """
        speed, acceleration = self._table[:, TOP_SPEED], self._table[:, TOP_ACCELERATION]
        jerk, allowed = self._table[:, TOP_JERK], _BEHIND * h
        if self._lag and np.isfinite(jerk).all():
            allowed = max(allowed, self._lag * float((acceleration / jerk + speed / acceleration).max(initial=0.0)))
        late = float((np.abs(behind) / speed).max(initial=0.0))
        slew = _SLEW * h * float((acceleration / speed).min(initial=np.inf))
        low, high = max(self.share - slew, _SLOWEST), min(self.share + slew, 1.0)
        self.share = min(max(1.0 / (1.0 + (late / allowed) ** 2), low), high)


@dataclass(frozen=True)
class Order:
    """The value or velocity that a user asks of one axis.

    Args:
        row: Row of the skeleton of the joint that the user named.
        value: Value to go to, radians or length units; None for a velocity.
        speed: Velocity to move with, per second.
    """

    row: int
    value: float | None
    speed: float = 0.0


@dataclass(frozen=True)
class Orders:
    """Orders of one tick: an order by axis, axes that are released to the goals, and joints whose value is NaN."""

    given: Mapping[int, Order]
    free: tuple[int, ...] = ()
    unseen: tuple[int, ...] = ()


@dataclass
class _Drive:
    """One driven axis.

    Args:
        order: Its last order.
        seen: Time of its last order, seconds.
        low: Lower limit.
        high: Upper limit.
        row: The state of its reference, (1, AXIS_WIDTH).
        place: Value of its reference, (1,).
        step: Takes a tick of the reference.
        begin: Sets the velocity of the reference.
        lost: Whether orders have stopped coming; then the reference brakes.
        end: Value to which the reference goes.
        blocked: Last time at which goals kept the joint from its reference, seconds.
    """

    order: Order
    seen: float
    low: float
    high: float
    row: Array
    place: Array
    step: Callable[..., Any]
    begin: Callable[..., Any]
    lost: bool = False
    end: float = 0.0
    blocked: float = -math.inf


class Drives:
    """The joints of a body that users drive.

    Args:
        axes: The axes of the body.
        timeout: Seconds for which an order applies.
        tolerance: Errors within which a joint has reached its value: length units, radians.

    Attributes:
        tolerance: These tolerances.
        unseen: Joints whose value in this tick is NaN.
    """

    def __init__(
        self,
        axes: Axes,
        timeout: float,
        tolerance: tuple[float, float],
    ) -> None:
        """Begin without orders."""
        self._axes, self._timeout, self.tolerance = axes, timeout, tolerance
        t = axes.skeleton.tables
        scalar = t.variables[:, BLOCK] == SCALAR
        self._limits = dict(zip(axes.numbers.tolist(), t.limits[scalar][:, [LOWER, UPPER]].tolist(), strict=True))
        self._q = dict(zip(axes.numbers.tolist(), axes.number_q.tolist(), strict=True))
        self._leaders: dict[int, tuple[int, float, float]] = {}  # by joint: its axis, ratio and offset
        for axis in axes.numbers.tolist():
            self._leaders[int(axes.joints[axis])] = axis, 1.0, 0.0
        for (row, axis, _), (ratio, offset) in zip(
            axes.followers, t.coupling[:, [RATIO, OFFSET]].tolist(), strict=True
        ):
            self._leaders[row] = axis, ratio, offset
        self.reset()

    def reset(self) -> None:
        """Discard all orders."""
        self._drives: dict[int, _Drive] = {}
        self._ended: dict[int, Order] = {}
        self._now = 0.0
        self.unseen: tuple[int, ...] = ()
        self._pace, self._waits = Pace(self._axes.table, _LAG), False
        self._states: dict[str, str] = {}

    @property
    def states(self) -> dict[str, str]:
        """The state of each joint with an order since the reset, by its name; see ``Tick.states``."""
        if not self._drives and not self._ended and not self.unseen:
            return {}
        lost = (*(one.row for one in self._ended.values()), *self.unseen)
        return (self._states if self._drives else {}) | {self._key(row): "lost" for row in lost}

    @property
    def active(self) -> bool:
        """Whether any joint is driven, or brakes."""
        return bool(self._drives)

    @property
    def at(self) -> Ints:
        """Indices in q of the values of driven joints."""
        return np.array([self._q[axis] for axis in self._drives], np.int32)

    @property
    def variables(self) -> Bools:
        """Which variables of the skeleton are driven."""
        out = np.zeros(len(self._axes.firsts), bool)
        out[self._axes.variable[list(self._drives)]] = True
        return out

    @property
    def places(self) -> Array:
        """Reference values of driven joints, in the order of ``at``."""
        return np.array([drive.place[0] for drive in self._drives.values()])

    def lead_straight(self, q: Array, before: Array) -> None:
        """Replace references by ordered values, in q (nq,) of this tick and in ``before`` (nq,) of the last tick.

        Joints that no goal needs go straight to their values; behind a reference they might overshoot.
        """
        for axis, drive in self._drives.items():
            value = drive.order.value
            if value is not None and not drive.lost:
                q[self._q[axis]] = before[self._q[axis]] = min(max(value, drive.low), drive.high)

    def read(self, joints: Any, jog: Any) -> Orders | None:
        """Read and check the orders of a tick, without changing the state.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a joint does not exist.
        """
        if joints is None and jog is None:
            return None
        given: dict[int, Order] = {}
        free: list[int] = []
        unseen: list[int] = []
        for name, values in (("joints", joints), ("jog", jog)):
            if values is None:
                continue
            if not isinstance(values, Mapping):
                what = "values" if name == "joints" else "velocities"
                raise InputError(name, value=values, expected=f"{what} by joint, such as {{'joint1': 0.2}}")
            for row, value in self._axes.skeleton.by_row(cast("Mapping[Any, Any]", values), name).items():
                axis, ratio, offset = self._axis(row, name)
                if axis in given or axis in free:
                    raise InputError(
                        f"{name} of {self._key(row)!r}", value=value,
                        expected="one value or velocity of a joint, and of those that it is coupled to",
                    )  # fmt: skip
                if value is None:
                    free.append(axis)
                    continue
                if is_number(value) and math.isnan(value):
                    unseen.append(row)
                    continue
                if not is_finite(value) or abs(value) > _MOST:
                    unit = "radians or length units" if name == "joints" else "per second"
                    raise InputError(f"{name} of {self._key(row)!r}", value=value, expected=f"a finite number, {unit}")
                if name == "joints":
                    given[axis] = Order(row, (float(value) - offset) / ratio)
                else:
                    given[axis] = Order(row, None, float(value) / ratio)
        question_values(self._axes, {axis: one.value for axis, one in given.items() if one.value is not None})
        question_jogs(self._axes, {axis: one.speed for axis, one in given.items() if one.value is None})
        return Orders(given, tuple(free), tuple(unseen))

    def _key(self, row: int) -> str:
        """Return the name of a joint."""
        return self._axes.skeleton.joint_keys[row]

    def _axis(self, row: int, name: str) -> tuple[int, float, float]:
        """Return a joint's axis, and the ratio and offset from the axis's value to the joint's value.

        Raises:
            InputError: If the joint cannot be driven.
        """
        joint, where = self._axes.skeleton.joints[row], f"{name} of {self._key(row)!r}"
        if joint.kind not in (Kind.HINGE, Kind.SLIDE):
            hint = "a RotationGoal turns it" if joint.kind is Kind.BALL else None
            raise InputError(where, value=joint.kind.name, expected="a HINGE or SLIDE", hint=hint)
        axis, ratio, offset = self._leaders.get(row, (-1, 0.0, 0.0))
        if axis < 0 or ratio == 0.0:
            raise InputError(where, expected="a joint that moves")
        self._axes.check_limits_of(int(self._axes.joints[axis]))
        return axis, ratio, offset

    def take(self, orders: Orders | None, q: Array, now: float) -> None:
        """Apply the orders of a tick.

        Args:
            orders: The orders, or None.
            q: Joint values of the robot before the tick, (nq,).
            now: Time at the end of the tick, seconds.
        """
        if orders is not None:
            for axis in orders.free:
                self._drives.pop(axis, None)
                self._ended.pop(axis, None)
            for axis, order in orders.given.items():
                if axis not in self._drives:
                    self._begin(axis, order, q)
                drive = self._drives[axis]
                drive.order, drive.seen, drive.lost = order, now, False
                self._ended.pop(axis, None)
        self._now = now
        for drive in self._drives.values():
            drive.lost = drive.lost or now - drive.seen > self._timeout

    def _begin(self, axis: int, order: Order, q: Array) -> None:
        """Begin to drive an axis from its present motion."""
        low, high = self._limits[axis]
        self._axes.drive(axis)
        row = self._axes.table[axis : axis + 1].copy()
        row[0, STRETCH] = 1.0  # the reference waits for no other axis
        limits = self._axes.skeleton.tables.limits[self._axes.variable[axis]][None].copy()
        variables = np.zeros((1, VARIABLE_WIDTH), np.int32)
        variables[0, BLOCK] = SCALAR
        step, begin = joint_ticks((variables, limits, np.zeros((0, 2), np.int32), np.zeros((0, 2))), row)
        place = q[[self._q[axis]]].copy()
        self._drives[axis] = _Drive(order, 0.0, low, high, row, place, step, begin)

    def brake(self) -> None:
        """Let all driven joints brake; the goals then lead them again."""
        for drive in self._drives.values():
            drive.lost = True

    def advance(self, h: float) -> None:
        """Advance the references of all driven joints by a tick of time h."""
        h *= 0.0 if self._waits else self._pace.share
        for axis, drive in self._drives.items():
            if h <= 0.0:
                continue
            table, row, order = self._axes.table[axis], drive.row[0], drive.order
            row[[TOP_SPEED, TOP_ACCELERATION, TOP_JERK]] = table[[TOP_SPEED, TOP_ACCELERATION, TOP_JERK]]
            stops = STOP if drive.lost or (order.value is None and order.speed == 0.0) else 0
            if order.value is not None:
                drive.end = min(max(order.value, drive.low), drive.high)
            elif stops:
                drive.end = float(drive.place[0])
            else:
                row[TOP_SPEED] = min(row[TOP_SPEED], abs(order.speed))
                far = float(drive.place[0]) + math.copysign(_AHEAD, order.speed)
                drive.end = min(max(far, drive.low), drive.high)
            wanted, out = np.array([drive.end]), np.empty(1)
            drive.step(drive.place, wanted, wanted, out, h, stops)
            drive.place = out

    def follow(self, q: Array, led: Array, h: float) -> None:
        """Update the references and states after a tick.

        References slow down or wait if the body is behind. A lost reference ends when it and its joint are at rest.

        Args:
            q: Joint values of the robot, (nq,).
            led: Joint values that lead the body, (nq,).
            h: Seconds.
        """
        behind = self._axes.way(q, led)
        self._pace.adapt(behind, h)
        table = self._axes.table
        self._waits = bool((np.abs(behind) > _WAITS * table[:, TOP_SPEED]).any())
        self._states = {}
        for axis, drive in list(self._drives.items()):
            at = float(led[self._q[axis]])
            blocked = abs(at - float(drive.place[0])) > _AT and not drive.lost
            if blocked:  # goals need the joint there
                drive.begin(np.zeros(1), h)
                drive.place, drive.blocked = np.array([at]), self._now
            reason = 0.0 if blocked else self._reason(axis, drive)
            if table[axis, REASON] == 0.0:
                table[axis, REASON] = reason
            self._states[self._key(drive.order.row)] = (
                "missed"
                if self._now - drive.blocked < _BLOCKED
                else self._state(axis, drive, float(q[self._q[axis]]), reason)
            )
            if drive.lost and abs(drive.row[0, AXIS_VELOCITY]) <= _AT and abs(table[axis, AXIS_VELOCITY]) <= _AT:
                del self._drives[axis]
                self._ended[axis] = drive.order

    def _reason(self, axis: int, drive: _Drive) -> float:
        """Return the limit that holds the reference of an axis back, 0 for none."""
        row, order = drive.row[0], drive.order
        at = float(drive.place[0])
        if order.value is None and not drive.lost and order.speed:
            end = drive.high if order.speed > 0.0 else drive.low
            if abs(end - at) <= _AT:
                return float(AT_POSITION)
        elif order.value is not None and abs(drive.end - at) <= _AT:
            return float(AT_POSITION) if abs(order.value - drive.end) > _AT else 0.0
        reason = float(row[REASON])
        slow = order.value is None and abs(order.speed) <= self._axes.table[axis, TOP_SPEED]
        return 0.0 if reason == AT_VELOCITY and slow else reason

    def _state(self, axis: int, drive: _Drive, q: float, reason: float) -> str:
        """Return the state of a driven joint."""
        order, near = drive.order, self.tolerance[0 if self._axes.lengths[axis] else 1]
        if drive.lost:
            return "lost"
        if order.value is not None:
            if abs(q - order.value) <= near:
                return "reached"
            return "missed" if reason == AT_POSITION and abs(q - drive.end) <= near else "late"
        if reason == AT_POSITION:
            return "missed"
        off = abs(float(self._axes.table[axis, AXIS_VELOCITY]) - order.speed)
        return "reached" if off <= _KEEPS_UP * abs(order.speed) + _AT else "late"


_NO_LIMIT: Final = 1e12  # per second, per second²: stands for no limit
_SHORTEST: Final = 0.3  # seconds: least duration of a transition to the source
_TURNS: Final = 3.0  # radians per second, and ``reach`` per second: approximate top speed of a transition
_STEEPEST: Final = 1.875  # largest slope of the quintic blend from 0 to 1
_AT_WANTED: Final = 1e-9  # radians, length units: closer to the wanted joint values, the body is not behind


class LimitedBody:
    """A body that follows joint values as its limits allow, by the motion law of ``Servo``.

    Args:
        skeleton: The body.
        reach: Length units per unit of a free root's linear limit.
        rate: Ticks per second.
        limits: Velocity, acceleration and jerk, as in ``LiveRetarget``.

    Attributes:
        axes: The state of all axes.
        q: Joint values now, (nq,).
    """

    def __init__(self, skeleton: Skeleton, reach: float, rate: float, limits: Mapping[str, Any]) -> None:
        """Load the kernels and take the limits."""
        self._skeleton, self._reach, self._h = skeleton, reach, 1.0 / rate
        moving = [row for row, joint in enumerate(skeleton.joints) if joint.kind is not Kind.FIXED]
        self.axes = axes = Axes(skeleton, moving, reach)
        velocity, acceleration = (_filled(skeleton, limits[name], name) for name in ("velocity", "acceleration"))
        axes.set_limits(velocity, acceleration, limits["jerk"])
        t = skeleton.tables
        tables = writable(t.variables, t.limits, t.followers, t.coupling)
        self._tick, self._begin = joint_ticks(tables, axes.table)
        self._units = np.where(axes.lengths, reach, 1.0)
        self._still = np.zeros(len(axes.joints))
        self.reset(skeleton.rest_pose().q)

    def reset(self, q: Array) -> None:
        """Stand still at joint values (nq,), from which the next ``go`` starts without a transition."""
        self.q = np.array(q)
        self._before = self.q
        self._begin(self._still, self._h)
        self._offset: Array | None = None
        self.late = False

    def leave(self, q: Array) -> None:
        """Begin a smooth transition from the last wanted joint values to a source that is now at q, (nq,)."""
        offset = self.axes.way(q, self._before)
        farthest = float((np.abs(offset) / self._units).max(initial=0.0))
        self._offset, self._spent = offset, 0.0
        self._time = max(_SHORTEST, _STEEPEST * farthest / _TURNS)

    @property
    def going_over(self) -> bool:
        """Whether a transition to the source is in progress."""
        return self._offset is not None

    def go(self, q: Array | None) -> Array:
        """Take a tick towards joint values (nq,), None for the last ones; return the joint values after it."""
        wanted = self._before if q is None else q
        if q is not None and self._offset is not None:
            self._spent += self._h
            u = min(self._spent / self._time, 1.0)
            left = 1.0 - u * u * u * (u * (6.0 * u - 15.0) + 10.0)
            wanted = self.axes.shifted(q, left * self._offset)
            if u >= 1.0:
                self._offset = None
        out = np.empty(len(wanted))
        self._tick(self.q, wanted, self._before, out, self._h, 0)
        self._before, self.q = wanted, out
        return out

    @property
    def behind(self) -> bool:
        """Whether limits hold the body back from the wanted joint values."""
        table = self.axes.table
        return bool(table[:, REASON].any()) and bool(
            np.abs(self.axes.way(self.q, self._before)).max(initial=0.0) > _AT_WANTED
        )

    @property
    def wanted(self) -> Array:
        """Joint values that the body follows, (nq,)."""
        return self._before

    @property
    def velocity(self) -> Array:
        """Velocity since the tick before, (nv,)."""
        return self.axes.as_velocity(self.axes.table[:, AXIS_VELOCITY])

    @property
    def acceleration(self) -> Array:
        """Acceleration in the last tick, (nv,)."""
        return self.axes.as_velocity(self.axes.table[:, AXIS_ACCELERATION])


def _filled(skeleton: Skeleton, given: Any, name: str) -> Any:
    """Return a limit in the form that ``Axes`` takes, ``_NO_LIMIT`` where neither the user nor the file has one."""
    mine: dict[int, Any] = {}
    if isinstance(given, str):  # a share of the limits of the file, if it has any
        limits = np.where(np.isinf(found := by_joint(skeleton, given, name)), _NO_LIMIT, found).tolist()
        return {row: limit for row, limit in enumerate(limits) if skeleton.joints[row].kind is not Kind.FIXED}
    if given is not None and not isinstance(given, Mapping):
        return given
    for row, joint in enumerate(skeleton.joints):
        stated = joint.velocity if name == "velocity" else None
        mine[row] = _NO_LIMIT if stated is None or not math.isfinite(stated) else stated
    if given is not None:
        mine |= skeleton.by_row(cast("Mapping[Any, Any]", given), name)
    return {row: value for row, value in mine.items() if skeleton.joints[row].kind is not Kind.FIXED}
