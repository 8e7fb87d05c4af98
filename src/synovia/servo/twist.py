"""Targets that are velocities: a joystick, a space mouse, visual servoing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from synovia.arguments import ChecksArguments
from synovia.errors import InputError
from synovia.model.geometry import Array, as_numbers
from synovia.servo.curve import exp_turn, log_turn

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
