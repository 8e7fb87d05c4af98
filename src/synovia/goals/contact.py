"""Contact: keep a foot planted."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, replace
from typing import TYPE_CHECKING, Any

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, Goal, Term, as_pose, goal_class
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, align_z, as_direction

if TYPE_CHECKING:
    from synovia.model import Skeleton


@goal_class
class ContactGoal(Goal):
    """A joint should stay in contact: its point, its point and the normal of its sole, or its full pose.

    Residual: the vector to the target position (3 rows). With ``keep="normal"``, also the rotation vector that takes
    the sole's normal to the target normal; the rotation about it is free (6 rows). With ``keep="pose"``, also the
    rotation vector to the target orientation (6 rows). Missing values stay as in the start.

    Args:
        position: World position (3,), length units.
        rotation: World rotation, a ``Rotation`` or a matrix (3, 3), for a full pose.
        keep: ``"point"``, ``"normal"`` or ``"pose"``; None for ``"normal"`` if a normal or axis is given, else
            ``"pose"``.
        normal: Target of the sole's normal, world direction (3,), such as the normal of the ground.
        axis: The sole's normal in the joint's frame, (3,); None for the direction that points up at rest.
        transform: Position and rotation at once, (4, 4).
        quat_xyzw: The rotation as a unit quaternion.
        quat_wxyz: The same in wxyz order.
        offset: Point (3,) on the joint, in its frame; for a full pose also a frame (4, 4).

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> goals = [sy.ContactGoal("left_foot"), sy.ContactGoal("right_foot"), sy.PositionGoal("hips", (0, 0.9, 0))]
        >>> sy.solve(sy.bundled("humanoid"), goals, root="free").reached
        True
    """

    kind = "contact"
    needs = "rows"
    summary = "A joint should stay planted: its point, its point and the normal of its sole, or its full pose."
    fields = (
        describe.Field(
            name="keep",
            form="choice",
            text="What stays; the pose if left out.",
            take=lambda goal: goal.keep,
            default="pose",
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
        describe.attribute("axis", "direction", describe.AXIS),
        describe.offset(),
        describe.Field(
            name="offset_rotation",
            form="rotation",
            text="Rotation of the frame on the joint that should meet the target.",
            take=lambda goal: describe.rotation_in(goal.offset) if goal.keep == "pose" else None,
        ),
    )

    position: InitVar[Any] = None
    rotation: InitVar[Any] = None
    _: KW_ONLY
    keep: str | None = None
    normal: InitVar[Any] = None
    axis: Any = None
    transform: InitVar[Any] = None
    quat_xyzw: InitVar[Any] = None
    quat_wxyz: InitVar[Any] = None
    offset: Any = None

    def __post_init__(
        self, position: Any, rotation: Any, normal: Any, transform: Any, quat_xyzw: Any, quat_wxyz: Any
    ) -> None:
        """Check the values; a normal becomes the z axis of the target."""
        super().__post_init__()
        keep, axis = self.keep, self.axis
        place, turn = as_pose(position, rotation, transform, quat_xyzw, quat_wxyz)
        if keep is None:
            keep = "normal" if normal is not None or axis is not None else "pose"
        if not isinstance(keep, str) or keep not in ("point", "normal", "pose"):
            raise InputError("keep", value=keep, expected="'point', 'normal' or 'pose'")
        if keep != "normal" and (normal is not None or axis is not None):
            raise InputError("keep", value=keep, expected="'normal' where normal= or axis= is given")
        if keep != "pose" and turn is not None:
            raise InputError("keep", value=keep, expected="'pose' where a rotation is given")
        if normal is not None:
            turn = align_z(as_direction(normal, "normal"))
        self._keep(keep=keep, axis=None if axis is None else as_direction(axis, "axis"))
        self._aim_at(place, turn)

    @property
    def constrained_parts(self) -> int:
        """POSITION; for a full pose, also ROTATION."""
        return POSITION | ROTATION if self.keep == "pose" else POSITION

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual with ``keep="normal"``: the direction of the sole's normal."""
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
        """Return the marks; with ``keep="normal"``, a square on the ground replaces the rotation."""
        drawn = super().sketch(view)
        if self.keep != "normal":
            return drawn
        patch = describe.square(view.target[:3, 3], view.target[:3, :3], view.size)
        return replace(drawn, rotation=None, target_rotation=None, paths=[patch])

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the arguments of a new goal, which keeps the whole pose of the joint."""
        return {"keep": "pose"}
