"""Speed limits of end effectors, linear and angular, in every tick.

A tick chooses velocities of all axes. This module moves them towards the velocities of the known stop until no end
effector exceeds its limits, in this tick and on the stop after it. As that stop is always possible, the next tick has a
choice again. So an end effector never exceeds its limits, unless the body begins beyond them, or the stop changes
because the limits of joints change.

Before that, the velocity limits of all joints are lowered by the same factor, so that the body moves as straight as
without limits, and seldom brakes.
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
_SLACK: Final = 1e-9  # fraction of a limit: rounding
_AHEAD: Final = 0.995  # fraction of a limit allowed at the samples of a stop
_CRUISE: Final = 0.95  # fraction of a limit for planned motion
_PEAK: Final = 1.0 / 6.0  # factor of curvature times squared span: bound for the peak of a parabola above its mean
_SAMPLE: Final = 0.1  # radians, length units: displacement of an axis between two samples of a stop
_FEWEST, _SAMPLES = 24, 64  # least and largest number of samples of a stop
_PARTS: Final = 8  # samples of the path to the wanted joint values
_NEAR: Final = 4.0  # ticks: shorter motions need no lower limits
_HALVINGS: Final = 7  # bisection steps between the known stop and the chosen tick
_TINY: Final = 1e-12  # seconds: avoids division by zero
_IDENTITY: Final = np.array([0.0, 0.0, 0.0, 1.0])
_TOLD: Final = 0.9  # fraction of the limit above which it is reported


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
        told: By end effector, "tool speed" if its limit slowed the last tick, "recovering" if it was too fast.
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
        self._slowed = False  # whether the last tick was slower than joints allow
        self._leads = False  # whether a look-ahead body that keeps the limits leads

    def seconds(self, q: Array) -> Array:
        """Return the least time of each end effector between successive poses (T, nq), seconds, (T - 1, tools)."""
        frames = world_frames(self._skeleton, q)[:, self._rows]
        R, p = frames[..., :9].reshape(*frames.shape[:2], 3, 3), frames[..., 9:]
        p = p + np.einsum("tkij,kj->tki", R, self._places[:, :3, 3])
        ways = np.linalg.norm(np.diff(p, axis=0), axis=-1)
        halves = np.linalg.norm(np.diff(R, axis=0), axis=(-2, -1)) / math.sqrt(8.0)  # sines of half the angles
        turns = 2.0 * np.arcsin(np.minimum(halves, 1.0))
        linear, angular = self._limits.T
        return np.maximum(ways / linear, turns / angular)

    def keeps(self, poses: Array, steps: Array) -> bool:
        """Return whether end effectors keep their limits along poses (T + 1, nq) with time steps (T,), seconds."""
        return _peak(self.seconds(poses), steps[:, None]) <= _AHEAD

    def cruise(self, step: float, q: Array) -> float:
        """Return the highest speed of the look-ahead on a path with poses (T, nq) at distances ``step``."""
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
        """Propose a tick with lower velocity limits of all joints, if end effectors need them."""
        table, top = self._table, self._table[:, TOP_SPEED].copy()
        way = self._axes.way(q, wanted)
        share = self._share(q, way, top, h)
        if share < 1.0:  # not below the speeds of the known stop: that would be a recovery
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
            # do not report the lowered limits, which the user did not set
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
        """Return the fraction of all velocity limits at which end effectors keep theirs, for a displacement ``way``."""
        time = float(np.abs(way / top).max(initial=0.0))
        if time <= _NEAR * h:
            return 1.0
        poses = self._poses(q, np.linspace(0.0, 1.0, _PARTS + 1)[:, None] * way)
        needed = _PARTS * float(self.seconds(poses).max(initial=0.0))
        return 1.0 if needed <= _CRUISE * time else _CRUISE * time / needed

    def _advance(self, q: Array, wanted: Array, before: Array, out: Array, h: float) -> None:
        """Take the proposed tick in ``out``, or one as near to it as end effectors allow; write ``out``."""
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
        """Take the tick to ``choice``, and write the joint values after it to ``out``.

        Returns:
            Whether end effectors keep their limits in this tick and on the stop after it.
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
        times = end * np.linspace(0.0, 1.0, count + 1) ** 2  # denser at the start, where most stops are fastest
        poses = self._poses(out, _travelled(plan, times))
        return bool(_peak(self.seconds(poses), np.diff(times)[:, None]) <= _AHEAD)

    def _poses(self, q: Array, ways: Array) -> Array:
        """Return poses (T, nq) on the path from q, for the displacements of each axis, (T, n), 0 in the first row."""
        out = np.repeat(q[None], len(ways), axis=0)
        out[:, self._scalar_q] += ways[:, self._scalar_axis]
        if len(self._turn_q):
            quats = out[:, self._turn_q]
            quats[1:] = times_exp(_IDENTITY, np.diff(ways, axis=0)[:, self._turn_axis])
            span = 1
            while span < len(quats):  # prefix products of all steps, doubling their length each time
                quats[span:] = quat_product(quats[:-span], quats[span:])
                span *= 2
            out[:, self._turn_q] = quats / np.linalg.norm(quats, axis=-1, keepdims=True)
        return self._skeleton.follow(out)

    def tell(self, q: Array, out: Array, h: float, slowed: bool) -> None:
        """Record which end effectors limited the tick, or were too fast."""
        shares = self.seconds(np.array([q, out]))[0] / h
        self.note_shares(shares, (slowed or self._leads) * (shares > _TOLD))

    def note_shares(self, shares: Array, slows: Array) -> None:
        """Record which end effectors limited a tick, or were too fast, from the used fractions of limits (tools,).

        End effectors that slow the body down have a nonzero value in ``slows``.
        """
        self.told = {}
        for name, share, slow in zip(self._names, shares.tolist(), slows.tolist(), strict=True):
            if share > 1.0 + _SLACK:
                self.told[name] = "recovering"
            elif slow:
                self.told[name] = "tool speed"


def _peak(shares: Array, spans: Array) -> float:
    """Return a bound for the highest speed, from its integrals ``shares`` (T, tools) over spans (T, 1), seconds.

    The bound adds to the mean of a span the peak of a parabola with the curvature of the means there.
    """
    means = shares / spans
    slopes = np.diff(means, axis=0) / (0.5 * (spans[1:] + spans[:-1]))
    bends = np.abs(np.diff(slopes, axis=0)) / (0.25 * (spans[2:] + 2.0 * spans[1:-1] + spans[:-2]))
    bends = np.concatenate([bends[:1], bends, bends[-1:]])
    return float((means + _PEAK * bends * spans**2).max())


def _travelled(plan: Array, times: Array) -> Array:
    """Return displacements (T, n) of axes with stops (n, 6) after some times (T,); see ``kernels.servo.stop``."""
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
