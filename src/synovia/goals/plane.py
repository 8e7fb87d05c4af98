"""Plane: keep a joint on one side of a plane, such as above the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar
from typing import TYPE_CHECKING, Any

import numpy as np

from synovia.goals import describe
from synovia.goals.base import POSITION, ROTATION, Goal, Term, as_offset, goal_class
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, align_z, as_direction, rigid

if TYPE_CHECKING:
    from synovia.model import Pose, Skeleton
    from synovia.model.shapes.world import World


def _point_of(goal: Goal) -> Array:
    """Return the point of the plane that was given.

    Raises:
        UnsupportedError: If the plane passes through the start position, which a goal file cannot store.
    """
    point = describe.position_of(goal)
    if point is None:
        raise describe.cannot_store(goal, "a plane at the start position", "a point")
    return point


@goal_class
class PlaneGoal(Goal):
    """A point on a joint should be on the side of a plane to which the normal points.

    Residual: max(0, n·(c - p)), the depth of the point p behind the plane through c (1 row, length units).

    Args:
        point: World point (3,) on the plane, length units; None for the joint's own position at the start.
        normal: World direction (3,) to the allowed side; None for the upward direction.
        offset: Point on the joint, (3,), in its frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> above = sy.PlaneGoal("joint4", (0.0, 0.0, 0.5), (0, 0, 1))  # the elbow stays above z = 0.5
        >>> sy.solve(sy.bundled("arm7"), [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), above]).reached
        True
    """

    kind = "plane"
    needs = "rows"
    summary = (
        "A point on a joint should be on the side of a plane that its normal points to; if left out, above the ground."
    )
    fields = (
        describe.Field(name="point", form="point", text=describe.POINT, take=_point_of, part=POSITION),
        describe.Field(name="normal", form="direction", text=describe.DIRECTION, take=describe.normal_of, control=True),
        describe.offset(),
    )

    point: InitVar[Any] = (0.0, 0.0, 0.0)
    normal: InitVar[Any] = None
    _: KW_ONLY
    offset: Any = None

    def __post_init__(self, point: Any, normal: Any) -> None:
        """Check the values; the normal becomes the z axis of the target."""
        super().__post_init__()
        turn = None if normal is None else align_z(as_direction(normal, "normal"))
        self._aim_at(point, turn)

    @classmethod
    def on(
        cls,
        joint: str | int,
        world: World,
        pose: Pose,
        *,
        obstacle: str | None = None,
        offset: Any = None,
        weight: float = 1.0,
        priority: int = 0,
        name: str | None = None,
    ) -> PlaneGoal:
        """Return a goal that keeps a point on a joint outside an obstacle, on the side where it is in a pose.

        The plane is that of ``World.planes``: it touches the obstacle at the place nearest to the point in the pose,
        and does not move with the point. For a track, pass the planes of each frame as targets.

        Args:
            joint: The joint.
            world: The world, in the unit and axes of the body.
            pose: The pose, such as the start.
            obstacle: Name of the obstacle; None for the one nearest to the point.
            offset: Point on the joint, (3,), in its frame.
            weight: As for every goal.
            priority: As for every goal.
            name: As for every goal.

        Raises:
            InputError: If the world has no obstacles.
            UnknownNameError: If there is no such joint or obstacle.

        Example:
            >>> import synovia as sy
            >>> arm, table = sy.bundled("arm7"), sy.World({"table": sy.Box(center=(0.5, 0, 0.2), size=(0.6, 1, 0.04))})
            >>> above = sy.PlaneGoal.on("joint6", table, arm.rest_pose())
            >>> sy.solve(arm, [sy.PositionGoal("tool", (0.5, 0.1, 0.4)), above]).reached
            True
        """
        frame = pose.transform(joint) @ as_offset(offset)
        plane = world.matched(pose.skeleton).planes(frame[None, :3, 3], obstacle)[0]
        return cls(joint, plane[:3, 3], plane[:3, 2], offset=offset, weight=weight, priority=priority, name=name)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual: one length."""
        return (Term(kind="plane", lengths=1, takes=POSITION | ROTATION),)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with the normal of its plane."""
        if self.given & ROTATION:
            return self
        target = rigid() if self.target is None else self.target.copy()
        target[:3, :3] = align_z(skeleton.up_vector("normal="))
        return self._with(target=target, given=self.given | ROTATION)

    def part_way(self, now: Array, others: Sequence[Array], target: Array, weight: Array) -> Array | None:
        """Interpolate from the plane through the point to the target plane; for points in front, return the target."""
        normal = target[:, :3, 2]
        depth = np.minimum(np.sum((now[:, :3, 3] - target[:, :3, 3]) * normal, axis=1), 0.0)
        out = target.copy()
        out[:, :3, 3] += ((1.0 - weight) * depth)[:, None] * normal
        return out

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text with the depth of the point behind the plane."""
        return f"is {say(length)} behind its plane"

    def sketch(self, view: View) -> Sketch:
        """Return a square on the plane under the point."""
        p, turn = view.at[:3, 3], view.target[:3, :3]
        foot = p - (p - view.target[:3, 3]) @ turn[:, 2] * turn[:, 2]
        return Sketch(target=None if view.reached else foot, paths=[describe.square(foot, turn, view.size)])

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the argument ``normal`` of a new goal: the upward direction."""
        return {"normal": tuple(up.tolist())}
