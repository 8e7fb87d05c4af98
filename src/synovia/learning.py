"""``learn_starts``: poses near many targets of a problem, so that solves without a start take few steps.

Random poses are divided into the leaves of a tree by the targets that they meet, so that each leaf has as many of them
as any other. Some poses of a leaf are then tried as starts for the targets of the others. Of an arm, a linear function
of the target is fitted to the corrections that these solves make, and what it gives is tried again. The leaf keeps the
few from which most targets are reached in few steps.
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

LEAF: Final = 32  # samples of a leaf
CANDIDATES: Final = 12  # poses of a leaf that are tried on its targets
KEPT: Final = 8  # most poses that a leaf keeps
SAMPLES: Final = 2**18  # by default for an arm
FEW_SAMPLES: Final = 2**15  # and for other bodies, whose solves take longer
_LEAST: Final = 2 * LEAF
_MOST: Final = 2**22
_TOLERANCE: Final = 1e-6  # reaches and radians within which a try has to meet its target
_TURNS: Final = 64  # turns of a target about the first and the last axis, on which poses are judged
_GOLDEN: Final = (3.0 - 5.0**0.5) / 2.0 * _TURNS  # spreads the second turn evenly relative to the first
_STEP_COST: Final = 0.02  # of a step, where a target that is reached counts 1
_UNTRIED: Final = 0.3  # worth of a pose that was not tried, and only fits where no other one does
_STEPS: Final = 16  # most steps of a try
_FAILURE: Final = 3.0  # cost of a target that is missed, which costs an attempt
_AT_ONCE: Final = 2**17  # tries
_SHORT: Final = 5  # most steps of the tries whose corrections are fitted; longer ones end elsewhere
_RIDGE: Final = 1e-6  # keeps the fit of few targets, or of targets along a line, from growing


class _Samples(NamedTuple):
    """Poses and the targets that they meet.

    Args:
        targets: (N, goals, 17).
        proposals: (N, numbers) rows of the table of proposals.
        features: (N, features).
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
    """Learn starts for a skeleton with goals, so that solves without a start take a fraction of their steps.

    ``sy.IK(skeleton, goals, starts=starts)`` then begins where the targets of a solve are near. Nothing else changes:
    status, limits, tolerance and the most attempts are as without them.

    Args:
        skeleton: The skeleton.
        goals: One to four goals: ``PositionGoal``, ``RotationGoal`` or ``PoseGoal``. Their targets are not used.
        samples: Number of random poses, rounded down to a power of two; more of them need more memory and leave fewer
            steps. By default 262,144 for an arm (1 to 4 MB, ten to twenty seconds), and 32,768 for other bodies.
        seed: Seed of the random poses; the same seed gives the same starts.
        threads: Number of threads; all cores by default.
        progress: Called with (leaves done, all).

    Raises:
        UnsupportedError: If starts cannot be learned for such goals or a body with loops.
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
    """Divide samples into leaves of equal size, each time at the median of the feature that varies most.

    Args:
        features: (N, features), N a multiple of ``leaves``.
        leaves: Number of leaves, a power of two.

    Returns:
        The samples of each leaf, (leaves, N / leaves); the feature and the border of each node, in a heap, (leaves,).
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
    """Draws poses of a problem and tries them.

    Args:
        ik: The problem, with one attempt and a small tolerance.
        problem: What starts depend on.
        workers: The threads.
    """

    def __init__(self, ik: CompiledProblem, problem: Learnable, workers: Workers) -> None:
        """Prepare the kernels."""
        self._ik, self._problem = ik, problem
        self._proposer = Proposer(ik, problem, workers)

    def sample(self, count: int, seed: int) -> _Samples:
        """Draw random poses and return them with their targets.

        The poses of a body that is no arm are then solved from rest, so that its starts are as natural as its answers.
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
        """Return the number of proposals of each leaf, and those of all leaves."""
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
                lost = np.isnan(again) & np.isfinite(worth)  # the correction leads out of the limits
                worth = np.where(lost, 0.0, np.where(np.isnan(worth), np.nan, again))
            kept = best_of(worth, fits)
            leaf, k = np.nonzero(kept >= 0)
            counts[first : first + chunk] = (kept >= 0).sum(axis=1)
            rows.append(proposals[leaf, kept[leaf, k]])
            if progress is not None:
                progress(min(first + chunk, leaves), leaves)
        return counts, np.concatenate(rows)

    def _try(self, drawn: _Samples, part: NDArray[np.intp], proposals: Array) -> tuple[Array, Array]:
        """Solve for the target of each pose of a leaf from each proposal of the leaf.

        Args:
            drawn: All samples.
            part: Samples of some leaves, (n, LEAF).
            proposals: Proposals of these leaves, (n, LEAF, numbers); the first CANDIDATES of each leaf are tried.

        Returns:
            (n, LEAF, LEAF), by proposal and target, what it is worth as a start: 1 less the cost of the steps where the
            target is reached, -FAILURE where it is missed, and NaN where it was not tried, or the proposal does not fit
            or is that of the target. And (n, CANDIDATES, LEAF, variables) how the solve changed the values of an arm;
            NaN where it did not end nearby.
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
        """Return the proposals with slopes: the linear functions of the features nearest to these corrections.

        Args:
            features: Of the targets of some leaves, (n, LEAF, features).
            proposals: Without slopes, (n, LEAF, numbers); those that were not tried keep their poses.
            corrections: As ``_try`` returns them.
        """
        middle = features.mean(axis=1)
        own = np.arange(CANDIDATES)
        corrections[:, own, own] = 0.0  # a pose is right for its own target
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
        """Return which turns of the targets about the first and the last axis each pose fits, (n, poses, turns).

        Args:
            proposals: (n, poses, numbers), without slopes.
        """
        from synovia.kernels.proposals.propose import ROOMY

        one = self._problem
        fits = np.ones((*proposals.shape[:2], _TURNS), bool)
        share = (np.arange(_TURNS) + 0.5) / _TURNS
        at = layout.SEEN_ROTATION
        x, y = proposals[..., at : at + 3], proposals[..., at + 3 : at + 6]
        u, v = x[:, :1], y[:, :1]  # twists are counted from the first pose
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
    """Return the mean worth of each pose, (n, poses), where it was tried; see ``best_of``."""
    tried = np.isfinite(worth)
    count = tried.sum(axis=2)
    return np.where(count > 0, np.where(tried, worth, 0.0).sum(axis=2) / np.maximum(count, 1), _UNTRIED)


def best_of(worth: Array, fits: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Choose the proposals of leaves, in the order in which they are tried.

    The first pose that fits a target is its start. So the others matter for the targets that it does not fit, and for
    those that are missed from it.

    Args:
        worth: (n, poses, targets) what a pose is worth as a start for a target; NaN where it does not fit.
        fits: (n, poses, turns) which turns of the targets a pose fits.

    Returns:
        (n, KEPT) poses; -1 for none.
    """
    n, targets = len(worth), worth.shape[2]
    tried = np.isfinite(worth)
    gains = np.where(tried, worth, 0.0)
    mean = mean_worth(worth)
    kept = np.full((n, KEPT), -1)
    missed = np.zeros((n, targets), bool)  # from all poses so far that fit
    turned = np.ones((n, fits.shape[2]), bool)  # turns that no pose fits so far
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
