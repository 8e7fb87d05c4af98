"""The goal editor: one goal with its target, as the page edits it, and the fields of each kind of goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from synovia.errors import unknown_name
from synovia.files.goals import KINDS
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.goals.describe import Field
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix, rotation_between, times_exp


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of goal that the page offers, derived from the fields of its class.

    Args:
        name: Name on the page, for example ``position``.
        goal: The goal's class.
        position: Name of the argument with the target position; empty for none.
        rotation: Name of the argument with the target rotation; empty for none.
        controls: Fields that have their own control on the page.
        joints: Names of the arguments that are other joints.
        further: Names of the arguments in ``GoalEditor.values``.
        frames: Whether the offset may have a rotation.
    """

    name: str
    goal: type[Goal]
    position: str
    rotation: str
    controls: tuple[Field, ...]
    joints: tuple[str, ...]
    further: tuple[str, ...]
    frames: bool


@cache
def kinds() -> Mapping[str, Kind]:
    """Return the kinds that a goal file can hold, by name."""
    out: dict[str, Kind] = {}
    for kind, goal in KINDS.items():
        name, fields = kind.replace("_", " "), goal.fields
        out[name] = Kind(
            name,
            goal,
            next((field.name for field in fields if field.part == POSITION), ""),
            next((field.name for field in fields if field.part == ROTATION), ""),
            tuple(field for field in fields if field.control),
            tuple(field.name for field in fields if field.form == "joint"),
            tuple(
                field.argument or field.name
                for field in fields
                if not field.part and field.name != "offset" and not field.name.endswith("_rotation")
            ),
            any(field.name == "offset_rotation" for field in fields),
        )
    return MappingProxyType(out)


def kind_of(name: str) -> Kind:
    """Return a kind by name.

    Raises:
        UnknownNameError: If the name is unknown.
    """
    if name not in kinds():
        raise unknown_name("kind of goal", name, kinds())
    return kinds()[name]


@dataclass(slots=True, eq=False)
class GoalEditor:
    """A goal that is edited on the page. The solver gets the eased target, which moves smoothly to the target.

    Args:
        key: Number that identifies the editor.
        kind: Name of its kind.
        row: Joint, a row of the given skeleton; None for the whole body.
        label: Unique name on the page.
        position: Target position, world, (3,), length units.
        rotation: Target rotation, world, (3, 3).
        enabled: Whether the goal is solved.
        weight: Weight among goals of the same priority.
        priority: 0 is the highest; None for a constraint, which comes before all priorities.
        offset: Frame on the joint that moves to the target, (4, 4).
        eased_position: Current position for the solver.
        eased_rotation: Current rotation for the solver.
        values: Other arguments of the goal, by name. Other joints (``other``) are rows of the given skeleton.
        given: Parts of the target that were set explicitly (POSITION, ROTATION). A saved goal omits the others.
        name: Name of the goal; None if it has none.
        idle: Whether the target follows the joint while the goal is off. Moving the target then enables the goal.
        follows: Whether the target follows the joint of the clip while the goal is on. Moving the target ends this.
    """

    key: int
    kind: str
    row: int | None
    label: str
    position: Array = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    enabled: bool = True
    weight: float = 1.0
    priority: int | None = 0
    offset: Array = field(default_factory=lambda: np.eye(4))
    eased_position: Array = field(default_factory=lambda: np.zeros(3))
    eased_rotation: Array = field(default_factory=lambda: np.eye(3))
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    given: int = POSITION | ROTATION
    name: str | None = None
    idle: bool = False
    follows: bool = False

    @property
    def has_position(self) -> bool:
        """Whether the target has a world position to drag; not for a goal relative to a joint, or with a polygon."""
        return bool(kind_of(self.kind).position) and self.values.get("other") is None and "polygon" not in self.values

    @property
    def has_rotation(self) -> bool:
        """Whether the target has a rotation; with a normal, the z axis of this rotation is the normal."""
        return bool(kind_of(self.kind).rotation) and self.values.get("keep") != "point"

    @property
    def has_target(self) -> bool:
        """Whether the scene shows a target of the goal."""
        return self.has_position or self.has_rotation

    def copy(self) -> GoalEditor:
        """Return a copy that shares the arrays, because arrays are replaced but never modified."""
        return replace(self, values=dict(self.values))

    def become(self, other: GoalEditor) -> None:
        """Copy all fields of another editor."""
        for part in fields(self):
            setattr(self, part.name, getattr(other, part.name))

    @property
    def free(self) -> bool:
        """Whether the target currently follows its joint."""
        return self.idle and not self.enabled

    def snap(self) -> None:
        """Set the eased target to the target."""
        self.eased_position, self.eased_rotation = self.position, self.rotation

    def ease(self, part: float, near: float) -> bool:
        """Move the eased target towards the target; return whether the eased target still has to move.

        Args:
            part: Fraction of the distance, 0 to 1.
            near: Distance below which the target counts as reached, length units.
        """
        away = self.position - self.eased_position
        moving = float(np.abs(away).max()) > near
        self.eased_position = self.eased_position + part * away if moving else self.position
        self.eased_rotation, turning = _turned(self.eased_rotation, self.rotation, part)
        return moving or turning

    def target(self) -> Array | tuple[Array, Array] | None:
        """Return the eased target in the form of ``IK.solve``; None if the goal has no target."""
        if self.has_position and self.has_rotation:
            return self.eased_position, self.eased_rotation
        return self.eased_position if self.has_position else self.eased_rotation if self.has_rotation else None

    def goal(self, address: Callable[[int], str | int], *, eased: bool = True, kept: bool = False) -> Goal:
        """Return the goal that this editor describes.

        Args:
            address: Returns the key of a joint from a row of the given skeleton.
            eased: Whether to use the eased target.
            kept: Whether the goal is for saving. It then has the final target, its own name, and only the parts of the
                target that were set explicitly.

        Raises:
            InputError: If a value cannot be used.
        """
        kind, eased = kind_of(self.kind), eased and not kept
        place, turn = (self.eased_position, self.eased_rotation) if eased else (self.position, self.rotation)
        values = {name: value for name, value in self.values.items() if value is not None}
        values |= {name: address(values[name]) for name in kind.joints if name in values}
        values |= {"weight": self.weight, "name": self.name if kept else self.label}
        if kind.goal.has_priority:
            values["priority"] = self.priority
        if kept:
            values.pop("world", None)  # goal files do not store the world
        given = self.given if kept else POSITION | ROTATION
        if kind.name == "pose" and given:  # a pose goal has both parts of the target or neither
            given = POSITION | ROTATION
        if self.has_position:  # with None, a plane goal gets its default position
            values[kind.position] = place if given & POSITION else None
        normal = self.values.get("keep") == "normal"
        if self.has_rotation and given & ROTATION:
            values["normal" if normal else kind.rotation] = turn[:, 2] if normal else turn
        if normal and not kept:
            values["axis"] = self.offset[
                :3, 2
            ]  # not the default, which comes from the rest pose of the goal's skeleton
        if kind.goal.within_other:
            for name, part in (("position", POSITION), ("rotation", ROTATION)):
                if not given & part:
                    values.pop(name, None)
        if kind.frames and self.values.get("keep", "pose") == "pose":
            if not np.array_equal(self.offset, np.eye(4)):
                values["offset"] = self.offset
        elif self.offset[:3, 3].any():
            values["offset"] = self.offset[:3, 3]
        return kind.goal(**values) if self.row is None else kind.goal(address(self.row), **values)


def bounds_of(editor: GoalEditor) -> tuple[float, float] | None:
    """Return the bounds of a range goal's editor; None for other kinds."""
    if not kind_of(editor.kind).goal.bounds_value or editor.row is None:
        return None
    return float(editor.values.get("lower", -math.inf)), float(editor.values.get("upper", math.inf))


def _turned(at: Array, to: Array, part: float) -> tuple[Array, bool]:
    """Interpolate from a rotation towards another; return the result, and whether some rotation remains."""
    if at is to:
        return to, False
    quat = matrix_to_quat(at)
    step = rotation_between(quat, matrix_to_quat(to))
    if float(np.abs(step).max()) <= 1e-4:
        return to, False
    return quat_to_matrix(times_exp(quat, part * step)), True
