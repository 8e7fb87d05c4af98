"""Points over time: positions of joints or markers, their gaps and confidence, and the cuts of a clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.geometry import Array, as_numbers, dimensions

# at a cut, points move at least this many times as far as in the frames before and after
SUDDEN: Final = 5.0
LEAST: Final = 0.03  # fraction of the points' extent: at a cut, points move at least this far


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """K points on joints over T frames.

    Args:
        rows: Row of the joint to which each point belongs.
        offsets: Position of each point in its joint's frame, (K, 3), length units.
        places: Observed world positions, (T, K, 3); 0 where the point was not seen.
        weights: Confidence, (T, K); 0 where the point was not seen.
    """

    rows: list[int]
    offsets: Array
    places: Array
    weights: Array

    def filled(self, first: int = 0, last: int | None = None) -> tuple[list[int], Array, NDArray[np.bool_]]:
        """Fill the gaps in a range of frames by linear interpolation.

        Returns:
            Indices of the points seen in these frames, their positions, (frames, n, 3), and a mask of the observed
            positions, (frames, n).
        """
        places, seen = self.places[first:last].copy(), self.weights[first:last] > 0.0
        times = np.arange(len(places))
        used = np.flatnonzero(seen.any(0)).tolist()
        for k in used:
            there = seen[:, k]
            if not there.all():
                for axis in range(3):
                    places[~there, k, axis] = np.interp(times[~there], times[there], places[there, k, axis])
        return used, places[:, used], seen[:, used]


def points_of(
    skeleton: Skeleton, positions: Any, joints: Sequence[str | int] | None, offsets: Any, confidence: Any
) -> Points:
    """Convert the arguments of ``fit_positions`` to points, without points that are never seen.

    Raises:
        InputError: If shapes do not match, or no point was seen.
        UnknownNameError: If a joint does not exist.
    """
    if isinstance(positions, Mapping):
        table = cast("Mapping[Any, Any]", positions)
        if joints is not None:
            raise InputError("joints are given twice", hint="a dict of positions names them already")
        if not table:
            raise InputError("there are no positions")
        each = [as_numbers(value, (-1, 3), f"positions of {key!r}", finite=False) for key, value in table.items()]
        if len({len(one) for one in each}) > 1:
            raise InputError("positions have different lengths", value=[len(one) for one in each])
        joints = list(table)
        positions = np.stack(each, axis=1)
    places = as_numbers(positions, (-1, -1, 3), "positions", finite=False)
    count, points = places.shape[:2]
    if joints is None:
        if points != len(skeleton):
            raise InputError(
                f"positions hold {points} points", expected=f"{len(skeleton)}, one for each joint, or joints=[...]"
            )
        joints = range(len(skeleton))
    located = [skeleton.locate(joint) for joint in joints]
    rows = [row for row, _ in located]
    if len(rows) != points:
        raise InputError("joints do not match the positions", value=len(rows), expected=f"{points} joints")
    where = np.zeros((points, 3)) if offsets is None else as_numbers(offsets, (points, 3), "offsets").copy()
    for k, (_, place) in enumerate(located):
        if place is not None:
            where[k] = place[:3, :3] @ where[k] + place[:3, 3]
    seen = np.logical_not(np.isnan(places).any(axis=2, keepdims=True))
    if np.isinf(places).any():
        raise InputError("positions are not finite", expected="numbers, NaN where a point was not seen")
    weights = np.where(seen[:, :, 0], confidence_of(confidence, count, points), 0.0)
    used = np.flatnonzero((weights > 0.0).any(0))
    if count == 0 or len(used) == 0:
        raise InputError("no point was seen in any frame")
    weights = weights / weights.max()
    clean = np.where(seen, places, 0.0)
    return Points([rows[k] for k in used], where[used], clean[:, used], weights[:, used])


def confidence_of(confidence: Any, count: int, points: int) -> Array:
    """Return the weight of each point in each frame, (T, K): 1 if ``confidence`` is None, and 0 for NaN.

    Raises:
        InputError: If the shape or a value of the confidence is wrong.
    """
    if confidence is None:
        return np.ones((count, points))
    if getattr(confidence, "dtype", None) == np.bool_:  # a mask of seen points
        confidence = confidence.astype(np.float64)
    given = as_numbers(confidence, (-1,) * max(dimensions(confidence), 0), "confidence", finite=False)
    if given.shape not in ((points,), (count, points)):
        raise InputError(f"confidence has shape {given.shape}", expected=f"({count}, {points}) or ({points},)")
    if np.isinf(given).any() or (given < 0.0).any():
        raise InputError("confidence is negative or not finite", expected="0 for not seen, larger for better points")
    return np.broadcast_to(np.nan_to_num(given), (count, points))


def pieces_of(places: Array) -> list[tuple[int, int]]:
    """Return (first, end) of the pieces of a clip between its cuts.

    At a cut, for example between a calibration pose and the motion, points move many times as far as in the adjacent
    frames. Motion must not be smoothed across a cut.

    Args:
        places: Points over time, (T, n, 3).
    """
    count = len(places)
    way = np.linalg.norm(np.diff(places, axis=0), axis=-1).mean(1) if count > 1 else np.zeros(0)
    extent = float(np.ptp(places, axis=1).max(1).mean()) if places.size else 0.0
    padded = np.concatenate([[0.0], way, [0.0]])
    around = np.maximum(padded[:-2], padded[2:])
    cuts = np.flatnonzero((way > SUDDEN * around) & (way > LEAST * extent)) + 1 if count > 3 else np.zeros(0, int)
    edges = [0, *cuts.tolist(), count]
    return list(pairwise(edges))
