"""Least squares over a whole trajectory: all frames at once, with terms that tie neighbours together.

The cost is, over the frames t, with goals' residuals e, the deviation d = log(reference⁻¹ q) and second differences Δ²,

    Σ w e² + Σ pull d² + Σ smooth |Δ² q|² (or |Δ² d|²) + Σ still |p_t - p_(t-1)|²

Gauss-Newton makes a matrix that is banded, since a frame meets only the two before and after it; its Cholesky factor
costs 4 T columns³. Steps that raise the cost are shortened by damping (Levenberg-Marquardt).

References:
    Thrun and Montemerlo (2006), *The GraphSLAM algorithm*, for the structure; Nocedal and Wright (2006), *Numerical
    Optimization*, ch. 10, for the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from synovia.model.geometry import Array
from synovia.tracking.trajectory.model import Model

_DAMPING = 1e-7  # of the first step, of every variable's curvature
_MOST_DAMPING = 1e3
_HELD = 1e12  # curvature that stops a variable
_BEND = (1.0, -2.0, 1.0)  # a second difference of three frames
WINDOW: Final = 600  # frames that are solved at once, so that memory does not grow with the length of a clip
LEAD: Final = 120  # of them, those that the next window solves again, knowing what follows
Progress = Callable[[float], None]
_LARGEST = 0.7  # radians or reaches in one step; the linear model says little beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a trajectory of T frames is asked for.

    Args:
        targets: Transforms of the goals, (T, goals, 16).
        weights: Weight of each squared residual, (T, rows).
        side: (rows,) 0, or 1 and -1 for residuals that count only while they have this sign.
        reference: Joint values, (T, nq), that ``pull`` holds to.
        pull: Weight of each column's squared deviation from the reference, (columns,).
        smooth: Weight of each column's squared second difference, (columns,) or (T - 2, columns).
        relative: Whether ``smooth`` means the deviation from the reference, not the values themselves.
        still: Weight of the squared way of each goal's place from frame t to t + 1, (T - 1, rows), or None.
        fixed: Frames at the beginning that stay as they are.
    """

    targets: Array
    weights: Array
    side: Array
    reference: Array
    pull: Array
    smooth: Array
    relative: bool = False
    still: Array | None = None
    fixed: int = 0

    def scaled(self, share: float) -> Terms:
        """Return the same with a share of the weights of the goals and of what stands still."""
        still = None if self.still is None else share * self.still
        return replace(self, weights=share * self.weights, still=still)

    def window(self, first: int, last: int, *, fixed: int) -> Terms:
        """Return what some of the frames are asked for, the first of them fixed."""
        return replace(
            self,
            targets=self.targets[first:last],
            weights=self.weights[first:last],
            reference=self.reference[first:last],
            smooth=self.smooth if self.smooth.ndim == 1 else self.smooth[first : max(last - 2, first)],
            still=None if self.still is None else self.still[first : last - 1],
            fixed=fixed,
        )


def solve_in_windows(
    model: Model,
    terms: Terms,
    q: Array,
    *,
    shares: Sequence[float] = (1.0,),
    steps: int,
    enough: float,
    progress: Progress | None = None,
) -> Array:
    """Return joint values (T, nq) of least cost near q; each window begins with what the one before has solved.

    Args:
        model: The problem of each frame.
        terms: What is asked for.
        q: Where to start, (T, nq), inside the limits.
        shares: Shares of the weights of the goals, one after the other: hard terms that come in at once are a wall.
        steps: Most steps of one window and share.
        enough: Fraction of the cost that a step must gain for another to follow.
        progress: Called with the share of the work that is done.
    """
    q = q.copy()
    count = len(q)
    first = 0
    while True:
        last = min(first + WINDOW, count)
        part = terms.window(first, last, fixed=0 if first == 0 else 2)
        new = first if first == 0 else first + LEAD  # what comes before was told of already
        for k, share in enumerate(shares):
            low, high = (new + (last - new) * (k + i) / len(shares) for i in (0, 1))
            report = None if progress is None else part_of(progress, low / count, high / count)
            q[first:last] = _solve_window(
                model, part.scaled(share), q[first:last], steps=steps, enough=enough, progress=report
            )
        if last == count:
            return q
        first = last - LEAD


def part_of(progress: Progress, low: float, high: float) -> Progress:
    """Return the report of a part of some work, from one share of the whole to another."""
    return lambda done: progress(low + done * (high - low))


def _solve_window(
    model: Model,
    terms: Terms,
    q: Array,
    *,
    steps: int,
    enough: float,
    progress: Progress | None,
) -> Array:
    """Return joint values (T, nq) of least cost near q.

    Args:
        model: The problem of each frame.
        terms: What is asked for.
        q: Where to start, (T, nq), inside the limits.
        steps: Most steps.
        enough: Fraction of the cost that a step must gain for another to follow.
        progress: Called with the share of the work that is done, after every step.
    """
    cost = _cost(model, terms, q)
    damping = _DAMPING
    for k in range(steps):
        matrix, gradient = _normal_equations(model, terms, q)
        better = False
        while not better and damping < _MOST_DAMPING:
            x = _solved(matrix.copy(), gradient, damping)
            np.clip(x, -_LARGEST, _LARGEST, out=x)  # each by itself: a twist that nothing shows may not stop all others
            trial = model.move(q, x)
            trial[: terms.fixed] = q[: terms.fixed]
            reached = _cost(model, terms, trial)
            better = reached < cost
            damping = max(damping / 10.0, _DAMPING) if better else max(10.0 * damping, 1e-4)
        if not better:
            break
        gained = cost - reached  # pyright: ignore[reportPossiblyUnboundVariable]  # the loop ran, or better is False
        q, cost = trial, reached  # pyright: ignore[reportPossiblyUnboundVariable]
        if progress is not None:
            progress((k + 1) / steps)
        if gained <= enough * cost:
            break
    if progress is not None:
        progress(1.0)
    return q


def _active(terms: Terms, e: Array) -> Array:
    """Return the weights (T, rows) with one-sided residuals of the other sign left out."""
    wrong = (terms.side != 0.0) & (terms.side * e <= 0.0)
    return np.where(wrong, 0.0, terms.weights)


def _second_difference(model: Model, terms: Terms, q: Array) -> Array:
    """Return the second differences that ``smooth`` weighs, (T - 2, columns)."""
    if terms.relative:
        return np.diff(model.difference(terms.reference, q), 2, axis=0)
    return np.diff(model.difference(q[:-1], q[1:]), axis=0)


def _cost(model: Model, terms: Terms, q: Array) -> float:
    """Return the cost of a trajectory."""
    e, _, _ = model.evaluate(q, terms.targets, derivative=False)
    total = float(np.sum(_active(terms, e) * e * e))
    if terms.pull.any():
        total += float(np.sum(terms.pull * model.difference(terms.reference, q) ** 2))
    if terms.smooth.any():
        total += float(np.sum(terms.smooth * _second_difference(model, terms, q) ** 2))
    if terms.still is not None:
        total += float(np.sum(terms.still * np.diff(e, axis=0) ** 2))
    return total


def _normal_equations(model: Model, terms: Terms, q: Array) -> tuple[Array, Array]:
    """Return the lower band (2 columns + 1, T columns) of the Gauss-Newton matrix, and minus the gradient.

    ``still`` needs targets that stay the same, so that the way of a place is minus that of its residual.
    """
    count, n = len(q), model.columns
    e, J, _ = model.evaluate(q, terms.targets)
    weights = _active(terms, e)
    blocks = np.matmul(np.swapaxes(J, 1, 2), weights[:, :, None] * J)
    gradient = np.matmul(np.swapaxes(J, 1, 2), (weights * e)[:, :, None])[:, :, 0]
    diagonal = blocks.reshape(count, n * n)[:, :: n + 1]  # views of the blocks' diagonals
    diagonal += terms.pull
    deviation = model.difference(terms.reference, q)
    gradient -= terms.pull * deviation

    band = np.zeros((2 * n + 1, count * n))
    if count > 2 and terms.smooth.any():
        smooth = np.broadcast_to(terms.smooth, (count - 2, n))
        bend = smooth * _second_difference(model, terms, q)
        tie = np.zeros((count, n))  # of a frame to the next
        for first, share in enumerate(_BEND):
            gradient[first : first + count - 2] -= share * bend
            diagonal[first : first + count - 2] += share * share * smooth
        tie[:-2] -= 2.0 * smooth
        tie[1:-1] -= 2.0 * smooth
        band[n] = tie.ravel()
        band[2 * n, : (count - 2) * n] = smooth.ravel()
    across = None
    if terms.still is not None:
        way = terms.still * -np.diff(e, axis=0)  # of the places
        before, behind = J[:-1], J[1:]
        weighted = terms.still[:, :, None] * behind
        blocks[:-1] += np.matmul(np.swapaxes(before, 1, 2), terms.still[:, :, None] * before)
        blocks[1:] += np.matmul(np.swapaxes(behind, 1, 2), weighted)
        across = -np.matmul(np.swapaxes(weighted, 1, 2), before)  # (row of frame t + 1, column of frame t)
        gradient[:-1] += np.matmul(np.swapaxes(before, 1, 2), way[:, :, None])[:, :, 0]
        gradient[1:] -= np.matmul(np.swapaxes(behind, 1, 2), way[:, :, None])[:, :, 0]

    held = model.pressed(q, gradient)
    held[: terms.fixed] = True
    gradient[held] = 0.0
    diagonal[held] += _HELD
    columns = band.reshape(2 * n + 1, count, n)
    for k in range(n):  # matrix entry (row i, column j) stands at band[i - j, j]
        columns[: n - k, :, k] += blocks[:, k:, k].T
        if across is not None:
            columns[n - k : 2 * n - k, :-1, k] += across[:, :, k].T
    return band, gradient


def spread(model: Model, terms: Terms, q: Array, count: int) -> Array:
    """Return steps (count, T, columns) away from a solution, drawn as the terms leave it uncertain.

    If the cost is minus twice the logarithm of a likelihood, these are draws from its Gaussian approximation: each
    residual is shaken by noise of its own width, and the trajectory that fits these best is solved for. ``still`` is
    left out.

    References:
        Papandreou and Yuille (2010), *Gaussian sampling by local perturbations*, section 3.
    """
    band, _ = _normal_equations(model, terms, q)
    e, J, _ = model.evaluate(q, terms.targets)
    rng = np.random.default_rng(0)
    shaken = np.sqrt(_active(terms, e))[:, :, None] * rng.normal(size=(*e.shape, count))
    push: Array = np.matmul(np.swapaxes(J, 1, 2), shaken)
    push += np.sqrt(terms.pull)[:, None] * rng.normal(size=push.shape)
    bend = np.sqrt(np.broadcast_to(terms.smooth, (max(len(q) - 2, 0), model.columns)))
    pushed = bend[:, :, None] * rng.normal(size=(*bend.shape, count))
    for first, share in enumerate(_BEND):
        push[first : first + len(pushed)] += share * pushed
    return np.moveaxis(_solved(band, push, _DAMPING), 2, 0)


def _solved(band: Array, right: Array, damping: float) -> Array:
    """Return damped steps (T, columns, ...) for right sides of that shape."""
    from scipy import linalg

    solve: Any = linalg.solveh_banded  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    band[0] *= 1.0 + damping  # Marquardt's: each variable by its own curvature
    try:
        x = solve(band, right.reshape(band.shape[1], -1), overwrite_ab=True, lower=True, check_finite=False)
    except np.linalg.LinAlgError:  # rounding took a pivot away: more damping brings it back
        return np.zeros_like(right)
    return np.asarray(x, np.float64).reshape(right.shape)
