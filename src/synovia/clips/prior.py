"""A Gaussian prior of a motion, learned from the very points that the motion is fitted to (empirical Bayes).

The model: every column (a number of a joint, or a part of its turn) strays from its mean and accelerates by Gaussian
amounts with variances of its own; the points have Gaussian noise; and each frame has a factor, its liveliness, as a
blow moves all of a body at once. So a knee that bends about one axis in the frames that show it does so in the frames
that do not, and a joint at rest is averaged over time. Learning alternates: fit the motion under the present prior,
then choose the variances of highest evidence given that fit and its uncertainty.

References:
    MacKay (1992), *Bayesian interpolation*, for widths from the number of values that the points determine well;
    Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, ch. 5, for the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array
from synovia.tracking.trajectory import Model, Progress, Terms, solve_in_windows, spread

TURN: Final = 0.5  # radians or reaches: standard deviation from the mean, before anything is learned
BEND: Final = 0.1  # radians or reaches: standard deviation of a second difference, before anything is learned
SLIP: Final = 2e-3  # of the reach: smallest standard deviation of a length by which a joint inside the body slides
NOISE: Final = 2e-3  # of the reach: standard deviation of the noise, before anything is learned
LEAST: Final = 1e-10  # smallest variance; less could not be told from rounding
ROUNDS: Final = 24  # of fitting and learning
FIRST_STEPS: Final = 8  # steps of the first fit, which begins far away; later ones take one
DRAWS: Final = 16  # samples of the fit's uncertainty
FASTER: Final = 1.5  # over-relaxation: power of each change of a variance, as the rounds converge slowly
LIKE_OTHERS: Final = 1.0  # how many values the mean of its joint and of its kind counts for in each variance
ALIKE: Final = 20.0  # how many values liveliness 1 counts for in that of a frame
FEWEST: Final = 5  # frames; with fewer, all have liveliness 1
ENOUGH: Final = 1e-3  # of the cost: a step that gains less is the last of its fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The prior, with variances in squared radians and reaches.

    Args:
        mean: Mean joint values, (nq,).
        stray: Variance of each column about the mean, (columns,).
        bend: Variance of each column's second difference, (columns,), in a frame of liveliness 1.
        lively: Liveliness of each frame, (T - 2,): the factor of ``bend`` there.
        noise: Variance of each coordinate that was seen with weight 1.
    """

    mean: Array
    stray: Array
    bend: Array
    lively: Array
    noise: float

    def applied(self, terms: Terms, before: int = 0) -> Terms:
        """Return terms with this prior as their pull and smoothness, in units of the noise.

        Args:
            terms: The terms.
            before: How many of their frames come before those that the prior was learned from.
        """
        count = len(terms.targets)
        lively = np.ones(max(count - 2, 0))
        lively[before : before + len(self.lively)] = self.lively
        return replace(
            terms,
            reference=np.repeat(self.mean[None], count, axis=0),
            pull=self.noise / self.stray,
            smooth=self.noise / (lively[:, None] * self.bend),
        )


def learned(model: Model, terms: Terms, q: Array, progress: Progress | None) -> tuple[Prior, Array]:
    """Return the prior, and a trajectory (T, nq) near the most probable one under it.

    Args:
        model: The problem of each frame.
        terms: The points; the prior takes the place of pull and smoothness.
        q: Where to start.
        progress: Called with the share of the work that is done.
    """
    prior = _first(model, q)
    kinds, joints = _kinds(model), _joints(model)
    for k in range(ROUNDS if len(q) > 2 else 0):
        posterior = prior.applied(terms)
        q = solve_in_windows(model, posterior, q, steps=1 if k else FIRST_STEPS, enough=ENOUGH)
        draws = np.sqrt(prior.noise) * spread(model, posterior, q, DRAWS)
        prior = _updated(model, terms, prior, q, draws, (kinds, joints))
        if progress is not None:
            progress((k + 1) / ROUNDS)
    return prior, q


def slides(model: Model) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the columns of lengths by which joints inside the body slide (not the root), and their places in q."""
    inner = model.is_length[model.number_column]
    inner[:3] = False  # the root goes anywhere
    return model.number_column[inner], model.number_at[inner]


def _first(model: Model, q: Array) -> Prior:
    """Return the prior before anything is learned."""
    mean = _mean(model, q)
    stray, bend = np.full(model.columns, TURN**2), np.full(model.columns, BEND**2)
    columns, _ = slides(model)
    far = np.median(np.abs(_strayed(model, mean, q)[:, columns]), axis=0)
    stray[columns] = bend[columns] = np.maximum(far, SLIP) ** 2
    return Prior(mean=mean, stray=stray, bend=bend, lively=np.ones(max(len(q) - 2, 0)), noise=NOISE**2)


def _mean(model: Model, q: Array) -> Array:
    """Return the mean (nq,) of a trajectory."""
    mean = q[len(q) // 2]
    for _ in range(4):  # rotations have no mean in closed form
        mean = model.move(mean[None], _strayed(model, mean, q).mean(0, keepdims=True))[0]
    return mean


def _strayed(model: Model, mean: Array, q: Array) -> Array:
    """Return the steps (T, columns) from the mean to a trajectory."""
    return model.difference(np.repeat(mean[None], len(q), axis=0), q)


def _updated(
    model: Model, terms: Terms, prior: Prior, q: Array, draws: Array, alike: tuple[NDArray[Any], ...]
) -> Prior:
    """Return the prior of higher evidence, from a trajectory and draws (S, T, columns) of its uncertainty.

    The evidence of a variance is highest where the sum of squares equals the variance times the number of values that
    the points determine: all that the prior has, less what the uncertainty leaves open (MacKay 1992).
    """
    mean = _mean(model, q)
    strays = _strayed(model, mean, q) ** 2
    bends = np.diff(model.difference(q[:-1], q[1:]), axis=0) ** 2 / prior.lively[:, None]
    open_strays = np.mean(draws**2, axis=0)
    open_bends = np.mean(np.diff(draws, 2, axis=1) ** 2, axis=0) / prior.lively[:, None]
    of_strays, of_bends = _numbers(prior, len(q))
    stray = _width(prior.stray, strays.sum(0), of_strays - open_strays.sum(0) / prior.stray, alike)
    bend = _width(prior.bend, bends.sum(0), of_bends.sum(0) - open_bends.sum(0) / prior.bend, alike)
    lively: Array = prior.lively
    if len(q) >= FEWEST:
        _, of_bends = _numbers(replace(prior, stray=stray, bend=bend), len(q))
        lively = lively * (np.sum((bends + open_bends) / bend, 1) + ALIKE) / (of_bends.sum(1) + ALIKE)
        lively = lively / np.exp(np.mean(np.log(lively)))
    noise = max(_noise(model, terms, prior, q, draws), LEAST)
    return Prior(mean=mean, stray=stray, bend=bend, lively=lively, noise=noise)


def _width(before: Array, squares: Array, numbers: Array, alike: tuple[NDArray[Any], ...]) -> Array:
    """Return variances (columns,) from sums of squares and how many determined values are behind each."""
    others = np.zeros(len(before))
    for group in alike:
        mean = np.bincount(group, np.log(before)) / np.maximum(np.bincount(group), 1)
        others += mean[group] / len(alike)
    new = (squares + LIKE_OTHERS * np.exp(others)) / (np.maximum(numbers, 0.0) + LIKE_OTHERS)
    return np.maximum(before * (new / before) ** FASTER, LEAST)


def _numbers(prior: Prior, count: int) -> tuple[Array, Array]:
    """Return how many values the prior has for each column: about the mean (columns,), of bends (T - 2, columns)."""
    bend = np.diff(np.eye(count), 2, axis=0)
    bend /= np.sqrt(prior.lively)[:, None]
    curvature, modes = np.linalg.eigh(bend.T @ bend)  # the same modes for all columns
    variance = 1.0 / (1.0 / prior.stray + np.maximum(curvature, 0.0)[:, None] / prior.bend)
    return variance.sum(0) / prior.stray, (bend @ modes) ** 2 @ variance / prior.bend


def _noise(model: Model, terms: Terms, prior: Prior, q: Array, draws: Array) -> float:
    """Return the variance of the noise: squared misses over the number of seen coordinates that the fit leaves free."""
    e, J, _ = model.evaluate(q, terms.targets)
    moved: Any = np.matmul(J, np.moveaxis(draws, 0, 2))
    seen = np.count_nonzero(terms.weights > 0.0)
    determined = float(np.sum(terms.weights[:, :, None] * moved**2)) / (len(draws) * prior.noise)
    return float(np.sum(terms.weights * e * e)) / max(seen - determined, 0.05 * seen)


def _kinds(model: Model) -> NDArray[Any]:
    """Return a number for each column: the root's lengths, the root's turn, others' lengths, others' turns."""
    kinds = np.where(model.is_length, 2, 3)
    root = model.skeleton.q_slice(0)
    kinds[model.number_column[(model.number_at < root.stop) & model.is_length[model.number_column]]] = 0
    kinds[model.turn_column[model.turn_at < root.stop][:, None] + np.arange(3)] = 1
    return kinds


def _joints(model: Model) -> NDArray[Any]:
    """Return a number for each column: its joint, turns and lengths apart."""
    body = model.skeleton
    owner = np.repeat(np.arange(len(body)), [joint.kind.q_size for joint in body.joints])
    joints = np.zeros(model.columns, np.intp)
    joints[model.number_column] = owner[model.number_at]
    joints[model.turn_column[:, None] + np.arange(3)] = owner[model.turn_at][:, None]
    return 2 * joints + model.is_length
