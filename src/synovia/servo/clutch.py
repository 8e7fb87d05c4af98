"""Relative control: the motion of a controller, from where both were when the clutch was engaged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np

from synovia.errors import InputError
from synovia.model.geometry import Array, as_numbers, is_number, unit
from synovia.servo.curve import exp_turn, log_turn

_SMALL: Final = 1e-9  # radians: a turn without an axis


class Clutch:
    """Couples a controller to a goal; ``Servo.clutch`` makes one.

    While it is engaged, the motion of the goal's targets since then moves the end effector from where it was then.
    While it is not, these targets do nothing, and the end effector stops where it is. So the controller may be moved
    to a better place, or put down. The clutch begins released.

    Attributes:
        engaged: Whether it is engaged.
        scale: Factors of the controller's way and of its turns.

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
        """Store the factors, and what happens at a release."""
        self.scale = _factors(scale)
        self.engaged = False
        self._let_go = let_go
        self._begin: tuple[Array, Array] | None = None
        self._turn = np.zeros(3)

    def __repr__(self) -> str:
        """Return whether it is engaged, and the factors."""
        return f"<Clutch {'engaged' if self.engaged else 'released'}, scale={self.scale}>"

    def engage(self) -> None:
        """Couple: the next target of the goal is where the controller is now. If it is engaged already, do nothing."""
        if not self.engaged:
            self.engaged, self._begin = True, None

    def release(self) -> None:
        """Uncouple: the end effector brakes, and keeps the place where it stops."""
        if self.engaged:
            self.engaged, self._begin = False, None
            self._let_go()

    def bound(self, let_go: Callable[[], None]) -> Self:
        """Return the clutch, after which something else happens at a release."""
        self._let_go = let_go
        return self

    def begin(self) -> None:
        """Begin anew: the next target is where the controller is."""
        self._begin = None

    def apply(self, frame: Array, now: Array) -> None:
        """Turn the place of the controller, (4, 4), into a target, in place; ``now`` is the present one, (4, 4)."""
        if self._begin is None:
            self._begin, self._turn = (frame.copy(), now.copy()), np.zeros(3)
        controller, tool = self._begin
        way = frame[:3, 3] - controller[:3, 3]
        turn = self._unwound(log_turn(frame[:3, :3] @ controller[:3, :3].T))
        frame[:3, 3] = tool[:3, 3] + self.scale[0] * way
        frame[:3, :3] = exp_turn(self.scale[1] * turn) @ tool[:3, :3]

    def _unwound(self, turn: Array) -> Array:
        """Return the rotation vector that continues the last one, beyond half a turn where that is nearer."""
        size = math.sqrt(float(turn @ turn))
        axis = turn / size if size > _SMALL else unit(self._turn)
        turns = round((float(self._turn @ axis) - size) / (2.0 * math.pi))
        self._turn = turn if turns == 0 else (size + 2.0 * math.pi * turns) * axis
        return self._turn


def _factors(scale: Any) -> tuple[float, float]:
    """Return the factors of way and turns.

    Raises:
        InputError: If they are no numbers from 0.
    """
    pair = np.array([scale, scale]) if is_number(scale) else as_numbers(scale, (2,), "scale")
    if not (pair >= 0.0).all():
        raise InputError("scale", value=scale, expected="a number from 0, or a pair: of the way and of turns")
    return float(pair[0]), float(pair[1])
