"""From a reduced skeleton and settings to the two flat arrays that a kernel reads."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synovia.goals.base import POSITION, ROTATION
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.problem.reduced import Reduced

Ints = NDArray[np.int32]


def pack(
    skeleton: Skeleton,
    reduced: Reduced,
    *,
    tolerance: tuple[float, float],
    max_steps: int,
    attempts: int,
    seed: int,
    patience: int,
    most_work: float = math.inf,
    own: Sequence[float],
) -> tuple[Ints, Array]:
    """Return the problem as the two arrays of ``kernels.tree.problem``.

    Args:
        skeleton: The whole skeleton.
        reduced: What its goals need.
        tolerance: Position (length units) and angle (radians).
        max_steps: Steps of one attempt.
        attempts: Attempts, the first one included.
        seed: Seed of the restarts.
        patience: Steps in which the error must have fallen.
        most_work: How much one solve may take, see ``kernels.compiler.watch``.
        own: The solver's own settings, at most sixteen.
    """
    from synovia.kernels.goals.general import TERMS
    from synovia.kernels.tree import problem as k

    t, goals = skeleton.tables, reduced.goals
    head = np.zeros(k.INT_HEAD, np.int32)
    head[: k.FURTHER_INTS] = (
        len(reduced.rows), len(reduced.variables), len(goals.table), reduced.residuals, reduced.columns,
        skeleton.nq, len(t.followers), max_steps, attempts, seed, patience, int(reduced.coupled),
        len(goals.levels) - 1, len(goals.further_ints), len(reduced.masses), len(goals.vertices),
    )  # fmt: skip
    floats = np.zeros(k.FLOAT_HEAD)
    floats[: k.OWN] = *tolerance, reduced.reach, most_work
    floats[k.OWN : k.OWN + len(own)] = own
    goal_data = np.column_stack(
        [goals.roots * (goals.table[:, 0] & bit > 0) for bit in (POSITION, ROTATION)] + [goals.offsets]
    )
    ints = [head, reduced.rows, reduced.variables, goals.table, t.followers, goals.levels]
    reals = [
        floats,
        reduced.fixed,
        reduced.couple,
        reduced.limits,
        goal_data,
        t.coupling,
        reduced.likes,
        reduced.posture,
    ]
    head[k.FURTHER_INTS] = sum(part.size for part in ints)
    head[k.FURTHER_FLOATS] = sum(part.size for part in reals)
    terms = goals.further_ints.copy()
    terms[:, 0] = [TERMS.index(kind) for kind in goals.kinds]
    ints += [terms]
    reals += [goals.further_data, reduced.masses, goals.vertices]
    return (
        np.ascontiguousarray(np.concatenate([part.ravel() for part in ints]), np.int32),
        np.ascontiguousarray(np.concatenate([part.ravel() for part in reals]), np.float64),
    )
