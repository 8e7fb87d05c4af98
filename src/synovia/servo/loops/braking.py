"""The stop of a whole body: all joints come to rest in the same time, so that the loops nearly stay closed.

Velocities fall linearly to zero. With a jerk limit they are cubic polynomials of the time, which begin with a velocity
and an acceleration and end with zero of both. Both forms are linear in the initial motion: if it is a motion of the
mechanism, so is the stop, except for the curvature of the loop constraints.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from synovia.kernels.layout import TOP_ACCELERATION, TOP_JERK, TOP_SPEED
from synovia.model.geometry import Array

_SHARE: Final = 0.85  # fraction of the limits that a stop uses before the loops are closed
_DURATIONS: Final = 64  # number of durations tried for a stop with a jerk limit
_LONGER: Final = 1.12  # factor from one duration to the next
_INSTANTS: Final = np.linspace(0.0, 1.0, 13)  # fractions of a duration at which the limits are checked


class Known(NamedTuple):
    """A stop that is known.

    Args:
        start: Where it begins, (nq,).
        velocity: Velocity of each axis there, (n,).
        acceleration: Acceleration there; None if it may change at once.
        time: Seconds until the body rests.
        times: Times at which the stop was checked, seconds, the last ones at rest.
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

    @property
    def end(self) -> Array:
        """Where it ends, (nq,)."""
        return self.poses[-1]

    def pose(self, time: float, slack: float) -> Array | None:
        """Return the pose (nq,) at a time since the start that was checked, within the slack; None for other times."""
        if time >= self.times[-1]:
            return self.end
        k = int(np.argmin(np.abs(self.times - time)))
        return self.poses[k] if abs(float(self.times[k]) - time) <= slack else None

    def ways(self, times: Array) -> Array:
        """Return how far axes have gone at some times (T,) since the start, (T, n)."""
        return ways_of(self.velocity, self.acceleration, self.time, times)


def standing(q: Array, axes: int) -> Known:
    """Return the stop of a body that stands still at q (nq,)."""
    return Known(q, np.zeros(axes), None, 0.0, np.zeros(1), q[None].copy())


def ways_of(velocity: Array, acceleration: Array | None, time: float, times: Array) -> Array:
    """Return how far axes have gone at some times (T,) of a stop, (T, n); see ``Known``."""
    if time <= 0.0:
        return np.zeros((len(times), len(velocity)))
    s = np.minimum(times / time, 1.0)[:, None]
    if acceleration is None:
        return velocity * time * s * (1.0 - 0.5 * s)
    begin = velocity * time * s * (1.0 + s * s * (0.5 * s - 1.0))
    return begin + acceleration * time * time * s * s * (0.5 + s * (0.25 * s - 2.0 / 3.0))


def stop_of(v: Array, a: Array, h: float, limits: Array) -> tuple[Array, Array | None, float]:
    """Return velocity, acceleration and time of the shortest stop after some samples, as in ``Known``.

    The stop continues the samples: they are on the parabola with which it begins.

    Args:
        v: Velocity of each axis in the last tick, (n,).
        a: Acceleration of the last samples, (n,).
        h: Time of the tick.
        limits: Rows of the table of axes, (n, AXIS_WIDTH).
    """
    if np.isfinite(limits[:, TOP_JERK]).any():
        u = v + 0.5 * h * a
        return u, a, _shortest(u, a, limits)
    time = max(float((np.abs(v) / (_SHARE * limits[:, TOP_ACCELERATION])).max(initial=0.0)) - 0.5 * h, 0.0)
    return v * (time / (time + 0.5 * h)), None, time


def _shortest(u: Array, a: Array, limits: Array) -> float:
    """Return the shortest time of a stop from a velocity and an acceleration that keeps limits; see ``stop_of``."""
    speed, most, jerk = (limits[:, column] for column in (TOP_SPEED, TOP_ACCELERATION, TOP_JERK))
    least = np.concatenate([np.sqrt(np.abs(u) / jerk), np.abs(a) / jerk, np.abs(u) / most]).max(initial=0.0)
    if not least:
        return 0.0
    T = least * _LONGER ** np.arange(_DURATIONS)[:, None, None]
    s = _INSTANTS[None, :, None]
    velocities = u * (1.0 - s * s * (3.0 - 2.0 * s)) + a * T * (s * (1.0 - s) ** 2)
    accelerations = u / T * (6.0 * s * (s - 1.0)) + a * (1.0 - s * (4.0 - 3.0 * s))
    jerks = u / T**2 * (12.0 * s - 6.0) + a / T * (6.0 * s - 4.0)
    good = (np.abs(accelerations) <= np.maximum(_SHARE * most, np.abs(a))).all((1, 2))
    good &= (np.abs(jerks) <= _SHARE * jerk).all((1, 2))
    slow = good & (np.abs(velocities) <= speed).all((1, 2))
    found = np.flatnonzero(slow if slow.any() else good)
    return float(T[found[0] if len(found) else -1, 0, 0])
