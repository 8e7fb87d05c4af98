"""``late="slow"``: the path of the targets, on which the body is late where its limits require that.

The path leads from target to target: straight lines for positions, shortest rotations for orientations. The kernel
moves the body along it, see ``kernels.servo.path``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.kernels.layout import GIVEN, TRANSFORM_WIDTH
from synovia.kernels.servo import (
    ALONG_END,
    ALONG_NOW,
    ALONG_WAITS,
    ALONG_WIDTH,
    PATH_ARM,
    PATH_GOAL,
    PATH_GOAL_WIDTH,
    PATH_PLACE,
    PATH_TURN,
    PATH_WAY,
)
from synovia.model.geometry import Array
from synovia.servo.targets import exp_turn, log_turn

_ARM: Final = 0.004  # length scales, radians: longest arm of a rounded corner
_NEAR: Final = 1e-6  # length scales, radians: closer than this to the end of the path, a body at rest has arrived
_PATIENCE: Final = 1  # ticks at rest without progress, after which the body counts as blocked
_HOP: Final = 0.01  # length scales, radians: piece of the path that a blocked body skips at first
_LONGEST: Final = 4096  # largest number of waypoints; beyond it, the last one moves instead


class Path:
    """The path of the targets, and the coordinates of the body on it.

    Args:
        reach: Length scale of the problem, length units.
        levels: Number of priority levels.

    Attributes:
        levels: Number of priority levels whose goals stay on the path.
        along: Coordinates, (ALONG_WIDTH,), see ``kernels.servo``.
        aside: Path coordinate of the place to which a body that has left the path goes; None on the path.
    """

    def __init__(self, reach: float, levels: int = 1) -> None:
        """Begin without a path."""
        self._reach, self.levels = reach, levels
        self.along = np.zeros(ALONG_WIDTH)
        self.aside: float | None = None
        self._rows, self._first, self._count = np.zeros((0, 0)), 0, 0

    @property
    def table(self) -> Array:
        """The waypoints, see ``kernels.layout``."""
        return self._rows[self._first : self._count]

    @property
    def arrived(self) -> bool:
        """Whether the body rests at the end of the path."""
        return bool(self._rests and self.table[-1, PATH_PLACE] - self.along[ALONG_NOW] <= _NEAR)

    @property
    def blocked(self) -> bool:
        """Whether the body cannot go on along the path."""
        return bool(self.along[ALONG_WAITS] > _PATIENCE)

    @property
    def waits(self) -> bool:
        """Whether the body rests before the end of the path."""
        return self._rests and not self.arrived

    @property
    def _rests(self) -> bool:
        """Whether the body rests."""
        return self.along[ALONG_WAITS] > 0.0

    def begin(self, table: Array) -> None:
        """Begin at these targets, (1, goals, 17), at which the body rests."""
        self.along[:], self._first, self._count = 0.0, 0, 0
        self._rows = np.zeros((64, PATH_GOAL + PATH_GOAL_WIDTH * table.shape[1]))
        self._append(0.0, table)

    def extend(self, table: Array) -> None:
        """Extend the path to new targets, (1, goals, 17)."""
        last = self.table[-1]
        goals = last[PATH_GOAL:].reshape(-1, PATH_GOAL_WIDTH)
        if np.array_equal(goals[:, :TRANSFORM_WIDTH], table[0, :, :TRANSFORM_WIDTH]):
            return
        if self._count - self._first > _LONGEST:
            self._count -= 1
            last = self.table[-1]
            goals = last[PATH_GOAL:].reshape(-1, PATH_GOAL_WIDTH)
        frames, others = goals[:, :TRANSFORM_WIDTH].reshape(-1, 4, 4), table[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4)
        ways = others[:, :3, 3] - frames[:, :3, 3]
        turns = np.zeros_like(ways)
        for g in np.flatnonzero((frames[:, :3, :3] != others[:, :3, :3]).any((1, 2)) & (table[0, :, GIVEN] > 0)):
            turns[g] = log_turn(frames[g, :3, :3].T @ others[g, :3, :3])
        squares = (ways * ways).sum(1) / self._reach**2, (turns * turns).sum(1)
        length = float(np.sqrt(np.maximum(*squares).max(initial=0.0)))
        if length <= 0.0:
            return
        goals[:, PATH_WAY : PATH_WAY + 3], goals[:, PATH_TURN : PATH_TURN + 3] = ways / length, turns / length
        self._append(float(last[PATH_PLACE]) + length, table)
        self._round()

    def cut(self, places: Array) -> None:
        """End the path where the body stops, at these places of the goals, (goals, 16)."""
        stop = float(self.along[ALONG_END])
        self._count = self._first + max(int(np.searchsorted(self.table[:, PATH_PLACE], stop)), 1)
        goals = self.table[-1, PATH_GOAL:].reshape(-1, PATH_GOAL_WIDTH)
        length = stop - float(self.table[-1, PATH_PLACE])
        if length <= 0.0:
            return
        frames, others = goals[:, :TRANSFORM_WIDTH].reshape(-1, 4, 4), places.reshape(-1, 4, 4)
        goals[:, PATH_WAY : PATH_WAY + 3] = (others[:, :3, 3] - frames[:, :3, 3]) / length
        for g in range(len(goals)):
            goals[g, PATH_TURN : PATH_TURN + 3] = log_turn(frames[g, :3, :3].T @ others[g, :3, :3]) / length
        self._append(stop, places[None])

    def leave(self, step: float) -> bool:
        """Leave the path for a place ahead, or move that place on by ``step``; return False at the end of the path."""
        self.aside = float(self.along[ALONG_NOW]) + _HOP if self.aside is None else self.aside + step
        return self.aside < float(self.table[-1, PATH_PLACE])

    def places(self) -> Array:
        """Return the targets of all goals at the coordinate ``aside``, (goals, 16)."""
        s = self.aside or 0.0
        row = self.table[max(int(np.searchsorted(self.table[:, PATH_PLACE], s)) - 1, 0)]
        goals, past = row[PATH_GOAL:].reshape(-1, PATH_GOAL_WIDTH), s - float(row[PATH_PLACE])
        out = goals[:, :TRANSFORM_WIDTH].copy()
        frames = out.reshape(-1, 4, 4)
        frames[:, :3, 3] += past * goals[:, PATH_WAY : PATH_WAY + 3]
        for g in range(len(goals)):
            frames[g, :3, :3] = frames[g, :3, :3] @ exp_turn(past * goals[g, PATH_TURN : PATH_TURN + 3])
        return out

    def ahead(self) -> list[Array]:
        """Return the targets of all goals at each waypoint beyond ``aside``, (goals, 16) each."""
        rows = self.table[self.table[:, PATH_PLACE] > (self.aside or 0.0)]
        return [row[PATH_GOAL:].reshape(-1, PATH_GOAL_WIDTH)[:, :TRANSFORM_WIDTH].copy() for row in rows]

    def _append(self, place: float, table: Array) -> None:
        """Append a waypoint, and discard those that the body has passed."""
        rows = self.table
        while len(rows) > 2 and rows[1, PATH_PLACE] + rows[1, PATH_ARM] <= self.along[ALONG_NOW]:
            self._first += 1
            rows = self.table
        if self._count == len(self._rows):
            self._rows = np.zeros((2 * len(rows) + 64, rows.shape[1]))
            self._rows[: len(rows)] = rows
            self._first, self._count = 0, len(rows)
        row = self._rows[self._count]
        row[:] = 0.0
        row[PATH_PLACE] = place
        row[PATH_GOAL:].reshape(-1, PATH_GOAL_WIDTH)[:, :TRANSFORM_WIDTH] = table[0, :, :TRANSFORM_WIDTH]
        self._count += 1
        self._rows[self._first, PATH_ARM] = _ARM

    def _round(self) -> None:
        """Choose the arms of corners beyond the known stop, which has to stay on the path."""
        corners, stop = self.table[1:-1], self.along[ALONG_END]
        places, arms = corners[:, PATH_PLACE], corners[:, PATH_ARM]
        free = np.minimum(places - stop, self.table[-1, PATH_PLACE] - places)
        corners[:, PATH_ARM] = np.where(places - arms >= stop, np.clip(free, 0.0, _ARM), arms)


def between(a: Array, b: Array, share: float) -> Array:
    """Interpolate between two tables of targets."""
    out = b.copy()
    frames, others = (one[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4) for one in (a, b))
    inner = out[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4)
    inner[:, :3, 3] = (1.0 - share) * frames[:, :3, 3] + share * others[:, :3, 3]
    for g in np.flatnonzero((frames[:, :3, :3] != others[:, :3, :3]).any((1, 2)) & (b[0, :, GIVEN] > 0)).tolist():
        inner[g, :3, :3] = frames[g, :3, :3] @ exp_turn(share * log_turn(frames[g, :3, :3].T @ others[g, :3, :3]))
    return out
