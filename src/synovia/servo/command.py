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
from synovia.servo.limits import REASONS, Axes
from synovia.servo.probe import Probe

_STAMPS: Final = {
    "late": "A target of {!r} came later than its time; the body goes on to it smoothly.",
    "too late": "A target of {!r} does not count: it came too late.",
    "out of order": "A target of {!r} does not count: it is older than the last one.",
    "NaN": "A target of {!r} does not count: it has NaN.",
}
_ARRIVED: Final = 1e-9  # radians, length units: as near to the place where the body goes, it is there
_STILL: Final = 1e-9  # per second
_SHOWN: Final = 6  # most joints that a sentence names


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """What commands need of a servo with its present goals.

    Args:
        skeleton: The skeleton.
        axes: The axes of the body.
        probe: Looks at the goals.
        problem: The problem.
        classified: Returns an answer, a row of results, with the reason for a miss, among obstacles at some places.
    """

    skeleton: Skeleton
    axes: Axes
    probe: Probe
    problem: CompiledProblem
    classified: Callable[..., Array]


@dataclass(frozen=True, eq=False, slots=True)
class _Kept:
    """What a copied command keeps of its servo, which goes on.

    Args:
        skeleton: The skeleton.
        axes: The axes of the body.
        probe: Looks at goals among the obstacles of the tick.
        problem: The problem with these obstacles.
        row: The answer of the tick with the reason for a miss; None without an answer.
    """

    skeleton: Skeleton
    axes: Axes
    probe: Probe
    problem: CompiledProblem
    row: Array | None

    def classified(self, row: Array, places: Places | None = None) -> Array:
        """Return the answer with the reason for a miss."""
        del places
        return row if self.row is None else self.row


class Command:
    """What a body does in one tick of a ``Servo``. Its arrays are its own.

    Attributes:
        skeleton: The skeleton of the servo.
        q: Joint values, (nq,).
        velocity: Velocity since the tick before, (nv,), in the order of ``skeleton.dof_names``: radians or length units
            per second; for rotations in the joint's own frame.
        acceleration: Its change, (nv,), per second.
        time: Time on the clock of the servo, seconds.
        stamps: By goal, what was wrong with the time of its targets: "doubled", "out of order" or "too late" for one
            that does not count ("NaN" if it has no numbers), "late" for one that is reached later than at its time.

    Example:
        >>> import synovia as sy
        >>> servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
        >>> servo.reset("rest")
        >>> command = servo.step((0.4, 0.1, 0.5))
        >>> command.status.name, command.q.shape
        ('LATE', (7,))
    """

    __slots__ = (
        "_aimed", "_beside", "_blocked", "_errors", "_goalless", "_joints", "_lost", "_offset", "_places", "_pose",
        "_reasons", "_row", "_servo", "_table", "_tools", "_waiting", "_wanted", "acceleration", "holding", "q",
        "skeleton", "stamps", "time", "velocity",
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
        """Store the tick: targets, the answer (a row of results) and joint values that it goes to, and why it holds.

        ``offset`` is how far the robot is beside its commands, by axis, and ``beside`` a sentence about it.
        ``lost`` has the goals whose targets have stopped coming, ``aimed`` those that have got one since the reset, and
        ``waiting`` those whose target waits for the body. ``blocked`` says whether clearance has changed the tick, and
        ``places`` where obstacles stood in it. ``joints`` has the states of driven joints, and ``goalless`` says that
        the body has no goals.
        """
        self._servo, self._table, self._row, self._wanted, self._reasons = servo, table, row, wanted, reasons
        self.skeleton: Skeleton = servo.skeleton
        self.q, self.velocity, self.acceleration = q, velocity, acceleration
        self.holding, self.stamps = holding, stamps
        self._lost, self._aimed, self._waiting = lost, aimed, waiting
        self._tools, self._blocked, self._places = tools, blocked, places
        self.time, self._offset, self._beside = time, offset, beside
        self._joints, self._goalless = joints or {}, goalless
        self._pose: Pose | None = None
        self._errors: tuple[GoalError, ...] | None = None

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Copy and pickle without the servo; see ``_Kept``."""
        servo, places = self._servo, self._places
        problem = servo.problem if places is None else servo.problem.with_obstacles_at(places)
        row = None if self._row is None else servo.classified(self._row, places)
        kept = _Kept(self.skeleton, servo.axes, servo.probe.among(places), problem, row)
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

        If the robot is beside its commands, see ``Servo.measured``, it is the pose where it is expected.
        """
        return self._probe.solution(self._body, self._table, self.status)

    @property
    def _probe(self) -> Probe:
        """What looks at the goals among the obstacles of this tick."""
        return self._servo.probe.among(self._places)

    @property
    def _body(self) -> Array:
        """Joint values of the robot, (nq,): those of the command, and what is known of the difference."""
        return self.q if self._offset is None else self._servo.axes.shifted(self.q, self._offset)

    @property
    def errors(self) -> tuple[GoalError, ...]:
        """Error of each goal at these joint values, for the targets of this tick.

        If ``Servo.measured`` has found that the robot is beside its commands, the errors are those of the robot.
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
        """Indices of the goals that are not met at these joint values, or whose twist is faster than the body."""
        return tuple(i for i, error in enumerate(self.errors) if i in self._waiting or not self._allows(i, *error))

    def _allows(self, i: int, position: float, angle: float) -> bool:
        """Return whether goal i is met with these errors."""
        ik = self._servo.problem
        most, most_angle = ik.tolerance
        return position <= (ik.goals[i].own_tolerance or most) and angle <= most_angle

    @property
    def states(self) -> dict[str, str]:
        """The state of each goal and of each driven joint, by its name; "joint:NAME" for a joint with a goal's name.

        - "reached": it is met.
        - "late": it is not met, and the body is on its way, or a twist is faster than the body.
        - "missed": it is not met, and the body does not come nearer; ``explain()`` says why.
        - "waiting": it has got no target since the reset, and keeps its place.
        - "lost": its targets have stopped coming, or its clutch is released: it keeps the place where it stopped. In a
          tick in which its target has NaN, it is lost, too, and goes on to the last one.
        - "holding": the body holds.

        A driven joint has "reached" its value or velocity, is "late" until then, and "missed" if the end of its range
        or goals keep it from there. "lost" is one that has got neither for longer than the timeout: it brakes, and
        goals lead it again.
        """
        goals, missed = self._servo.problem.goals, self.missed
        ends = bool(missed) and self.status not in (Status.LATE, Status.HOLDING)
        out: dict[str, str] = {}
        for i, goal in enumerate(() if self._goalless else goals):
            if self._lost[i] or self.holding:
                out[goal.label] = "lost" if self._lost[i] else "holding"
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
        """``REACHED``, ``LATE`` on the way, ``HOLDING``, or why the goals cannot be reached, as in a ``Solution``."""
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
        return Status.LATE if status is Status.REACHED else status  # another pose reaches, to which it does not come

    @property
    def reached(self) -> bool:
        """Whether every goal is met at these joint values, and every driven joint has its value or velocity."""
        return not self.missed and not {"late", "missed"} & {*self._joints.values()}

    def __bool__(self) -> bool:
        """Return whether every goal is met at these joint values, and every driven joint has its value or velocity."""
        return self.reached

    @property
    def _arrived(self) -> bool:
        """Whether the body is where it goes, or stands still as near to that as its limits allow."""
        left = np.abs(self._servo.axes.way(self.q, self._wanted)).max(initial=0.0)
        return bool(left <= _ARRIVED or np.abs(self.velocity).max(initial=0.0) <= _STILL)

    @property
    def limited(self) -> dict[str, str]:
        """Which limit holds a joint back: "position", "velocity", "acceleration", "jerk", or "recovering".

        For end effectors with a limit of their speed, it is "tool speed", or "recovering" if they are faster.
        """
        return self._servo.axes.limits_of(self._reasons) | self._tools

    @property
    def _blocking(self) -> list[str]:
        """The driven joints that goals keep where they are."""
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
        """Return sentences about what keeps late goals from their targets, except limits that are named."""
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
