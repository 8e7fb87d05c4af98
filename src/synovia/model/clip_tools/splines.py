"""Joint values between frames: cubic splines of numbers within limits, spherical cubic splines of rotations."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.clip_tools.chart import Chart
from synovia.model.geometry import Array

_FAR: Final = 32  # frames; farther ones change a cubic spline by less than rounding, 0.27^32
_ROUNDING: Final = 1e-12  # of a number's own range; a spline may leave its limits by so much


def interpolated(skeleton: Skeleton, q: Array, knots: Array, times: Array) -> Array:
    """Return the joint values (n, nq) at times between frames.

    The accelerations of numbers and the angular accelerations of rotations are continuous. Where a number would leave
    its limits between frames that keep them, its slopes become those of a monotone cubic, which cannot. At the time of
    a frame the values are those of the frame.

    Args:
        skeleton: The skeleton.
        q: Joint values of the frames, (T, nq), T at least 1.
        knots: Times of the frames, (T,), increasing.
        times: The times, (n,), from the first to the last knot.
    """
    if len(q) == 1 or not len(times):
        return np.repeat(q[:1], len(times), axis=0)
    first, last = (int(np.searchsorted(knots, float(end))) for end in (times.min(), times.max()))
    near = slice(max(first - _FAR, 0), last + _FAR)
    q, knots = q[near], knots[near]
    from scipy.spatial.transform import Rotation, RotationSpline

    chart = Chart.of(skeleton)
    out = np.empty((len(times), skeleton.nq))
    at = chart.numbers
    out[:, at] = _numbers(knots, chart.unwound(q), times, *(end[at] for end in skeleton.limits))
    for columns in chart.turns:
        turns = q[:, columns]
        if np.array_equal(turns, np.broadcast_to(turns[0], turns.shape)):
            out[:, columns] = turns[0]
        else:
            spline: Any = RotationSpline(knots, Rotation.from_quat(turns))
            out[:, columns] = spline(times).as_quat()
    begin = q[int(np.argmin(np.abs(knots - times[0])))]
    return skeleton.follow(chart.signed_like(chart.unflipped(out), begin))


def positive(values: Array, knots: Array, times: Array) -> Array:
    """Return numbers (n, ...) between frames, such as scales, that stay between those of the adjacent frames.

    Args:
        values: Numbers of the frames, (T, ...).
        knots: Times of the frames, (T,).
        times: The times, (n,).
    """
    if len(values) == 1:
        return np.repeat(values, len(times), axis=0)
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(knots, values, axis=0)(times), np.float64)


def _numbers(knots: Array, values: Array, times: Array, lower: Array, upper: Array) -> Array:
    """Return cubic splines (n, m) through numbers (T, m) that stay within limits (m,) if the numbers do."""
    from scipy.interpolate import CubicHermiteSpline, CubicSpline

    slopes = np.asarray(CubicSpline(knots, values, axis=0)(knots, 1), np.float64)
    for k in np.flatnonzero(np.isfinite(lower) | np.isfinite(upper)):
        slopes[:, k] = _kept_within(knots, values[:, k], slopes[:, k], float(lower[k]), float(upper[k]))
    return np.asarray(CubicHermiteSpline(knots, values, slopes, axis=0)(times), np.float64)


def _kept_within(knots: Array, y: Array, slopes: Array, lower: float, upper: float) -> Array:
    """Return slopes (T,) with which the cubics between numbers y (T,) do not leave the limits.

    Frames next to a cubic that leaves them get the slopes of the monotone cubic (Fritsch and Carlson 1980). Then the
    cubic on the other side of the frame is another one too, so this repeats until none leaves the limits.
    """
    low, high = np.minimum(np.minimum(y[1:], y[:-1]), lower), np.maximum(np.maximum(y[1:], y[:-1]), upper)
    slack = _ROUNDING * max(float(np.ptp(y)), 1e-300)
    slopes, flat = slopes.copy(), None
    while True:
        least, most = _extremes(knots, y, slopes)
        over = (least < low - slack) | (most > high + slack)
        if not over.any():
            return slopes
        if flat is None:
            from scipy.interpolate import PchipInterpolator

            flat = np.asarray(PchipInterpolator(knots, y)(knots, 1), np.float64)
        adjacent = np.zeros(len(y), bool)
        adjacent[1:] |= over
        adjacent[:-1] |= over
        if np.array_equal(slopes[adjacent], flat[adjacent]):
            return slopes  # monotone: what is left is rounding
        slopes[adjacent] = flat[adjacent]


def _extremes(knots: Array, y: Array, slopes: Array) -> tuple[Array, Array]:
    """Return the least and the greatest value of the cubic between each two frames, (T - 1,)."""
    h, rise = np.diff(knots), np.diff(y)
    a, b = h * slopes[:-1], h * slopes[1:]
    c2, c3 = 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise  # y + a s + c2 s² + c3 s³
    root = np.sqrt(np.maximum(c2 * c2 - 3.0 * a * c3, 0.0))
    lead = -(c2 + np.where(c2 < 0.0, -root, root))  # the stable form of the roots of a + 2 c2 s + 3 c3 s²
    ends = np.stack([np.zeros_like(y[1:]), rise])
    inner: list[Array] = []
    for top, bottom in ((lead, 3.0 * c3), (a, lead)):
        s = np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0.0)
        s = np.clip(s, 0.0, 1.0)
        inner.append(s * (a + s * (c2 + s * c3)))
    every = y[:-1] + np.concatenate([ends, np.stack(inner)])
    return every.min(0), every.max(0)
