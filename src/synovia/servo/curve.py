"""The trajectory of one target: through samples at their times, without a jump of its velocity.

Between two samples the position is a cubic polynomial with given velocities at both ends (Hermite). So is the rotation
vector from the first sample to the current rotation. If new samples replace those ahead, the trajectory restarts from
its present position and velocity.

References:
    Fritsch & Carlson (1980), *Monotone piecewise cubic interpolation*: velocities that do not overshoot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from synovia.model.geometry import Array

_STEEP: Final = 2.0  # largest ratio of the velocity at a sample to the slower of the mean velocities around it
_SMALL: Final = 1e-4  # radians: below it, series are exact


class Knot(NamedTuple):
    """A sample of the trajectory, and its motion there: length units/s, and rad/s in its own frame."""

    time: float
    frame: Array
    velocity: Array
    turning: Array


class Curve:
    """The trajectory of one target.

    Args:
        frame: Present target, (4, 4).
        time: Present time, seconds.
    """

    def __init__(self, frame: Array, time: float) -> None:
        """Begin at rest."""
        self._begin = Knot(time, frame.copy(), np.zeros(3), np.zeros(3))
        self._ahead: list[Knot] = []
        self._samples: list[tuple[float, Array]] = []  # samples of ``append``, with a few past ones

    @property
    def moves(self) -> bool:
        """Whether samples are ahead."""
        return bool(self._ahead)

    def append(self, time: float, frame: Array, now: float) -> None:
        """Extend the trajectory to one more sample, where it ends; samples of ``replace`` are discarded."""
        before = [sample for sample in self._samples if sample[0] < time]
        passed = sum(sample[0] <= now for sample in before)
        samples = [*before[max(passed - 2, 0) :], (time, frame.copy())]
        self.replace(samples, now, now, stops=False)
        self._samples = samples

    def replace(self, samples: Sequence[tuple[float, Array]], now: float, there: float, *, stops: bool) -> None:
        """Replace the trajectory from now on by one through other samples.

        Args:
            samples: Times and frames, sorted by time; the last time is in the future. Past samples only determine the
                velocity.
            now: Seconds.
            there: Time at which a transition to the trajectory through these samples ends, seconds.
            stops: Whether the velocity at the last sample is zero.
        """
        self._begin = self._state(now)
        self._samples = []
        if samples[0][0] > now:
            samples = [(now, self._begin.frame), *samples]
        knots = _knots(samples, stops=stops)
        if knots[-1].time < there:
            self._ahead = [knots[-1]._replace(time=there)]
            return
        first = next(k for k, knot in enumerate(knots) if knot.time >= there and knot.time > now)
        self._ahead = knots[first:]
        if there > now and first > 1 and knots[first - 1].time < there < knots[first].time:
            self._ahead.insert(0, _state(knots[first - 1], knots[first], there))

    @property
    def last(self) -> tuple[float, Array] | None:
        """The time of the last target ahead, and the target (4, 4); None without any."""
        return (self._ahead[-1].time, self._ahead[-1].frame) if self._ahead else None

    def at(self, time: float) -> Array:
        """Return the target at a time, (4, 4); times must not decrease from call to call."""
        while self._ahead and self._ahead[0].time <= time:
            self._begin = self._ahead.pop(0)
        return self._state(time).frame

    def _state(self, time: float) -> Knot:
        """Return position and motion at a time within the present segment."""
        if self._ahead:
            return _state(self._begin, self._ahead[0], time)
        return Knot(time, self._begin.frame, np.zeros(3), np.zeros(3))


def _knots(samples: Sequence[tuple[float, Array]], *, stops: bool) -> list[Knot]:
    """Return samples with their velocities."""
    still = np.zeros(3), np.zeros(3)
    means = [still, *(_motion(a, b) for a, b in pairwise(samples)), still]
    times = [time for time, _ in samples]
    out: list[Knot] = []
    for k, (time, frame) in enumerate(samples):
        before, after = means[k], means[k + 1]
        if 0 < k < len(samples) - 1:
            spans = time - times[k - 1], times[k + 1] - time
            motion = [_between(a, b, *spans) for a, b in zip(before, after, strict=True)]
        elif k == 0:
            motion = after
        else:
            motion = still if stops else [_no_steeper(b, a) for a, b in zip(means[k - 1], before, strict=True)]
        out.append(Knot(time, frame, *motion))
    return out


def _state(a: Knot, b: Knot, time: float) -> Knot:
    """Return position and motion between two samples."""
    T = b.time - a.time
    s = min(max((time - a.time) / T, 0.0), 1.0)
    frame = np.eye(4)
    frame[:3, 3], velocity = _cubic((a.frame[:3, 3], T * a.velocity, b.frame[:3, 3], T * b.velocity), s)
    way = log_turn(a.frame[:3, :3].T @ b.frame[:3, :3])
    across = _cross(way, T * b.turning)
    end = T * b.turning + 0.5 * across + _bend(way) * _cross(way, across)  # derivative of the rotation vector at b
    turn, rate = _cubic((np.zeros(3), T * a.turning, way, end), s)
    frame[:3, :3] = a.frame[:3, :3] @ exp_turn(turn)
    return Knot(time, frame, velocity / T, _right_jacobian(turn) @ rate / T)


def _cubic(ends: tuple[Array, Array, Array, Array], s: float) -> tuple[Array, Array]:
    """Return value and derivative, at s from 0 to 1, of the cubic with this value and derivative at both ends."""
    p, v, q, w = ends
    c, d = 3.0 * (q - p) - 2.0 * v - w, v + w - 2.0 * (q - p)
    return p + s * (v + s * (c + s * d)), v + s * (2.0 * c + 3.0 * s * d)


def _motion(a: tuple[float, Array], b: tuple[float, Array]) -> tuple[Array, Array]:
    """Return the mean velocity and angular velocity between two samples."""
    T = b[0] - a[0]
    turn = log_turn(a[1][:3, :3].T @ b[1][:3, :3])
    return (b[1][:3, 3] - a[1][:3, 3]) / T, turn / T


def _between(a: Array, b: Array, before: float, after: float) -> Array:
    """Return the velocity at a sample, from the mean velocities before and after it and the durations of both."""
    if float(a @ b) <= 0.0:
        return np.zeros(3)
    mean = (after * a + before * b) / (before + after)
    return _no_steeper(_no_steeper(mean, a), b)


def _no_steeper(v: Array, limit: Array) -> Array:
    """Clamp a velocity to ``_STEEP`` times the size of another one; return zero if it points backwards."""
    if float(v @ limit) <= 0.0:
        return np.zeros(3)
    size, most = math.sqrt(float(v @ v)), _STEEP * math.sqrt(float(limit @ limit))
    return v if size <= most else v * (most / size)


def _cross(a: Array, b: Array) -> Array:
    """Return the cross product of two vectors (3,)."""
    x, y, z = a.tolist()
    u, v, w = b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def _bend(turn: Array) -> float:
    """Return the coefficient of the second-order term in the inverse right Jacobian of SO(3)."""
    angle = math.sqrt(float(turn @ turn))
    if angle < _SMALL:
        return 1.0 / 12.0
    return 1.0 / angle**2 - (1.0 + math.cos(angle)) / (2.0 * angle * math.sin(angle)) if angle < 3.1 else 0.1


def _right_jacobian(turn: Array) -> Array:
    """Return the right Jacobian of SO(3), (3, 3): from the rate of a rotation vector to the angular velocity."""
    angle = math.sqrt(float(turn @ turn))
    x, y, z = turn.tolist()
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    if angle < _SMALL:
        return np.eye(3) - 0.5 * K + K @ K / 6.0
    return np.eye(3) - (1.0 - math.cos(angle)) / angle**2 * K + (angle - math.sin(angle)) / angle**3 * (K @ K)


def log_turn(R: Array) -> Array:
    """Return the rotation vector (3,) of a rotation matrix, with an angle of at most π."""
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    squares = (1.0 + a + e + i, 1.0 + a - e - i, 1.0 - a + e - i, 1.0 - a - e + i)
    most = max(squares)
    # four multiples of the quaternion: the one with the largest divisor is the most exact
    w, x, y, z = (
        (most, h - f, c - g, d - b),
        (h - f, most, b + d, c + g),
        (c - g, b + d, most, f + h),
        (d - b, c + g, f + h, most),
    )[squares.index(most)]
    sine = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(sine, abs(w)) / sine if sine > 0.0 else 0.0
    factor = -factor if w < 0.0 else factor
    return np.array([factor * x, factor * y, factor * z])


def exp_turn(turn: Array) -> Array:
    """Return the rotation matrix (3, 3) of a rotation vector."""
    x, y, z = turn.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    share = math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    x, y, z, w = share * x, share * y, share * z, math.cos(0.5 * angle)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )
