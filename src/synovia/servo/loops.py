"""The loops of a body in a servo: closed poses, the paths between them, and solutions in the body's assembly branch.

Ticks keep loops closed by themselves, see ``kernels.servo.whole``. A solution may be in another assembly branch, to
which no path with closed loops leads. Then the goals are solved by small steps from the present pose, each of which the
body can take: to a solution or to the nearest miss.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np

from synovia.ik import Status
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    AXIS_ACCELERATION,
    AXIS_VELOCITY,
    BLOCK,
    BLOCK_Q,
    COLD,
    LARGEST_MOVE,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
    STATUS,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    TURN,
)
from synovia.model.change import blend
from synovia.model.geometry import Array, Bools
from synovia.model.loops.mechanism import INDEPENDENT, TIGHT, Mechanism
from synovia.model.pose import drawn_values
from synovia.problem import table_of
from synovia.servo.answers import Answers
from synovia.servo.limits import Axes
from synovia.solver import FullBody

_CLOSING: Final = 20  # Newton steps to close a pose near a closed one
_TRACE: Final = 0.2  # radians, length scales: step along a path that is traced in advance
_TRACED: Final = 64  # largest number of these steps
_PROGRESS: Final = 0.1  # fraction of each step by which the remaining distance has to fall
_SAME: Final = 1e-6  # radians, length units: closer poses count as equal
_NEARER: Final = 0.999  # fraction of the last remaining distance: a smaller distance counts as progress
_PATIENCE: Final = 0.3  # seconds without progress, in addition to the time to turn around


class Closure:
    """The loops of a body.

    Args:
        axes: The axes of the body.
        moving: Rows of the skeleton that may move.
        mechanism: The loops.
    """

    def __init__(self, axes: Axes, moving: Iterable[int], mechanism: Mechanism) -> None:
        """Find the axes that move."""
        self._axes, self._table, self._mechanism = axes, axes.table, mechanism
        self._skeleton = axes.skeleton
        self._moves: Bools = np.isin(axes.joints, [*moving])
        self._held = None if self._moves.all() else ~self._moves[axes.firsts]
        self._units = np.where(axes.lengths, mechanism.reach, 1.0)
        self._left, self._wanted, self._waited = 0.0, axes.skeleton.rest_pose().q, 0.0

    def reset(self, q: Array) -> Array:
        """Restart at joint values (nq,), and return them with closed loops.

        The motion of the axes is changed to one that keeps the loops closed.
        """
        closed = self._beside(q, np.zeros(len(self._table)))
        q = q if closed is None else closed
        tangent = self._tangent(q)
        for column in (AXIS_VELOCITY, AXIS_ACCELERATION):
            self._table[:, column] = tangent @ (self._table[:, column] * self._moves)
        self._left, self._wanted, self._waited = 0.0, q, 0.0
        return q

    def watch(self, q: Array, wanted: Array, h: float) -> None:
        """Record for how long the body, at q (nq,) now, has not come nearer to unchanged wanted joint values."""
        left = float(np.abs(self._axes.way(q, wanted))[self._moves].max(initial=0.0))
        if left < _NEARER * self._left or left <= _SAME or not np.array_equal(wanted, self._wanted):
            self._left, self._wanted, self._waited = left, wanted.copy(), 0.0
        else:
            self._waited += h

    @property
    def stuck(self) -> bool:
        """Whether the body has not come nearer to its goal for longer than it takes to turn around."""
        v, A, J = (self._table[self._moves, column] for column in (TOP_SPEED, TOP_ACCELERATION, TOP_JERK))
        if self._waited <= _PATIENCE + 2.0 * float((v / A + A / J).max(initial=0.0)):
            return False
        closed = self._mechanism.lacks(self._wanted[None]).max(initial=0.0) <= _SAME
        return bool(closed)  # a body near an unreachable pose with open loops is not stuck

    def beside(self, q: Array, share: float, seed: int) -> Array:
        """Return a closed pose (nq,) at a fraction ``share`` of a closed path from joint values q to a random pose."""
        rows = np.unique(self._axes.joints[self._moves]).tolist()
        end = blend(self._skeleton, q[None], drawn_values(self._skeleton, 1, seed, rows=rows, around=q), share)
        return self._mechanism.way(q[None], end, ~self._mechanism.mobility.dependent)[0][0]

    def connects(self, q: Array, to: Array) -> bool:
        """Return whether a path with closed loops leads from joint values q to others, (nq,)."""
        for _ in range(_TRACED):
            way = self._axes.way(q, to) * self._moves
            far = float((np.abs(way) / self._units).max(initial=0.0))
            place = self._beside(q, min(_TRACE / max(far, _TRACE), 1.0) * way)
            if place is None:
                return False
            if far <= _TRACE:
                return bool(np.abs(self._axes.way(place, to)).max(initial=0.0) <= _SAME)
            left = float((np.abs(self._axes.way(place, to)) / self._units).max(initial=0.0))
            if left > far - _PROGRESS * _TRACE:
                return False
            q = place
        return False

    def _tangent(self, q: Array) -> Array:
        """Return the projection (n, n) of velocities onto the velocities that keep the loops closed."""
        J = self._mechanism.rows(q[None])[1][0] * self._moves
        _, values, ways = np.linalg.svd(J, full_matrices=False)
        ways = ways[values > INDEPENDENT]
        return np.eye(len(self._table)) - (ways.T * self._units[:, None]) @ (ways / self._units)

    def _beside(self, q: Array, way: Array) -> Array | None:
        """Return the closed pose near q shifted by a displacement of each axis, (nq,); None if it cannot be closed."""
        guess = self._axes.shifted(q, way)
        inside = np.empty_like(guess)
        self._skeleton.validate(guess, inside)
        poses, lacks = self._mechanism.run(inside[None], _CLOSING, self._held)
        return poses[0] if lacks.max(initial=0.0) <= TIGHT else None


_PRECISION: Final = 0.1  # fraction of the tolerance to which goals are solved
_FAR: Final = 0.3  # radians, length units: a solution farther from the last one may be in another branch
_STEP: Final = 0.2  # radians, length scales: largest change of a variable in a step
_LEAD: Final = 0.8  # radians, length units: largest lead over the body, which keeps it on the path of steps
_STEPS: Final = 3  # steps in each tick
_ELSEWHERE: Final = 0.1  # length units, rotation-matrix entries: a larger change of the targets restarts the search
_TRIES: Final = 24  # number of seeds on paths from the last step to random poses, each farther away
_LEAVES: Final = 4  # largest number of restarts of a stuck body
_SOLVER_STEPS: Final = 12  # largest number of solver steps; moves are short
_LAST_STEP: Final = 1e-7  # radians, length scales: a posture with smaller steps has converged
_ARRIVED: Final = 1e-6  # radians, length units: smaller steps have converged


class Branch:
    """Keeps the solutions of a body with loops in its assembly branch.

    Args:
        ik: The problem.
        axes: The axes of the body.
        closed: The loops of the body.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes, closed: Closure) -> None:
        """Build the problem of a step."""
        self._axes, self._closed = axes, closed
        self._led = Led(ik, (_PRECISION * ik.tolerance[0], _PRECISION * ik.tolerance[1]))
        self._led.moves[:] = _STEP
        self.reset(ik.default_start.values)

    def reset(self, q: Array) -> None:
        """Restart at joint values (nq,)."""
        self._last, self._place = q, None
        self._table: Array | None = None
        self._tries = self._left = 0

    def put(self, places: Places) -> None:
        """Move obstacles to their present places."""
        self._led.put(places)
        self._tries = 0

    def walks(self, table: Array) -> bool:
        """Return whether the walk by steps is solving exactly these targets, (1, goals, 17)."""
        return self._place is not None and self._table is not None and np.array_equal(table, self._table)

    def check(self, answers: Answers, q: Array, table: Array) -> None:
        """Solve the goals by steps, if this tick's solution is a miss, or no closed path leads to it from q (nq,)."""
        self._place = None
        connects = self._way(self._last, answers.q) <= _FAR or self._closed.connects(q, answers.q)
        if connects and answers.reaches:
            self._last = answers.q
            return
        self._begin(answers.q if connects else q, table)
        self.walk(answers, q)

    def leave(self, answers: Answers, q: Array, table: Array) -> None:
        """Solve the goals by smaller steps from joint values q (nq,), where the body is stuck.

        A body can get stuck where branches meet. After a few restarts it stays there.
        """
        self._begin(q, table)
        self._left += 1
        if self._left <= _LEAVES:
            self._led.moves[:] = _STEP * 0.5**self._left
            self.walk(answers, q)
            return
        row = answers.solve(table, q)
        row[STATUS] = Status.STALLED
        answers.lead(q, row)

    def _begin(self, place: Array, table: Array) -> None:
        """Begin the walk at joint values (nq,), for these targets (1, goals, 17)."""
        if self._table is None or np.abs(table - self._table).max() > _ELSEWHERE:
            self._tries, self._left = _TRIES, 0
            self._led.moves[:] = _STEP
        self._place, self._table = place, table.copy()

    def walk(self, answers: Answers, q: Array) -> None:
        """Take some steps, and let them lead the body, which is at q (nq,). After convergence, search other solutions.

        The search tries one seed in each tick, on a path from the last step towards a random pose.
        """
        place, table = self._place, self._table
        if place is None or table is None:
            return
        row = None
        for _ in range(_STEPS if self._way(q, place) <= _LEAD else 0):
            there = self._led.solve(place, place, table)
            far, place = self._way(place, there), there
            if far <= _ARRIVED:
                row = answers.solve(table, place)
                break
        if row is not None and row[STATUS] == Status.REACHED:
            there = answers.at(row)
            place, row = (there, row) if self._way(place, there) <= _FAR else (place, None)
        elif row is not None and self._tries:
            self._tries -= 1
            other = answers.solve(table, self._closed.beside(place, 1.0 - self._tries / _TRIES, self._tries))
            found = answers.at(other)
            if other[STATUS] == Status.REACHED and self._closed.connects(q, found):
                self._place, self._last = None, found
                answers.lead(found, other)
                return
            row = row if not self._tries else None
        self._place = self._last = place
        answers.lead(place, row)

    def _way(self, q: Array, to: Array) -> float:
        """Return the largest displacement of an axis, radians or length units."""
        return float(np.abs(self._axes.way(q, to)).max(initial=0.0))


class Led:
    """A solver of the goals by priority, and below them of a posture that changes in each tick.

    Args:
        ik: The problem.
        tolerance: (position in length units, angle in radians) within which goals hold.

    Attributes:
        moves: Largest displacement of each variable from the start.
    """

    def __init__(self, ik: CompiledProblem, tolerance: tuple[float, float]) -> None:
        """Build the problem, and locate the posture and the largest moves in its packed values."""
        settings = FullBody(attempts=1, max_steps=_SOLVER_STEPS, rest_step=_LAST_STEP, largest_move=1.0)
        self.ik = problem = ik.with_parts(solver=settings, tolerance=tolerance)
        self._scratch = new_scratch(problem.scratch_size)
        solved = problem.reduced.variables
        self.floats = problem.floats.copy()
        params, self.moves, self._posture = (
            table_of(problem.ints, self.floats, name) for name in ("params", "moves", "posture")
        )
        params[LARGEST_MOVE], self._posture[:, REST_WEIGHT] = 1.0, 1.0
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
        out = posture.copy()
        out[self._q] = row[0, problem.places][self._q]
        return problem.skeleton.follow(out)
