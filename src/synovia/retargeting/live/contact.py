"""Feet of a live body: contacts that are detected as they happen, and the corrections that hold the feet.

The next contact is not known in advance. A point of the source's foot stands as soon as it is low and slow, and until
it is clearly higher or faster. The target's foot then keeps its place on the ground. When the foot is released, its
correction fades over the swing, so that the foot does not jump.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, Bools
from synovia.retargeting.body import Body
from synovia.retargeting.feet import toe_row

_LOW: Final = (0.06, 0.12)  # leg lengths above the ground: heights at which a point starts and stops to stand
_SLOW: Final = (0.25, 0.4)  # leg lengths per second: speeds at which a point starts and stops to stand
_SPAN: Final = 0.025  # seconds over which a speed is measured
_TIPTOE: Final = (0.25, 0.03)  # leg lengths, seconds: a point that is slow for this time below this height also stands
_STILL: Final = (0.12, 0.15)  # leg lengths per second, seconds: a point slower for this time stands at any height
_LEVELING: Final = 0.15  # seconds: time constant with which a standing foot returns to its uncorrected height
_ROLL: Final = 25.0  # 1/s: rate of the change from standing on the ankle to standing on the toes
_SWING: Final = 25.0  # 1/s: rate at which the correction of a released foot fades
_NONE: Final = 1e-5  # leg lengths: smaller corrections count as zero


@dataclass(frozen=True)
class Point:
    """A point of a foot that can stand.

    Args:
        role: Its part, such as ``"left_foot"`` or ``"left_toes"``.
        source: Its row in the source.
        target: Its row in the target.
        mate: Index of the other point of the same foot in the list; None without one.
    """

    role: str
    source: int
    target: int
    mate: int | None


def points_of(source: Body, target: Body, roles: Sequence[str]) -> list[Point]:
    """Return the ankles, then the toes, that both bodies have."""
    feet = [side for side in SIDES if all(f"{side}_foot" in known for known in (source.roles, target.roles, roles))]
    toes = {
        side: (one, other)
        for side in feet
        if (one := toe_row(source, side)) is not None and (other := toe_row(target, side)) is not None
    }
    mates = {side: len(feet) + k for k, side in enumerate(toes)}
    ankles = [
        Point(role, source.roles[role], target.roles[role], mates.get(side))
        for side, role in ((side, f"{side}_foot") for side in feet)
    ]
    return ankles + [Point(f"{side}_toes", *rows, feet.index(side)) for side, rows in toes.items()]


class Contacts:
    """Detects which points of the source stand.

    Args:
        body: The source.
        points: Its points.
        grounds: Height of each point while it stands, (points,).
        rate: Ticks per second.
    """

    def __init__(self, body: Body, points: Sequence[Point], grounds: Array, rate: float) -> None:
        """Convert the thresholds to the units of the source and its ticks."""
        self._up, self._rows = body.basis[:, 1], np.array([point.source for point in points], np.int64)
        self._high = grounds[:, None] + np.array(_LOW) * body.leg
        span = max(1, round(_SPAN * rate))
        self._fast = np.array(_SLOW) * body.leg * span / rate
        self._before = np.zeros((span, len(points), 3))
        self._tiptoe = grounds + _TIPTOE[0] * body.leg
        self._still = _STILL[0] * body.leg * span / rate
        self._long = max(1, round(_TIPTOE[1] * rate)), max(1, round(_STILL[1] * rate))
        self.reset()

    def reset(self) -> None:
        """Discard the last poses."""
        self._seen = 0
        self._slow = np.zeros((2, len(self._rows)), np.int64)  # number of ticks each point has been slow, and still
        self._away: Bools = np.zeros(len(self._rows), bool)  # points that stand although they are high
        self.stands: Bools = np.zeros(len(self._rows), bool)

    def look(self, frames: Array) -> Bools:
        """Return which points stand in the next pose of the source, for its world frames (n, 12)."""
        places, span = frames[self._rows, 9:], len(self._before)
        k = self._seen % span
        way = places - self._before[k] if self._seen >= span else np.full_like(places, np.inf)
        self._before[k] = places
        self._seen += 1
        moved, height = np.sqrt(np.sum(way * way, axis=1)), places @ self._up
        last = self.stands.astype(np.intp)
        low = height < self._high[np.arange(len(last)), last]
        self._slow = np.where([moved < self._fast[0], moved < self._still], self._slow + 1, 0)
        waited = ((self._slow[0] >= self._long[0]) & (height < self._tiptoe)) | (self._slow[1] >= self._long[1])
        self._away = ~low & (waited | self._away)
        self.stands = (moved < self._fast[last]) & (low | self._away)
        self._away &= self.stands
        return self.stands


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


def ground_heights(body: Body, points: Sequence[Point], frames: Array, percentile: float) -> Mapping[str, float]:
    """Return the height of each standing point of the source, by role: a low percentile over frames (T, n, 12)."""
    up = body.basis[:, 1]
    return {point.role: float(np.percentile(frames[:, point.source, 9:] @ up, percentile)) for point in points}
