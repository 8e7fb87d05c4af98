"""Goals as files write them: one class of fields for each kind, and the goals that they describe."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta, Struct

from synovia.errors import InputError
from synovia.geometry import Array, as_matrix, as_unit_quat, quat_to_matrix, rigid
from synovia.goals import (
    AimGoal,
    CenterOfMassGoal,
    ContactGoal,
    DistanceGoal,
    Goal,
    PlaneGoal,
    PoleGoal,
    PoseGoal,
    PositionGoal,
    RelativeGoal,
    RestGoal,
    RotationGoal,
)

_Three = tuple[float, float, float]
_Four = tuple[float, float, float, float]
_Joint = Annotated[str | int, Meta(description="Name, body, role or row of the joint.")]
_Other = Annotated[str | int, Meta(description="Name, body, role or row of another joint.")]
_Point = Annotated[_Three, Meta(description="World position x, y, z in the length unit of the model's file.")]
_OffsetPoint = Annotated[_Three, Meta(description="Point on the joint, in its frame, that should meet the target.")]
_Polygon = Annotated[list[_Three], Meta(min_length=1, description="World points; their convex hull counts.")]
_Direction = Annotated[_Three, Meta(description="World direction; its length does not matter.")]
_Axis = Annotated[_Three, Meta(description="Direction in the joint's frame; its length does not matter.")]
_Length = Annotated[float, Meta(ge=0, description="Distance in the length unit of the model's file.")]
_Weight = Annotated[float, Meta(gt=0, description="Weight beside goals of the same priority.")]
_Priority = Annotated[int, Meta(ge=0, description="0 is the highest.")]
_Ancestors = Annotated[int, Meta(ge=0, description="How many joints above this one may move for it; all without.")]
_Name = Annotated[str, Meta(min_length=1, description="What to call the goal.")]


class Turn(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A rotation in exactly one way: quat_xyzw, quat_wxyz, matrix, or euler with degrees."""

    quat_xyzw: Annotated[_Four, Meta(description="Unit quaternion, the real part last.")] | None = None
    quat_wxyz: Annotated[_Four, Meta(description="Unit quaternion, the real part first.")] | None = None
    matrix: Annotated[tuple[_Three, _Three, _Three], Meta(description="Rows of a rotation matrix.")] | None = None
    euler: (
        Annotated[
            str,
            Meta(
                pattern="^([xyz]{1,3}|[XYZ]{1,3})$",
                description="Axes in the order of the turns: xyz about the fixed axes, XYZ about the turned ones.",
            ),
        ]
        | None
    ) = None
    degrees: Annotated[list[float], Meta(description="One angle for each axis of euler, degrees.")] | None = None


TURN_FORMS: Final = {  # how to write rotations, for messages
    "rotation": '{ quat_xyzw = [x, y, z, w] }, quat_wxyz, matrix (3 rows), or { euler = "xyz", degrees = [x, y, z] }'
}
_Rotation = Annotated[Turn, Meta(description="World rotation of the joint.")]
_OffsetTurn = Annotated[Turn, Meta(description="Rotation of the frame on the joint that should meet the target.")]


class _Shared(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, kw_only=True):
    """Fields of every goal on a joint."""

    joint: _Joint
    weight: _Weight = 1.0
    priority: _Priority = 0
    name: _Name | None = None


class PositionEntry(_Shared, tag_field="kind", tag="position", frozen=True, kw_only=True):
    """A point on a joint should be at a position."""

    position: _Point | None = None
    offset: _OffsetPoint | None = None
    ancestors: _Ancestors | None = None


class RotationEntry(_Shared, tag_field="kind", tag="rotation", frozen=True, kw_only=True):
    """A joint should have an orientation."""

    rotation: _Rotation | None = None
    offset_rotation: _OffsetTurn | None = None
    ancestors: _Ancestors | None = None


class PoseEntry(_Shared, tag_field="kind", tag="pose", frozen=True, kw_only=True):
    """A frame on a joint should have a position and an orientation: both, or neither to stay."""

    position: _Point | None = None
    rotation: _Rotation | None = None
    offset: _OffsetPoint | None = None
    offset_rotation: _OffsetTurn | None = None
    ancestors: _Ancestors | None = None


class AimEntry(_Shared, tag_field="kind", tag="aim", frozen=True, kw_only=True):
    """An axis of a joint (its z axis without) should point at a point."""

    point: _Point | None = None
    axis: _Axis | None = None
    offset: _OffsetPoint | None = None


class PoleEntry(_Shared, tag_field="kind", tag="pole", frozen=True, kw_only=True):
    """A limb should bend towards a point; joint is the one in its middle."""

    point: _Point | None = None
    root: Annotated[str | int, Meta(description="Joint at the limb's beginning.")] | None = None
    tip: Annotated[str | int, Meta(description="Joint at the limb's end.")] | None = None


class DistanceEntry(_Shared, tag_field="kind", tag="distance", frozen=True, kw_only=True):
    """The distance between a joint and another, or a point, should be within bounds."""

    other: _Other | None = None
    point: _Point | None = None
    minimum: _Length = 0.0
    maximum: _Length | None = None
    offset: _OffsetPoint | None = None
    other_offset: Annotated[_Three, Meta(description="Point on the other joint, in its frame.")] | None = None


class PlaneEntry(_Shared, tag_field="kind", tag="plane", frozen=True, kw_only=True):
    """A point on a joint should be on the side of a plane that its normal points to: without, of the ground."""

    point: _Point | None = None
    normal: _Direction | None = None
    offset: _OffsetPoint | None = None


class CenterOfMassEntry(
    Struct, tag_field="kind", tag="center_of_mass", forbid_unknown_fields=True, omit_defaults=True, frozen=True
):
    """The centre of mass should be at a position, or above a polygon."""

    position: _Point | None = None
    polygon: _Polygon | None = None
    up: _Direction | None = None
    weight: _Weight = 1.0
    priority: _Priority = 0
    name: _Name | None = None


class RelativeEntry(_Shared, tag_field="kind", tag="relative", frozen=True, kw_only=True):
    """A frame on a joint should have a place in the frame of another joint."""

    other: _Other
    position: Annotated[_Three, Meta(description="Position in the other joint's frame.")] | None = None
    rotation: Annotated[Turn, Meta(description="Rotation in the other joint's frame.")] | None = None
    parts: Annotated[
        Literal["position", "rotation", "pose"] | None, Meta(description="What to keep, where nothing is given.")
    ] = None
    offset: _OffsetPoint | None = None
    offset_rotation: _OffsetTurn | None = None
    other_offset: Annotated[_Three, Meta(description="Point on the other joint, in its frame.")] | None = None
    other_offset_rotation: Annotated[Turn, Meta(description="Rotation of the frame on the other joint.")] | None = None


class ContactEntry(_Shared, tag_field="kind", tag="contact", frozen=True, kw_only=True):
    """A joint should stay planted: its point, its point and the normal of its sole, or its full pose."""

    keep: Annotated[Literal["point", "normal", "pose"] | None, Meta(description="What stays; the pose without.")] = None
    position: _Point | None = None
    rotation: _Rotation | None = None
    normal: _Direction | None = None
    axis: _Axis | None = None
    offset: _OffsetPoint | None = None
    offset_rotation: _OffsetTurn | None = None  # for a full pose


class RestEntry(Struct, tag_field="kind", tag="rest", forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """Joints should stay near reference values, as far as all other goals leave them free."""

    weight: _Weight = 1.0
    name: _Name | None = None
    joints: (
        Annotated[
            list[str | int] | dict[str, float],
            Meta(description="Joints that it concerns, or their parts; all without."),
        ]
        | None
    ) = None
    values: (
        Annotated[
            dict[str, float | list[float]],
            Meta(description="Reference values of joints, radians or length units, xyzw for balls; at rest without."),
        ]
        | None
    ) = None


Entry = (
    PositionEntry
    | RotationEntry
    | PoseEntry
    | AimEntry
    | PoleEntry
    | DistanceEntry
    | PlaneEntry
    | CenterOfMassEntry
    | RelativeEntry
    | ContactEntry
    | RestEntry
)
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    str(entry.__struct_config__.tag): entry.__struct_fields__ for entry in Entry.__args__
}


def to_goal(entry: Entry) -> Goal:
    """Return the goal that an entry describes.

    Raises:
        InputError: If a value cannot be used.
    """
    if isinstance(entry, RestEntry):
        return RestGoal(entry.values, joints=entry.joints, weight=entry.weight, name=entry.name)
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    fields = {name: value for name, value in fields.items() if value is not None}
    for name in ("rotation", "offset_rotation", "other_offset_rotation"):
        if name in fields:
            fields[name] = to_matrix(fields[name], name)
    for name in ("offset", "other_offset"):  # a point, or with a rotation a frame
        if (turned := fields.pop(f"{name}_rotation", None)) is not None:
            fields[name] = rigid(fields.get(name, (0.0, 0.0, 0.0)), turned)
    return _GOALS[type(entry)](**fields)


_GOALS: Final[dict[type[Struct], type[Goal]]] = {
    PositionEntry: PositionGoal,
    RotationEntry: RotationGoal,
    PoseEntry: PoseGoal,
    AimEntry: AimGoal,
    PoleEntry: PoleGoal,
    DistanceEntry: DistanceGoal,
    PlaneEntry: PlaneGoal,
    CenterOfMassEntry: CenterOfMassGoal,
    RelativeEntry: RelativeGoal,
    ContactEntry: ContactGoal,
}


def to_matrix(turn: Turn, what: str = "rotation") -> Array:
    """Return the rotation matrix of a rotation as files write it.

    Raises:
        InputError: If none or several ways are given, or the values are no rotation.
    """
    ways = [way for way in ("quat_xyzw", "quat_wxyz", "matrix", "euler") if getattr(turn, way) is not None]
    if len(ways) != 1 or (turn.degrees is not None) != (turn.euler is not None):
        given = [*ways, *(["degrees"] if turn.degrees is not None else [])]
        raise InputError(
            f"{what} is given in {len(ways)} ways" if len(ways) != 1 else f"{what} has only one of euler and degrees",
            value=given,
            expected="one of quat_xyzw, quat_wxyz, matrix, or euler with degrees",
        )
    if turn.quat_xyzw is not None:
        return quat_to_matrix(as_unit_quat(turn.quat_xyzw, f"quat_xyzw of {what}"))
    if turn.quat_wxyz is not None:
        w, x, y, z = turn.quat_wxyz
        return quat_to_matrix(as_unit_quat((x, y, z, w), f"quat_wxyz of {what}"))
    if turn.matrix is not None:
        return as_matrix(np.array(turn.matrix), what)
    return _euler_matrix(turn.euler or "", turn.degrees or [], what)


def _euler_matrix(order: str, degrees: list[float], what: str) -> Array:
    """Return the matrix of turns: lower case about fixed axes (each from the left), upper case about turned ones."""
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", order) or any(a == b for a, b in pairwise(order)):
        raise InputError(
            f"order of Euler angles of {what} cannot be used",
            value=order,
            expected="up to three of xyz (fixed axes) or XYZ (turned axes), none twice in a row",
        )
    if len(degrees) != len(order) or not all(math.isfinite(angle) for angle in degrees):
        raise InputError(
            f"Euler angles of {what} do not fit", value=degrees, expected=f"{len(order)} finite angles in degrees"
        )
    out = np.eye(3)
    for axis, angle in zip(order, degrees, strict=True):
        i = "xyz".index(axis.lower())
        j, k = (i + 1) % 3, (i + 2) % 3
        c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        one = np.eye(3)
        one[j, j], one[j, k], one[k, j], one[k, k] = c, -s, s, c
        out = one @ out if order.islower() else out @ one
    return out
