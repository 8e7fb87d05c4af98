"""Zero-phase low-pass filter of joint values over time, for scalars and rotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.clip_tools.chart import Chart
from synovia.model.geometry import Array, quat_product, quat_to_matrix, rotation_between, times_exp, unit

_ROUNDS: Final = 60  # largest number of iterations for one rotation; three to six are usual
_ENOUGH: Final = 1e-11  # radians: iterations end after a smaller change
# radians: largest rotation in one iteration; for larger rotations, the flat approximation is too coarse
_LARGEST: Final = 0.5
_WORST: Final = 1e13  # largest condition number of the filter's equations
_BENDING: Final = 500.0  # smallest eigenvalue of D Dᵀ, times T⁴ (that of a vibrating beam with free ends)
Filter = Callable[[Array], Array]


def smoothed(skeleton: Skeleton, q: Array, fps: float, cutoff: float) -> Array:
    """Return joint values (T, nq) without motion above a cutoff frequency.

    Args:
        skeleton: The skeleton.
        q: Joint values, (T, nq).
        fps: Frames per second.
        cutoff: Frequency at which a vibration keeps 71 % of its amplitude (-3 dB), Hz, below half of ``fps``.
    """
    if len(q) < 3:
        return q.copy()
    chart, low_pass = Chart.of(skeleton), low_pass_of(len(q), fps, cutoff)
    out = q.copy()
    out[:, chart.numbers] = low_pass(chart.unwound(q))
    for columns in chart.turns:
        out[:, columns] = _smoothed_turns(q[:, columns], low_pass)
    return skeleton.follow(out)


def low_pass_of(count: int, fps: float, cutoff: float) -> Filter:
    """Return the filter of values (T, n): the x that minimises |x - y|² + λ |D x|², where D x are second differences.

    In the middle of a long clip its gain is 1 / (1 + λ (2 sin(π f / fps))⁴): a second-order Butterworth filter applied
    forwards and backwards, with zero phase. λ sets the gain at the cutoff to 1/√2. Both ends are free, so a motion of
    constant velocity does not change (Whittaker 1923; Eilers 2003).

    The filter subtracts Dᵀ z from the values, where (1/λ + D Dᵀ) z = D y. This form stays exact for a large λ, for
    which x becomes the straight line through the values.

    Args:
        count: Number of frames T, at least 3.
        fps: Frames per second.
        cutoff: Frequency of the gain 1/√2, Hz.

    Raises:
        InputError: If the cutoff is too low for a clip of this length, so that rounding errors would be visible.
    """
    from scipy import linalg

    solve: Any = linalg.cho_solve_banded  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    decompose: Any = linalg.cholesky_banded  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    lowest = (np.sqrt(2.0) - 1.0) / _WORST
    weight = (2.0 * np.sin(np.pi * cutoff / fps)) ** 4 / (np.sqrt(2.0) - 1.0)  # 1/λ
    if max(weight, _BENDING / float(count) ** 4) < 1.0 / _WORST:
        least = fps / np.pi * np.arcsin(0.5 * lowest**0.25)
        hint = "motion.resample(fps), or 'synovia edit --resample', makes a clip of fewer frames"
        raise InputError("cutoff", value=cutoff, expected=f"at least {least:.2g} Hz for {count} frames", hint=hint)
    bands = np.array([[6.0 + weight], [-4.0], [1.0]]) * np.ones(count - 2)  # lower form of 1/λ + D Dᵀ
    factor = decompose(bands, lower=True)

    def product(z: Array) -> Array:
        """Return Dᵀ z, where D takes second differences."""
        out = np.zeros((count, *z.shape[1:]))
        out[:-2] += z
        out[1:-1] -= 2.0 * z
        out[2:] += z
        return out

    def apply(values: Array) -> Array:
        bent = np.diff(values, n=2, axis=0)
        z = np.asarray(solve((factor, True), bent), np.float64)
        z += solve((factor, True), bent - weight * z - np.diff(product(z), n=2, axis=0))  # iterative refinement
        return values - product(z)

    return apply


def _smoothed_turns(quats: Array, low_pass: Filter) -> Array:
    """Smooth rotations over time (T, 4) by the same filter.

    The curve is unrolled into a flat space, where its points and the rotations relative to it are vectors; the filter
    smooths these vectors, and the curve moves by the difference, until convergence. The result does not depend on the
    axes of the world or of the joint, nor on signs of quaternions.

    References:
        Jupp & Kent (1987), *Fitting smooth paths to spherical data*.
    """
    x = quats.copy()
    for _ in range(_ROUNDS):
        steps = rotation_between(x[:-1], x[1:])
        rolled = _rolling(steps)
        flat = np.zeros((len(x), 3))
        flat[1:] = np.cumsum(np.einsum("tij,tj->ti", rolled[:-1], steps), axis=0)
        offset = np.einsum("tij,tj->ti", rolled, rotation_between(x, quats))
        change = np.einsum("tji,tj->ti", rolled, low_pass(flat + offset) - flat)
        size = np.linalg.norm(change, axis=1, keepdims=True)
        x = times_exp(x, change * np.minimum(1.0, _LARGEST / np.maximum(size, _LARGEST)))
        if float(size.max()) < _ENOUGH:
            break
    return x


def _rolling(steps: Array) -> Array:
    """Return rotations (T, 3, 3) that transport vectors in parallel from the frames of a curve to its first frame.

    The frame of the curve rotates by each step (T - 1, 3); parallel transport rotates vectors back by half of it.
    """
    half = times_exp(np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0]), (len(steps), 4)), 0.5 * steps)
    turns = np.empty((len(steps) + 1, 4))
    turns[0] = (0.0, 0.0, 0.0, 1.0)
    turns[1:] = half
    size = 1
    while size < len(turns):  # products of all prefixes, by doubling
        turns[size:] = quat_product(turns[:-size], turns[size:])
        size *= 2
    return quat_to_matrix(unit(turns))
