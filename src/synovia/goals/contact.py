"""Contact: a foot stays planted."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import (
    POSITION,
    ROTATION,
    Goal,
    Term,
    pick_pose,
    pick_rotation,
    placed,
)
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, align_z, as_direction

if TYPE_CHECKING:
    from synovia.model import Skeleton

_KEEPS = ("point", "normal", "pose")


class ContactGoal(Goal):
    """A joint should stay in contact: its point, its point and the normal of its sole, or its full pose.

    Residual: the vector to the place, then nothing (3 rows), the rotation vector that takes the sole's normal onto the
    wanted one and leaves the turn about it free (6 rows), or the rotation vector onto the wanted orientation (6 rows).
    What is not given stays as the start has it.

    Args:
        joint: Name, body, role or row of the joint.
        position: World position (3,), length units.
        rotation: World rotation, a ``Rotation`` or a matrix (3, 3), for a full pose.
        keep: ``"point"``, ``"normal"`` or ``"pose"``; None for the normal where one is given, else the pose.
        normal: World direction (3,) of the sole's normal, such as that of the ground.
        axis: The sole's normal in the joint's frame, (3,); None for what points up at rest.
        transform: Position and rotation at once, (4, 4).
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in the other order.
        offset: Point (3,) on the joint, in its frame; for a full pose also a frame (4, 4).
        weight: Weight beside goals of the same priority.
        priority: 0 is the highest.
        name: What to call the goal.

    Raises:
        InputError: If a value cannot be used.
    """

    __slots__ = ("axis", "keep")
    kind: ClassVar[str] = "contact"
    needs: ClassVar[str] = "rows"
    summary: ClassVar[str] = (
        "A joint should stay planted: its point, its point and the normal of its sole, or its full pose."
    )
    fields: ClassVar[tuple[describe.Field, ...]] = (
        describe.Field(
            name="keep",
            form="choice",
            text="What stays; the pose if left out.",
            take=lambda goal: goal.keep,
            plain="pose",
            control=True,
            choices=("pose", "normal", "point"),
        ),
        describe.position(),
        describe.Field(
            name="rotation",
            form="rotation",
            text="World rotation of the joint.",
            take=lambda goal: describe.rotation_of(goal) if goal.keep == "pose" else None,
            part=ROTATION,
        ),
        describe.Field(
            name="normal",
            form="direction",
            text=describe.DIRECTION,
            take=lambda goal: describe.normal_of(goal) if goal.keep == "normal" else None,
            part=ROTATION,
        ),
        describe.plain("axis", "direction", describe.AXIS),
        describe.offset(),
        describe.Field(
            name="offset_rotation",
            form="rotation",
            text="Rotation of the frame on the joint that should meet the target.",
            take=lambda goal: describe.turned(goal.offset) if goal.keep == "pose" else None,
        ),
    )

    keep: str
    axis: Array | None

    def __init__(
        self,
        joint: str | int,
        position: Any = None,
        rotation: Any = None,
        *,
        keep: str | None = None,
        normal: Any = None,
        axis: Any = None,
        transform: Any = None,
        quat_xyzw: Any = None,
        quat_wxyz: Any = None,
        offset: Any = None,
        weight: float = 1.0,
        priority: int = 0,
        name: str | None = None,
    ) -> None:
        """Check and keep the values; a normal becomes the z axis of the target, the sole's that of the goal's frame."""
        turn = pick_rotation(joint, rotation, quat_xyzw, quat_wxyz)
        position, turn = pick_pose(joint, position, turn, transform)
        with placed(joint):
            if keep is None:
                keep = "normal" if normal is not None or axis is not None else "pose"
            if keep not in _KEEPS:
                raise InputError("keep is unknown", value=keep, expected="'point', 'normal' or 'pose'")
            if keep != "normal" and (normal is not None or axis is not None):
                raise InputError("a normal is given that is not to be kept", value=keep, expected="keep='normal'")
            if keep != "pose" and turn is not None:
                raise InputError("a rotation is given that is not to be kept", value=keep, expected="keep='pose'")
            if normal is not None:
                turn = align_z(as_direction(normal, "normal"))
            sole = None if axis is None else as_direction(axis, "axis")
        super().__init__(
            joint, position=position, rotation=turn, weight=weight, priority=priority, offset=offset, name=name
        )
        self._keep(keep=keep, axis=sole)

    @property
    def place(self) -> int:
        """A position, with the rotation for a full pose."""
        return POSITION | ROTATION if self.keep == "pose" else POSITION

    @property
    def takes(self) -> int:
        """Parts of a target that it takes."""
        return POSITION if self.keep == "point" else POSITION | ROTATION

    @property
    def terms(self) -> tuple[Term, ...]:
        """The direction of the normal, where it is kept."""
        return (Term(kind="contact", angles=3, takes=ROTATION),) if self.keep == "normal" else ()

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with the sole's normal as the z axis of its frame."""
        if self.keep != "normal":
            return self
        axis = self.axis
        if axis is None:
            axis = skeleton.rest_pose().matrix(self.joints[0]).T @ skeleton.up_vector("axis=")
        offset = self.offset.copy()
        offset[:3, :3] = align_z(axis)
        return self._with(offset=offset, axis=axis)

    def sketch(self, view: View) -> Sketch:
        """Return a patch of the ground where the normal is kept, and no rotation there."""
        drawn = super().sketch(view)
        if self.keep != "normal":
            return drawn
        patch = describe.square(view.target[:3, 3], view.target[:3, :3], view.size)
        return dataclasses.replace(drawn, rotation=None, target_rotation=None, paths=[patch])

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return that the whole pose is kept."""
        return {"keep": "pose"}
