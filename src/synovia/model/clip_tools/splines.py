"""Interpolate joint values: cubic splines of scalars within limits, spherical cubic splines of rotations."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.clip_tools.chart import Chart
from synovia.model.geometry import Array

_FAR: Final = 32  # number of frames; farther frames change a cubic spline by less than rounding errors, 0.27^32
_ROUNDING: Final = 1e-12  # fraction of a scalar's range: a spline may exceed its limits by this rounding error


def interpolated(skeleton: Skeleton, q: Array, knots: Array, times: Array) -> Array:
    """Interpolate joint values (n, nq) at times between frames.

    The accelerations of scalars and the angular accelerations of rotations are continuous. If a scalar would exceed its
    limits between frames that keep them, its slopes are replaced by those of a monotone cubic, which stays within them.
    At the time of a frame the values are those of the frame.

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
    """Interpolate scalars (n, ...), such as scales, monotonically between the adjacent frames.

    Args:
        values: Values of the frames, (T, ...).
        knots: Times of the frames, (T,).
        times: The times, (n,).
    """
    if len(values) == 1:
        return np.repeat(values, len(times), axis=0)
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(knots, values, axis=0)(times), np.float64)


def _numbers(knots: Array, values: Array, times: Array, lower: Array, upper: Array) -> Array:
    """Evaluate cubic splines (n, m) through values (T, m). If the values are within limits (m,), so are the splines."""
    from scipy.interpolate import CubicHermiteSpline, CubicSpline

    slopes = np.asarray(CubicSpline(knots, values, axis=0)(knots, 1), np.float64)
    for k in np.flatnonzero(np.isfinite(lower) | np.isfinite(upper)):
        slopes[:, k] = _kept_within(knots, values[:, k], slopes[:, k], float(lower[k]), float(upper[k]))
    return np.asarray(CubicHermiteSpline(knots, values, slopes, axis=0)(times), np.float64)


def _kept_within(knots: Array, y: Array, slopes: Array, lower: float, upper: float) -> Array:
    """Return slopes (T,) with which the cubic splines through values y (T,) stay within the limits.

    Frames next to a cubic that exceeds them get the slopes of the monotone cubic (Fritsch and Carlson 1980). This
    changes the cubic on the other side of the frame as well, so the step is repeated until no cubic exceeds them.
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
            return slopes  # the slopes are already monotone, so the remaining excess is a rounding error
        slopes[adjacent] = flat[adjacent]


def _extremes(knots: Array, y: Array, slopes: Array) -> tuple[Array, Array]:
    """Return the minimum and the maximum of the cubic in each interval between frames, (T - 1,)."""
    h, rise = np.diff(knots), np.diff(y)
    a, b = h * slopes[:-1], h * slopes[1:]
    c2, c3 = 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise  # coefficients of the cubic y + a s + c2 s² + c3 s³
    root = np.sqrt(np.maximum(c2 * c2 - 3.0 * a * c3, 0.0))
    lead = -(c2 + np.where(c2 < 0.0, -root, root))  # numerically stable form of the roots of a + 2 c2 s + 3 c3 s²
    ends = np.stack([np.zeros_like(y[1:]), rise])
    inner: list[Array] = []
    for top, bottom in ((lead, 3.0 * c3), (a, lead)):
        s = np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0.0)
        s = np.clip(s, 0.0, 1.0)
        inner.append(s * (a + s * (c2 + s * c3)))
    every = y[:-1] + np.concatenate([ends, np.stack(inner)])
    return every.min(0), every.max(0)
