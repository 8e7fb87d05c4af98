"""The distances of clearance goals that a body keeps in every tick; see ``kernels.servo.distances``."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.obstacles import Places
from synovia.ik.ways import ClearWays
from synovia.kernels.layout import TOP_ACCELERATION, TOP_JERK, TOP_SPEED
from synovia.model.geometry import Array
from synovia.servo.limits import Axes
from synovia.servo.measured import Feedback

_LONGEST: Final = 1.5  # longest stop of the whole body, as a multiple of the shortest one
_SLACK: Final = 0.5  # fraction of the tolerance: a motion may come nearer by this, or the body would get stuck


class Guard:
    """The remaining clearances of clearance goals, along the motion of a body.

    Args:
        ik: The problem.
        axes: The axes of the body.

    Attributes:
        left: Lower bound of the remaining clearance (distance minus required distance) of each pair at the last pose,
            length units.
        blocked: Whether clearance has changed the last tick.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes) -> None:
        """Build the problem that measures distances."""
        self._slack = _SLACK * ik.tolerance[0]
        self.ways = ways = ClearWays(ik, self._slack)
        self._axes = axes
        self.left, self.blocked = ways.tables["left"], False

    def reset(self, q: Array) -> None:
        """Restart at joint values (nq,)."""
        self.ways.tables["least"][:] = -self._slack
        self.note(q)
        self.blocked = False

    def put(self, places: Places, q: Array) -> None:
        """Move obstacles to their present places, and measure clearances at joint values (nq,) of the robot.

        A pair that an obstacle has brought too near may stay so near, but not come nearer. A pair that the obstacle has
        left keeps its whole distance again.
        """
        self.ways.put(places)
        self.left[:] = self.ways.left(q)
        self.ways.tables["least"][:] = np.minimum(self.left, 0.0) - self._slack

    def begin_tick(self, q: Array, h: float, feedback: Feedback, *, commands: bool) -> None:
        """Prepare a tick of time h from joint values q (nq,); ``commands``: whether it moves the commanded pose."""
        here, ways = feedback.body(q), self.ways
        ways.tables["offset"][:] = feedback.offset if commands and feedback.offset is not None else 0.0
        if feedback.found is not None:  # the measured offset may have changed since the last tick
            self.note(here)
        if not ways.bounded:
            table = self._axes.table
            V, A, J = (table[:, column] for column in (TOP_SPEED, TOP_ACCELERATION, TOP_JERK))
            way = V * (h + _LONGEST * (V / A + A / J).max())
            ways.reach_to(np.maximum(*(np.abs(self._axes.shifted(here, sign * way)) for sign in (-1.0, 1.0))))

    def note(self, q: Array) -> None:
        """Measure clearances at joint values (nq,) of the robot, without a motion from the last pose.

        Pairs that are too near there may stay so near, but not come nearer.
        """
        self.left[:] = self.ways.left(q)
        least = self.ways.tables["least"]
        least[:] = np.where(self.left < least, self.left - self._slack, least)

    @property
    def state(self) -> tuple[Array, Array]:
        """Copies of the remaining and the required clearance of each pair."""
        return self.left.copy(), self.ways.tables["least"].copy()

    @state.setter
    def state(self, state: tuple[Array, Array]) -> None:
        """Restore a state."""
        self.left[:], self.ways.tables["least"][:] = state
