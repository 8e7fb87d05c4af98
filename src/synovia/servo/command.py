"""The command of one tick: joint values, their motion, and what holds the body back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from synovia.diagnosis.explain import contact_sentences
from synovia.ik import GoalError, Solution, Status
from synovia.ik.compiled import CompiledProblem
from synovia.ik.obstacles import Places
from synovia.ik.solution import length_text, unseen_by_clearance
from synovia.kernels.layout import STATUS
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, Bools
from synovia.servo.behind import Behind
from synovia.servo.home import Home
from synovia.servo.limits import REASONS, Axes
from synovia.servo.probe import Probe

_STAMPS: Final = {
    "late": "A target of {!r} came later than its time; the body goes on to it smoothly.",
    "too late": "A target of {!r} does not count: it came too late.",
    "out of order": "A target of {!r} does not count: it is older than the last one.",
    "NaN": "A target of {!r} does not count: it has NaN.",
}
_ARRIVED: Final = 1e-9  # radians, length units: closer than this to its goal, the body counts as arrived
_STILL: Final = 1e-9  # radians, length units per second: a slower body counts as at rest
_SHOWN: Final = 6  # largest number of joints that a sentence names


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The parts of a servo with its present goals that commands use.

    Args:
        skeleton: The skeleton.
        axes: The axes of the body.
        probe: Evaluates the goals.
        problem: The problem.
        home: The reference of rest goals.
        concerned: Joints whose values change errors of goals, by name.
        classified: Adds the reason for a miss to a solution (a row of results), among obstacles at some places.
    """

    skeleton: Skeleton
    axes: Axes
    probe: Probe
    problem: CompiledProblem
    home: Home
    concerned: frozenset[str]
    classified: Callable[..., Array]


@dataclass(frozen=True, eq=False, slots=True)
class _Kept:
    """The parts of a servo that a copied command stores, independent of later ticks.

    Args:
        skeleton: The skeleton.
        axes: The axes of the body.
        probe: Evaluates the goals among the obstacles of the tick.
        problem: The problem with these obstacles.
        home: The reference of rest goals.
        concerned: Joints whose values change errors of goals, by name.
        row: The solution of the tick with the reason for a miss; None without a solution.
    """

    skeleton: Skeleton
    axes: Axes
    probe: Probe
    problem: CompiledProblem
    home: Home
    concerned: frozenset[str]
    row: Array | None

    def classified(self, row: Array, places: Places | None = None) -> Array:
        """Return the solution with the reason for a miss."""
        del places
        return row if self.row is None else self.row


class Command:
    """Joint values, motion and status of one tick of a ``Servo``. The command owns its arrays.

    Attributes:
        skeleton: The skeleton of the servo.
        q: Joint values, (nq,).
        velocity: Velocity since the tick before, (nv,), in the order of ``skeleton.dof_names``: radians or length units
            per second; for rotations in the joint's own frame.
        acceleration: Acceleration, (nv,), radians or length units per second squared.
        time: Time on the clock of the servo, seconds.
        stamps: Problem with the time of a goal's targets, by goal: "doubled", "out of order", "too late" or "NaN" for
            an ignored target, "late" for a target that is reached later than at its time.

    Example:
        >>> import synovia as sy
        >>> servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
        >>> servo.reset("rest")
        >>> command = servo.step((0.4, 0.1, 0.5))
        >>> command.status.name, command.q.shape
        ('LATE', (7,))
    """

    __slots__ = (
        "_aimed", "_beside", "_blocked", "_drifts", "_errors", "_goalless", "_joints", "_lost", "_offset", "_places",
        "_pose", "_reasons", "_row", "_servo", "_table", "_tools", "_waiting", "_wanted", "acceleration", "holding",
        "q", "skeleton", "stamps", "time", "velocity",
    )  # fmt: skip

    def __init__(
        self,
        servo: View | _Kept,
        q: Array,
        velocity: Array,
        acceleration: Array,
        reasons: Array,
        *,
        table: Array,
        row: Array | None,
        wanted: Array,
        drifts: bool = False,
        offset: Array | None = None,
        beside: str = "",
        holding: str,
        lost: Bools,
        aimed: Bools,
        waiting: tuple[int, ...] = (),
        stamps: dict[str, str],
        joints: dict[str, str] | None = None,
        goalless: bool = False,
        tools: dict[str, str],
        time: float,
        blocked: bool = False,
        places: Places | None = None,
    ) -> None:
        """Store the tick: targets, solution (a row of results), wanted joint values, and the reason for holding.

        ``drifts`` says whether the wanted joint values still move to the reference of rest goals.
        ``offset`` is the displacement of the robot from its commands, by axis, and ``beside`` a sentence about it.
        ``lost`` marks goals whose targets have stopped coming, ``aimed`` marks goals with a target since the reset, and
        ``waiting`` lists goals whose target waits for the body. ``blocked`` says whether clearance changed the tick,
        and ``places`` has the places of obstacles in it. ``joints`` has the states of driven joints, and ``goalless``
        says that the body has no goals.
        """
        self._servo, self._table, self._row, self._wanted, self._reasons = servo, table, row, wanted, reasons
        self.skeleton: Skeleton = servo.skeleton
        self.q, self.velocity, self.acceleration = q, velocity, acceleration
        self.holding, self.stamps = holding, stamps
        self._lost, self._aimed, self._waiting = lost, aimed, waiting
        self._tools, self._blocked, self._places = tools, blocked, places
        self.time, self._offset, self._beside = time, offset, beside
        self._joints, self._goalless, self._drifts = joints or {}, goalless, drifts
        self._pose: Pose | None = None
        self._errors: tuple[GoalError, ...] | None = None

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Copy and pickle without the servo; see ``_Kept``."""
        servo, places = self._servo, self._places
        problem = servo.problem if places is None else servo.problem.with_obstacles_at(places)
        row = None if self._row is None else servo.classified(self._row, places)
        kept = _Kept(self.skeleton, servo.axes, servo.probe.among(places), problem, servo.home, servo.concerned, row)
        values = {name: getattr(self, name) for name in self.__slots__}
        return None, values | {"_servo": kept, "_places": None}

    @property
    def pose(self) -> Pose:
        """The pose at these joint values."""
        if self._pose is None:
            self._pose = Pose.trusted(self.skeleton, self.q.copy())
        return self._pose

    @property
    def solution(self) -> Solution:
        """The pose of this tick as a solution, with its errors and the status of the command.

        If the robot is off its commands, see ``Servo.measured``, the solution has the expected pose of the robot.
        """
        return self._probe.solution(self._body, self._table, self.status)

    @property
    def _probe(self) -> Probe:
        """The probe of the goals among the obstacles of this tick."""
        return self._servo.probe.among(self._places)

    @property
    def _body(self) -> Array:
        """Expected joint values of the robot, (nq,): the command shifted by the known offset."""
        return self.q if self._offset is None else self._servo.axes.shifted(self.q, self._offset)

    @property
    def errors(self) -> tuple[GoalError, ...]:
        """Error of each goal at these joint values, for the targets of this tick.

        If ``Servo.measured`` has found that the robot is off its commands, these are the errors of the robot.
        """
        if self._errors is None:
            self._errors = self._probe.errors(self._body, self._table)
        return self._errors

    @property
    def lag(self) -> GoalError:
        """How far the body is behind its targets: the largest distance and the largest angle of all goals."""
        if not self.errors:
            return GoalError(0.0, 0.0)
        return GoalError(max(error.position for error in self.errors), max(error.angle for error in self.errors))

    @property
    def missed(self) -> tuple[int, ...]:
        """Indices of the goals that are not met at these joint values, or whose twist is faster than the body.

        A goal is not met either as long as all its targets have had NaN.
        """
        unknown = {*self._waiting, *np.flatnonzero(self._lost & ~self._aimed).tolist()}
        return tuple(i for i, error in enumerate(self.errors) if i in unknown or not self._allows(i, *error))

    def _allows(self, i: int, position: float, angle: float) -> bool:
        """Return whether goal i is met with these errors."""
        ik = self._servo.problem
        most, most_angle = ik.tolerance
        return position <= (ik.goals[i].own_tolerance or most) and angle <= most_angle

    @property
    def states(self) -> dict[str, str]:
        """The state of each goal and of each driven joint, by its name; "joint:NAME" for a joint with a goal's name.

        - "reached": the goal is met.
        - "late": the goal is not met, and the body still moves towards it, or a twist is faster than the body.
        - "missed": the goal is not met, and the body does not come nearer; ``explain()`` says why.
        - "waiting": the goal has had no target since the reset, and keeps its place. A place relative to another joint
          waits until a goal has a target.
        - "lost": targets have stopped coming, or the clutch is released: the goal keeps the place where it stopped.
          A goal is also lost in a tick in which its target has NaN; it then goes on to its last target.
        - "holding": the body holds.

        A ``RestGoal`` has "reached" its reference within 1e-3 (radians, length scales), is "late" while the body moves
        there, and "missed" if other goals or limits keep a joint away from it.

        A driven joint has "reached" its value or velocity, is "late" until then, and "missed" if the end of its range
        or goals prevent that. It is "lost" without a new value or velocity for longer than the timeout: then it brakes,
        and goals lead it again.
        """
        goals, missed = self._servo.problem.goals, self.missed
        ends = bool(missed) and self.status not in (Status.LATE, Status.HOLDING)
        out: dict[str, str] = {}
        home = self._servo.home.reached(self._body)
        moves = self._drifts or not self._arrived or self.status is Status.LATE
        for i, goal in enumerate(() if self._goalless else goals):
            if self._lost[i] or self.holding:
                out[goal.label] = "lost" if self._lost[i] else "holding"
            elif not home.get(i, True):
                out[goal.label] = "late" if moves else "missed"
            elif i in missed:
                out[goal.label] = "missed" if ends and i not in self._waiting else "late"
            else:
                out[goal.label] = "reached" if self._aimed[i] or not goal.takes else "waiting"
        for joint, state in self._joints.items():
            key = f"joint:{joint}" if joint in out else joint
            out[key] = "holding" if self.holding and state != "lost" else state
        return out

    @property
    def status(self) -> Status:
        """``REACHED``, ``LATE`` until then, ``HOLDING``, or why the goals cannot be reached, as in a ``Solution``."""
        if self.holding:
            return Status.HOLDING
        if not self.missed:
            states = self._joints.values()
            if "late" in states or "missed" not in states:
                return Status.LATE if "late" in states else Status.REACHED
            return Status.CONFLICT if self._blocking else Status.LIMITED
        if self._row is None or self._waiting or not self._arrived or self._row[STATUS] == Status.REACHED:
            return Status.LATE
        status = Status(int(self._servo.classified(self._row, self._places)[STATUS]))
        return Status.LATE if status is Status.REACHED else status  # another pose meets the goals, but not this one

    @property
    def reached(self) -> bool:
        """Whether every goal is met at these joint values, and every driven joint has its value or velocity."""
        return not self.missed and not {"late", "missed"} & {*self._joints.values()}

    def __bool__(self) -> bool:
        """Return whether every goal is met at these joint values, and every driven joint has its value or velocity."""
        return self.reached

    @property
    def _arrived(self) -> bool:
        """Whether the body is at the wanted joint values, or at rest."""
        left = np.abs(self._servo.axes.way(self.q, self._wanted)).max(initial=0.0)
        return bool(left <= _ARRIVED or np.abs(self.velocity).max(initial=0.0) <= _STILL)

    @property
    def limited(self) -> dict[str, str]:
        """The limit that holds each joint back: "position", "velocity", "acceleration", "jerk", or "recovering".

        A joint at the end of its range is left out if it is not driven and no goal depends on it. For end effectors
        with a speed limit, it is "tool speed", or "recovering" if they are faster.
        """
        found, concerned = self._servo.axes.limits_of(self._reasons), self._servo.concerned
        driven = {joint for joint, state in self._joints.items() if state != "lost"}
        return {
            joint: limit
            for joint, limit in found.items()
            if limit != "position" or joint in concerned or joint in driven
        } | self._tools

    @property
    def _blocking(self) -> list[str]:
        """The driven joints that goals prevent from moving on."""
        limited = self.limited
        return [
            joint for joint, state in self._joints.items() if state == "missed" and limited.get(joint) != "position"
        ]

    def explain(self) -> list[str]:
        """Return sentences that say how far the body is behind, and why."""
        status = self.status
        lines = [self.holding or status.meaning]
        problem = self._servo.problem
        if status not in (Status.REACHED, Status.LATE, Status.HOLDING) and self._row is not None and self.missed:
            problem = problem if self._places is None else problem.with_obstacles_at(self._places)
            lines = Solution(problem, self._servo.classified(self._row, self._places)[None]).explain()
        else:
            lines += unseen_by_clearance(problem)
        for limit in dict.fromkeys((*REASONS, *self._tools.values())):
            joints = [joint for joint, reason in self.limited.items() if reason == limit]
            if joints:
                lines.append(_sentence(limit, joints))
        if status is Status.LATE:
            lines += self._behind()
        if not self.holding and self._blocking:
            first = "Loops come first, and keep" if self._goalless else "Goals come first, and keep"
            lines.append(f"{first} {', '.join(self._blocking)} from going on.")
        lines += [_STAMPS[told].format(goal) for goal, told in self.stamps.items() if told in _STAMPS]
        lines += [self._beside] if self._beside else []
        lines += contact_sentences(self.solution) if self._blocked else []
        lag = self.lag
        if status is Status.LATE:
            away = length_text(lag.position, self.skeleton.meters_per_unit)
            lines.append(f"The body is {away} and {math.degrees(lag.angle):.3g} deg behind its targets.")
        return lines

    def _behind(self) -> list[str]:
        """Return sentences on why late goals are not at their targets, without the limits that ``explain`` names."""
        goals = self._servo.problem.goals
        lines = [f"The target of {goals[i].label!r} waits for the body, which is slower than its twist."
                 for i in self._waiting]  # fmt: skip
        lines += Behind(self._servo.problem, self._probe, self._body, self._table).sentences(self.missed)
        if not self.limited:
            nearest = self._servo.axes.nearest(self.velocity, self.acceleration)
            shares = [f"{joint} ({100.0 * share:.2g} % of its {limit})" for joint, limit, share in nearest]
            lines += [f"Nearest to their limits: {', '.join(shares)}."] if shares else []
        return lines

    def __repr__(self) -> str:
        """Return status and lag on one line."""
        away = length_text(self.lag.position, self.skeleton.meters_per_unit)
        status = self.status.name.lower()
        return f"<Command {status}; {away}, {math.degrees(self.lag.angle):.3g} deg behind at {self.time:.10g} s>"


def _sentence(limit: str, joints: Sequence[str]) -> str:
    """Return a sentence about joints that a limit holds back."""
    named = ", ".join(joints[:_SHOWN]) + (f" and {len(joints) - _SHOWN} more" if len(joints) > _SHOWN else "")
    if limit == "recovering":
        return f"Recovering: the motion of {named} broke its limits; it slows down until it keeps them."
    return f"At its limit of {limit}: {named}."
