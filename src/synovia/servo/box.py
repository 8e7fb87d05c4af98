"""Solve the goals of one tick by their priorities near a leading pose, optionally inside the box of allowed steps."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    COLD,
    IS_ANGLE,
    LARGEST_MOVE,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
    TURN,
)
from synovia.model.geometry import Array, Bools
from synovia.problem import table_of
from synovia.servo.limits import Axes
from synovia.solver import FullBody

_STEPS: Final = 12  # solver steps: the displacement in a tick is short
_ROUNDS: Final = 8  # largest number of solves, each with more rotations clamped to the edge of the box
_EDGE: Final = 1e-12  # radians, length units: rounding
_LAST_STEP: Final = 1e-7  # radians, length scales: a posture with smaller steps has converged


class Led:
    """The goals by their priorities, and below them a posture that changes in each tick.

    Args:
        ik: The problem.
        tolerance: (position in length units, angle in radians) within which goals hold.
        bounded: Whether ``moves`` limits the displacement of each variable from the start.

    Attributes:
        missed: Which goals the last solution misses, by the tolerances of the problem.
    """

    def __init__(self, ik: CompiledProblem, tolerance: tuple[float, float], *, bounded: bool = False) -> None:
        """Build the problem, and locate the posture and the largest moves in its packed values."""
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
        """Move obstacles to their present places."""
        places.put_into(self.ik.obstacles, self.floats)

    def solve(self, start: Array, posture: Array, table: Array) -> Array:
        """Return the pose (nq,) that meets the goals as well as possible, and is nearest to the posture.

        Args:
            start: Joint values to start from, (nq,).
            posture: Joint values of the posture, (nq,); joints that no goal needs keep these values.
            table: Targets, (1, goals, 17).
        """
        problem = self.ik
        self._posture[self._numbers, REST_Q] = posture[self._number_q]
        self._posture[self._turns[:, None], REST_Q + np.arange(4)] = posture[self._turn_q]
        row = problem.new_rows(1)
        call = partial(problem.call, problem.ints, self.floats, table, start[None], row, self._scratch, COLD, 0)
        problem.checked_call(call, table, None)
        at = problem.places.stop
        over: Bools = row[0, at : at + 2 * len(problem.goals)].reshape(-1, 2) > self._most
        self.missed = over[:, 0] | over[:, 1]
        out = posture.copy()
        out[self._q] = row[0, problem.places][self._q]
        return problem.skeleton.follow(out)


class Box:
    """The goals of a tick inside the box of its steps.

    The solver limits the displacement of a scalar variable from its start, so these start in the middle of their
    intervals. Rotations are solved without bounds. A rotation that leaves the box is clamped to its edge, and the other
    variables compensate.

    Args:
        ik: The problem.
        tolerance: (position in length units, angle in radians) within which goals hold.
        axes: The axes of the body.
    """

    def __init__(self, ik: CompiledProblem, tolerance: tuple[float, float], axes: Axes) -> None:
        """Build the problem."""
        self._led = Led(ik, tolerance, bounded=True)
        self._led.params[LARGEST_MOVE] = 1.0  # the problem has largest moves: none, or zero at the edge
        self._axes = axes
        order = {int(at): k for k, at in enumerate(axes.skeleton.tables.variables[:, BLOCK_Q])}
        solved = self._led.ik.reduced.variables
        self._order = np.array([order[int(at)] for at in solved[:, BLOCK_Q]], np.int64)
        lengths = (solved[:, BLOCK] == SCALAR) & (self._led.ik.reduced.limits[:, IS_ANGLE] == 0.0)
        self._units = np.where(lengths, 1.0 / self._led.ik.reach, 1.0)

    def put(self, places: Places) -> None:
        """Move obstacles to their present places."""
        self._led.put(places)

    def refine(self, q: Array, wish: Array, table: Array, low: Array, high: Array) -> None:
        """Change joint values after a tick so that the goals are met as well as it allows, by their priorities.

        Args:
            q: Joint values now, (nq,).
            wish: Joint values after the tick with independent joints, (nq,); changed in place.
            table: Targets, (1, goals, 17).
            low: Least displacement of each axis from q, (n,).
            high: Largest displacement of each axis from q, (n,).
        """
        led, axes = self._led, self._axes
        stopped = np.zeros(len(axes.firsts), bool)
        half, middle = np.maximum(0.5 * (high - low), 0.0), 0.5 * (low + high)
        numbers = axes.numbers
        moves = np.full(len(axes.firsts), np.inf)
        moves[axes.variable[numbers]] = half[numbers]
        led.moves[:] = moves[self._order] * self._units
        offset = np.clip(axes.way(q, wish), low, high)
        offset[numbers] = middle[numbers]
        out = axes.shifted(q, offset)
        for _ in range(_ROUNDS):
            way = axes.way(q, led.solve(out, wish, table))
            inside = np.clip(way, low, high)
            out = axes.shifted(q, inside)
            beyond = np.maximum.reduceat(np.abs(way - inside), axes.firsts) > _EDGE
            beyond[axes.variable[numbers]] = False
            if not (beyond & ~stopped).any():
                break
            stopped |= beyond
            led.moves[stopped[self._order]] = 0.0
            inside[numbers] = middle[numbers]
            out = axes.shifted(q, inside)
        wish[:] = out
