"""Time the ticks of a servo for an arm and for a whole body with priorities; the targets move and jump.

A plain control loop gets the same targets, so that the table shows what the servo costs and what it keeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from synovia.goals import PoseGoal
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, rotation_between
from synovia.model.pose import inside_limits
from synovia.servo import Servo

_DAMPING: Final = 1e-4  # fraction of the largest diagonal entry of J Jᵀ that is added to its diagonal
_GAIN: Final = 0.5  # fraction of the error that one tick removes
_RATE: Final = 200.0  # ticks per second
_JUMP: Final = 400  # ticks between two jumps of the targets
_SIZE: Final = 0.05  # amplitude of the targets, as a fraction of the body's size
_WARM: Final = 300  # number of warm-up ticks, which are not timed
_VELOCITY: Final = 2.0  # rad/s: limit of each axis
_ACCELERATION: Final = 15.0  # rad/s²: limit of each axis of the servo
_KEEP: Final = 10.0  # weight of the feet in a plain loop, which has no priorities


@dataclass(frozen=True, slots=True, eq=False)
class Driven:
    """Measurements of one control loop that moved one body.

    Args:
        processor: Processor time of the thread in each tick, (n,), seconds.
        wall: Wall-clock time of each tick, (n,), seconds, which includes other programs.
        error: Mean distance of the moving joints from their targets, fraction of the body's size.
        slip: Largest distance of a foot from its place, fraction of the body's size; None without feet.
        velocity: Largest velocity of an axis, fraction of its limit.
        acceleration: Largest acceleration of an axis, fraction of its limit.
    """

    processor: Array
    wall: Array
    error: float
    slip: float | None
    velocity: float
    acceleration: float

    def quantile(self, share: float) -> float:
        """Return a quantile of the processor times, seconds."""
        return float(np.quantile(self.processor, share))


@dataclass(frozen=True, slots=True, eq=False)
class TickTimes:
    """Measurements of a servo and of a plain loop that moved one body to the same targets.

    Args:
        body: Name of the body.
        goals: Goals of the body, as text.
        servo: Measurements of the servo.
        plain: Measurements of the plain loop.
    """

    body: str
    goals: str
    servo: Driven
    plain: Driven


def time_ticks(
    bodies: Mapping[str, Skeleton], ticks: int, watch: Callable[[str, float], object] | None = None
) -> Iterator[TickTimes]:
    """Yield the times of the ticks of each body.

    Args:
        bodies: Bodies by name. A body with feet and hands keeps its feet and moves its hands; any other body moves the
            joint with the most ancestors.
        ticks: Number of ticks per body.
        watch: Called with the name of the body and the fraction of its ticks that is done.
    """
    for name, body in bodies.items():
        servo, moving, kept = _servo(body)
        plain = PlainLoop(servo, dict.fromkeys(moving, 1.0) | dict.fromkeys(kept, _KEEP), _VELOCITY)
        rest = servo.skeleton.rest_pose()
        places = {joint: rest.transform(joint) for joint in kept}
        drives = [
            _Drive(_steps_of(servo), servo, places, ticks),
            _Drive(partial(_plain_step, plain, places), servo, places, ticks),
        ]
        for k, targets in enumerate(_targets(servo.skeleton, moving, _WARM + ticks), -_WARM):
            for drive in drives:
                drive.take(k, targets)
            if watch is not None and k >= 0 and k % 256 == 0:
                watch(name, k / ticks)
        goals = "two feet, then two hands" if kept else f"pose of {moving[0]}"
        yield TickTimes(name, goals, drives[0].driven(), drives[1].driven())


def _steps_of(servo: Servo) -> Callable[[Mapping[str, Array]], Array]:
    """Return a function that runs one tick of a servo towards targets and returns the joint values."""
    return lambda targets: servo.step(targets).q


def _plain_step(plain: PlainLoop, places: Mapping[str, Array], targets: Mapping[str, Array]) -> Array:
    """Run one tick of a plain loop, with the places of the feet as further targets; return the joint values."""
    return plain.step({**places, **targets})


class _Drive:
    """Measures the ticks of a control loop: times, errors and motion."""

    def __init__(
        self, step: Callable[[Mapping[str, Array]], Array], servo: Servo, places: Mapping[str, Array], ticks: int
    ) -> None:
        """Allocate memory for ``ticks`` timed ticks."""
        self._step, self._axes, self._skeleton, self._places = step, servo.axes, servo.skeleton, places
        self._processor, self._wall = np.empty(ticks), np.empty(ticks)
        self._q = np.empty((ticks, servo.skeleton.nq))
        self._error = self._slip = 0.0

    def take(self, k: int, targets: Mapping[str, Array]) -> None:
        """Run tick k and record its results; a negative k is a warm-up tick, which is not recorded."""
        begun, since = time.perf_counter_ns(), time.thread_time_ns()
        q = self._step(targets)
        spent, passed = time.thread_time_ns() - since, time.perf_counter_ns() - begun
        if k < 0:
            return
        self._processor[k], self._wall[k], self._q[k] = 1e-9 * spent, 1e-9 * passed, q
        pose = Pose(self._skeleton, q)
        self._error += sum(_apart(pose, joint, target) for joint, target in targets.items()) / len(targets)
        self._slip = max((self._slip, *(_apart(pose, joint, place) for joint, place in self._places.items())))

    def driven(self) -> Driven:
        """Return the times, errors and largest rates of all recorded ticks."""
        size, count = self._skeleton.size, len(self._q)
        velocities = _RATE * self._axes.ways(self._q[:-1], self._q[1:])
        accelerations = _RATE * np.diff(velocities, axis=0)
        return Driven(
            self._processor,
            self._wall,
            self._error / count / size,
            self._slip / size if self._places else None,
            float(np.abs(velocities).max(initial=0.0)) / _VELOCITY,
            float(np.abs(accelerations).max(initial=0.0)) / _ACCELERATION,
        )


def _apart(pose: Pose, joint: str, target: Array) -> float:
    """Return the distance of a joint from the position of a transform, length units."""
    return float(np.linalg.norm(pose.transform(joint)[:3, 3] - target[:3, 3]))


def _servo(body: Skeleton) -> tuple[Servo, list[str], list[str]]:
    """Return a servo of a body, the joints with moving targets, and the joints that keep their place."""
    rows = body.role_rows
    feet, hands = ([rows.get(f"{side}_{part}") for side in ("left", "right")] for part in ("foot", "hand"))
    if None in feet or None in hands:
        depth = np.zeros(len(body), np.int64)
        for row, parent in enumerate(body.parents):
            depth[row] = depth[parent] + 1 if parent >= 0 else 0
        end = body.joint_names[int(np.argmax(depth))]
        servo = Servo(body, PoseGoal(end), rate=_RATE, velocity=_VELOCITY, acceleration=_ACCELERATION)
        servo.reset()
        return servo, [end], []
    names = [[body.joint_names[row] for row in part if row is not None] for part in (feet, hands)]
    goals = [*(PoseGoal(name) for name in names[0]), *(PoseGoal(name, priority=1) for name in names[1])]
    servo = Servo(body, goals, rate=_RATE, velocity=_VELOCITY, acceleration=_ACCELERATION, root="free")
    servo.reset()
    return servo, names[1], names[0]


def _targets(body: Skeleton, moving: list[str], count: int) -> Iterator[dict[str, Array]]:
    """Yield targets on a closed curve about the rest pose; the curve jumps every ``_JUMP`` ticks."""
    rest, rng = body.rest_pose(), np.random.default_rng(0)
    frames = {name: rest.transform(name) for name in moving}
    jump = np.zeros(3)
    for k in range(count):
        if k % _JUMP == 0:
            jump = rng.normal(size=3)
        t = k / _RATE
        shift = _SIZE * body.size * (jump + np.array((np.sin(1.5 * t), np.sin(3.0 * t), np.cos(1.5 * t))))
        out: dict[str, Array] = {}
        for name, frame in frames.items():
            moved = frame.copy()
            moved[:3, 3] += shift
            out[name] = moved
        yield out


class PlainLoop:
    """A loop that moves the body of a servo by damped least squares, without bounds on accelerations.

    Each tick takes one step of damped least squares (Wampler 1986) for the weighted errors of all goals, clips the
    velocity of each axis to its limit, and clips the pose to the limits of the joints.

    Args:
        servo: The servo whose body and velocity limits are used.
        weights: Weight of each goal, by the name of its joint.
        top: Largest velocity of each axis, rad/s or length units per second.
    """

    def __init__(self, servo: Servo, weights: Mapping[str, float], top: float) -> None:
        """Begin at the rest pose."""
        self._axes, self._dt, self._top = servo.axes, 1.0 / servo.rate, top
        self._weights = dict(weights)
        self._skeleton, self._size = servo.skeleton, servo.skeleton.size
        self.q: Array = servo.skeleton.rest_pose().q

    def step(self, targets: Mapping[str, Array]) -> Array:
        """Run one tick towards target transforms (4, 4) by joint; return the joint values (nq,)."""
        pose = Pose(self._skeleton, self.q)
        errors: list[Array] = []
        rows: list[Array] = []
        for name, target in targets.items():
            now, weight = pose.transform(name), self._weights[name]
            here, there = matrix_to_quat(now[:3, :3]), matrix_to_quat(target[:3, :3])
            turn = now[:3, :3] @ rotation_between(here, there)
            errors.append(weight * np.concatenate(((target[:3, 3] - now[:3, 3]) / self._size, turn)))
            own = pose.jacobian(name)
            own[:3] /= self._size
            rows.append(weight * self._by_axis(own))
        J, e = np.concatenate(rows), np.concatenate(errors)
        A = J @ J.T
        A.flat[:: len(A) + 1] += _DAMPING * float(A.diagonal().max())
        step = J.T @ np.linalg.solve(A, _GAIN * e)
        most = self._top * self._dt
        self.q = inside_limits(self._skeleton, self._axes.shifted(self.q, np.clip(step, -most, most))[None])[0]
        return self.q

    def _by_axis(self, J: Array) -> Array:
        """Return a Jacobian (6, nv) with a column for each axis."""
        out: Any = np.zeros((len(J), len(self._axes.joints)))
        np.add.at(out.T, self._axes.axis, (J * self._axes.factor).T)
        return out
