"""Descriptions of goals: their fields in files and on the page, and their marks in pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synovia.errors import UnsupportedError
from synovia.kernels.layout import POSITION, ROTATION
from synovia.model.geometry import Array

AHEAD = 0.3  # body sizes: distance of a new aim target, and length of drawn lines
_PATCH = 0.06  # body sizes: half the side of the square drawn for a plane
# Descriptions of fields that several kinds share
POINT = "World position x, y, z in the length unit of the model's file."
OTHER_POINT = "Point on the other joint, in its frame."
AXIS = "Direction in the joint's frame; its length does not matter."
DIRECTION = "World direction; its length does not matter."
OTHER_JOINT = "Name of another joint, link or site, else a role, or a row."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """A field of a goal in goal files, with the argument of the constructor that it corresponds to.

    Args:
        name: Name of the field in files.
        form: Type of the value: ``"point"`` and ``"direction"`` (x, y, z), ``"rotation"``, ``"joint"``, ``"number"``,
            ``"length"`` (0 or more), ``"count"``, ``"choice"``, ``"polygon"``, for rest goals ``"parts"`` and
            ``"values"``, or for clearance goals ``"pairs"``.
        text: Description of the field in the schema.
        take: Returns the value to store for a goal: an array, a matrix (3, 3) for a rotation, or a plain value; None to
            omit the field.
        argument: Name of the constructor's argument, if it differs from ``name``.
        held: Returns the argument's value for a goal, which may be one that files cannot store; None to use ``take``.
        default: Default of the argument, which files omit.
        part: POSITION or ROTATION if the field is this part of a world target, which users can drag on the page; or 0.
        required: Whether a file must have the field.
        control: Whether the page has a control for the field.
        choices: Allowed words as values.
        label: Label of the field on the page, if its value is another joint.
        absent: Text on the page if no joint is chosen; empty for a required joint.
    """

    name: str
    form: str
    text: str
    take: Callable[[Any], Any]
    argument: str = ""
    held: Callable[[Any], Any] | None = None
    default: Any = None
    part: int = 0
    required: bool = False
    control: bool = False
    choices: tuple[str, ...] = ()
    label: str = ""
    absent: str = ""


def attribute(name: str, form: str, text: str, **options: Any) -> Field:
    """Return a ``Field`` whose value is the goal's attribute of the same name."""
    return Field(name=name, form=form, text=text, take=lambda goal: getattr(goal, name), **options)


def position(
    name: str = "position",
    text: str = POINT,
    part: int = POSITION,
) -> Field:
    """Return the ``Field`` for a target position."""
    return Field(name=name, form="point", text=text, take=position_of, part=part)


def rotation(text: str = "World rotation of the joint.", part: int = ROTATION) -> Field:
    """Return the ``Field`` for a target rotation."""
    return Field(name="rotation", form="rotation", text=text, take=rotation_of, part=part)


def position_of(goal: Any) -> Array | None:
    """Return the target position that a goal gives, (3,); None if it gives none."""
    return goal.target[:3, 3] if goal.given & POSITION else None


def rotation_of(goal: Any) -> Array | None:
    """Return the target rotation that a goal gives, (3, 3); None if it gives none."""
    return goal.target[:3, :3] if goal.given & ROTATION else None


def normal_of(goal: Any) -> Array | None:
    """Return the z axis of the target rotation that a goal gives, (3,); None if it gives no rotation."""
    return goal.target[:3, 2] if goal.given & ROTATION else None


def offset(
    name: str = "offset",
    text: str = "Point on the joint, in its frame, that should meet the target.",
    held: Callable[[Any], Any] | None = None,
) -> Field:
    """Return the ``Field`` for a goal's point on its joint."""

    def take(goal: Any) -> Array | None:
        point = getattr(goal, name)[:3, 3]
        return point if point.any() else None

    return Field(name=name, form="point", text=text, take=take, held=held)


def offset_rotation(
    name: str = "offset", text: str = "Rotation of the frame on the joint that should meet the target."
) -> Field:
    """Return the ``Field`` for the rotation of a goal's frame on its joint."""
    return Field(
        name=f"{name}_rotation", form="rotation", text=text, take=lambda goal: rotation_in(getattr(goal, name))
    )


def rotation_in(frame: Array) -> Array | None:
    """Return the rotation (3, 3) of a frame (4, 4); None for the identity."""
    return None if np.array_equal(frame[:3, :3], np.eye(3)) else frame[:3, :3]


ANCESTORS = attribute("ancestors", "count", "How many joints above this one may move for it; all if left out.")
JOINT = attribute("joint", "joint", "Name of a joint, link or site, else a role, or a row.", required=True)
WEIGHT = attribute("weight", "weight", "Weight relative to goals of the same priority.", default=1.0)
PRIORITY = attribute("priority", "count", "0 is the highest.", default=0)
CONSTRAINT_PRIORITY = attribute(
    "priority", "count", "0 is the highest; if left out, the goal is a constraint above all priorities.", default=None
)
NAME = attribute("name", "name", "What to call the goal.")


def axis_of_offset() -> Field:
    """Return the ``Field`` for a goal's axis, which is the z axis of its frame on the joint."""
    return Field(
        name="axis",
        form="direction",
        text=AXIS,
        take=lambda goal: goal.offset[:3, 2],
        default=(0.0, 0.0, 1.0),
        control=True,
    )


def cannot_store(goal: Any, what: str, expected: str) -> UnsupportedError:
    """Return the error for a value that a goal file cannot store."""
    return UnsupportedError(f"goal files cannot store {what}", where=goal.label, value=goal, expected=expected)


def degrees(angle: float) -> str:
    """Return an angle in degrees, as text."""
    return f"{math.degrees(angle):.3g} deg"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """State of a goal in a pose; determines the goal's marks in a picture.

    Args:
        at: World frame of the goal's point, (4, 4).
        target: Target of the goal, (4, 4).
        others: World frames of the goal's other joints, each (4, 4).
        size: Size of the body, length units.
        reached: Whether the goal is met.
        length: Error of the goal, length units.
    """

    at: Array
    target: Array
    others: Sequence[Array]
    size: float
    reached: bool
    length: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """Marks of a goal in a picture.

    Args:
        target: Target point in the world, (3,).
        rotation: World rotation of the joint, (3, 3).
        target_rotation: Target rotation in the world, (3, 3).
        paths: Lines in the world, each as points (n, 3).
        arc: Bounds of the joint value, drawn as an arc or a rail.
        note: Error to print at a missed goal: ``"length"`` or ``"angle"``; empty for the distance to the target.
        on_joint: Whether a missed goal has a ring around its joint.
    """

    target: Array | None = None
    rotation: Array | None = None
    target_rotation: Array | None = None
    paths: Sequence[Array] = ()
    arc: tuple[float, float] | None = None
    note: str = ""
    on_joint: bool = True


def ray(start: Array, way: Array, length: float) -> Array:
    """Return the ends (2, 3) of a line of a given length from a point in a direction."""
    return np.stack([start, start + length / max(float(np.linalg.norm(way)), 1e-300) * way])


def square(centre: Array, turn: Array, size: float) -> Array:
    """Return the corners (5, 3) of a small square normal to the z axis of a rotation; the last is the first."""
    across, along = _PATCH * size * turn[:, 0], _PATCH * size * turn[:, 1]
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1), (1, 1))
    return np.array([centre + a * across + b * along for a, b in signs])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """A joint in the current pose; the page derives the first target of a new goal from it.

    Args:
        at: World frame of the goal's point, (4, 4).
        frames: World frames of all joints by row, each (4, 4).
        parents: Row of the parent of each row; -1 for no parent.
        row: Row of the goal's joint.
        size: Size of the body, length units.
    """

    at: Array
    frames: Callable[[int], Array]
    parents: Sequence[int]
    row: int
    size: float
