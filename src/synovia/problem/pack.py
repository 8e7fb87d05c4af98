"""Pack a reduced skeleton and settings into the two flat arrays that a kernel reads."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from synovia.goals.base import POSITION, ROTATION
from synovia.kernels import layout
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.problem.reduced import Reduced


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
    moves: Array | None = None,
) -> tuple[Ints, Array]:
    """Return the problem as the two arrays of ``kernels.layout``.

    Args:
        skeleton: The whole skeleton.
        reduced: The part of the skeleton that its goals need.
        tolerance: Position (length units) and angle (radians).
        max_steps: Steps of one attempt.
        attempts: Attempts, the first one included.
        seed: Seed of the restarts.
        patience: Number of steps within which the error must fall.
        most_work: Work limit of one solve, see ``kernels.compiler.watch``.
        params: Parameters of the solver, by their indices after ``PARAMS``.
        moves: (k,) largest move of each variable, radians or reaches; None for no bounds.
    """
    from synovia.kernels.goals.general import TERMS

    t, goals = skeleton.tables, reduced.goals
    counts = {
        layout.N_ROWS: len(reduced.rows),
        layout.N_VARIABLES: len(reduced.variables),
        layout.N_GOALS: len(goals.table),
        layout.N_RESIDUALS: reduced.residuals,
        layout.N_COLUMNS: reduced.columns,
        layout.N_Q: skeleton.nq,
        layout.N_FOLLOWERS: len(t.followers),
        layout.N_LEVELS: len(goals.levels) - 1,
        layout.N_GENERAL: len(goals.general_ints),
        layout.N_MASSES: len(reduced.masses),
        layout.N_VERTICES: len(goals.vertices),
        layout.COUPLED: reduced.coupled,
        layout.MAX_STEPS: max_steps,
        layout.ATTEMPTS: attempts,
        layout.SEED: seed,
        layout.PATIENCE: patience,
    }
    head = np.zeros(layout.INT_HEAD, np.int32)
    head[list(counts)] = list(counts.values())
    floats = np.zeros(layout.FLOAT_HEAD)
    floats[layout.TOLERANCE], floats[layout.TOLERANCE_ANGLE] = tolerance
    floats[layout.REACH], floats[layout.MOST_WORK] = reduced.reach, most_work
    for index, value in params.items():
        floats[layout.PARAMS + index] = value
    goal_data = np.empty((len(goals.table), layout.GOAL_DATA_WIDTH))
    goal_data[:, layout.POSITION_WEIGHT] = goals.roots * (goals.table[:, layout.PARTS] & POSITION > 0)
    goal_data[:, layout.ROTATION_WEIGHT] = goals.roots * (goals.table[:, layout.PARTS] & ROTATION > 0)
    goal_data[:, layout.GOAL_ORIENTATION :] = goals.offsets
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
        np.full(len(reduced.variables), np.inf) if moves is None else moves,
    ]
    head[layout.GENERAL_INTS] = sum(part.size for part in ints)
    head[layout.GENERAL_FLOATS] = sum(part.size for part in reals)
    terms = goals.general_ints.copy()
    terms[:, layout.KIND] = [TERMS.index(kind) for kind in goals.kinds]
    ints += [terms]
    reals += [goals.general_data, reduced.masses, goals.vertices]
    return (
        np.ascontiguousarray(np.concatenate([part.ravel() for part in ints]), np.int32),
        np.ascontiguousarray(np.concatenate([part.ravel() for part in reals]), np.float64),
    )


def posture_of_packed(ints: Ints, floats: Array) -> Array:
    """Return the table of rest goals in a packed problem, (k, 5), as a view: writing to it changes the reference."""
    count = int(ints[layout.N_VARIABLES])
    end = int(ints[layout.GENERAL_FLOATS]) - count  # the largest moves are the last before the general goals
    return floats[end - layout.REST_WIDTH * count : end].reshape(count, layout.REST_WIDTH)


class References:
    """Changes the reference of the rest goals in a packed problem from frame to frame.

    Args:
        ints: The packed problem, whole numbers.
        floats: The packed problem, real numbers; a copy of them is changed.
        variables: (k, 3) joint variables.

    Attributes:
        floats: The copy.
    """

    def __init__(self, ints: Ints, floats: Array, variables: Ints) -> None:
        """Find the table of rest goals, and where its reference is in the joint values."""
        self.floats = floats.copy()
        self._table = posture_of_packed(ints, self.floats)
        scalar = variables[:, layout.BLOCK] == layout.SCALAR
        self._scalar, self._turn = np.flatnonzero(scalar), np.flatnonzero(~scalar)
        self.numbers = variables[scalar, layout.BLOCK_Q].astype(np.int64)
        self.quats = variables[~scalar, layout.BLOCK_Q].astype(np.int64)[:, None] + np.arange(4)

    def tables(self, poses: Array) -> Array:
        """Return the tables of rest goals, (n, k, 5), with poses (n, nq) as their references."""
        out = np.repeat(self._table[None], len(poses), axis=0)
        out[:, self._scalar, layout.REST_Q] = poses[:, self.numbers]
        out[:, self._turn, layout.REST_Q :] = poses[:, self.quats]
        return out

    def put(self, table: Array) -> None:
        """Put one of these tables, (k, 5), into the packed problem."""
        self._table[...] = table
