"""``Servo``: a body that follows live targets, as parts that move independently of each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from synovia.arguments import ChecksArguments, completed, takes
from synovia.compiling import compile_soon, needed_next
from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import Goal, RestGoal
from synovia.ik.compiled import CompiledProblem, Start
from synovia.ik.targets import Target, Targets, parts_of
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.root import Root
from synovia.model.shapes.world import World
from synovia.model.tree import ancestors
from synovia.options import MotionLimits
from synovia.problem.structure import with_followers, with_tied
from synovia.servo.limits import Axes
from synovia.servo.measured import WINDOW
from synovia.servo.part import KERNELS, Part, Settings, changed_goals
from synovia.servo.targets import Clutch, OneEuro, Twist
from synovia.servo.tick import Tick, Together
from synovia.solver import FullBody, LevenbergMarquardt, Solver, SolverName, as_solver

LiveTarget: TypeAlias = "Targets | Twist | Mapping[str, Target | Twist] | Mapping[str | int, Target | Twist]"
_HELD: Final = "Holding: hold() was called; the next step with a target goes on."
_ARM_GOALS: Final = frozenset({"", "position", "rotation", "pose"})


class Servo(ChecksArguments):
    """A body that follows live targets.

    Every tick satisfies all joint limits and leaves the body able to stop within them.

    A tick solves the goals from the previous solution. Then each joint moves towards its solution as fast as its limits
    allow, so that it can stop there. All joints arrive together. If targets move faster than a joint can follow, the
    others compensate by the priorities of the goals.

    Parts of the body that share no joint, goal, loop or tool, such as two arms on a fixed base, move independently,
    as if each had a servo of its own.

    Goals keep their priorities in every tick: a goal that is met or followed is not given up for goals of lower
    priority. With a jerk limit and several goals, this rarely fails for a moment. With ``late="slow"``, a ``Twist`` is
    late where the body cannot follow, as in singular poses, and hardly leaves its line or its axis of rotation.

    With a ``ClearanceGoal`` as a constraint, a tick is taken only if the body keeps its distances in the tick and in
    the braking motion after it, within half of the tolerance. The body slides along obstacles. Obstacles are assumed to
    stay where they are in the tick. If an obstacle comes too near, the body moves away as fast as its limits allow;
    ``command.solution.contacts`` then shows the pair.

    The loops of a skeleton are closed in every tick. A tick is taken only if a stop after it is known that keeps the
    loops closed and satisfies all limits.

    Differences of the returned joint values keep the limits: the velocity between two ticks, the acceleration (twice
    the second divided difference) and the jerk (six times the third), also if the ticks are not evenly spaced.

    Args:
        skeleton: The skeleton, or an ``IK``, whose goals and solver are used.
        goals: One goal or several. A goal that never gets a target keeps its place since the last ``reset``.
        solver: Settings, a solver's name, or None: full body for several goals, else Levenberg-Marquardt.
        rate: Ticks per second; used when ``step`` gets no ``dt``.
        velocity: Highest velocity of all joints, rad/s (slides: length units/s), or by joint; ``"30%"`` for a share of
            the limits of the file; None for these limits in full. For ball joints it limits the length of the angular
            velocity. For a free root, a number means rad/s and length scales/s; or pass a pair (angular, linear).
        acceleration: Highest acceleration, likewise, per s².
        jerk: Highest jerk, likewise, per s³; None for no limit.
        tool_speed: Highest speed of end effectors, by joint, link or site: linear (length units/s), or a pair (linear,
            angular in rad/s); None in a pair for no limit. ``limited`` then says "tool speed" for this name.
        root: As in ``IK``.
        late: What the body does if it cannot keep up. ``"deviate"`` stays as near to the targets as its joints can.
            ``"slow"`` stays on the path of the targets: straight lines and shortest rotations between them. Where the
            body cannot go on, as in a singular pose, it leaves the path, goes to the next place on the path that it can
            reach, and ``explain()`` says so.
        timeout: Seconds that a goal keeps its last target if none comes. Then it brakes and keeps the place where it
            stopped.
        filter: ``OneEuro()`` filters noise of the targets; None for no filter.
        deadline: Seconds after which the solve of a tick ends with the best pose so far; None for no deadline. The
            solve for the look-ahead of a whole body has no deadline.
        interpolation: Seconds from the time of a target until it is reached, for targets that come more slowly than
            ticks. The servo interpolates smoothly between targets. Two periods of the targets are a good choice. 0 for
            targets that apply at once.
        following_error: How far a ``measured`` joint may be from its command, radians (slides: length units), or by
            joint. Below it the commands are corrected; above it the body holds. For a free root, a number means rad
            and length scales; or pass a pair (angular, linear).

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

    @takes(MotionLimits)
    def __init__(
        self,
        skeleton: Skeleton | IK,
        goals: Goal | Iterable[Goal] | None = None,
        solver: Solver | SolverName | None = None,
        *,
        rate: float,
        tool_speed: Mapping[str, float | tuple[float | None, float | None]] | None = None,
        root: Root = "fixed",
        late: Literal["deviate", "slow"] = "deviate",
        timeout: float = 0.5,
        filter: OneEuro | None = None,  # noqa: A002 - the word for it
        deadline: float | None = None,
        interpolation: float = 0.0,
        following_error: Any = WINDOW,
        **limits: Unpack[MotionLimits],
    ) -> None:
        """Build the problem, and load or compile the kernels."""
        if isinstance(skeleton, IK):
            if goals is not None or solver is not None or root != "fixed":
                raise InputError("goals, solver and root", expected="none with an IK", hint="the IK has its own")
            self.ik, goalless = skeleton, False
            solver = self.ik.solver
            compile_soon(*KERNELS)
        else:
            if goals is None:
                raise InputError("goals", expected="one Goal or several, or () to drive joints only")
            goals = (goals,) if isinstance(goals, Goal) else tuple(goals)
            goalless = not goals
            goals = goals or (RestGoal(),)
            with needed_next(*KERNELS):
                self.ik = IK(skeleton, goals, _default_solver(goals) if solver is None else solver, root=root)
        most = completed(MotionLimits, limits, "Servo")
        self._settings = Settings(
            solver, rate, most.velocity, most.acceleration, most.jerk, tool_speed, late, timeout, filter, deadline,
            interpolation, following_error,
        )  # fmt: skip
        self._holds, self._is_off = "", False  # why all parts hold; whether a joint is too far from its command
        self._adopt(self.ik, goalless=goalless)
        first = self._parts[0]
        self.skeleton, self.rate, self.timeout, self.late = first.skeleton, first.rate, first.timeout, first.late
        self.filter, self.deadline = first.filter, deadline

    def _adopt(self, ik: IK, *, goalless: bool = False) -> None:
        """Build the parts of a problem, which move independently."""
        groups = independent_parts(ik.problem)
        parts = [self._part(ik, groups, k, goalless=goalless) for k in range(len(groups))]
        self.ik, self._groups, self._parts = ik, groups, parts
        self._part_of: dict[Any, int] = {}  # index of a part, by key of a target

    def _part(self, ik: IK, groups: Sequence[Group], k: int, *, goalless: bool = False) -> Part:
        """Return part k of a problem."""
        if len(groups) == 1:
            return Part(ik, self._settings, goalless=goalless)
        given = self._settings
        own, tools = _own_rows(ik.skeleton, groups, k), given.tool_speed
        if isinstance(tools, Mapping):
            named = cast("Mapping[Any, Any]", tools)
            at = {name: _part_with(ik.skeleton, groups, ik.skeleton.locate(name)[0]) for name in named}
            tools = {name: limit for name, limit in named.items() if at[name] == k} or None
        deadline = None if given.deadline is None else given.deadline / len(groups)
        settings = replace(given, tool_speed=tools, deadline=deadline)
        return Part(self._packed(ik, groups[k]), settings, own)

    def _packed(self, ik: IK, group: Group) -> IK:
        """Return the problem of a group of goals."""
        goals, rows = tuple(ik.goals[g] for g in group[0]), sorted(group[1])
        return IK.of(CompiledProblem(
            ik.given, goals, self._solver_of(goals), tolerance=ik.tolerance, root=ik.root, moving=rows,
        ))  # fmt: skip

    def _solver_of(self, goals: tuple[Goal, ...]) -> Solver:
        """Return the solver of some goals."""
        solver = self._settings.solver
        return _default_solver(goals) if solver is None else as_solver(solver, goals)

    @property
    def problem(self) -> CompiledProblem:
        """The packed problem."""
        return self.ik.problem

    @property
    def axes(self) -> Axes:
        """The axes of the body, with the state of the first part."""
        return self._parts[0].axes

    def reset(
        self, pose: Start | None = None, velocity: Any = None, acceleration: Any = None, *, time: float = 0.0
    ) -> None:
        """Restart from a pose, without targets. Obstacles return to their places in the worlds of the goals.

        Args:
            pose: A pose, ``"rest"``, or joint values as in ``IK.solve``; None for the rest pose.
            velocity: The velocity of the body, (nv,) or by joint; None for a body at rest. If it breaks the limits, the
                body recovers in the first ticks.
            acceleration: Its acceleration, likewise; used only with a jerk limit. None for zero.
            time: Time of the servo's clock now, seconds. Pass the time of your own clock to use its time stamps.

        Raises:
            InputError: If a value cannot be used.
        """
        start = self.problem.default_start if pose is None else self.problem.as_start(pose)
        for part in self._parts:
            part.reset(start, velocity, acceleration, time=time)
        self._holds, self._is_off = "", False
        self._joined()

    def change(
        self,
        goals: Goal | Iterable[Goal] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        priorities: Mapping[str, int | None] | None = None,
        velocity: Any = None,
        acceleration: Any = None,
        jerk: Any = None,
        world: World | None = None,
    ) -> None:
        """Change goals, limits or the world from the next tick on; the motion goes on without a jump.

        Omitted arguments change nothing. Goals of the same name keep their targets; new goals without a target keep the
        place where the body stops. Raised limits apply at once. A lowered limit applies as soon as the body can stop
        with it inside the limits of its joints and, with a clearance goal, without coming too near; until then the old
        limit applies. ``limited`` says "recovering" until the motion satisfies the new limit.

        Goals are packed again, which takes some milliseconds.

        Args:
            goals: All goals from now on.
            weights: Other weights, by the names of goals.
            priorities: Other priorities, likewise: a hand-over of two hands exchanges them.
            velocity: As in the constructor, or of some joints by name.
            acceleration: Likewise.
            jerk: Likewise.
            world: Obstacles of all clearance goals.

        Raises:
            InputError: If a value cannot be used. The servo then is as before.
            UnknownNameError: If there is no such goal or joint.
            UnsupportedError: If the servo does not support these goals.
        """
        limits = {"velocity": velocity, "acceleration": acceleration, "jerk": jerk}
        kept, states = dict(self.__dict__), [(part, part.kept) for part in self._parts]
        try:
            if goals is not None or weights or priorities or world is not None:
                wanted = changed_goals(self.ik.goals, goals, weights or {}, priorities or {}, world)
                with needed_next(*KERNELS):
                    self._change_goals(IK.of(
                        self.problem.with_parts(wanted, self._solver_of(wanted), tolerance=self.ik.tolerance)
                    ))  # fmt: skip
            for part in self._parts:
                part.take_limits(**limits)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(kept)
            for part, state in states:
                part.kept = state
            raise

    def _change_goals(self, ik: IK) -> None:
        """Switch to another problem of the same body; if the parts change, the new ones go on from their state."""
        groups, parts = independent_parts(ik.problem), self._parts
        if len(groups) == len(parts) == 1:
            parts[0].adopt(ik)
        elif [rows for _, rows in groups] == [rows for _, rows in self._groups]:
            for part, group in zip(parts, groups, strict=True):
                part.adopt(self._packed(ik, group))
        else:
            states = [part.state for part in parts]
            self._adopt(ik)
            for part in self._parts:
                part.take_over(states)
            return
        self.ik, self._groups, self._part_of = ik, groups, {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names the replacement of a removed attribute."""
            hint = ". servo.change(velocity=...) changes limits" if name == "limit" else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    @property
    def time(self) -> float:
        """The clock of the servo, seconds: the time of the last command."""
        return self._parts[0].time

    def step(
        self,
        targets: LiveTarget | None = None,
        dt: float | None = None,
        *,
        at: float | None = None,
        joints: Mapping[str, float | None] | Mapping[str | int, float | None] | None = None,
        jog: Mapping[str, float | None] | Mapping[str | int, float | None] | None = None,
    ) -> Tick:
        """Take one tick.

        Joints that get a value or a velocity follow it as their limits allow, and stop inside them. While a goal has a
        target, or the root moves, goals come first: these joints move as far as the goals allow, and the other joints
        compensate. Otherwise only these joints move, and the goals then keep the places that result.

        Args:
            targets: New targets as in ``IK.solve``, or a ``Twist``, of some goals or all. A goal without a new target
                keeps its last target for ``timeout`` seconds. A goal that never had a target keeps its place. A place
                by the name of a ``ClearanceGoal`` moves its obstacle there from this tick on. A target with NaN is
                ignored, and the state of its goal in this tick is "lost".
            dt: Seconds since the last tick; 1 / ``rate`` by default. For 0 or less the last command is returned.
            at: Time of the targets on the clock of the servo (``time``), seconds; None for now. Targets that are not
                newer than the last target of their goal are ignored, and ``Tick.stamps`` says so.
            joints: Values of hinges and slides to go to, radians or length units, by joint. They apply for ``timeout``
                seconds, after which the goals lead the joint again; None as a value releases the joint at once.
            jog: Velocities of hinges and slides, per second, likewise.

        Raises:
            InputError: If a value cannot be used. The servo then is as before.
            UnknownNameError: If a target belongs to no goal, or a joint does not exist.
            UnsupportedError: If the servo cannot keep a joint at a value while goals lead the others.
        """
        if len(self._parts) == 1:
            part = self._parts[0]
            return part.take(part.read((targets, at, joints, jog), dt))
        given = [self._shared(one, find) for one, find in (
            (targets, self._part_of_target), (joints, self._part_of_joint), (jog, self._part_of_joint),
        )]  # fmt: skip
        inputs = [(given[0][k], at, given[1][k], given[2][k]) for k in range(len(self._parts))]
        pairs = list(zip(self._parts, inputs, strict=True))
        read = [part.read(one, dt, strict=True) for part, one in pairs]
        if self._holds and not self._is_off and any(one is not None for one in given[0]):
            for part in self._parts:
                part.release(self._holds)
            self._holds = ""
        for part, one in zip(self._parts, read, strict=True):
            part.take(one)
        return self._joined()

    def _shared(self, given: Any, find: Any) -> list[Any]:
        """Split a mapping into one for each part, or None; ``find`` returns the part of a key and value."""
        out: list[Any] = [None] * len(self._parts)
        if given is None:
            return out
        if not isinstance(given, Mapping):
            takes = [k for k, (goals, _) in enumerate(self._groups) for g in goals if self.ik.goals[g].takes]
            if find == self._part_of_joint:
                return [given] * len(out)
            if len(takes) != 1:
                raise InputError("targets", value=given, expected="a dict from joints or goals to their targets")
            out[takes[0]] = given
            return out
        for key, value in cast("Mapping[Any, Any]", given).items():
            k = find(key, value)
            if out[k] is None:
                out[k] = {}
            out[k][key] = value
        return out

    def _part_of_target(self, key: Any, value: Any) -> int:
        """Return the part of the goal to which a target belongs.

        Raises:
            UnknownNameError: If there is no such goal.
        """
        try:
            return self._part_of[key]
        except (KeyError, TypeError):
            g = self.problem.writer.goal_of(key, 0 if isinstance(value, Twist) else parts_of(value))
            self._part_of[key] = next(k for k, (goals, _) in enumerate(self._groups) if g in goals)
            return self._part_of[key]

    def _part_of_joint(self, key: Any, _: Any) -> int:
        """Return the part of a joint, the first one if no part has it."""
        row = next(iter(self.skeleton.by_row({key: None}, "joints")), 0)
        return next((k for k, part in enumerate(self._parts) if part.own is not None and row in part.own), 0)

    def hold(self, dt: float | None = None) -> Tick:
        """Take one tick in which the body brakes; it then stands still until a ``step`` has a target.

        Args:
            dt: As in ``step``.

        Raises:
            InputError: If the time cannot be used.
        """
        if len(self._parts) > 1:
            self._holds = _HELD
        ticks = [part.hold(dt, _HELD) for part in self._parts]
        return ticks[0] if len(ticks) == 1 else self._joined()

    def schedule(self, targets: Targets, times: ArrayLike, *, fade: float = 0.2) -> None:
        """Give targets in advance, such as a chunk of a policy. Then call ``step()`` without targets.

        From the next tick on, the goals go smoothly through these targets, each at its time, and stop at the last one.
        The rest of an earlier schedule is replaced, without a jump of the velocity.

        Args:
            targets: Targets with a leading axis, as in ``IK.track``, of some goals or all.
            times: When each is reached, on the clock of the servo (``time``), increasing, seconds. Past times are left
                out, and ``Tick.stamps`` says "late".
            fade: Seconds of the transition to the new targets.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a target belongs to no goal.
        """
        if len(self._parts) == 1:
            self._parts[0].schedule(targets, times, fade=fade)
            return
        self.problem.writer.table_of_many(targets)  # refuses targets that no part could use
        for part, own in zip(self._parts, self._shared(targets, self._part_of_many), strict=True):
            if own is not None:
                part.schedule(own, times, fade=fade)

    def _part_of_many(self, key: Any, value: Any) -> int:
        """Return the part of the goal to which targets with a leading axis belong."""
        return self._part_of_target(key, value[0])

    def clutch(self, goal: str | int, *, scale: float | tuple[float, float] = 1.0) -> Clutch:
        """Return a released clutch; from now on, targets of this goal are poses of a controller, see ``Clutch``.

        Args:
            goal: The goal, as in targets.
            scale: Factor of the controller's motion, or a pair: of its displacement and of its rotation.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If there is no such goal.
        """
        k = self._part_of_target(goal, np.eye(4)) if len(self._parts) > 1 else 0
        return self._parts[k].clutch(goal, scale=scale)

    def measured(self, q: Start) -> None:
        """Take joint values that the robot reports into account.

        The commands stay continuous and keep all limits. While they stand still, the servo learns within seconds how
        far the robot is off its commands. It corrects the commands by this offset, at most by half of
        ``following_error``, so that the robot meets its goals. ``Tick.errors`` are then the errors of the robot. If
        a joint is farther than ``following_error`` from its command, the body brakes and holds, and ``explain`` names
        the joint. After a measurement within ``following_error``, the next target resumes the motion.

        Args:
            q: A pose or joint values as in ``IK.solve``, or values of some joints by name: the other joints are assumed
                to be where they are expected. Sensor noise may open loops: the nearest closed pose is used, in which
                joints that are given by name stay if possible, and joints without sensors follow.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a joint does not exist.
        """
        reading = self._parts[0].reading(q, self._merged([part.body for part in self._parts]))
        far = ""
        for part in self._parts:
            far = part.measured(part.among(reading)) or far
        self._is_off = bool(far)
        if far and len(self._parts) > 1:
            self._holds = far
            for part in self._parts:
                part.stop(far)

    def _merged(self, values: Sequence[Array]) -> Array:
        """Merge the joint values of all parts: each joint takes the value of its own part, (nq,)."""
        out = values[0].copy()
        for part, q in zip(self._parts[1:], values[1:], strict=True):
            out[part.places] = q[part.places]
        return self.skeleton.follow(out) if len(values) > 1 else out

    def _joined(self) -> Tick:
        """Return the command of all parts in their present state."""
        details = [part.details for part in self._parts]
        q = self._merged([one.q for one in details])
        for part in self._parts:
            part.around = q
        goals = [goals for goals, _ in self._groups]
        return Tick(self.skeleton, q, Together(self.problem, q, details, goals, [part.places for part in self._parts]))


Group: TypeAlias = "tuple[list[int], frozenset[int]]"


def independent_parts(problem: CompiledProblem) -> list[Group]:
    """Return the goals (indices) and the moving joints (rows) of each part that moves independently of the others.

    Joints belong together if they move the same goal, or are coupled, as mimic joints or in a loop. Rest goals belong
    to every part. Joints that only rest goals move are a part, too.
    """
    skeleton, goals = problem.skeleton, problem.goals
    everything = frozenset(with_followers(skeleton, problem.moving))
    rest = [g for g, goal in enumerate(goals) if goal.preference is not None]
    found: list[Group] = []
    still: list[int] = []  # goals that no joint moves
    for g, (goal, joints) in enumerate(zip(goals, problem.goal_joints, strict=True)):
        if g in rest:
            continue
        rows = everything
        if goal.joints and not goal.moves_mass:
            rows = {row for joint in joints for row in ancestors(skeleton.parents, joint)}
            rows = everything & with_followers(skeleton, with_tied(skeleton, with_followers(skeleton, rows)))
        mine = [g]
        for other in [one for one in found if rows & one[1]]:
            mine, rows = other[0] + mine, rows | other[1]
            found.remove(other)
        if rows:
            found.append((mine, frozenset(rows)))
        else:
            still.append(g)
    if problem.root != "fixed" or not found:
        return [(list(range(len(goals))), everything)]
    left = everything.difference(*(rows for _, rows in found))
    found[0][0].extend(still)
    if left and rest:
        found.append(([], left))
    return sorted(((sorted(mine + rest), rows) for mine, rows in found), key=lambda one: min(one[1]))


def _part_with(skeleton: Skeleton, groups: Sequence[Group], row: int) -> int:
    """Return the part that moves a joint, the first part if none does."""
    above = {*ancestors(skeleton.parents, row)}
    return next((k for k, (_, rows) in enumerate(groups) if above & rows), 0)


def _own_rows(skeleton: Skeleton, groups: Sequence[Group], k: int) -> frozenset[int]:
    """Return the joints of part k; the first part also has all joints that no part moves."""
    others = {row for j, (_, rows) in enumerate(groups) if j != k for row in rows}
    return frozenset(range(len(skeleton))) - others if k == 0 else groups[k][1]


def _default_solver(goals: tuple[Goal, ...]) -> Solver:
    """Return the default solver of a servo with these goals."""
    plain = len(goals) == 1 and goals[0].needs in _ARM_GOALS and goals[0].rank == 0
    return LevenbergMarquardt() if plain else FullBody()
