"""The compiled problem: a skeleton, goals and a solver, packed once for a kernel that is called many times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, Self, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import ChecksArguments, Progress, check_kind, checked_joints, completed, shown
from synovia.compiling import compile_with_next
from synovia.errors import InputError, SynoviaError, UnknownNameError, UnsupportedError, restated
from synovia.goals import Goal, PoseGoal, PositionGoal
from synovia.goals.base import GoalList
from synovia.ik.clear_branches import ClearBranches, Listed
from synovia.ik.completeness import Limits, has_all, has_rank
from synovia.ik.engine import engine_of
from synovia.ik.interrupts import has_ended, new_scratch, raise_signal
from synovia.ik.obstacles import Obstacles, Places
from synovia.ik.parallel import Batch, Packed, Workers, run_rows
from synovia.ik.starts import Learnable, LearnedStarts
from synovia.ik.status import Status, mark_interrupted
from synovia.ik.targets import Targets, TargetWriter, Workspace, regular_rows, shape_of
from synovia.kernels.branches.memory import COMPLETE, INFO_WIDTH, MOST_ROOTS, NOISE, SPLITS, TRIED, UNDECIDED
from synovia.kernels.layout import (
    ATTEMPTS,
    BLOCK,
    BLOCK_Q,
    BRANCHES,
    COLD,
    COST,
    IS_ANGLE,
    LARGEST_MOVE,
    LIST,
    MAX_STEPS,
    MISSED,
    OUT_HEAD,
    PATIENCE,
    SCALAR,
    STATUS,
    TRANSFORM_WIDTH,
    TURN,
    WINNER,
    WORK_SIZE,
)
from synovia.kernels.layout import STARTS as TABLE_STARTS
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, Bools, as_numbers, dimensions, rotation_between
from synovia.model.pose import as_values, checked_q, inside_limits, refused_rows
from synovia.model.root import Root, as_root, with_root_at_rest
from synovia.model.skeleton import JointValues, Numbers
from synovia.model.tables import Ints, writable
from synovia.options import MOVING, ROOT, STARTS, TOLERANCE
from synovia.problem import Bends, find_bends, hold_all_but, pack, reduce, table_of
from synovia.problem.bends import BENT, SIZES
from synovia.problem.structure import allowed_rows, is_locked
from synovia.solver import Hinges, Segments, SixJoints, Solver, SolverName, as_solver, method_of
from synovia.solver.base import Kernel
from synovia.solver.segments import structure_of

Start = Pose | Literal["rest"] | Numbers | JointValues
Starts = Start | Sequence[Sequence[float]]  # one start for all problems, or (B, nq)
_empty = np.empty  # saves an attribute lookup in each call
# factor of the work limit with clearance goals, since attempts, search and polish may each use all of it
_CLEAR_WORK: Final = 0.3
_JOINTS: Final = 100  # number of joints; for more joints, the work limit grows in proportion to their number
_BETTER: Final = 0.01  # a solution from a bent start is used if its share of correct bending is larger by this
_NO_WORSE: Final = 1.001  # largest factor by which the cost of a miss may grow for correct bending
_TOLERANCE: Final = (1e-4, 1e-3)  # default: fraction of the length scale for positions, radians for angles
_ROUNDING: Final = 1e-9  # radians or length units: rounding error of a pose that a solve with bounded motion returned
# size of the table of candidate branches, in joint values
_MOST_CANDIDATES: Final = next(int(table.shape[0]) for table in BRANCHES if table.name == "candidates")
# The elimination splits a chain of six joints; the splits with the lowest cost on random poses are used. A random pose
# costs 1 if the list of branches has it without a proof that the list is complete, and more if the list lacks it.
_TRIALS, _FEW = 8, 2  # number of random poses; the first ``_FEW`` of them try all splits, the others only the best
_SAME: Final = 1e-4  # radians or length units: a branch within this distance of a pose is equal to it
_LOST, _UNDECIDED = 5.0, 0.05  # cost of a pose that the list lacks; cost of an undecided interval
_NOISE, _SMALLEST = 0.02, 1e-17  # cost per factor of 10 in numerical noise; smaller noise than this costs nothing
_GOAL: Final = "for example PositionGoal(joint, position)"


class Diagnosis(Protocol):
    """Explains solutions. A higher layer implements this protocol, and the facade passes the object down."""

    def explain(self, solution: Any, /) -> list[str]:
        """Return the sentences of ``Solution.explain``."""
        ...

    def find_reasons(self, solution: Any, /) -> tuple[Any, ...]:
        """Return the reasons of ``Solution.reasons``."""
        ...

    def find_conflict(self, solution: Any, watch: Any, /) -> Any:
        """Return the conflict of ``Solution.find_conflict``."""
        ...

    def unit_hint(self, solution: Any, /) -> str | None:
        """Return a hint if targets seem to be in centimetres or millimetres and the model in metres; else None."""
        ...


class HoldsProblem(Protocol):
    """An ``IK``, which is defined in a higher layer."""

    problem: CompiledProblem


class Options(TypedDict, total=False):
    """Options of a problem, with their defaults; ``IK`` describes them."""

    tolerance: Annotated[tuple[float, float] | None, TOLERANCE]
    root: Annotated[Root, ROOT]
    starts: Annotated[LearnedStarts | None, STARTS]
    moving: Annotated[Iterable[str | int] | None, MOVING]
    proofs: Annotated[bool, False]


class CompiledProblem(ChecksArguments):
    """A skeleton with goals and a solver, packed for the kernels; an ``IK`` holds one.

    Attributes:
        given: The user's skeleton, without the joints that ``root`` adds.
        skeleton: The solved skeleton, with the joints that ``root`` adds.
        root: How the root moves, in the form that ``as_root`` returns.
        goals: The goals, completed by values that depend on the skeleton.
        goal_joints: All joints of each goal as rows of ``skeleton``, the goal's own joint first; for a site, its parent
            joint.
        solver: The settings.
        method: The settings whose kernels solve the problem: ``solver``, or the solver that ``Solver.in_levels``
            returns.
        reduced: The part of the problem that the solver may move.
        allowed: The joints that the option ``moving`` names, as the user named them; None for all.
        moving: Rows of ``skeleton`` that the solver may move; the other joints keep their start values.
        reach: Length scale of solvers and tolerances, length units.
        tolerance: (position in length units, angle in radians) within which a goal is met.
        ints: Integers of the packed problem.
        floats: Floats of the packed problem.
        starts: Learned starts of this problem; None without.
        proofs: Whether a solve that misses searches for a proof.
        begun: Integers and floats of the packed problem with learned starts, for solves without a start; None without.
        moves: Largest move of each variable of the skeleton in one solve, radians or length units; None for no bound.
        kernel: Entry point of the solver kernel.
        clear_branches: Kernels of a closed form with clearance goals; None without.
        call: ``kernel``, already specialized for these array types, so that a call does not dispatch on types.
        scratch_size: Scratch memory of one call, in float64.
        writer: Writes targets into the table that a kernel reads.
        obstacles: The obstacles of clearance goals; None without any.
        obstacle_places: Places of moved obstacles in each problem or frame; None if all stand where the goals place
            them.
        idle: Workspaces that are free for the next calls.
        default_start: The rest pose.
        rest: Joint values of the rest pose, (1, nq).
        places: Columns of the joint values in a row of the result.
        row_shape: Shape of the result of one problem.
        split_cost: Cost of the best split of a chain of six joints, lowest if it proves all branches; 0 for closed
            forms.
        bent: Sine of the angle between the bones of a limb above which its bending side is checked, (1,).
    """

    diagnosis: ClassVar[Diagnosis]
    bent: Array = BENT
    split_cost: float = 0.0

    def __init__(
        self,
        skeleton: Skeleton,
        goals: Goal | Iterable[Goal],
        solver: Solver | SolverName | None = None,
        *,
        reach: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Pack the problem, and load or compile the kernel; ``reach`` replaces the length scale."""
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
        chosen = completed(Options, options, "IK")
        tolerance, starts, moving, root = chosen.tolerance, chosen.starts, chosen.moving, as_root(chosen.root)
        if not isinstance(chosen.proofs, bool):
            raise InputError("proofs", value=chosen.proofs, expected="True or False")
        self.proofs = chosen.proofs
        self.goals: tuple[Goal, ...] = _checked_goals(goals)
        self.solver = as_solver(solver, self.goals)
        self.solver.check(self.goals)
        asked = self.goals
        self.given = skeleton
        self.skeleton = skeleton if root == "fixed" else skeleton.with_root(root)
        self.root = root
        try:
            located = [self.solver.resolved(goal, skeleton).located(skeleton) for goal in self.goals]
        except UnknownNameError as error:
            added = self.skeleton.joint_names[: len(self.skeleton) - len(skeleton)]
            if not any(error.what.startswith(f"no joint named {name!r}") for name in added):
                raise
            hint = f"root= adds it after the goals are read; pass skeleton.with_root({root!r}) in place of root="
            raise UnknownNameError(error.what, hint=hint) from None
        self.goals = tuple(goal for goal, _ in located)
        # number of joints that the root adds before those of the user's skeleton
        before = len(self.skeleton) - len(skeleton)
        self.goal_joints: tuple[tuple[int, ...], ...] = tuple(
            tuple(row + before for row in rows) for _, rows in located
        )
        for goal, rows in zip(self.goals, self.goal_joints, strict=True):
            if len(set(rows)) < len(rows):
                names = [self.skeleton.joint_names[row] for row in rows]
                raise InputError("joints", where=f"goal {goal.label!r}", value=names, expected="different joints")
        whole = reduce(self.skeleton, self.goals, self.goal_joints, free_root=root == "free", before=before)
        if reach is not None:
            whole = replace(whole, reach=reach)
        moving = goals.moving if moving is None and isinstance(goals, GoalList) else moving
        self.allowed = None if moving is None else checked_joints(moving)
        if self.allowed is not None:
            rows = allowed_rows(self.skeleton, skeleton, self.allowed)
            whole = hold_all_but(
                self.skeleton, whole, [k for k, row in enumerate(whole.joints.tolist()) if row in rows]
            )
        self.method = method_of(self.solver, asked, whole.loops is not None)
        stands_in = self.solver.closed and not self.method.closed
        others = [goal for goal in asked if goal.needs != "clearance"]
        plain = None
        if stands_in:
            plain = CompiledProblem(skeleton, others, self.solver, tolerance=tolerance, root=root, moving=moving)
        if plain is None:
            reduced = self.solver.restrict(whole, self.skeleton, self.goals, self.goal_joints)
        else:
            moved = [row for row, joint in enumerate(whole.joints.tolist()) if joint in plain.moving]
            reduced = hold_all_but(self.skeleton, whole, moved)
        self.reduced = reduced
        self.moving = reduced.moving
        self.reach = reduced.reach
        self.tolerance = checked_tolerance(tolerance, self.reach)
        self.moves = self.solver.largest_moves(self.skeleton, self.reach)
        moves = None if self.moves is None else self._solved_moves(self.moves)
        least = {} if moves is None else {LARGEST_MOVE: float(moves.min(initial=math.inf))}
        packed = partial(
            pack,
            self.skeleton,
            reduced,
            tolerance=self.tolerance,
            **self.method.search._asdict(),
            patience=self.method.progress[0],
            most_work=self.solver.most_work
            * max(1.0, len(reduced.rows) / _JOINTS)
            * (_CLEAR_WORK if len(others) < len(asked) else 1.0),
            params=self.method.params() | least,
            moves=moves,
            solver_scratch=self.method.extra_scratch(reduced.residuals, reduced.columns),
        )
        self.ints, self.floats = packed()
        from synovia.kernels.compiler.jit import ready

        params = table_of(self.ints, self.floats, "params")
        compile_with_next(self.method.kernel(reduced), self.method.miss_kernel)
        self.kernel, self._miss_kernel = engine_of(self.skeleton, self.goals, reduced, self.method, params)
        self.starts = starts
        self.begun: tuple[Ints, Array] | None = None
        if starts is not None:
            self.begun = packed(learned=self._fitting(starts))
            table_of(*self.begun, "params")[...] = params
        self.clear_branches: ClearBranches | None = None
        if plain is not None:
            call, shape = plain.branch_call
            limits = plain.listing
            listed = Listed(
                call,
                plain.ints,
                limits.floats,
                shape,
                plain.scratch_size,
                plain.proves_branches,
                limits.clamp,
                plain.has_all_branches,
            )
            self.clear_branches = ClearBranches(listed, self.goals, self.kernel, self.skeleton.nq)
            self.kernel = self.clear_branches.solve
        self.scratch_size = int(self.ints[WORK_SIZE])
        self.writer = TargetWriter(self.skeleton, self.goals, self.rows)
        avoid = any(goal.takes_world and getattr(goal, "world", None) is not None for goal in self.goals)
        self.obstacles = Obstacles(self.goals, self.ints, self.floats, reduced) if avoid else None
        self.obstacle_places: Places | None = None
        self.default_start = self.skeleton.rest_pose()
        self.rest = self.default_start.q.copy().reshape(1, -1)
        self.places = slice(OUT_HEAD, OUT_HEAD + self.skeleton.nq)
        self.row_shape = (1, self.places.stop + (2 + TRANSFORM_WIDTH) * len(self.goals))
        workspace = self.new_workspace()
        self.idle: list[Workspace] = [workspace]
        none = (self.ints, self.floats, workspace.table[:0], self.rest, self.new_rows(0), workspace.scratch, COLD, 0)
        self.call = ready(self.kernel, *none)
        if reduced.path is not None:
            self.call = _refuse_one  # a rest goal with a reference for each frame can only be solved in a track

    def _fitting(self, starts: LearnedStarts) -> tuple[dict[int, int], dict[str, Array]]:
        """Return the header integers and the tables that learned starts add to the packed problem.

        Raises:
            InputError: If the starts were learned for another problem.
            UnsupportedError: If the solver cannot use learned starts.
        """
        check_kind("starts", starts, LearnedStarts, "sy.formats.load_starts(path) reads them")
        if self.solver.closed:
            raise UnsupportedError(
                f"{self.solver.name} is a closed form, which uses no start",
                where="starts",
                expected="a general solver, such as 'lm'",
            )
        starts.problem.require(Learnable.of(self.skeleton, self.goals, self.reduced))
        return starts.numbers(), starts.tables()

    @property
    def has_reasons(self) -> bool:
        """Whether reasons of a miss can be found: full-body can solve variations of the problem with these joints."""
        return self.method.supports_priorities and not self.solver.closed

    @property
    def rows(self) -> tuple[int, ...]:
        """Row in ``skeleton`` of the joint of each goal; -1 for goals of the whole body."""
        return tuple(rows[0] if rows else -1 for rows in self.goal_joints)

    def __repr__(self) -> str:
        """Return the call that creates the problem: skeleton, goals, solver, and the root if it is not fixed."""
        goals = repr(self.goals[0]) if len(self.goals) == 1 else shown(self.goals)
        root = "" if self.root == "fixed" else f", root={self.root!r}"
        root += "" if self.allowed is None else f", moving={list(self.allowed)!r}"
        return f"IK({self.given.name!r}, {goals}, {self.solver!r}{root})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the arguments, without scratch memory and compiled code."""
        make = partial(
            type(self), tolerance=self.tolerance, root=self.root, starts=self.starts, moving=self.allowed,
            proofs=self.proofs,
        )  # fmt: skip
        values = self.given, self.goals, self.solver
        bent = None if self.bent is BENT else self.bent
        return _again, (make, values, bent, None if self.obstacle_places is None else self.obstacle_places.moved)

    def with_solver(self, solver: Solver) -> Self:
        """Return the same problem with another solver, or with other settings of the solver."""
        starts = None if solver.closed else self.starts
        new = type(self)(
            self.given, self.goals, solver,
            tolerance=self.tolerance, root=self.root, starts=starts, moving=self.allowed, proofs=self.proofs,
        )  # fmt: skip
        return new.with_obstacle_places(self.obstacle_places).bending_from(self.bent)

    def bending_from(self, sine: Array) -> Self:
        """Return a copy of the problem with another value of ``bent``; the copy shares all other values."""
        if sine is self.bent:
            return self
        new = self._copy()
        new.bent = sine
        return new

    def with_parts(
        self,
        goals: Iterable[Goal] | None = None,
        solver: Solver | None = None,
        *,
        skeleton: Skeleton | None = None,
        tolerance: tuple[float, float] | None = None,
        reach: float | None = None,
    ) -> Self:
        """Return a problem with the same root and moving joints but with other parts, without learned starts.

        Args:
            goals: Other goals; None for the goals of this problem.
            solver: Other settings; None for the default of the goals.
            skeleton: Another skeleton with the same joints, without those that ``root`` adds.
            tolerance: Another tolerance; None for the default.
            reach: Another length scale; None for the length scale of the skeleton.
        """
        goals = self.goals if goals is None else goals
        given = self.given if skeleton is None else skeleton
        return type(self)(given, goals, solver, reach=reach, tolerance=tolerance, root=self.root, moving=self.allowed)

    def with_obstacles_at(self, places: Places, b: int = 0) -> Self:
        """Return a copy with the obstacles at their places in problem b; the copy shares all other values."""
        new = self._copy()
        new.floats = self.floats.copy()
        places.put(new.floats, b)
        new.goals, new.obstacle_places = places.goals(self.goals, b), None
        return new

    def with_obstacle_places(self, places: Places | None) -> Self:
        """Return a copy with obstacle places for each problem or frame of a batch; the copy shares all other values."""
        if places is None or self.obstacles is None:
            return self
        new = self._copy()
        new.obstacle_places = places.of(self.obstacles)
        return new

    def _copy(self) -> Self:
        """Return a copy that shares all values."""
        _ = self.bends  # computed and cached before the copy, so that the copy does not compute it
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    @cached_property
    def unproved(self) -> Self:
        """The same problem without proofs."""
        new = self._copy()
        new.proofs = False
        return new

    def single(self, b: int) -> Self:
        """Return the single problem of row b of a batch or track, with its obstacles at their places in row b."""
        return self if self.obstacle_places is None else self.with_obstacles_at(self.obstacle_places, b)

    def read_obstacles(self, targets: Any) -> tuple[Self, Any]:
        """Read the obstacle places in the targets of one problem.

        Returns:
            The problem with obstacles at these places, and the other targets.

        Raises:
            InputError: If a place cannot be used.
            UnknownNameError: If there is no obstacle of a name.
        """
        found = None if self.obstacles is None else self.obstacles.read(targets)
        return (self, targets) if found is None else (self.with_obstacles_at(found[1]), found[0])

    def read_many(self, targets: Any) -> tuple[Self, Any, Array, Bools]:
        """Read the targets of a batch of problems, including obstacle places.

        Returns:
            The problem, with obstacle places if targets give them; the other targets; their table (B, goals, 17); and a
            mask (B,) of problems whose targets cannot be used.

        Raises:
            InputError: If no row of the targets has a usable form, or the targets of two goals differ in length.
            UnknownNameError: If there is no obstacle of a name.
        """
        found = None if self.obstacles is None else self.obstacles.read_many(targets)
        if found is None:
            return self, targets, *self.writer.read_many(targets)
        others, places, odd = found
        if places is None or odd is None:
            return self, others, *self.writer.read_many(others)
        table = np.repeat(self.writer.own, len(places), axis=0)
        if others:
            table, wrong = self.writer.read_many(others)
            if len(table) != len(places):
                lengths = {"obstacles": len(places), "others": len(table)}
                raise InputError("lengths of targets", value=lengths, expected="the same for all")
            odd = odd | wrong
        return self.with_obstacle_places(places), others, table, odd

    def table_of_many(self, targets: Any) -> tuple[Self, Any, Array]:
        """Read the targets of a batch of problems as ``read_many`` does, and raise an error for unusable ones.

        Raises:
            InputError: If a target cannot be used; the message names its row.
            UnknownNameError: If there is no obstacle of a name.
        """
        ik, others, table, odd = self.read_many(targets)
        if odd.any():
            raise self.error_of_targets(int(np.argmax(odd)), 0, targets, others)
        return ik, others, table

    def error_of_targets(self, b: int, goal: int, targets: Any, others: Any) -> SynoviaError:
        """Return the error for problem b of a batch: about its obstacle places if unusable, else a goal's target."""
        error = None if self.obstacles is None else self.obstacles.error_of(targets, b)
        return error or self.writer.error_of(b, goal, others, many=True)

    def new_workspace(self) -> Workspace:
        """Return new memory for one call at a time."""
        return self.writer.workspace(new_scratch(self.scratch_size))

    def new_rows(self, count: int) -> Array:
        """Return an empty table of results; a row has head, joint values, two errors and target (16,) per goal."""
        return np.empty((count, self.row_shape[1]))

    def targets_in(self, rows: Array) -> Array:
        """Return the targets of the goals from the rows of results, (T, goals, 16)."""
        return rows[:, self.places.stop + 2 * len(self.goals) :].reshape(len(rows), len(self.goals), TRANSFORM_WIDTH)

    def errors_in(self, rows: Array) -> Array:
        """Return the errors of the goals from the rows of results, (T, goals, 2): lengths and angles."""
        at, count = self.places.stop, len(self.goals)
        return rows[:, at : at + 2 * count].reshape(len(rows), count, 2)

    def polish_misses(
        self, starts: Array, rows: Array, scratch: Array, searches: bool = True, floats: Array | None = None
    ) -> None:
        """Polish the rows that miss a goal and write their status; rows of stopped solves are marked as interrupted.

        Args:
            starts: Start of each row, or one start for all.
            rows: Results; changed in place.
            scratch: Scratch memory of the kernel that wrote the rows.
            searches: Whether to search globally for a better pose; a frame of a track must stay near the last frame.
            floats: Floats that replace those of the problem.

        Raises:
            BaseException: The exception of a signal handler that ran during the call.
        """
        if not has_ended(scratch):
            numbers = self.floats if floats is None else floats
            self._miss_kernel(self.ints, numbers, starts, rows, scratch, searches)
        if has_ended(scratch):
            mark_interrupted(rows)
            raise_signal(scratch)

    def packed(self, *, learned: bool = False) -> tuple[Ints, Array]:
        """Return the integers and floats of the packed problem; with ``learned``, with learned starts if any."""
        return self.begun if learned and self.begun is not None else (self.ints, self.floats)

    def bend_one(self, workspace: Workspace, start: Array, row: Array, *, follow: bool) -> None:
        """Solve again from a bent start if a limb that was straight at the start has bent to the wrong side."""

        def once(starts: Array, _: object) -> Array:
            out = _empty(self.row_shape)
            code = self.call(self.one_attempt, self.floats, workspace.table, starts, out, workspace.scratch, COLD, 0)
            if code & MISSED:
                self.polish_misses(starts, out, workspace.scratch, not follow)
            return out

        self.bend_well(start, row, once)

    def listed(self, targets: Targets | None, first: Array) -> tuple[Array, Array | None]:
        """Return a row of results for each branch, (b, n), and the table of targets if the list may be complete.

        The table is None if the list may lack branches; else ``has_all_branches`` decides. The start ``first``,
        (1, nq), must be within the limits.

        Raises:
            UnsupportedError: If the solver lists no branches.
        """
        kernel, shape = self.branch_call
        try:
            workspace = self.idle.pop()
        except IndexError:
            workspace = self.new_workspace()
        try:
            self.writer.fill(targets, workspace)
            out = _empty(shape)
            table, scratch = workspace.table, workspace.scratch
            floats = self.floats if self.clear_branches else self.listing.floats
            count = kernel(self.ints, floats, table, first, out, scratch, COLD, LIST)
            if count < 0:
                again = partial(kernel, self.ints, floats, table, first, out, scratch, COLD, LIST)
                count = self.checked_call(again, table, targets)
            proved = bool(out[-1, 0]) if self.clear_branches else self.proves_branches(scratch)
            asked = table.copy() if proved else None
        finally:
            self.idle.append(workspace)
        return (out[:count] if self.clear_branches else self.listing.clamp(out[:count])), asked

    @cached_property
    def listing(self) -> Limits:
        """The limits for listing branches; ``branch_call`` must be computed first."""
        return Limits(self, slack=not isinstance(self.solver, SixJoints))

    @cached_property
    def has_rank(self) -> bool:
        """Whether the chain has regular poses."""
        return has_rank(self, self.listing)

    def has_all_branches(self, table: Array, first: Array) -> bool:
        """Return whether the list for this table of targets and this start has all branches within the limits."""
        if self.clear_branches:
            return self.clear_branches.has_all(table, first)
        if not self.has_rank:
            return False
        kernel, shape = self.branch_call
        workspace = self.new_workspace()
        found: list[Array] = []
        for floats in (self.listing.floats, self.listing.free):
            out = np.empty(shape)
            count = kernel(self.ints, floats, table, first, out, workspace.scratch, COLD, LIST)
            if count < 0 or not self.proves_branches(workspace.scratch):
                return False
            if not self.solver.confirms_branches(self.solver_memory(workspace.scratch)):
                return False
            found.append(out[:count])
        return has_all(self, self.listing, *found)

    def solver_memory(self, scratch: Array) -> Array:
        """Return the solver's own part of scratch memory, and what follows."""
        return scratch[int(self.ints[TABLE_STARTS["work.solver_scratch"]]) :]

    def proves_branches(self, scratch: Array) -> bool:
        """Return whether a kernel with this scratch memory listed all branches, provided that none is singular."""
        at, value = self._proof
        return at is not None and scratch[at] == value

    @cached_property
    def _proof(self) -> tuple[int | None, float]:
        """Index in scratch memory, and the value there if a list of branches is complete; None if this is unknown."""
        at, value = self.solver.proof_of_branches(self.reduced)
        return (None if at is None else at + int(self.ints[TABLE_STARTS["work.solver_scratch"]])), value

    def solve_rows(
        self,
        table: Array,
        starts: Array,
        progress: Progress | None,
        *,
        targets: Targets | None,
        workers: Workers,
        packed: Packed | None = None,
    ) -> Array:
        """Solve a batch of independent problems on several threads and return the rows of results.

        Args:
            table: Targets, (B, goals, 17).
            starts: Joint values within the limits, (B, nq) or (1, nq).
            progress: Called with (problems done, number of problems).
            targets: The targets in the table, for error messages.
            workers: The threads.
            packed: Kernel and packed values that replace those of the problem.
        """
        packed = packed or Packed(self.kernel, self.ints, self.floats, places=self.obstacle_places)
        out = self.new_rows(len(table))
        batch, size = Batch(table, starts, out), self.scratch_size
        run = partial(run_rows, packed, batch, size, self.polish_misses, workers, progress)
        self.checked_call(run, table, targets, many=True)
        return out

    def checked_call(
        self, run: Callable[[], int], table: Array, targets: Targets | None, *, many: bool = False, first: int = 0
    ) -> int:
        """Call a kernel and return its code. If rotations have rounding errors, remove the errors and call it again.

        Args:
            run: Calls the kernel with the table of targets.
            table: The table, (B, goals, 17), which is changed.
            targets: The targets in the table, for error messages.
            many: Whether the targets have a leading axis.
            first: Row of the table at which the kernel starts.

        Raises:
            InputError: If a target cannot be used.
        """
        code = run()
        if code < 0:
            self.writer.orthonormalize_or_refuse(table, targets, many=many)
            code = run()
        if code < 0:
            self.writer.refuse(code - len(self.goals) * first, targets, many=many)
        return code

    def _solved_moves(self, moves: Array) -> Array:
        """Select the largest moves of the solved variables, and divide lengths by the length scale."""
        reduced = self.reduced
        order = {at: k for k, at in enumerate(self.skeleton.tables.variables[:, BLOCK_Q].tolist())}
        solved = moves[[order[at] for at in reduced.variables[:, BLOCK_Q].tolist()]]
        lengths = (reduced.variables[:, BLOCK] == SCALAR) & (reduced.limits[:, IS_ANGLE] == 0.0)
        return np.where(lengths, solved / self.reach, solved)

    def moved_inside(self, given: Array, inside: Array) -> Array | None:
        """Return how far clamping to the limits moved each variable of the starts, if the solver bounds motion.

        Args:
            given: Joint values, (B, nq).
            inside: The same values, clamped to the limits.

        Returns:
            (B, variables of the skeleton), radians or length units; None if no start was moved or motion has no bounds.
        """
        if self.moves is None or given is inside or np.array_equal(given, inside):
            return None
        t = self.skeleton.tables
        out = np.abs(given - inside)[:, t.variables[:, BLOCK_Q]]
        for k in np.flatnonzero(t.variables[:, BLOCK] == TURN).tolist():
            part = slice(at := int(t.variables[k, BLOCK_Q]), at + 4)
            out[:, k] = np.linalg.norm(rotation_between(given[:, part], inside[:, part]), axis=1)
        return out

    def floats_of(self, given: Array, inside: Array) -> Array:
        """Return the packed floats for one start. Distances that clamping moved joints count towards ``largest_move``.

        Args:
            given: Joint values, (1, nq).
            inside: The same values, clamped to the limits.

        Raises:
            InputError: If the start is farther outside the limits of a joint than the joint may move.
        """
        moved = self.moved_inside(given, inside)
        if moved is None or self.moves is None:
            return self.floats
        left = self.moves - moved[0]
        if left.min() < -_ROUNDING:
            t = self.skeleton.tables
            k = int(np.argmin(left))
            at, size = int(t.variables[k, BLOCK_Q]), 1 if t.variables[k, BLOCK] == SCALAR else 4
            raise InputError(
                f"start of joint {self.skeleton.joint_names[t.owner[k]]!r}",
                value=given[0, at : at + size].tolist() if size > 1 else float(given[0, at]),
                expected=f"at most {self.moves[k]:g} outside its limits, because of largest_move",
                hint=f"it is {moved[0, k]:.4g} outside; start from a pose within the limits",
            )
        floats = self.floats.copy()
        table_of(self.ints, floats, "moves")[...] = self._solved_moves(np.maximum(left, 0.0))
        return floats

    def bend_well(self, starts: Array, rows: Array, solve: Callable[[Array, NDArray[np.int64]], Array]) -> None:
        """Replace results in which a straight limb bends to the wrong side by better results from bent starts.

        Results of restarts are replaced as well, because random poses bend limbs to any side.

        Args:
            starts: Starts, (B, nq) or (1, nq).
            rows: Results; changed in place.
            solve: Returns the results of one attempt, given starts and the indices of their problems.
        """
        if self.bends is None:
            return
        for size in SIZES:
            shares = self.bends.shares(starts, rows[:, self.places], self.bent)
            restarted = (rows[:, WINNER] > 0) & (rows[:, STATUS] == Status.REACHED)
            if shares is None and not restarted.any():
                return
            if shares is None:
                shares = np.ones((len(rows), len(self.bends.places)))
            shares[restarted] = -1.0
            at = np.flatnonzero((shares < 1.0).any(axis=1))
            given = starts[np.minimum(at, len(starts) - 1)]
            bent = self.bends.bent(given, size, (shares[at] < 1.0).astype(np.float64))
            if bent is None:
                return
            other = (bent != given).any(axis=1)  # problems whose start did not change are not solved again
            at, given, bent = at[other], given[other], bent[other]
            found = solve(bent, at)
            now = self.bends.shares(given, found[:, self.places], self.bent)
            good = found[:, STATUS] == Status.REACHED
            good |= (rows[at, STATUS] != Status.REACHED) & (found[:, COST] <= _NO_WORSE * rows[at, COST])
            if now is not None:
                good &= now.min(axis=1) > shares[at].min(axis=1) + _BETTER
            rows[at[good]] = found[good]

    @cached_property
    def bends(self) -> Bends | None:
        """Limbs with a defined bending side; None if there are no such limbs.

        Computed at the first solve, because the roles of joints may depend on the shape of the body.
        """
        if self.solver.bounds_motion:  # bending the start would be motion, which the solver bounds
            return None
        return find_bends(self.skeleton, self.reduced, self.goals, self.goal_joints)

    @cached_property
    def lister(self) -> CompiledProblem:
        """This problem, with a closed-form solver that lists its branches if its own solver does not.

        Raises:
            UnsupportedError: If no solver lists the branches.
        """
        own = self.solver.closed and type(self.solver).branch_kernel is not Solver.branch_kernel
        found, chain = [self] if own else [], None
        for other in (Segments(), SixJoints(), Hinges()):
            if found and not found[0].locks_one_of_seven:
                break
            try:
                found.insert(0, self.with_solver(other))
            except UnsupportedError as refusal:
                chain = refusal if isinstance(other, SixJoints) else chain
        if not found:
            if chain is not None and len(self.goals) == 1 and isinstance(self.goals[0], PoseGoal):
                raise chain
            self.solver.branch_kernel(self.reduced)
        return found[0]

    @cached_property
    def held(self) -> dict[int, Any]:
        """Problems with one joint held, by its row; see ``ik.redundancy``."""
        return {}

    @property
    def locks_one_of_seven(self) -> bool:
        """Whether the closed form is the one for seven joints, which varies the last one, and a joint is locked."""
        locked = any(is_locked(self.reduced, k) for k in range(len(self.reduced.variables)))
        return isinstance(self.solver, Segments) and locked and structure_of(self.reduced) == "seven"

    @cached_property
    def branch_call(self) -> tuple[Kernel, tuple[int, int]]:
        """Kernel that lists the branches of a closed form, and the shape of the table that it fills.

        The table has one row more than the largest number of candidates.

        Raises:
            UnsupportedError: If the solver lists no branches.
        """
        from synovia.kernels.compiler.jit import ready

        clear = self.clear_branches
        kernel = self.solver.branch_kernel(self.reduced) if clear is None else clear.branches
        numbers = sum(1 if block == SCALAR else 4 for block in self.reduced.variables[:, BLOCK].tolist())
        six = isinstance(self.solver, SixJoints) and clear is None
        shape = MOST_ROOTS + 1 if six else _MOST_CANDIDATES // numbers + 1, self.row_shape[1]
        workspace = self.new_workspace()
        like = self.ints, self.floats, workspace.table, self.rest, np.empty(shape), workspace.scratch, COLD, LIST
        call = ready(kernel, *like)
        if six:
            self._choose_splits(call, shape)
        return call, shape

    def _choose_splits(self, call: Kernel, shape: tuple[int, int]) -> None:
        """Try all splits of a chain of six joints at random poses, and write the best ones to the packed problem."""
        splits = table_of(self.ints, self.floats, "params")[SPLITS : SPLITS + TRIED]
        workspace, out, rest = self.new_workspace(), _empty(shape), self.skeleton.rest_pose().q
        info = self.solver_memory(workspace.scratch)[:INFO_WIDTH]
        moving = self.reduced.variables[:, BLOCK_Q]
        scores = np.zeros(2 * len(moving))
        tried = range(len(scores))
        for trial in range(_TRIALS):
            if trial == _FEW:
                tried = np.argsort(scores, kind="stable")[: TRIED + 1].tolist()
            q = rest.copy()
            q[moving] = self.skeleton.random_pose(trial).q[moving]
            pose = Pose(self.skeleton, self.skeleton.follow(q))
            target = pose.transform(self.rows[0]) @ self.goals[0].frame
            workspace.table[0, 0] = [*target.ravel(), self.goals[0].constrained_parts]
            for split in tried:
                splits[:] = split, -1.0, -1.0
                count = call(self.ints, self.floats, workspace.table, self.rest, out, workspace.scratch, COLD, LIST)
                away = np.abs(out[:count, self.places] - pose.q).max(axis=1)
                lost = away.min(initial=math.inf) > _SAME
                scores[split] += _LOST * lost + (info[COMPLETE] == 0.0) + _UNDECIDED * info[UNDECIDED]
                scores[split] += _NOISE * math.log10(info[NOISE] + _SMALLEST)
        splits[:] = sorted(tried, key=lambda split: scores[split])[:TRIED]
        self.split_cost = float(scores[int(splits[0])])

    @cached_property
    def one_attempt(self) -> Ints:
        """The packed integers for one attempt, without restarts."""
        return self.settings(attempts=1)

    def settings(
        self,
        ints: Ints | None = None,
        *,
        attempts: int | None = None,
        steps: int | None = None,
        patience: int | None = None,
    ) -> Ints:
        """Return the packed integers, or a copy with other search settings.

        Args:
            ints: The integers; None for those of the problem.
            attempts: Attempts, the first one included.
            steps: Largest number of steps of an attempt.
            patience: Number of steps without progress after which an attempt ends.
        """
        ints = self.ints if ints is None else ints
        changed = {ATTEMPTS: attempts, MAX_STEPS: steps, PATIENCE: patience}
        changed = {at: value for at, value in changed.items() if value is not None and value != ints[at]}
        if changed:
            ints = ints.copy()
            ints[[*changed]] = [*changed.values()]
        return ints

    def as_start(self, start: Any) -> Pose:
        """Return a start as a pose of the solved skeleton.

        Args:
            start: A pose, ``"rest"``, joint values (nq,), or a dict from joints to values.

        Raises:
            InputError: If the start is a pose of another skeleton, or a value cannot be used.
        """
        skeleton, given = self.skeleton, self.given
        if isinstance(start, Pose):
            start.check_finite("start")
            if start.skeleton is skeleton:
                return start
            if start.skeleton.joint_names not in (given.joint_names, skeleton.joint_names):
                raise InputError("skeleton of start", value=start.skeleton, expected=repr(skeleton))
            start = start.q
        elif isinstance(start, str):
            if start != "rest":
                raise InputError("start", value=start, expected="'rest', a pose, or joint values")
            return self.default_start
        if isinstance(start, Mapping):
            return Pose(skeleton, self._without_followers(cast("JointValues", start)))
        if shape_of(start) == (given.nq,) and given is not skeleton:
            start = with_root_at_rest(as_numbers(start, (given.nq,), "start"), skeleton.nq - given.nq)
        return Pose.trusted(skeleton, self._led(as_values(skeleton, start, "start", finite=False), "start"))

    def as_near_start(self, start: Any) -> Pose:
        """Return a start as ``as_start`` does.

        Raises:
            InputError: As ``as_start``, or if clamping to the limits moves a joint farther than the solver may.
        """
        pose = self.as_start(start)
        self.floats_of(pose.values[None], pose.inside)
        return pose

    def as_starts(self, starts: Any, count: int) -> Array:
        """Return the starts of a batch of problems: (count, nq), or (1, nq) for one start that all problems use.

        Raises:
            InputError: As in ``as_start``, or if the number of starts is wrong; the message names the row.
        """
        rows, odd = self.read_starts(starts, count)
        if len(odd):
            raise self.error_of_start(int(odd[0]), starts)
        return rows

    def read_starts(self, starts: Any, count: int) -> tuple[Array, Sequence[int]]:
        """Return the starts of a batch as ``as_starts`` does, and the unusable rows, which are set to the rest pose.

        Raises:
            InputError: If one start for all cannot be used, or the shape is wrong.
        """
        if starts is None:
            return self.rest, ()
        skeleton, given = self.skeleton, self.given
        if isinstance(starts, Pose | str | Mapping) or dimensions(starts) == 1:
            return self.as_near_start(starts).values.reshape(1, -1), ()
        rows, _ = regular_rows(starts, {(given.nq,), (skeleton.nq,)})
        rows = as_numbers(rows, (-1, -1), "starts", finite=False)
        if rows.shape[1] == given.nq:
            rows = with_root_at_rest(rows, skeleton.nq - given.nq)
        if rows.shape != (count, skeleton.nq):
            raise InputError("shape of starts", value=rows.shape, expected=f"({count}, {skeleton.nq})")
        unusable: list[int] = []
        try:
            led = self._led(rows, "starts")
        except InputError:
            unusable = refused_rows(partial(self._led, what="starts"), rows)
            rows[unusable] = self.rest
            led = self._led(rows, "starts")
        moved = self.moved_inside(led, inside_limits(skeleton, led))
        if moved is not None and self.moves is not None:
            unusable = [*unusable, *np.flatnonzero((moved > self.moves + _ROUNDING).any(1)).tolist()]
        return led, sorted(unusable)

    def error_of_start(self, row: int, starts: Any) -> SynoviaError:
        """Return the error for a row of the starts that cannot be used; the message names the row."""
        try:
            self.as_near_start(starts[row])
        except SynoviaError as error:
            return restated(error, InputError, f"starts[{row}]")
        return InputError(f"starts[{row}]", value=starts[row], expected=f"{self.skeleton.nq} joint values")

    def _without_followers(self, values: JointValues) -> JointValues:
        """Check joint names and return values by joint row. Mimic joints are left out, because they follow a leader."""
        rows, joints = self.skeleton.by_row(values, "start"), self.skeleton.joints
        return {row: value for row, value in rows.items() if joints[row].mimic is None}

    def _led(self, q: Array, what: str) -> Array:
        """Check joint values (..., nq) of starts and return them with mimic joints computed from their leaders.

        Raises:
            InputError: If the values cannot be used.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # infinite values are refused below
            return np.ascontiguousarray(checked_q(self.skeleton, self.skeleton.follow(q), what))

    def outside(self, start: Pose) -> tuple[str, ...]:
        """Return the joints whose value in a start (a pose of this skeleton) is outside the limits."""
        return self._names(self._rows_beyond(start, 1e-9))

    def at_limits(self, pose: Pose) -> tuple[str, ...]:
        """Return the joints whose value in a pose is at a limit (within 1e-6)."""
        return self._names(self.rows_at_limits(pose))

    def rows_at_limits(self, pose: Pose) -> tuple[int, ...]:
        """Return the rows of the joints whose value in a pose is at a limit (within 1e-6)."""
        return self._rows_beyond(pose, -1e-6)

    def _names(self, rows: Iterable[int]) -> tuple[str, ...]:
        """Return the names of the joints in these rows."""
        return tuple(self.skeleton.joint_names[row] for row in rows)

    def _rows_beyond(self, pose: Pose, margin: float) -> tuple[int, ...]:
        """Return the joints whose value in a pose exceeds its limit by more than a margin."""
        from synovia.kernels.tree.tables import excesses

        t = self.skeleton.tables
        out = np.empty(len(t.variables))
        excesses(*writable(t.variables, t.limits), pose.values, out)
        return tuple(dict.fromkeys(int(row) for row in t.owner[out > margin]))


def _again(
    make: Callable[..., CompiledProblem], values: tuple[Any, ...], bent: Array | None, moved: Array | None
) -> CompiledProblem:
    """Return a problem from its pickled arguments, its bending limit and its obstacle places."""
    new = make(*values).bending_from(BENT if bent is None else bent)
    return new if new.obstacles is None or moved is None else new.with_obstacle_places(Places(new.obstacles, moved))


def _refuse_one(*_: Any) -> int:
    """Refuse to solve a problem whose rest goal has a reference for each frame of a track.

    Raises:
        InputError: Always.
    """
    raise InputError(
        "RestGoal(motion)",
        expected="sy.track, which solves each frame",
        hint="for one frame, use RestGoal(motion.pose(k))",
    )


def _checked_goals(goals: Goal | Iterable[Goal]) -> tuple[Goal, ...]:
    """Return goals as a tuple.

    Raises:
        InputError: If there are no goals, or a goal cannot be used.
    """
    if isinstance(goals, str):  # a string would otherwise be read as an iterable of letters
        raise InputError("goals", value=type(goals), expected="one Goal or several", hint=_GOAL)
    found = tuple(goals) if isinstance(goals, Iterable) else (goals,)
    for i, goal in enumerate(found):
        if not isinstance(goal, Goal):
            raise InputError(f"goals[{i}]", value=type(goal), expected="a Goal", hint=_GOAL)
        if not hasattr(goal, "joint"):
            hint = "call super().__init__() in __init__"
            raise InputError(f"goals[{i}]", value=type(goal), expected="an initialised goal", hint=hint)
    if not found:
        raise InputError("goals", expected="at least one goal")
    return found


def checked_tolerance(tolerance: tuple[float, float] | None, reach: float) -> tuple[float, float]:
    """Check the tolerance and return it as (length units, radians); None gives the default.

    Raises:
        InputError: If the tolerance cannot be used.
    """
    if tolerance is None:
        return _TOLERANCE[0] * reach, _TOLERANCE[1]
    pair = as_numbers(tolerance, (2,), "tolerance")
    if not (pair > 0.0).all():
        raise InputError("tolerance", value=tolerance, expected="(length, angle), both above 0")
    return float(pair[0]), float(pair[1])


def reach_of_tips(skeleton: Skeleton) -> float:
    """Return the length scale of the whole skeleton in length units, as if every tip had a goal."""
    rows = [[row] for row in skeleton.tip_rows]
    return reduce(skeleton, [PositionGoal(row[0]) for row in rows], rows).reach
