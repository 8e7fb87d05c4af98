"""Least squares over a whole trajectory: all frames at once, with terms that connect neighbouring frames.

With goal residuals e, the deviation d = log(reference⁻¹ q) and second differences Δ², the cost over all frames t is

    Σ w e² + Σ pull d² + Σ smooth |Δ² q|² (or |Δ² d|²) + Σ still |p_t - p_(t-1)|²

The Gauss-Newton matrix is banded, since a frame is connected only to the two before and after it; its Cholesky factor
costs 4 T columns³. Damping shortens steps that raise the cost (Levenberg-Marquardt).

References:
    Thrun and Montemerlo (2006), *The GraphSLAM algorithm*, for the structure; Nocedal and Wright (2006), *Numerical
    Optimization*, ch. 10, for the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from importlib import import_module
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

from synovia.arguments import Progress
from synovia.model.geometry import Array
from synovia.tracking.trajectory.model import Model

_DAMPING = 1e-7  # damping of the first step, as a fraction of the curvature of each variable
_MOST_DAMPING = 1e3
_HELD = 1e12  # curvature that keeps a variable fixed
_T = TypeVar("_T")
_P = ParamSpec("_P")
_BEND = (1.0, -2.0, 1.0)  # coefficients of the second difference of three frames
WINDOW: Final = 600  # number of frames in one solve, so that memory does not grow with the length of a clip
LEAD: Final = 120  # number of frames at the end of a window that the next window solves again
_PARTS: Final = 1000  # units of reported progress for all stages together
_LARGEST = 0.7  # radians or length scales: largest step, because the linear model is poor for larger ones


def one_blas_thread(solve: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function so that the linear algebra of NumPy and SciPy uses one thread while it runs.

    The threads of OpenBLAS wait for each other in busy loops. For matrices of some hundred rows, they gain nothing on
    an idle machine, and take several times as long on a busy machine.
    """

    @wraps(solve)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with _blas_libraries().limit(limits=1, user_api="blas"):
            return solve(*args, **kwargs)

    return limited


@cache
def _blas_libraries() -> Any:
    """Return the loaded libraries of linear algebra, cached because finding them takes some milliseconds."""
    from threadpoolctl import ThreadpoolController

    import_module("scipy.linalg")  # loads the BLAS library of SciPy
    return ThreadpoolController()


class Damping:
    """The damping of Levenberg-Marquardt steps: increased after a failed step, decreased after a successful step.

    Args:
        least: The first and smallest damping.
        most: The descent ends if a step needs more damping.
        after_failure: Least damping of a repeated step.
    """

    def __init__(self, *, least: float, most: float, after_failure: float) -> None:
        """Start with the smallest damping."""
        self._value, self._least, self._most, self._after_failure = least, least, most, after_failure

    def descend(self, cost: float, step: Callable[[float], tuple[_T, float]]) -> tuple[_T, float] | None:
        """Return the result of a step and its lower cost; None if no damping lowers the cost.

        Args:
            cost: The current cost.
            step: Returns the result of a step with a given damping, and its cost.
        """
        while self._value < self._most:
            trial, reached = step(self._value)
            if reached < cost:
                self._value = max(self._value / 10.0, self._least)
                return trial, reached
            self._value = max(10.0 * self._value, self._after_failure)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The cost terms of a trajectory of T frames.

    Args:
        targets: Transforms of the goals, (T, goals, 16).
        weights: Weight of each squared residual, (T, rows).
        side: (rows,) 1 or -1 for one-sided residuals, which apply only with this sign; 0 for other residuals.
        reference: Joint values, (T, nq), for ``pull``.
        pull: Weight of each column's squared deviation from the reference, (columns,).
        smooth: Weight of each column's squared second difference, (columns,) or (T - 2, columns).
        relative: Whether ``smooth`` applies to the deviation from the reference, not to the values.
        still: Weight of the squared motion of each goal's point from frame t to t + 1, (T - 1, rows), or None.
        fixed: Number of frames at the beginning that do not change.
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
        """Return the terms with the weights of goals and ``still`` multiplied by a factor."""
        still = None if self.still is None else share * self.still
        return replace(self, weights=share * self.weights, still=still)

    def window(self, first: int, last: int, *, fixed: int) -> Terms:
        """Return the terms of frames first to last; ``fixed`` frames at the beginning do not change."""
        return replace(
            self,
            targets=self.targets[first:last],
            weights=self.weights[first:last],
            reference=self.reference[first:last],
            smooth=self.smooth if self.smooth.ndim == 1 else self.smooth[first : max(last - 2, first)],
            still=None if self.still is None else self.still[first : last - 1],
            fixed=fixed,
        )


class Effort(NamedTuple):
    """Limits of the descent in one window.

    Args:
        steps: Largest number of steps, for each factor of the goals' weights.
        enough: The descent stops if a step lowers the cost by a smaller fraction.
    """

    steps: int
    enough: float


@one_blas_thread
def solve_in_windows(
    model: Model,
    terms: Terms,
    q: Array,
    effort: Effort,
    *,
    shares: Sequence[float] = (1.0,),
    progress: Progress | None = None,
) -> Array:
    """Minimize the cost from joint values q (T, nq); each window starts with solved frames of the previous one.

    Args:
        model: The problem of each frame.
        terms: The cost terms.
        q: Start, (T, nq), inside the limits.
        effort: Limits of the descent in each window.
        shares: Factors of the goals' weights, used in order; increasing factors avoid poor minima.
        progress: Called with (steps done, number of steps).
    """
    q = q.copy()
    count = len(q)
    first = 0
    while True:
        last = min(first + WINDOW, count)
        part = terms.window(first, last, fixed=0 if first == 0 else 2)
        # number of new frames; the progress of the others was already reported
        new = first if first == 0 else first + LEAD
        for k, share in enumerate(shares):
            low, high = (new + (last - new) * (k + i) / len(shares) for i in (0, 1))
            report = None if progress is None else part_of(progress, low / count, high / count)
            q[first:last] = _solve_window(model, part.scaled(share), q[first:last], effort, report)
        if last == count:
            return q
        first = last - LEAD


def part_of(progress: Progress, low: float, high: float) -> Progress:
    """Return a progress callback for one part of the work, from fraction low to high."""
    return lambda done, of: progress(round(_PARTS * (low + done / of * (high - low))), _PARTS)


def _solve_window(model: Model, terms: Terms, q: Array, effort: Effort, progress: Progress | None) -> Array:
    """Minimize the cost of one window from joint values q (T, nq).

    Args:
        model: The problem of each frame.
        terms: The cost terms.
        q: Start, (T, nq), inside the limits.
        effort: Limits of the descent.
        progress: Called with (steps done, number of steps).
    """
    cost = _cost(model, terms, q)
    damping = Damping(least=_DAMPING, most=_MOST_DAMPING, after_failure=1e-4)
    for k in range(effort.steps):
        better = damping.descend(cost, partial(_step, model, terms, q, _normal_equations(model, terms, q)))
        if better is None:
            break
        gained = cost - better[1]
        q, cost = better
        if progress is not None:
            progress(k + 1, effort.steps)
        if gained <= effort.enough * cost:
            break
    if progress is not None:
        progress(effort.steps, effort.steps)
    return q


def _step(model: Model, terms: Terms, q: Array, equations: tuple[Array, Array], damping: float) -> tuple[Array, float]:
    """Return joint values (T, nq) after a step from q, and their cost; ``equations`` are ``_normal_equations``."""
    matrix, gradient = equations
    x = _solved(matrix.copy(), gradient, damping)
    # each value is clipped separately, because with a common factor an undetermined twist would shorten the other steps
    np.clip(x, -_LARGEST, _LARGEST, out=x)
    trial = model.move(q, x)
    trial[: terms.fixed] = q[: terms.fixed]
    return trial, _cost(model, terms, trial)


def _active(terms: Terms, e: Array) -> Array:
    """Return the weights (T, rows), with 0 for one-sided residuals that do not apply."""
    wrong = (terms.side != 0.0) & (terms.side * e <= 0.0)
    return np.where(wrong, 0.0, terms.weights)


def _second_difference(model: Model, terms: Terms, q: Array) -> Array:
    """Return the second differences that ``smooth`` weights, (T - 2, columns)."""
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
    """Return the lower band (2 columns + 1, T columns) of the Gauss-Newton matrix, and the negative gradient.

    ``still`` requires constant targets: the motion of a point is then the negative change of its residual.
    """
    count, n = len(q), model.columns
    e, J, _ = model.evaluate(q, terms.targets)
    weights = _active(terms, e)
    blocks = np.matmul(np.swapaxes(J, 1, 2), weights[:, :, None] * J)
    gradient = np.matmul(np.swapaxes(J, 1, 2), (weights * e)[:, :, None])[:, :, 0]
    diagonal = blocks.reshape(count, n * n)[:, :: n + 1]  # views of the diagonals of the blocks
    diagonal += terms.pull
    deviation = model.difference(terms.reference, q)
    gradient -= terms.pull * deviation

    band = np.zeros((2 * n + 1, count * n))
    if count > 2 and terms.smooth.any():
        smooth = np.broadcast_to(terms.smooth, (count - 2, n))
        bend = smooth * _second_difference(model, terms, q)
        tie = np.zeros((count, n))  # coupling of each frame to the next frame
        for first, share in enumerate(_BEND):
            gradient[first : first + count - 2] -= share * bend
            diagonal[first : first + count - 2] += share * share * smooth
        tie[:-2] -= 2.0 * smooth
        tie[1:-1] -= 2.0 * smooth
        band[n] = tie.ravel()
        band[2 * n, : (count - 2) * n] = smooth.ravel()
    across = None
    if terms.still is not None:
        way = terms.still * -np.diff(e, axis=0)  # weighted motion of each point
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
    for k in range(n):  # the entry of the matrix in row i and column j is band[i - j, j]
        columns[: n - k, :, k] += blocks[:, k:, k].T
        if across is not None:
            columns[n - k : 2 * n - k, :-1, k] += across[:, :, k].T
    return band, gradient


@one_blas_thread
def spread(model: Model, terms: Terms, q: Array, count: int) -> Array:
    """Draw random steps (count, T, columns) from a solution, according to its uncertainty.

    If the cost is minus twice a log-likelihood, these are draws from its Gaussian approximation: noise of matching
    variance is added to each residual, and the best trajectory is computed. ``still`` is ignored.

    References:
        Papandreou and Yuille (2010), *Gaussian sampling by local perturbations*, section 3.
    """
    band, _ = _normal_equations(model, terms, q)
    e, J, _ = model.evaluate(q, terms.targets)
    rng = np.random.default_rng(0)
    noise = np.sqrt(_active(terms, e))[:, :, None] * rng.normal(size=(*e.shape, count))
    push: Array = np.matmul(np.swapaxes(J, 1, 2), noise)
    push += np.sqrt(terms.pull)[:, None] * rng.normal(size=push.shape)
    bend = np.sqrt(np.broadcast_to(terms.smooth, (max(len(q) - 2, 0), model.columns)))
    bent = bend[:, :, None] * rng.normal(size=(*bend.shape, count))
    for first, share in enumerate(_BEND):
        push[first : first + len(bent)] += share * bent
    return np.moveaxis(_solved(band, push, _DAMPING), 2, 0)


def _solved(band: Array, right: Array, damping: float) -> Array:
    """Return damped steps, (T, columns, ...), for right-hand sides of the same shape."""
    band[0] *= 1.0 + damping  # damping of Marquardt, relative to the curvature of each variable
    try:
        return solve_banded(band, right)
    except np.linalg.LinAlgError:  # rounding made a pivot negative; the caller increases the damping
        return np.zeros_like(right)


def solve_banded(band: Array, right: Array) -> Array:
    """Return the solution of a positive definite system of N equations.

    Args:
        band: The diagonal of the matrix and the diagonals below it, (k, N); overwritten.
        right: N rows, in any shape, for example (T, columns) with N = T columns.
    """
    from scipy import linalg

    if not right.size:  # no variable can move
        return right.copy()
    solve: Any = linalg.solveh_banded  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    x = solve(band, right.reshape(band.shape[1], -1), overwrite_ab=True, lower=True, check_finite=False)
    return np.asarray(x, np.float64).reshape(right.shape)
