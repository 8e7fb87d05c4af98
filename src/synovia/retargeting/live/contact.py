"""The corrections that hold the feet of a live body.

While a point of the source's foot stands, the target's foot keeps its place on the ground. When the foot is released,
its correction fades over the swing, so that the foot does not jump.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.model.geometry import Array, Bools
from synovia.retargeting.body import Body
from synovia.retargeting.feet import Point

_LEVELING: Final = 0.15  # seconds: time constant with which a standing foot returns to its uncorrected height
_ROLL: Final = 25.0  # 1/s: rate of the change from standing on the ankle to standing on the toes
_SWING: Final = 25.0  # 1/s: rate at which the correction of a released foot fades
_NONE: Final = 1e-5  # leg lengths: smaller corrections count as zero


class Corrections:
    """Corrections of the points of the target's feet so that they stand.

    A point that begins to stand keeps its current position. In all other changes of state, the correction moves to its
    new goal with critical damping.

    Args:
        body: The target.
        points: Its points.
        rate: Ticks per second.

    Attributes:
        places: Where the points should be, (points, 3).
        active: Whether a correction is above rounding.
    """

    def __init__(self, body: Body, points: Sequence[Point], rate: float) -> None:
        """Begin without corrections."""
        self._h, self._up, self._leg = 1.0 / rate, body.basis[:, 1], body.leg
        self._mates = np.array([-1 if point.mate is None else point.mate for point in points], np.int64)
        self._leveling = 1.0 - float(np.exp(-self._h / _LEVELING))
        self._count = len(points)
        self.reset()

    def reset(self) -> None:
        """Discard all corrections."""
        n = self._count
        self._state = np.zeros(n, np.int64)  # 0: swings, 1: stands, 2: moves with its mate
        self._hold = np.zeros((n, 3))
        self._now, self._speed = np.zeros((n, 3)), np.zeros((n, 3))  # corrections and their velocities
        self._off, self._drift = np.zeros((n, 3)), np.zeros((n, 3))  # offsets from their goals, and velocities of these
        self._pace = np.full((n, 1), _SWING)
        self.places, self.active = np.zeros((n, 3)), False

    def apply(self, own: Array, stands: Bools) -> None:
        """Advance by one tick, and update ``places``.

        Args:
            own: Positions of the points without corrections, (points, 3).
            stands: Mask of the points that stand, (points,).
        """
        h, mates, before = self._h, self._mates, self._now
        with_mate = ~stands & (mates >= 0) & stands[mates]
        state = np.where(stands, 1, np.where(with_mate, 2, 0))
        changed = state != self._state
        began = changed & stands
        if began.any():
            self._hold[began] = own[began] + before[began]
        if stands.any():
            rise = ((own - self._hold) @ self._up) * (self._leveling * stands)
            self._hold += rise[:, None] * self._up
        goal = np.where(stands[:, None], self._hold - own, 0.0)
        goal[with_mate] = goal[mates[with_mate]]
        if changed.any():
            self._pace[changed, 0] = np.where(state == 2, _ROLL, _SWING)[changed]
            self._off[changed] = (before - goal)[changed]
            self._drift[changed] = self._speed[changed]
            rolls = changed & with_mate
            self._drift[rolls] -= self._speed[mates[rolls]]
            self._off[began] = self._drift[began] = 0.0
            self._state = state
        w = self._pace  # critically damped, exact over the tick
        fade = np.exp(-h * w)
        push = h * (self._drift + w * self._off)
        self._off, self._drift = fade * (self._off + push), fade * (self._drift - w * push)
        self._now = goal + self._off
        self._speed = (self._now - before) / h
        self.places = own + self._now
        self.active = bool(stands.any()) or bool(np.abs(self._now).max(initial=0.0) > _NONE * self._leg)
