"""Find the axis of a clip that points up, from the posture of the body, the floor, and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.model.geometry import Array, axis_vector
from synovia.retargeting.body import Body
from synovia.retargeting.bones import hip_middle, lowest_parts, trunk, unit

AXES: Final = ("x", "y", "z", "-x", "-y", "-z")
_FLOOR: Final = 0.3  # weight of a steady floor beside that of the posture
_STATED: Final = 0.5  # weight of the axis that the file states
_USUAL: Final[Mapping[str, float]] = {"y": 0.1, "z": 0.05}  # weights of the axes that files use most
_STEADY: Final = 0.15  # spread of the lowest point of the body over time, in lengths of the legs, that halves a floor
_CLEAR: Final = 0.6  # lead over the second axis that counts as certain
_INVERTED: Final = -0.5  # cosine below which a body stands on its head: 120° from upright


@dataclass(frozen=True, eq=False)
class Up:
    """The direction that points up.

    Args:
        name: Its axis, for example ``"y"`` or ``"-z"``.
        vector: Unit vector, (3,).
        certainty: From 0 (guessed) to 1 (certain).
        given: Whether the user named the axis.
    """

    name: str
    vector: Array
    certainty: float
    given: bool = False


def find_up(body: Body, frames: Array, up: str | None = None, rest: str | None = None) -> Up:
    """Return the axis that points up in a clip.

    Each axis gets points for the posture (from the ankles to the hips to the neck, averaged over time), for the floor
    (the lowest point of the body is at the same height at all times), and if the file states it.

    Args:
        body: The body that moves.
        frames: World frames over time, (T, n, 12).
        up: The axis, if the user names it.
        rest: Axis along which the rest pose stands, if it stands.

    Raises:
        InputError: If the name is not an axis, or the body is upside down for most of the time.
    """
    upright = _posture(body, frames)
    if up is not None:
        if up not in AXES:
            raise InputError("up", value=up, expected=", ".join(AXES))
        return Up(up, axis_vector(up), 1.0, given=True)
    points: dict[str, float] = {}
    for name in AXES:
        axis = axis_vector(name)
        heights = (frames[..., 9:] @ axis).min(1) / body.leg
        spread = float(np.diff(np.quantile(heights, (0.1, 0.9)))[0])
        points[name] = float((upright @ axis).mean()) + _FLOOR / (1.0 + (spread / _STEADY) ** 2) + _USUAL.get(name, 0.0)
    for stated in (body.skeleton.up, rest):
        if stated is not None:
            points[stated] += _STATED
    best, second = sorted(points, key=lambda name: -points[name])[:2]
    certainty = float(np.clip((points[best] - points[second]) / _CLEAR, 0.0, 1.0))
    found = Up(best, axis_vector(best), certainty)
    _refuse_inverted(body, upright, found)
    return found


def _posture(body: Body, frames: Array) -> Array:
    """Return the mean of the directions of legs and trunk in each frame, (T, 3)."""
    legs = unit(hip_middle(body, frames) - lowest_parts(body, frames))
    back = trunk(body, frames)
    return legs if back is None else 0.5 * (legs + back)


def _refuse_inverted(body: Body, upright: Array, up: Up) -> None:
    """Ask the user if the body is upside down: the file's axis may point down, or the body may stand on its hands."""
    positive = up.name.removeprefix("-")
    share = float(np.mean(upright @ axis_vector(positive) < _INVERTED))
    if share > 0.5:
        raise InputError(
            f"{body.skeleton.name}: the body is upside down along {positive} in {100.0 * share:.0f} % of the frames",
            expected="a body that stands on its feet",
            hint=f'up="-{positive}" (--up=-{positive}) if {positive} points down in the file, '
            f'up="{positive}" (--up={positive}) if it stands on its hands',
        )
