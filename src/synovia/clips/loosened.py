"""Widen the limits of bodies made to measure if the points contradict these limits.

The limits of such a body are a guess about the person. Within them, some poses, for example of a dancer, stay far from
their points.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.fit import Fitted
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.limits import Interval, Limit, SwingTwist
from synovia.model.motion import Motion
from synovia.text import DOUBT, first_few

Bools = NDArray[np.bool_]
FAR: Final = 3.0  # errors count as large above this multiple of the median error; a limit may be their cause
# seconds: points contradict a limit if large errors last at least this long; noise affects only single frames
LASTS: Final = 0.1
CLOSER: Final = 0.6  # limits are the cause if a fit without limits has less than this fraction of the errors
AT: Final = 1e-4  # radians, or fraction of a half-angle: values that are nearer to a limit count as at the limit
MARGIN: Final = np.radians(1.0)  # radians between the motion and the widened limits
UNLIKELY: Final = np.radians(75.0)  # radians: if a limit changes by more, points or their names are probably wrong
REPORTED: Final = np.radians(1.0)  # radians: smaller changes of limits are not reported
NAMED: Final = 6  # largest number of joints that a note lists


def loosened(fitted: Fitted, body: Skeleton, fit: Callable[[Skeleton], Fitted]) -> tuple[Fitted, list[str]]:
    """Return a fit whose limits agree with the points, and sentences about the limits that were widened.

    A point contradicts limits if its error is large in frames with joints at a limit, and much smaller there in a fit
    without limits. Then return the fit without limits, with limits widened to contain its motion.

    Args:
        fitted: A fit within limits.
        body: The skeleton that ``fitted`` was made with.
        fit: A function that fits another skeleton to the same points.
    """
    errors = np.nan_to_num(fitted.errors)
    bound = np.any([at_limit(fitted, row) for row in range(len(fitted.skeleton))], axis=0)
    held = bound[:, None] & (errors > FAR * float(np.nanmedian(fitted.errors)))
    points = np.flatnonzero(np.count_nonzero(held, axis=0) >= max(LASTS * fitted.fps, 1.0)).tolist()
    if not points:
        return fitted, []
    free = fit(body.with_joints([replace(joint, limit=None) for joint in body.joints]))
    left = np.nan_to_num(free.errors)
    if not any(np.median(left[held[:, k], k]) < CLOSER * np.median(errors[held[:, k], k]) for k in points):
        return fitted, []
    limits = {row: widened(joint.limit, _values(free, row)) for row, joint in enumerate(fitted.skeleton.joints)}
    joints = [replace(joint, limit=limits[row][0]) for row, joint in enumerate(fitted.skeleton.joints)]
    motion = Motion(fitted.skeleton.with_joints(joints), free.q, free.fps, name=free.name)
    grown = {joint.name.replace("_", " "): limits[row][1] for row, joint in enumerate(joints)}
    named = sorted((name for name in grown if grown[name] > REPORTED), key=lambda name: -grown[name])
    text = ", ".join(f"{name} by {np.degrees(grown[name]):.0f}°" for name in named[:NAMED])
    text += f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    notes = [f"the points contradict limits of the body, which were widened: {text}"] if named else []
    if far := [f"{name} by {np.degrees(grown[name]):.0f}°" for name in named if grown[name] > UNLIKELY]:
        notes.append(
            f"{DOUBT}limits were widened farther than people differ: {first_few(far)}; the points of these"
            " parts or their names may be wrong"
        )
    return Fitted.made(motion, free.errors, free.smoothness, free.notes, free.flips), notes


def _values(motion: Motion, row: int) -> Array:
    """Return the values of a joint over time: plain values (T, 1), or quaternions (T, 4)."""
    at = motion.skeleton.q_slice(row)
    return motion.q[:, max(at.start, at.stop - 4) : at.stop]


def at_limit(motion: Motion, row: int) -> Bools:
    """Return a mask of the frames in which a joint is at its limit, (T,)."""
    limit, values = motion.skeleton.joints[row].limit, _values(motion, row)
    if isinstance(limit, Interval):
        return (values[:, 0] <= limit.lower + AT) | (values[:, 0] >= limit.upper - AT)
    if isinstance(limit, SwingTwist):
        swing, twist = limit.components(values)
        low, high = limit.twist
        return (_excess(limit, swing) >= 1.0 - AT) | (twist <= low + AT) | (twist >= high - AT)
    return np.zeros(len(motion), bool)


def widened(limit: Limit | None, values: Array) -> tuple[Limit | None, float]:
    """Return a joint's limit, widened to contain values, and the largest change of the limit, radians."""
    if isinstance(limit, Interval):
        low, high = float(values.min()), float(values.max())
        lower = limit.lower if low >= limit.lower else low - MARGIN
        upper = limit.upper if high <= limit.upper else high + MARGIN
        return Interval(lower, upper), max(limit.lower - lower, upper - limit.upper)
    if not isinstance(limit, SwingTwist):
        return limit, 0.0
    swing, twists = limit.components(values)
    low, high = float(twists.min()), float(twists.max())
    lower = limit.twist[0] if low >= limit.twist[0] else max(low - MARGIN, -np.pi)
    upper = limit.twist[1] if high <= limit.twist[1] else min(high + MARGIN, np.pi)
    grown = max(limit.twist[0] - lower, upper - limit.twist[1])
    x, y = (tuple(max(angle, MARGIN) for angle in pair) for pair in (limit.x, limit.y))
    wide = SwingTwist((x[0], x[1]), (y[0], y[1]), (lower, upper), limit.frame)
    beyond = _excess(wide, swing)
    if float(beyond.max(initial=0.0)) <= 1.0:
        return SwingTwist(limit.x, limit.y, (lower, upper), limit.frame), grown
    ends = [[*x], [*y]]
    for sides in itertools.product((0, 1), repeat=2):  # each quadrant of the ellipse has its own two half-angles
        here = (swing >= 0.0) == np.array(sides, bool)
        most = float(beyond[here.all(1)].max(initial=0.0))
        factor = most + MARGIN if most > 1.0 else 1.0
        for axis, (pair, side) in enumerate(zip((x, y), sides, strict=True)):
            ends[axis][side] = max(ends[axis][side], factor * pair[side])
    far = max(ends[0] + ends[1])
    if far > np.pi:
        return None, np.pi - max(*limit.x, *limit.y)
    grown = max(grown, *(end - angle for pair, old in zip(ends, (limit.x, limit.y), strict=True)
                         for end, angle in zip(pair, old, strict=True)))  # fmt: skip
    return SwingTwist((ends[0][0], ends[0][1]), (ends[1][0], ends[1][1]), (lower, upper), limit.frame), grown


def _excess(limit: SwingTwist, swing: Array) -> Array:
    """Return the sizes of swings (T, 2) relative to the limit, (T,): 1 on the edge of the swing's ellipse."""
    half = np.stack([np.where(swing[:, k] >= 0.0, pair[1], pair[0]) for k, pair in enumerate((limit.x, limit.y))], 1)
    return np.linalg.norm(swing / np.maximum(half, AT), axis=1)
