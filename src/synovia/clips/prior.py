"""A Gaussian prior of a motion, learned from the same points that the motion is fitted to (empirical Bayes).

In the model, a column is a joint value or a component of a rotation. The deviation of each column from its mean, and
its acceleration, are Gaussian, each with its own variance. The noise of the points is Gaussian too. Each frame has a
factor, its liveliness, that multiplies the variances of all accelerations, because a jolt moves the whole body at once.
So a knee that bends about one axis where it is seen does the same where it is hidden, and a joint at rest is averaged
over time. Learning alternates two steps: fit the motion under the current prior; then choose the variances of highest
evidence, given the fit and its uncertainty.

References:
    MacKay (1992), *Bayesian interpolation*, for variances from the number of values that the points determine well;
    Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, ch. 5, for the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress
from synovia.model.geometry import Array
from synovia.tracking.trajectory import Effort, Model, Terms, one_blas_thread, solve_in_windows, spread

TURN: Final = 0.5  # radians or length scales: initial standard deviation of a column from its mean
BEND: Final = 0.1  # radians or length scales: initial standard deviation of a second difference over time
SLIP: Final = 2e-3  # fraction of the length scale: smallest standard deviation of sliding joints inside the body
NOISE: Final = 2e-3  # fraction of the length scale: initial standard deviation of the noise
LEAST: Final = 1e-10  # smallest variance, which avoids rounding errors
ROUNDS: Final = 24  # number of rounds of fitting and learning
# number of steps of the first fit, which starts far from the solution; later fits take one step
FIRST_STEPS: Final = 8
DRAWS: Final = 16  # number of samples of the fit's uncertainty
# exponent of the ratio of new to old variance; over-relaxation, because the rounds converge slowly
FASTER: Final = 1.5
LIKE_OTHERS: Final = 1.0  # pseudo-observations in each variance: the mean over columns of its joint and of its kind
ALIKE: Final = 20.0  # pseudo-observations of liveliness 1 in each frame
FEWEST: Final = 5  # least number of frames to learn liveliness; with fewer frames, liveliness is 1
UNUSUAL: Final = 4.0  # multiple of a point's usual error; larger errors contradict the prior
ENOUGH: Final = 1e-3  # fraction of the cost: a fit ends if a step reduces the cost by less than this


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A Gaussian prior of a motion; variances are in squared radians or squared length scales.

    Args:
        mean: Mean joint values, (nq,).
        stray: Variance of each column about the mean, (columns,).
        bend: Variance of each column's second difference in a frame of liveliness 1, (columns,).
        lively: Liveliness of each inner frame, (T - 2,); it multiplies ``bend``.
        noise: Variance of the noise of a coordinate with weight 1.
    """

    mean: Array
    stray: Array
    bend: Array
    lively: Array
    noise: float

    def widened(self, model: Model, other: Prior) -> Prior:
        """Return a prior with variances large enough for the frames of both priors."""
        apart = model.difference(self.mean[None], other.mean[None])[0]
        return replace(
            self,
            stray=np.maximum(self.stray, other.stray + apart**2),
            bend=np.maximum(self.bend, other.bend),
            noise=min(self.noise, other.noise),
        )

    def applied(self, terms: Terms, before: int = 0) -> Terms:
        """Return terms with the pull and smoothness of this prior, in units of the noise's variance.

        Args:
            terms: The terms.
            before: Number of frames of ``terms`` before the frames from which the prior was learned.
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


@one_blas_thread
def learn(model: Model, terms: Terms, q: Array, progress: Progress | None) -> tuple[Prior, Array]:
    """Return the learned prior, and a trajectory (T, nq) close to the most probable trajectory under it.

    Args:
        model: The problem of each frame.
        terms: Terms of the points; the prior replaces their pull and smoothness.
        q: Trajectory to start from.
        progress: Called with (steps done, number of steps).
    """
    prior = _first(model, q)
    kinds, joints = _kinds(model), _joints(model)
    for k in range(ROUNDS if len(q) > 2 else 0):
        posterior = prior.applied(terms)
        q = solve_in_windows(model, posterior, q, Effort(1 if k else FIRST_STEPS, ENOUGH))
        draws = np.sqrt(prior.noise) * spread(model, posterior, q, DRAWS)
        prior = _updated(model, terms, prior, q, draws, (kinds, joints))
        if progress is not None:
            progress(k + 1, ROUNDS)
    return prior, q


def usual_errors(model: Model, terms: Terms, q: Array, prior: Prior) -> Array:
    """Return the root mean square error of each point, (K,), length scales; at least the noise's standard deviation."""
    far, seen = _distances(model, terms, q)
    mean = np.sum(np.where(seen, far**2, 0.0), axis=0) / np.maximum(np.count_nonzero(seen, axis=0), 1)
    return np.sqrt(np.maximum(mean, 3.0 * prior.noise))


def contradicted(model: Model, terms: Terms, q: Array, usual: Array) -> NDArray[np.bool_]:
    """Return a mask of frames (T,) in which some point's error is unusually large in two adjacent frames.

    The prior describes the frames from which it was learned. If these are slow, the prior makes a sudden hit in another
    frame so improbable that the fit would smooth it away.

    Args:
        model: The problem of each frame.
        terms: The points.
        q: The fit, (T, nq).
        usual: Root mean square error of each point, (K,), see ``usual_errors``.
    """
    far, seen = _distances(model, terms, q)
    known = seen & (far > UNUSUAL * usual)
    lasting = np.zeros(known.shape, bool)
    lasting[1:] = known[1:] & known[:-1]
    lasting[:-1] |= lasting[1:]
    return np.asarray(lasting.any(1), np.bool_)


def _distances(model: Model, terms: Terms, q: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the distances (length scales) of points from observations, (T, K), and a mask of the seen points."""
    e, _, _ = model.evaluate(q, terms.targets, derivative=False)
    return np.linalg.norm(e.reshape(len(q), -1, 3), axis=2), terms.weights[:, ::3] > 0.0


def slides(model: Model) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the columns of sliding joints inside the body, and their indices in q; the root is left out."""
    inner = model.is_length[model.number_column]
    inner[:3] = False  # the first three columns are the translation of the root
    return model.number_column[inner], model.number_at[inner]


def _first(model: Model, q: Array) -> Prior:
    """Return the initial prior."""
    mean = _mean(model, q)
    stray, bend = np.full(model.columns, TURN**2), np.full(model.columns, BEND**2)
    columns, _ = slides(model)
    far = np.median(np.abs(_deviations(model, mean, q)[:, columns]), axis=0)
    stray[columns] = bend[columns] = np.maximum(far, SLIP) ** 2
    return Prior(mean=mean, stray=stray, bend=bend, lively=np.ones(max(len(q) - 2, 0)), noise=NOISE**2)


def _mean(model: Model, q: Array) -> Array:
    """Return the mean (nq,) of a trajectory."""
    mean = q[len(q) // 2]
    for _ in range(4):  # repeated, because the mean of rotations has no closed form
        mean = model.move(mean[None], _deviations(model, mean, q).mean(0, keepdims=True))[0]
    return mean


def _deviations(model: Model, mean: Array, q: Array) -> Array:
    """Return the differences (T, columns) of each frame of a trajectory from the mean."""
    return model.difference(np.repeat(mean[None], len(q), axis=0), q)


def _updated(
    model: Model, terms: Terms, prior: Prior, q: Array, draws: Array, groups: tuple[NDArray[Any], ...]
) -> Prior:
    """Return a prior of higher evidence, from a trajectory and samples (S, T, columns) of its uncertainty.

    At the highest evidence, the sum of squared values equals the variance times the number of values that the points
    determine. This is the number of values under the prior, minus those that the fit's uncertainty leaves open (MacKay
    1992).
    """
    mean = _mean(model, q)
    strays = _deviations(model, mean, q) ** 2
    bends = np.diff(model.difference(q[:-1], q[1:]), axis=0) ** 2 / prior.lively[:, None]
    open_strays = np.mean(draws**2, axis=0)
    open_bends = np.mean(np.diff(draws, 2, axis=1) ** 2, axis=0) / prior.lively[:, None]
    count_strays, count_bends = _value_counts(prior, len(q))
    stray = _variances(prior.stray, strays.sum(0), count_strays - open_strays.sum(0) / prior.stray, groups)
    bend = _variances(prior.bend, bends.sum(0), count_bends.sum(0) - open_bends.sum(0) / prior.bend, groups)
    lively: Array = prior.lively
    if len(q) >= FEWEST:
        _, count_bends = _value_counts(replace(prior, stray=stray, bend=bend), len(q))
        lively = lively * (np.sum((bends + open_bends) / bend, 1) + ALIKE) / (count_bends.sum(1) + ALIKE)
        lively = lively / np.exp(np.mean(np.log(lively)))
    noise = max(_noise(model, terms, prior, q, draws), LEAST)
    return Prior(mean=mean, stray=stray, bend=bend, lively=lively, noise=noise)


def _variances(before: Array, squares: Array, numbers: Array, groups: tuple[NDArray[Any], ...]) -> Array:
    """Return variances (columns,), given the sum of squares and the number of determined values of each column."""
    others = np.zeros(len(before))
    for group in groups:
        mean = np.bincount(group, np.log(before)) / np.maximum(np.bincount(group), 1)
        others += mean[group] / len(groups)
    new = (squares + LIKE_OTHERS * np.exp(others)) / (np.maximum(numbers, 0.0) + LIKE_OTHERS)
    return np.maximum(before * (new / before) ** FASTER, LEAST)


def _value_counts(prior: Prior, count: int) -> tuple[Array, Array]:
    """Return the effective number of values in each column under the prior.

    The first array counts deviations from the mean, (columns,); the second counts second differences in each frame,
    (T - 2, columns).
    """
    bend = np.diff(np.eye(count), 2, axis=0)
    bend /= np.sqrt(prior.lively)[:, None]
    curvature, modes = np.linalg.eigh(bend.T @ bend)  # all columns have the same modes
    variance = 1.0 / (1.0 / prior.stray + np.maximum(curvature, 0.0)[:, None] / prior.bend)
    return variance.sum(0) / prior.stray, (bend @ modes) ** 2 @ variance / prior.bend


def _noise(model: Model, terms: Terms, prior: Prior, q: Array, draws: Array) -> float:
    """Return the variance of the noise of the points.

    It is the weighted sum of squared errors, divided by the number of seen values minus the number of values that the
    poses determine. ``draws``, random deviations of the poses, estimate the latter. The divisor is at least a twentieth
    of the seen values.
    """
    e, J, _ = model.evaluate(q, terms.targets)
    moved: Any = np.matmul(J, np.moveaxis(draws, 0, 2))
    seen = np.count_nonzero(terms.weights > 0.0)
    determined = float(np.sum(terms.weights[:, :, None] * moved**2)) / (len(draws) * prior.noise)
    return float(np.sum(terms.weights * e * e)) / max(seen - determined, 0.05 * seen)


def _kinds(model: Model) -> NDArray[Any]:
    """Return the kind of each column: 0 root translation, 1 root rotation, 2 other lengths, 3 other rotations."""
    kinds = np.where(model.is_length, 2, 3)
    root = model.skeleton.q_slice(0)
    kinds[model.number_column[(model.number_at < root.stop) & model.is_length[model.number_column]]] = 0
    kinds[model.turn_column[model.turn_at < root.stop][:, None] + np.arange(3)] = 1
    return kinds


def _joints(model: Model) -> NDArray[Any]:
    """Return a number for each column, equal for columns that belong to the same joint and have the same unit."""
    body = model.skeleton
    owner = np.repeat(np.arange(len(body)), [joint.kind.q_size for joint in body.joints])
    joints = np.zeros(model.columns, np.intp)
    joints[model.number_column] = owner[model.number_at]
    joints[model.turn_column[:, None] + np.arange(3)] = owner[model.turn_at][:, None]
    return 2 * joints + model.is_length
