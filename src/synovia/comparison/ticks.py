"""How long a tick of a servo takes: an arm, and a whole body with priorities, whose targets move and jump."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from synovia.goals import PoseGoal
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.servo import Servo

_RATE: Final = 200.0  # ticks per second
_JUMP: Final = 400  # ticks between two jumps of the targets
_SIZE: Final = 0.05  # of the way of a target, in sizes of the body
_WARM: Final = 300  # ticks that do not count
_VELOCITY: Final = 2.0  # rad/s
_ACCELERATION: Final = 15.0  # rad/s²


@dataclass(frozen=True, slots=True, eq=False)
class TickTimes:
    """Times of the ticks of one body, in seconds.

    Args:
        body: Name of the body.
        goals: What it follows, in words.
        processor: Processor time of the thread, (n,).
        wall: Time by the clock, (n,), in which other programs may have run.
    """

    body: str
    goals: str
    processor: Array
    wall: Array

    def quantile(self, share: float) -> float:
        """Return the processor time that this share of all ticks does not exceed."""
        return float(np.quantile(self.processor, share))


def time_ticks(
    bodies: Mapping[str, Skeleton], ticks: int, watch: Callable[[str, float], object] | None = None
) -> Iterator[TickTimes]:
    """Yield the times of the ticks of some bodies.

    Args:
        bodies: By name. One with feet stands on them, and moves its hands; another one moves its farthest end.
        ticks: How many of each.
        watch: Called with the body and the part that is done.
    """
    for name, body in bodies.items():
        servo, moving, goals = _servo(body)
        processor, wall = np.empty(ticks), np.empty(ticks)
        for k, targets in enumerate(_targets(servo.skeleton, moving, _WARM + ticks), -_WARM):
            begun, since = time.perf_counter_ns(), time.thread_time_ns()
            servo.step(targets)
            spent, passed = time.thread_time_ns() - since, time.perf_counter_ns() - begun
            if k >= 0:
                processor[k], wall[k] = 1e-9 * spent, 1e-9 * passed
                if watch is not None and k % 256 == 0:
                    watch(name, k / ticks)
        yield TickTimes(name, goals, processor, wall)


def _servo(body: Skeleton) -> tuple[Servo, list[str], str]:
    """Return a servo of a body, the joints that move, and the goals in words."""
    rows = body.role_rows
    feet, hands = ([rows.get(f"{side}_{part}") for side in ("left", "right")] for part in ("foot", "hand"))
    if None in feet or None in hands:
        depth = np.zeros(len(body), np.int64)
        for row, parent in enumerate(body.parents):
            depth[row] = depth[parent] + 1 if parent >= 0 else 0
        end = body.joint_names[int(np.argmax(depth))]
        servo = Servo(body, PoseGoal(end), rate=_RATE, velocity=_VELOCITY, acceleration=_ACCELERATION)
        servo.reset()
        return servo, [end], f"pose of {end}"
    names = [[body.joint_names[row] for row in part if row is not None] for part in (feet, hands)]
    goals = [*(PoseGoal(name) for name in names[0]), *(PoseGoal(name, priority=1) for name in names[1])]
    servo = Servo(body, goals, rate=_RATE, velocity=_VELOCITY, acceleration=_ACCELERATION, root="free")
    servo.reset()
    return servo, names[1], "two feet, then two hands"


def _targets(body: Skeleton, moving: list[str], count: int) -> Iterator[dict[str, Any]]:
    """Yield targets: figures of eight about the rest pose, which jump from time to time."""
    rest, rng = body.rest_pose(), np.random.default_rng(0)
    frames = {name: rest.transform(name) for name in moving}
    jump = np.zeros(3)
    for k in range(count):
        if k % _JUMP == 0:
            jump = rng.normal(size=3)
        t = k / _RATE
        way = _SIZE * body.size * (jump + np.array((np.sin(1.5 * t), np.sin(3.0 * t), np.cos(1.5 * t))))
        out = {}
        for name, frame in frames.items():
            moved = frame.copy()
            moved[:3, 3] += way
            out[name] = moved
        yield out
