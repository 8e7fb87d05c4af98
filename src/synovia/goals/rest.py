"""Rest: joints stay near the values of a reference pose, as far as all other goals leave them free."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from synovia.errors import InputError
from synovia.goals.base import Goal
from synovia.model import Kind, Pose
from synovia.model.geometry import Array

if TYPE_CHECKING:
    from synovia.model import Skeleton


class RestGoal(Goal):
    """Joints should be near a reference pose. It comes after all other goals, and never decides whether one is reached.

    It asks for the least Σ w (q - r)² (for a ball: of the angle between) that the other goals allow, where r is the
    reference and w = weight · the joint's part in ``joints`` · (1 + the joint's own stiffness).

    Args:
        pose: The reference: a ``Pose``, joint values (nq,), or some joints' values by name, such as ``{"knee": 0.3}``.
            What is not given is each joint's preferred value, or its rest value.
        joints: Joints that it concerns, or a mapping from joints to their parts (0 or more); None for all but free
            joints.
        weight: How hard it pulls: 1 is as strong as it can be without slowing a solver down.
        name: What to call the goal.

    Raises:
        InputError: If a value cannot be used.
    """

    __slots__ = ("parts", "pose", "reference", "shares")
    kind: ClassVar[str] = "rest"

    parts: dict[str | int, float] | None
    pose: Any
    reference: Array | None  # (nq,), once it is resolved
    shares: Array | None  # (n,) weight of each joint, once it is resolved

    def __init__(
        self,
        pose: Pose | Any = None,
        *,
        joints: Mapping[str | int, float] | Any = None,
        weight: float = 1.0,
        name: str | None = None,
    ) -> None:
        """Check and keep the values."""
        super().__init__(None, weight=weight, name=name)
        parts: dict[str | int, float] | None = None
        if isinstance(joints, Mapping):
            parts = dict(cast("Mapping[str | int, float]", joints))
        elif isinstance(joints, str | int):
            parts = {joints: 1.0}
        elif joints is not None:
            parts = dict.fromkeys(cast("list[str | int]", list(joints)), 1.0)
        for joint, part in (parts or {}).items():
            if isinstance(part, bool) or not isinstance(part, int | float) or not 0.0 <= part < math.inf:
                raise InputError(
                    f"part of {joint!r} cannot be used", where="rest goal", value=part, expected="0 or more"
                )
        self._keep(parts=parts, pose=pose, reference=None, shares=None)

    @property
    def joints(self) -> tuple[str | int, ...]:
        """None: it concerns the whole body."""
        return ()

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with the reference and the weight of each joint."""
        if self.pose is None or isinstance(self.pose, Mapping):
            q = skeleton.rest_q.copy()
            for row, joint in enumerate(skeleton.joints):
                if joint.preferred is not None:
                    q[skeleton.q_slice(row)] = joint.preferred
            pose = Pose(skeleton, Pose(skeleton, skeleton.follow(q)).inside[0])
            q = pose.with_values(dict(cast("Mapping[str, Any]", self.pose or {}))).q  # pyright: ignore[reportUnknownMemberType]
        else:
            if isinstance(self.pose, Pose) and self.pose.skeleton.joint_names != skeleton.joint_names:
                raise InputError(
                    "the pose is of another skeleton",
                    where="rest goal",
                    value=self.pose.skeleton,
                    expected=repr(skeleton),
                )
            q = Pose(skeleton, self.pose.q if isinstance(self.pose, Pose) else self.pose).q
        shares = np.zeros(len(skeleton))
        if self.parts is None:
            shares[:] = [joint.kind is not Kind.FREE for joint in skeleton.joints]
        else:
            for joint, part in self.parts.items():
                shares[skeleton.index(joint)] = part
        shares *= [self.weight * (1.0 + joint.stiffness) for joint in skeleton.joints]
        return self._with(reference=q.copy(), shares=shares)
