"""``IK``: a skeleton, goals and a solver, compiled once and asked many times."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from synovia.arguments import shown
from synovia.batch import (
    Progress,
    Watch,
    checked_threads,
    clear,
    deadline_of,
    has_ended,
    in_lanes,
    new_scratch,
    raise_signal,
    set_deadline,
)
from synovia.errors import InputError
from synovia.goals import Goal
from synovia.ik.branches import list_branches
from synovia.ik.door import Desk, Door, Targets
from synovia.ik.engine import engine_of
from synovia.ik.rows import rows_apart, rows_in_turn
from synovia.ik.solution import HEAD, Solution, mark_cut, rows_of
from synovia.ik.solutions import Solutions, Tracked
from synovia.ik.starts import Start, Starts, as_start, joints_beyond, start_rows
from synovia.ik.tolerance import checked_tolerance
from synovia.ik.track import tracked
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import inside_limits
from synovia.model.root import Root, as_root
from synovia.problem import pack, reduce
from synovia.solver import Solver, SolverName, as_solver

_JOINTS = 100  # of a body up to which the work that a solve may be is the same; a larger one may take longer
_empty = np.empty  # one look-up less in each call


class IK:
    """A skeleton with goals and a solver, packed for the kernels. Safe to use from several threads.

    Args:
        skeleton: The skeleton.
        goals: One goal or several.
        solver: Settings such as ``LevenbergMarquardt()``, a solver's name, or None for the default.
        tolerance: (position in length units, angle in radians) within which a goal is reached; None for 1e-4 of the
            reach and 1e-3 rad.
        root: ``"fixed"`` keeps a free root where the start has it; ``"free"`` lets it move, and puts a free joint
            before a skeleton that has none (``ik.skeleton`` is then that one). Axes such as ``"xy"``, ``"x,y,yaw"`` or
            ``("x", "yaw")`` let it slide along and turn about those of the world alone (x, y, z, roll, pitch, yaw).

    Raises:
        InputError: If a goal or setting cannot be used.
        UnknownNameError: If a joint or the solver does not exist.
        UnsupportedError: If the solver cannot honour a goal, or is not made for these joints.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        goals: Goal | Iterable[Goal],
        solver: Solver | SolverName | None = None,
        *,
        tolerance: tuple[float, float] | None = None,
        root: Root = "fixed",
    ) -> None:
        """Pack the problem, and load or compile the kernel."""
        if not isinstance(skeleton, Skeleton):
            raise InputError("skeleton is no skeleton", value=skeleton, expected="for example sy.load_skeleton(path)")
        root = as_root(root)
        if isinstance(goals, str):  # it would come apart into letters
            raise InputError("a goal is no goal", value=goals, expected="for example PositionGoal(joint, position)")
        self.goals: tuple[Goal, ...] = tuple(goals) if isinstance(goals, Iterable) else (goals,)
        for goal in self.goals:
            if not isinstance(goal, Goal):
                raise InputError("a goal is no goal", value=goal, expected="for example PositionGoal(joint, position)")
            if not hasattr(goal, "priority"):
                raise InputError(
                    "a goal is not set up", value=type(goal), hint="its __init__ must call super().__init__()"
                )
        if not self.goals:
            raise InputError("there are no goals", expected="at least one")
        self.solver = as_solver(solver)
        self.solver.check(self.goals)
        self.goals = tuple(goal.resolved(skeleton) for goal in self.goals)
        self._given = skeleton
        self.skeleton = skeleton if root == "fixed" else skeleton.with_root(root)
        self.root = root
        before = len(self.skeleton) - len(skeleton)  # rows that were put before the skeleton's own
        self.hangs: tuple[tuple[int, ...], ...] = tuple(
            tuple(skeleton.index(joint) + before for joint in goal.joints) for goal in self.goals
        )
        whole = reduce(self.skeleton, self.goals, self.hangs, free_root=root == "free", before=before)
        self._reduced = reduced = self.solver.narrow(whole, self.skeleton, self.goals, self.hangs)
        self.moving = reduced.moving  # rows of ``skeleton`` that the solver may move: the others stay as they are
        self.reach = reduced.reach
        self.tolerance = checked_tolerance(tolerance, self.reach)
        self._ints, self._floats = pack(
            self.skeleton,
            reduced,
            tolerance=self.tolerance,
            max_steps=self.solver.max_steps,
            attempts=self.solver.attempts,
            seed=self.solver.seed,
            patience=self.solver.progress[0],
            most_work=self.solver.most_work * max(1.0, len(reduced.rows) / _JOINTS),
            own=self.solver.own(),
        )
        from synovia.kernels.compiler.direct import ready
        from synovia.kernels.tree.problem import work_size

        self._kernel, self._judge = engine_of(self.skeleton, self.goals, reduced, self.solver)
        self._scratch_size = work_size(self._ints, self.solver.spare(reduced.residuals, reduced.columns))
        self._door = Door(self.skeleton, self.goals, self.rows)
        self.default_start = self.skeleton.rest_pose()
        self._rest = self.default_start.q.copy().reshape(1, -1)
        self._shape = rows_of(self, 1).shape
        self.places = slice(HEAD, HEAD + self.skeleton.nq)  # of the joint values in a row of the answer
        desk = self._door.desk(new_scratch(self._scratch_size))
        self._idle: list[Desk] = [desk]
        none = (self._ints, self._floats, desk.table[:0], self._rest, rows_of(self, 0), desk.scratch, False, 0)
        self._call = ready(self._kernel, *none)  # for arrays of our own making

    @property
    def rows(self) -> tuple[int, ...]:
        """Joint of each goal, a row of ``skeleton``; -1 for goals of the whole body."""
        return tuple(rows[0] if rows else -1 for rows in self.hangs)

    def __repr__(self) -> str:
        """Return the skeleton, the goals, the solver and what differs from the defaults."""
        goals = repr(self.goals[0]) if len(self.goals) == 1 else shown(self.goals)
        root = "" if self.root == "fixed" else f", root={self.root!r}"
        return f"IK({self._given.name!r}, {goals}, {self.solver!r}{root})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by what it was built from: scratch memory and compiled code stay behind."""
        from synovia.ik.once import rebuild

        return rebuild, (self._given, self.goals, self.solver, self.tolerance, self.root)

    def solve(
        self, targets: Targets | None = None, start: Start | None = None, deadline: float | None = None
    ) -> Solution:
        """Return the pose that meets the goals, or the best that was met, and how far it got.

        Args:
            targets: New targets by joint or goal name: a position (3,), a ``Rotation``, a pair of both, or a 4x4
                transform. Goals without one keep their own; without that they stay where the start is.
            start: Pose to start from, or joint values (nq,); the rest pose without.
            deadline: Seconds after which the best pose so far comes back, as a miss with status ``MAX_STEPS`` unless it
                reaches the goals; ``solution.interrupted`` tells. A kernel's first use is loaded or compiled whole:
                ``warm()`` does that ahead.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a target belongs to no goal.
        """
        first = self._rest
        if start is not None:
            if type(start) is not Pose or start.skeleton is not self.skeleton:
                start = Pose.quick(self.skeleton, start) or self._as_start(start)
            first = start.ready
            if first is None:
                first = start.inside
        try:
            desk = self._idle.pop()  # atomic, so two threads never share a desk
        except IndexError:
            desk = self._door.desk(new_scratch(self._scratch_size))
        try:
            if deadline is not None:
                set_deadline(desk.scratch, deadline)
            self._door.fill(targets, desk)
            row = _empty(self._shape)
            code = self._call(self._ints, self._floats, desk.table, first, row, desk.scratch, False, 0)
            if code < 0:
                self._door.refuse(code, targets)
            if code & 1:
                self._conclude(first, row, desk.scratch)
        finally:
            if deadline is not None:
                clear(desk.scratch)
            self._idle.append(desk)
        return Solution(self, row, start)

    branches = list_branches

    def warm(self) -> None:
        """Load or compile also what only a miss needs, ahead of the first."""
        self._conclude(self._rest, rows_of(self, 0), new_scratch(self._scratch_size))

    def _conclude(self, starts: Array, rows: Array, scratch: Array, searches: bool = True) -> None:
        """Settle rows that missed, given where each or all of them started, and tell why; or that they were cut short.

        With ``searches`` a better pose may be anywhere; a track that has begun goes on from where it is.

        Raises:
            BaseException: What the handler of a signal has raised meanwhile.
        """
        if not has_ended(scratch):
            self._judge(self._ints, self._floats, starts, rows, scratch, searches)
        if has_ended(scratch):
            mark_cut(rows)
            raise_signal(scratch)

    def solve_many(
        self,
        targets: Targets,
        starts: Starts | None = None,
        *,
        threads: int | None = None,
        lanes: bool | str = False,
        progress: Progress | None = None,
        deadline: float | None = None,
    ) -> Solutions:
        """Return the answers of many problems: the same bits as ``solve`` one by one, on all cores.

        Args:
            targets: By joint or goal name, with a leading axis of length B: (B, 3), a ``Rotation`` of B, a pair,
                or (B, 4, 4).
            starts: One pose for all, or joint values (B, nq); the rest pose without.
            threads: Number of threads; all cores without.
            lanes: True solves the problems of an arm (lm, dls) or of a plain chain of balls (fabrik) in lockstep,
                ``"single"`` in single precision: several times as fast; each answer is verified in double precision,
                but the bits are not those of ``solve``.
            progress: Called after each block of problems with (problems done, all).
            deadline: Seconds after which all problems end, as in ``solve``; those not begun stay at their starts, with
                their errors measured.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a target belongs to no goal.
            UnsupportedError: If there are no lanes for this problem.
        """
        workers = checked_threads(threads)
        watch = Watch(deadline_of(deadline))
        kernel = self._kernel
        if lanes is not False:
            room = self.solver.lane_room(self._reduced)
            kernel = in_lanes(lanes, self.solver.lanes(self._reduced), kernel, self.solver.name, room)
        table = self._door.table_of_many(targets)
        given = self._start_rows(starts, len(table))
        first = inside_limits(self.skeleton, given)
        rows = rows_apart(
            self,
            table,
            first,
            progress,
            targets=targets,
            threads=workers,
            watch=watch,
            kernel=kernel,
            lanes=lanes is not False,
        )
        return Solutions(self, rows, given)

    def errors_after(self, steps: int, targets: Targets | None = None, starts: Starts | None = None) -> Array:
        """Return errors (B, goals, 2) when the first attempt is stopped after so many steps: position, angle (radians).

        Asked for one number of steps after the other it shows how a solver converges. Nothing is given up, restarted or
        settled on the way.

        Args:
            steps: Steps, a whole number from 0 for the errors at the start.
            targets: As in ``solve_many``; one problem with the goals' own targets without.
            starts: As in ``solve_many``.

        Raises:
            InputError: If a value cannot be used.
        """
        from synovia.kernels.tree.problem import ATTEMPTS, MAX_STEPS, MOST_WORK, PATIENCE

        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or not 0 <= steps <= 1_000_000:
            raise InputError("steps is out of range", value=steps, expected="a whole number from 0 to 1e+06")
        table = self._door.own_table() if targets is None else self._door.table_of_many(targets)
        first = inside_limits(self.skeleton, self._start_rows(starts, len(table)))
        out = rows_of(self, len(table))
        ints = self._ints.copy()
        ints[[MAX_STEPS, ATTEMPTS, PATIENCE]] = steps, 1, steps + 1
        floats = self._floats.copy()
        floats[MOST_WORK] = np.inf
        scratch = new_scratch(self._scratch_size)
        with Watch().over(scratch):
            code = self._kernel(ints, floats, table, first, out, scratch, False, 0)
        if code < 0:
            self._door.refuse(code, targets)
        return Solutions(self, out, first).errors

    def track(
        self,
        targets: Targets,
        start: Start | None = None,
        *,
        fps: float = 30.0,
        warm: bool = True,
        starts: int = 1,
        both_ways: bool = False,
        smoothness: float = 0.0,
        velocity: Any = None,
        threads: int | None = None,
        progress: Progress | None = None,
        deadline: float | None = None,
    ) -> Tracked:
        """Return the answers of targets over time, each frame started from the one before.

        A frame may take the steps of ten attempts from there. One that misses is restarted elsewhere; only an answer
        that reaches counts, and is listed in ``jumps``. So is a large step of a closed form to another branch, and of
        any solver a joint that turns by far more than the motion of its targets explains.

        Args:
            targets: As in ``solve_many``, B being the frames.
            start: Pose before the first frame; the rest pose without.
            fps: Frames per second, for the motion that comes out.
            warm: Whether a frame starts from the one before; otherwise each starts from ``start``.
            starts: Poses to begin from, random ones after ``start``; of all tracks the path that moves least is taken.
            both_ways: Whether the clip is also tracked from its end, for the best path through both.
            smoothness: Seconds; motion quicker than that is taken out, also where goals are then missed by a little.
            velocity: Highest velocity of all joints, or by joint: radians or length units per second.
            threads: Number of threads for several starts, and without ``warm``; all cores without. Same bits.
            progress: Called with (frames done, all), those of all tracks; never twice at once, but from any thread.
            deadline: Seconds after which the track ends, as in ``solve``: frames not begun hold the last pose, and what
                would look at all frames (several starts, smoothness, jumps of a closed form) is left out.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a target belongs to no goal.
            UnsupportedError: If a goal that is no place or rotation is to be smoothed or slowed.
        """
        table = self._door.table_of_many(targets)
        pose = self.default_start if start is None else self._as_start(start)
        workers = checked_threads(threads)
        watch = Watch(deadline_of(deadline))
        if warm:
            follow = partial(rows_in_turn, targets=targets, watch=watch)
        else:
            follow = partial(rows_apart, targets=targets, threads=workers, watch=watch)
        return tracked(
            self, table, pose, follow, fps, starts, both_ways, smoothness, velocity, workers, progress, watch
        )

    def _as_start(self, start: Any) -> Pose:
        """Return a start as a pose of the skeleton that is solved."""
        return as_start(start, self.skeleton, self._given)

    def _start_rows(self, starts: Any, count: int) -> Array:
        """Return the starts of many problems."""
        return self._rest if starts is None else start_rows(starts, count, self.skeleton, self._given)

    def outside(self, start: Pose) -> tuple[str, ...]:
        """Return the joints that a start (a pose of this skeleton) has outside their limits."""
        return joints_beyond(self.skeleton, start, 1e-9)

    def at_limits(self, pose: Pose) -> tuple[str, ...]:
        """Return the joints that a pose has at a limit (within 1e-6)."""
        return joints_beyond(self.skeleton, pose, -1e-6)
