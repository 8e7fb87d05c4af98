"""Keypoints to rotations: the motion of a skeleton whose joints or markers pass through points over time.

A closed-form guess turns every joint onto the points that hang on it; then all frames are fitted at once, with the
joints' accelerations kept small. How small is learned from the points: one in ten is held back, and the smoothness that
foretells those best is taken, first the same for all joints, then each beside how lively it has turned out to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from synovia.clips.cuts import pieces_of
from synovia.clips.guess import first_guess
from synovia.clips.points import Points, points_of
from synovia.errors import InputError
from synovia.geometry import Array, as_numbers
from synovia.goals import PositionGoal
from synovia.ik.root import with_free_root
from synovia.motion import Motion
from synovia.skeleton import Skeleton
from synovia.skeleton.pose import inside_limits
from synovia.trajectory import Model, Progress, Terms, part_of, solve_in_windows

PULL: Final = 1e-6  # weight of the guess, for what no point shows
LEAST: Final = 1e-6  # smoothness that is always there, for what no point shows
CLEAN: Final = 1e-6  # of the reach: points that fit so well without smoothing have no noise
NEAR: Final = 3e-4  # of the reach: points that the guess meets so well have little noise
BLUR: Final = 0.04  # seconds over which others are averaged for the guess, as noise would turn short bones over
HELD_BACK: Final = 0.1
LADDER: Final = 10.0 ** np.arange(-2.5, 4.1, 0.5)
SAMPLE: Final = 160  # frames from which the smoothness is learned
LIVELIEST: Final = 50.0  # times as smooth, or as lively, as the joints are in the middle
STEPS: Final = 12
ENOUGH: Final = 1e-3


class Fitted(Motion):
    """A motion that was fitted to points.

    ``errors`` (T, K) is how far each point is from where it was seen, length units, NaN where it was not;
    ``smoothness`` what the joints' accelerations were weighed with, 0 for points without noise. Points that were never
    seen are left out.
    """

    __slots__ = ("errors", "smoothness")

    errors: Array
    smoothness: float

    @classmethod
    def made(cls, motion: Motion, errors: Array, smoothness: float) -> Fitted:
        """Return a motion with the report of its fit."""
        out = cls(motion.skeleton, motion.q, motion.fps, name=motion.name)
        out.errors = errors
        out.smoothness = smoothness
        return out


def fit_positions(
    skeleton: Skeleton,
    positions: Any,
    joints: Sequence[str | int] | None = None,
    *,
    offsets: Any = None,
    confidence: Any = None,
    fps: float = 30.0,
    smoothness: float | None = None,
    name: str = "fitted",
    progress: Progress | None = None,
) -> Fitted:
    """Return the motion of a skeleton whose joints or markers pass through points over time.

    Args:
        skeleton: The skeleton; a root that is not free gets a free joint before it.
        positions: Places in the world, (T, K, 3) in the skeleton's length unit, NaN where a point was not seen; or a
            dict from joints to (T, 3).
        joints: Joint of each point, by name, body, role or row; all joints in order without. A joint may have many.
        offsets: The points in their joints' frames, (K, 3); the joints' origins without.
        confidence: Weight of each point, (K,) or (T, K); 0 for not seen.
        fps: Frames per second.
        smoothness: Weight of the squared accelerations of the joints (per frame², in radians and reaches) beside the
            squared distances (in reaches); learned from the points without, 0 for none.
        name: Name of the motion.
        progress: Called with the share of the work that is done.

    Raises:
        InputError: If a shape or a value cannot be used, or no point was seen.
        UnknownNameError: If a joint does not exist.

    References:
        Kabsch (1976), *A solution for the best rotation to relate two sets of vectors*, for the guess.
    """
    body = with_free_root(skeleton)
    before = len(body) - len(skeleton)
    points = points_of(skeleton, positions, joints, offsets, confidence)
    points.rows[:] = [row + before for row in points.rows]
    rate = float(as_numbers(fps, (), "fps"))
    weight = None if smoothness is None else float(as_numbers(smoothness, (), "smoothness"))
    if rate <= 0.0 or (weight is not None and weight < 0.0):
        raise InputError("fps or smoothness is negative", value=(fps, smoothness), expected="fps above 0")
    goals = [
        PositionGoal(row, offset=offset).resolved(body) for row, offset in zip(points.rows, points.offsets, strict=True)
    ]
    model = Model(body, goals, [(row,) for row in points.rows], free_root=True, translate=True)
    pieces = pieces_of(points.filled()[1])
    terms = _terms(model, points, np.repeat(body.rest_q[None], len(points.places), axis=0))
    q = np.concatenate([_guess(model, points, terms.window(*piece, fixed=0), piece, rate) for piece in pieces])
    terms = replace(terms, reference=q.copy())
    if weight is None:
        longest = max(pieces, key=lambda piece: piece[1] - piece[0])
        smooth, weight = _learned(model, terms, q, longest, None if progress is None else part_of(progress, 0.0, 0.3))
    else:
        smooth = np.full(model.columns, max(weight, LEAST))
    terms = replace(terms, smooth=smooth)
    for first, last in pieces:
        report = None if progress is None else part_of(progress, 0.3 + 0.7 * first / len(q), 0.3 + 0.7 * last / len(q))
        part = terms.window(first, last, fixed=0)
        q[first:last] = solve_in_windows(model, part, q[first:last], steps=STEPS, enough=ENOUGH, progress=report)
    _, _, errors = model.evaluate(q, terms.targets, derivative=False)
    missed = np.where(points.weights > 0.0, errors[:, :, 0], np.nan)
    return Fitted.made(Motion(body, q, rate, name=name), missed, weight)


def _guess(model: Model, points: Points, terms: Terms, piece: tuple[int, int], fps: float) -> Array:
    """Return where to start, (T, nq): from the points as they are if they fit, else from their averages over time."""
    used, places = points.filled(*piece)
    rows, offsets = [points.rows[k] for k in used], points.offsets[used]
    body = model.skeleton
    q = np.empty((0, body.nq))
    for blur in (0.0, BLUR * fps):
        calm = _blurred(places, blur) if blur else places
        q = inside_limits(body, body.follow(first_guess(body, rows, offsets, calm)))
        e, _, _ = model.evaluate(q, terms.targets, derivative=False)
        if len(q) < 3 or np.sqrt(np.mean(terms.weights * e * e)) < NEAR:
            break
    return q


def _blurred(places: Array, blur: float) -> Array:
    """Return averages over time with Gaussian weights; blur is their width in frames."""
    from scipy import ndimage

    smooth: Any = ndimage.gaussian_filter1d  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return np.asarray(smooth(places, blur, axis=0, mode="nearest"), np.float64)


def _terms(model: Model, points: Points, q: Array) -> Terms:
    """Return what is asked for, with the least smoothness."""
    count, size = points.weights.shape
    targets = np.tile(np.eye(4), (count, size, 1, 1))
    targets[:, :, :3, 3] = points.places
    return Terms(
        targets=targets.reshape(count, size, 16),
        weights=np.repeat(points.weights, 3, axis=1),
        side=np.zeros(model.rows),
        reference=q.copy(),
        pull=np.full(model.columns, PULL),
        smooth=np.full(model.columns, LEAST),
    )


def _learned(
    model: Model, terms: Terms, q: Array, piece: tuple[int, int], progress: Progress | None
) -> tuple[Array, float]:
    """Return the smoothness of each column, and its middle: 0 where the points have no noise."""
    middle = (piece[0] + piece[1]) // 2
    first, last = max(piece[0], middle - SAMPLE // 2), min(piece[1], middle + SAMPLE // 2)
    part, start = terms.window(first, last, fixed=0), q[first:last]
    start = solve_in_windows(model, part, start, steps=STEPS, enough=ENOUGH)
    e, _, _ = model.evaluate(start, part.targets, derivative=False)
    if last - first < 4 or np.sqrt(np.mean(part.weights * e * e)) < CLEAN:
        return terms.smooth, 0.0
    held = np.repeat(np.random.default_rng(0).random((last - first, model.rows // 3)) < HELD_BACK, 3, axis=1)
    rest = replace(part, weights=np.where(held, 0.0, part.weights))
    check = np.where(held, part.weights, 0.0)
    shape = np.ones(model.columns)
    factor, best = float(LADDER[0]), q[first:last]
    for k, ladder in enumerate((LADDER, LADDER)):
        lowest, tried = np.inf, q[first:last]
        for number, value in enumerate(ladder if k == 0 else ladder[ladder >= 0.09 * factor]):
            tried = solve_in_windows(model, replace(rest, smooth=value * shape), tried, steps=STEPS // 2, enough=ENOUGH)
            e, _, _ = model.evaluate(tried, part.targets, derivative=False)
            off = float(np.sum(check * e * e))
            if progress is not None:
                progress((k + (number + 1) / len(ladder)) / 2.0)
            if off < lowest:
                lowest, factor, best = off, float(value), tried
            elif off > 1.02 * lowest:
                break
        if k == 0:
            shape = _liveliness(model, best)
    return factor * shape, factor


def _liveliness(model: Model, q: Array) -> Array:
    """Return how smooth each joint should be beside the others, (columns,): where it accelerates little, more."""
    bend = np.mean(np.diff(model.difference(q[:-1], q[1:]), axis=0) ** 2, axis=0)
    groups = [model.number_column[model.is_length[model.number_column]]]
    groups += [np.arange(column, column + 3) for column in model.turn_column.tolist()]
    for group in groups:
        if len(group):
            bend[group] = bend[group].mean()
    middle = max(float(np.median(bend)), 1e-300)
    return np.clip(middle / np.maximum(bend, middle / LIVELIEST), 1.0 / LIVELIEST, LIVELIEST)
