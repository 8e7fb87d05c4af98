"""Speed limits of end effectors, linear and angular, in every tick.

A tick chooses velocities of all axes. Here they are brought nearer to those of the stop that is known, until two things
hold: in this tick no end effector is faster than its limits, and on the stop from there neither. As the stop is always
possible, the next tick has a choice again. So an end effector never exceeds its limits, unless the body begins beyond
them, or a stop changes because limits of joints do.

Before that, the limits of all joints are lowered alike, so that the body goes on as straight as without limits, and
brakes seldom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.kernels.layout import (
    ADVANCE,
    AT_POSITION,
    AT_VELOCITY,
    AXIS_LOWER,
    AXIS_UPPER,
    AXIS_VELOCITY,
    BLOCK,
    BLOCK_Q,
    NEXT,
    PLAN_FIRST,
    PLAN_LAST,
    PLAN_MIDDLE,
    PLAN_NEXT,
    PLAN_VELOCITY,
    PROPOSE,
    REASON,
    SCALAR,
    STOP,
    STRETCH,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
)
from synovia.model.geometry import Array, as_numbers, is_number, quat_product, times_exp
from synovia.model.pose import world_frames
from synovia.servo.limits import Axes

_MOST: Final = 1e12  # largest limit
_SLACK: Final = 1e-9  # part of a limit that is rounding
_AHEAD: Final = 0.995  # part of a limit that the stop keeps where it is sampled
_CRUISE: Final = 0.95  # part of a limit at which the body goes
_PEAK: Final = (
    1.0 / 6.0
)  # times curvature and squared length: most that a parabola is above its mean, if it peaks there
_SAMPLE: Final = 0.1  # radians, length units: way of an axis between two samples of a stop
_FEWEST, _SAMPLES = 24, 64  # samples of a stop
_PARTS: Final = 8  # samples of the way to where the body goes
_NEAR: Final = 4.0  # ticks: a way that is shorter needs no lower limits
_HALVINGS: Final = 7  # of the part of the way from the stop to what was chosen
_TINY: Final = 1e-12  # seconds: less than any way takes
_IDENTITY: Final = np.array([0.0, 0.0, 0.0, 1.0])
_TOLD: Final = 0.9  # part of a limit from which on it is told


class ToolSpeed:
    """A tick of a body that keeps the speed limits of its end effectors.

    Args:
        axes: The axes of the body.
        limits: By joint, link or site: a linear limit, length units/s, or a pair: linear and angular, rad/s.
        tick: The kernel of a tick without these limits, see ``kernels.servo.tick``.

    Raises:
        InputError: If a limit cannot be used.
        UnknownNameError: If there is no such end effector.

    Attributes:
        limits: Linear and angular limits, by end effector.
        told: By end effector, "tool speed" if that limited the last tick, "recovering" if it was too fast.
    """

    def __init__(self, axes: Axes, limits: Any, *, tick: Callable[..., None]) -> None:
        """Find the end effectors."""
        self._axes, self._table, self._tick = axes, axes.table, tick
        self._skeleton = skeleton = axes.skeleton
        given = _checked(limits)
        self._names = list(given)
        places = [skeleton.locate(name) for name in self._names]
        self._rows = np.array([row for row, _ in places], np.int64)
        self._places = np.array([np.eye(4) if place is None else place for _, place in places])
        self._limits = np.array(list(given.values()))  # (tools, 2)
        self.limits = given
        variables, firsts = skeleton.tables.variables, axes.firsts
        scalar = variables[:, BLOCK] == SCALAR
        self._scalar_q, self._scalar_axis = variables[scalar, BLOCK_Q], firsts[scalar]
        self._turn_q = variables[~scalar, BLOCK_Q, None] + np.arange(4)
        self._turn_axis = firsts[~scalar, None] + np.arange(3)
        self._before = axes.table.copy()
        self.told: dict[str, str] = {}
        self._slowed = False  # whether the tick, or the one before, was slower than joints allow
        self._leads = False  # whether the body follows one that keeps the limits

    def seconds(self, q: Array) -> Array:
        """Return the least time of each end effector between poses (T, nq) one after the other, (T - 1, tools)."""
        frames = world_frames(self._skeleton, q)[:, self._rows]
        R, p = frames[..., :9].reshape(*frames.shape[:2], 3, 3), frames[..., 9:]
        p = p + np.einsum("tkij,kj->tki", R, self._places[:, :3, 3])
        ways = np.linalg.norm(np.diff(p, axis=0), axis=-1)
        halves = np.linalg.norm(np.diff(R, axis=0), axis=(-2, -1)) / math.sqrt(8.0)  # sines of half the angles
        turns = 2.0 * np.arcsin(np.minimum(halves, 1.0))
        linear, angular = self._limits.T
        return np.maximum(ways / linear, turns / angular)

    def keeps(self, poses: Array, steps: Array) -> bool:
        """Return whether end effectors keep their limits along poses (T + 1, nq), some seconds (T,) apart."""
        return _peak(self.seconds(poses), steps[:, None]) <= _AHEAD

    def cruise(self, step: float, q: Array) -> float:
        """Return the highest speed on a way on which poses (T, nq) are a step apart, for what leads the body."""
        self._leads = True
        return _CRUISE * step / max(float(self.seconds(q).max(initial=0.0)), _TINY)

    def __call__(self, q: Array, wanted: Array, before: Array, out: Array, h: float, parts: int) -> None:
        """Take a tick, or a part of it, as the kernel does."""
        if parts & PROPOSE:
            self._before[:] = self._table
            if parts & STOP:
                self._tick(q, wanted, before, out, h, parts)
                if parts & ADVANCE:
                    self.tell(q, out, h, False)
                return
            self._propose(q, wanted, before, out, h)
        if parts & ADVANCE:
            self._advance(q, wanted, before, out, h)

    def _propose(self, q: Array, wanted: Array, before: Array, out: Array, h: float) -> None:
        """Propose a tick with lower limits of all joints, if the way to go asks for them."""
        table, top = self._table, self._table[:, TOP_SPEED].copy()
        way = self._axes.way(q, wanted)
        share = self._share(q, way, top, h)
        if share < 1.0:  # not below what the stop that is known needs: that would be a recovery
            u, a, j = (table[:, PLAN_VELOCITY + k] for k in range(3))
            with np.errstate(divide="ignore", invalid="ignore"):
                peak = np.where(a * j < 0.0, np.abs(u - 0.5 * a * a / j), 0.0)
            fastest = np.maximum(np.maximum(np.abs(u), np.abs(table[:, AXIS_VELOCITY])), peak)
            table[:, TOP_SPEED] = np.minimum(np.maximum(share * top, fastest), top)
        if self._slowed:
            self._stretch(np.abs(way), h)
        self._tick(q, wanted, before, out, h, PROPOSE)
        self._slowed = share < 1.0
        if self._slowed:
            # these limits are not those that the user knows
            d = np.abs(table[:, NEXT]) * (h + np.abs(table[:, NEXT]) / table[:, TOP_ACCELERATION])
            inside = (table[:, AXIS_UPPER] > d) & (table[:, AXIS_LOWER] < -d)
            at = (table[:, REASON] == AT_VELOCITY) | ((table[:, REASON] == AT_POSITION) & inside)
            table[at & (table[:, TOP_SPEED] < top), REASON] = 0.0
            table[:, TOP_SPEED] = top

    def _stretch(self, way: Array, h: float) -> None:
        """Let axes that were slowed down go faster than those that wait for them, so that all arrive together."""
        table = self._table
        V, A, J = table[:, TOP_SPEED], table[:, TOP_ACCELERATION], table[:, TOP_JERK]
        p = A / J
        b = np.sqrt(p * p + 4.0 * way / A)
        short = (way <= 2.0 * A * p * p) & np.isfinite(J)
        t = np.where(short, np.cbrt(32.0 * way / np.where(short, J, 1.0)), p + b)
        peak = np.where(short, 0.25 * np.where(short, J, 0.0) * t * t, 0.5 * A * (b - p))
        t = np.where(peak <= V, t, np.maximum(t, way / V + V / A + p))
        longest = float(t.max(initial=0.0))
        table[:, STRETCH] = np.maximum(table[:, STRETCH], t / max(longest, h))

    def _share(self, q: Array, way: Array, top: Array, h: float) -> float:
        """Return the part of the limits of all joints at which end effectors keep theirs on the way, by axis."""
        time = float(np.abs(way / top).max(initial=0.0))
        if time <= _NEAR * h:
            return 1.0
        poses = self._poses(q, np.linspace(0.0, 1.0, _PARTS + 1)[:, None] * way)
        needed = _PARTS * float(self.seconds(poses).max(initial=0.0))
        return 1.0 if needed <= _CRUISE * time else _CRUISE * time / needed

    def _advance(self, q: Array, wanted: Array, before: Array, out: Array, h: float) -> None:
        """Take the tick to ``out``, or as near to it as end effectors allow."""
        table = self._table
        proposed, choice = table.copy(), out.copy()
        if self._kept(q, choice, out, h):
            self.tell(q, out, h, self._slowed)
            return
        self._slowed = True
        plan, wish = proposed[:, PLAN_NEXT] * h, self._axes.way(q, choice)
        good, bad = 0.0, 1.0
        for _ in range(_HALVINGS):
            part = 0.5 * (good + bad)
            table[:] = proposed
            if self._kept(q, self._axes.shifted(q, plan + part * (wish - plan)), out, h):
                good = part
            else:
                bad = part
        if good > 0.0:
            table[:] = proposed
            self._kept(q, self._axes.shifted(q, plan + good * (wish - plan)), out, h)
        else:
            table[:] = self._before
            self._tick(q, wanted, before, out, h, PROPOSE | ADVANCE | STOP)
        self.tell(q, out, h, True)

    def _kept(self, q: Array, choice: Array, out: Array, h: float) -> bool:
        """Take the tick to ``choice``, and write to ``out`` where it leads.

        Returns:
            Whether end effectors keep their limits in this tick, and on the stop from there.
        """
        out[:] = choice
        self._tick(q, q, q, out, h, ADVANCE)
        if self.seconds(np.array([q, out])).max(initial=0.0) > h:
            return False
        plan = self._table[:, PLAN_VELOCITY : PLAN_LAST + 1]
        lasts = self._table[:, [PLAN_FIRST, PLAN_MIDDLE, PLAN_LAST]].sum(1)
        end = float(lasts.max(initial=0.0))
        if end <= 0.0:
            return True
        begins = self._table[:, PLAN_VELOCITY]
        longest = float(np.abs(0.5 * begins * lasts).max()) + float(np.abs(begins).max()) * h
        count = min(max(math.ceil(longest / _SAMPLE), _FEWEST), _SAMPLES)
        times = end * np.linspace(0.0, 1.0, count + 1) ** 2  # dense at first, where most stops are fastest
        poses = self._poses(out, _travelled(plan, times))
        return bool(_peak(self.seconds(poses), np.diff(times)[:, None]) <= _AHEAD)

    def _poses(self, q: Array, ways: Array) -> Array:
        """Return poses (T, nq) on the way from q, for how far each axis has gone, (T, n), 0 at first."""
        out = np.repeat(q[None], len(ways), axis=0)
        out[:, self._scalar_q] += ways[:, self._scalar_axis]
        if len(self._turn_q):
            quats = out[:, self._turn_q]
            quats[1:] = times_exp(_IDENTITY, np.diff(ways, axis=0)[:, self._turn_axis])
            span = 1
            while span < len(quats):  # products of all steps so far, of twice as many each time
                quats[span:] = quat_product(quats[:-span], quats[span:])
                span *= 2
            out[:, self._turn_q] = quats / np.linalg.norm(quats, axis=-1, keepdims=True)
        return self._skeleton.follow(out)

    def tell(self, q: Array, out: Array, h: float, slowed: bool) -> None:
        """Find out which end effectors limited the tick, or were too fast."""
        shares = self.seconds(np.array([q, out]))[0] / h
        self.note_shares(shares, (slowed or self._leads) * (shares > _TOLD))

    def note_shares(self, shares: Array, slows: Array) -> None:
        """Note which end effectors limited a tick, or were too fast, from the parts of their limits (tools,) they used.

        Those that slow the body down have a number other than 0 in ``slows``.
        """
        self.told = {}
        for name, share, slow in zip(self._names, shares.tolist(), slows.tolist(), strict=True):
            if share > 1.0 + _SLACK:
                self.told[name] = "recovering"
            elif slow:
                self.told[name] = "tool speed"


def _peak(shares: Array, spans: Array) -> float:
    """Return the highest speed, from ``shares`` (T, tools) that are its integrals over spans (T, 1), seconds.

    A peak is above the mean of its span, by what a parabola through the means there can have.
    """
    means = shares / spans
    slopes = np.diff(means, axis=0) / (0.5 * (spans[1:] + spans[:-1]))
    bends = np.abs(np.diff(slopes, axis=0)) / (0.25 * (spans[2:] + 2.0 * spans[1:-1] + spans[:-2]))
    bends = np.concatenate([bends[:1], bends, bends[-1:]])
    return float((means + _PEAK * bends * spans**2).max())


def _travelled(plan: Array, times: Array) -> Array:
    """Return how far axes with stops (n, 6) have gone after some times (T,), (T, n); see ``kernels.servo.stop``."""
    v, acceleration, j, *lasts = plan.T
    left, x = times[:, None], np.zeros((len(times), len(plan)))
    for jerk, last in zip((j, 0.0 * j, -j), lasts, strict=True):
        d = np.clip(left, 0.0, last)
        x = x + d * (v + d * (0.5 * acceleration + d * jerk / 6.0))
        v = v + last * (acceleration + 0.5 * last * jerk)
        acceleration = acceleration + last * jerk
        left = left - last
    return x


def _checked(limits: Any) -> dict[str, tuple[float, float]]:
    """Return linear and angular limits by end effector.

    Raises:
        InputError: If they cannot be used.
    """
    if not isinstance(limits, Mapping) or not len(cast("Mapping[Any, Any]", limits)):
        raise InputError(
            "tool_speed", value=cast("Any", limits), expected="limits by joint, such as {'tool': (0.25, 1.0)}"
        )
    out: dict[str, tuple[float, float]] = {}
    for name, value in cast("Mapping[Any, Any]", limits).items():
        where = f"tool_speed of {name!r}"
        pair = [value, None] if is_number(value) else value
        if not isinstance(pair, list | tuple) or len(cast("list[Any]", pair)) != 2:
            raise InputError(where, value=value, expected="a linear limit, or a pair: linear and angular")
        found = as_numbers([_MOST if one is None else one for one in cast("list[Any]", pair)], (2,), where)
        if not ((found > 0.0) & (found <= _MOST)).all():
            raise InputError(where, value=value, expected=f"above 0 and at most {_MOST:g}, per s")
        out[name] = (float(found[0]), float(found[1]))
    return out
