"""Find the axis of a clip that points up, from the posture of the body, the floor, and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.clips.upright import AXES
from synovia.errors import InputError
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, axis_vector, unit
from synovia.retargeting.body import Body
from synovia.retargeting.bones import between, hip_middle, lowest_parts, trunk, upright
from synovia.retargeting.tilt import tilted_up

_FLOOR: Final = 0.3  # weight of a steady floor, relative to the posture
_TRAVEL: Final = 1.0  # weight of a long way along an axis: bodies crawl far, but seldom climb far
_FAR: Final = 3.0  # a long way, in lengths of the legs
_STATED: Final = 0.5  # weight of the axis that the file states
_USUAL: Final[Mapping[str, float]] = {"y": 0.3, "z": 0.25}  # weights of the axes that files use most
_STEADY: Final = 0.15  # spread of the lowest point of the body over time, in lengths of the legs, that halves a floor
_CLEAR: Final = 0.6  # lead over the second axis that counts as certain
_INVERTED: Final = -0.5  # cosine below which a body stands on its head: 120° from upright
_LYING: Final = 0.5  # certainty of an x axis or a tilted world that only the posture supports: the body may lie
_LEVEL: Final = 0.8  # certainty of a tilted world in which the feet come down to one level
_TILTED: Final = np.cos(np.radians(30.0))  # a body that is never this near to an axis stands in a tilted world
_STEPS: Final = 20  # frames that show steps
_AGAINST: Final = 0.8  # correlation of hips and standing feet from which the steps tell the length of the path
_NO_PATH: Final = 1e-8  # squared ratio of path and steps of a clip on the spot
_STILL: Final = 0.95  # smallest length of the mean of directions that are nearly constant


@dataclass(frozen=True, eq=False)
class Up:
    """The direction that points up.

    Args:
        name: Its axis, for example ``"y"`` or ``"-z"``.
        vector: Unit vector, (3,).
        certainty: From 0 (guessed) to 1 (certain).
        given: Whether the user named the axis.
        tilt: Angle between this direction and the axis that would point up, degrees, if the world is tilted; else 0.
        axis: That axis; "" if the world is not tilted.
    """

    name: str
    vector: Array
    certainty: float
    given: bool = False
    tilt: float = 0.0
    axis: str = ""

    def report(self) -> str:
        """Return the direction and how it was found, as text."""
        how = "as given" if self.given else f"certainty {100.0 * self.certainty:.0f} %"
        if not self.axis:
            return f"up: {self.name} ({how})"
        where = f"up: ({self.name}) ({how}): the world of the clip is tilted by {self.tilt:.0f}° from {self.axis}"
        return f'{where} and was set upright; up="{self.axis}" (--up={self.axis}) keeps it as it is'


def find_up(body: Body, frames: Array, up: str | None = None, rest: str | None = None) -> Up:
    """Return the axis that points up in a clip.

    Each axis gets points for the posture (from the ankles to the hips to the neck, averaged over time), for the floor
    (the lowest point of the body is at the same height at all times), and if the file states it. It loses points for
    a long way along it. A straight body that leans the same way in all frames stands in a tilted world, and up is its
    own direction.

    Args:
        body: The body that moves.
        frames: World frames over time, (T, n, 12).
        up: The axis, if the user names it.
        rest: Axis along which the rest pose stands, if it stands.

    Raises:
        InputError: If the name is not an axis, or the body is upside down for most of the time.
    """
    posture = upright(body, frames)
    if up is not None:
        if up not in AXES:
            raise InputError("up", value=up, expected=", ".join(AXES))
        return Up(up, axis_vector(up), 1.0, given=True)
    points: dict[str, float] = {}
    hips = hip_middle(body, frames)
    supported = {body.skeleton.up, rest} - {None}
    places = frames[..., 9:]
    lowest = np.concatenate([places.min(1), -places.max(1)], axis=1) / body.leg  # along each axis
    low, high = np.quantile(lowest, (0.1, 0.9), axis=0)
    for name, spread in zip(AXES, (high - low).tolist(), strict=True):
        axis = axis_vector(name)
        travel = float(np.ptp(hips @ axis)) / body.leg
        points[name] = (
            float((posture @ axis).mean())
            - _TRAVEL * min(travel / _FAR, 1.0)
            + _FLOOR / (1.0 + (spread / _STEADY) ** 2)
            + _USUAL.get(name, 0.0)
        )
    for name in (body.skeleton.up, rest):
        if name is not None:
            points[name] += _STATED
    mean = posture.mean(0)
    length = float(np.linalg.norm(mean))
    if not supported and length > _STILL and float(np.abs(posture).max()) < _TILTED:
        return Up(", ".join(f"{v:.2f}" for v in mean / length), mean / length, _LYING)
    best, second = sorted(points, key=lambda name: -points[name])[:2]
    certainty = float(np.clip((points[best] - points[second]) / _CLEAR, 0.0, 1.0))
    found = Up(best, axis_vector(best), certainty if best in supported or best[-1] != "x" else min(certainty, _LYING))
    _refuse_inverted(body, posture, found)
    return _tilted(body, frames, found) or found


def _tilted(body: Body, frames: Array, axis: Up) -> Up | None:
    """Return the direction that points up in a tilted world; None if the body stands along the axis, or lies.

    The floor makes it more certain: the feet come down to one level along this direction, but not along the axis.
    """
    legs, back = unit(hip_middle(body, frames) - lowest_parts(body, frames)), trunk(body, frames)
    found = None if back is None else tilted_up(legs, back, axis.vector, frames[..., 9:])
    if found is None:
        return None
    clear = _unevenness(body, frames, found) < 0.5 * _unevenness(body, frames, axis.vector)
    name = ", ".join(f"{v:.2f}" for v in found)
    return Up(name, found, _LEVEL if clear else _LYING, tilt=between(found, axis.vector), axis=axis.name)


def _unevenness(body: Body, frames: Array, up: Array) -> float:
    """Return how far the lowest points of the body and of each foot are from one level, in lengths of the legs."""
    lowest = (frames[..., 9:] @ up).min(1)
    low = [float(np.quantile(body.ankle_position(side, frames) @ up, 0.1)) for side in SIDES]
    return (float(np.diff(np.quantile(lowest, (0.1, 0.9)))[0]) + abs(low[0] - low[1])) / body.leg


def _refuse_inverted(body: Body, posture: Array, up: Up) -> None:
    """Ask the user if the body is upside down: the file's axis may point down, or the body may stand on its hands."""
    axis = up.name.removeprefix("-")
    share = float(np.mean(posture @ axis_vector(axis) < _INVERTED))
    if share > 0.5:
        raise InputError(
            f"{body.skeleton.name}: the head is below the feet along {axis} in {100.0 * share:.0f} % of the frames",
            expected="a body that stands on its feet",
            hint=f'pass up="-{axis}" (--up=-{axis}) if {axis} points down in the file, '
            f"or the axis that points up if the body stands on its hands or lies",
        )


def path_scale(body: Body, frames: Array, up: Array) -> float | None:
    """Return the factor by which the path of the hips fits the steps; None if the clip does not show it.

    The lower foot stands still on the floor, so the hips move against it. The factor is 1 if lengths of bones and path
    have the same unit.

    Args:
        body: The body that moves.
        frames: World frames over time, (T, n, 12), at the rate of the clip.
        up: Direction that points up, (3,).
    """
    if len(frames) < _STEPS:
        return None
    hips = hip_middle(body, frames)
    ends = [
        body.position(toes, frames) if (toes := f"{side}_toes") in body.roles else body.ankle_position(side, frames)
        for side in SIDES
    ]
    lower = (ends[0] - ends[1]) @ up < 0.0
    foot = np.where(lower[:, None], *ends) - hips
    same = lower[1:] == lower[:-1]
    path, step = ((d - (d @ up)[:, None] * up)[same] for d in (np.diff(hips, axis=0), np.diff(foot, axis=0)))
    length = np.linalg.norm(step, axis=1)
    if not same.any() or float(length.sum()) < 0.5 * body.leg:
        return None
    fast = length >= np.quantile(length, 0.3)  # slow frames show little but noise
    path, step = path[fast], step[fast]
    sizes = float(np.sum(path * path)), float(np.sum(step * step))
    if sizes[0] < _NO_PATH * sizes[1]:  # on the spot
        return None
    against = -np.sum(path * step, axis=1)
    if float(against.sum()) < _AGAINST * np.sqrt(sizes[0] * sizes[1]):
        return None
    return float(np.median(against / np.maximum(np.sum(path * path, axis=1), 1e-12 * sizes[0])))
