"""``learn_starts``: learn start poses for the targets of a problem, so that solves without a start need few steps.

Random poses are divided into the leaves of a tree by their targets, with the same number of poses in each leaf. Some
poses of a leaf are then tried as starts for the targets of the other poses. For an arm, a linear function of the target
is fitted to the corrections of these solves, and the improved starts are tried again. Each leaf keeps the few starts
from which most targets are reached in few steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress, whole_number
from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import Goal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch
from synovia.ik.parallel import Workers, checked_threads
from synovia.ik.proposals import Proposer
from synovia.ik.starts import SLOPE, Learnable, LearnedStarts
from synovia.ik.status import reached
from synovia.kernels import layout
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.solver import LevenbergMarquardt

LEAF: Final = 32  # number of samples per leaf
CANDIDATES: Final = 12  # number of poses per leaf to try as starts
KEPT: Final = 8  # largest number of poses that each leaf keeps as starts
SAMPLES: Final = 2**18  # default number of samples for an arm
FEW_SAMPLES: Final = 2**15  # default number of samples for other bodies, whose solves take longer
_LEAST: Final = 2 * LEAF
_MOST: Final = 2**22
_TOLERANCE: Final = 1e-6  # tolerance of a trial solve: fraction of the length scale, and radians
_TURNS: Final = 64  # number of rotations of a target, about the first and last joint axis, for which poses are rated
_GOLDEN: Final = (3.0 - 5.0**0.5) / 2.0 * _TURNS  # distributes the second rotation evenly relative to the first
_STEP_COST: Final = 0.02  # cost of each step; reaching a target has the worth 1
_UNTRIED: Final = 0.3  # worth of a pose that was not tried
_STEPS: Final = 16  # largest number of steps of a trial solve
_FAILURE: Final = 3.0  # cost of a missed target; large, because a miss costs an attempt
_AT_ONCE: Final = 2**17  # largest number of trial solves at once, to limit memory
# largest number of steps of trial solves that are used to fit corrections; longer solves end elsewhere
_SHORT: Final = 5
_RIDGE: Final = 1e-6  # regularization of the fit, for few targets or targets along a line


class _Samples(NamedTuple):
    """Poses and the targets that they reach.

    Args:
        targets: Rows of targets, (N, goals, 17).
        proposals: Rows of the table of proposals, (N, values).
        features: Features of the targets, (N, features).
    """

    targets: Array
    proposals: Array
    features: Array


def learn_starts(
    skeleton: Skeleton,
    goals: Goal | Iterable[Goal],
    *,
    samples: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LearnedStarts:
    """Learn start poses for a skeleton with goals, so that solves without a start need a fraction of the steps.

    ``sy.IK(skeleton, goals, starts=starts)`` then begins at poses near the targets of a solve. Status, limits,
    tolerance and the largest number of attempts do not change.

    Args:
        skeleton: The skeleton.
        goals: One to four goals: ``PositionGoal``, ``RotationGoal`` or ``PoseGoal``. Their targets are not used.
        samples: Number of random poses, rounded down to a power of two; more samples need more memory and reduce the
            steps. By default 262,144 for an arm (1 to 4 MB, ten to twenty seconds), and 32,768 for other bodies.
        seed: Seed of the random poses; the same seed gives the same starts.
        threads: Number of threads; all cores by default.
        progress: Called with the number of finished leaves and of all leaves.

    Raises:
        UnsupportedError: If starts cannot be learned for these goals, or the body has loops.
        InputError: If a value cannot be used, or no joint moves a goal.

    Example:
        >>> import synovia as sy
        >>> arm, goal = sy.bundled("arm7"), sy.PoseGoal("tool")
        >>> starts = sy.learn_starts(arm, goal, samples=2048)
        >>> sy.IK(arm, goal, "lm", starts=starts).solve(arm.random_pose(1).transform("tool")).reached
        True
    """
    listed = tuple(goals) if isinstance(goals, Iterable) and not isinstance(goals, str) else goals
    ik = IK(skeleton, listed, LevenbergMarquardt(attempts=1, max_steps=_STEPS))
    ik = IK(skeleton, listed, ik.solver, tolerance=(_TOLERANCE * ik.reach, _TOLERANCE))
    reduced = ik.problem.reduced
    problem = Learnable.of(ik.skeleton, ik.goals, reduced)
    if not len(problem.variables):
        raise InputError("no joint moves these goals", value=list(problem.goals), expected="goals on joints that move")
    given = (SAMPLES if reduced.serial else FEW_SAMPLES) if samples is None else samples
    count = 1 << whole_number("samples", given, _LEAST, _MOST).bit_length() - 1
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    workers = Workers(checked_threads(threads), Watch())
    learning = _Learning(ik.problem, problem, workers)
    drawn = learning.sample(count, seed)
    order, features, borders = divide(drawn.features, count // LEAF)
    counts, rows = learning.choose(drawn, order, progress)
    poses, slopes = np.split(rows, [problem.width], axis=1)
    return LearnedStarts(problem, features, borders, counts, poses.astype(np.float32), slopes.astype(SLOPE))


def divide(features: Array, leaves: int) -> tuple[NDArray[np.intp], NDArray[np.uint8], NDArray[np.float32]]:
    """Divide samples into leaves of equal size; split each node at the median of the feature that varies most.

    Args:
        features: Features of the samples, (N, features), N a multiple of ``leaves``.
        leaves: Number of leaves, a power of two.

    Returns:
        The samples of each leaf, (leaves, N / leaves); feature and border of each node in heap order, (leaves,).
    """
    axes, borders = np.zeros(leaves, np.uint8), np.zeros(leaves, np.float32)
    order = np.arange(len(features))[None]
    while len(order) < leaves:
        nodes = slice(len(order) - 1, 2 * len(order) - 1)
        axis = features[order].std(axis=1).argmax(axis=1)
        values = features[order, axis[:, None]]
        half = order.shape[1] // 2
        sorted_ = values.argsort(axis=1, kind="stable")
        order = np.take_along_axis(order, sorted_, axis=1)
        values = np.take_along_axis(values, sorted_, axis=1)
        axes[nodes], borders[nodes] = axis, 0.5 * (values[:, half - 1] + values[:, half])
        order = order.reshape(-1, half)
    return order, axes, borders


class _Learning:
    """Draws random poses of a problem and tries them as starts.

    Args:
        ik: The problem, with one attempt and a small tolerance.
        problem: The properties of the problem on which starts depend.
        workers: The threads.
    """

    def __init__(self, ik: CompiledProblem, problem: Learnable, workers: Workers) -> None:
        """Prepare the kernels."""
        self._ik, self._problem = ik, problem
        self._proposer = Proposer(ik, problem, workers)

    def sample(self, count: int, seed: int) -> _Samples:
        """Draw random poses and return them with their targets.

        If the body is not an arm, the targets are then solved from rest, so that starts are as natural as solutions.
        """
        q = self._proposer.draw(count, seed)
        drawn = _Samples(*self._proposer.describe(q))
        if self._ik.reduced.serial:
            return drawn
        out = self._proposer.solve(drawn.targets, self._ik.rest)
        good = reached(out)
        q[good] = out[good, self._ik.places]
        return _Samples(*self._proposer.describe(q))

    def choose(
        self, drawn: _Samples, order: NDArray[np.intp], progress: Progress | None
    ) -> tuple[NDArray[np.uint8], Array]:
        """Return the number of proposals of each leaf, and the proposals of all leaves."""
        leaves = len(order)
        counts, rows = np.zeros(leaves, np.uint8), list[Array]()
        chunk = max(1, _AT_ONCE // (CANDIDATES * LEAF))
        for first in range(0, leaves, chunk):
            part = order[first : first + chunk]
            proposals = np.zeros((*part.shape, self._problem.width + self._problem.slopes))
            proposals[..., : self._problem.width] = drawn.proposals[part]
            fits = self._fits(proposals)
            worth, corrections = self._try(drawn, part, proposals)
            if self._problem.slopes:
                proposals = self._followed(drawn.features[part], proposals, corrections)
                again, _ = self._try(drawn, part, proposals)
                lost = np.isnan(again) & np.isfinite(worth)  # the correction moves the start out of the limits
                worth = np.where(lost, 0.0, np.where(np.isnan(worth), np.nan, again))
            kept = best_of(worth, fits)
            leaf, k = np.nonzero(kept >= 0)
            counts[first : first + chunk] = (kept >= 0).sum(axis=1)
            rows.append(proposals[leaf, kept[leaf, k]])
            if progress is not None:
                progress(min(first + chunk, leaves), leaves)
        return counts, np.concatenate(rows)

    def _try(self, drawn: _Samples, part: NDArray[np.intp], proposals: Array) -> tuple[Array, Array]:
        """Solve for the target of each pose, from each proposal of the same leaf.

        Args:
            drawn: All samples.
            part: Samples of n leaves, (n, LEAF).
            proposals: Proposals of these leaves, (n, LEAF, values); the first CANDIDATES of each leaf are tried.

        Returns:
            Worth of each proposal as a start for each target, (n, LEAF, LEAF): 1 minus the cost of the steps if the
            target is reached, -FAILURE if it is missed, NaN if it was not tried, does not fit, or is the proposal's own
            target. Corrections of an arm's values by the solves, (n, CANDIDATES, LEAF, variables); NaN for solves that
            did not end nearby.
        """
        n = len(part)
        every = np.arange(n)[:, None, None], np.arange(CANDIDATES)[None, :, None], np.arange(LEAF)[None, None]
        leaf, pose, target = (one.ravel() for one in np.broadcast_arrays(*every))
        targets = drawn.targets[part[leaf, target]]
        starts, rooms = self._proposer.place(targets, proposals[leaf, pose])
        at = np.flatnonzero((rooms >= 0.0) & (pose != target))
        out = self._proposer.solve(targets[at], starts[at])
        good, steps = reached(out), out[:, layout.STEPS]
        worth = np.full((n, LEAF, LEAF), np.nan)
        worth[leaf[at], pose[at], target[at]] = np.where(good, 1.0 - _STEP_COST * steps, -_FAILURE)
        columns = self._problem.variables[:, layout.BLOCK_Q] if self._problem.slopes else np.empty(0, np.intp)
        corrections = np.full((n, CANDIDATES, LEAF, len(columns)), np.nan)
        near = np.flatnonzero(good & (steps <= _SHORT))
        some = at[near]
        corrections[leaf[some], pose[some], target[some]] = (
            out[near][:, self._ik.places][:, columns] - starts[some][:, columns]
        )
        return worth, corrections

    def _followed(self, features: Array, proposals: Array, corrections: Array) -> Array:
        """Return proposals with slopes: linear functions of the features, fitted to corrections by least squares.

        Args:
            features: Features of the targets of n leaves, (n, LEAF, features).
            proposals: Proposals without slopes, (n, LEAF, values); untried proposals keep their poses.
            corrections: Corrections from ``_try``.
        """
        middle = features.mean(axis=1)
        own = np.arange(CANDIDATES)
        corrections[:, own, own] = 0.0  # a pose needs no correction for its own target
        used = np.isfinite(corrections[..., 0]).astype(np.float64)
        inputs = np.concatenate([features - middle[:, None], np.ones((*features.shape[:2], 1))], axis=2)
        square: Array = np.einsum("nta,nct,ntb->ncab", inputs, used, inputs) + _RIDGE * np.eye(inputs.shape[2])
        right: Array = np.einsum("nta,nctk->ncak", inputs, np.nan_to_num(corrections))
        fitted = np.asarray(np.linalg.solve(square, right), np.float64)
        slopes = np.swapaxes(fitted[:, :, :-1], 2, 3).astype(SLOPE).astype(np.float64)
        out = proposals.copy()
        values = slice(layout.PROPOSED_Q, self._problem.width)
        out[:, :CANDIDATES, values] += fitted[:, :, -1] - np.einsum("nckf,nf->nck", slopes, middle)
        out[:, :CANDIDATES, self._problem.width :] = slopes.reshape(*slopes.shape[:2], -1)
        return out

    def _fits(self, proposals: Array) -> NDArray[np.bool_]:
        """Return for which rotations of the targets about the first and the last axis each pose fits the limits.

        Args:
            proposals: Proposals without slopes, (n, poses, values).

        Returns:
            Whether each pose fits for each rotation, (n, poses, rotations).
        """
        from synovia.kernels.proposals.propose import ROOMY

        one = self._problem
        fits = np.ones((*proposals.shape[:2], _TURNS), bool)
        share = (np.arange(_TURNS) + 0.5) / _TURNS
        at = layout.SEEN_ROTATION
        x, y = proposals[..., at : at + 3], proposals[..., at + 3 : at + 6]
        u, v = x[:, :1], y[:, :1]  # twists are relative to the first pose
        twist = np.arctan2((y * u - x * v).sum(axis=2), (x * u + y * v).sum(axis=2))
        for bit, k, value, turns in (
            (layout.FREE_TURN, 0, proposals[..., layout.PROPOSED_Q], share),
            (layout.FREE_TWIST, -1, twist, share * _GOLDEN),
        ):
            low, high = (one.limits[k, [layout.LOWER, layout.UPPER]] + (ROOMY, -ROOMY)).tolist()
            if one.form & bit and high - low < 2.0 * np.pi:
                fits &= (value[..., None] + 2.0 * np.pi * turns - low) % (2.0 * np.pi) <= high - low
        return fits


def mean_worth(worth: Array) -> Array:
    """Return the mean worth of each pose over its trials, (n, poses); ``_UNTRIED`` without trials. See ``best_of``."""
    tried = np.isfinite(worth)
    count = tried.sum(axis=2)
    return np.where(count > 0, np.where(tried, worth, 0.0).sum(axis=2) / np.maximum(count, 1), _UNTRIED)


def best_of(worth: Array, fits: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Choose the proposals of leaves, in the order in which solves try them.

    A solve starts from the first pose that fits its target. So later poses only matter for targets that no earlier pose
    fits, or that solves from earlier poses miss.

    Args:
        worth: Worth of a pose as a start for a target, (n, poses, targets); NaN if the pose does not fit.
        fits: Whether a pose fits for a rotation of the targets, (n, poses, rotations).

    Returns:
        Indices of the chosen poses, (n, KEPT); -1 for none.
    """
    n, targets = len(worth), worth.shape[2]
    tried = np.isfinite(worth)
    gains = np.where(tried, worth, 0.0)
    mean = mean_worth(worth)
    kept = np.full((n, KEPT), -1)
    missed = np.zeros((n, targets), bool)  # targets that all chosen poses missed so far
    turned = np.ones((n, fits.shape[2]), bool)  # rotations that no chosen pose fits so far
    every = np.arange(n, dtype=np.intp)
    for k in range(KEPT):
        gain = mean * (fits & turned[:, None]).mean(axis=2) + (gains * missed[:, None]).mean(axis=2)
        for j in range(k):
            gain[every, kept[:, j]] = -np.inf
        best = gain.argmax(axis=1)
        good = gain[every, best] > 0.0
        kept[good, k] = best[good]
        turned &= ~(fits[every, best] & good[:, None])
        met = gains[every, best] > 0.0
        missed = (missed | (tried[every, best] & ~met) if k == 0 else missed) & ~met
    return kept
