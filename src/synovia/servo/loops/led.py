"""A short step of the goals by their priorities, near a pose: what a body with loops is led by."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from synovia.facade import IK
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    COLD,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
    TURN,
)
from synovia.model.geometry import Array, Bools
from synovia.problem import table_of
from synovia.solver import FullBody

_STEPS: Final = 12  # of the solver: the way of a tick is short
_LAST_STEP: Final = 1e-7  # radians, reaches: then the posture has converged


class Led:
    """The goals by their priorities, and then a posture that is another one in each tick.

    Args:
        ik: The problem.
        tolerance: (position in length units, angle in radians) within which goals hold.
        bounded: Whether each variable may go only so far from the start.

    Attributes:
        missed: Which goals the last answer misses, by the tolerances of the problem.
    """

    def __init__(self, ik: IK, tolerance: tuple[float, float], *, bounded: bool = False) -> None:
        """Build the problem, and find where its packed numbers have the posture and the largest moves."""
        settings = FullBody(attempts=1, max_steps=_STEPS, rest_step=_LAST_STEP)
        if bounded:
            settings = settings.replace(largest_move=1.0)
        self.ik = problem = ik.with_parts(solver=settings, tolerance=tolerance)
        self._scratch = new_scratch(problem.scratch_size)
        solved = problem.reduced.variables
        self.floats = problem.floats.copy()
        self.params, self.moves, self._posture = (
            table_of(problem.ints, self.floats, name) for name in ("params", "moves", "posture")
        )
        self._posture[:, REST_WEIGHT] = 1.0
        self._most = np.array([[goal.own_tolerance or ik.tolerance[0], ik.tolerance[1]] for goal in ik.goals])
        self.missed: Bools = np.zeros(len(ik.goals), bool)
        self._numbers = np.flatnonzero(solved[:, BLOCK] == SCALAR)
        self._turns = np.flatnonzero(solved[:, BLOCK] == TURN)
        self._number_q = solved[self._numbers, BLOCK_Q].astype(np.int64)
        self._turn_q = (solved[self._turns, BLOCK_Q, None] + np.arange(4)).astype(np.int64)
        self._q = np.concatenate([self._number_q, self._turn_q.ravel()])

    def put(self, places: Places) -> None:
        """Put obstacles where they stand now."""
        places.put_into(self.ik.obstacles, self.floats)

    def solve(self, start: Array, posture: Array, table: Array) -> Array:
        """Return the pose (nq,) that meets the goals as well as it can, and is nearest to the posture.

        Args:
            start: Joint values to start from, (nq,).
            posture: Joint values of the posture, (nq,), which also has the joints that no goal needs.
            table: Targets, (1, goals, 17).
        """
        problem = self.ik
        self._posture[self._numbers, REST_Q] = posture[self._number_q]
        self._posture[self._turns[:, None], REST_Q + np.arange(4)] = posture[self._turn_q]
        row = problem.new_rows(1)
        call = partial(problem.call, problem.ints, self.floats, table, start[None], row, self._scratch, COLD, 0)
        problem.settled(call, table, None)
        at = problem.places.stop
        over: Bools = row[0, at : at + 2 * len(problem.goals)].reshape(-1, 2) > self._most
        self.missed = over[:, 0] | over[:, 1]
        out = posture.copy()
        out[self._q] = row[0, problem.places][self._q]
        return problem.skeleton.follow(out)
