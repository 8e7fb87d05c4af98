"""Compute the targets of one tick from user inputs: time stamps, interpolation, twists, clutches and the filter.

Inputs that are probably mistakes (degrees, milliseconds, millimetres, periods) cause warnings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, cast

import numpy as np

from synovia.arguments import warn
from synovia.errors import InputError
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.kernels.layout import GIVEN, TOP_SPEED, TRANSFORM_WIDTH
from synovia.model import Kind, Skeleton
from synovia.model.degrees import FAR
from synovia.model.geometry import Array, Bools, as_numbers, is_finite, is_number
from synovia.servo.limits import Axes
from synovia.servo.targets import Clutch, Curve, Drift, OneEuro, TargetFilter, Twist, log_turn

_FASTER: Final = 10.0  # largest plausible velocity, as a multiple of the limit of the file or the servo
_SLOWEST: Final = 1.0  # smallest plausible rate, ticks per second
_LONGEST: Final = 1.0  # longest plausible time between ticks, seconds
_MANY: Final = 20.0  # largest plausible time between ticks, as a multiple of the regular time
_SPIN: Final = 6.0 * math.pi  # radians per second: largest plausible angular velocity of a twist
_REACHES: Final = 20.0  # length scales per second: largest plausible linear velocity of a twist
FARTHEST: Final = 20.0  # length scales: largest plausible distance from a target to the next
_SHOWN: Final = 4  # largest number of names in one warning


def question_rate(rate: float) -> None:
    """Warn of a rate that is probably the duration of a tick."""
    if rate < _SLOWEST:
        warn(
            f"rate={rate:g}: that is a tick each {1.0 / rate:g} s."
            f" rate is in ticks per second. Did you mean rate={1.0 / rate:g}?"
        )


def question_time(dt: float, rate: float) -> None:
    """Warn of a tick so long that its time is probably in milliseconds, and of one with a negative time."""
    if dt < 0.0:
        warn(f"dt={dt:g}: time does not go back; the tick is left out. Did you mean seconds since the last tick?")
    if dt >= _LONGEST and dt * rate > _MANY:
        warn(
            f"dt={dt:g}: that is {dt * rate:,.0f} ticks in one. dt is in seconds. Did you mean {dt / 1000.0:g}?"
            f" After a pause, pass no more than the robot can make up for, such as min(dt, {4.0 / rate:g})."
        )


def question_start() -> None:
    """Warn of a servo that begins at rest while its robot may be elsewhere."""
    warn(
        "step() came before reset(): the body begins at its rest pose."
        " Did you mean servo.reset(pose) first, with the pose of the robot?"
    )


def question_velocities(skeleton: Skeleton, velocities: Array) -> None:
    """Warn of velocity limits (joints, 2), angular and linear, far above those of the file."""
    names: list[tuple[str, float, float]] = []
    for joint, key, pair in zip(skeleton.joints, skeleton.joint_keys, velocities.tolist(), strict=True):
        given = pair[1] if joint.kind is Kind.SLIDE else pair[0]
        if joint.velocity is not None and 0.0 < joint.velocity < math.inf and given > _FASTER * joint.velocity:
            names.append((key, given, joint.velocity))
    if names:
        name, given, own = names[0]
        others = f" So are those of {', '.join(repr(one) for one, _, _ in names[1:_SHOWN])}" if names[1:] else ""
        others += " and others." if len(names) > _SHOWN else "." if others else ""
        warn(
            f"velocity of joint {name!r}: {given:g} is far above that of the file, {own:g} per s.{others}"
            f" Velocities are in radians. Did you mean {given:g} degrees, {math.radians(given):.4g}?"
            " velocity=None takes those of the file."
        )


def question_twist(name: str, twist: Twist, reach: float) -> None:
    """Warn of a twist that is much too fast for a body of this length scale."""
    spin, speed = float(np.linalg.norm(twist.angular)), float(np.linalg.norm(twist.linear))
    if spin > _SPIN:
        warn(
            f"angular part of the twist of {name!r}: {spin:g} rad/s is {spin / (2.0 * math.pi):.2g} turns a second."
            f" Did you mean {spin:g} degrees, {math.radians(spin):.4g}?"
        )
    if speed > _REACHES * reach:
        warn(
            f"linear part of the twist of {name!r}: {speed:g} length units/s is {speed / reach:.3g} times the reach."
            f" Did you mean millimetres, {speed / 1000.0:.4g}?"
        )


def question_place(name: str, place: Array, last: Array, reach: float) -> None:
    """Warn of a target that is much too far from the last one for a body of this length scale."""
    if float(np.linalg.norm(place - last)) > FARTHEST * reach:
        there, less = (", ".join(f"{x + 0.0:.4g}" for x in values) for values in (place, place / 1000.0))
        warn(
            f"target of {name!r}: ({there}) is far away; the reach is {reach:.3g} length units."
            f" Did you mean millimetres, ({less})?"
        )


def question_values(axes: Axes, values: Mapping[int, float]) -> None:
    """Warn of values of axes that are far outside the limits of the joints."""
    for axis, value in values.items():
        row = int(axes.joints[axis])
        low, high = axes.skeleton.value_range(row)
        if not low - FAR <= value <= high + FAR and not axes.lengths[axis]:
            warn(
                f"joints of {axes.skeleton.joint_keys[row]!r}: {value:g} is far outside its limits, {low:g} to {high:g}"
                f" radians. Did you mean {value:g} degrees, {math.radians(value):.4g}?"
            )


def question_jogs(axes: Axes, speeds: Mapping[int, float]) -> None:
    """Warn of velocities of axes that are far above their limits."""
    for axis, speed in speeds.items():
        top = float(axes.table[axis, TOP_SPEED])
        if abs(speed) > _FASTER * top and not axes.lengths[axis]:
            warn(
                f"jog of {axes.skeleton.joint_keys[int(axes.joints[axis])]!r}: {speed:g} is far above its limit,"
                f" {top:.4g} rad/s. Did you mean {speed:g} degrees, {math.radians(speed):.4g}?"
            )


_TURNED: Final = np.pad(np.ones((3, 3), bool), ((0, 1), (0, 1)))  # entries of a transform: rotation
_MOVED: Final = np.outer((True, True, True, False), (False, False, False, True))  # entries: position
# The entries of a transform that a target sets, for each combination of parts.
_COLUMNS: Final = np.array(
    [_MOVED * bool(k & POSITION) | _TURNED * bool(k & ROTATION) for k in range(POSITION + ROTATION + 1)]
).reshape(-1, TRANSFORM_WIDTH)
_NEVER: Final = -np.inf  # time of the last target of a goal that never had one


def some(mask: Bools) -> bool:
    """Return whether any entry of a mask is true; for the few goals of a body, this is faster than ``any``."""
    return True in mask.tobytes()


class LiveTargets:
    """The present targets of all goals.

    Args:
        ik: The problem.

    Attributes:
        table: The targets, (1, goals, 17); a new array whenever they change.
        seen: Time of the last target of each goal, -inf for goals that never had one; a new array, too.
        aimed: Which goals have a target: one that has come, their own, or a place relative to a joint that is led.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Begin with the goals' own targets."""
        self._ik = ik
        self._takes = np.array([goal.takes for goal in ik.goals], np.int64)
        self.takes: Bools = self._takes > 0  # goals that take a target
        self._columns: Bools = _COLUMNS[self._takes]
        self._own = ik.writer.own
        self._own_given = self._own[0, :, GIVEN].astype(np.int64)
        self._workspace = ik.writer.workspace(new_scratch(0x20))
        self.anchored: Bools = (self._takes & ~self._own_given) > 0  # goals that keep their place, or a part of it
        self.own: Bools = self.takes & ~self.anchored  # goals that have a whole target of their own
        self._relative: Bools = np.array([goal.within_other for goal in ik.goals], bool)
        self._whole = bool((self._columns == (_MOVED | _TURNED).ravel()).all())  # whether all goals take poses
        self.table = self._own.copy()
        self._see(np.full(len(ik.goals), _NEVER))
        self._ends = [[0.0, 0.0, 0.0, 1.0]] * len(ik.goals)  # last rows of transforms
        self._given: Any = {}  # the targets that were read last

    def reset(self, places: Array) -> None:
        """Discard all targets; goals without their own target keep these places, (goals, 16)."""
        self.table = self._own.copy()
        self._see(np.full(len(self.seen), _NEVER))
        self.keep(self.anchored, places)

    def take_over(self, other: LiveTargets, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy the targets of goals that existed before, unless their own target has changed.

        Args:
            other: The targets before.
            pairs: Indices of these goals now and before.
        """
        table, seen = self.table.copy(), self.seen.copy()
        for new, old in pairs:
            own = self._own[0, new]
            if not own[GIVEN] or np.array_equal(own, other._own[0, old]):
                table[0, new], seen[new] = other.table[0, old], other.seen[old]
        self.table = table
        self._see(seen)

    def see(self, goals: Bools, now: float, scheduled: Mapping[int, float]) -> None:
        """Record that some goals have new targets now, and some of them later ones, by index."""
        seen = np.where(goals, now, self.seen)
        for g, end in scheduled.items():
            seen[g] = max(end, now)
        if goals is self._aimed_for:  # as in most ticks
            self.seen = seen
        else:
            self._see(seen)
            self._aimed_for = goals

    def _see(self, seen: Array) -> None:
        """Set the times of the last targets, (goals,)."""
        self.seen = seen
        self._aimed_for: Bools | None = None  # goals of the last targets, if ``aimed`` has them
        aimed = (seen > _NEVER) | self.own
        self.aimed: Bools = aimed | self._relative if some(aimed) else aimed

    def keep(self, goals: Bools, places: Array) -> None:
        """Set the targets of some goals to these places, (goals, 16)."""
        self.table = self.placed(goals, places)

    def placed(self, goals: Bools, places: Array) -> Array:
        """Return the table in which some goals have these places, (goals, 16), as targets."""
        table = self.table.copy()
        table[0, goals, :TRANSFORM_WIDTH] = places[goals]
        table[0, goals, GIVEN] = self._takes[goals]
        return table

    def unanchored(self, goals: Bools) -> Array:
        """Return the table in which these goals have no target, so that a solver keeps their places."""
        table = self.table.copy()
        table[0, goals, GIVEN] = 0.0
        return table

    def read(self, targets: Any) -> tuple[Array, Bools]:
        """Return the table with new targets, and which goals have a new target.

        Args:
            targets: As in ``IK.solve``.

        Raises:
            InputError: If a target cannot be used.
            UnknownNameError: If it belongs to no goal.
        """
        workspace, self._given = self._workspace, targets
        self._ik.writer.fill(targets, workspace)
        new = workspace.table[0]
        if new[:, TRANSFORM_WIDTH - 4 : TRANSFORM_WIDTH].tolist() != self._ends:
            self.refuse()
        if workspace.all_given and self._whole:
            return workspace.table.copy(), self.takes
        table = self.table.copy()
        if workspace.all_given:
            np.copyto(table[0, :, :TRANSFORM_WIDTH], new[:, :TRANSFORM_WIDTH], where=self._columns)
            table[0, :, GIVEN] = self._takes
            return table, self.takes
        given = (new[:, GIVEN] != self._own_given) | (
            new[:, :TRANSFORM_WIDTH] != self._own[0, :, :TRANSFORM_WIDTH]
        ).any(1)
        self.merge(table[0], new, given)
        return table, given

    def refuse(self) -> None:
        """Check the targets that were read last again, to raise an error that names the invalid target.

        Raises:
            InputError: If a target cannot be used.
        """
        self._ik.writer.orthonormalize_or_refuse(self._workspace.table, self._given)

    def read_many(self, targets: Any) -> tuple[Array, Bools]:
        """Return the tables (K, goals, 17) with a sequence of targets, and which goals have new targets.

        Raises:
            InputError: If a target cannot be used.
            UnknownNameError: If it belongs to no goal.
        """
        writer = self._ik.writer
        many = writer.table_of_many(targets)
        writer.orthonormalize_or_refuse(many, targets, many=True)
        given = ((many != self._own).any(2)).any(0)
        out = np.repeat(self.table, len(many), axis=0)
        for table, new in zip(out, many, strict=True):
            self.merge(table, new, given)
        return out, given

    @staticmethod
    def merge(table: Array, new: Array, given: Bools) -> None:
        """Write the given parts of new targets of some goals into a table, both (goals, 17)."""
        parts = new[:, GIVEN].astype(np.int64) * given
        np.copyto(table[:, :TRANSFORM_WIDTH], new[:, :TRANSFORM_WIDTH], where=_COLUMNS[parts])
        table[:, GIVEN] = table[:, GIVEN].astype(np.int64) | parts


_FARTHEST: Final = 60.0  # seconds ahead of the servo's clock: a later time stamp must come from another clock
_SOON: Final = 0.5  # a late target is reached within this fraction of the lag
_NEAR: Final = 1e-6  # largest component: smaller directions count as zero
LATE: Final = "late"
TOO_LATE: Final = "too late"
DOUBLED: Final = "doubled"
UNORDERED: Final = "out of order"
NO_NUMBER: Final = "NaN"


@dataclass(frozen=True)
class News:
    """Targets that users pass in one tick, checked but not yet applied."""

    table: Array  # (1, goals, 17)
    given: Bools
    twists: Mapping[int, Twist]
    at: float | None
    unseen: Bools  # goals whose targets have NaN


class Moving(Protocol):
    """The part of a servo that its inputs need."""

    def check_targets(self, table: Array) -> None:
        """Refuse targets (1, goals, 17) that cannot be used."""
        ...

    def stop_places(self, *, goes_on: bool) -> Array:
        """Return the places (goals, 16) of all goals where the body stops if it brakes now."""
        ...

    def axes_of(self, frame: str) -> Array:
        """Return the rotation (3, 3) of a joint, link or site now."""
        ...

    def lead_time(self) -> float:
        """Return how many seconds a twist may be ahead of the body."""
        ...

    def let_go(self, goals: Bools, why: str) -> None:
        """Let goals brake and keep the places where they stop."""
        ...


class Inputs:
    """The inputs of a servo.

    Args:
        ik: The problem.
        live: The present targets.
        body: The servo.
        lag: Seconds from a target's time until it is reached.
        noise: The filter of targets, or None.
        timeout: Seconds after which a target is too late.
    """

    def __init__(
        self, ik: CompiledProblem, live: LiveTargets, body: Moving, *, lag: float, noise: OneEuro | None, timeout: float
    ) -> None:
        """Begin without inputs."""
        self._ik, self._live, self._body = ik, live, body
        self._lag, self._noise, self._timeout = lag, noise, timeout
        self._clutches: dict[int, Clutch] = {}
        self._keys = [goal.label for goal in ik.goals]
        takes = [i for i, goal in enumerate(ik.goals) if goal.takes]
        self._only = takes[0] if len(takes) == 1 else None
        self._far = (FARTHEST * ik.reach) ** 2  # squared norm of a table of targets: above it, jumps are checked
        self.reset()

    def reset(self) -> None:
        """Discard all targets. Clutches keep their state, but restart from the next target."""
        n = len(self._ik.goals)
        self._none = np.zeros(n, bool)
        self._no_spins = np.zeros((n, 3))
        self._curves: dict[int, Curve] = {}
        self._drifts: dict[int, Drift] = {}
        self._stamps = np.full(n, -np.inf)
        self._scheduled: dict[int, float] = {}  # by goal: time of the last future target, of goals with new ones
        self._filter = None if self._noise is None else TargetFilter(self._noise, n, self._ik.reach)
        self._told: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.unseen: Bools = self._none
        for clutch in self._clutches.values():
            clutch.begin()

    def take_over(self, other: Inputs, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy the inputs of goals that existed before a change of goals.

        Args:
            other: The inputs before.
            pairs: Indices of these goals now and before.
        """
        for new, old in pairs:
            if old in other._curves:
                self._curves[new] = other._curves[old]
            if old in other._drifts:
                self._drifts[new] = other._drifts[old]
            if old in other._scheduled:
                self._scheduled[new] = other._scheduled[old]
            self._stamps[new] = other._stamps[old]
            if old in other._clutches:
                self._clutches[new] = other._clutches[old].bound(self._release(new))
        if self._filter is not None and other._filter is not None:
            self._filter.take_over(other._filter, pairs)

    def _release(self, g: int) -> Callable[[], None]:
        """Return a function that lets goal g brake when its clutch is released."""
        mask = np.zeros(len(self._keys), bool)
        mask[g] = True
        return partial(self._body.let_go, mask, f"Holding: the clutch of {self._keys[g]!r} is released.")

    def forget(self, goals: Bools) -> None:
        """Discard pending motion of these goals."""
        if self._filter is not None:
            self._filter.forget(goals)
        for g in np.flatnonzero(goals).tolist():
            self._curves.pop(g, None)
            self._drifts.pop(g, None)
            self._scheduled.pop(g, None)

    def clutch(self, goal: Any, scale: Any) -> Clutch:
        """Return a new, released clutch for a goal.

        Raises:
            InputError: If the factors cannot be used, or the target of the goal cannot move.
            UnknownNameError: If there is no such goal.
        """
        g = self._goal(goal, "clutch")
        release = self._release(g)
        clutch = Clutch(scale, release)
        if g in self._clutches or self._live.seen[g] > -np.inf:
            release()
        self._clutches[g] = clutch
        return clutch

    def _goal(self, key: Any, what: str) -> int:
        """Return the index of a goal whose target may move.

        Raises:
            InputError: If the target may not move.
            UnknownNameError: If there is no such goal.
        """
        g = self._ik.writer.goal_of(key, POSITION | ROTATION)
        self._check_moves(g, what)
        return g

    def _check_moves(self, g: int, what: str) -> None:
        """Check that the target of goal g may move.

        Raises:
            InputError: If the target may not move.
        """
        goal = self._ik.goals[g]
        if not goal.takes or goal.vector != "position":
            raise InputError(f"{what} of {goal.label!r}", value=goal, expected="a goal with a position or a rotation")

    def read(self, targets: Any, at: Any, now: float) -> News | None:
        """Read and check the targets of a tick, without changing the servo.

        Raises:
            InputError: If a target or its time cannot be used.
            UnknownNameError: If a target belongs to no goal.
        """
        if at is not None:
            at = seconds("at", at)
            _check_clock("at", at, now)
        if targets is None:
            return None
        twists: dict[int, Twist] = {}
        if isinstance(targets, Twist):
            if self._only is None:
                raise InputError("targets", value=targets, expected="a dict from joints or goals to their targets")
            self._add(twists, self._only, targets)
            targets = {}
        elif isinstance(targets, Mapping):
            mapping = cast("Mapping[Any, Any]", targets)
            if Twist in map(type, mapping.values()):
                targets = dict(mapping)
                for key, twist in mapping.items():
                    if type(twist) is Twist:
                        self._add(twists, self._goal(key, "twist"), twist)
                        del targets[key]
        if twists and not targets:
            return News(self._live.table, self._none, twists, at, self._none)
        try:
            table, given = self._live.read(targets)
            numbers = table.ravel()
            size = numbers.dot(numbers)
            if size < math.inf:  # a fast check for NaN
                if size > self._far:
                    self._question(table, given)
                return News(table, given, twists, at, self._none)
        except InputError:
            pass  # targets with NaN are removed below
        targets, unseen = self._seen(targets)
        if unseen.any() and not targets:
            return News(self._live.table, self._none, twists, at, unseen)
        table, given = self._live.read(targets)
        return News(table, given, twists, at, unseen)

    def _question(self, table: Array, given: Bools) -> None:
        """Warn of targets that jump far beyond the body's reach, except of goals with a clutch."""
        for g in np.flatnonzero(given).tolist():
            if g in self._clutches:
                continue
            goal, place, last = self._ik.goals[g], *(self._frame(one, g)[:3, 3] for one in (table, self._live.table))
            if goal.takes & POSITION and goal.vector == "position":
                question_place(goal.label, place, last, self._ik.reach)

    def _seen(self, targets: Any) -> tuple[Any, Bools]:
        """Return the targets without NaN, and which goals have a target with NaN.

        Raises:
            InputError: If a target with NaN belongs to no goal.
            UnknownNameError: Likewise.
        """
        unseen = self._none.copy()
        if not isinstance(targets, Mapping):
            if self._only is None or not _has_nan(targets):
                return targets, self._none
            unseen[self._only] = True
            return {}, unseen
        pairs = dict(cast("Mapping[Any, Any]", targets))
        for key in [key for key, value in pairs.items() if _has_nan(value)]:
            unseen[self._ik.writer.goal_of(key, POSITION | ROTATION)] = True
            del pairs[key]
        return pairs, unseen

    def _add(self, twists: dict[int, Twist], g: int, twist: Twist) -> None:
        """Check a twist of goal g, and add it.

        Raises:
            InputError: If the goal cannot follow it.
            UnknownNameError: If its frame does not exist.
        """
        self._check_moves(g, "twist")
        goal = self._ik.goals[g]
        for part, name, kind in ((POSITION, "linear", "position"), (ROTATION, "angular", "rotation")):
            if not goal.takes & part and getattr(twist, name).any():
                raise InputError(
                    f"{name} part of the twist of {goal.label!r}", value=getattr(twist, name).tolist(),
                    expected=f"zero for a goal without a {kind}", hint=f"the goal is {goal!r}",
                )  # fmt: skip
        if twist.frame == "local" and goal.joint is None:
            raise InputError(
                f"frame of the twist of {goal.label!r}", value="local", expected="'world' or a joint's name"
            )
        if twist.frame not in ("world", "local"):
            self._body.axes_of(twist.frame)
        question_twist(goal.label, twist, self._ik.reach)
        twists[g] = twist

    def schedule(self, targets: Any, times: Any, fade: Any, now: float) -> None:
        """Replace future targets, see ``Servo.schedule``.

        Raises:
            InputError: If a target or a time cannot be used.
            UnknownNameError: If a target belongs to no goal.
        """
        tables, given = self._live.read_many(targets)
        times = as_numbers(times, (len(tables),), "times")
        if not (np.diff(times) > 0.0).all():
            raise InputError("times", value=times.tolist(), expected="times that increase")
        if len(times):
            _check_clock("times", float(times[0]), now)
        if not is_number(fade) or not 0.0 <= fade < math.inf:
            raise InputError("fade", value=fade, expected="seconds, 0 or more")
        for g in np.flatnonzero(given).tolist():
            if g in self._clutches:
                raise InputError(f"targets of {self._keys[g]!r}", expected="those of a goal without a clutch")
        first = int(np.searchsorted(times, now, side="right"))
        for g in np.flatnonzero(given).tolist():
            if first:
                self._told[self._keys[g]] = LATE if first < len(times) else TOO_LATE
            if first == len(times):
                continue
            frames = tables[first - 1 if first else 0 :, g, :TRANSFORM_WIDTH].reshape(-1, 4, 4)
            samples = list(zip(times[first - 1 if first else 0 :].tolist(), frames, strict=True))
            curve = self._curves.setdefault(g, Curve(self._frame(self._live.table, g), now))
            curve.replace(samples, now, now + float(fade), stops=True)
            self._drifts.pop(g, None)
            self._scheduled[g] = float(times[-1])

    @staticmethod
    def _frame(table: Array, g: int) -> Array:
        """Return the target of goal g in a table, (4, 4), as a view."""
        return table[0, g, :TRANSFORM_WIDTH].reshape(4, 4)

    def take(self, news: News | None, now: float, h: float) -> tuple[Array | None, Bools]:
        """Return the targets at the end of a tick, None if they stay the same, and which goals have new targets.

        Args:
            news: Targets that the tick passes.
            now: Time at the end of the tick, seconds.
            h: Duration of the tick, seconds.
        """
        self.unseen = self._none if news is None else news.unseen
        late, self._told = self._told, {}
        if self.unseen is not self._none:
            late |= {self._keys[g]: NO_NUMBER for g in np.flatnonzero(self.unseen).tolist()}
        self.told = late
        table, fresh = (None, self._none) if news is None else (news.table, news.given)
        if news is not None and (news.twists or news.at is not None or self._works):
            table, fresh = self._taken(news, now, h)
        if self._scheduled:
            fresh = fresh.copy()
            fresh[list(self._scheduled)] = True
        if not some(fresh):
            table = None
        elif table is None:
            table = self._live.table
        if self._curves or self._drifts:
            table = self._moved(table, now, h)
        return table, fresh

    def seen(self, goals: Bools, now: float) -> None:
        """Record that some goals have new targets now."""
        self._live.see(goals, now, self._scheduled)
        self._scheduled.clear()

    @property
    def twists(self) -> bool:
        """Whether a twist moves the target of any goal."""
        return bool(self._drifts)

    def twisted(self) -> Bools:
        """Return which goals have targets that twists move, (goals,)."""
        if not self._drifts:
            return self._none
        out = self._none.copy()
        out[list(self._drifts)] = True
        return out

    def waiting(self) -> tuple[int, ...]:
        """Return goals whose twist waits for a late body."""
        return tuple(g for g, drift in self._drifts.items() if drift.waits) if self._drifts else ()

    def due(self, now: float) -> dict[int, float]:
        """Return, by goal, the seconds until its interpolated target is due; goals already there are left out."""
        out: dict[int, float] = {}
        most, most_angle = self._ik.tolerance
        for g, curve in self._curves.items() if self._lag else ():
            last = curve.last
            if last is None or last[0] <= now:
                continue
            here, there = self._frame(self._live.table, g), last[1]
            way, turn = there[:3, 3] - here[:3, 3], log_turn(there[:3, :3] @ here[:3, :3].T)
            takes, far = self._ik.goals[g].takes, self._ik.goals[g].own_tolerance or most
            if (takes & POSITION and way @ way > far**2) or (takes & ROTATION and turn @ turn > most_angle**2):
                out[g] = last[0] - now
        return out

    def spins(self) -> Array:
        """Return the axes of rotation of twists, unit vectors (goals, 3), 0 for goals that no twist rotates."""
        if not self._drifts:
            return self._no_spins
        out = self._no_spins.copy()
        for g, drift in self._drifts.items():
            out[g] = drift.spin
        return out

    @property
    def _works(self) -> bool:
        """Whether targets are filtered, interpolated, clutched or moved by twists."""
        return bool(self._lag or self._filter is not None or self._clutches or self._curves or self._drifts)

    def _taken(self, news: News, now: float, h: float) -> tuple[Array, Bools]:
        """Apply the targets of a tick; return the table with immediate targets, and which goals have new targets."""
        table, given = news.table.copy(), news.given.copy()
        if given.any():
            self._body.check_targets(table)
        for g in np.flatnonzero(given).tolist():
            if not self._in_time(g, news.at, now, h) or not self._coupled(g, self._frame(table, g)):
                table[0, g], given[g] = self._live.table[0, g], False
        if self._filter is not None:
            self._filter.apply(table, given, now if news.at is None else news.at)
        for g in np.flatnonzero(given).tolist():
            self._drifts.pop(g, None)
            knot = (now if news.at is None else news.at) + self._lag
            if self._lag == 0.0 and knot <= now:
                self._curves.pop(g, None)
                continue
            curve = self._curves.setdefault(g, Curve(self._frame(self._live.table, g), now - h))
            if knot > now:
                self._scheduled[g] = knot  # the timeout begins when it is reached
            curve.append(max(knot, now + _SOON * self._lag), self._frame(table, g), now - h)
            table[0, g, :TRANSFORM_WIDTH] = self._live.table[0, g, :TRANSFORM_WIDTH]
        for g, twist in news.twists.items():
            if self._in_time(g, news.at, now, h) and (g not in self._clutches or self._clutches[g].engaged):
                self._turn_to(g, twist)
                given[g] = True
        return table, given

    def _turn_to(self, g: int, twist: Twist) -> None:
        """Let the target of goal g follow a twist."""
        self._curves.pop(g, None)
        if g not in self._drifts:
            self._drifts[g] = Drift(self._ik.reach, self._body.axes_of)
        goal, frame = self._ik.goals[g], twist.frame
        if frame == "local" and not goal.takes & ROTATION and goal.joint is not None:
            frame = goal.joint  # the target has no rotation, so use the axes of the joint
        self._drifts[g].follow(twist, frame)

    def _in_time(self, g: int, at: float | None, now: float, h: float) -> bool:
        """Return whether a target with this time stamp is used; record what is wrong with the time stamp."""
        if at is None:
            return True
        last, key = float(self._stamps[g]), self._keys[g]
        if at <= last:
            self.told[key] = DOUBLED if at == last else UNORDERED
            return False
        self._stamps[g] = at
        if at + self._lag + self._timeout < now:
            self.told[key] = TOO_LATE
            return False
        if self._lag > 0.0 and at + self._lag < now - h:
            self.told[key] = LATE
        return True

    def _coupled(self, g: int, frame: Array) -> bool:
        """Convert the pose of a controller into a target if goal g has a clutch; return whether there is a target."""
        clutch = self._clutches.get(g)
        if clutch is None:
            return True
        if clutch.engaged:
            clutch.apply(frame, self._frame(self._live.table, g))
        return clutch.engaged

    def _moved(self, table: Array | None, now: float, h: float) -> Array | None:
        """Return the table of targets at the end of a tick, after curves and twists have moved theirs.

        Args:
            table: The table of targets; None if no new targets were given.
            now: Time at the end of the tick, seconds.
            h: Duration of the tick, seconds.

        Returns:
            A changed copy; ``table`` itself if no curve or twist moves a target.
        """
        curves = {g: curve for g, curve in self._curves.items() if curve.moves}
        drifts = {g: drift for g, drift in self._drifts.items() if drift.moves}
        if not curves and not drifts:
            return table
        table = (self._live.table if table is None else table).copy()
        for g, curve in curves.items():
            frame = curve.at(now)
            if self._ik.goals[g].vector != "direction" or np.abs(frame[:3, 3]).max() > _NEAR:
                self._frame(table, g)[:] = frame
        if drifts:
            lead = self._body.lead_time()
            for g, drift in drifts.items():
                stops = self._body.stop_places(goes_on=drift.goes_on)
                drift.advance(self._frame(table, g), h, lead, stops[g].reshape(4, 4))
        return table


def _has_nan(value: Any) -> bool:
    """Return whether a target has NaN: numbers, an array, or a pair of them; rotation objects never have NaN."""
    if isinstance(value, np.ndarray):
        numbers = cast("Array", value)
        return numbers.dtype.kind == "f" and bool(np.isnan(numbers).any())
    if isinstance(value, list | tuple):
        return any(map(_has_nan, cast("Sequence[Any]", value)))
    return is_number(value) and math.isnan(value)


def _check_clock(name: str, time: float, now: float) -> None:
    """Check that a time can be on the clock of the servo.

    Raises:
        InputError: If it is too far ahead.
    """
    if time > now + _FARTHEST:
        raise InputError(
            name, value=time, expected=f"a time on the clock of the servo, which stands at {now:.10g} s",
            hint="Servo.reset(time=...) sets it",
        )  # fmt: skip


def seconds(name: str, value: Any) -> float:
    """Return a time as a float, seconds.

    Raises:
        InputError: If it is not a finite number.
    """
    if type(value) is float and math.isfinite(value):
        return value
    if not is_finite(value):
        raise InputError(name, value=value, expected="seconds")
    return float(value)
