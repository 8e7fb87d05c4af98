"""How targets move: along trajectories through their samples, filtered, by twists, and coupled to a controller.

Between two samples the position is a cubic polynomial with given velocities at both ends (Hermite). So is the rotation
vector from the first sample to the current rotation. If new samples replace those ahead, the trajectory restarts from
its present position and velocity.

References:
    Fritsch & Carlson (1980), *Monotone piecewise cubic interpolation*: velocities that do not overshoot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self

import numpy as np

from synovia.arguments import ChecksArguments
from synovia.errors import InputError
from synovia.kernels.layout import TRANSFORM_WIDTH
from synovia.model.geometry import Array, Bools, as_numbers, is_number, unit

_STEEP: Final = 2.0  # largest ratio of the velocity at a sample to the slower of the mean velocities around it
_SMALL: Final = 1e-4  # radians: below it, series are exact


class Knot(NamedTuple):
    """A sample of the trajectory, and its motion there: length units/s, and rad/s in its own frame."""

    time: float
    frame: Array
    velocity: Array
    turning: Array


class Curve:
    """The trajectory of one target.

    Args:
        frame: Present target, (4, 4).
        time: Present time, seconds.
    """

    def __init__(self, frame: Array, time: float) -> None:
        """Begin at rest."""
        self._begin = Knot(time, frame.copy(), np.zeros(3), np.zeros(3))
        self._ahead: list[Knot] = []
        self._samples: list[tuple[float, Array]] = []  # samples of ``append``, with a few past ones

    @property
    def moves(self) -> bool:
        """Whether samples are ahead."""
        return bool(self._ahead)

    def append(self, time: float, frame: Array, now: float) -> None:
        """Extend the trajectory to one more sample, where it ends; samples of ``replace`` are discarded."""
        before = [sample for sample in self._samples if sample[0] < time]
        passed = sum(sample[0] <= now for sample in before)
        samples = [*before[max(passed - 2, 0) :], (time, frame.copy())]
        self.replace(samples, now, now, stops=False)
        self._samples = samples

    def replace(self, samples: Sequence[tuple[float, Array]], now: float, there: float, *, stops: bool) -> None:
        """Replace the trajectory from now on by one through other samples.

        Args:
            samples: Times and frames, sorted by time; the last time is in the future. Past samples only determine the
                velocity.
            now: Seconds.
            there: Time at which a transition to the trajectory through these samples ends, seconds.
            stops: Whether the velocity at the last sample is zero.
        """
        self._begin = self._state(now)
        self._samples = []
        if samples[0][0] > now:
            samples = [(now, self._begin.frame), *samples]
        knots = _knots(samples, stops=stops)
        if knots[-1].time < there:
            self._ahead = [knots[-1]._replace(time=there)]
            return
        first = next(k for k, knot in enumerate(knots) if knot.time >= there and knot.time > now)
        self._ahead = knots[first:]
        if there > now and first > 1 and knots[first - 1].time < there < knots[first].time:
            self._ahead.insert(0, _state(knots[first - 1], knots[first], there))

    @property
    def last(self) -> tuple[float, Array] | None:
        """The time of the last target ahead, and the target (4, 4); None without any."""
        return (self._ahead[-1].time, self._ahead[-1].frame) if self._ahead else None

    def at(self, time: float) -> Array:
        """Return the target at a time, (4, 4); times must not decrease from call to call."""
        while self._ahead and self._ahead[0].time <= time:
            self._begin = self._ahead.pop(0)
        return self._state(time).frame

    def _state(self, time: float) -> Knot:
        """Return position and motion at a time within the present segment."""
        if self._ahead:
            return _state(self._begin, self._ahead[0], time)
        return Knot(time, self._begin.frame, np.zeros(3), np.zeros(3))


def _knots(samples: Sequence[tuple[float, Array]], *, stops: bool) -> list[Knot]:
    """Return samples with their velocities."""
    still = np.zeros(3), np.zeros(3)
    means = [still, *(_motion(a, b) for a, b in pairwise(samples)), still]
    times = [time for time, _ in samples]
    out: list[Knot] = []
    for k, (time, frame) in enumerate(samples):
        before, after = means[k], means[k + 1]
        if 0 < k < len(samples) - 1:
            spans = time - times[k - 1], times[k + 1] - time
            motion = [_between(a, b, *spans) for a, b in zip(before, after, strict=True)]
        elif k == 0:
            motion = after
        else:
            motion = still if stops else [_no_steeper(b, a) for a, b in zip(means[k - 1], before, strict=True)]
        out.append(Knot(time, frame, *motion))
    return out


def _state(a: Knot, b: Knot, time: float) -> Knot:
    """Return position and motion between two samples."""
    T = b.time - a.time
    s = min(max((time - a.time) / T, 0.0), 1.0)
    frame = np.eye(4)
    frame[:3, 3], velocity = _cubic((a.frame[:3, 3], T * a.velocity, b.frame[:3, 3], T * b.velocity), s)
    way = log_turn(a.frame[:3, :3].T @ b.frame[:3, :3])
    across = _cross(way, T * b.turning)
    end = T * b.turning + 0.5 * across + _bend(way) * _cross(way, across)  # derivative of the rotation vector at b
    turn, rate = _cubic((np.zeros(3), T * a.turning, way, end), s)
    frame[:3, :3] = a.frame[:3, :3] @ exp_turn(turn)
    return Knot(time, frame, velocity / T, _right_jacobian(turn) @ rate / T)


def _cubic(ends: tuple[Array, Array, Array, Array], s: float) -> tuple[Array, Array]:
    """Return value and derivative, at s from 0 to 1, of the cubic with this value and derivative at both ends."""
    p, v, q, w = ends
    c, d = 3.0 * (q - p) - 2.0 * v - w, v + w - 2.0 * (q - p)
    return p + s * (v + s * (c + s * d)), v + s * (2.0 * c + 3.0 * s * d)


def _motion(a: tuple[float, Array], b: tuple[float, Array]) -> tuple[Array, Array]:
    """Return the mean velocity and angular velocity between two samples."""
    T = b[0] - a[0]
    turn = log_turn(a[1][:3, :3].T @ b[1][:3, :3])
    return (b[1][:3, 3] - a[1][:3, 3]) / T, turn / T


def _between(a: Array, b: Array, before: float, after: float) -> Array:
    """Return the velocity at a sample, from the mean velocities before and after it and the durations of both."""
    if float(a @ b) <= 0.0:
        return np.zeros(3)
    mean = (after * a + before * b) / (before + after)
    return _no_steeper(_no_steeper(mean, a), b)


def _no_steeper(v: Array, limit: Array) -> Array:
    """Clamp a velocity to ``_STEEP`` times the size of another one; return zero if it points backwards."""
    if float(v @ limit) <= 0.0:
        return np.zeros(3)
    size, most = math.sqrt(float(v @ v)), _STEEP * math.sqrt(float(limit @ limit))
    return v if size <= most else v * (most / size)


def _cross(a: Array, b: Array) -> Array:
    """Return the cross product of two vectors (3,)."""
    x, y, z = a.tolist()
    u, v, w = b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def _bend(turn: Array) -> float:
    """Return the coefficient of the second-order term in the inverse right Jacobian of SO(3)."""
    angle = math.sqrt(float(turn @ turn))
    if angle < _SMALL:
        return 1.0 / 12.0
    return 1.0 / angle**2 - (1.0 + math.cos(angle)) / (2.0 * angle * math.sin(angle)) if angle < 3.1 else 0.1


def _right_jacobian(turn: Array) -> Array:
    """Return the right Jacobian of SO(3), (3, 3): from the rate of a rotation vector to the angular velocity."""
    angle = math.sqrt(float(turn @ turn))
    x, y, z = turn.tolist()
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    if angle < _SMALL:
        return np.eye(3) - 0.5 * K + K @ K / 6.0
    return np.eye(3) - (1.0 - math.cos(angle)) / angle**2 * K + (angle - math.sin(angle)) / angle**3 * (K @ K)


def log_turn(R: Array) -> Array:
    """Return the rotation vector (3,) of a rotation matrix, with an angle of at most π."""
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    squares = (1.0 + a + e + i, 1.0 + a - e - i, 1.0 - a + e - i, 1.0 - a - e + i)
    most = max(squares)
    # four multiples of the quaternion: the one with the largest divisor is the most exact
    w, x, y, z = (
        (most, h - f, c - g, d - b),
        (h - f, most, b + d, c + g),
        (c - g, b + d, most, f + h),
        (d - b, c + g, f + h, most),
    )[squares.index(most)]
    sine = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(sine, abs(w)) / sine if sine > 0.0 else 0.0
    factor = -factor if w < 0.0 else factor
    return np.array([factor * x, factor * y, factor * z])


def exp_turn(turn: Array) -> Array:
    """Return the rotation matrix (3, 3) of a rotation vector."""
    x, y, z = turn.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    share = math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    x, y, z, w = share * x, share * y, share * z, math.cos(0.5 * angle)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


_SPEED_CUTOFF: Final = 1.0  # Hz: cutoff frequency of the speed filter, as in the paper
_LARGEST: Final = 1e6


@dataclass(frozen=True, kw_only=True)
class OneEuro(ChecksArguments):
    """A filter for the targets of a ``Servo``: strong for slow targets, so that noise disappears, weak for fast ones.

    The filter is of first order, with the cutoff frequency ``cutoff + beta · speed``. For positions, the speed is in
    length scales per second, for rotations in rad/s. It lags by about 1 / (2π · cutoff frequency) seconds.

    Args:
        cutoff: Cutoff frequency of a target at rest, Hz.
        beta: Increase of the cutoff frequency per unit of speed.
        dead_band: A target counts as unchanged within this distance, length scales, and half this angle, radians.

    References:
        Casiez, Roussel & Vogel (2012), *1€ filter*.

    Example:
        >>> import synovia as sy
        >>> goal = sy.PositionGoal("tool")
        >>> smooth = sy.live.OneEuro()
        >>> servo = sy.Servo(sy.bundled("arm7"), goal, rate=100, velocity=1.0, acceleration=5.0, filter=smooth)
        >>> servo.reset("rest")
        >>> servo.step((0.4, 0.1, 0.5)).status.name
        'LATE'
    """

    cutoff: float = 1.0
    beta: float = 5.0
    dead_band: float = 0.0

    def __post_init__(self) -> None:
        """Check the settings."""
        for name, least in (("cutoff", 1e-6), ("beta", 0.0), ("dead_band", 0.0)):
            value = getattr(self, name)
            if not is_number(value) or not least <= value <= _LARGEST:
                raise InputError(name, where="OneEuro", value=value, expected=f"from {least:g} to {_LARGEST:g}")
            object.__setattr__(self, name, float(value))


class TargetFilter:
    """The filter of all goals of a servo, with its memory.

    Args:
        settings: The settings.
        goals: Number of goals.
        reach: Length scale of the problem, length units.
    """

    def __init__(self, settings: OneEuro, goals: int, reach: float) -> None:
        """Begin without memory."""
        self._settings, self._reach = settings, reach
        self._raw: list[Array | None] = [None] * goals
        self._smooth = np.zeros((goals, 4, 4))
        self._speeds = np.zeros((goals, 2))
        self._times = np.zeros(goals)

    def take_over(self, other: TargetFilter, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy the memory of goals, by pairs of their indices now and before."""
        for new, old in pairs:
            self._raw[new], self._times[new] = other._raw[old], other._times[old]
            self._smooth[new], self._speeds[new] = other._smooth[old], other._speeds[old]

    def forget(self, goals: Bools) -> None:
        """Discard the memory of some goals: their next target passes unfiltered."""
        for g in np.flatnonzero(goals).tolist():
            self._raw[g] = None

    def apply(self, table: Array, goals: Bools, time: float) -> None:
        """Filter the targets of some goals in a table (1, goals, 17), in place; ``time`` in seconds."""
        for g in np.flatnonzero(goals).tolist():
            frame = table[0, g, :TRANSFORM_WIDTH].reshape(4, 4)
            raw, before = frame.copy(), self._raw[g]
            dt = time - self._times[g]
            if before is None or dt <= 0.0:
                self._smooth[g], self._speeds[g] = raw, 0.0
            else:
                self._update(g, raw, before, dt)
            self._raw[g], self._times[g] = raw, time
            frame[:] = self._smooth[g]

    def _update(self, g: int, raw: Array, before: Array, dt: float) -> None:
        """Update the filter with a target of goal g, the time dt after the last target."""
        smooth, settings = self._smooth[g], self._settings
        found = (
            np.linalg.norm(raw[:3, 3] - before[:3, 3]) / self._reach,
            np.linalg.norm(log_turn(before[:3, :3].T @ raw[:3, :3])),
        )
        rate = _share(_SPEED_CUTOFF, dt)
        self._speeds[g] += rate * (np.array(found) / dt - self._speeds[g])
        shares = [_share(settings.cutoff + settings.beta * speed, dt) for speed in self._speeds[g].tolist()]
        shift = shares[0] * (raw[:3, 3] - smooth[:3, 3])
        turn = shares[1] * log_turn(smooth[:3, :3].T @ raw[:3, :3])
        near = settings.dead_band
        if np.linalg.norm(raw[:3, 3] - smooth[:3, 3]) > near * self._reach:
            smooth[:3, 3] += shift
        if np.linalg.norm(turn) / shares[1] > 0.5 * near:
            smooth[:3, :3] = smooth[:3, :3] @ exp_turn(turn)


def _share(cutoff: float, dt: float) -> float:
    """Return the smoothing factor of a first-order filter for the time step dt, seconds."""
    return 1.0 / (1.0 + 1.0 / (2.0 * math.pi * cutoff * dt))


_MOST: Final = 1e6  # largest component of a twist
# A target leads the body by its distance ahead of the place where the body stops if it brakes now. The largest lead is
# the motion of the twist in the time of ``Drift.advance``'s ``lead``
_FAR_BACK: Final = 0.6  # fraction of the largest lead: a target farther behind the body's stop is moved to the stop
_MOST_OFF: Final = 2.0  # multiple of the largest lead: largest distance of the body from the line of a moving target
_WHOLE: Final = 1.0 - 1e-6  # fraction of its step: a target that moves less waits for the body
_FLOOR: Final = 1e-3  # length scales, radians: added to the largest lead, which is tiny for slow twists


@dataclass(frozen=True)
class Twist(ChecksArguments):
    """A target of ``Servo.step`` that moves: a linear and an angular velocity of the end effector.

    The servo moves the target of the goal from its present place, until another target comes, or for the ``timeout``
    of the servo; a twist of zero stops at once. The target leads the body by at most the motion of the twist in the
    time in which the body can stop. Out of reach, or if the body is late, the target waits.

    Args:
        linear: Velocity of the goal's point, (3,), length units/s.
        angular: Angular velocity, (3,), rad/s.
        frame: Axes of both velocities: ``"world"``, ``"local"`` for those of the end effector itself, or the name of a
            joint.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
        >>> servo.reset({"joint2": 0.6, "joint4": -1.2})
        >>> before = servo.step(dt=0).pose.position("tool")
        >>> for _ in range(100):
        ...     command = servo.step(sy.Twist((0.0, 0.0, -0.05)))
        >>> (command.pose.position("tool") - before)[2].round(3).item()
        -0.05
    """

    linear: Any = (0.0, 0.0, 0.0)
    angular: Any = (0.0, 0.0, 0.0)
    frame: str = "world"

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("linear", "angular"):
            value = as_numbers(getattr(self, name), (3,), f"Twist: {name}")
            if np.abs(value).max() > _MOST:
                raise InputError(name, where="Twist", value=value.tolist(), expected=f"numbers of at most {_MOST:g}")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        if not isinstance(self.frame, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("frame", where="Twist", value=self.frame, expected="'world', 'local' or a joint's name")

    def __eq__(self, other: object) -> bool:
        """Return whether another twist has the same values."""
        return (
            isinstance(other, Twist)
            and np.array_equal(self.linear, other.linear)
            and np.array_equal(self.angular, other.angular)
            and self.frame == other.frame
        )

    def __hash__(self) -> int:
        """Return a hash of the values."""
        return hash((*self.linear.tolist(), *self.angular.tolist(), self.frame))


class Drift:
    """The target of one goal while a twist moves it.

    Args:
        reach: Length scale of the problem, length units.
        axes: Returns the present rotation (3, 3) of a named frame.

    Attributes:
        waits: Whether the target moved less in the last tick than the twist asks, because the body is late.
    """

    def __init__(self, reach: float, axes: Callable[[Any], Array]) -> None:
        """Begin without a twist; a first twist of zero also stops the body."""
        self._floors = _FLOOR * reach, _FLOOR
        self._axes = axes
        self._twist, self._frame = Twist(), "world"
        self._moved = [False, False]
        self.waits = False
        self._line: list[Array | None] = [None, None]  # last directions of motion: of the position, of the rotation

    def follow(self, twist: Twist, frame: str | int) -> None:
        """Switch to another twist, in the axes of a frame."""
        self._twist, self._frame = twist, frame

    @property
    def goes_on(self) -> bool:
        """Whether the twist is not zero."""
        return bool(self._twist.linear.any() or self._twist.angular.any())

    @property
    def spin(self) -> Array:
        """The axis of rotation of the target, a unit vector (3,); zero without a rotation."""
        turn = self._line[1]
        return turn if self._moved[1] and turn is not None else np.zeros(3)

    @property
    def moves(self) -> bool:
        """Whether the target moves, or stops in the next tick."""
        begins = any(line is None for line in self._line)
        return begins or any(self._moved) or self.goes_on

    def advance(self, frame: Array, h: float, lead: float, stop: Array) -> None:
        """Move a target along its line or about its axis.

        The target waits for a late body, and moves sideways towards a body far from its line.

        Args:
            frame: The target, (4, 4); changed in place.
            h: Seconds.
            lead: Seconds that the target may be ahead of the body.
            stop: Where the body stops if it brakes now, (4, 4).
        """
        self.waits = False
        v, w = self._twist.linear, self._twist.angular
        if self._frame != "world":
            R = frame[:3, :3] if self._frame == "local" else self._axes(self._frame)
            v, w = R @ v, R @ w
        for part, step in enumerate((h * v, h * w)):
            size, begins = _size(step), not self._moved[part]
            if self._line[part] is None or (size and begins):  # the body may still move to an earlier target
                _put(frame, part, stop, size * lead / h + self._floors[part] if size else 0.0)
            line = step / size if size else self._line[part]
            if line is not None:
                self._advance(frame, part, line, size, size * lead / h + self._floors[part], stop)
            self._line[part], self._moved[part] = line if line is not None else np.zeros(3), size > 0.0

    def _advance(self, frame: Array, part: int, line: Array, size: float, most: float, stop: Array) -> None:
        """Move a target's position (part 0) or rotation (part 1) along a line, at most ``most`` ahead of a stop."""
        ahead = frame[:3, 3] - stop[:3, 3] if part == 0 else log_turn(frame[:3, :3] @ stop[:3, :3].T)
        along = float(ahead @ line)
        if not size:
            way = -along if self._moved[part] else 0.0
        elif along < -_FAR_BACK * most:
            way = size - along  # the body could not follow, or reverses: start again at its stop
        else:
            way = min(size, max(most - along, 0.0))
        across = ahead - along * line
        near = min(1.0, _MOST_OFF * most / max(_size(across), 1e-300)) if size else 1.0
        self.waits |= size > 0.0 and (way < _WHOLE * size or near < 1.0)
        shift = way * line + (near - 1.0) * across
        if part == 0:
            frame[:3, 3] += shift
        else:
            frame[:3, :3] = exp_turn(shift) @ frame[:3, :3]


def _put(frame: Array, part: int, stop: Array, most: float) -> None:
    """Limit the distance of the position (part 0) or rotation (part 1) of a target from the body's stop."""
    if part == 0:
        ahead = frame[:3, 3] - stop[:3, 3]
        frame[:3, 3] = stop[:3, 3] + min(1.0, most / max(_size(ahead), 1e-300)) * ahead
    else:
        ahead = log_turn(frame[:3, :3] @ stop[:3, :3].T)
        frame[:3, :3] = exp_turn(min(1.0, most / max(_size(ahead), 1e-300)) * ahead) @ stop[:3, :3]


def _size(v: Array) -> float:
    """Return the length of a vector."""
    return math.sqrt(float(v @ v))


_NO_AXIS: Final = 1e-9  # radians: smaller rotations have no axis


class Clutch:
    """Couples a controller to a goal; ``Servo.clutch`` makes one.

    While the clutch is engaged, the motion of the goal's targets since then is added to the place of the end effector
    at that time. While it is released, these targets have no effect, and the end effector stops. So the controller may
    be moved to a better place, or put down. The clutch begins released.

    Attributes:
        engaged: Whether the clutch is engaged.
        scale: Factors of the controller's displacement and of its rotation.

    Example:
        >>> import synovia as sy
        >>> servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
        >>> servo.reset({"joint2": 0.6, "joint4": -1.2})
        >>> begin = servo.step(dt=0).pose.position("tool")
        >>> clutch = servo.clutch("tool", scale=0.5)
        >>> clutch.engage()
        >>> for k in range(200):  # the controller moves by 10 cm, wherever it is
        ...     command = servo.step((5.0, 5.0, 5.0 - 0.1 * min(k / 100, 1.0)))
        >>> (command.pose.position("tool") - begin)[2].round(3).item()
        -0.05
    """

    def __init__(self, scale: Any, let_go: Callable[[], None]) -> None:
        """Store the factors, and the function to call at a release."""
        self.scale = _factors(scale)
        self.engaged = False
        self._let_go = let_go
        self._begin: tuple[Array, Array] | None = None
        self._turn = np.zeros(3)

    def __repr__(self) -> str:
        """Return whether it is engaged, and the factors."""
        return f"<Clutch {'engaged' if self.engaged else 'released'}, scale={self.scale}>"

    def engage(self) -> None:
        """Couple: the goal's next target is the controller's initial pose. Do nothing if the clutch is engaged."""
        if not self.engaged:
            self.engaged, self._begin = True, None

    def release(self) -> None:
        """Uncouple: the end effector brakes, and keeps the place where it stops."""
        if self.engaged:
            self.engaged, self._begin = False, None
            self._let_go()

    def bound(self, let_go: Callable[[], None]) -> Self:
        """Set another function to call at a release, and return the clutch."""
        self._let_go = let_go
        return self

    def begin(self) -> None:
        """Restart: the next target is the controller's initial pose."""
        self._begin = None

    def apply(self, frame: Array, now: Array) -> None:
        """Convert the pose of the controller, (4, 4), into a target, in place; ``now`` is the present target."""
        if self._begin is None:
            self._begin, self._turn = (frame.copy(), now.copy()), np.zeros(3)
        controller, tool = self._begin
        way = frame[:3, 3] - controller[:3, 3]
        turn = self._unwound(log_turn(frame[:3, :3] @ controller[:3, :3].T))
        frame[:3, 3] = tool[:3, 3] + self.scale[0] * way
        frame[:3, :3] = exp_turn(self.scale[1] * turn) @ tool[:3, :3]

    def _unwound(self, turn: Array) -> Array:
        """Return the rotation vector that continues the last one, with angles beyond π where that is nearer."""
        size = math.sqrt(float(turn @ turn))
        axis = turn / size if size > _NO_AXIS else unit(self._turn)
        turns = round((float(self._turn @ axis) - size) / (2.0 * math.pi))
        self._turn = turn if turns == 0 else (size + 2.0 * math.pi * turns) * axis
        return self._turn


def _factors(scale: Any) -> tuple[float, float]:
    """Return the factors of displacement and rotation.

    Raises:
        InputError: If a factor is not a number of at least 0.
    """
    pair = np.array([scale, scale]) if is_number(scale) else as_numbers(scale, (2,), "scale")
    if not (pair >= 0.0).all():
        raise InputError("scale", value=scale, expected="a number from 0, or a pair: of displacements and of rotations")
    return float(pair[0]), float(pair[1])
