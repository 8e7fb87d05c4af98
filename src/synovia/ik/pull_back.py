"""Vector-Jacobian products of batches of answers, on all cores: the backward pass of a solve."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.derivative import OF, Chart, check_differentiable, derivative_of_many, missed_goals, target_parts
from synovia.ik.interrupts import new_scratch
from synovia.ik.parallel import checked_threads
from synovia.kernels import layout
from synovia.model.geometry import Array
from synovia.model.tables import Ints

_BLOCK: Final = 256  # smallest number of rows for which a further thread is used
_UNSURE: Final = 2.0  # mark of a row that the kernel leaves to ``derivative``


def is_plain(ik: CompiledProblem) -> bool:
    """Return whether the kernel differentiates the answers of a problem: positions and rotations, all of one level."""
    reduced = ik.reduced
    limited_balls = (reduced.variables[:, layout.BLOCK] != layout.SCALAR) & (
        reduced.limits[:, layout.IS_LIMITED] != 0.0
    )
    return (
        reduced.pose_only
        and len(reduced.goals.levels) == 2
        and not reduced.posture[:, layout.REST_WEIGHT].any()
        and 0 < reduced.columns <= layout.NEWTON_COLUMNS
        and not (ik.method.supports_priorities and limited_balls.any())
    )


def pull_back(
    ik: CompiledProblem, rows: Array, gradient: Array, of: str = "targets", threads: int | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Return gradients by the parameters, (B, parameters), given gradients by velocities, (B, nv), and kinks (B,).

    Args:
        ik: The problem.
        rows: Rows of results, (B, m). Rows that are not finite get gradients of NaN.
        gradient: Gradient of each problem by the velocities of ``skeleton.dof_names``.
        of: The parameters, as in ``Solution.derivative``.
        threads: Number of threads; None for all cores.

    Raises:
        InputError: If the kind of parameters is unknown.
        UnsupportedError: If the problem is not supported.
    """
    check_differentiable(ik, of)
    if of != OF[0] or not is_plain(ik):
        whole = derivative_of_many(ik, rows, of)
        return np.einsum("bv,bvp->bp", gradient, np.asarray(whole)), np.asarray(whole.kink, bool)
    out, marks = _pulled(ik, rows, gradient, checked_threads(threads))
    unsure = np.flatnonzero(marks == _UNSURE)
    kinks = marks == 1.0
    if len(unsure):
        some = derivative_of_many(ik, rows[unsure], of)
        out[unsure] = np.einsum("bv,bvp->bp", gradient[unsure], np.asarray(some))
        kinks[unsure] = some.kink
    return out, kinks


def _pulled(ik: CompiledProblem, rows: Array, gradient: Array, threads: int) -> tuple[Array, Array]:
    """Return the gradients by the targets (B, parameters) and the marks (B,) of the kernel."""
    from synovia.kernels.jacobian.pull_back import pull_back as kernel

    count, goals = len(rows), len(ik.goals)
    q, targets = np.ascontiguousarray(rows[:, ik.places]), np.ascontiguousarray(ik.targets_in(rows))
    v = np.ascontiguousarray(gradient @ Chart(ik).to_v)
    marks = np.zeros((count, 2))
    marks[:, 0] = missed_goals(ik, rows).any(axis=1)
    out = np.empty((count, 6 * goals))
    size = -(-count // max(1, min(threads, count // _BLOCK)))

    def block(first: int) -> None:
        """Differentiate some rows."""
        part = slice(first, first + size)
        kernel(
            ik.ints, ik.floats, targets[part], q[part], new_scratch(ik.scratch_size), v[part], marks[part], out[part]
        )

    if count > size:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(block, range(0, count, size)))
    elif count:
        block(0)
    return out[:, target_columns(ik)], marks[:, 1]


def target_columns(ik: CompiledProblem) -> Ints:
    """Return the columns, of six for each goal, that belong to the targets' parameters."""
    parts = target_parts(ik)
    return np.array(
        [
            6 * g + 3 * turns + c
            for g, given in enumerate(parts)
            for turns, part in enumerate((POSITION, ROTATION))
            if given & part
            for c in range(3)
        ],
        np.int32,
    )
