"""``late="slow"``: the body stays on the path of its targets, and is late along it where its limits ask for that.

The path leads from target to target, straight for positions and by the shortest turn for rotations. One number moves
along it: an axis of its own, with the same law as a joint. Its limits are those at which every joint keeps its own on
the part of the path that lies before a stop. The body follows the answers at the places of that number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from synovia.facade import IK
from synovia.ik.interrupts import new_scratch
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
from synovia.servo.pace import Pace
from synovia.servo.tool_speed import ToolSpeed

_AHEAD: Final = 10  # places of the path that are looked at in a tick
_FARTHER: Final = 3.0  # times the stop, how far ahead
_TICKS: Final = 4  # least time ahead, in ticks
_NEAR: Final = 0.02  # reaches and radians: least length ahead
_PRECISION: Final = 1e-5  # part of the tolerance: differences of answers near each other have to be smooth
_SHARE: Final = 0.85  # part of the speeds of joints that is used
_ALONG: Final = 0.4  # part of their acceleration for gaining speed, and another one for bends of the path
_JERK: Final = 0.25  # part of their jerk for each of its three causes
_TINY: Final = 1e-12  # instead of a derivative of zero
_MOST: Final = 1e6  # limit of the place on a path that moves no joint
_SMALL: Final = 1e-9  # length of a path, reaches and radians, below which it is a place
_LONGEST: Final = 4096  # targets that wait; of more, every other one is left out


class Path:
    """The path of the targets, and where the body is on it.

    Args:
        ik: The problem.
        table: The axes of the body, see ``kernels.layout``.
        kernels: Returns the kernels of a tick and of a reset for other variables.
        way: Returns how far each axis goes from one pose to another.
        tools: Limits of the speed of end effectors, or None.

    Attributes:
        place: Joint values to which the body is led, (nq,).
        targets: The targets there, (1, goals, 17).
    """

    def __init__(
        self,
        ik: IK,
        table: Array,
        kernels: Callable[[Ints, Array, Array], tuple[Any, Any]],
        way: Callable[[Array, Array], Array],
        tools: ToolSpeed | None,
    ) -> None:
        """Make an axis for the place on the path."""
        self._joints, self._reach, self._way = table, ik.reach, way
        self._tools = tools
        precise = _PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]
        self._ik = IK(ik.given, ik.goals, ik.solver, tolerance=precise, root=ik.root)
        self._scratch = new_scratch(self._ik.scratch_size)
        self._axis = np.zeros((1, AXIS_WIDTH))
        limits = np.zeros((1, LIMIT_WIDTH))
        limits[0, LOWER], limits[0, UPPER] = -np.inf, np.inf
        self._tick, self._begin = kernels(np.zeros((1, VARIABLE_WIDTH), np.int32), limits, self._axis)
        self._waypoints: deque[tuple[float, Array]] = deque()
        self._end = np.zeros(1)
        self._s = np.zeros(1)

    def reset(self, table: Array, q: Array, h: float) -> None:
        """Begin anew at rest at these targets, with joint values q."""
        self._waypoints = deque([(0.0, table)])
        self._end, self._s = np.zeros(1), np.zeros(1)
        self._axis[0, [TOP_SPEED, TOP_ACCELERATION, TOP_JERK]] = 1.0, 1.0, np.inf
        self._begin(np.zeros(1), h)
        self.pace = Pace(self._joints)
        self.place, self.targets = q.copy(), table
        self.row: Array | None = None

    def extend(self, table: Array) -> None:
        """Lead the path on to other targets."""
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
        """Forget the path ahead, beyond the place where the body stops."""
        stop = float(self._s[0]) + self._stop()
        table = self.at(stop)
        self._waypoints = deque([pair for pair in self._waypoints if pair[0] < stop])
        self._waypoints.append((stop, table))
        self._end = np.array([stop])

    def time_to_stop(self) -> float:
        """Return the seconds that the place on the path takes to stop."""
        return float(self._axis[0, [PLAN_FIRST, PLAN_MIDDLE, PLAN_LAST]].sum())

    @property
    def last(self) -> Array:
        """The last targets of the path, (1, goals, 17)."""
        return self._waypoints[-1][1]

    def _stop(self) -> float:
        """Return how far the place on the path goes until it stops, about."""
        v = float(self._axis[0, AXIS_VELOCITY])
        return min(max(v * self.time_to_stop(), 0.0), max(float(self._end[0] - self._s[0]), 0.0))

    def _length(self, a: Array, b: Array) -> float:
        """Return the length of the path between two tables of targets: reaches or radians, the largest of all goals."""
        frames, others = (one[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4) for one in (a, b))
        ways = np.linalg.norm(others[:, :3, 3] - frames[:, :3, 3], axis=1) / self._reach
        traces = np.einsum("gij,gij->g", frames[:, :3, :3], others[:, :3, :3])
        turns = np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0))
        return max(float(np.maximum(ways, turns).max(initial=0.0)), _SMALL)

    def at(self, s: float) -> Array:
        """Return the targets at a place of the path, (1, goals, 17)."""
        before, table = self._waypoints[0]
        for after, other in self._waypoints:
            if before < after and s < after:
                return between(table, other, (s - before) / (after - before))
            before, table = after, other
        return table

    def advance(self, h: float, parts: int) -> Array:
        """Take a tick of time h along the path, and return the joint values there, (nq,)."""
        h *= self.pace.share
        self._limit(h)
        out = np.empty(1)
        self._tick(self._s, self._end, self._end, out, h, PROPOSE | ADVANCE | parts)
        moved = out[0] != self._s[0]
        self._s = out
        while len(self._waypoints) > 1 and self._waypoints[1][0] <= out[0]:
            self._waypoints.popleft()
        if moved or self.row is None:
            self.targets = self.at(float(out[0]))
            self.row, self.place = self._solve(self.targets, self.place)
        return self.place

    @property
    def arrived(self) -> bool:
        """Whether the place is at the end of the path."""
        return bool(self._end[0] - self._s[0] <= _SMALL)

    def _solve(self, table: Array, start: Array) -> tuple[Array, Array]:
        """Return the row of results for these targets from a start (nq,), and its joint values."""
        ik, row = self._ik, self._ik.new_rows(1)
        call = partial(ik.call, ik.one_attempt, ik.floats, table, start[None], row, self._scratch, COLD, 0)
        if ik.settled(call, table, None) & MISSED:
            ik.classify(start[None], row, self._scratch, False)
        return row[0], row[0, ik.places]

    def _limit(self, h: float) -> None:
        """Write the limits of the place on the path: those of all joints on the part ahead."""
        left = float(self._end[0] - self._s[0])
        if left <= _SMALL:
            return
        joints, axis = self._joints, self._axis[0]
        v = max(float(axis[AXIS_VELOCITY]), 0.0)
        ahead = min(max(_FARTHER * self._stop(), _TICKS * v * h, _NEAR), left)
        step = ahead / _AHEAD
        q, ways = self.place, np.empty((_AHEAD, len(joints)))
        poses = [q]
        for k in range(_AHEAD):
            _, other = self._solve(self.at(float(self._s[0]) + (k + 1) * step), q)
            ways[k] = self._way(q, other)
            q = other
            poses.append(q)
        first = np.abs(ways).max(0) / step + _TINY
        second = np.abs(np.diff(ways, axis=0)).max(0) / step**2 + _TINY
        third = np.abs(np.diff(ways, n=2, axis=0)).max(0) / step**3 + _TINY
        A, J = joints[:, TOP_ACCELERATION], joints[:, TOP_JERK]
        speed = min(
            (_SHARE * joints[:, TOP_SPEED] / first).min(),
            np.sqrt(_ALONG * A / second).min(),
            np.cbrt(_JERK * J / third).min(),
            _MOST,
        )
        if self._tools is not None:
            speed = min(speed, self._tools.cruise(step, np.array(poses)))
        axis[TOP_SPEED] = speed
        # It brakes here: the part ahead, where joints may turn faster, only limits its speed there.
        here = np.abs(ways[:2]).max(0) / step + _TINY
        bend = np.abs(ways[1] - ways[0]) / step**2 + _TINY
        axis[TOP_ACCELERATION] = min((_ALONG * A / here).min(), (_JERK * J / (3.0 * bend * max(speed, v))).min(), _MOST)
        axis[TOP_JERK] = (_JERK * J / here).min()


def between(a: Array, b: Array, share: float) -> Array:
    """Return the targets between two tables."""
    out = b.copy()
    frames, others = (one[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4) for one in (a, b))
    inner = out[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4)
    inner[:, :3, 3] = (1.0 - share) * frames[:, :3, 3] + share * others[:, :3, 3]
    for g in np.flatnonzero((frames[:, :3, :3] != others[:, :3, :3]).any((1, 2)) & (b[0, :, GIVEN] > 0)).tolist():
        inner[g, :3, :3] = _turned(frames[g, :3, :3], others[g, :3, :3], share)
    return out


def _turned(a: Array, b: Array, share: float) -> Array:
    """Return the rotation matrix between two others, on the shortest turn."""
    from scipy.spatial.transform import Rotation

    first = Rotation.from_matrix(a)
    return (first * Rotation.from_rotvec(share * (first.inv() * Rotation.from_matrix(b)).as_rotvec())).as_matrix()
