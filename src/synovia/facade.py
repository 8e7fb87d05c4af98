"""``IK`` and ``solve``: the interface to the compiled problem, its diagnosis, and tracking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self, Unpack

import numpy as np

from synovia import diagnosis
from synovia.arguments import ChecksArguments, Progress, check_kind, takes, whole_number
from synovia.errors import InputError, SynoviaError
from synovia.goals import Goal
from synovia.ik.branches import Branches, branches_of
from synovia.ik.compiled import CompiledProblem, Options, Start, Starts
from synovia.ik.frame import FrameSolver
from synovia.ik.interrupts import Watch, clear, deadline_of, set_deadline
from synovia.ik.parallel import Packed, Workers, checked_threads, simd_kernel
from synovia.ik.redundancy import Redundancy, redundancy_of
from synovia.ik.solution import Solution, Solutions
from synovia.ik.status import invalid_rows
from synovia.ik.targets import Targets
from synovia.kernels.layout import COLD, MISSED
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import inside_limits
from synovia.solver import Solver, SolverName
from synovia.tracking import track

_empty = np.empty  # saves an attribute look-up in each call


CompiledProblem.diagnosis = diagnosis


class IK(ChecksArguments):
    """A skeleton with goals and a solver, packed for the kernels. Safe to use from several threads.

    Args:
        skeleton: The skeleton.
        goals: One goal or several.
        solver: Settings such as ``LevenbergMarquardt()``, a solver's name, or None for the default.
        tolerance: (position in length units, angle in radians) within which a goal is met; None for 1e-4 of the
            reach and 1e-3 rad.
        root: ``"fixed"`` keeps a free root as in the start. ``"free"`` lets the root move, and adds a free joint to a
            skeleton without one (see ``ik.skeleton``). With axes such as ``"xy"``, ``"x,y,yaw"`` or ``("x", "yaw")``,
            the root moves only along and about these world axes (x, y, z, roll, pitch, yaw).
        starts: Result of ``sy.learn_starts`` for this skeleton and these goals. Solves without a start then begin at
            the poses that it proposes for their targets.
        moving: The joints that may move, by name, role or row; None for all. All others keep the values of the start,
            bit for bit if these are within the limits. A free root only moves if it is named. A mimic joint stands for
            its leader and all joints that follow the leader. Of a loop, name all joints or none.
        proofs: Whether ``solve`` and ``solve_many`` search for a proof after each missed position; see
            ``solution.proof``. If the search finds a pose that may meet the goals, they solve again from this pose.

    Attributes:
        given: The skeleton as given, without the joints that ``root`` adds.
        skeleton: The skeleton to solve for, with the joints that ``root`` adds.
        goals: The goals, completed by values that depend on the skeleton.
        solver: The settings of the solver.
        root: How the root may move.
        starts: The learned starts; None if not given.
        moving: Rows of ``skeleton`` that the solver may move; the others keep their values.
        reach: Length scale of solvers and tolerances, length units.
        tolerance: (position in length units, angle in radians) within which a goal is met.
        problem: The packed problem, for code that calls kernels itself.

    Raises:
        InputError: If a goal or setting cannot be used.
        UnknownNameError: If a joint or the solver does not exist.
        UnsupportedError: If the solver does not support a goal or these joints.

    Example:
        >>> import synovia as sy
        >>> ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
        >>> solution = ik.solve((0.4, 0.1, 0.5))
        >>> solution.status.name
        'REACHED'
        >>> ik.solve_many([(0.4, 0.1, 0.5), (9.0, 0.0, 0.0)]).reached
        array([ True, False])
    """

    @takes(Options)
    def __init__(
        self,
        skeleton: Skeleton,
        goals: Goal | Iterable[Goal],
        solver: Solver | SolverName | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Pack the problem, and load or compile the kernel."""
        self._hold(CompiledProblem(skeleton, goals, solver, **options))

    @classmethod
    def of(cls, problem: CompiledProblem) -> Self:
        """Return the ``IK`` of a packed problem.

        Args:
            problem: The problem, such as ``ik.problem`` with other settings.

        Raises:
            InputError: If the argument is not a packed problem.
        """
        check_kind("problem", problem, CompiledProblem, "ik.problem is one")
        new = object.__new__(cls)
        new._hold(problem)
        return new

    def _hold(self, problem: CompiledProblem) -> None:
        """Store a problem, and its attributes for users."""
        self.problem = problem
        self.given, self.skeleton, self.root = problem.given, problem.skeleton, problem.root
        self.goals, self.solver, self.starts = problem.goals, problem.solver, problem.starts
        self.moving, self.reach, self.tolerance = problem.moving, problem.reach, problem.tolerance

    def __repr__(self) -> str:
        """Return the skeleton, the goals, the solver and the root, if it is not fixed."""
        return repr(self.problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the problem, without scratch memory and compiled code."""
        return type(self).of, (self.problem,)

    def solve(
        self,
        targets: Targets | None = None,
        start: Start | None = None,
        deadline: float | None = None,
        *,
        follow: bool = False,
    ) -> Solution:
        """Find the pose that meets the goals, or the best pose.

        Args:
            targets: New targets by joint or goal name: a position (3,), a ``Rotation``, a pair of both, or a 4x4
                transform. If only one goal has a target, its target may be passed without a dict. Other goals keep
                their own targets, or use those of the start. The target of a ``ClearanceGoal`` gives transforms of
                obstacles, such as ``{"clearance": {"cup": transform}}``; see ``ClearanceGoal``.
            start: Pose to start from, ``"rest"``, or joint values: (nq,), or some of them by joint; by default the
                poses that learned ``starts`` propose, if the problem has any, then the rest pose.
            deadline: Seconds after which the best pose so far is returned, with status ``MAX_STEPS`` unless it reaches
                the goals; see ``solution.interrupted``. Loading or compiling a kernel at its first use cannot be
                interrupted; call ``precompile()`` before.
            follow: Whether ``start`` (required) is the previous pose, as in a control loop or while dragging. Then
                there is one attempt without restarts, so that the pose stays near ``start``. Joints may still rotate
                far if the goals require it, for example near a singular pose; ``FullBody(largest_move=...)`` limits
                this. If all targets are known in advance, use ``track``.

        Raises:
            InputError: If a value cannot be used, or ``follow`` has no start.
            UnknownNameError: If a target belongs to no goal.
        """
        problem = self.problem
        if problem.obstacles is not None and targets is not None:
            problem, targets = problem.read_obstacles(targets)
        ints, floats, first = problem.ints, problem.floats, problem.rest
        if problem.begun is not None and start is None:
            ints, floats = problem.begun
        if follow is not False:
            _check_follow(follow, start)
            if follow:
                ints = problem.one_attempt
        if start is not None:
            if type(start) is not Pose or start.skeleton is not problem.skeleton:
                start = Pose.quick(problem.skeleton, start) or problem.as_start(start)
            first = start.ready
            if first is None:
                first = start.inside
            if problem.moves is not None:
                floats = problem.floats_of(start.values[None], first)
        try:
            workspace = problem.idle.pop()  # ``pop`` is atomic, so two threads never share a workspace
        except IndexError:
            workspace = problem.new_workspace()
        ends = 0.0
        try:
            if deadline is not None:
                ends = set_deadline(workspace.scratch, deadline)
            problem.writer.fill(targets, workspace)
            row = _empty(problem.row_shape)
            code = problem.call(ints, floats, workspace.table, first, row, workspace.scratch, COLD, 0)
            if code < 0:
                again = partial(problem.call, ints, floats, workspace.table, first, row, workspace.scratch, COLD, 0)
                code = problem.checked_call(again, workspace.table, targets)
            if code & MISSED:
                problem.polish_misses(first, row, workspace.scratch, not follow)
            if problem.bends is not None:
                problem.bend_one(workspace, first, row, follow=bool(follow))
        finally:
            if deadline is not None:
                clear(workspace.scratch)
            problem.idle.append(workspace)
        if code & MISSED and problem.proofs:
            return self._decided(Solution(problem, row, start), None if follow else [targets], ends)
        return Solution(problem, row, start)

    def _decided(self, missed: Solution, targets: Sequence[Targets | None] | None, ends: float) -> Solution:
        """Search for a proof of a miss. If the search finds a pose near the goal, solve again from there.

        Args:
            missed: The solution.
            targets: The targets of the solve; None if the pose must stay near the start.
            ends: Deadline on the clock of kernels; 0 for none.
        """
        from synovia.ik.proofs.decide import decide

        if missed.reached:
            return missed
        watch = Watch(ends)
        proof, near = decide(missed, watch)
        if near is not None and targets is not None and missed.ik.moves is None and not watch.passed:
            again = type(self).of(missed.ik.unproved).solve(targets[0], near)
            if again.reached:
                again.ik, again.start = missed.ik, missed.start
                return again
        missed.decided(proof)
        return missed

    def _decided_rows(self, many: Solutions, workers: Workers) -> Solutions:
        """Search for proofs of the misses of a batch."""
        from synovia.ik.proofs.decide import decide

        for solution in many:
            if not solution.reached and not workers.watch.passed:
                solution.decided(decide(solution, workers.watch).proof)
        return many

    def branches(
        self,
        targets: Targets | None = None,
        start: Start | None = None,
        *,
        turns: bool = False,
        redundancy: float | Mapping[str | int, float] | None = None,
    ) -> Branches:
        """Return all poses within the limits that meet the goals, the nearest to the start first.

        This works with every solver, for goals that have a closed form, and for a ``PoseGoal`` on any chain of six
        hinges, or of five and a slide, not counting locked joints. ``branches.complete`` says whether it is proved that
        there are no others. If one parameter is free, such as the swivel angle of an elbow, each branch uses the value
        that ``solve`` would choose. With a clearance goal, only branches that keep all distances are returned.

        Args:
            targets: As in ``solve``.
            start: As in ``solve``.
            turns: Whether to list a pose again for each whole turn of its hinges within the limits. Of a hinge without
                limits, only the nearest value is listed.

            redundancy: For a chain of seven joints: the value at which one joint is held, as ``{joint: value}``, or
                the value of the joint that the method ``redundancy`` chooses.

        Raises:
            UnsupportedError: If the joints have no closed form and are no such chain of six.
            InputError: If a value cannot be used.
        """
        return branches_of(self.problem, targets, start, turns=turns, redundancy=redundancy)

    def redundancy(
        self,
        targets: Targets | None = None,
        start: Start | None = None,
        *,
        joint: str | int | None = None,
        prove: bool = False,
    ) -> Redundancy:
        """Return the values of a joint (one of seven) at which the target has branches within the limits.

        The number of branches is computed at 256 steps over the range of the joint, and the ends of each interval by
        bisection. Intervals and gaps shorter than a step may be missed, unless they are proved.

        Args:
            targets: As in ``solve``.
            start: As in ``solve``.
            joint: The joint to vary; by default the last one for which the branches of the other six are listed
                reliably, and with ``prove`` can be proved.
            prove: Whether to prove the number of branches between the steps, too, which takes about half a second.
                Each interval says what part of it is proved. This is all but short parts around the ends for most
                joints, and nothing if the equations of the other six are degenerate for each of its values.

        Raises:
            UnsupportedError: If not exactly seven joints can move the goal.
            InputError: If a value cannot be used.

        Example:
            >>> import synovia as sy
            >>> arm = sy.bundled("arm7")
            >>> free = sy.IK(arm, sy.PoseGoal("tool")).redundancy(arm.random_pose(1).transform("tool"))
            >>> free.joint
            'joint7'
        """
        return redundancy_of(self.problem, targets, start, joint, prove=prove)

    track = track

    def precompile(self) -> None:
        """Load or compile the kernels that are only needed after a miss."""
        FrameSolver(self.problem).improve(self.problem.rest, self.problem.new_rows(0), search=True)

    def solve_many(
        self,
        targets: Targets,
        starts: Starts | None = None,
        *,
        threads: int | None = None,
        simd: bool | str = False,
        progress: Progress | None = None,
        deadline: float | None = None,
        on_error: str = "raise",
    ) -> Solutions:
        """Solve a batch of problems on all cores; the results are identical to those of ``solve``.

        Args:
            targets: Targets by joint or goal name, with a leading axis of length B: (B, 3), a ``Rotation`` of B, a
                pair, or (B, 4, 4). Transforms of obstacles have the same form, by the name of their ``ClearanceGoal``.
            starts: One start for all, as in ``solve``, or joint values (B, nq); the rest pose by default.
            threads: Number of threads; all cores by default.
            simd: True to solve several problems at once with SIMD, for an arm (lm, dls) or a chain of balls without
                limits (fabrik); ``"single"`` to use single precision. SIMD is about twice as fast. Each result is
                verified in double precision, but may differ from the result of ``solve`` in the last bits.
            progress: Called after each block of problems with the number of solved problems and of all problems.
            deadline: Seconds after which all problems end, as in ``solve``. Problems that were not begun return their
                starts, with errors.
            on_error: What to do if the target or the start of a problem is invalid, for example NaN: ``"raise"`` an
                error that names its row, or ``"skip"`` the problem. A skipped problem has the status ``INVALID``, and
                NaN as joint values and errors; its ``explain()`` gives the reason.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a target belongs to no goal.
            UnsupportedError: If there is no SIMD kernel for this problem.
        """
        problem = self.problem
        if problem.reduced.path is not None:
            problem.call()
        workers = Workers(checked_threads(threads), Watch(deadline_of(deadline)))
        kernel = problem.kernel if simd is False else simd_kernel(simd, problem.solver, problem.reduced, problem.kernel)
        if on_error not in ("raise", "skip"):
            raise InputError("on_error", value=on_error, expected="'raise' or 'skip'")
        packed = Packed(kernel, *problem.packed(learned=starts is None), simd=simd is not False)
        solve = partial(problem.solve_rows, progress=progress, workers=workers)
        if on_error == "skip":
            return _solve_usable(problem, targets, starts, packed, solve)
        problem, others, table = problem.table_of_many(targets)
        given = problem.as_starts(starts, len(table))
        packed, solve = packed._replace(places=problem.obstacle_places), partial(solve, targets=others)
        found = Solutions(problem, _solve_from(problem, given, table, packed, solve), given)
        return self._decided_rows(found, workers) if problem.proofs else found

    def errors_after(self, steps: int, targets: Targets | None = None, starts: Starts | None = None) -> Array:
        """Return the errors (B, goals, 2) of the first attempt after a number of steps: position, angle (radians).

        Errors for increasing numbers of steps show how a solver converges. There are no restarts, early stops or
        polish steps.

        Args:
            steps: Number of steps; 0 for the errors at the start.
            targets: As in ``solve_many``; by default one problem with the goals' own targets.
            starts: As in ``solve_many``.

        Raises:
            InputError: If a value cannot be used.
        """
        problem = self.problem
        steps = whole_number("steps", steps, 0, 1_000_000)
        table = problem.writer.own.copy() if targets is None else problem.writer.table_of_many(targets)
        first = inside_limits(problem.skeleton, problem.as_starts(starts, len(table)))
        frame = FrameSolver(problem, attempts=1, steps=steps, patience=steps + 1, all_work=True)
        with frame.until(Watch()):
            return problem.errors_in(frame.each(table, first, targets)).copy()


@takes(Options)
def solve(
    skeleton: Skeleton,
    goals: Goal | Iterable[Goal],
    solver: Solver | SolverName | None = None,
    start: Start | None = None,
    *,
    deadline: float | None = None,
    **options: Unpack[Options],
) -> Solution:
    """Find the pose of a skeleton that meets goals. To solve more than once, build an ``IK``.

    Args:
        skeleton: The skeleton.
        goals: One goal or several.
        solver: Settings, a solver's name, or None for the default.
        start: As in ``IK.solve``.
        deadline: As in ``IK.solve``; the time starts after the problem is packed and its kernel is loaded.
        options: As in ``IK``.

    Example:
        >>> import synovia as sy
        >>> solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
        >>> solution.status.name, solution.errors[0].position < 1e-3
        ('REACHED', True)
    """
    return IK(skeleton, goals, solver, **options).solve(start=start, deadline=deadline)


def _check_follow(follow: object, start: object) -> None:
    """Check ``follow`` of ``IK.solve``.

    Raises:
        InputError: If ``follow`` is not True or False, or there is no start.
    """
    if not isinstance(follow, bool | np.bool_):
        raise InputError("follow", value=follow, expected="True or False")
    if follow and start is None:
        raise InputError("start", expected="the previous pose with follow=True", hint="pass start=pose")


def _solve_from(
    problem: CompiledProblem, given: Array, table: Array, packed: Packed, solve: Callable[..., Array]
) -> Array:
    """Solve a batch from starts, (B, nq) or (1, nq), and return the rows of results.

    If the solver bounds motion, each bound is reduced by how far clamping to the limits moved the start.
    """
    first = np.ascontiguousarray(inside_limits(problem.skeleton, given))
    moved = problem.moved_inside(given, first)
    if moved is None:
        rows = solve(table, first, packed=packed)
        if problem.bends is not None:
            one, once = partial(solve, progress=None), packed._replace(ints=problem.one_attempt)
            problem.bend_well(first, rows, lambda starts, at: one(table[at], starts, packed=once.of(at)))
        return rows
    if len(given) == 1:
        return solve(table, first, packed=packed._replace(floats=problem.floats_of(given, first)))
    rows = solve(table, first, packed=packed)
    for b in np.flatnonzero(moved.any(1)).tolist():
        one = slice(b, b + 1)
        less = packed._replace(floats=problem.floats_of(given[one], first[one])).of(one)
        rows[one] = solve(table[one], first[one], packed=less, progress=None)
    return rows


def _solve_usable(
    problem: CompiledProblem, targets: Targets, starts: Starts | None, packed: Packed, solve: Callable[..., Array]
) -> Solutions:
    """Solve the problems of a batch with valid targets and starts, and mark all other problems as invalid."""
    problem, others, table, odd = problem.read_many(targets)
    packed, solve = packed._replace(places=problem.obstacle_places), partial(solve, targets=others)
    given, unusable = problem.read_starts(starts, len(table))
    wrong = problem.writer.orthonormalize(table)
    wrong[odd] = True
    skipped = np.asarray(wrong.any(1))
    skipped[list(unusable)] = True
    good = np.flatnonzero(~skipped)
    rows = invalid_rows(problem.new_rows(len(table)))
    if len(good):
        begin = given if len(given) == 1 else given[good]
        rows[good] = _solve_from(problem, begin, table[good], packed.of(good), solve)

    bad = {b: int(np.argmax(wrong[b])) for b in np.flatnonzero(skipped).tolist() if b not in unusable}
    return Solutions(problem, rows, given, partial(_refusal, problem, starts, targets, others, bad))


def _refusal(
    problem: CompiledProblem, starts: Any, targets: Any, others: Any, bad: Mapping[int, int], b: int
) -> SynoviaError:
    """Return the error that made problem b of a batch invalid: the error of its target or of its start."""
    if b in bad:
        return problem.error_of_targets(b, bad[b], targets, others)
    return problem.error_of_start(b, starts)
