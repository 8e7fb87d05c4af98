"""Rest: keep joints near a reference pose, as far as all other goals allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from synovia.arguments import as_call
from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import Goal
from synovia.model import Kind, Pose
from synovia.model.geometry import is_number
from synovia.model.motion import Motion
from synovia.model.root import free_root

if TYPE_CHECKING:
    from synovia.model import Skeleton


def _joints_of(goal: Any) -> dict[str, float] | list[str | int] | None:
    """Return the joints of a rest goal; with their factors unless all factors are 1."""
    if goal.parts is None or all(part == 1.0 for part in goal.parts.values()):
        return None if goal.parts is None else list(goal.parts)
    return {_named(goal, joint): float(part) for joint, part in goal.parts.items()}


def _values_of(goal: Any) -> dict[str, float | list[float]] | None:
    """Return the reference values that were given to a rest goal, by joint name.

    Raises:
        UnsupportedError: If a joint has no unique name.
    """
    pose = goal.pose
    if isinstance(pose, Pose):
        names = pose.skeleton.joint_names
        if len(set(names)) < len(names):
            raise describe.cannot_store(goal, "values of joints that share a name", "joints with names of their own")
        slices = [pose.skeleton.q_slice(row) for row in range(len(names))]
        values = {name: pose.q[part] for name, part in zip(names, slices, strict=True) if part.stop > part.start}
    elif pose is None or isinstance(pose, Mapping):
        values = dict(cast("Mapping[str | int, Any]", pose or {}))
    else:
        raise describe.cannot_store(goal, "joint values without names", "a Pose, or values by name")
    rows = {_named(goal, joint): np.asarray(value, float).reshape(-1).tolist() for joint, value in values.items()}
    return {name: row[0] if len(row) == 1 else row for name, row in rows.items()} or None


def _named(goal: Goal, joint: object) -> str:
    """Return the name of a joint for use as a key in a file."""
    if not isinstance(joint, str):
        raise describe.cannot_store(goal, f"values by row ({joint!r})", "the joint's name")
    return joint


class RestGoal(Goal):
    """Joints should stay near a reference pose. It comes after all other goals, and has no effect on the status.

    It minimizes Σ w (q - r)² (for a ball, with the angle between the rotations) in the null space of the other goals.
    Here r is the reference and w = weight · the joint's factor in ``joints`` · (1 + the joint's stiffness).

    Args:
        pose: The reference: a ``Pose``, joint values (nq,), or values of some joints by name, as in ``{"knee": 0.3}``;
            for ``track`` also a ``Motion``, whose pose at each frame is the reference of that frame. By default a joint
            uses its preferred value, else its rest value.
        joints: Joints of the goal, or a mapping from joints to factors (0 or more); None for all except free joints.
        root: Factor of a root that may move: the free root of the skeleton, or the joints that ``root=`` of ``solve``
            and ``IK`` adds. 0 omits the root, so that the body drifts and rotates as the other goals pull it.
        weight: Strength; 1 is the strongest that does not slow a solver down.
        name: What to call the goal.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.RestGoal({"joint1": 0.5}, joints=["joint1"])]
        >>> solution = sy.solve(sy.bundled("arm7"), goals, "full-body")
        >>> solution.reached, round(solution.pose["joint1"], 2)
        (True, 0.5)
    """

    kind = "rest"
    summary = "Joints should stay near reference values, as far as all other goals leave them free."
    fields = (
        describe.Field(
            name="joints",
            form="parts",
            text="Joints that it concerns, or their parts; all if left out.",
            take=_joints_of,
            held=lambda goal: goal.parts,
        ),
        describe.Field(
            name="values",
            form="values",
            text="Reference values of joints, radians or length units, xyzw for balls; at rest if left out.",
            take=_values_of,
            argument="pose",
            held=lambda goal: goal.pose,
        ),
        describe.attribute("root", "length", "Factor of a root that may move; 0 leaves it out.", default=0.0),
    )
    needs = "rest"
    on_joint = False
    has_priority = False

    parts: dict[str | int, float] | None
    pose: Any
    root: float

    def __init__(
        self,
        pose: Pose | Motion | Any = None,
        *,
        joints: Mapping[str | int, float] | Any = None,
        root: float = 0.0,
        weight: float = 1.0,
        name: str | None = None,
    ) -> None:
        """Check and store the values."""
        super().__init__(None, weight=weight, name=name)
        pairs: list[tuple[Any, Any]] = []
        if isinstance(joints, Mapping):
            pairs = list(cast("Mapping[Any, Any]", joints).items())
        elif isinstance(joints, Iterable) and not isinstance(joints, str):
            pairs = [(joint, 1.0) for joint in cast("Iterable[Any]", joints)]
        elif joints is not None:
            pairs = [(joints, 1.0)]
        for joint, part in pairs:
            if not isinstance(joint, str | int | np.integer):
                raise InputError("joints", where="rest goal", value=joint, expected="names or rows of joints")
            if not is_number(part) or not 0.0 <= part < math.inf:
                raise InputError(f"factor of {joint!r}", where="rest goal", value=part, expected="0 or more")
        parts = None if joints is None else {joint: float(part) for joint, part in pairs}
        if not is_number(root) or not 0.0 <= root < math.inf:
            raise InputError("root", where="rest goal", value=root, expected="a factor, 0 or more")
        self._keep(parts=parts, pose=pose, root=float(root))

    def __repr__(self) -> str:
        """Return the call that creates the goal, without defaults."""
        return as_call(self, {**self._values(), "joints": self.parts})

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with its reference values and the weight of each joint."""
        if self.pose is None or isinstance(self.pose, Mapping):
            q = skeleton.rest_q.copy()
            for row, joint in enumerate(skeleton.joints):
                if joint.preferred is not None:
                    q[skeleton.q_slice(row)] = joint.preferred
            pose = Pose(skeleton, Pose(skeleton, skeleton.follow(q)).inside[0])
            q = pose.with_values(dict(cast("Mapping[str, Any]", self.pose or {}))).q  # pyright: ignore[reportUnknownMemberType]
        else:
            if isinstance(self.pose, Pose | Motion) and self.pose.skeleton.joint_names != skeleton.joint_names:
                raise InputError(
                    f"skeleton of the {'pose' if isinstance(self.pose, Pose) else 'motion'}",
                    where="rest goal",
                    value=self.pose.skeleton,
                    expected=repr(skeleton),
                )
            q = self.pose.q if isinstance(self.pose, Motion) else Pose(
                skeleton, self.pose.q if isinstance(self.pose, Pose) else self.pose
            ).q  # fmt: skip
        shares = np.zeros(len(skeleton))
        if self.parts is None:
            shares[:] = [joint.kind is not Kind.FREE for joint in skeleton.joints]
        else:
            for row, part in skeleton.by_row(self.parts, "factors").items():
                shares[row] = part
            held = [skeleton.joints[row].kind is Kind.FIXED for row in np.flatnonzero(shares).tolist()]
            if held and all(held):
                names = ", ".join(repr(joint) for joint in self.parts)
                hint = "name joints that move"
                raise InputError(f"rest goal has no effect: {names} cannot move", where=skeleton.name, hint=hint)
        free = free_root(skeleton.joints, skeleton.parents)
        if free is not None and self.root > 0.0:
            shares[free] = self.root
        shares *= [self.weight * (1.0 + joint.stiffness) for joint in skeleton.joints]
        return self._with(preference=(shares, q, 0.0 if free is not None else self.root * self.weight))
