"""``Servo``: a body that follows live targets and keeps its limits in every tick."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from synovia.arguments import ChecksArguments, check_kind
from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import Goal
from synovia.ik import GoalError, Status
from synovia.ik.compiled import Start
from synovia.ik.interrupts import clear, new_scratch, set_deadline
from synovia.ik.targets import Targets
from synovia.kernels.layout import (
    ADVANCE,
    ATTEMPTS,
    AXIS_ACCELERATION,
    AXIS_VELOCITY,
    BLOCK,
    BLOCK_Q,
    COLD,
    IS_ANGLE,
    LEADER,
    LOWER,
    MAX_STEPS,
    MISSED,
    PATIENCE,
    PROPOSE,
    REASON,
    SCALAR,
    SEED,
    STATUS,
    STOP,
    TRANSFORM_WIDTH,
    UPPER,
)
from synovia.model import Skeleton
from synovia.model.geometry import Array, Bools, is_number
from synovia.model.root import Root
from synovia.model.tables import Ints, writable
from synovia.servo.command import Command
from synovia.servo.filter import OneEuro, TargetFilter
from synovia.servo.limits import Axes
from synovia.servo.live import LiveTargets
from synovia.servo.path import Path, between
from synovia.servo.way import Way
from synovia.solver import FullBody, LevenbergMarquardt, Solver, SolverName

_SEARCHES: Final = frozenset(4**k for k in range(1, 16))  # missed ticks after which another answer is looked for
_FAR: Final = 1.0  # radians, length units: an answer that is farther from the last one may be on another branch
_PARTS: Final = 8  # of the way of the targets, solved one after the other
_FEW_STEPS: Final = 20  # of a full body in a tick; the next one goes on
_BEHIND: Final = 1e-9  # radians, length units: a body that is farther from where it is led cannot follow
_PATIENCE: Final = 1.5  # times the stop of a body ahead, after which each joint brakes for itself
_MARGIN: Final = 10  # ticks
_TOLD: Final = "Holding: hold() was called; the next step with a target goes on."
_LOST: Final = "Holding: no target has come for longer than the timeout; the next one goes on."


class Servo(ChecksArguments):
    """A body that follows live targets. Each tick keeps the limits of all joints, and so does every way on from there.

    A tick solves the goals from the answer of the tick before. Then each joint moves towards its answer, as fast as its
    limits allow, and so that it can stop there. All joints arrive together. Whatever comes next, the body can always
    stop inside the limits of its joints.

    Differences of the returned joint values keep the limits: the velocity between two ticks, the acceleration (twice
    the second divided difference) and the jerk (six times the third), also if the ticks are not evenly spaced.

    Args:
        skeleton: The skeleton, or an ``IK``, whose goals and solver are used.
        goals: One goal or several. A goal that never gets a target keeps its place since the last ``reset``.
        solver: Settings, a solver's name, or None: full body for several goals, else Levenberg-Marquardt.
        rate: Ticks per second, if ``step`` is not told the time.
        velocity: Highest velocity of all joints, rad/s (slides: length units/s), or by joint; ``"30%"`` for a share of
            the limits of the file; None for all of them. For balls it limits the length of the angular velocity. For a
            free root, a number is rad/s for turns and reaches/s for the way; or a pair of both.
        acceleration: Highest acceleration, likewise, per s².
        jerk: Highest jerk, likewise, per s³; None for no limit.
        root: As in ``IK``.
        late: What a body does that cannot keep up. ``"deviate"`` goes to the targets on the fastest way of its joints.
            ``"slow"`` stays on their path: straight from target to target, and by the shortest turns.
        timeout: Seconds that a goal keeps its last target if none comes. Then it brakes and keeps the place where it
            stopped.
        filter: ``OneEuro()`` filters noise of the targets; None for none.
        deadline: Seconds after which the solve of a tick ends with the best pose so far; None for no end.

    Attributes:
        ik: The problem that is solved.
        skeleton: The skeleton that moves, with the joints that ``root`` adds.
        rate: Ticks per second.

    Raises:
        InputError: If a value cannot be used, or a joint has no limit of its velocity.
        UnknownNameError: If a joint or the solver does not exist.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> servo = sy.Servo(arm, sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
        >>> servo.reset(arm.rest_pose())
        >>> for _ in range(300):
        ...     command = servo.step((0.4, 0.1, 0.5))
        >>> command.status.name
        'REACHED'
    """

    def __init__(
        self,
        skeleton: Skeleton | IK,
        goals: Goal | Iterable[Goal] | None = None,
        solver: Solver | SolverName | None = None,
        *,
        rate: float,
        velocity: Any = None,
        acceleration: Any,
        jerk: Any = None,
        root: Root = "fixed",
        late: Literal["deviate", "slow"] = "deviate",
        timeout: float = 0.5,
        filter: OneEuro | None = None,  # noqa: A002 - the word for it
        deadline: float | None = None,
    ) -> None:
        """Build the problem, and load or compile the kernels."""
        if isinstance(skeleton, IK):
            if goals is not None or solver is not None or root != "fixed":
                raise InputError("goals, solver and root", expected="none with an IK", hint="the IK has its own")
            self.ik = skeleton
        else:
            if goals is None:
                raise InputError("goals", expected="one Goal or several")
            goals = (goals,) if isinstance(goals, Goal) else tuple(goals)
            if solver is None:
                solver = LevenbergMarquardt() if len(goals) == 1 and goals[0].needs in _ARM_GOALS else FullBody()
            self.ik = IK(skeleton, goals, solver, root=root)
        if self.ik.solver.bounds_motion:
            raise InputError("solver", value=self.ik.solver, expected="one without largest_move")
        self.skeleton = self.ik.skeleton
        self.rate = _positive("rate", rate, "ticks per second")
        self.timeout = _positive("timeout", timeout, "seconds")
        self.deadline = None if deadline is None else _positive("deadline", deadline, "seconds")
        self._axes = Axes(self.skeleton, self.ik.moving, self.ik.reach)
        self._axes.set_limits(velocity, acceleration, jerk)
        self._given_limits = {"velocity": velocity, "acceleration": acceleration, "jerk": jerk}
        self._live = LiveTargets(self.ik)
        self._scratch = new_scratch(self.ik.scratch_size)
        self._measure = self.ik if not self.ik.solver.closed else IK(self.ik.given, self.ik.goals, root=self.ik.root)
        self._measure_scratch = new_scratch(self._measure.scratch_size)
        self._no_steps = self._measure.ints.copy()
        self._no_steps[[MAX_STEPS, ATTEMPTS, PATIENCE]] = 0, 1, 1
        t = self.skeleton.tables
        hinges = (t.variables[:, BLOCK] == SCALAR) & (t.limits[:, IS_ANGLE] != 0.0)
        at = t.variables[hinges & (t.limits[:, UPPER] - t.limits[:, LOWER] > 2.0 * math.pi), BLOCK_Q].astype(np.int64)
        self._winding = at[~np.isin(at, t.followers[:, LEADER])]  # values of hinges that can turn all around
        self._few, self._again = self.ik.one_attempt.copy(), self.ik.ints.copy()
        self._again[ATTEMPTS] = min(2, int(self._again[ATTEMPTS]))  # the first, from an answer, ends at once
        if self.ik.solver.supports_priorities:
            self._few[MAX_STEPS] = min(int(self._few[MAX_STEPS]), _FEW_STEPS)
        self._tick, self._begin, self._rest = self._kernels(self._axes.table)
        if filter is not None:
            check_kind("filter", filter, OneEuro, "sy.OneEuro() is one")
        self.filter = filter
        if late not in ("deviate", "slow"):
            raise InputError("late", value=late, expected="'deviate' or 'slow'")
        self.late = late
        several = len(self.ik.goals) > 1 and late == "deviate"
        self._way = Way(self.ik, self._axes.table, self._kernels) if several else None
        self._path = None
        if late == "slow":
            self._path = Path(self.ik, self._axes.table, self._path_kernels, self.way)
        self.reset()
        self._load()
        self.reset()

    def _load(self) -> None:
        """Load what ticks need, so that none of them waits for it."""
        self.step()
        row = self._solve(self._live.table, self._q, self._few)
        self.ik.classify(self._q[None], row[None], self._scratch, False)

    @property
    def problem(self) -> IK:
        """The problem that is solved."""
        return self.ik

    def _kernels(self, axes: Array) -> tuple[Any, Any, Any]:
        """Return the kernels of a tick, of a reset and of the place where the body stops, for a table of axes."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.tick import servo_rest

        t = self.skeleton.tables
        tables: Any = writable(t.variables, t.limits, t.followers, t.coupling)
        q = np.zeros(self.skeleton.nq)
        rest = ready(servo_rest, tables[0][:0], axes[:0], q, q)
        tick, begin = _kernels_for(tables[0], tables[1], tables[2], tables[3], axes)
        return tick, begin, partial(rest, tables[0], axes)

    @staticmethod
    def _path_kernels(variables: Ints, limits: Array, axes: Array) -> tuple[Any, Any]:
        """Return the kernels of a tick and of a reset for other variables without followers."""
        return _kernels_for(variables, limits, np.zeros((0, 2), np.int32), np.zeros((0, 2)), axes)

    def reset(self, pose: Start | None = None, velocity: Any = None) -> None:
        """Begin anew from a pose, without targets.

        Args:
            pose: A pose, ``"rest"``, or joint values as in ``IK.solve``; None for the rest pose.
            velocity: The velocity of the body, (nv,) or by joint; None for a body at rest. If it breaks the limits, the
                first ticks are a recovery.

        Raises:
            InputError: If a value cannot be used.
        """
        start = self.ik.default_start if pose is None else self.ik.as_start(pose)
        speeds = np.zeros(len(self._axes.joints)) if velocity is None else self._axes.of_velocity(velocity)
        self._q = start.values.copy()
        self._begin(speeds, 1.0 / self.rate)
        if self._way is not None:
            self._way.reset(self._q, speeds, 1.0 / self.rate)
        self._time = 0.0
        self._held, self._hold_until = "", 0.0
        self._row: Array | None = None
        self._misses = self._searching = 0
        self._lost: Bools = np.zeros(len(self.ik.goals), bool)
        self._filter = None if self.filter is None else TargetFilter(self.filter, len(self.ik.goals), self.ik.reach)
        self._measured_far = ""
        self._live.reset(self._places(self._q, self._live.unanchored(self._live.anchored)))
        self._wanted = self._before = self._stopped()
        if self._way is not None:
            self._way.holds = self._met()
        if self._path is not None:
            places = self._places(self._q, self._live.unanchored(self._live.takes))
            self._path.reset(self._live.placed(self._live.takes, places), self._q, 1.0 / self.rate)
        self._last = self._command()

    def limit(self, *, velocity: Any = None, acceleration: Any = None, jerk: Any = None) -> None:
        """Change limits from the next tick on; those that are left out stay as they are.

        If the body is faster than a new limit, it slows down as fast as the others allow: a recovery.

        Raises:
            InputError: If a limit cannot be used.
        """
        new = {"velocity": velocity, "acceleration": acceleration, "jerk": jerk}
        given = self._given_limits | {name: value for name, value in new.items() if value is not None}
        self._axes.set_limits(**given)
        self._given_limits = given

    def step(self, targets: Targets | None = None, dt: float | None = None) -> Command:
        """Take one tick.

        Args:
            targets: New targets as in ``IK.solve``, of some goals or all. A goal that gets none keeps its last one for
                ``timeout`` seconds. A goal that never had one keeps its place.
            dt: Seconds since the last tick; 1 / ``rate`` by default. For 0 or less the last command is returned.

        Raises:
            InputError: If a value cannot be used. The servo then is as before.
            UnknownNameError: If a target belongs to no goal.
        """
        h = 1.0 / self.rate if dt is None else _seconds(dt)
        table, given = (None, None) if targets is None else self._live.read(targets)
        if h <= 0.0:
            return self._last
        if table is not None and given is not None and given.any():
            if self._filter is not None:
                self._measured_row(self._q, table)  # refuses targets that cannot be used
                self._filter.apply(table, given, self._time + h)
            self._answer(table)
            if self._way is not None:
                self._way.holds &= (table == self._live.table)[0].all(1)
            self._live.table = table
            self._live.seen[given] = self._time + h
            self._lost[given] = False
            self._held = ""
        elif not self._held and self._row is None:
            self._answer(self._live.table)
        self._time += h
        self._lose()
        return self._advance(h)

    def hold(self, dt: float | None = None) -> Command:
        """Take one tick in which the body brakes; it then stands still until a ``step`` has a target.

        Args:
            dt: As in ``step``.

        Raises:
            InputError: If the time cannot be used.
        """
        h = 1.0 / self.rate if dt is None else _seconds(dt)
        if h <= 0.0:
            return self._last
        self._hold(_TOLD)
        self._time += h
        return self._advance(h)

    def _hold(self, why: str) -> None:
        """Begin to brake, if the body does not hold already."""
        if not self._held and self._path is not None:
            self._path.cut()
            live = self._live.seen > -np.inf
            self._live.keep(live, self._path.targets[0, :, :TRANSFORM_WIDTH])
            self._hold_until = self._time + _PATIENCE * self._path.time_to_stop() + _MARGIN / self.rate
        elif not self._held:
            self._wanted = self._before = self._stopped()
            live = self._live.seen > -np.inf
            self._live.keep(live, self._places(self._wanted, self._live.unanchored(live)))
            self._row = None
            if self._way is not None:
                self._hold_until = self._time + _PATIENCE * self._way.time_to_stop() + _MARGIN / self.rate
        self._held = why

    def _lose(self) -> None:
        """Let goals whose targets have stopped coming brake."""
        live = self._live.seen > -np.inf
        late = live & (self._time - self._live.seen > self.timeout)
        new = late & ~self._lost
        if not new.any():
            return
        self._lost |= new
        if self._filter is not None:
            self._filter.forget(new)
        if self._held:
            return
        if self._lost[live].all():
            self._hold(_LOST)
            return
        if self._path is not None:
            return  # the path ends at the last target
        self._live.keep(new, self._places(self._stopped(), self._live.unanchored(new)))
        self._row = None  # these targets have no answer yet
        self._answer(self._live.table)

    def _stopped(self) -> Array:
        """Return where the body stops if it brakes now, (nq,)."""
        q, rest = (self._q, self._rest) if self._way is None else (self._way.q, self._way.rest)
        out = q.copy()
        rest(q, out)
        return self.skeleton.follow(out)

    def _answer(self, table: Array) -> None:
        """Solve the goals for these targets, from the answer before; unchanged targets keep it."""
        if self._row is not None and np.array_equal(table, self._live.table) and not self._misses:
            self._before = self._wanted
            return
        if self._path is not None:
            if table is not self._live.table:
                self._measured_row(self._q, table)  # refuses targets that cannot be used
            self._path.extend(table)
            return
        row = self._solve(table, self._wanted, self._few)
        if row[STATUS] == Status.REACHED:
            self._misses = 0
            row = self._nearer(table, row)
        else:
            self._misses += 1
            row = self._searched(table, row)
        self._row = row
        self._before, self._wanted = self._wanted, row[self.ik.places]

    def _searched(self, table: Array, row: Array) -> Array:
        """Return an answer on another branch if there is one, for a row that misses: a jump of it is none of the body.

        After some numbers of missed ticks, the next ones try one start each, so that no tick takes long.
        """
        if self._misses in _SEARCHES:
            self._searching = int(self.ik.ints[ATTEMPTS])
            other = self._solve(table, self._q, self._few, best=False)
            if self.ik.solver.supports_priorities:  # few starts, with many steps each
                self._searching = 0
                self.ik.classify(self._wanted[None], row[None], self._scratch, False)
                if other[STATUS] != Status.REACHED:
                    other = self._solve(table, self._q, self.ik.ints)
        elif self._searching:
            self._searching -= 1
            self._again[SEED] = self._misses
            other = self._solve(table, row[self.ik.places], self._again, best=False)
        else:
            return row
        if other[STATUS] != Status.REACHED:
            return row
        self._misses = self._searching = 0
        return other

    def _nearer(self, table: Array, row: Array) -> Array:
        """Return an answer on the branch of the last one, if there is a nearer one than this row of results.

        A solve that begins far from its target can end on another branch. One that follows the targets there does not.
        """
        far = float(np.abs(self.way(self._wanted, row[self.ik.places])).max(initial=0.0))
        if far <= _FAR:
            return row
        place, before = self._wanted, self._live.table
        other = row
        for k in range(_PARTS):
            other = self._solve(between(before, table, (k + 1) / _PARTS), place, self._few)
            place = other[self.ik.places]
        reaches = other[STATUS] == Status.REACHED
        return other if reaches and np.abs(self.way(self._wanted, place)).max(initial=0.0) < far else row

    def _solve(self, table: Array, start: Array, ints: Ints, *, best: bool = True) -> Array:
        """Return the row of results for these targets from a start (nq,), with these packed integers.

        A miss of a full body is left as it is: the next tick goes on from there; others go to the best miss, unless
        only an answer that reaches is of use. Joints that can turn all around are
        left within half a turn of the last answer, if their limits allow it.
        """
        ik, scratch = self.ik, self._scratch
        first = start[None]
        out = ik.new_rows(1)
        if self.deadline is not None:
            set_deadline(scratch, self.deadline)
        try:
            call = partial(ik.call, ints, ik.floats, table, first, out, scratch, COLD, 0)
            if ik.settled(call, table, None) & MISSED and best and not ik.solver.supports_priorities:
                ik.classify(first, out, scratch, False)
        finally:
            if self.deadline is not None:
                clear(scratch)
        self._unwind(out[0, ik.places])
        return out[0]

    def _unwind(self, q: Array) -> None:
        """Take whole turns off joint values (nq,) that are farther than half a turn from the last answer, in place."""
        at = self._winding
        if len(at):
            turns = np.round((q[at] - self._wanted[at]) / (2.0 * math.pi))
            if turns.any():
                low, high = self.skeleton.limits
                near = q[at] - 2.0 * math.pi * turns
                q[at] = np.where((near >= low[at]) & (near <= high[at]), near, q[at])

    def classified(self, row: Array) -> Array:
        """Return an answer, a row of results, with the reason why it misses its goals."""
        if row[STATUS] == Status.REACHED or not self.ik.solver.supports_priorities:
            return row
        out = row[None].copy()
        self.ik.classify(out[:, self.ik.places].copy(), out, self._scratch, False)
        return out[0]

    def _advance(self, h: float) -> Command:
        """Take a tick of time h towards the answer, or brake."""
        out = np.empty(len(self._q))
        stop, way = STOP if self._held else 0, self._way
        if way is not None and stop and self._time > self._hold_until:
            way.reset(
                self._q, self._axes.table[:, AXIS_VELOCITY].copy(), h
            )  # each joint for itself: then the body is still
            way = None
        if self._path is not None and (not stop or self._time <= self._hold_until):
            self._follow_path(out, h, stop)
        elif way is None:
            self._tick(self._q, self._wanted, self._before, out, h, PROPOSE | ADVANCE | stop)
            self._q = out
        else:
            before = way.place
            there = way.advance(self._wanted, self._before, h, stop, table=self._live.table, places=self._places)
            self._tick(self._q, there, before, out, h, PROPOSE)
            if self._given_limits["jerk"] is None and np.abs(self.way(out, there)).max(initial=0.0) > _BEHIND:
                way.refine(self._q, out, h)
            self._tick(self._q, there, before, out, h, ADVANCE)
            self._q = out
            way.pace.adapt(self.way(out, there), h)
            if not way.holds.all():
                way.holds |= self._met()
        self._before = self._wanted
        self._last = self._command()
        return self._last

    def _follow_path(self, out: Array, h: float, stop: int) -> None:
        """Take a tick along the path of the targets, to ``out`` (nq,)."""
        path = self._path
        if path is None:
            return
        before = path.place
        self._wanted = path.advance(h, stop)
        self._tick(self._q, self._wanted, before, out, h, PROPOSE | ADVANCE)
        self._q = out
        path.pace.adapt(self.way(out, self._wanted), h)
        self._row = path.row if path.arrived else None

    def _met(self) -> Bools:
        """Return which goals are met now."""
        most, most_angle = self.ik.tolerance
        errors = self.errors_at(self._q, self._live.table)
        pairs = zip(self.ik.goals, errors, strict=True)
        met = [error.position <= (goal.own_tolerance or most) and error.angle <= most_angle for goal, error in pairs]
        return np.array(met, bool)

    def _command(self) -> Command:
        """Return the command of the present state."""
        axes = self._axes
        return Command(
            self,
            self._q.copy(),
            axes.by_column(AXIS_VELOCITY),
            axes.by_column(AXIS_ACCELERATION),
            axes.table[:, REASON].copy(),
            table=self._live.table,
            row=self._row,
            wanted=self._wanted,
            holding=self._held,
            time=self._time,
        )

    def _measured_row(self, q: Array, table: Array) -> Array:
        """Return the row of results of a pose without a step from it."""
        ik = self._measure
        out = ik.new_rows(1)
        floats = ik.floats
        call = partial(ik.call, self._no_steps, floats, table, q[None], out, self._measure_scratch, COLD, 0)
        ik.settled(call, table, None)
        return out[0]

    def _places(self, q: Array, table: Array) -> Array:
        """Return the targets that goals have at joint values q, (goals, 16); without one, their places there."""
        return self._measure.targets_in(self._measured_row(q, table)[None])[0]

    def errors_at(self, q: Array, table: Array) -> tuple[GoalError, ...]:
        """Return the error of each goal at joint values q for these targets, (1, goals, 17)."""
        row = self._measured_row(q, table)
        first = self._measure.places.stop
        values = row[first : first + 2 * len(self.ik.goals)].tolist()
        return tuple(GoalError(*pair) for pair in zip(values[::2], values[1::2], strict=True))

    def way(self, q: Array, to: Array) -> Array:
        """Return how far each variable goes from q to another pose, radians or length units."""
        return self._axes.way(q, to)

    def by_joint(self, values: Array) -> dict[str, int]:
        """Return values by axis as values by joint, the largest of its axes, without zeros."""
        keys = self.skeleton.joint_keys
        out: dict[str, int] = {}
        for i in np.flatnonzero(values).tolist():
            key = keys[int(self._axes.joints[i])]
            out[key] = max(out.get(key, 0), int(values[i]))
        return out


def _kernels_for(variables: Ints, limits: Array, followers: Ints, coupling: Array, axes: Array) -> tuple[Any, Any]:
    """Return the kernels of a tick and of a reset for these tables, see ``kernels.servo.tick``."""
    from synovia.kernels.compiler.jit import ready
    from synovia.kernels.servo.tick import servo_reset, servo_tick

    none, q = axes[:0], np.zeros(0)
    tick = ready(servo_tick, variables[:0], limits[:0], followers[:0], coupling[:0], none, q, q, q, q, 1.0, PROPOSE)
    begin = ready(servo_reset, none, q, 1.0)
    return partial(tick, variables, limits, followers, coupling, axes), partial(begin, axes)


_ARM_GOALS: Final = frozenset({"", "position", "rotation", "pose"})


def _positive(name: str, value: Any, unit: str) -> float:
    """Return a positive number.

    Raises:
        InputError: If it is none.
    """
    if not is_number(value) or not 0.0 < value < math.inf:
        raise InputError(name, value=value, expected=f"a number above 0, {unit}")
    return float(value)


def _seconds(dt: Any) -> float:
    """Return the time of a tick.

    Raises:
        InputError: If it is no finite number.
    """
    if type(dt) is not float:
        if not is_number(dt):
            raise InputError("dt", value=dt, expected="seconds")
        dt = float(dt)
    if not math.isfinite(dt):
        raise InputError("dt", value=dt, expected="seconds")
    return dt
