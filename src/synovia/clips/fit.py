"""Fit the motion of a skeleton to points over time, such as joint positions or markers.

First, a closed-form guess rotates every joint towards its points (``guess``). Then least squares fits all frames
together (``trajectory``). If the points are noisy, a prior of the motion is learned from them first (``prior``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress, check_kind
from synovia.clips import guess, prior
from synovia.clips.points import Points, pieces_of, points_of
from synovia.errors import InputError
from synovia.goals import PositionGoal
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, as_numbers, rotation_between, times_exp
from synovia.model.motion import Motion
from synovia.model.pose import inside_limits
from synovia.model.tree import ancestors
from synovia.tracking.trajectory import Effort, Model, Terms, part_of, solve_in_windows

PULL: Final = 1e-8  # weight of the pull to the guess, which also determines joints that no point determines
LEAST: Final = 1e-10  # smallest smoothness; it also determines joints that no point determines
# fraction of the length scale: below this root mean square error, points count as free of noise
CLEAN: Final = 1e-5
# fraction of seen coordinates that must exceed the degrees of freedom; with fewer, joints could follow noise
SURPLUS: Final = 0.05
SMOOTHNESS: Final = 1e-6  # smoothness of the test for noise below ``SURPLUS``, where joints could follow noise
# seconds: standard deviation of the filter that smooths points for the guess, as noise would flip short bones
BLUR: Final = 0.04
FILLED: Final = 0.05  # weight of interpolated points in the guess, because they may flip short bones
SLIP: Final = 2e-3  # fraction of the length scale: smaller sliding motion of joints inside the body counts as noise
TIGHT: Final = 1e-2  # weight of the pull to rest on sliding joints that move by at most ``SLIP``
# share of a joint's rotation that is kept before the first and after the last frame in which points determine the joint
HELD_BACK: Final = 0.5
SAMPLE: Final = 120  # number of frames in a sample, from which noise and prior are learned
STEPS: Final = 12  # largest number of steps of a fit
PRIORS: Final = 4  # largest number of samples for the prior; one is enough if no points contradict it
ENOUGH: Final = 1e-3  # fraction of the cost: a fit ends if a step reduces the cost by less than this


class Fitted(Motion):
    """A motion that was fitted to points.

    Attributes:
        errors: Distance of each point from its observation, (T, K), length units; NaN in frames in which the point was
            not seen. Points that were never seen have no column.
        smoothness: Weight of the joints' accelerations in the fit (median over joints); 0 for points without noise.
        notes: Notes of the motion, then sentences about points that were recognised or changed before the fit.
        flips: Frames in which the points are upside down, turned round or mirrored relative to the other frames.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> points = sy.Motion(body, [body.rest_q] * 5, 30.0).positions()
        >>> fitted = sy.fit_positions(points, body, body.joint_names)
        >>> fitted.errors.shape, bool(fitted.errors.max() < 1e-3)
        ((5, 26), True)
    """

    __slots__ = ("errors", "flips", "smoothness")

    errors: Array
    smoothness: float
    flips: tuple[int, ...]

    @classmethod
    def made(
        cls, motion: Motion, errors: Array, smoothness: float, notes: Sequence[str] = (), flips: Sequence[int] = ()
    ) -> Fitted:
        """Return a motion together with results of its fit, see the attributes."""
        every = dict.fromkeys((*motion.notes, *notes))
        out = cls(motion.skeleton, motion.q, motion.fps, name=motion.name, stretch=motion.stretch, notes=every)
        out.errors = errors
        out.smoothness = smoothness
        out.flips = tuple(flips)
        return out

    def _part(self, frames: slice, fps: float) -> Self:
        """Return a part of the clip, with the errors and the flipped frames of this part."""
        out = super()._part(frames, fps)
        out.errors = self.errors[frames]
        out.smoothness = self.smoothness
        out.flips = tuple(k for k, frame in enumerate(range(len(self))[frames]) if frame in self.flips)
        return out


def fit_positions(
    positions: Any,
    skeleton: Skeleton,
    joints: Sequence[str | int] | None = None,
    *,
    offsets: Any = None,
    confidence: Any = None,
    fps: float = 30.0,
    smoothness: float | None = None,
    name: str = "fitted",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Fit the motion of a skeleton so that its joints or markers follow points over time.

    Loops of the skeleton are closed after the fit, by joints that move no point, such as rods. If these cannot close a
    loop, other joints change too; the errors include this change.

    Args:
        positions: World positions of the points, (T, K, 3) in the skeleton's length unit, NaN where a point was not
            seen; or a dict from joints to (T, 3).
        skeleton: The skeleton; a free joint is added above a root that is not free.
        joints: Joint, link or site of each point, by name, role or row; None for all joints in order. A joint may have
            several points.
        offsets: The points in the frames of their joints, (K, 3); None for the origins of the joints.
        confidence: Weight of each point, (K,) or (T, K); 0 for an unseen point.
        fps: Frames per second.
        smoothness: Weight of squared accelerations of the joints (radians or length scales, per frame²) relative to
            squared distances (length scales). None to learn it from the points; 0 for no smoothing.
        name: Name of the motion.
        threads: Number of threads; None for all cores. Results are identical for any number.
        progress: Called with (steps done, number of steps).

    Raises:
        InputError: If a shape or a value cannot be used, or no point was seen.
        UnknownNameError: If a joint does not exist.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> walk = sy.Motion(body, [body.rest_pose().q] * 5, 30.0)
        >>> names = ["hips", "head", "left_hand", "right_hand", "left_foot", "right_foot"]
        >>> points = walk.positions()[:, [body.index(name) for name in names]]  # (5 frames, 6 points, 3)
        >>> fitted = sy.fit_positions(points, body, names, fps=30.0)
        >>> bool(fitted.errors.max() < 1e-3)
        True

    References:
        Kabsch (1976), *A solution for the best rotation to relate two sets of vectors*, for the guess.
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    tied = skeleton.with_root("free")
    body = tied.with_loops([]) if tied.loops else tied  # loops are closed after the fit
    before = len(body) - len(skeleton)
    points = points_of(skeleton, positions, joints, offsets, confidence)
    points.rows[:] = [row + before for row in points.rows]
    rate = positive(fps, "fps")
    weight = None if smoothness is None else float(as_numbers(smoothness, (), "smoothness"))
    if weight is not None and weight < 0.0:
        raise InputError("smoothness", value=smoothness, expected="0, for no smoothing, or more")
    goals = [
        PositionGoal(row, offset=offset).resolved(body) for row, offset in zip(points.rows, points.offsets, strict=True)
    ]
    model = Model(body, goals, [(row,) for row in points.rows], free_root=True, translate=True, threads=threads)
    pieces = pieces_of(points.filled()[1])
    q, terms, weight = _start(model, points, pieces, rate, weight)
    longest = _longest(pieces)
    known: prior.Prior | None = None
    samples: list[tuple[int, int]] = []
    lively, usual = np.ones(max(len(q) - 2, 0)), np.zeros(len(points.rows))
    if weight is None:
        sample = _liveliest(points, longest, rate)
        samples.append(sample)
        report = None if progress is None else part_of(progress, 0.0, 0.7)
        part = terms.window(*sample, fixed=0)
        known, q[slice(*sample)] = prior.learn(model, part, q[slice(*sample)], report)
        lively[sample[0] : sample[0] + len(known.lively)] = known.lively
        usual = prior.usual_errors(model, part, q[slice(*sample)], known)
    for left in reversed(range(1 if known is None else PRIORS)):
        smooth = np.full(model.columns, max(weight or 0.0, LEAST)) if known is None else known.noise / known.bend
        terms = replace(terms, smooth=smooth)
        wrong = np.zeros(len(q), bool)
        done = 0.0 if known is None else 0.7
        for piece in pieces:
            low, high = (done + (1.0 - done) * frame / len(q) for frame in piece)
            first = known is None or left == PRIORS - 1
            report = part_of(progress, low, high) if progress is not None and first else None
            part = terms.window(*piece, fixed=0)
            if known is not None and piece == longest:
                part = replace(known, lively=lively[piece[0] : max(piece[1] - 2, piece[0])]).applied(part)
            q[slice(*piece)] = solve_in_windows(model, part, q[slice(*piece)], Effort(STEPS, ENOUGH), progress=report)
            if known is not None and left:
                wrong[slice(*piece)] = prior.contradicted(model, part, q[slice(*piece)], usual)
        if known is None or not wrong.any() or (sample := _most(wrong, pieces)) in samples:
            break
        samples.append(sample)
        part = terms.window(*sample, fixed=0)
        other, q[slice(*sample)] = prior.learn(model, part, terms.reference[slice(*sample)].copy(), None)
        lively[sample[0] : sample[0] + len(other.lively)] = other.lively
        known = known.widened(model, other)
    if weight is None:
        weight = float(np.median(terms.smooth))
    q = _held_back(body, points, q, pieces)
    if tied.mechanism is not None:
        q = tied.mechanism.shut_clip(q, model.moving)
    _, _, errors = model.evaluate(q, terms.targets, derivative=False)
    missed = np.where(points.weights > 0.0, errors[:, :, 0], np.nan)
    return Fitted.made(Motion(tied, q, rate, name=name), missed, weight)


def positive(value: Any, what: str) -> float:
    """Return a value as a float; it must be above 0.

    Raises:
        InputError: If the value is not such a number.
    """
    number = float(as_numbers(value, (), what))
    if number <= 0.0:
        raise InputError(what, value=value, expected="a number above 0")
    return number


def _held_back(body: Skeleton, points: Points, q: Array, pieces: list[tuple[int, int]]) -> Array:
    """Return joint values (T, nq) in which extrapolated rotations of joints are halved.

    A point determines the joints that move it. Within a piece, the fit extrapolates a joint before the first and after
    the last frame in which one of its points was seen. Extrapolated rotations are too large on average, because limbs
    slow down and turn back, and because noise grows with time. Points that were seen do not move.

    Args:
        body: The skeleton.
        points: The points.
        q: Joint values of the fit, (T, nq).
        pieces: (first, end) of each piece; the clip is cut between pieces.
    """
    known = np.zeros((len(q), len(body)), bool)
    for row, offset, weights in zip(points.rows, points.offsets, points.weights.T, strict=True):
        moving = ancestors(body.parents, row)
        known[:, moving if offset.any() else moving[1:]] |= (weights > 0.0)[:, None]
    out = q.copy()
    for row, joint in enumerate(body.joints):
        if joint.kind not in (Kind.BALL, Kind.FREE, Kind.HINGE):
            continue
        end = body.q_slice(row).stop
        at = slice(end - (1 if joint.kind is Kind.HINGE else 4), end)
        for piece in pieces:
            seen = np.flatnonzero(known[slice(*piece), row]) + piece[0]
            if len(seen) == 0:
                continue
            for near, beyond in ((seen[0], slice(piece[0], seen[0])), (seen[-1], slice(seen[-1] + 1, piece[1]))):
                here, there = np.broadcast_to(q[near, at], q[beyond, at].shape), q[beyond, at]
                if joint.kind is Kind.HINGE:
                    out[beyond, at] = here + HELD_BACK * (there - here)
                else:
                    out[beyond, at] = times_exp(here, HELD_BACK * rotation_between(here, there))
    return inside_limits(body, body.follow(out))


def _longest(pieces: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the longest piece."""
    return max(pieces, key=lambda piece: piece[1] - piece[0])


def _start(
    model: Model, points: Points, pieces: list[tuple[int, int]], rate: float, weight: float | None
) -> tuple[Array, Terms, float | None]:
    """Return the start of the fit, (T, nq), its terms, and its smoothness: 0 if the points have no noise.

    Args:
        model: The problem of each frame.
        points: The points.
        pieces: (first, end) of each piece; the clip is cut between pieces.
        rate: Frames per second.
        weight: Requested smoothness; None to learn it.
    """
    rest_q = model.skeleton.rest_q
    terms = _terms(model, points, np.repeat(rest_q[None], len(points.places), axis=0))
    q = _guess(model, points, pieces, guess.CLEAN, 0.0, 1.0)
    terms = replace(terms, reference=q.copy())
    if weight is None and _is_clean(model, terms, q, _longest(pieces)):
        return q, terms, 0.0
    if weight is None or weight > 0.0:
        pull, rest = _slide_weights(model, q)
        q = _guess(model, points, pieces, guess.NOISY, BLUR * rate, FILLED)
        terms = replace(terms, reference=np.where(rest, rest_q, q), pull=pull)
    return q, terms, weight


def _slide_weights(model: Model, q: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the weight of the pull of each column, and a mask (nq,) of joint values that are pulled to rest.

    In some files, joints inside the body can slide, but most of them hardly do. The guess does not restrict sliding.
    The less a joint slides in the guess, the more strongly it is pulled to rest. A point that was not seen is then
    determined by its neighbours.
    """
    body = model.skeleton
    columns, at = prior.slides(model)
    slide = np.sqrt(np.mean(((q[:, at] - body.rest_q[at]) / model.reach) ** 2, axis=0))
    pull = np.full(model.columns, PULL)
    pull[columns] = TIGHT * np.minimum(1.0, SLIP / np.maximum(slide, 1e-300)) ** 2
    rest = np.zeros(body.nq, bool)
    rest[at] = True
    return pull, rest


def _guess(
    model: Model, points: Points, pieces: list[tuple[int, int]], short: float, blur: float, filled: float
) -> Array:
    """Return the first guess of all pieces, (T, nq), from points averaged over time; see ``guess.first_guess``."""
    body = model.skeleton
    out: list[Array] = []
    for piece in pieces:
        used, places, seen = points.filled(*piece)
        rows, offsets = [points.rows[k] for k in used], points.offsets[used]
        smooth = _blurred(places, blur) if blur > 0.0 and len(places) > 2 else places
        out.append(guess.first_guess(body, rows, offsets, smooth, np.where(seen, 1.0, filled), short))
    return inside_limits(body, body.follow(np.concatenate(out)))


def _blurred(places: Array, blur: float) -> Array:
    """Return points averaged over time with Gaussian weights; ``blur`` is the standard deviation in frames."""
    from scipy import ndimage

    smooth: Any = ndimage.gaussian_filter1d  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return np.asarray(smooth(places, blur, axis=0, mode="nearest"), np.float64)


def _terms(model: Model, points: Points, q: Array) -> Terms:
    """Return the terms of the fit; their smoothness has the smallest value."""
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


def _middle(piece: tuple[int, int]) -> tuple[int, int]:
    """Return (first, end) of the middle frames of a piece, from which noise and prior are learned."""
    middle = (piece[0] + piece[1]) // 2
    return max(piece[0], middle - SAMPLE // 2), min(piece[1], middle + SAMPLE // 2)


def _liveliest(points: Points, piece: tuple[int, int], rate: float) -> tuple[int, int]:
    """Return (first, end) of the sample of a piece with the most motion; noise and prior are learned from it.

    A prior learned from slow frames would hold back all other frames. The measure of motion is the sum of squared
    accelerations of points, which are averaged over time as for the guess.
    """
    first, end = piece
    if end - first <= SAMPLE:
        return piece
    _, places, _ = points.filled(first, end)
    bends = np.sum(np.diff(_blurred(places, BLUR * rate), 2, axis=0) ** 2, axis=(1, 2))
    return _largest(np.pad(bends, 1), piece)


def _most(flags: NDArray[np.bool_], pieces: list[tuple[int, int]]) -> tuple[int, int]:
    """Return (first, end) of the sample that has the most marked frames; it lies within one of the pieces."""
    parts = [_largest(flags[slice(*piece)].astype(np.float64), piece) for piece in pieces]
    return max(parts, key=lambda part: np.count_nonzero(flags[slice(*part)]))


def _largest(values: Array, piece: tuple[int, int]) -> tuple[int, int]:
    """Return (first, end) of the sample of a piece with the largest sum of ``values``, (frames of the piece,)."""
    first, end = piece
    if end - first <= SAMPLE:
        return piece
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = first + int(np.argmax(sums[SAMPLE:] - sums[:-SAMPLE]))
    return at, at + SAMPLE


def _is_clean(model: Model, terms: Terms, q: Array, piece: tuple[int, int]) -> bool:
    """Return whether the points have no noise, so that the joints can follow them closely.

    Bones of fixed lengths cannot follow noise in all directions: if N coordinates are seen in a frame and J is the
    Jacobian, N - rank J of them stay free of the joints. If N - rank J is almost 0, joints could follow noise. Noise
    moves points back and forth, so the test fit is then smoothed a little.
    """
    first, last = _middle(piece)
    part = terms.window(first, last, fixed=0)
    _, J, _ = model.evaluate(q[first:last], part.targets)
    t = (last - first) // 2
    seen = part.weights[t] > 0.0
    surplus = np.count_nonzero(seen) - np.linalg.matrix_rank(J[t, seen], tol=1e-6) if seen.any() else 0
    if surplus < SURPLUS * np.count_nonzero(seen):
        part = replace(part, smooth=np.full(model.columns, SMOOTHNESS))
    tried = solve_in_windows(model, part, q[first:last], Effort(STEPS, ENOUGH))
    e, _, _ = model.evaluate(tried, part.targets, derivative=False)
    return bool(np.sqrt(np.mean(part.weights * e * e)) < CLEAN)
