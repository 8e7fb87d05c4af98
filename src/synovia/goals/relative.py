"""Relative: bring a joint to a pose in the frame of another joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, Goal, Term, as_offset, as_pose, goal_class
from synovia.goals.describe import Place, Sketch, View
from synovia.model.geometry import Array, rigid

if TYPE_CHECKING:
    from synovia.model import Skeleton

_PARTS = {"position": POSITION, "rotation": ROTATION, "pose": POSITION | ROTATION}


@goal_class
class RelativeGoal(Goal):
    """A frame on a joint should have a pose in the frame of another joint: hand on hip, two hands on one tool, a loop.

    Residual, in the world: the vector to the target position and the rotation vector to the target orientation, which
    move with the other joint (3 or 6 rows). Both joints may move.

    Args:
        other: The joint in whose frame the target is.
        position: Position (3,) in the other's frame, length units.
        rotation: Rotation in the other's frame, a ``Rotation`` or a matrix (3, 3).
        transform: Position and rotation at once, (4, 4).
        parts: ``"position"``, ``"rotation"`` or ``"pose"``: the part to keep as in the start if no target is given.
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in wxyz order.
        offset: Point (3,) or frame (4, 4) on the joint, in its frame.
        other_offset: Point (3,) or frame (4, 4) on the other joint that replaces its own.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> hand_on_hip = sy.RelativeGoal("right_hand", "hips", (-0.2, 0.05, 0.1))
        >>> sy.solve(sy.bundled("humanoid"), hand_on_hip).reached
        True
    """

    kind = "relative"
    within_other = True
    needs = "rows"
    summary = "A frame on a joint should have a place in the frame of another joint."
    fields = (
        describe.attribute("other", "joint", describe.OTHER_JOINT, required=True, control=True, label="Other joint"),
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
    position: InitVar[Any] = None
    rotation: InitVar[Any] = None
    _: KW_ONLY
    transform: InitVar[Any] = None
    parts: Any = None
    quat_xyzw: InitVar[Any] = None
    quat_wxyz: InitVar[Any] = None
    offset: Any = None
    other_offset: Any = None  # converted to a frame (4, 4)

    def __post_init__(self, position: Any, rotation: Any, transform: Any, quat_xyzw: Any, quat_wxyz: Any) -> None:
        """Check the values."""
        super().__post_init__()
        place, turn = as_pose(position, rotation, transform, quat_xyzw, quat_wxyz)
        if self.other == self.joint:
            raise InputError("other", value=self.other, expected="another joint")
        given = POSITION * (place is not None) | ROTATION * (turn is not None)
        parts = self.parts
        if parts is None:
            parts = next((word for word, bits in _PARTS.items() if bits == given), "pose")
        if not isinstance(parts, str) or parts not in _PARTS:
            raise InputError("parts", value=parts, expected="'position', 'rotation' or 'pose'")
        if given & ~_PARTS[parts]:
            raise InputError("parts", value=parts, expected="no target for what parts leaves out")
        self._keep(parts=parts, other_offset=as_offset(self.other_offset, "other_offset"))
        self._aim_at(place, turn)

    @property
    def joints(self) -> tuple[str | int, ...]:
        """The goal's joint and the other joint."""
        return (*super().joints, self.other)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual: a position, an orientation or both."""
        bits = _PARTS[self.parts]
        lengths, angles = 3 * (bits & POSITION > 0), 3 * (bits & ROTATION > 0)
        return (Term(kind="relative", lengths=lengths, angles=angles, takes=bits, frames=(self.other_offset,)),)

    @property
    def other_joint(self) -> str | int:
        """The other joint, in whose frame the target is."""
        return self.other

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text about the size of the miss and the frame in which it is measured."""
        return f"{super().describe_miss(length, angle, say)} relative to {self.other!r}"

    def met_at(self, now: Array, others: Sequence[Array]) -> Array | None:
        """Return the goal's frame relative to the frame on the other joint: the target that the poses meet."""
        back: Array = np.linalg.inv(np.asarray(others[0] @ self.other_offset))
        return back @ now

    def sketch(self, view: View) -> Sketch:
        """Return the target in the world, and a line to it from the other joint."""
        target = view.others[0] @ self.other_offset @ view.target
        path = np.stack([view.others[0][:3, 3], target[:3, 3]])
        return replace(super().sketch(replace(view, target=target)), paths=[path])

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the arguments of a new goal: another joint (the joint above, else one below), and the whole pose.

        Raises:
            InputError: If the skeleton has no other joint.
        """
        near = (skeleton.parents[row], *skeleton.children[row], *range(len(skeleton)))
        other = next((other for other in near if other >= 0 and other != row), None)
        if other is None:
            raise InputError("relative goal", where=skeleton.name, expected="a skeleton with another joint")
        return {"other": other, "parts": "pose"}

    @classmethod
    def first_target(cls, place: Place, values: dict[str, Any]) -> Array:
        """Return the current pose as target, and set it relative to the other joint in ``values``."""
        offset = values.get("other_offset")
        frame = rigid() if offset is None else rigid(offset) if np.ndim(offset) == 1 else np.asarray(offset)
        held = np.linalg.inv(place.frames(values["other"]) @ frame) @ place.at
        values["position"] = None if values["parts"] == "rotation" else held[:3, 3]
        values["rotation"] = None if values["parts"] == "position" else held[:3, :3]
        return place.at
