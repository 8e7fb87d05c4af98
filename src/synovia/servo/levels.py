"""The goals of a tick, packed for the kernel ``servo.step``, and the distances that the body keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from synovia.goals import PoseGoal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.ik.ways import ClearWays
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    GOAL_STATE_WIDTH,
    HELD_STILL,
    MODE,
    SCALAR,
    TARGET_WIDTH,
    TICK,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    WHOLE,
    size_of,
    size_of_all,
)
from synovia.kernels.servo import ALONG_WIDTH
from synovia.model.geometry import Array
from synovia.model.tables import Ints, writable
from synovia.problem import table_of
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback
from synovia.servo.probe import goals_of_rows
from synovia.solver import FullBody

_LONGEST: Final = 1.5  # longest stop of the whole body, as a multiple of the shortest one
_SLACK: Final = 0.5  # fraction of the tolerance: a motion may come nearer by this, or the body would get stuck


class Guard:
    """The remaining clearances of clearance goals, along the motion of a body.

    Args:
        ik: The problem.
        axes: The axes of the body.

    Attributes:
        left: Lower bound of the remaining clearance (distance minus required distance) of each pair at the last pose,
            length units.
        blocked: Whether clearance has changed the last tick.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes) -> None:
        """Build the problem that measures distances."""
        self._slack = _SLACK * ik.tolerance[0]
        self.ways = ways = ClearWays(ik, self._slack)
        self._axes = axes
        self.left, self.blocked = ways.tables["left"], False

    def reset(self, q: Array) -> None:
        """Restart at joint values (nq,)."""
        self.ways.tables["least"][:] = -self._slack
        self.note(q)
        self.blocked = False

    def put(self, places: Places, q: Array) -> None:
        """Move obstacles to their present places, and measure clearances at joint values (nq,) of the robot.

        A pair that an obstacle has brought too near may stay so near, but not come nearer. A pair that the obstacle has
        left keeps its whole distance again.
        """
        self.ways.put(places)
        self.left[:] = self.ways.left(q)
        self.ways.tables["least"][:] = np.minimum(self.left, 0.0) - self._slack

    def begin_tick(self, q: Array, h: float, feedback: Feedback, *, commands: bool) -> None:
        """Prepare a tick of time h from joint values q (nq,); ``commands``: whether it moves the commanded pose."""
        here, ways = feedback.body(q), self.ways
        ways.tables["offset"][:] = feedback.offset if commands and feedback.offset is not None else 0.0
        if feedback.found is not None:  # the measured offset may have changed since the last tick
            self.note(here)
        if not ways.bounded:
            table = self._axes.table
            V, A, J = (table[:, column] for column in (TOP_SPEED, TOP_ACCELERATION, TOP_JERK))
            way = V * (h + _LONGEST * (V / A + A / J).max())
            ways.reach_to(np.maximum(*(np.abs(self._axes.shifted(here, sign * way)) for sign in (-1.0, 1.0))))

    def note(self, q: Array) -> None:
        """Measure clearances at joint values (nq,) of the robot, without a motion from the last pose.

        Pairs that are too near there may stay so near, but not come nearer.
        """
        self.left[:] = self.ways.left(q)
        least = self.ways.tables["least"]
        least[:] = np.where(self.left < least, self.left - self._slack, least)

    @property
    def state(self) -> tuple[Array, Array]:
        """Copies of the remaining and the required clearance of each pair."""
        return self.left.copy(), self.ways.tables["least"].copy()

    @state.setter
    def state(self, state: tuple[Array, Array]) -> None:
        """Restore a state."""
        self.left[:], self.ways.tables["least"][:] = state


NO_PATH = np.zeros((0, 0)), np.zeros(ALONG_WIDTH)  # no path: no waypoints, coordinates of 0

_ENDLESS = 1e30  # jerk limits from this value on mean no limit
_SPEED = "speed of "  # prefix of the names of goals that measure end effectors


class TickLevels:
    """The goals of a tick by priority, solved within the velocity bounds of all axes.

    The known stop is a stop of the whole body that an earlier tick found; it keeps all limits.

    Args:
        ik: The problem.
        axes: The axes of the body.
        tools: Speed limits of end effectors, linear and angular, by name; None for none.
        ways: Distances that the body keeps in every tick; None for none.

    Attributes:
        touches: 1 if distances changed the tick, else 0, (1,).
        tools: Used fraction of each speed limit, and 1 if the end effector slowed the body down, (2, tools).
        states: State of each goal, (goals, GOAL_STATE_WIDTH); see ``kernels.layout``.
        count: Number of priority levels.
        above: Number of levels above all goals: for loops, distances and tool speeds.
        end: Joint values (nq,) at the end of the known stop.
        path: Waypoints of the targets' path (none without a path), and coordinates on it.
        memory: State from the tick before, in addition to states and axes: targets, and the known stop.
    """

    def __init__(
        self,
        ik: CompiledProblem,
        axes: Axes,
        tools: Mapping[str, tuple[float, float]] | None = None,
        ways: ClearWays | None = None,
    ) -> None:
        """Pack the problem, and find the axis of each of its columns."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.levels import TIED
        from synovia.kernels.servo.step import STOP_OF_BODY, servo_step

        tools = tools or {}
        below = [goal.lowered(1) for goal in ik.goals] if tools else ik.goals
        measured = [PoseGoal(name, name=f"{_SPEED}{name}") for name in tools]
        problem = ik.with_parts([*below, *measured], FullBody(attempts=1), tolerance=ik.tolerance)
        self._obstacles, self._floats = problem.obstacles, problem.floats.copy()
        aimed, goals, nq = len(ik.goals), len(problem.goals), axes.skeleton.nq
        columns = _columns(problem, axes)
        sizes = {
            "columns": len(columns),
            "axes": len(axes.whole),
            "nq": nq,
            "goals": goals,
            "errors": 2 * goals,
            "residuals": int(table_of(problem.ints, problem.floats, "levels")[-1]),
        }
        memory = np.zeros(size_of_all(TICK, sizes))
        start = sum(size_of(table, sizes) for table in TICK[: [table.name for table in TICK].index("last")])
        self._last = memory[start : start + goals * TARGET_WIDTH].reshape(goals, TARGET_WIDTH)[:aimed]
        self._speeds, self.tools = np.array(list(tools.values())).reshape(-1, 2), np.zeros((2, len(tools)))
        self._rates = np.zeros((3, sizes["residuals"]))
        self._targets = np.zeros((goals, TARGET_WIDTH))
        self.states = np.zeros((aimed, GOAL_STATE_WIDTH))
        self.count = len(table_of(problem.ints, problem.floats, "levels")) - 1
        t = axes.skeleton.tables
        self._stops = np.zeros((2, size_of_all(STOP_OF_BODY, sizes)))
        self._known = size_of_all(STOP_OF_BODY[: len(WHOLE)], sizes) - 1
        begin = size_of_all(STOP_OF_BODY[: [table.name for table in STOP_OF_BODY].index("end")], sizes)
        self.end = self._stops[0, begin : begin + nq]
        self._axes = axes
        self.memory = self._last, self._stops
        self.path = NO_PATH
        self._changing = self.states, self._last, self._stops, self._rates
        rows, tied = _aimed_rows(problem, aimed), tied_rows(problem)
        rows[:tied], self.above = TIED, int(tied > 0) + int(bool(tools)) + int(ways is not None)
        arguments = (
            problem.ints, self._floats, new_scratch(problem.scratch_size), memory, self._stops, columns,
            np.zeros(len(columns), np.int32), rows, self.states, axes.whole,
            *writable(t.variables, t.limits, t.followers, t.coupling),
        )  # fmt: skip
        table, q, none = np.zeros((goals, TARGET_WIDTH)), np.zeros(nq), np.zeros(0)
        self.touches = np.zeros(1)
        self._apart = np.zeros(0, np.int32), none, none, none, self.touches
        if ways is not None:
            self._apart = (*ways.packed[:3], ways.packed[5], self.touches)
        given = table, q, q, q, q, q, 1.0, 0, 0, self._speeds, self.tools, self._rates, *self._apart, *NO_PATH
        like = *arguments[:9], axes.whole[:0], *arguments[10:], *given
        self._solve = partial(ready(servo_step, *like), *arguments)

    def forget(self) -> None:
        """Discard the known stop, as limits have changed."""
        self._stops[0, self._known] = 0.0

    def put(self, places: Places) -> None:
        """Move obstacles to their present places."""
        places.put_into(self._obstacles, self._floats)

    def reset(self, targets: Array, q: Array, *, rests: bool, keeps: bool = False) -> None:
        """Restart with a body that holds its goals at these targets, if it meets them.

        Args:
            targets: The targets, (goals, 17).
            q: Joint values, (nq,).
            rests: Whether the body is at rest.
            keeps: Whether it keeps its known stop.
        """
        self.states[:], self._rates[:] = 0.0, 0.0
        if not keeps:
            self._stops[:] = 0.0
            self._stops[0, : len(q)], self._stops[0, self._known] = q, float(rests)
            self.end[:] = q
        self.states[:, MODE] = HELD_STILL
        self._last[:] = targets

    @property
    def known(self) -> bool:
        """Whether a stop of the whole body is known."""
        return bool(self._stops[0, self._known])

    @property
    def limits_turns(self) -> bool:
        """Whether limits of rotations need a stop of the whole body, as they do with a jerk limit."""
        return self._axes.limits_turns and bool((self._axes.table[:, TOP_JERK] < _ENDLESS).any())

    @property
    def state(self) -> tuple[Array, ...]:
        """Copies of the arrays that a tick changes, without the state of the axes."""
        return tuple(one.copy() for one in self._changing)

    @state.setter
    def state(self, state: tuple[Array, ...]) -> None:
        """Restore a state."""
        for one, value in zip(self._changing, state, strict=True):
            one[:] = value

    def take_over(self, other: TickLevels, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy the known stop, and the states of goals by pairs of their indices now and before."""
        self._stops[:] = other._stops
        for new, old in pairs:
            self.states[new], self._last[new] = other.states[old], other._last[old]

    def step(
        self,
        targets: Array,
        places: tuple[Array, Array],
        aim: tuple[Array, Array],
        out: Array,
        tick: tuple[float, int],
        count: int | None = None,
    ) -> int:
        """Take a tick in which goals keep their priorities; see ``kernels.servo.step``.

        Args:
            targets: Targets, (goals, 17).
            places: Joint values of the robot, (nq,), and commanded joint values, (nq,).
            aim: Wanted joint values, (nq,), of this tick and of the tick before.
            out: Joint values after the tick, (nq,); written.
            tick: Duration, seconds, and flags (STOP, MEETS).
            count: Number of priority levels that apply; None for all.

        Returns:
            The number of linear systems that were solved.
        """
        self._targets[: len(targets)] = targets
        more = self._speeds, self.tools, self._rates, *self._apart, *self.path
        return self._solve(self._targets, *places, *aim, out, *tick, self.count if count is None else count, *more)


def _columns(problem: CompiledProblem, axes: Axes) -> Ints:
    """Return the axis of each column of a problem."""
    blocks = axes.skeleton.tables.variables[:, BLOCK_Q].tolist()
    first = dict(zip(blocks, axes.firsts.tolist(), strict=True))
    columns = np.zeros(problem.reduced.columns, np.int32)
    for block, at, column in problem.reduced.variables[:, [BLOCK, BLOCK_Q, BLOCK_COLUMN]].tolist():
        for k in range(1 if block == SCALAR else 3):
            columns[column + k] = first[at] + k
    return columns


def tied_rows(problem: CompiledProblem) -> int:
    """Return the number of residual rows of loops; these rows come first."""
    loops = table_of(problem.ints, problem.floats, "loops.ints")
    return int(table_of(problem.ints, problem.floats, "levels")[1]) if len(loops) else 0


def _aimed_rows(problem: CompiledProblem, aimed: int) -> Ints:
    """Return the goal of each residual row, -1 if it takes no target or is none of the first ``aimed`` goals."""
    out = goals_of_rows(problem)
    takes = np.array([goal.takes > 0 for goal in problem.goals])
    return np.where((out >= 0) & takes[out] & (out < aimed), out, -1).astype(np.int32)
