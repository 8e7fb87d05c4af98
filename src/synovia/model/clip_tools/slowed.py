"""Slow a clip down where joints would be too fast: keep the path, and change the timing along the path.

The path is a spline through the frames, with the parameter s in seconds of the clip. The speed ṡ is at most 1, and as
high as the limits of all joints allow: |q'| ṡ ≤ V, and |q' s̈ + q'' ṡ²| ≤ A. A backward pass finds the highest speed at
each place from which the path can be followed to its end, and a forward pass finds the fastest profile below it.

References:
    H. Pham, Q.-C. Pham, "A new approach to time-optimal path parameterization based on reachability analysis", IEEE
    Transactions on Robotics, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.clip_tools.chart import Chart, Ints
from synovia.model.geometry import Array

_PLACES: Final = 8  # number of places on the path per frame
_TINY: Final = 1e-12  # fraction of a limit: smaller derivatives do not move a joint
_SLOWEST: Final = 1e-6  # lowest speed along the path
_TRIES: Final = 8  # largest number of solves with lowered limits, since frames between places may exceed them
_LEAST: Final = 0.995  # factor of the limits in the first solve, and safety factor in later ones
_ROUNDING: Final = 1.0 + 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Highest velocity and acceleration of each group of step components: one scalar, a rotation, or a position.

    Args:
        groups: Group of each step of a ``Chart``, (m + 3 k,).
        velocity: Highest velocity of each group, (g,).
        acceleration: Highest acceleration of each group, (g,).
    """

    groups: Ints
    velocity: Array
    acceleration: Array

    @classmethod
    def of(cls, skeleton: Skeleton, velocity: Array, acceleration: Array) -> Limits:
        """Return the limits of a skeleton, given the velocity and acceleration limits of its joints, (n,) each."""
        chart = Chart.of(skeleton)
        owner = np.zeros(skeleton.nq, np.int64)
        for row in range(len(skeleton)):
            owner[skeleton.q_slice(row)] = row
        joints = np.concatenate([owner[chart.numbers], np.repeat(owner[chart.turns[:, :1]].ravel(), 3)])
        turns = np.arange(len(joints)) >= len(chart.numbers)
        found, groups = np.unique(np.stack([joints, turns]), axis=1, return_inverse=True)
        rows = found[0]
        return cls(groups.ravel(), velocity[rows], acceleration[rows])

    def sizes(self, steps: Array) -> Array:
        """Return the norm of each group's step, (n, g), from steps (n, m + 3 k)."""
        out = np.zeros((len(steps), len(self.velocity)))
        np.add.at(out.T, self.groups, steps.T**2)
        return np.sqrt(out)

    def excess(self, steps: Array, fps: float) -> tuple[float, float]:
        """Return the largest velocity and acceleration relative to their limits, from steps between frames."""
        fast = self.sizes(steps) * fps / self.velocity
        hard = self.sizes(np.diff(steps, axis=0)) * fps**2 / self.acceleration
        return float(fast.max(initial=0.0)), float(hard.max(initial=0.0))


def slowed_times(
    at: Callable[[Array], Array],
    count: int,
    fps: float,
    chart: Chart,
    limits: Limits,
    *,
    check: Callable[[float], object],
) -> Array | None:
    """Return the time in the clip of each frame of the slowed clip, (n,), seconds; None if the clip keeps the limits.

    Args:
        at: Returns the joint values of the clip, (n, nq), at times (n,).
        count: Number of frames of the clip, 2 or more.
        fps: Frames per second.
        chart: The chart of the skeleton.
        limits: Highest velocities and accelerations.
        check: Raises an error if a clip cannot have so many frames.
    """
    knots = np.arange(count) / fps
    if max(limits.excess(_steps(at(knots), chart), fps)) <= _ROUNDING:
        return None
    places: Array = np.linspace(0.0, (count - 1) / fps, (count - 1) * _PLACES + 1)
    steps = _steps(at(places), chart)
    lowered = Limits(limits.groups, _LEAST * limits.velocity, _LEAST * limits.acceleration)
    tries, slower = 0, 1.0
    while True:
        speeds = _speeds(steps, float(places[1]), lowered)
        clock = _clock(places, slower * speeds)
        check(float(clock[-1]) * fps)
        times = _shown(places, slower * speeds, clock, fps, even=bool(np.isfinite(limits.acceleration).any()))
        fast, hard = limits.excess(_steps(at(times), chart), fps)
        if max(fast, hard) <= 1.0:
            return times
        tries += 1
        if tries < _TRIES:
            v, a = _LEAST / max(fast, 1.0) * lowered.velocity, _LEAST / max(hard, 1.0) * lowered.acceleration
            lowered = Limits(limits.groups, v, a)
        else:  # for a path with corners, only speed is limited
            slower *= _LEAST / max(fast, hard)


def _steps(q: Array, chart: Chart) -> Array:
    """Return the steps between joint values (n, nq)."""
    return chart.between(q[:-1], q[1:])


def _speeds(steps: Array, width: float, limits: Limits) -> Array:
    """Return the speed along the path at each place, (n + 1,), from the steps between places, (n, m + 3 k)."""
    n = len(steps)
    first = np.empty((n + 1, steps.shape[1]))
    first[1:-1] = (steps[1:] + steps[:-1]) / (2.0 * width)
    first[0], first[-1] = steps[0] / width, steps[-1] / width
    second = np.zeros_like(first)
    second[1:-1] = np.diff(steps, axis=0) / width**2
    with np.errstate(divide="ignore"):
        fast = np.minimum(1.0, (limits.velocity / limits.sizes(first)).min(1, initial=np.inf))
    counts = np.bincount(limits.groups, minlength=len(limits.velocity))
    # bound of each component, so that the norm keeps the limit
    most = (limits.acceleration / np.sqrt(counts))[limits.groups]
    used = np.isfinite(most)
    most, first, second = most[used], first[:, used] / most[used], second[:, used] / most[used]
    top = fast**2  # bound of x = ṡ², the squared speed, at each place; dx/ds = 2 s̈
    if first.shape[1]:
        ends = [_interval(a, b) for a, b in zip(first, second, strict=True)]
        for i in range(n - 1, -1, -1):
            top[i] = min(top[i], _highest(ends[i], top[i + 1], 2.0 * width))
        for i in range(n):
            (_, _), (c, slope) = ends[i]
            most_next = top[i] + 2.0 * width * float((c + slope * top[i]).min(initial=np.inf))
            top[i + 1] = min(top[i + 1], max(most_next, 0.0))
    return np.maximum(np.sqrt(top), _SLOWEST)


_Lines = tuple[Array, Array]  # values c and slopes of lines c + slope x


def _interval(a: Array, b: Array) -> tuple[_Lines, _Lines]:
    """Return lines over x = ṡ², in two sets: lower bounds of s̈ (the highest applies), and upper bounds (the lowest).

    Each component has -1 ≤ a s̈ + b x ≤ 1. A component with a = 0 bounds only x; its lines are far apart below that
    bound.
    """
    size = np.maximum(np.abs(a), _TINY)
    slope = -np.where(a < 0.0, -b, b) / size
    return (-1.0 / size, slope), (1.0 / size, slope)


def _highest(ends: tuple[_Lines, _Lines], after: float, width: float) -> float:
    """Return the highest x for which some s̈ keeps the limits and x + width s̈ ≤ ``after``."""
    (low, slope), (high, _) = ends
    climbs = slope[:, None] - slope[None, :]
    gaps = high[None, :] - low[:, None]
    met = np.divide(gaps, climbs, out=np.full_like(gaps, np.inf), where=climbs > 0.0).min(initial=np.inf)
    down = 1.0 / width + slope
    stops = np.divide(after / width - low, down, out=np.full_like(low, np.inf), where=down > 0.0).min(initial=np.inf)
    return max(float(min(met, stops)), 0.0)


def _clock(places: Array, speeds: Array) -> Array:
    """Return the time at which the slowed clip passes each place, (n + 1,), seconds.

    Between two places the squared speed is linear, so the acceleration along the path is constant.
    """
    return np.concatenate([np.zeros(1), np.cumsum(2.0 * np.diff(places) / (speeds[1:] + speeds[:-1]))])


def _shown(places: Array, speeds: Array, clock: Array, fps: float, *, even: bool) -> Array:
    """Return the place on the path at each frame of constant rate, (n,); the last one is the end of the path.

    Args:
        places: The places, (n + 1,).
        speeds: Speed along the path at the places, (n + 1,).
        clock: Time of each place, (n + 1,), see ``_clock``.
        fps: Frames per second.
        even: Whether to slow all frames slightly so that the end is at the last frame; otherwise the last step is
            shorter.
    """
    spans = np.diff(clock)
    whole = float(clock[-1])
    count = max(math.ceil(whole * fps * (1.0 - _TINY) - _TINY), 1)
    moments: Array = np.minimum(np.arange(count + 1) * (whole / count if even else 1.0 / fps), whole)
    k: Ints = np.clip(np.searchsorted(clock, moments, side="right") - 1, 0, len(spans) - 1)
    t = moments - clock[k]
    out = places[k] + t * (speeds[k] + 0.5 * t * (speeds[k + 1] - speeds[k]) / spans[k])
    out[-1] = places[-1]
    return np.clip(out, 0.0, places[-1])
