"""A body that follows given joint values within the limits of all joints: the last step of a live tick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

import numpy as np

from synovia.kernels.layout import ADVANCE, AXIS_ACCELERATION, AXIS_VELOCITY, PROPOSE, REASON
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.motion_limits import by_joint
from synovia.model.tables import writable
from synovia.servo.limits import Axes

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
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.tick import servo_reset, servo_tick

        self._skeleton, self._reach, self._h = skeleton, reach, 1.0 / rate
        moving = [row for row, joint in enumerate(skeleton.joints) if joint.kind is not Kind.FIXED]
        self.axes = axes = Axes(skeleton, moving, reach)
        velocity, acceleration = (_filled(skeleton, limits[name], name) for name in ("velocity", "acceleration"))
        axes.set_limits(velocity, acceleration, limits["jerk"])
        t = skeleton.tables
        tables: Any = writable(t.variables, t.limits, t.followers, t.coupling)
        q = np.zeros(skeleton.nq)
        none = axes.table[:0]
        like = tables[0][:0], tables[1][:0], tables[2][:0], tables[3][:0], none
        tick = ready(servo_tick, *like, q, q, q, q, 1.0, PROPOSE)
        self._tick = partial(tick, *tables, axes.table)
        self._begin = partial(ready(servo_reset, none, q[:0], 1.0), axes.table)
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
        self._tick(self.q, wanted, self._before, out, self._h, PROPOSE | ADVANCE)
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
        return self.axes.by_column(AXIS_VELOCITY)

    @property
    def acceleration(self) -> Array:
        """Acceleration in the last tick, (nv,)."""
        return self.axes.by_column(AXIS_ACCELERATION)


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
