"""How long the ticks of a servo take, in processor time of their thread."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.goals import Goal, PoseGoal
from synovia.io.bundled import bundled
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.root import Root
from synovia.servo import Servo

_RATE: Final = 500.0
_PERIOD: Final = 1000  # ticks in which targets go once around
_RADIUS: Final = 0.02  # reaches
_WARM: Final = 50  # ticks that do not count
_HANDS: Final = ("left_hand", "right_hand")
_EDGES: Final = 12  # of a histogram


@dataclass(frozen=True, slots=True, eq=False)
class TickTimes:
    """Times of the ticks of one body.

    Args:
        body: Its name.
        goals: Its goals, in words.
        seconds: Time of each tick, (n,).
    """

    body: str
    goals: str
    seconds: Array

    def share(self, percent: float) -> float:
        """Return the time, seconds, that so many percent of the ticks do not exceed."""
        return float(np.percentile(self.seconds, percent))

    def histogram(self) -> tuple[Array, Array]:
        """Return counts (n,) and edges (n + 1,) in seconds: equal ratios from the shortest tick to the longest."""
        low, high = float(self.seconds.min()), float(self.seconds.max())
        edges = np.geomspace(low, max(high, 1.001 * low), _EDGES + 1)
        edges[0], edges[-1] = low, max(high, edges[-1])
        counts, _ = np.histogram(self.seconds, edges)
        return counts.astype(float), edges


def tick_times(budget: float) -> tuple[TickTimes, ...]:
    """Measure a bundled arm, whose tool follows targets, and a bundled body with two hands and planted feet.

    Args:
        budget: Seconds for each.
    """
    arm, body = bundled("arm7"), bundled("humanoid")
    hands = [PoseGoal(joint, priority=1) for joint in _HANDS]
    feet = [PoseGoal(joint) for joint in ("left_foot", "right_foot")]
    return (
        _measured(arm, [PoseGoal("tool")], ["tool"], root="fixed", words="pose of the tool", budget=budget),
        _measured(body, [*hands, *feet], _HANDS, root="free", words="poses of two hands, planted feet", budget=budget),
    )


def _measured(
    skeleton: Skeleton, goals: Sequence[Goal], moving: Sequence[str], *, root: Root, words: str, budget: float
) -> TickTimes:
    """Return the times of one body, of which some joints go around."""
    servo = Servo(skeleton, goals, rate=_RATE, velocity=2.0, acceleration=10.0, jerk=100.0, root=root)
    reach, start = servo.ik.reach, servo.skeleton.rest_pose()
    home = {joint: start.transform(joint) for joint in moving}
    taken: list[int] = []
    until = time.perf_counter() + budget
    while len(taken) <= _WARM or time.perf_counter() < until:
        angle = 2.0 * math.pi * len(taken) / _PERIOD
        targets = {joint: place.copy() for joint, place in home.items()}
        for place in targets.values():
            place[:3, 3] += _RADIUS * reach * np.array([math.sin(angle), math.cos(angle) - 1.0, math.sin(2.0 * angle)])
        began = time.thread_time_ns()
        servo.step(targets)
        taken.append(time.thread_time_ns() - began)
    return TickTimes(skeleton.name, words, np.maximum(np.array(taken[_WARM:], float), 1.0) * 1e-9)
