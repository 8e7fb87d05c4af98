"""Results of ticks: joint values, their motion, and what holds the body back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from synovia.diagnosis.explain import contact_sentences
from synovia.errors import UnsupportedError
from synovia.ik import GoalError, Solution, Status
from synovia.ik.compiled import CompiledProblem
from synovia.ik.obstacles import Places
from synovia.ik.solution import length_text, unseen_by_clearance
from synovia.ik.status import REACHED_ONLY
from synovia.kernels.layout import AXIS_ACCELERATION, AXIS_VELOCITY, REACHED, REASON, STATUS
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, Bools
from synovia.servo.answers import Home
from synovia.servo.limits import REASONS, Axes
from synovia.servo.probe import Behind, Probe

_STAMPS: Final = {
    "late": "A target of {!r} came later than its time; the body goes on to it smoothly.",
    "too late": "A target of {!r} does not count: it came too late.",
    "out of order": "A target of {!r} does not count: it is older than the last one.",
    "NaN": "A target of {!r} does not count: it has NaN.",
}
_ADVICE: Final = {  # advice for solves, which a tick cannot follow, and what replaces it
    " Try another start or more attempts.": " The body would have to leave its branch for that.",
    "Try more attempts or other goals.": "Try other goals or weights.",
    " Try more attempts.": "",
    " Another start may.": "",
    " Allow more steps.": "",
}
_ARRIVED: Final = 1e-9  # radians, length units: closer than this to its goal, the body counts as arrived
_STILL: Final = 1e-9  # radians, length units per second: a slower body counts as at rest
_SHOWN: Final = 6  # largest number of joints that a sentence names


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The objects of a servo that its ticks use; a change of goals makes new ones.

    Args:
        skeleton: The skeleton.
        axes: The axes of the body.
        probe: Evaluates the goals.
        problem: The problem.
        home: The reference of rest goals.
        concerned: Joints whose values change errors of goals, by name.
        classified: Adds the reason for a miss to a solution (a row of results), among obstacles at some places.
        goalless: Whether the body has no goals.
    """

    skeleton: Skeleton
    axes: Axes
    probe: Probe
    problem: CompiledProblem
    home: Home
    concerned: frozenset[str]
    classified: Callable[..., Array]
    goalless: bool


class Tick(Pose):
    """A pose of a ``Servo``, a ``LiveRetarget`` or a ``LiveHand``: its motion, its status, and what holds it back.

    The tick is the pose to send to the robot or the character. Its other values are computed when they are first read.

    Args:
        skeleton: The skeleton.
        q: Joint values, (nq,); the tick owns the array.
        details: Computes the other values: ``ServoDetails``, or its counterpart for live bodies and hands.

    Example:
        >>> import synovia as sy
        >>> servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
        >>> servo.reset("rest")
        >>> command = servo.step((0.4, 0.1, 0.5))
        >>> command.status.name, command.q.shape
        ('LATE', (7,))
    """

    __slots__ = ("_details",)

    def __init__(self, skeleton: Skeleton, q: Array, details: Any) -> None:
        """Store joint values that need no checks."""
        self.skeleton, self._q, self._details = skeleton, q, details
        self._frames = self._inside = self.ready = None

    @property
    def pose(self) -> Pose:
        """The pose without motion and status."""
        return Pose.trusted(self.skeleton, self._q, frames=self.frames)

    @property
    def velocity(self) -> Array:
        """Velocity since the tick before, (nv,), in the order of ``skeleton.dof_names``.

        Radians or length units per second; for rotations in the joint's own frame.
        """
        return self._details.velocity

    @property
    def acceleration(self) -> Array:
        """Acceleration, (nv,), radians or length units per second squared."""
        return self._details.acceleration

    @property
    def time(self) -> float:
        """Time on the clock of the servo, or since the reset of the live body or hand, seconds."""
        return self._details.time

    @property
    def status(self) -> Status:
        """How the body follows its targets.

        - ``REACHED``: all goals are met; a live body or hand follows as near as its joints permit.
        - ``LATE``: the body is still on its way, or limits hold it back.
        - ``HOLDING``: the body holds, as a source, a palm or targets are missing, or while the source is learned.
        - ``STALLED``: a standing foot of a live body misses its place; a pinch of a live hand does not close, or its
          tips are more than 30 % of the length of the hand from their targets on average.
        - For a servo at rest, why the goals cannot be reached, as in a ``Solution``.
        """
        return self._details.status

    @property
    def states(self) -> dict[str, str]:
        """The state of each goal and each driven joint of a servo, each part of a live body, each finger of a hand.

        - "reached": the goal is met.
        - "late": the goal is not met, and the body still moves towards it, or a twist is faster than the body.
        - "missed": the goal is not met, and the body does not come nearer; ``explain()`` says why.
        - "waiting": the goal has had no target since the reset, and keeps its place. A place relative to another joint
          waits until a goal has a target.
        - "lost": targets have stopped coming, or the clutch is released: the goal keeps the place where it stopped.
          A goal is also lost in a tick in which its target has NaN; it then goes on to its last target. A finger is
          lost while its points are not seen.
        - "holding": the body holds.

        A ``RestGoal`` has "reached" its reference within 1e-3 (radians, length scales), is "late" while the body moves
        there, and "missed" if other goals or limits keep a joint away from it.

        Driven joints go by their name, or by "joint:NAME" if a goal has that name. A driven joint has "reached" its
        value or velocity, is "late" until then, and "missed" if the end of its range or goals prevent that. It is
        "lost" without a new value or velocity for longer than the timeout: then it brakes, and goals lead it again.
        """
        return self._details.states

    @property
    def errors(self) -> tuple[GoalError, ...]:
        """Error of each goal of a servo, for the targets of this tick; distance of each tip of a hand from its target.

        If ``Servo.measured`` has found that the robot is off its commands, these are the errors of the robot. For
        fingers that are not seen, they are 0; a hand that holds has none, and neither has a live body.
        """
        return self._details.errors

    @property
    def lag(self) -> GoalError:
        """How far the body is behind its targets: the largest distance and the largest angle of all goals.

        For a live body, of all joints.
        """
        if not self.errors:
            return getattr(self._details, "lag", GoalError(0.0, 0.0))
        return GoalError(max(error.position for error in self.errors), max(error.angle for error in self.errors))

    @property
    def limited(self) -> dict[str, str]:
        """The limit that holds each joint back: "position", "velocity", "acceleration", "jerk", or "recovering".

        A joint at the end of its range is left out if it is not driven and no goal depends on it. For end effectors
        with a speed limit, it is "tool speed", or "recovering" if they are faster.
        """
        return self._details.limited

    @property
    def speeds(self) -> dict[str, float]:
        """Velocity of each joint as a fraction of its limit; joints without one are left out."""
        return self._details.speeds

    @property
    def reached(self) -> bool:
        """Whether every goal is met at these joint values, and every driven joint has its value or velocity."""
        return getattr(self._details, "reached", self.status is Status.REACHED)

    @property
    def solution(self) -> Solution:
        """The pose of a tick of a servo as a solution, with its errors and the status of the tick.

        If the robot is off its commands, see ``Servo.measured``, the solution has the expected pose of the robot.

        Raises:
            UnsupportedError: If it is a tick of a live body or hand, which solves no goals.
        """
        solution: Solution | None = getattr(self._details, "solution", None)
        if solution is None:
            raise UnsupportedError(
                "solution", expected="a tick of a Servo", hint="explain() says what holds others back"
            )
        return solution

    @property
    def stamps(self) -> dict[str, str]:
        """Problem with the time of a goal's targets, by goal of a servo.

        "doubled", "out of order", "too late" or "NaN" for an ignored target, "late" for one that is reached later than
        at its time.
        """
        return getattr(self._details, "stamps", {})

    @property
    def behind(self) -> float | None:
        """Time from the sample that a live body shows to the newest one, seconds; None without time stamps."""
        return getattr(self._details, "behind", None)

    @property
    def standing(self) -> tuple[str, ...]:
        """Roles of the foot points on which a live body stands."""
        return getattr(self._details, "standing", ())

    @property
    def pinching(self) -> tuple[str, ...]:
        """Names of the fingers of a live hand whose recorded tip touches the tip of the thumb."""
        return getattr(self._details, "pinching", ())

    def explain(self) -> list[str]:
        """Return sentences that say how far the body is behind, and why."""
        first, further = self._details.explain()
        limited, lag, lines = self.limited, self.lag, list[str](first)
        for limit in dict.fromkeys((*REASONS, *limited.values())):
            joints = [joint for joint, reason in limited.items() if reason == limit]
            if joints:
                lines.append(_sentence(limit, joints))
        lines += further
        if self.status is Status.LATE:
            lines.append(f"The body is {self._apart(lag)} behind its targets.")
        return lines

    def _apart(self, lag: GoalError) -> str:
        """Return an error as text."""
        return f"{length_text(lag.position, self.skeleton.meters_per_unit)} and {math.degrees(lag.angle):.3g} deg"

    def __repr__(self) -> str:
        """Return status and lag on one line."""
        lag = self._apart(self.lag).replace(" and", ",")
        return f"<Tick {self.status.name.lower()}; {lag} behind at {self.time:.10g} s>"


@dataclass(eq=False)
class ServoDetails:
    """The values of a servo's ``Tick``, computed from copies of the servo's state.

    Args:
        view: The objects of the servo that the tick uses.
        q: Joint values, (nq,).
        axes: The state of the axes, (n, AXIS_WIDTH).
        table: Targets, (1, goals, 17).
        row: The solution, a row of results; None without any.
        wanted: Joint values of the solution, (nq,).
        drifts: Whether the wanted joint values still move to the reference of rest goals.
        offset: Displacement of the robot from its commands, by axis; None for none.
        apart: A sentence about the offset.
        holding: Why the body holds, "" if it does not.
        lost: Goals whose targets have stopped coming.
        aimed: Goals with a target since the reset.
        off_path: A sentence about a body that rests on the path of its targets or has left it, or "".
        waiting: Goals whose twist waits for a late body.
        due: Seconds until the target of a goal is due, by its index, while the servo interpolates to it.
        stamps: As in ``Tick``.
        joints: States of driven joints.
        tools: Limits that hold end effectors back, by end effector.
        time: Time on the clock of the servo, seconds.
        blocked: Whether clearance changed the tick.
        places: Places of obstacles in the tick.
    """

    view: View
    q: Array
    axes: Array
    table: Array
    row: Array | None
    wanted: Array
    drifts: bool
    offset: Array | None
    apart: str
    holding: str
    lost: Bools
    aimed: Bools
    off_path: str
    waiting: tuple[int, ...]
    due: Mapping[int, float]
    stamps: dict[str, str]
    joints: dict[str, str]
    tools: dict[str, str]
    time: float
    blocked: bool
    places: Places | None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy or pickle: without the servo, with this tick's obstacles and reason for a miss."""
        view, places = self.view, self.places
        problem = view.problem if places is None else view.problem.with_obstacles_at(places)
        known = partial(_known, None if self.row is None else view.classified(self.row, places))
        kept = replace(view, probe=view.probe.among(places), problem=problem, classified=known)
        return self.__dict__ | {"view": kept, "places": None}

    @property
    def velocity(self) -> Array:
        """See ``Tick.velocity``."""
        return self.view.axes.as_velocity(self.axes[:, AXIS_VELOCITY])

    @property
    def acceleration(self) -> Array:
        """See ``Tick.acceleration``."""
        return self.view.axes.as_velocity(self.axes[:, AXIS_ACCELERATION])

    @property
    def solution(self) -> Solution:
        """See ``Tick.solution``."""
        return self._probe.solution(self.body, self.table, self.status)

    @property
    def _probe(self) -> Probe:
        """The probe of the goals among the obstacles of this tick."""
        return self.view.probe.among(self.places)

    @property
    def body(self) -> Array:
        """Expected joint values of the robot, (nq,): the command shifted by the known offset."""
        return self.q if self.offset is None else self.view.axes.shifted(self.q, self.offset)

    @cached_property
    def errors(self) -> tuple[GoalError, ...]:
        """See ``Tick.errors``."""
        return self._probe.errors(self.body, self.table)

    @cached_property
    def _missed(self) -> tuple[int, ...]:
        """Indices of goals that are not met, whose twist is faster than the body, or whose target is not yet due.

        A goal whose targets have all had NaN also counts as not met.
        """
        unknown = {*self.waiting, *self.due}
        if self.lost.any():
            unknown.update(np.flatnonzero(self.lost & ~self.aimed).tolist())
        ik = self.view.problem
        most, most_angle = ik.tolerance
        met = (
            error.position <= (goal.own_tolerance or most) and error.angle <= most_angle
            for goal, error in zip(ik.goals, self.errors, strict=True)
        )
        return tuple(i for i, is_met in enumerate(met) if i in unknown or not is_met)

    @property
    def states(self) -> dict[str, str]:
        """See ``Tick.states``."""
        missed, holding = self._missed, self.holding
        ends = bool(missed) and self.status not in (Status.LATE, Status.HOLDING)
        out: dict[str, str] = {}
        home = self.view.home.reached(self.body)
        moves = self.drifts or not self._arrived or self.status is Status.LATE
        for i, goal in enumerate(() if self.view.goalless else self.view.problem.goals):
            if self.lost[i] or holding:
                out[goal.label] = "lost" if self.lost[i] else "holding"
            elif not home.get(i, True):
                out[goal.label] = "late" if moves else "missed"
            elif i in missed:
                out[goal.label] = "missed" if ends and i not in self.waiting and i not in self.due else "late"
            else:
                out[goal.label] = "reached" if self.aimed[i] or not goal.takes else "waiting"
        for joint, state in self.joints.items():
            key = f"joint:{joint}" if joint in out else joint
            out[key] = "holding" if holding and state != "lost" else state
        return out

    @cached_property
    def status(self) -> Status:
        """See ``Tick.status``."""
        if self.holding:
            return Status.HOLDING
        if not self._missed:
            states = self.joints.values()
            if "late" in states or "missed" not in states:
                return Status.LATE if "late" in states else Status.REACHED
            return Status.CONFLICT if self._blocking else Status.LIMITED
        if self.row is None or self.waiting or self.due or not self._arrived or self.row[STATUS] == REACHED:
            return Status.LATE
        status = Status(int(self.view.classified(self.row, self.places)[STATUS]))
        return Status.LATE if status is Status.REACHED else status  # another pose meets the goals, but not this one

    @property
    def reached(self) -> bool:
        """See ``Tick.reached``."""
        return not self._missed and not {"late", "missed"} & {*self.joints.values()}

    @property
    def _arrived(self) -> bool:
        """Whether the body is at the wanted joint values, or at rest."""
        left = np.abs(self.view.axes.way(self.q, self.wanted)).max(initial=0.0)
        return bool(left <= _ARRIVED or np.abs(self.axes[:, AXIS_VELOCITY]).max(initial=0.0) <= _STILL)

    @property
    def limited(self) -> dict[str, str]:
        """See ``Tick.limited``."""
        found, concerned = self.view.axes.limits_of(self.axes[:, REASON]), self.view.concerned
        driven = {joint for joint, state in self.joints.items() if state != "lost"}
        return {
            joint: limit
            for joint, limit in found.items()
            if limit != "position" or joint in concerned or joint in driven
        } | self.tools

    @property
    def speeds(self) -> dict[str, float]:
        """See ``Tick.speeds``."""
        return self.view.axes.speeds_of(self.velocity)

    @property
    def _blocking(self) -> list[str]:
        """The driven joints that goals prevent from moving on."""
        limited = self.limited
        return [joint for joint, state in self.joints.items() if state == "missed" and limited.get(joint) != "position"]

    def explain(self) -> tuple[list[str], list[str]]:
        """Return the sentences of ``Tick.explain`` before and after those about limits."""
        status, problem = self.status, self.view.problem
        clear = status is Status.REACHED and any(goal.needs == "clearance" for goal in problem.goals)
        first, further = [self.holding or (REACHED_ONLY if clear else status.meaning)], list[str]()
        if self.off_path and status not in (Status.REACHED, Status.HOLDING):
            further.append(self.off_path)
        if status not in (Status.REACHED, Status.LATE, Status.HOLDING) and self.row is not None and self._missed:
            problem = problem if self.places is None else problem.with_obstacles_at(self.places)
            first = [
                _advised(line)
                for line in Solution(problem, self.view.classified(self.row, self.places)[None]).explain()
            ]
            further += Behind(self.view.problem, self._probe, self.body, self.table).sentences(self._missed)
        else:
            first += unseen_by_clearance(problem)
        if status is Status.LATE:
            further += self._behind()
        if not self.holding and self._blocking:
            lead = "Loops come first, and keep" if self.view.goalless else "Goals come first, and keep"
            further.append(f"{lead} {', '.join(self._blocking)} from going on.")
        further += [_STAMPS[stamp].format(goal) for goal, stamp in self.stamps.items() if stamp in _STAMPS]
        further += [self.apart] if self.apart else []
        return first, further + (contact_sentences(self.solution) if self.blocked else [])

    def _behind(self) -> list[str]:
        """Return sentences on why late goals are not at their targets, without the limits that ``explain`` names."""
        goals = self.view.problem.goals
        lines = [f"The target of {goals[i].label!r} waits for the body, which is slower than its twist."
                 for i in self.waiting]  # fmt: skip
        lines += [f"The target of {goals[i].label!r} is due in {seconds:.3g} s." for i, seconds in self.due.items()]
        lines += Behind(self.view.problem, self._probe, self.body, self.table).sentences(self._missed)
        if not self.limited:
            nearest = self.view.axes.nearest(self.velocity, self.acceleration)
            shares = [f"{joint} ({100.0 * share:.2g} % of its {limit})" for joint, limit, share in nearest]
            lines += [f"Nearest to their limits: {', '.join(shares)}."] if shares else []
        return lines


def _advised(line: str) -> str:
    """Return a sentence about a solution without advice on attempts, starts and steps."""
    for advice, instead in _ADVICE.items():
        line = line.replace(advice, instead)
    return line


def _known(known: Array | None, row: Array, places: Places | None = None) -> Array:
    """Return a solution with the reason for a miss that is known already."""
    del places
    return row if known is None else known


def _sentence(limit: str, joints: Sequence[str]) -> str:
    """Return a sentence about joints that a limit holds back."""
    named = ", ".join(joints[:_SHOWN]) + (f" and {len(joints) - _SHOWN} more" if len(joints) > _SHOWN else "")
    if limit == "recovering":
        return f"Recovering: the motion of {named} broke its limits; it slows down until it keeps them."
    return f"At its limit of {limit}: {named}."


_WORST: Final = ("late", "missed", "lost", "holding", "waiting", "reached")  # states of a shared goal


@dataclass(eq=False)
class Together:
    """The values of a ``Tick`` of a body with independent parts.

    Args:
        problem: The whole problem.
        q: Joint values, (nq,).
        parts: The values of each part.
        goals: Goals of each part, indices.
        places: Which joint values each part has, (nq,) each.
    """

    problem: CompiledProblem
    q: Array
    parts: Sequence[ServoDetails]
    goals: Sequence[Sequence[int]]
    places: Sequence[Bools]

    @property
    def velocity(self) -> Array:
        """See ``Tick.velocity``."""
        return sum((part.velocity for part in self.parts[1:]), self.parts[0].velocity)

    @property
    def acceleration(self) -> Array:
        """See ``Tick.acceleration``."""
        return sum((part.acceleration for part in self.parts[1:]), self.parts[0].acceleration)

    @property
    def time(self) -> float:
        """See ``Tick.time``."""
        return self.parts[0].time

    @cached_property
    def errors(self) -> tuple[GoalError, ...]:
        """See ``Tick.errors``."""
        found: dict[int, GoalError] = {}
        for part, goals in zip(self.parts, self.goals, strict=True):
            found.update(zip(goals, part.errors, strict=True))
        return tuple(found[g] for g in range(len(self.problem.goals)))

    @property
    def states(self) -> dict[str, str]:
        """See ``Tick.states``; a goal that several parts share has the state of the worst one."""
        found: dict[str, str] = {}
        for part in self.parts:
            for key, state in part.states.items():
                found[key] = min(state, found.get(key, state), key=_WORST.index)
        labels = dict.fromkeys(goal.label for goal in self.problem.goals)
        return {key: found[key] for key in (*labels, *(key for key in found if key not in labels))}

    @cached_property
    def status(self) -> Status:
        """See ``Tick.status``: LATE if any part is late, else the first part that neither holds nor has reached."""
        found = [status for part in self.parts if (status := part.status) is not Status.HOLDING]
        if Status.LATE in found:
            return Status.LATE
        return next((one for one in found if one is not Status.REACHED), found[0] if found else Status.HOLDING)

    @property
    def reached(self) -> bool:
        """See ``Tick.reached``."""
        return all(part.reached for part in self.parts)

    @property
    def limited(self) -> dict[str, str]:
        """See ``Tick.limited``."""
        return {joint: limit for part in self.parts for joint, limit in part.limited.items()}

    @property
    def speeds(self) -> dict[str, float]:
        """See ``Tick.speeds``."""
        return {joint: share for part in self.parts for joint, share in part.speeds.items()}

    @property
    def stamps(self) -> dict[str, str]:
        """See ``Tick.stamps``."""
        return {goal: stamp for part in self.parts for goal, stamp in part.stamps.items()}

    @property
    def solution(self) -> Solution:
        """See ``Tick.solution``."""
        table, q = self.problem.writer.own.copy(), self.q.copy()
        for part, goals, places in zip(self.parts, self.goals, self.places, strict=True):
            table[0, goals] = part.table[0]
            q[places] = part.body[places]
        return Probe(self.problem).solution(q, table, self.status)

    def explain(self) -> tuple[list[str], list[str]]:
        """Return the sentences of ``Tick.explain`` before and after those about limits."""
        first: dict[str, Any] = {}
        further: dict[str, Any] = {}
        named = [part for part in self.parts if part.status is not Status.REACHED] or self.parts
        for part in sorted(named, key=lambda part: part.status is not self.status):
            lines, more = part.explain()
            first |= dict.fromkeys(lines)
            further |= dict.fromkeys(more)
        return list(first), list(further)
