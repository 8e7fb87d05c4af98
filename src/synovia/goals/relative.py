"""Together: a joint takes a place in the frame of another joint."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, Goal, Term, as_lengths, pick_pose, pick_rotation, placed
from synovia.goals.describe import Place, Sketch, View
from synovia.model.geometry import Array, as_numbers, as_transform, dimensions, rigid

if TYPE_CHECKING:
    from synovia.model import Skeleton

_PARTS = {"position": POSITION, "rotation": ROTATION, "pose": POSITION | ROTATION}


class RelativeGoal(Goal):
    """A frame on a joint should have a place in the frame of another joint: hand on hip, two hands on one tool, a loop.

    Residual, in the world: the vector to the place and the rotation vector onto the orientation that the other joint
    carries with it (3 or 6 rows). Both joints move.

    Args:
        joint: Name, body, role or row of the joint.
        other: The joint in whose frame the target is.
        position: Position (3,) in the other's frame, length units.
        rotation: Rotation in the other's frame, a ``Rotation`` or a matrix (3, 3).
        transform: Both at once, (4, 4).
        parts: ``"position"``, ``"rotation"`` or ``"pose"``: what to keep as the start has it, where nothing is given.
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in the other order.
        offset: Point (3,) or frame (4, 4) on the joint, in its frame.
        other_offset: Point (3,) or frame (4, 4) on the other joint that stands for it.
        weight: Weight beside goals of the same priority.
        priority: 0 is the highest.
        name: What to call the goal.

    Raises:
        InputError: If a value cannot be used.
    """

    __slots__ = ("other", "other_offset", "parts")
    kind: ClassVar[str] = "relative"
    within_other: ClassVar[bool] = True
    needs: ClassVar[str] = "rows"
    summary: ClassVar[str] = "A frame on a joint should have a place in the frame of another joint."
    fields: ClassVar[tuple[describe.Field, ...]] = (
        describe.plain("other", "joint", describe.OTHER_JOINT, required=True, control=True, label="Other joint"),
        describe.position(text="Position in the other joint's frame.", part=0),
        describe.rotation(text="Rotation in the other joint's frame.", part=0),
        describe.Field(
            name="parts",
            form="choice",
            text="What to keep, where nothing is given.",
            take=lambda goal: goal.parts,
            control=True,
            choices=("position", "rotation", "pose"),
        ),
        describe.offset(),
        describe.offset_rotation(),
        describe.offset("other_offset", describe.OTHER_POINT, held=lambda goal: goal.other_offset),
        describe.offset_rotation("other_offset", "Rotation of the frame on the other joint."),
    )

    other: str | int
    other_offset: Array
    parts: str

    def __init__(
        self,
        joint: str | int,
        other: str | int,
        position: Any = None,
        rotation: Any = None,
        *,
        transform: Any = None,
        parts: str | None = None,
        quat_xyzw: Any = None,
        quat_wxyz: Any = None,
        offset: Any = None,
        other_offset: Any = None,
        weight: float = 1.0,
        priority: int = 0,
        name: str | None = None,
    ) -> None:
        """Check and keep the values."""
        turn = pick_rotation(joint, rotation, quat_xyzw, quat_wxyz)
        position, turn = pick_pose(joint, position, turn, transform)
        with placed(joint):
            if other == joint:
                raise InputError("a joint is measured against itself", value=other, expected="another joint")
            given = POSITION * (position is not None) | ROTATION * (turn is not None)
            if parts is None:
                parts = next((word for word, bits in _PARTS.items() if bits == given), "pose")
            if parts not in _PARTS:
                raise InputError("parts is unknown", value=parts, expected="'position', 'rotation' or 'pose'")
            if given & ~_PARTS[parts]:
                raise InputError("a target is given that parts leaves out", value=parts)
            if other_offset is None or dimensions(other_offset) != 2:
                other_offset = rigid(as_numbers((0, 0, 0) if other_offset is None else other_offset, (3,), "offset"))
            frame = as_transform(other_offset, "other_offset")
            as_lengths(frame[:3, 3], (3,), "other_offset")
        super().__init__(
            joint, position=position, rotation=turn, weight=weight, priority=priority, offset=offset, name=name
        )
        self._keep(other=other, other_offset=frame, parts=parts)

    @property
    def joints(self) -> tuple[str | int, ...]:
        """The joint and the other."""
        return (*super().joints, self.other)

    @property
    def takes(self) -> int:
        """Parts of a target that it takes."""
        return _PARTS[self.parts]

    @property
    def terms(self) -> tuple[Term, ...]:
        """A place, an orientation or both."""
        bits = _PARTS[self.parts]
        lengths, angles = 3 * (bits & POSITION > 0), 3 * (bits & ROTATION > 0)
        return (Term(kind="relative", lengths=lengths, angles=angles, takes=bits, frames=(self.other_offset,)),)

    @property
    def other_joint(self) -> str | int:
        """The other joint."""
        return self.other

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return by how much it is missed, and from where that is seen."""
        return f"{super().describe_miss(length, angle, say)}, seen from {self.other!r}"

    def sketch(self, view: View) -> Sketch:
        """Return where the other joint carries the target, and a line to there."""
        target = view.others[0] @ self.other_offset @ view.target
        path = np.stack([view.others[0][:3, 3], target[:3, 3]])
        return dataclasses.replace(super().sketch(dataclasses.replace(view, target=target)), paths=[path])

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the joint above, else one below, and that the whole pose counts.

        Raises:
            InputError: If it is the only joint.
        """
        near = (skeleton.parents[row], *skeleton.children[row], *range(len(skeleton)))
        other = next((other for other in near if other >= 0 and other != row), None)
        if other is None:
            raise InputError("there is no other joint to measure against", where=skeleton.name)
        return {"other": other, "parts": "pose"}

    @classmethod
    def first_target(cls, place: Place, values: dict[str, Any]) -> Array:
        """Return where the joint is, and let the goal hold its place in the other's frame."""
        offset = values.get("other_offset")
        frame = rigid() if offset is None else rigid(offset) if np.ndim(offset) == 1 else np.asarray(offset)
        held = np.linalg.inv(place.frames(values["other"]) @ frame) @ place.at
        values["position"] = None if values["parts"] == "rotation" else held[:3, 3]
        values["rotation"] = None if values["parts"] == "position" else held[:3, :3]
        return place.at
