"""Together: a joint takes a place in the frame of another joint."""

from __future__ import annotations

from typing import Any, ClassVar

from synovia.errors import InputError
from synovia.goals.base import POSITION, ROTATION, Goal, Term, as_lengths, pick_pose, pick_rotation, placed
from synovia.model.geometry import Array, as_numbers, as_transform, dimensions, rigid

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
    def terms(self) -> tuple[Term, ...]:
        """A place, an orientation or both."""
        bits = self.takes
        lengths, angles = 3 * (bits & POSITION > 0), 3 * (bits & ROTATION > 0)
        return (Term(kind="relative", lengths=lengths, angles=angles, takes=bits, frames=(self.other_offset,)),)

    @property
    def takes(self) -> int:
        """A position, a rotation or both."""
        return _PARTS[self.parts]

    @property
    def measures(self) -> int:
        """A length, an angle or both."""
        return self.takes
