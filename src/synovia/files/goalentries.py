"""Goals as files write them: one class of fields for each kind, and the goals that they describe."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from synovia.files.rotations import Turn, to_matrix
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
    RangeGoal,
    RelativeGoal,
    RestGoal,
    RotationGoal,
)
from synovia.model.geometry import rigid

_Three = tuple[float, float, float]
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
_Ancestors = Annotated[int, Meta(ge=0, description="How many joints above this one may move for it; all if left out.")]
_Name = Annotated[str, Meta(min_length=1, description="What to call the goal.")]


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
    """An axis of a joint (its z axis if none is given) should point at a point."""

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
    """A point on a joint should be on the side of a plane that its normal points to; if left out, above the ground."""

    point: _Point | None = None
    normal: _Direction | None = None
    offset: _OffsetPoint | None = None


class RangeEntry(_Shared, tag_field="kind", tag="range", frozen=True, kw_only=True):
    """A joint's own value should be within bounds: of a ball, how far it is turned from rest."""

    lower: Annotated[float, Meta(description="Least value, radians or length units; no bound if left out.")] | None = (
        None
    )
    upper: Annotated[float, Meta(description="Most value, radians or length units; no bound if left out.")] | None = (
        None
    )


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

    keep: Annotated[
        Literal["point", "normal", "pose"] | None, Meta(description="What stays; the pose if left out.")
    ] = None
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
            Meta(description="Joints that it concerns, or their parts; all if left out."),
        ]
        | None
    ) = None
    values: (
        Annotated[
            dict[str, float | list[float]],
            Meta(
                description="Reference values of joints, radians or length units, xyzw for balls; at rest if left out."
            ),
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
    | RangeEntry
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
    RangeEntry: RangeGoal,
    CenterOfMassEntry: CenterOfMassGoal,
    RelativeEntry: RelativeGoal,
    ContactEntry: ContactGoal,
}
