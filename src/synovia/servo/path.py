"""``late="slow"``: the body stays on the path of its targets, and is late along it where its limits require that.

The path leads from target to target: straight lines for positions, shortest rotations for orientations. A path
parameter moves along it as an axis of its own, with the motion law of a joint. Its limits ensure that every joint keeps
its own limits on the path up to the next possible stop. The body follows the solutions at the path parameter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    ADVANCE,
    AXIS_VELOCITY,
    AXIS_WIDTH,
    COLD,
    GIVEN,
    LIMIT_WIDTH,
    LOWER,
    MISSED,
    PLAN_FIRST,
    PLAN_LAST,
    PLAN_MIDDLE,
    PROPOSE,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    TRANSFORM_WIDTH,
    UPPER,
    VARIABLE_WIDTH,
)
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.servo.ahead import ALONG, JERK, Ahead
from synovia.servo.curve import exp_turn, log_turn
from synovia.servo.pace import Pace
from synovia.servo.tool_speed import ToolSpeed

_FARTHER: Final = 3.0  # look-ahead as a multiple of the stopping distance
_TICKS: Final = 4  # least look-ahead, ticks
_NEAR: Final = 0.02  # length scales and radians: least look-ahead
_REACTION: Final = 2.0  # ticks until braking begins
_PRECISION: Final = 1e-5  # fraction of the tolerance: finite differences of nearby solutions have to be smooth
_SMALL: Final = 1e-9  # length scales and radians: shorter paths are treated as a point
_LONGEST: Final = 4096  # largest number of waiting targets; beyond it, every other target is dropped


class Path:
    """The path of the targets, and the position of the body on it.

    Args:
        ik: The problem.
        table: The axes of the body, see ``kernels.layout``.
        kernels: Returns the kernels of a tick and of a reset for other variables.
        way: Returns the displacement of each axis from one pose to another.
        tools: Speed limits of end effectors, or None.
    """

    def __init__(
        self,
        ik: CompiledProblem,
        table: Array,
        kernels: Callable[[Ints, Array, Array], tuple[Any, Any]],
        way: Callable[[Array, Array], Array],
        tools: ToolSpeed | None,
    ) -> None:
        """Make an axis for the path parameter."""
        self._joints, self._reach = table, ik.reach
        self._tools = tools
        precise = _PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]
        self._ik = ik.with_parts(solver=ik.solver, tolerance=precise)
        self._floats = self._ik.floats if ik.obstacles is None else self._ik.floats.copy()
        self._scratch = new_scratch(self._ik.scratch_size)
        self._axis = np.zeros((1, AXIS_WIDTH))
        limits = np.zeros((1, LIMIT_WIDTH))
        limits[0, LOWER], limits[0, UPPER] = -np.inf, np.inf
        self._tick, self._begin = kernels(np.zeros((1, VARIABLE_WIDTH), np.int32), limits, self._axis)
        self._waypoints: deque[tuple[float, Array]] = deque()
        self._end = np.zeros(1)
        self._s = np.zeros(1)
        self._ahead = Ahead(table, way, lambda s, q: self._solve(self.at(s), q)[1])

    def reset(self, table: Array, q: Array, h: float) -> None:
        """Restart at rest at these targets, with joint values q."""
        self._waypoints = deque([(0.0, table)])
        self._end, self._s = np.zeros(1), np.zeros(1)
        self._axis[0, [TOP_SPEED, TOP_ACCELERATION, TOP_JERK]] = 1.0, 1.0, np.inf
        times = self._joints[:, TOP_ACCELERATION] / self._joints[:, TOP_JERK]
        self._mean = Mean(2.0 * ALONG / JERK * float(times.max(initial=0.0)), 0.0)
        self._begin(np.zeros(1), h)
        self.pace = Pace(self._joints)
        self.place = q.copy()
        self._ahead.reset(0.0, self.place)
        self.row: Array | None = None

    def put(self, places: Places) -> None:
        """Move obstacles to their present places; the present point of the path is solved again."""
        places.put_into(self._ik.obstacles, self._floats)
        self.row = None

    def extend(self, table: Array) -> None:
        """Extend the path to new targets."""
        last, before = self._waypoints[-1]
        if np.array_equal(table, before):
            return
        length = self._length(before, table)
        self._waypoints.append((last + length, table))
        if len(self._waypoints) > _LONGEST:
            kept = list(self._waypoints)
            self._waypoints = deque([*kept[:-1:2], kept[-1]])
        self._end = np.array([last + length])

    def cut(self) -> None:
        """Discard the path beyond the point where the body stops."""
        stop = float(self._s[0]) + self._stop()
        table = self.at(stop)
        self._waypoints = deque([pair for pair in self._waypoints if pair[0] < stop])
        self._waypoints.append((stop, table))
        self._end = np.array([stop])
        self._ahead.cut(stop)

    def time_to_stop(self) -> float:
        """Return the seconds that the smoothed path parameter takes to stop."""
        return self._stopping_time() + self._mean.time

    def _stopping_time(self) -> float:
        """Return the seconds that the path parameter takes to stop."""
        return float(self._axis[0, [PLAN_FIRST, PLAN_MIDDLE, PLAN_LAST]].sum())

    @property
    def targets(self) -> Array:
        """The last targets of the path, (1, goals, 17)."""
        return self._waypoints[-1][1]

    def _stop(self) -> float:
        """Return the approximate distance that the path parameter moves until it stops."""
        v = float(self._axis[0, AXIS_VELOCITY])
        return min(max(v * self._stopping_time(), 0.0), max(float(self._end[0] - self._s[0]), 0.0))

    def _length(self, a: Array, b: Array) -> float:
        """Return the path length between two tables of targets: length scales or radians, the largest of all goals."""
        frames, others = (one[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4) for one in (a, b))
        ways = np.linalg.norm(others[:, :3, 3] - frames[:, :3, 3], axis=1) / self._reach
        traces = np.einsum("gij,gij->g", frames[:, :3, :3], others[:, :3, :3])
        turns = np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0))
        return max(float(np.maximum(ways, turns).max(initial=0.0)), _SMALL)

    def at(self, s: float) -> Array:
        """Return the targets at path parameter s, (1, goals, 17)."""
        before, table = self._waypoints[0]
        for after, other in self._waypoints:
            if before < after and s < after:
                return between(table, other, (s - before) / (after - before))
            before, table = after, other
        return table

    def advance(self, h: float, parts: int) -> Array:
        """Take a tick of time h along the path, and return the joint values after it, (nq,)."""
        h *= self.pace.share
        self._limit(h)
        out, before = np.empty(1), self._mean.place
        self._tick(self._s, self._end, self._end, out, h, PROPOSE | ADVANCE | parts)
        self._s = out
        here = self._mean.add(float(out[0]), h)
        while len(self._waypoints) > 1 and self._waypoints[1][0] <= here:
            self._waypoints.popleft()
        if here != before or self.row is None:
            self.row, self.place = self._solve(self.at(here), self.place)
        return self.place

    @property
    def arrived(self) -> bool:
        """Whether the body is led to the end of the path."""
        return bool(self._end[0] - self._mean.place <= _SMALL)

    def _solve(self, table: Array, start: Array) -> tuple[Array, Array]:
        """Return the row of results for these targets from a start (nq,), and its joint values."""
        ik, row = self._ik, self._ik.new_rows(1)
        call = partial(ik.call, ik.one_attempt, self._floats, table, start[None], row, self._scratch, COLD, 0)
        if ik.checked_call(call, table, None) & MISSED:
            ik.polish_misses(start[None], row, self._scratch, False, self._floats)
        return row[0], row[0, ik.places]

    def _limit(self, h: float) -> None:
        """Write the limits of the path parameter, from the limits of all joints between here and its stop."""
        s, end, axis = float(self._s[0]), float(self._end[0]), self._axis[0]
        if end - s <= _SMALL:
            return
        v = max(float(axis[AXIS_VELOCITY]), 0.0)
        here = self._mean.place
        self._ahead.pass_by(here)
        self._ahead.look(s + max(_FARTHER * self._stop(), _TICKS * v * h, _NEAR), end)
        cruise = None if self._tools is None else self._tools.cruise
        axis[TOP_SPEED], axis[TOP_ACCELERATION] = self._ahead.limits(
            s + _REACTION * h * v, s - self._mean.place, cruise
        )


class Mean:
    """The moving average of the path parameter, which turns a limit of acceleration into a limit of jerk.

    If the acceleration is at most a, the mean over the time T has a jerk of at most 2 a / T.

    Args:
        time: Time T, seconds; 0 for the parameter itself.
        place: Initial value.
    """

    def __init__(self, time: float, place: float) -> None:
        """Begin at rest."""
        self.time, self.place = time, place
        self._now, self._sum = 0.0, 0.0
        self._samples = deque([(-time, 0.0, place), (0.0, 0.0, place)])  # time, integral from the first place, place
        self._from = place

    def add(self, place: float, h: float) -> float:
        """Return the mean after a time h in which the parameter has moved evenly to ``place``."""
        last = self._samples[-1][2]
        self._now += h
        self._sum += h * (0.5 * (last + place) - self._from)
        self._samples.append((self._now, self._sum, place))
        begin = self._now - self.time
        while len(self._samples) > 2 and self._samples[1][0] <= begin:
            self._samples.popleft()
        (t, total, a), (end, _, b) = self._samples[0], self._samples[1]
        if self.time <= 0.0 or all(sample[2] == place for sample in self._samples):
            self.place = place
            return place
        d = begin - t
        total += d * (a - self._from + 0.5 * d * (b - a) / (end - t))
        self.place = max(self.place, self._from + (self._sum - total) / self.time)
        return self.place


def between(a: Array, b: Array, share: float) -> Array:
    """Interpolate between two tables of targets."""
    out = b.copy()
    frames, others = (one[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4) for one in (a, b))
    inner = out[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4)
    inner[:, :3, 3] = (1.0 - share) * frames[:, :3, 3] + share * others[:, :3, 3]
    for g in np.flatnonzero((frames[:, :3, :3] != others[:, :3, :3]).any((1, 2)) & (b[0, :, GIVEN] > 0)).tolist():
        inner[g, :3, :3] = _turned(frames[g, :3, :3], others[g, :3, :3], share)
    return out


def _turned(a: Array, b: Array, share: float) -> Array:
    """Interpolate between two rotation matrices along the shortest rotation."""
    return a @ exp_turn(share * log_turn(a.T @ b))
