"""How a kind of goal describes itself: the fields of its entry in files and on the page, and its marks in pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synovia.errors import UnsupportedError
from synovia.kernels.layout import POSITION, ROTATION
from synovia.model.geometry import Array

AHEAD = 0.3  # of the body's size: how far before a joint its first target is, where that is a point to look at
_PATCH = 0.06  # of the body's size: half the side of the square that stands for a plane
# Descriptions that several kinds share
POINT = "World position x, y, z in the length unit of the model's file."
OTHER_POINT = "Point on the other joint, in its frame."
AXIS = "Direction in the joint's frame; its length does not matter."
DIRECTION = "World direction; its length does not matter."
OTHER_JOINT = "Name, body, role or row of another joint."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """One field of a goal.

    Args:
        name: Its name in files.
        form: What it holds: ``"point"`` and ``"direction"`` (x, y, z), ``"rotation"``, ``"joint"``, ``"number"``,
            ``"length"`` (0 or more), ``"count"``, ``"choice"``, ``"polygon"``, or for rest goals ``"parts"`` and
            ``"values"``.
        text: Its description in the schema.
        take: Gives its value of a goal: an array, a matrix (3, 3) for a rotation, a plain value; None: left out.
        argument: Name of the constructor's argument, where it differs.
        held: Gives that argument, where a file cannot hold all that it may be.
        plain: The value that goes without saying.
        part: POSITION or ROTATION if it is that part of a target in the world, which the page lets people drag.
        required: Whether it cannot be left out.
        control: Whether the page has a control of its own for it.
        choices: The words that it may be.
        label: What the page calls a further joint.
        absent: What the page says where there is none; empty if there has to be one.
    """

    name: str
    form: str
    text: str
    take: Callable[[Any], Any]
    argument: str = ""
    held: Callable[[Any], Any] | None = None
    plain: Any = None
    part: int = 0
    required: bool = False
    control: bool = False
    choices: tuple[str, ...] = ()
    label: str = ""
    absent: str = ""


def plain(name: str, form: str, text: str, **options: Any) -> Field:
    """Return a field whose value is the goal's attribute of that name."""
    return Field(name=name, form=form, text=text, take=lambda goal: getattr(goal, name), **options)


def position(
    name: str = "position",
    text: str = POINT,
    part: int = POSITION,
) -> Field:
    """Return the field of the position that a goal is given."""
    return Field(name=name, form="point", text=text, take=position_of, part=part)


def rotation(text: str = "World rotation of the joint.", part: int = ROTATION) -> Field:
    """Return the field of the rotation that a goal is given."""
    return Field(name="rotation", form="rotation", text=text, take=rotation_of, part=part)


def position_of(goal: Any) -> Array | None:
    """Return the position that a goal is given, (3,)."""
    return goal.target[:3, 3] if goal.given & POSITION else None


def rotation_of(goal: Any) -> Array | None:
    """Return the rotation that a goal is given, (3, 3)."""
    return goal.target[:3, :3] if goal.given & ROTATION else None


def normal_of(goal: Any) -> Array | None:
    """Return the z axis of the rotation that a goal is given, (3,)."""
    return goal.target[:3, 2] if goal.given & ROTATION else None


def offset(
    name: str = "offset",
    text: str = "Point on the joint, in its frame, that should meet the target.",
    held: Callable[[Any], Any] | None = None,
) -> Field:
    """Return the field of the point of a frame on a joint."""

    def take(goal: Any) -> Array | None:
        point = getattr(goal, name)[:3, 3]
        return point if point.any() else None

    return Field(name=name, form="point", text=text, take=take, held=held)


def offset_rotation(
    name: str = "offset", text: str = "Rotation of the frame on the joint that should meet the target."
) -> Field:
    """Return the field of the rotation of a frame on a joint."""
    return Field(name=f"{name}_rotation", form="rotation", text=text, take=lambda goal: turned(getattr(goal, name)))


def turned(frame: Array) -> Array | None:
    """Return the rotation (3, 3) of a frame (4, 4), None if it is not turned."""
    return None if np.array_equal(frame[:3, :3], np.eye(3)) else frame[:3, :3]


ANCESTORS = plain("ancestors", "count", "How many joints above this one may move for it; all if left out.")
JOINT = plain("joint", "joint", "Name, body, role or row of the joint.", required=True)
WEIGHT = plain("weight", "weight", "Weight beside goals of the same priority.", plain=1.0)
PRIORITY = plain("priority", "count", "0 is the highest.", plain=0)
NAME = plain("name", "name", "What to call the goal.")


def axis_of_offset() -> Field:
    """Return the field of an axis that is the z axis of the frame on a joint."""
    return Field(
        name="axis",
        form="direction",
        text=AXIS,
        take=lambda goal: goal.offset[:3, 2],
        plain=(0.0, 0.0, 1.0),
        control=True,
    )


def no_room(goal: Any, what: str, expected: str) -> UnsupportedError:
    """Return the error for a value that a goal file cannot hold."""
    return UnsupportedError(f"goal files cannot store {what}", where=goal.label, value=goal, expected=expected)


def degrees(angle: float) -> str:
    """Return an angle as people read it."""
    return f"{math.degrees(angle):.3g} deg"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A goal in a pose, as far as its marks depend on it.

    Args:
        at: World frame of its point, (4, 4).
        target: Its target, (4, 4).
        others: World frames of its other joints, each (4, 4).
        size: Size of the body, length units.
        reached: Whether it holds.
        length: Its error, length units.
    """

    at: Array
    target: Array
    others: Sequence[Array]
    size: float
    reached: bool
    length: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """What a picture shows of a goal, beside its point.

    Args:
        target: World point that should be met, (3,).
        rotation: World rotation of the joint, (3, 3).
        target_rotation: World rotation that it should have, (3, 3).
        paths: Lines in the world, each through points (n, 3).
        arc: Bounds of the joint's own value, shown as an arc or a rail.
        note: Which error stands beside a missed goal: ``"length"`` or ``"angle"``; empty for the distance.
        on_joint: Whether the ring of a missed goal goes round a joint.
    """

    target: Array | None = None
    rotation: Array | None = None
    target_rotation: Array | None = None
    paths: Sequence[Array] = ()
    arc: tuple[float, float] | None = None
    note: str = ""
    on_joint: bool = True


def ray(start: Array, way: Array, length: float) -> Array:
    """Return a line from a point along a direction, (2, 3)."""
    return np.stack([start, start + length / max(float(np.linalg.norm(way)), 1e-300) * way])


def square(centre: Array, turn: Array, size: float) -> Array:
    """Return the corners (5, 3), first and last the same, of a small square across the z axis of a rotation."""
    across, along = _PATCH * size * turn[:, 0], _PATCH * size * turn[:, 1]
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1), (1, 1))
    return np.array([centre + a * across + b * along for a, b in signs])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """A joint as it stands, from which the page gives a goal its first target.

    Args:
        at: World frame of the goal's point, (4, 4).
        frames: World frames of all joints by row, each (4, 4).
        parents: Parent of each row, -1 for none.
        row: The goal's joint.
        reach: Size of the body, length units.
    """

    at: Array
    frames: Callable[[int], Array]
    parents: Sequence[int]
    row: int
    reach: float
