"""The ticks of a body that follows live targets and keeps its limits, or of a part that moves independently."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from synovia.arguments import check_kind
from synovia.errors import InputError, UnsupportedError, unknown_name
from synovia.facade import IK
from synovia.goals import Goal
from synovia.ik.compiled import CompiledProblem, Start
from synovia.ik.obstacles import Places
from synovia.ik.targets import Targets
from synovia.kernels.layout import (
    AXIS_ACCELERATION,
    AXIS_VELOCITY,
    FAR,
    GAP,
    HELD_STILL,
    MEETS,
    MODE,
    REASON,
    RECOVERING,
    SPIN,
    STOP,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
)
from synovia.model import Pose
from synovia.model.geometry import Array, Bools, is_number
from synovia.model.root import free_root
from synovia.model.shapes.world import World
from synovia.model.tables import writable
from synovia.servo.answers import Answers, winding
from synovia.servo.inputs import (
    Inputs,
    LiveTargets,
    News,
    question_rate,
    question_start,
    question_time,
    question_velocities,
    seconds,
    some,
)
from synovia.servo.joints import Drives, Orders, joint_ticks
from synovia.servo.levels import NO_PATH, Guard, TickLevels
from synovia.servo.limits import Axes, ToolSpeed, concerned_joints
from synovia.servo.loops import Branch, Closure
from synovia.servo.measured import Feedback
from synovia.servo.path import Path
from synovia.servo.probe import Probe
from synovia.servo.targets import Clutch, OneEuro, exp_turn, log_turn
from synovia.servo.tick import ServoDetails, Tick, View


def changed_goals(
    before: Sequence[Goal],
    goals: Goal | Iterable[Goal] | None,
    weights: Mapping[str, float],
    priorities: Mapping[str, int | None],
    world: World | None,
) -> tuple[Goal, ...]:
    """Return the goals after a change, see ``Servo.change``.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If no goal has a given name.
    """
    found = list(before) if goals is None else [goals] if isinstance(goals, Goal) else list(goals)
    for one in found:
        check_kind("goals", one, Goal, "such as sy.PoseGoal('tool')")
    if not found:
        raise InputError("goals", value=[], expected="one Goal or several", hint="hold() lets the body rest")
    for argument, values in (("weight", weights), ("priority", priorities)):
        for name, value in values.items():
            if argument == "priority" and not found[_place(found, name)].has_priority:
                raise InputError(f"priority of {name!r}", value=value, expected="none: it comes after all others")
            found[_place(found, name)] = found[_place(found, name)].changed(**{argument: value})
    if world is not None:
        check_kind("world", world, World, "sy.load_world(path) reads one")
        if not any(goal.takes_world for goal in found):
            raise InputError("world", value=world, expected="a servo with a ClearanceGoal")
        found = [goal.changed(world=world) if goal.takes_world else goal for goal in found]
    return tuple(found)


def _place(goals: Sequence[Goal], name: Any) -> int:
    """Return the index of a goal.

    Raises:
        InputError: If several goals have this name.
        UnknownNameError: If no goal has it.
    """
    places = [k for k, goal in enumerate(goals) if goal.label == name]
    if not places:
        raise unknown_name("goal", name, [goal.label for goal in goals])
    if len(places) > 1:
        raise InputError("goal", value=name, expected="a name of one goal", hint="name= gives each its own")
    return places[0]


def same_goals(before: Sequence[Goal], after: Sequence[Goal]) -> list[tuple[int, int]]:
    """Return pairs of indices, after a change and before it, of goals with the same name and kind."""
    left = {(goal.label, goal.kind, goal.takes): k for k, goal in reversed(list(enumerate(before)))}
    pairs: list[tuple[int, int]] = []
    for new, goal in enumerate(after):
        old = left.pop((goal.label, goal.kind, goal.takes), None)
        if old is not None:
            pairs.append((new, old))
    return pairs


_SLOW_LEAD: Final = 0.3  # with late="slow", a twist may be ahead by this fraction of the usual time
_CREEP: Final = 0.25  # length scales, radians per second: speed at which ``Path.aside`` moves on
_BEHIND: Final = 0.05  # radians, length units: ``Path.aside`` waits for a body that is farther behind
_STILL: Final = 1e-6  # radians, length units per second: a slower body counts as at rest
_THERE: Final = 1e-6  # radians, length units: closer to ``Path.aside``, the body counts as arrived
_SMALL_PART: Final = 1e-4  # fraction of the braking displacement from which the stop is extrapolated
_ROUNDING: Final = 1e-9  # fraction of a limit: a smaller excess is a rounding error
_NO_WORSE: Final = 1.01  # a solution's error is accepted up to this multiple of the goal's present error
_UNDRIVEN: Final = "Holding: no joint has got a value or a velocity for longer than the timeout; the next one goes on."
_UNKNOWN: Final = "Holding: no target has been a number yet; the next one goes on."
_OFF_PATH: Final = "The body could not go on along its path, and has left it."
_WAITS: Final = "The body rests on its path: within its limits, no motion of the joints leads on along it."
_LOST: Final = "Holding: no usable target has come for longer than the timeout; the next one goes on."


@dataclass(frozen=True)
class Settings:
    """The settings of a servo, see ``Servo``; ``solver`` is None for the default of the goals."""

    solver: Any
    rate: float
    velocity: Any
    acceleration: Any
    jerk: Any
    tool_speed: Any
    late: Any
    timeout: float
    filter: OneEuro | None
    deadline: float | None
    interpolation: float
    following_error: Any


@dataclass(frozen=True)
class State:
    """The state of a part, for new parts after a change of goals."""

    goals: tuple[Goal, ...]
    q: Array
    answer: Array
    places: Bools
    axes: Axes
    own: Bools
    coming: Array | None
    live: LiveTargets
    inputs: Inputs
    lost: Bools
    held: str
    time: float


class Part:
    """A part of a body that moves independently of the others, or the whole body: what its goals do in each tick.

    Args:
        ik: The problem of the part.
        settings: The settings of the servo.
        own: Joints of the part, rows of the skeleton; None for all joints.
        goalless: Whether the body has no goals.
    """

    def __init__(self, ik: IK, settings: Settings, own: Iterable[int] | None = None, *, goalless: bool = False) -> None:
        """Load the kernels."""
        late, filtered, interpolation = settings.late, settings.filter, settings.interpolation
        self.ik, self._goalless, self._solver = ik, goalless, settings.solver
        self._q = self.problem.default_start.values
        if self.ik.solver.bounds_motion:
            raise InputError("solver", value=self.ik.solver, expected="one without largest_move")
        self.skeleton = self.ik.skeleton
        self.rate = _positive("rate", settings.rate, "ticks per second")
        question_rate(self.rate)
        self.timeout = _positive("timeout", settings.timeout, "seconds")
        self.deadline = None if settings.deadline is None else _positive("deadline", settings.deadline, "seconds")
        self.axes = Axes(self.skeleton, self.ik.moving, self.ik.reach)
        self.axes.set_limits(settings.velocity, settings.acceleration, settings.jerk)
        self.own = None if own is None else frozenset(own)
        rows = range(len(self.skeleton)) if self.own is None else self.own
        self._own_axes: Bools = np.isin(self.axes.joints, [*rows])
        self.places: Bools = np.zeros(self.skeleton.nq, bool)
        for row in rows:
            self.places[self.skeleton.q_slice(row)] = True
        self.around: Array | None = None
        question_velocities(self.skeleton, self.axes.rows["velocity"])
        self._limits_jerk = settings.jerk is not None
        window = settings.following_error
        self._feedback = Feedback(self.axes, self.ik.reach, window, winding=winding(self.skeleton))
        self._tick, self._begin, self._replan, self._rest, self._stop_together = _kernels(self.axes)
        self._tools = None if settings.tool_speed is None else ToolSpeed(self.axes, settings.tool_speed)
        self._closed = self._new_closed(late)
        if filtered is not None:
            check_kind("filter", filtered, OneEuro, "sy.live.OneEuro() is one")
        self.filter = filtered
        if not is_number(interpolation) or not 0.0 <= interpolation < math.inf:
            raise InputError("interpolation", value=interpolation, expected="seconds, 0 or more")
        self._lag = float(interpolation)
        if late not in ("deviate", "slow"):
            raise InputError("late", value=late, expected="'deviate' or 'slow'")
        self.late: Literal["deviate", "slow"] = late
        self._drives = Drives(self.axes, self.timeout, self.ik.tolerance)
        self._driven = False  # whether joints are driven and no goal leads the others
        free = free_root(self.skeleton.joints, self.skeleton.parents)
        self._root_moves = self.ik.root != "fixed" or free in self.ik.moving
        self._recovers = np.zeros(len(self.axes.joints), bool)  # axes whose lowered limits apply only later
        self._braked = False  # whether the body has braked for lowered limits
        self._needs_stop = False  # whether the next tick must find a stop of the whole body, as limits have changed
        self._coming: Array | None = None  # limits that hold as soon as the body can brake with them
        self._aim = self._q, self._q
        self._build()
        self.reset()
        self._load()
        self.reset()
        self._placed = False  # whether the user has set the start pose

    def _build(self) -> None:
        """Build the objects that depend on the goals."""
        self._live = LiveTargets(self.problem)
        self.probe = Probe(self.problem)
        self._answers = Answers(self.problem, self.axes, self.deadline)
        answers = self._answers
        concerned = concerned_joints(self.skeleton, self.ik.goals)
        self._view = View(
            self.skeleton, self.axes, self.probe, self.problem, answers.home, concerned, answers.classified,
            self._goalless,
        )  # fmt: skip
        self._branch = None if self._closed is None else Branch(self.problem, self.axes, self._closed)
        self._inputs = Inputs(self.problem, self._live, self, lag=self._lag, noise=self.filter, timeout=self.timeout)
        self._places: Places | None = None
        self._obstacles = self.problem.obstacles
        self._path: Path | None = None  # the path of the targets, while the body follows it
        self._leaves_path = False  # whether the body could not follow the path, and goes to the targets
        self._guard = self._new_guard()
        self._choose_tick()

    def _choose_tick(self) -> None:
        """Build the kernel of ticks by priority levels."""
        ways = None if self._guard is None else self._guard.ways
        self._levels = TickLevels(self.problem, self.axes, {} if self._tools is None else self._tools.limits, ways)
        self._led: Array | None = None  # targets (1, goals, 17) with missed ones replaced by their places
        self._led_row: Array | None = None  # row of results for which ``_led`` was computed
        self._spins: Array | None = None  # axes of rotation of twists, as in the states of goals

    @property
    def _proves(self) -> bool:
        """Whether a tick needs a known stop of the whole body, whatever the goals do."""
        return self._levels.above > 0 or self._levels.limits_turns

    def _new_closed(self, late: str) -> Closure | None:
        """Return the loops of the body, None without loops.

        Raises:
            UnsupportedError: If the body has to stay on a path.
        """
        mechanism = self.skeleton.mechanism
        if mechanism is None:
            return None
        if late == "slow":
            raise UnsupportedError(
                "late='slow' does not keep loops closed",
                where=self.skeleton.name,
                value=[tie.label for tie in self.skeleton.loops],
                expected="late='deviate'",
                hint="interpolation= and slower targets keep a body nearer to their path",
            )
        return Closure(self.axes, self.ik.moving, mechanism)

    @property
    def _avoids(self) -> bool:
        """Whether the body keeps the distances of a clearance goal in every tick."""
        return any(goal.needs == "clearance" and goal.rank < 0 for goal in self.ik.goals)

    def _new_guard(self) -> Guard | None:
        """Return the distances that the body keeps in every tick, None without any.

        Raises:
            UnsupportedError: If another setting of the servo does not support clearance goals.
        """
        if not self._avoids:
            return None
        if self.late == "slow":
            raise UnsupportedError(
                "a servo with a clearance goal does not have late='slow'",
                where="Servo",
                expected="late='deviate'",
                hint="priority= makes the clearance an ordinary goal, without a promise for every tick",
            )
        return Guard(self.problem, self.axes)

    def _load(self) -> None:
        """Load all kernels that ticks need, so that no tick waits for compilation."""
        if self._obstacles is not None:
            self._put(self._obstacles.none)
            self._places = None
        self._placed = True
        self.take(self.read((None, None, None, None), None))
        self._answers.load(self._q, self._live.table)

    @property
    def problem(self) -> CompiledProblem:
        """The packed problem."""
        return self.ik.problem

    def reset(
        self, pose: Start | None = None, velocity: Any = None, acceleration: Any = None, *, time: float = 0.0
    ) -> None:
        """See ``Servo.reset``; velocities of joints of other parts do not count."""
        start = self.problem.default_start if pose is None else self.problem.as_start(pose)
        clock = seconds("time", time)
        speeds, gains = (
            np.zeros(len(self.axes.joints)) if given is None else self._own_axes * self.axes.of_motion(given, name)
            for given, name in ((velocity, "velocity"), (acceleration, "acceleration"))
        )
        self._q = start.values.copy()
        if self._places is not None:
            self._put(self._places.home)
        self._feedback.reset()
        self._begin(speeds, 1.0 / self.rate)
        if gains.any():
            self.axes.table[:, AXIS_ACCELERATION] = gains
            self._replan()
        if self._closed is not None:
            self._q = self._closed.reset(self._q)
            speeds = self.axes.table[:, AXIS_VELOCITY]
            self._replan()
        self._time = clock
        self._held = _UNDRIVEN if self._goalless else ""
        self._lost: Bools = np.zeros(len(self.ik.goals), bool)
        self._oldest = -np.inf  # time of the oldest target that still applies, or an earlier time
        self._inputs.reset()
        self._drives.reset()
        self._driven = False
        self._live.reset(self.probe.places(self._q, self._live.unanchored(self._live.anchored)))
        self._levels.reset(self._live.table[0], self._q, rests=not speeds.any())
        self._led, self._led_row = None, None
        self._answers.hold(None)
        self._answers.reset(self._stopped())
        if self._branch is not None:
            self._branch.reset(self._answers.q)
        self._path, self._leaves_path = None, False
        if self._guard is not None:
            self._guard.reset(self._q)
        self._last = self._command()
        self._placed = True

    @property
    def kept(self) -> Any:
        """A copy of the state that a change replaces."""
        return dict(self.__dict__), self.axes.table.copy(), self.axes.rows

    @kept.setter
    def kept(self, kept: Any) -> None:
        """Undo a change."""
        values, table, rows = kept
        self.__dict__.clear()
        self.__dict__.update(values)
        self.axes.table[:], self.axes.rows = table, rows

    def adopt(self, ik: IK) -> None:
        """Switch to another problem of the same body, from the present state."""
        stop, answer, live, inputs = self._stopped(), self._answers.q, self._live, self._inputs
        lost, whole, places, path = self._lost, self._levels, self._places, self._path
        pairs = same_goals(self.ik.goals, ik.goals)
        self.axes.let_move(ik.moving)
        self.ik, self._goalless = ik, False
        self._drives.tolerance = ik.tolerance
        self._build()
        self._live.reset(self.probe.places(stop, self._live.unanchored(self._live.anchored)))
        self._live.take_over(live, pairs)
        self._inputs.take_over(inputs, pairs)
        self._lost = np.zeros(len(ik.goals), bool)
        self._oldest = -np.inf  # time of the oldest target that still applies, or an earlier time
        for new, old in pairs:
            self._lost[new] = lost[old]
        if {new for new, goal in enumerate(ik.goals) if goal.given} - {new for new, _ in pairs}:
            self._held = ""  # a new goal has a target
        self._answers.reset(answer)
        if self._branch is not None:
            self._branch.reset(answer)
        if self._guard is not None:
            self._guard.reset(self._feedback.body(self._q))
        if places is not None and self._obstacles is not None:
            self._put(places.of(self._obstacles, [old for _, old in pairs]))
        self._go_on()
        self._levels.take_over(whole, pairs)
        if path is not None:
            self._begin_path(stop)

    @property
    def state(self) -> State:
        """The state that new parts of the body take over after a change of goals."""
        return State(
            self.ik.goals, self._q, self._answers.q, self.places, self.axes, self._own_axes, self._coming,
            self._live, self._inputs, self._lost, self._held, self._time,
        )  # fmt: skip

    def take_over(self, states: Sequence[State]) -> None:
        """Go on from the states of the parts of the body before a change of goals."""
        first = states[0]
        q, answer = first.q.copy(), first.answer.copy()
        for state in states:
            q[state.places], answer[state.places] = state.q[state.places], state.answer[state.places]
        self.reset(Pose.trusted(self.skeleton, q), time=first.time)
        table, coming = self.axes.table, self.axes.table[:, _LIMITS]
        self.axes.rows = first.axes.rows
        self._limits_jerk = "jerk" in first.axes.rows
        for state in states:
            own = state.own & self._own_axes
            table[own] = state.axes.table[own]
            coming[own] = table[own][:, _LIMITS] if state.coming is None else state.coming[own]
        if any(state.coming is not None for state in states):
            self._coming = coming
        self._live.reset(self.probe.places(self._stopped(), self._live.unanchored(self._live.anchored)))
        for state in states:
            pairs = same_goals(state.goals, self.ik.goals)
            self._live.take_over(state.live, pairs)
            self._inputs.take_over(state.inputs, pairs)
            for new, old in pairs:
                self._lost[new] = state.lost[old]
        holds = {state.held for state in states}
        self._held = holds.pop() if len(holds) == 1 else ""
        self._answers.reset(answer)
        if self._branch is not None:
            self._branch.reset(answer)
        self._go_on()
        self._last = self._command()

    def take_limits(self, **new: Any) -> None:
        """Change the limits that are not None, as soon as the body can satisfy them."""
        if all(value is None for value in new.values()):
            return
        table = self.axes.table
        kept = table[:, _LIMITS]
        self.axes.change_limits(**new)
        if new["velocity"] is not None:
            question_velocities(self.skeleton, self.axes.rows["velocity"])
        self._coming = table[:, _LIMITS]
        if new["jerk"] is not None and not self._limits_jerk:
            self._limits_jerk = True
        table[:, _LIMITS] = kept

    @property
    def time(self) -> float:
        """The clock of the servo, seconds: the time of the last command."""
        return self._time

    def read(self, inputs: Any, dt: float | None, *, strict: bool = False) -> Any:
        """Check the inputs of a tick, and return them as ``take`` needs them.

        Args:
            inputs: Targets, the time of the targets, values of joints and velocities of joints, see ``Servo.step``.
            dt: Seconds since the last tick; None for 1 / ``rate``.
            strict: Whether to check everything now, so that ``take`` refuses no input.

        Raises:
            InputError: If a value cannot be used. The part then is as before.
        """
        targets, at, joints, jog = inputs
        h = 1.0 / self.rate if dt is None else seconds("dt", dt)
        found = None if self._obstacles is None else self._obstacles.read(targets)
        if found is not None:
            targets = found[0] or None
        news = self._inputs.read(targets, at, self._time + h)
        orders = self._drives.read(joints, jog)
        if dt is not None:
            question_time(h, self.rate)
        drives = orders is not None or self._drives.active
        if h > 0.0 and news is not None and (strict or drives):
            self.check_targets(news.table)
        if h > 0.0 and drives:
            self._check_drives(news)
        return h, found, news, orders

    def take(self, read: Any) -> Tick:
        """Take one tick with the inputs that ``read`` returned.

        Raises:
            InputError: If a target cannot be used. The part then is as before.
        """
        h, found, news, orders = read
        if h <= 0.0:
            return self._last
        now = self._time + h
        if not self._placed:
            self._placed = True
            question_start()
        before = self._places
        try:
            if found is not None:
                self._move(found[1])
            table, fresh = None, None
            if not self._feedback.far:
                table, fresh = self._inputs.take(news, now, h)
            elif news is not None:
                self.check_targets(news.table)
            self._drive(orders, now, h, fresh)
            if table is not None and fresh is not None:
                if self.late == "slow":
                    self._choose_path(table, fresh)
                self._answer(table)
                self._live.table = table
                if some(fresh):
                    self._inputs.seen(fresh, now)
                    if some(self._lost):
                        self._lost = self._lost & ~fresh
                    self._held = ""
            elif not self._held and (self._answers.row is None or self._answers.drifts):
                self._answer(self._live.table)
        except InputError:
            if self._places is not None and found is not None:
                self._put(self._places.home if before is None else self._places.home.then(before))
                self._places = before
            self._live.refuse()
            raise
        self._time = now
        self._lose()
        return self._advance(h)

    def _drive(self, orders: Orders | None, now: float, h: float, fresh: Bools | None = None) -> None:
        """Advance the reference values of driven joints by a tick of time h.

        Args:
            orders: Values and velocities of joints that the user passes in this tick.
            now: Time at the end of the tick, seconds.
            h: Seconds.
            fresh: Which goals get targets in this tick.
        """
        drives, answers = self._drives, self._answers
        drives.unseen = () if orders is None else orders.unseen
        if orders is None and not drives.active and not self._driven:
            answers.hold(None)
            return
        leads = self._goals_lead(fresh)
        if not self._feedback.far:
            if orders is not None and orders.given:
                self._held = ""
            drives.take(orders, self._feedback.body(self._q), now)
        driven = drives.active and not leads
        if driven and not self._driven:
            answers.hold(None)
            answers.stay(self._stopped())
        drives.advance(h)
        if driven:
            q = answers.q.copy()
            q[drives.at] = drives.places
            q = self.skeleton.follow(q)
            if self.skeleton.mechanism is not None:
                q = self.skeleton.mechanism.way(answers.q[None], q[None], drives.variables)[0][0]
            answers.lead(q, None)
            keeps = self._live.anchored | (self._live.seen > -np.inf)
            self._live.keep(keeps, self.probe.places(q, self._live.unanchored(keeps)))
        else:
            answers.hold((drives.at, drives.places) if drives.active else None)
        was, self._driven = self._driven, driven
        if was and not driven:
            self._go_on()
            if not leads and not self._held:
                self._hold(_UNDRIVEN)

    def _goals_lead(self, fresh: Bools | None) -> bool:
        """Return whether goals lead the joints that are not driven; ``fresh`` marks goals that get targets now."""
        if self._goalless:
            return False
        if self._root_moves:
            return True
        own = self._live.takes & ~self._live.anchored
        live = (own | (self._live.seen > -np.inf)) & ~self._lost
        return bool(live.any() if fresh is None else (live | fresh).any())

    def _check_drives(self, news: News | None) -> None:
        """Check that the servo can drive joints in a tick with these targets.

        Raises:
            UnsupportedError: If the servo cannot drive joints while goals lead the other joints.
        """
        leads = self._goals_lead(None) or (news is not None and bool(news.given.any() or news.twists))
        begins = self.late == "slow" and news is not None and bool(news.given.any())
        if leads and (self._path is not None or begins):
            raise UnsupportedError(
                "late='slow' keeps to the path of targets, with all joints",
                where="joints and jog", expected="late='deviate', or no goal with a target",
            )  # fmt: skip
        if leads and self.ik.solver.closed:
            raise UnsupportedError(
                f"{self.ik.solver.name} is a closed form, which moves all joints", where="joints and jog",
                expected="a general solver, such as 'lm'",
            )  # fmt: skip

    def _go_on(self) -> None:
        """Let goals lead the body again, from its present state."""
        rests = not self.axes.table[:, AXIS_VELOCITY].any()
        self._levels.reset(self._live.table[0], self._q, rests=rests, keeps=self._proves)
        self._led, self._led_row = None, None

    def hold(self, dt: float | None, why: str) -> Tick:
        """See ``Servo.hold``; ``why`` is the reason that commands report."""
        h = 1.0 / self.rate if dt is None else seconds("dt", dt)
        if h < 0.0:
            question_time(h, self.rate)
        if h <= 0.0:
            return self._last
        self._hold(why)
        self._inputs.forget(self._live.takes)
        self._time += h
        self._drive(None, self._time, h)
        return self._advance(h)

    def schedule(self, targets: Targets, times: ArrayLike, *, fade: float = 0.2) -> None:
        """See ``Servo.schedule``."""
        if self._obstacles is not None and self._obstacles.knows(targets):
            raise InputError("targets", expected="none of a clearance goal", hint="pass places of obstacles to step")
        self._inputs.schedule(targets, times, fade, self._time)

    def clutch(self, goal: str | int, *, scale: float | tuple[float, float] = 1.0) -> Clutch:
        """See ``Servo.clutch``."""
        return self._inputs.clutch(goal, scale)

    def reading(self, q: Any, expected: Array) -> Array:
        """Return measured joint values (nq,), with expected values for joints that are not given."""
        return self._feedback.of(q, expected, self.problem.as_start)

    @property
    def body(self) -> Array:
        """The expected joint values of the robot, (nq,)."""
        return self._feedback.body(self._q)

    def among(self, q: Array) -> Array:
        """Return joint values (nq,): ``q`` for the joints of this part, expected values for all others."""
        return np.where(self.places, q, self.body)

    def stop(self, why: str) -> None:
        """Hold for the reason ``why``: a joint of any part is measured too far from its command."""
        self._feedback.far = why
        self._hold(why)

    def release(self, why: str) -> None:
        """Resume if the part holds for the reason ``why``."""
        if self._held == why:
            self._held = ""

    def measured(self, q: Array) -> str:
        """Take measured joint values (nq,) into account; return why the body has to hold, or ""."""
        self._feedback.read(self._q, q, self._time)
        if self._feedback.far:
            self._hold(self._feedback.far)
        return self._feedback.far

    def _move(self, places: Places) -> None:
        """Move some obstacles to new places, if these differ from the present places."""
        if self._places is not None:
            places = self._places.then(places)
            if np.array_equal(places.moved, self._places.moved):
                return
        self._put(places)

    def _put(self, places: Places) -> None:
        """Move obstacles to new places; solutions and remaining clearances are computed again."""
        self._places = places
        self.probe.put(places)
        self._answers.put(places)
        for part in (self._levels, self._branch):
            if part is not None:
                part.put(places)
        if self._guard is not None:
            self._guard.put(places, self._feedback.body(self._q))

    def _begin_path(self, q: Array, ahead: Sequence[Array] = ()) -> Path:
        """Lead the body along the path of its targets, which begins at joint values q (nq,), where the body stops.

        The path leads through the targets ``ahead``, (1, goals, 17) each, to the present targets.
        """
        takes = self._live.takes
        self._answers.stay(q)
        self.axes.whole[-1] = 0.0  # the path coordinate is at rest
        self._path = path = Path(self.ik.reach, self._levels.count)
        path.begin(self._live.placed(takes, self.probe.places(q, self._live.unanchored(takes))))
        for table in (*ahead, self._live.table):
            path.extend(table)
        return path

    def _end_path(self) -> None:
        """Let goals lead the body to their targets, from its present state."""
        self._path = None
        self._answers.reset(self._feedback.body(self._q))
        self._go_on()

    def _choose_path(self, table: Array, fresh: Bools) -> None:
        """Choose whether the body follows a path to new targets, (1, goals, 17); twists need no path."""
        new = fresh & (table != self._live.table)[0].any(1)
        others = (new & ~self._inputs.twisted()).any()
        if self._path is None and others and not (self._leaves_path and not self._stands_at_goals):
            self._leaves_path = False
            self._begin_path(self._stopped())
        elif self._path is not None and not (others or (~self._inputs.twisted() & (self._live.seen > -np.inf)).any()):
            self._path = None
            self._go_on()

    @property
    def _stands_at_goals(self) -> bool:
        """Whether the body holds all goals at their targets."""
        return self._answers.reaches and bool((self._levels.states[:, MODE] == HELD_STILL).all())

    def _hold(self, why: str) -> None:
        """Begin to brake, unless the body holds already."""
        if not self._held:
            self._inputs.forget(self._live.takes)
            self._drives.brake()
            if self._path is not None and self._path.aside is not None:
                self._path = None
                self._go_on()
        if not self._held and self._driven:
            pass  # driven joints brake; no other joint moves
        elif not self._held and self._path is not None:
            self._answers.stay(self._stopped())
            places = self.probe.places(self._answers.q, self._live.unanchored(self._live.takes))
            self._live.keep(self._live.seen > -np.inf, places)
            self._path.cut(places)
        elif not self._held:
            self._answers.stay(self._stopped())
            live = self._live.seen > -np.inf
            self._live.keep(live, self.probe.places(self._answers.q, self._live.unanchored(live)))
        self._held = why

    def _lose(self) -> None:
        """Brake goals whose targets have stopped coming."""
        if self._time - self._oldest <= self.timeout:
            return
        seen = self._live.seen
        live = (seen > -np.inf) & ~self._lost
        new = live & (self._time - seen > self.timeout)
        if new.any():
            self.let_go(new, _LOST)
        self._oldest = float(seen[live & ~new].min(initial=self._time))

    def let_go(self, goals: Bools, why: str) -> None:
        """Let goals brake and keep the places where they stop; if no other goal is live, the body holds."""
        live = self._live.seen > -np.inf
        new = goals & live & ~self._lost
        self._lost = self._lost | new
        self._inputs.forget(goals)
        if self._held or not new.any():
            return
        if self._lost[live].all() and not self._drives.active:
            self._hold(why)
            return
        if self._path is not None:
            return  # the path ends at the last target
        self._live.keep(new, self.probe.places(self._stopped(), self._live.unanchored(new)))
        self._answers.row = None  # these targets have no solution yet
        self._answer(self._live.table)

    def check_targets(self, table: Array) -> None:
        """Refuse targets (1, goals, 17) that cannot be used.

        Raises:
            InputError: If a target cannot be used.
        """
        try:
            self.probe.row(self._q, table)
        except InputError:
            self._live.refuse()
            raise

    def stop_places(self, *, goes_on: bool = False) -> Array:
        """Return the places (goals, 16) of all goals where the body stops if it brakes now.

        With ``goes_on``, the targets go on moving, and the stop is computed relative to their motion.
        """
        table = self._live.unanchored(self._live.takes)
        here = self._feedback.body(self._q)  # extrapolate a small part of the displacement to the stop
        near = self._on_stop(here, _SMALL_PART, follows=goes_on)
        places, others = self.probe.places(here, table), self.probe.places(near, table)
        for place, other in zip(places.reshape(-1, 4, 4), others.reshape(-1, 4, 4), strict=True):
            place[:3, 3] += (other[:3, 3] - place[:3, 3]) / _SMALL_PART
            place[:3, :3] = exp_turn(log_turn(other[:3, :3] @ place[:3, :3].T) / _SMALL_PART) @ place[:3, :3]
        return places

    def _on_stop(self, q: Array, part: float, *, follows: bool) -> Array:
        """Return joint values after a part of the way from q (nq,) on which all axes come to rest at the same time.

        With ``follows``, the way is relative to the motion of the targets.
        """
        out = q.copy()
        self._stop_together(q, out, int(follows), part)
        return self.skeleton.follow(out)

    def axes_of(self, frame: str | int) -> Array:
        """Return the rotation (3, 3) of a joint, link or site now."""
        return Pose.trusted(self.skeleton, (self._q if self.around is None else self.around).copy()).matrix(frame)

    def lead_time(self) -> float:
        """Return the seconds that a twist may be ahead of the body: the longest stopping time of a joint, or less."""
        t = self.axes.table[np.isin(self.axes.joints, list(self.ik.moving))]
        times = t[:, TOP_SPEED] / t[:, TOP_ACCELERATION] + t[:, TOP_ACCELERATION] / t[:, TOP_JERK]
        share = _SLOW_LEAD if self.late == "slow" else 1.0
        return share * min(float(times.max(initial=0.0)), self.timeout)

    def _stopped(self) -> Array:
        """Return where the body stops if it brakes now, (nq,)."""
        levels = self._levels
        if (self._proves or self._path is not None) and (levels.known or self._closed is not None):
            out = levels.end.copy() if levels.known else self._q.copy()
            self.skeleton.follow(out)
            return self._feedback.body(out) if self._leads_commands or not levels.known else out
        return self._feedback.body(self._brake()[0])

    @property
    def _leads_commands(self) -> bool:
        """Whether ticks move the commanded pose, not the expected pose of the robot, although the two differ.

        Commands must keep loops closed and rotations inside their limits; adding an offset would break this.
        """
        tied = self._closed is not None or self._levels.limits_turns
        return self._feedback.offset is not None and tied

    def _answer(self, table: Array) -> None:
        """Solve the goals for these targets, from the previous solution; unchanged targets keep the solution."""
        if self._driven or self._goalless:
            return
        if table.tobytes() == self._live.table.tobytes() and self._answers.settled():
            self._answers.go_home(table, self._feedback.body(self._q))
        elif self._path is not None:
            if table is not self._live.table:
                self.probe.row(self._q, table)  # refuses targets that cannot be used
            self._path.extend(table)
        else:
            answers, branch = self._answers, self._branch
            if branch is not None and branch.walks(table):
                branch.walk(answers, self._q)
                return
            answers.take(table, self._live.table, self._q)
            if branch is not None:
                branch.check(answers, self._q, table)

    def _advance(self, h: float) -> Tick:
        """Take a tick of time h towards the solution, or brake."""
        out = np.empty(len(self._q))
        brakes = self._coming is not None and self._change_limits(self._coming, out, h)
        stop = STOP if self._held and not self._driven else 0
        if brakes:
            self._go(out, h, STOP)
        elif self._driven:
            self._go_driven(out, h)
        elif self._path is None:
            self._go(out, h, stop)
        elif self._path.aside is None:
            self._follow_path(self._path, out, h, stop)
        else:
            self._go_aside(self._path, out, h)
        self._q = out
        if self._coming is not None:
            reasons = self.axes.table[:, REASON]
            reasons[self._recovers] = np.maximum(reasons[self._recovers], RECOVERING)
        if self._drives.active:
            self._drives.follow(self._feedback.body(out), self._answers.q, h)
        self._answers.rest()
        self._last = self._command()
        return self._last

    def _go_driven(self, out: Array, h: float) -> None:
        """Take a tick in which only driven joints move; write ``out`` (nq,)."""
        led, before = self._answers.q, self._answers.before
        if self._closed is None and self._guard is None:
            led, before = led.copy(), before.copy()
            self._drives.lead_straight(led, before)
            led, before = self.skeleton.follow(led), self.skeleton.follow(before)
        self._go_straight(led, before, out, h)

    def _go_straight(self, there: Array, before: Array, out: Array, h: float) -> None:
        """Take a tick in which joints move independently to joint values, under the limits of the whole body.

        Args:
            there: Joint values to move to, (nq,).
            before: ``there`` of the tick before, (nq,).
            out: Joint values after the tick, (nq,); written.
            h: Seconds.
        """
        self._aim = self._feedback.command(there), self._feedback.command(before)
        if self._proves:
            self._go_by_levels(out, h, 0, self._levels.above)
        else:
            self._tick(self._q, *self._aim, out, h, 0)

    def _change_limits(self, limits: Array, out: Array, h: float) -> bool:
        """Apply new limits (axes, 3) where the body can brake with them in ticks of time h; ``out`` is scratch memory.

        An axis that would leave its position limits keeps its old acceleration limit for now. If that is not enough, or
        with a jerk limit, the body brakes with its old limits until it can satisfy the new ones.

        Returns:
            Whether the body has to brake in this tick.
        """
        table = self.axes.table
        kept = table.copy()
        v, a, before = kept[:, AXIS_VELOCITY], kept[:, AXIS_ACCELERATION], self._brake()[1]
        scalar = np.isin(np.arange(len(table)), self.axes.numbers)  # rotations that would leave their limits must wait
        able, lowered = np.ones(len(table), bool), (limits < kept[:, _LIMITS]).any(axis=1)
        same = (limits == kept[:, _LIMITS]).all(axis=1)  # these axes keep their known stops
        if self._limits_jerk:
            most = limits * (1.0 + _ROUNDING)
            begin = v + 0.5 * a * kept[:, GAP]  # velocity where a stop by the new limits begins, see ``axis.stop_of``
            fastest = np.max(np.abs((v, begin, begin + 0.5 * a * np.abs(a) / most[:, 2])), axis=0)
            able = same | ((fastest <= most[:, 0]) & (np.abs(a) <= most[:, 1]))
        takes = bool(able.all())
        held = kept[:, _LIMITS].copy()
        held[:, 0] = 0.0  # lower velocity limits apply at once
        failed = np.zeros(len(table), bool)
        for _ in range(2 if takes else 0):
            table[:, _LIMITS] = np.where(able[:, None], limits, np.maximum(held, limits))
            self._replan()
            table[same] = kept[same]
            failed = self._brake()[1] & ~(before & (scalar | ~able | same))
            if not failed.any():
                break
            able &= ~np.isin(self.axes.variable, self.axes.variable[failed])
        takes = takes and not failed.any() and (able.all() or not self._limits_jerk)
        stops = self._proves or self._levels.known  # then the body must be able to stop as a whole, too
        takes = takes and (not stops or self._can_stop(out, h))
        self._recovers = (~able | (not takes)) & lowered
        self._braked |= not takes
        if not takes:
            table[:] = kept
        elif lowered.any():
            self._levels.forget()
            self._needs_stop = stops
        if takes and able.all():
            self._coming = None
            if self._braked:
                self._braked = False
                self._go_on()
        return not takes

    def _can_stop(self, out: Array, h: float) -> bool:
        """Return whether the body can stop under its present limits; ``out`` (nq,) is scratch memory."""
        kept = self._state
        self._levels.forget()
        self._aim = self._feedback.command(self._answers.q), self._feedback.command(self._answers.before)
        self._go_by_levels(out, h, STOP)
        lacks = self._lacks_stop
        self._put_back(kept)
        return not lacks

    @property
    def _lacks_stop(self) -> bool:
        """Whether no stop of the whole body is known, although it needs one or holds goals."""
        if self._levels.known:
            return False
        return self._proves or bool((self._levels.states[:, MODE] == HELD_STILL).any())

    @property
    def _state(self) -> Any:
        """A copy of the state that a tick by levels changes."""
        return self._levels.state, self.axes.table.copy(), None if self._guard is None else self._guard.state

    def _put_back(self, kept: Any) -> None:
        """Restore a ``_state``."""
        self._levels.state, self.axes.table[:] = kept[:2]
        if self._guard is not None:
            self._guard.state = kept[2]

    def _brake(self) -> tuple[Array, Bools]:
        """Return where each axis rests if it brakes now, (nq,), and which axes leave their limits then."""
        out, leaves = self._q.copy(), np.zeros(len(self.axes.table))
        self._rest(self._q, out, leaves)
        return self.skeleton.follow(out), leaves > 0.0

    def _go(self, out: Array, h: float, stop: int) -> None:
        """Take a tick towards the solution by priority levels; write ``out`` (nq,)."""
        there, before = self._feedback.command(self._answers.q), self._feedback.command(self._answers.before)
        self._aim = there, before
        self._go_by_levels(out, h, stop)
        if self._closed is not None:
            self._closed.watch(out, there, 0.0 if stop else h)
        if self._branch is not None and self._closed is not None and self._closed.stuck and not stop:
            self._branch.leave(self._answers, self._q, self._live.table)

    def _go_by_levels(self, out: Array, h: float, stop: int, count: int | None = None) -> None:
        """Take a tick in which goals of the first ``count`` levels keep their priorities; write ``out`` (nq,)."""
        levels = self._levels
        if self._led_row is not self._answers.row or self._leads_commands:
            self._led_row, self._led = self._answers.row, self._reachable()
        targets = (self._live.table if self._led is None else self._led)[0]
        places = (self._q if self._leads_commands else self._feedback.body(self._q)), self._q
        if self._guard is not None:
            self._guard.begin_tick(self._q, h, self._feedback, commands=self._leads_commands)
        leads = (self._led is not None or self._answers.reaches) and not self._inputs.twists
        meets = MEETS if leads else 0
        spins = self._inputs.spins()
        if spins is not self._spins:
            levels.states[:, SPIN : SPIN + 3] = self._spins = spins
        unknown = (self._proves or self._needs_stop) and not levels.known and not stop
        kept = self._state if unknown else None
        levels.step(targets, places, self._aim, out, (h, stop | meets), count)
        if kept is not None and self._lacks_stop:  # brake until the body is known to stop inside its limits
            self._put_back(kept)
            levels.step(targets, places, self._aim, out, (h, STOP), count)
        self._needs_stop = False
        if self._tools is not None:
            self._tools.note_shares(*levels.tools, leads=False)
        if self._guard is not None:
            self._guard.blocked = bool(levels.touches[0])
        alone = len(self.ik.goals) == 1 and levels.states[0, MODE] != FAR
        if alone and not stop and not self._drives.active and np.count_nonzero(self.axes.table[:, REASON]):
            place = self._on_stop(out, 1.0, follows=True)
            if self.skeleton.mechanism is not None:
                place = self.skeleton.mechanism.closed(place[None])[0][0]
            self._answers.restart(self._feedback.body(place))

    def _reachable(self) -> Array | None:
        """Return targets (1, goals, 17) in which missed targets are replaced by their places in the solution.

        None if no target is replaced. If ticks move the commanded pose, all targets are replaced by the places of
        commands. A solution that is still being searched may be worse than the present pose in some goal, without a
        gain at a higher priority; then missed targets from that priority on are kept.
        """
        if self._leads_commands:
            goals = self._live.takes
            there = self._feedback.command(self._answers.q)
            return self._live.placed(goals, self.probe.places(there, self._live.unanchored(goals)))
        row = self._answers.row
        if row is None or self._answers.reaches:
            return None
        most, most_angle = self.ik.tolerance
        first = self.problem.places.stop
        goals = self.ik.goals
        errors = row[first : first + 2 * len(goals)].reshape(-1, 2)
        over = np.array([[goal.own_tolerance or most, most_angle] for goal in goals])
        now = np.array([list(error) for error in self.probe.errors(self._feedback.body(self._q), self._live.table)])
        missed = (errors > over).any(1) & self._live.takes
        ranks = np.array([goal.rank for goal in goals])
        for rank in sorted(set(ranks.tolist())):  # numpy.unique takes 50 ms in its first call
            level = ranks == rank
            if (errors[level] > _NO_WORSE * now[level] + over[level]).any():
                missed &= ranks < rank
                break
            if (errors[level] < now[level] - over[level]).any():
                break  # a gain at this priority may cost lower priorities
        if not missed.any():
            return None
        return self._live.placed(missed, self.probe.places(self._answers.q, self._live.unanchored(missed)))

    def _follow_path(self, path: Path, out: Array, h: float, stop: int) -> None:
        """Take a tick along the path of the targets; write ``out`` (nq,)."""
        levels = self._levels
        if not levels.known:  # as after a change of limits: stop, and begin again
            self._go(out, h, STOP)
            if not self.axes.table[:, AXIS_VELOCITY].any():
                self._go_on()
                self._begin_path(self._feedback.body(out))
            return
        here = self._feedback.body(self._q)
        levels.path = path.table, path.along
        levels.step(self._live.table[0], (here, self._q), (self._q, self._q), out, (h, stop), path.levels)
        levels.path = NO_PATH
        if self._tools is not None:
            self._tools.note_shares(*levels.tools, leads=True)
        self._q = out
        if path.arrived:
            self._end_path()
        elif path.blocked and path.levels > self._led_levels:
            path.levels -= 1  # lower priorities yield
        elif path.blocked:
            self._answers.stay(self._feedback.body(out))
            self._levels.forget()
            self._leaves_path = path.leave(0.0)

    @property
    def _led_levels(self) -> int:
        """Number of priority levels, from the first to that of the most important goal with a target."""
        ranks = np.array([goal.rank for goal in self.ik.goals])
        led = ranks[self._live.seen > -np.inf].min(initial=int(ranks.max(initial=0)))
        return self._levels.above + len({rank for rank in ranks.tolist() if 0 <= rank <= led})

    def _go_aside(self, path: Path, out: Array, h: float) -> None:
        """Take a tick to a place ahead on the path, where the body follows the path again; write ``out`` (nq,).

        The place moves on until a solve near the body reaches it, and waits for a body that is far behind.
        """
        answers, live = self._answers, self._live
        behind = float(np.abs(self.axes.way(self._feedback.body(self._q), answers.q)).max(initial=0.0))
        moves = bool((np.abs(self.axes.table[:, AXIS_VELOCITY]) > _STILL).any())
        if answers.reaches and not moves and behind <= _THERE:
            self._leaves_path = False
            self._go_on()
            ahead = [live.placed(live.takes, places) for places in path.ahead()]
            self._follow_path(self._begin_path(self._stopped(), ahead), out, h, 0)
        elif moves and (answers.reaches or behind > _BEHIND):
            self._go_straight(answers.q, answers.before, out, h)
        elif path.leave(_CREEP * h):
            answers.lead_near(live.placed(live.takes, path.places()))
            self._go_straight(answers.q, answers.before, out, h)
        else:
            self._end_path()
            self._go(out, h, 0)

    @property
    def _blocked(self) -> bool:
        """Whether clearance has changed the last tick."""
        return self._guard is not None and self._guard.blocked

    def _command(self) -> Tick:
        """Return the command of the present state."""
        q, live, lost, unseen, path = self._q.copy(), self._live, self._lost, self._inputs.unseen, self._path
        holding = self._held
        if some(unseen):
            lost = lost | unseen
            if not (holding or some(live.aimed) or self._answers.drifts):
                holding = _UNKNOWN
        self.details = ServoDetails(
            self._view,
            q,
            self.axes.table.copy(),
            table=live.table,
            row=None if path is not None else self._answers.row,
            wanted=self._feedback.command(self._answers.q),
            drifts=self._answers.drifts,
            offset=self._feedback.found,
            apart=self._feedback.beside,
            holding=holding,
            lost=lost,
            aimed=live.aimed,
            off_path=_OFF_PATH if self._leaves_path else _WAITS if path is not None and path.waits else "",
            waiting=self._inputs.waiting(),
            due=self._inputs.due(self._time),
            stamps=self._inputs.told,
            joints=self._drives.states,
            tools={} if self._tools is None else self._tools.reasons,
            time=self._time,
            blocked=self._blocked,
            places=self._places,
        )
        return Tick(self.skeleton, q, self.details)


def _kernels(axes: Axes) -> tuple[Callable[..., Any], ...]:
    """Return the kernels of a tick of independent joints, of a reset, of a new plan of stops, and of their ends."""
    from synovia.kernels.compiler.jit import ready
    from synovia.kernels.servo.tick import servo_replan, servo_rest, servo_stop

    t, table = axes.skeleton.tables, axes.table
    tables = writable(t.variables, t.limits, t.followers, t.coupling)
    none, q = table[:0], np.zeros(0)
    return (
        *joint_ticks(tables, table),
        partial(ready(servo_replan, none), table),
        partial(ready(servo_rest, *(one[:0] for one in tables[:2]), none, q, q, q), *tables[:2], table),
        partial(ready(servo_stop, tables[0][:0], none, q, q, 1, 1.0), tables[0], table),
    )


_LIMITS: Final = [TOP_SPEED, TOP_ACCELERATION, TOP_JERK]
KERNELS: Final = (  # entry points that every servo needs in addition to its solver's
    *(f"servo.tick.servo_{one}" for one in ("rest", "stop", "tick", "reset", "replan")),
    "hierarchy.full_body.full_body",
    "servo.step.servo_step",
)


def _positive(name: str, value: Any, unit: str) -> float:
    """Return a positive number.

    Raises:
        InputError: If it is not positive.
    """
    if not is_number(value) or not 0.0 < value < math.inf:
        raise InputError(name, value=value, expected=f"a number above 0, {unit}")
    return float(value)
