"""From a reduced skeleton and settings to the two flat arrays that a kernel reads."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from synovia.goals.base import POSITION, ROTATION
from synovia.kernels.layout import (
    ATTEMPTS,
    COUPLED,
    FLOAT_HEAD,
    GENERAL_FLOATS,
    GENERAL_INTS,
    GOAL_DATA_WIDTH,
    GOAL_ORIENTATION,
    INT_HEAD,
    KIND,
    MAX_STEPS,
    MOST_WORK,
    N_COLUMNS,
    N_FOLLOWERS,
    N_GENERAL,
    N_GOALS,
    N_LEVELS,
    N_MASSES,
    N_Q,
    N_RESIDUALS,
    N_ROWS,
    N_VARIABLES,
    N_VERTICES,
    PARAMS,
    PARTS,
    PATIENCE,
    POSITION_WEIGHT,
    REACH,
    ROTATION_WEIGHT,
    SEED,
    TOLERANCE,
    TOLERANCE_ANGLE,
)
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
    params: Mapping[int, float],
) -> tuple[Ints, Array]:
    """Return the problem as the two arrays of ``kernels.layout``.

    Args:
        skeleton: The whole skeleton.
        reduced: What its goals need.
        tolerance: Position (length units) and angle (radians).
        max_steps: Steps of one attempt.
        attempts: Attempts, the first one included.
        seed: Seed of the restarts.
        patience: Steps in which the error must have fallen.
        most_work: How much one solve may take, see ``kernels.compiler.watch``.
        params: The solver's own parameters by their places after ``OWN``.
    """
    from synovia.kernels.goals.general import TERMS

    t, goals = skeleton.tables, reduced.goals
    head = np.zeros(INT_HEAD, np.int32)
    head[N_ROWS], head[N_VARIABLES], head[N_GOALS] = len(reduced.rows), len(reduced.variables), len(goals.table)
    head[N_RESIDUALS], head[N_COLUMNS], head[N_Q] = reduced.residuals, reduced.columns, skeleton.nq
    head[N_FOLLOWERS], head[COUPLED], head[N_LEVELS] = len(t.followers), reduced.coupled, len(goals.levels) - 1
    head[N_GENERAL], head[N_MASSES], head[N_VERTICES] = map(len, (goals.general_ints, reduced.masses, goals.vertices))
    head[MAX_STEPS], head[ATTEMPTS], head[SEED], head[PATIENCE] = max_steps, attempts, seed, patience
    floats = np.zeros(FLOAT_HEAD)
    floats[TOLERANCE], floats[TOLERANCE_ANGLE] = tolerance
    floats[REACH], floats[MOST_WORK] = reduced.reach, most_work
    for place, value in params.items():
        floats[PARAMS + place] = value
    goal_data = np.empty((len(goals.table), GOAL_DATA_WIDTH))
    goal_data[:, POSITION_WEIGHT] = goals.roots * (goals.table[:, PARTS] & POSITION > 0)
    goal_data[:, ROTATION_WEIGHT] = goals.roots * (goals.table[:, PARTS] & ROTATION > 0)
    goal_data[:, GOAL_ORIENTATION:] = goals.offsets
    ints = [head, reduced.rows, reduced.variables, goals.table, t.followers, goals.levels]
    reals = [
        floats,
        reduced.fixed,
        reduced.couple,
        reduced.limits,
        goal_data,
        t.coupling,
        reduced.preferences,
        reduced.posture,
    ]
    head[GENERAL_INTS] = sum(part.size for part in ints)
    head[GENERAL_FLOATS] = sum(part.size for part in reals)
    terms = goals.general_ints.copy()
    terms[:, KIND] = [TERMS.index(kind) for kind in goals.kinds]
    ints += [terms]
    reals += [goals.general_data, reduced.masses, goals.vertices]
    return (
        np.ascontiguousarray(np.concatenate([part.ravel() for part in ints]), np.int32),
        np.ascontiguousarray(np.concatenate([part.ravel() for part in reals]), np.float64),
    )
