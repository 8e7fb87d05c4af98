"""Pack a reduced skeleton and settings into the two flat arrays that a kernel reads."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from synovia.goals.base import POSITION, ROTATION
from synovia.kernels import layout
from synovia.kernels.packing import packed, table_of
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.problem.clearance import ClearanceTables
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
    solver_scratch: int = 0,
    learned: tuple[Mapping[int, int], Mapping[str, Array]] = ({}, {}),
) -> tuple[Ints, Array]:
    """Return the problem as two arrays: integers (head, offsets of all tables, tables) and floats (head, tables).

    Args:
        skeleton: The whole skeleton.
        reduced: The part of the skeleton that its goals need.
        tolerance: Position (length units) and angle (radians) within which a goal is met.
        max_steps: Largest number of steps of one attempt.
        attempts: Number of attempts, the first one included.
        seed: Seed of the restarts.
        patience: Number of steps within which the error must fall.
        most_work: Work limit of one solve, see ``kernels.compiler.watch``.
        params: Parameters of the solver, by their indices.
        moves: (k,) largest move of each variable, radians or length scales; None for no bounds.
        solver_scratch: Size of the solver's own scratch memory (``Solver.extra_scratch``), in float64.
        learned: Integers of the head and tables of learned starts.
    """
    from synovia.kernels.goals.general import TERMS

    t, goals = skeleton.tables, reduced.goals
    residuals, columns = reduced.residuals, reduced.columns
    numbers = {
        layout.N_ROWS: len(reduced.rows),
        layout.N_VARIABLES: len(reduced.variables),
        layout.N_GOALS: len(goals.table),
        layout.N_RESIDUALS: residuals,
        layout.N_COLUMNS: columns,
        layout.N_Q: skeleton.nq,
        layout.N_FOLLOWERS: len(t.followers),
        layout.N_BOUNDARIES: len(goals.levels),
        layout.N_TERMS: len(goals.general_ints),
        layout.N_MASSES: len(reduced.masses),
        layout.N_VERTICES: len(goals.vertices),
        layout.N_FRAMES: 2 * len(reduced.rows),
        layout.N_POINTS: len(reduced.rows) + len(goals.table),
        layout.N_SMALLER: min(residuals, columns),
        layout.N_CURVED: columns if columns <= layout.NEWTON_COLUMNS else 0,
        layout.N_WATCH: layout.OTHERS + (layout.FINALISTS + 1) * (skeleton.nq + layout.POSE_MORE),
        layout.N_SOLVER: solver_scratch,
        **_clearance_counts(reduced.clearance),
        **({} if reduced.loops is None else reduced.loops.counts(len(reduced.rows), reduced.variables, skeleton.nq)),
        layout.COUPLED: reduced.coupled,
        layout.MAX_STEPS: max_steps,
        layout.ATTEMPTS: attempts,
        layout.SEED: seed,
        layout.PATIENCE: patience,
        **learned[0],
    }
    params_row = np.zeros(layout.PARAMS_WIDTH)
    for index, value in params.items():
        params_row[index] = value
    goal_data = np.empty((len(goals.table), layout.GOAL_DATA_WIDTH))
    goal_data[:, layout.POSITION_WEIGHT] = goals.roots * (goals.table[:, layout.PARTS] & POSITION > 0)
    goal_data[:, layout.ROTATION_WEIGHT] = goals.roots * (goals.table[:, layout.PARTS] & ROTATION > 0)
    goal_data[:, layout.GOAL_ORIENTATION :] = goals.offsets
    terms = goals.general_ints.copy()
    terms[:, layout.KIND] = [TERMS.index(kind) for kind in goals.kinds]
    tables = {
        "params": params_row,
        "tree.ints": reduced.rows,
        "tree.fixed": reduced.fixed,
        "tree.couple": reduced.couple,
        "variables": reduced.variables,
        "limits": reduced.limits,
        "goals": goals.table,
        "goal_data": goal_data,
        "followers": t.followers,
        "coupling": t.coupling,
        "preferences": reduced.preferences,
        "levels": goals.levels,
        "posture": reduced.posture,
        "moves": np.full(len(reduced.variables), np.inf) if moves is None else moves,
        "general.ints": terms,
        "general.data": goals.general_data,
        "general.masses": reduced.masses,
        "general.vertices": goals.vertices,
    }
    if (clear := reduced.clearance) is not None:
        tables |= {
            "clear.ints": clear.ints, "clear.data": clear.data, "clear.links": clear.links, "clear.balls": clear.balls,
            "clear.pairs": clear.pairs, "clear.shapes": clear.shapes.shapes, "clear.points": clear.shapes.points,
            "clear.nodes": clear.nodes,
        }  # fmt: skip
    if (loops := reduced.loops) is not None:
        tables |= loops.tables
    tables |= learned[1]
    reals = {
        layout.TOLERANCE: tolerance[0],
        layout.TOLERANCE_ANGLE: tolerance[1],
        layout.REACH: reduced.reach,
        layout.MOST_WORK: most_work,
    }
    return packed(numbers, reals, tables)


def _clearance_counts(clear: ClearanceTables | None) -> dict[int, int]:
    """Return the numbers of rows in the tables of clearance goals and in their scratch memory."""
    if clear is None:
        return {}
    return {
        layout.N_CLEARANCES: len(clear.ints),
        layout.N_LINKS: len(clear.links),
        layout.N_LINK_PAIRS: len(clear.pairs),
        layout.N_SHAPES: len(clear.shapes.shapes),
        layout.N_HULL_POINTS: len(clear.shapes.points),
        layout.N_NODES: len(clear.nodes),
        layout.N_SLOTS: int(clear.slots.sum()),
        layout.N_FOUND: int(clear.slots.max()) + 1,  # room for one more contact than the goals use, for comparison
        layout.N_PLACED: 2,
        layout.N_CORNERS: layout.MOST_CORNERS,
        layout.N_FACES: layout.MOST_FACES,
        layout.N_EDGES: layout.MOST_EDGES,
    }


class References:
    """Sets the reference of the rest goals in a packed problem, which may change from frame to frame.

    Args:
        ints: Integers of the packed problem.
        floats: Floats of the packed problem; changed in place.
        reduced: The reduced problem that was packed.
    """

    def __init__(self, ints: Ints, floats: Array, reduced: Reduced) -> None:
        """Find the table of rest goals, and the indices of its reference in joint values."""
        self._table = table_of(ints, floats, "posture")
        scalar = reduced.variables[:, layout.BLOCK] == layout.SCALAR
        self._scalar, self._turn = np.flatnonzero(scalar), np.flatnonzero(~scalar)
        self._numbers, self._quats = reduced.places

    def tables(self, poses: Array) -> Array:
        """Return the tables of rest goals, (n, k, 5), with poses (n, nq) as their references."""
        out = np.repeat(self._table[None], len(poses), axis=0)
        out[:, self._scalar, layout.REST_Q] = poses[:, self._numbers]
        out[:, self._turn, layout.REST_Q :] = poses[:, self._quats]
        return out

    def put(self, table: Array) -> None:
        """Write a table of rest goals, (k, 5), as ``tables`` returns it, into the packed problem."""
        self._table[...] = table
