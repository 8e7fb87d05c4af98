"""Results: the solution of one problem, and the solutions of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, SynoviaError, UnsolvedError
from synovia.goals import ClearanceGoal, Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.status import INTERRUPTED, Status
from synovia.kernels.layout import FINISH, STATUS, STEPS, STOPPED_BY, TRIES, WINNER
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, as_numbers
from synovia.model.shapes.body import unchecked_links
from synovia.model.shapes.distances import Contact
from synovia.model.shapes.pairs import self_pairs
from synovia.model.skeleton import SkippedPose
from synovia.notebook import Pictured
from synovia.text import counted, first_few, length_text, listed

if TYPE_CHECKING:
    from synovia.ik.conflicts import Conflict
    from synovia.ik.derivative import Derivative
    from synovia.ik.proofs.proof import Proof

_EVERY_STATUS = tuple(Status)
_NEGLIGIBLE: Final = (1e-6, 1e-4)  # metres or units, and radians; smaller errors are not shown


class GoalError(NamedTuple):
    """Error of a goal: ``position`` in the file's length unit, ``angle`` in radians; 0 for a part without a target.

    For a ``CustomGoal``, ``position`` is the length of its residual, in the residual's own unit.

    Example:
        >>> import synovia as sy
        >>> answer = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
        >>> error = answer.errors[0]
        >>> bool(error.position < 1e-3)
        True
    """

    position: float
    angle: float


def miss_text(error: GoalError, meters_per_unit: float | None) -> str:
    """Return the error of a goal as text."""
    far = error.position * (meters_per_unit or 1.0) > _NEGLIGIBLE[0]
    parts: list[str] = []
    if far or error.position > 0.0 >= error.angle:
        parts.append(length_text(error.position, meters_per_unit))
    if error.angle > _NEGLIGIBLE[1] or (error.angle > 0.0 and not far):
        parts.append(f"{math.degrees(error.angle):.2g}°")
    return ", ".join(parts)


class Relief(NamedTuple):
    """The error that remains if one goal (its label) or the limit of one joint (its name) is removed.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.PositionGoal("joint5", (0.0, 0.0, 0.3), priority=1)]
        >>> sy.solve(arm, goals, "full-body").reasons[0].rivals[0].name  # without it, less of the error remains
        'tool'
    """

    name: str
    error: GoalError


class Reason(NamedTuple):
    """Why one goal is missed.

    Args:
        goal: Index of the goal.
        rivals: Goals of the same or a higher priority whose removal lowers the error, the best first.
        limits: Joints whose limits raise the error, the worst first.
        move: World vector (3,), length units, by which the goal's target would have to move so that all goals are met,
            while the other targets stay; None if no such move was found, or if the goal has no target in the world.
        turn: Rotation vector (3,), radians, by which the target would have to rotate.
        along: Labels of goals whose targets would have to move at the same time, each by the move in its own reason.
        pose: A pose that meets all goals after these moves. Use it as start; other starts may need many attempts.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.PositionGoal("joint5", (0.0, 0.0, 0.3), priority=1)]
        >>> answer = sy.solve(arm, goals, "full-body")
        >>> [reason.goal for reason in answer.reasons]
        [1]
    """

    goal: int
    rivals: tuple[Relief, ...]
    limits: tuple[Relief, ...]
    move: Array | None
    turn: Array | None
    along: tuple[str, ...] = ()
    pose: Pose | None = None


class Frame(NamedTuple):
    """The frame of a track that a solution belongs to.

    Args:
        follows: Whether another frame comes before it.
        held: The option of ``track`` that caused the miss, ``"smoothness"`` or ``"velocity"``.
    """

    follows: bool
    held: str | None


class Solution(Pictured):
    """The result of a solve. A miss is a normal result, with the best pose found and the reasons of the miss.

    Values are unpacked from the kernel's result when they are first used.

    Example:
        >>> import synovia as sy
        >>> solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.5)))
        >>> solution.reached, solution.status.name, solution.pose.q.shape
        (False, 'UNREACHABLE', (7,))
        >>> bool(solution.errors[0].position > 2.0)  # length units
        True
    """

    __slots__ = ("_b", "_conflict", "_pose", "_proof", "_reasons", "_rows", "frame", "ik", "refusal", "start")

    def __init__(
        self,
        ik: CompiledProblem,
        rows: Array,
        start: Pose | None = None,
        b: int = 0,
        frame: Frame | None = None,
        refusal: SynoviaError | None = None,
    ) -> None:
        """Store row b of a kernel's results, and, if given, the frame of a track or the error of a skipped row."""
        self.ik = ik
        self._rows = rows
        self._b = b
        self._pose: Pose | None = None
        self._reasons: Sequence[Reason] | None = None
        self.start = start
        self.frame = frame
        self.refusal = refusal

    def __bool__(self) -> bool:
        """Return whether every goal is met."""
        return self.reached

    @property
    def _row(self) -> Array:
        """The row of the kernel's result."""
        return self._rows[self._b]

    @property
    def status(self) -> Status:
        """How the solve ended."""
        return _EVERY_STATUS[int(self._rows[self._b, STATUS])]

    @property
    def reached(self) -> bool:
        """Whether every goal is met."""
        return self.status is Status.REACHED

    @property
    def pose(self) -> Pose:
        """The solution, or the best pose found. It is within the limits; all NaN if the status is INVALID."""
        pose = self._pose
        if pose is None and self.refusal is not None:
            self._pose = pose = SkippedPose(self.ik.skeleton, self._b, self.refusal)
        if pose is None:
            skeleton = self.ik.skeleton
            q = self._rows[self._b, self.ik.places]
            if len(self._rows) > 1:  # a stored pose must not keep the memory of the whole batch
                q = q.copy()
            self._pose = pose = Pose.trusted(skeleton, q, True)
        return pose

    @property
    def q(self) -> Array:
        """Joint values of the pose, (nq,), read-only; faster than ``pose.q``."""
        q = self._rows[self._b, self.ik.places]
        q.setflags(False)  # pyright: ignore[reportCallIssue]  # a keyword argument is slower
        return q

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about limbs that are straight at the start and then bend to an undefined or a wrong side.

        Knees bend forward and elbows back, if they have roles. Other limbs bend as in the rest pose. With a clearance
        goal, further sentences report what it does not check: a goal without pairs, or shapes of the file that were not
        kept.
        """
        unseen = unseen_by_clearance(self.ik)
        bends = self.ik.bends
        if bends is None:
            return unseen
        start = self.ik.default_start if self.start is None else self.start
        return (*bends.notes(start.values, np.asarray(self._row[self.ik.places])), *unseen)

    @property
    def goals(self) -> Sequence[Goal]:
        """The goals, in the order of ``errors``."""
        return self.ik.goals

    @property
    def rows(self) -> tuple[int, ...]:
        """Row of the joint of each goal in the pose's skeleton; -1 for goals of the whole body."""
        return self.ik.rows

    @property
    def goal_joints(self) -> tuple[tuple[int, ...], ...]:
        """Rows, in the pose's skeleton, of all joints that each goal depends on, the goal's own joint first."""
        return self.ik.goal_joints

    @property
    def errors(self) -> tuple[GoalError, ...]:
        """Error of each goal, in the order of the goals."""
        first = self.ik.places.stop
        values = self._row[first : first + 2 * len(self.ik.goals)].tolist()
        return tuple(GoalError(*pair) for pair in zip(values[::2], values[1::2], strict=True))

    @property
    def targets(self) -> Array:
        """Target transforms of the goals, (goals, 4, 4), in the world or in the other joint's frame.

        The normal of a target plane is the z axis. A position or rotation without a target is zero or the identity.
        """
        return self.ik.targets_in(self._row[None]).reshape(-1, 4, 4).copy()

    @property
    def frames(self) -> Array:
        """World frames of the goals, (goals, 4, 4): at the centre of mass for balance, the identity without a point."""
        out = np.tile(np.eye(4), (len(self.goals), 1, 1))
        for i, (goal, row) in enumerate(zip(self.goals, self.rows, strict=True)):
            if row >= 0:
                out[i] = self.pose.transform(row) @ goal.frame
            elif goal.has_point:
                out[i, :3, 3] = self.pose.center_of_mass()
        return out

    @property
    def steps(self) -> int:
        """Total number of steps in all attempts."""
        return int(self._row[STEPS])

    @property
    def attempts(self) -> int:
        """Number of attempts."""
        return int(self._row[TRIES])

    @property
    def attempt(self) -> int:
        """Index of the attempt that found the pose. Attempt 0 begins at the start or at a learned start."""
        return int(self._row[WINNER])

    @property
    def finish_steps(self) -> int:
        """Number of ``steps`` that polished a miss, with a Jacobian solver or Newton's method of a ``Heuristic``."""
        return int(self._row[FINISH])

    @property
    def interrupted(self) -> bool:
        """Whether a deadline or signal stopped the solve. The pose is the best so far and may vary between runs."""
        return self._row[STOPPED_BY] in INTERRUPTED

    @property
    def start_clamped(self) -> tuple[str, ...]:
        """Joints whose start value was outside the limits and was clamped before solving."""
        return () if self.start is None else self.ik.outside(self.start)

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Contacts of the nearest pairs of links and obstacles of clearance goals, at most 20, the nearest first.

        Empty without a ``ClearanceGoal``. ``pair`` of a contact has the names of the two.
        """
        from synovia.ik.contacts import nearest_contacts

        return () if self.refusal is not None else nearest_contacts(self.ik, self.pose)

    @property
    def missed(self) -> tuple[int, ...]:
        """Indices of the goals that are not met."""
        most, most_angle = self.ik.tolerance
        own = [goal.own_tolerance or most for goal in self.goals]
        return tuple(i for i, error in enumerate(self.errors) if error.position > own[i] or error.angle > most_angle)

    @property
    def active_limits(self) -> tuple[str, ...]:
        """Joints at a limit."""
        return self.ik.at_limits(self.pose)

    def derivative(self, of: str = "targets") -> Derivative:
        """Return how the answer changes with its targets, (nv, parameters), or with other parameters.

        It is the derivative of a solve that starts at this answer and keeps what is active here: limits, priority
        levels, clearances and loops. Where the goals leave a choice, the pose stays nearest to the answer, or follows a
        ``RestGoal``. For a miss, it is the derivative of the best pose. The answer is taken as exact, so solve with a
        small ``tolerance``.

        Args:
            of: ``"targets"``: the position of each target in length units, then its rotation vector in the world.
                ``"weights"`` of the goals. ``"posture"``: the reference of a ``RestGoal``, by degree of freedom.
                ``"offsets"``: the fixed offset of each joint between root and goal, in its parent's axes; a fixed joint
                is part of the next one. ``"tools"``: the frame of each goal on its joint, in the axes of this frame.

        Returns:
            An array with the attributes ``parameters``, the name of each column, and ``kink``: True if the answer
            touches a limit, clearance or bound without a force against it, is singular, or is no minimum. Then the
            derivative is one-sided, or may be inaccurate.

        Raises:
            InputError: If ``of`` is unknown, or the problem was skipped.
            UnsupportedError: If a goal is a ``CustomGoal``, or a setting has no derivative.

        Example:
            >>> import synovia as sy
            >>> change = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5))).derivative()
            >>> change.shape, change.parameters, change.kink
            ((7, 3), ('tool.x', 'tool.y', 'tool.z'), False)
        """
        from synovia.ik.derivative import Derivative, derivative_of

        if self.refusal is not None:
            raise self.refusal
        found = derivative_of(self.ik, self._row[None], of)
        return Derivative(found[0], found.parameters, bool(found.kink[0]))

    def explain(self) -> list[str]:
        """Return sentences about how the solve ended; for a miss, also its size and its causes."""
        return self.ik.diagnosis.explain(self)

    @property
    def reasons(self) -> Sequence[Reason]:
        """Reasons of each missed goal, found by solving variations; empty without priorities or a clearance goal.

        Each reason names the goals and limits that prevent the goal, and the move of its target that would resolve the
        miss.
        """
        if self._reasons is None:  # the reasons of an interrupted solve stay empty, because more time might be enough
            self._reasons = (
                ()
                if self.interrupted or self.refusal is not None or not self.ik.has_reasons
                else self.ik.diagnosis.find_reasons(self)
            )
        return self._reasons

    @property
    def proof(self) -> Proof | None:
        """The proof that a missed goal is out of reach; None without one.

        If the status is ``UNREACHABLE``, the first use searches for the proof; None then means that the closed form of
        the solver decided, and no proof of bounded length was found. After other misses, ``prove`` or
        ``IK(proofs=True)`` search for a proof.
        """
        if self.status is Status.UNREACHABLE and not self.proof_tried:
            return self.prove()
        return self.known_proof

    @property
    def known_proof(self) -> Proof | None:
        """The proof that an earlier search found; None without one."""
        return self._proof if self.proof_tried else None

    @property
    def proof_tried(self) -> bool:
        """Whether a proof was searched for."""
        return hasattr(self, "_proof")

    def prove(self, deadline: float | None = None) -> Proof | None:
        """Search for a proof that a missed goal, or all goals together, cannot be met: then they are ``UNREACHABLE``.

        The proof can use positions, rotations, directions, cones, aims and bounds of goals with targets in the world.
        The search takes at most some tenths of a second for each missed goal. The first call for a chain of up to seven
        joints may also compute a map of the poses that it reaches, in up to about five seconds for all goals; a map
        that needs more time is given up. Limits of balls are not used, and joints that follow others count as
        independent.

        Args:
            deadline: Seconds after which the search ends.

        Example:
            >>> import synovia as sy
            >>> solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.5)))
            >>> solution.prove().check()
            True
        """
        from synovia.ik.interrupts import Watch, deadline_of
        from synovia.ik.proofs.decide import decide

        return self.decided(decide(self, Watch(deadline_of(deadline))).proof)

    @property
    def conflict(self) -> Conflict | None:
        """The conflict of the goals of a miss; the first use searches for it with ``find_conflict``."""
        return self._conflict if hasattr(self, "_conflict") else self.find_conflict()

    @property
    def known_conflict(self) -> Conflict | None:
        """The conflict that an earlier search found; None without one."""
        return self._conflict if hasattr(self, "_conflict") else None

    def find_conflict(self, deadline: float | None = None) -> Conflict | None:
        """Find a smallest set of goals and limits that cannot hold together, and changes that resolve it.

        The search leaves out one goal or limit after another and solves again, in some tenths of a second for each. The
        search for the proof takes up to about five seconds more. With several priorities, the first that fails counts.
        After a proof, the status is ``CONFLICT``, or ``UNREACHABLE`` if one goal alone cannot be met.

        Args:
            deadline: Seconds after which the search ends. The set may then be larger, without a proof, and without
                limits and changes that would resolve it.

        Returns:
            The conflict; None if all goals are met, or an attempt meets them after all.
        """
        from synovia.ik.interrupts import Watch, deadline_of
        from synovia.ik.proofs.proof import Proof

        if self.reached or self.refusal is not None:
            return None
        found = self._conflict = self.ik.diagnosis.find_conflict(self, Watch(deadline_of(deadline)))
        if found is not None and isinstance(found.proof, Proof) and len(found.goals) == 1:
            self.decided(found.proof)
        elif found is not None and found.proof is not None and self.status is not Status.UNREACHABLE:
            self._row[STATUS] = Status.CONFLICT
        return found

    def decided(self, proof: Proof | None) -> Proof | None:
        """Store the result of a search for a proof, and return it."""
        self._proof = proof
        if proof is not None:
            self._row[STATUS] = Status.UNREACHABLE
        return proof

    def raise_for_status(self) -> Solution:
        """Return the solution itself if every goal is met.

        Raises:
            UnsolvedError: If a goal is missed; the message is the explanation.
        """
        if not self.reached:
            raise UnsolvedError(" ".join(self.explain()))
        return self

    def __str__(self) -> str:
        """Return status, steps and the error of each goal on one line, with a hint if a target seems to be in mm."""
        if self.refusal is not None:
            return f"invalid: {self.refusal}"
        parts = [
            f"{goal.label} {self._shown(goal, error)}"
            for goal, error in zip(self.goals, self.errors, strict=True)
            if goal.measures or goal.own_tolerance is not None
        ]
        finish = self.ik.solver.finish or self.ik.solver.follow_finish
        by = f" ({self.finish_steps} by {finish})" if self.finish_steps and finish else ""
        line = f"{self.status.name.lower().replace('_', ' ')} in {counted(self.steps, 'step')}{by}; " + "; ".join(parts)
        hint = None if self.reached else self.ik.diagnosis.unit_hint(self)
        return line if hint is None else f"{line}; {hint}"

    def _shown(self, goal: Goal, error: GoalError) -> str:
        """Return a goal's errors as text: degrees, and millimetres if the length unit is known.

        For a clearance goal, the text includes the number of links that the goal does not check.
        """
        parts = [f"{error.position:.3g}"] if goal.own_tolerance is not None else []
        if goal.measures & POSITION:
            parts.append(length_text(error.position, self.ik.skeleton.meters_per_unit))
        if goal.measures & ROTATION:
            parts.append(f"{math.degrees(error.angle):.3g} deg")
        if isinstance(goal, ClearanceGoal) and goal.is_about_all and (unseen := unchecked_links(self.ik.given)):
            parts.append(f"not checked for {counted(len(unseen), 'link')} without known shapes")
        return ", ".join(parts)

    def __repr__(self) -> str:
        """Return the line of ``str`` in angle brackets."""
        return f"<Solution {self}>"


class Solutions:
    """The solutions of a batch of B problems as arrays; item b is the ``Solution`` of problem b.

    Indexing gives one ``Solution``, and the arrays have a leading axis of length B. ``IK.solve_many`` returns it.

    Example:
        >>> import synovia as sy
        >>> ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
        >>> many = ik.solve_many([(0.4, 0.1, 0.5), (9.0, 0.0, 0.0)])
        >>> many.reached, many.q.shape, many[1].status.name
        (array([ True, False]), (2, 7), 'UNREACHABLE')
    """

    def __init__(
        self,
        ik: CompiledProblem,
        rows: Array,
        starts: Array | Pose,
        refusal: Callable[[int], SynoviaError] | None = None,
    ) -> None:
        """Store the kernel's table of results, the start of each problem or one for all, and errors of skipped rows.

        ``refusal`` returns the error of a problem with the status ``INVALID``.
        """
        self.ik = ik
        self._rows = rows
        self._starts = starts
        self._refusal = refusal

    def _start(self, b: int) -> Pose:
        """Return the start of problem b."""
        starts = self._starts
        return starts if isinstance(starts, Pose) else Pose.trusted(self.ik.skeleton, starts[min(b, len(starts) - 1)])

    def __len__(self) -> int:
        """Return the number of problems."""
        return len(self._rows)

    def __getitem__(self, b: int) -> Solution:
        """Return the solution of one problem."""
        if not isinstance(b, (int, np.integer)) or not -len(self) <= b < len(self):
            raise InputError("index of a solution", value=b, expected=f"0 to {len(self) - 1}")
        row = b % len(self)
        skipped = self._refusal is not None and self._rows[row, STATUS] == Status.INVALID
        error = self._refusal(row) if self._refusal is not None and skipped else None
        return Solution(self.ik.single(row), self._rows, self._start(row), b=b, frame=self._frame(row), refusal=error)

    def _frame(self, b: int) -> Frame | None:
        """Return the frame of a track that problem b belongs to; None without a track."""
        return None

    def __bool__(self) -> bool:
        """Raise an error, because a batch has no single truth value.

        Raises:
            InputError: Always.
        """
        raise InputError(
            "the truth value of the solutions of a batch is ambiguous",
            hint="use .reached.all(), .reached.any() or solutions[b].reached",
        )

    def __iter__(self) -> Iterator[Solution]:
        """Yield the solutions."""
        return (self[b] for b in range(len(self)))

    @property
    def status(self) -> NDArray[np.int64]:
        """Status of each problem, (B,), integer values of ``Status``."""
        return self._rows[:, STATUS].astype(np.int64)

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Whether all goals of each problem are met, (B,)."""
        return self.status == Status.REACHED

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about all problems: what their clearance goals do not check."""
        return unseen_by_clearance(self.ik)

    @property
    def interrupted(self) -> NDArray[np.bool_]:
        """Whether a deadline or signal stopped each problem, (B,). If it had not begun, its pose is the start."""
        return np.isin(self._rows[:, STOPPED_BY], INTERRUPTED)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Number of steps of each problem, (B,)."""
        return self._rows[:, STEPS].astype(np.int64)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """Number of attempts of each problem, (B,)."""
        return self._rows[:, TRIES].astype(np.int64)

    def derivative(self, of: str = "targets") -> Derivative:
        """Return the derivative of each answer, (B, nv, parameters); see ``Solution.derivative``. ``kink`` is (B,).

        A skipped problem has the derivative NaN.

        Raises:
            InputError: If ``of`` is unknown.
            UnsupportedError: If a goal is a ``CustomGoal``, or a setting has no derivative.
        """
        from synovia.ik.derivative import derivative_of_many

        return derivative_of_many(self.ik, self._rows, of)

    def pull_back(
        self, gradient: Array, of: str = "targets", *, threads: int | None = None
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return gradients by the targets, (B, parameters), given gradients by joint velocities, (B, nv), and kinks.

        This is the product of each gradient with ``derivative(of)``. For positions and rotations of one priority level,
        compiled code computes it in a few microseconds for each problem.

        Args:
            gradient: Gradients by the velocities of ``skeleton.dof_names``.
            of: The parameters, as in ``derivative``.
            threads: Number of threads; all cores by default.

        Raises:
            InputError: If ``of`` is unknown, or the gradients have another shape.
            UnsupportedError: If a goal is a ``CustomGoal``, or a setting has no derivative.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> many = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool")).solve_many([(0.4, 0.1, 0.5)])
            >>> gradient, kinks = many.pull_back(np.ones((1, 7)))
            >>> gradient.shape, bool(np.allclose(gradient, np.ones(7) @ many.derivative()[0], atol=1e-9))
            ((1, 3), True)
        """
        from synovia.ik.pull_back import pull_back

        checked = as_numbers(gradient, (len(self), self.ik.skeleton.nv), "gradient")
        return pull_back(self.ik, self._rows, checked, of, threads)

    @property
    def table(self) -> Array:
        """The rows of results as the kernels wrote them, (B, columns); read-only use."""
        return self._rows

    @property
    def targets(self) -> Array:
        """Target transforms of the goals, (B, goals, 4, 4); see ``Solution.targets``."""
        return self.ik.targets_in(self._rows).reshape(len(self), len(self.ik.goals), 4, 4).copy()

    @property
    def q(self) -> Array:
        """Joint values, (B, nq)."""
        return self._rows[:, self.ik.places].copy()

    @property
    def errors(self) -> Array:
        """Position error (length units) and angle error (radians) of each goal, (B, goals, 2)."""
        first, g = self.ik.places.stop, len(self.ik.goals)
        return self._rows[:, first : first + 2 * g].reshape(-1, g, 2).copy()

    def __repr__(self) -> str:
        """Return the number of reached problems as text."""
        return f"<{type(self).__name__}: {int(self.reached.sum())} of {len(self)} reached>"


def unseen_by_clearance(ik: CompiledProblem) -> tuple[str, ...]:
    """Return sentences about missing clearance checks: goals without pairs, links and obstacles without shapes.

    Include the notes of the body and of worlds about shapes that differ from their files.
    """
    goals = [goal for goal in ik.goals if isinstance(goal, ClearanceGoal)]
    if not goals:
        return ()
    empty = [goal.label for goal in goals if not goal.rows]
    lines = [
        f"Goal {label!r} keeps nothing apart: no two of its links, and no link and obstacle, can meet."
        for label in empty
    ]
    for goal in goals:
        if goal.apart is not None and len(goal.apart.close):
            close = cast("list[list[int]]", goal.apart.close.tolist())
            named = first_few([f"{ik.given.link_key(a)!r} and {ik.given.link_key(b)!r}" for a, b in close])
            lines.append(
                f"In most poses, goal {goal.label!r} cannot keep {counted(len(close), 'pair')} of links so far apart; "
                f"it only keeps them from touching: {named}."
            )
    on_ground = ik.skeleton is ik.given  # whether the root is fixed to the ground; a moving root moves all links
    return (*lines, *(_unmoved_links(ik.given, goals) if on_ground else ()), *unchecked_shapes(ik.given, goals))


def _unmoved_links(skeleton: Skeleton, goals: Sequence[ClearanceGoal]) -> tuple[str, ...]:
    """Return a sentence about links that no joint moves: clearance goals do not check them against the world."""
    still: list[bool] = []
    for row, parent in enumerate(skeleton.parents):
        still.append(skeleton.joints[row].kind is Kind.FIXED and (parent < 0 or still[parent]))
    rows = dict.fromkeys(row for goal in goals if goal.apart is not None for row in goal.apart.avoiding if still[row])
    if not rows:
        return ()
    links = first_few([repr(skeleton.link_key(row)) for row in rows])
    return (f"Links that no joint moves are not kept apart from obstacles: {links}.",)


def unchecked_shapes(skeleton: Skeleton, goals: Sequence[ClearanceGoal]) -> tuple[str, ...]:
    """Return sentences about shapes that clearance goals do not check, or that differ from their file."""
    lines = list(self_pairs(skeleton).notes) if any(goal.avoids_itself for goal in goals) else []
    if any(goal.is_about_all for goal in goals) and (unseen := unchecked_links(skeleton)):
        lines.append(f"Clearance is not checked for links without known shapes: {listed(unseen)}.")
    worlds = [goal.world for goal in goals if goal.world is not None]
    notes = dict.fromkeys(note for source in (skeleton, *worlds) for note in source.notes)
    return (*lines, *(note for note in notes if "shape" in note.lower()))


def gap_text(distance: float, meters_per_unit: float | None) -> str:
    """Return the distance of a contact as text; a negative distance is shown as an overlap."""
    length = length_text(abs(distance), meters_per_unit)
    return f"{length} apart" if distance >= 0.0 else f"overlap of {length}"
