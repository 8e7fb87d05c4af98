"""Speed limits of a page: limits for following the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from synovia.errors import InputError
from synovia.facade import IK
from synovia.model import Kind, Skeleton
from synovia.servo import Servo

_RATE: Final = 60.0  # nominal ticks per second; each tick passes its actual duration


@dataclass(frozen=True, slots=True)
class SpeedLimits:
    """Speed limits for the body of a page.

    Args:
        on: Whether the limits apply.
        share: Percentage of the velocity limits in the model's file.
        velocity: Highest velocity of joints without a limit in the file, rad/s; for slides and the position of a moving
            root, body sizes per second.
        acceleration: Highest acceleration of all joints, rad/s², or body sizes/s².
        jerk: Highest jerk of all joints, rad/s³, or body sizes/s³; 0 for no limit.
    """

    on: bool = False
    share: float = 100.0
    velocity: float = 3.0
    acceleration: float = 15.0
    jerk: float = 0.0

    def __post_init__(self) -> None:
        """Check that all limits can be used.

        Raises:
            InputError: If a value cannot be used.
        """
        for name, low, high in (("share", 0.0, 100.0), ("velocity", 0.0, 1e6), ("acceleration", 0.0, 1e9)):
            if not low < getattr(self, name) <= high:
                raise InputError(name, value=getattr(self, name), expected=f"above {low:g} and at most {high:g}")
        if not 0.0 <= self.jerk <= 1e12:
            raise InputError("jerk", value=self.jerk, expected="0 for no limit, or at most 1e+12")

    def servo(self, ik: IK, deadline: float) -> Servo:
        """Return the servo of a problem.

        Args:
            ik: The problem.
            deadline: Time limit of one solve, seconds.

        Raises:
            InputError: If a servo does not support the problem's solver.
        """
        skeleton, size = ik.skeleton, ik.skeleton.size or 1.0
        jerk = self.jerk or None
        return Servo(
            ik,
            rate=_RATE,
            velocity=self.velocities(skeleton, ik.reach),
            acceleration=_of_all(skeleton, self.acceleration, size, ik.reach),
            jerk=jerk and _of_all(skeleton, jerk, size, ik.reach),
            deadline=deadline,
        )

    def velocities(self, skeleton: Skeleton, reach: float) -> dict[int, Any]:
        """Return the highest velocity of each joint for a ``Servo``, by row."""
        out = _of_all(skeleton, self.velocity, skeleton.size or 1.0, reach)
        for row, joint in enumerate(skeleton.joints):
            if joint.velocity is not None and joint.kind not in (Kind.FIXED, Kind.FREE):
                out[row] = 0.01 * self.share * joint.velocity
        return out


def _of_all(skeleton: Skeleton, value: float, size: float, reach: float) -> dict[int, Any]:
    """Return one limit for every joint, by row, as a ``Servo`` takes it; ``value`` is in radians or body sizes."""
    out: dict[int, Any] = {}
    for row, joint in enumerate(skeleton.joints):
        if joint.kind is Kind.FREE:
            out[row] = (value, value * size / reach)
        elif joint.kind is not Kind.FIXED:
            out[row] = value * size if joint.kind is Kind.SLIDE else value
    return out
