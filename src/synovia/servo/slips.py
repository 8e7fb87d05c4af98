"""Warnings of inputs of a servo that are probably mistakes: degrees, milliseconds, millimetres, periods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.arguments import warn
from synovia.kernels.layout import TOP_SPEED
from synovia.model import Kind, Skeleton
from synovia.model.degrees import FAR
from synovia.model.geometry import Array
from synovia.servo.limits import Axes
from synovia.servo.twist import Twist

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
