"""One goal as the page edits it, and what each kind of goal lets people set."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from synovia import goals
from synovia.errors import UnknownNameError, unknown_name
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.goalentries import FIELDS
from synovia.model import Kind as JointKind
from synovia.model import Skeleton
from synovia.model.geometry import Array

_VECTORS: Final = ("axis", "normal")
_NUMBERS: Final = ("minimum", "maximum")
_ELSEWHERE: Final = ("self", "joint", "weight", "priority", "name", "offset", "transform", "quat_xyzw", "quat_wxyz")
_TARGETS: Final = ("position", "point", "rotation")
JOINTS: Final = ("other", "root", "tip")  # arguments that name a further joint


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of goal that the page offers, read off its class: adding a goal to the library adds it here.

    Args:
        name: What people call it, for example ``position``.
        goal: Its class.
        position: Name of the argument that takes a position that can be dragged, empty for none.
        rotation: Name of the argument that takes a rotation, empty for none.
        whole: Whether it concerns the whole body and no joint.
        other: Whether it needs a second joint (True), takes one (None) or has none (False).
        vectors: Further directions that can be set, with what they are at first.
        numbers: Further numbers that can be set.
        levels: Whether it has a priority.
        further: Names of all arguments that stand in ``GoalEditor.values``.
        frames: Whether its offset may be turned.
    """

    name: str
    goal: type[Goal]
    position: str
    rotation: str
    whole: bool
    other: bool | None
    vectors: tuple[str, ...]
    numbers: tuple[str, ...]
    levels: bool
    further: tuple[str, ...]
    frames: bool


@cache
def kinds() -> Mapping[str, Kind]:
    """Return the kinds of goals, by name."""
    out: dict[str, Kind] = {}
    for word in goals.__all__:
        cls = getattr(goals, word)
        if not (isinstance(cls, type) and issubclass(cls, Goal)) or cls.kind not in FIELDS:
            continue  # what no file can say, a function for example, no page can ask for
        asked = inspect.signature(cls.__init__).parameters
        other = asked["other"].default is inspect.Parameter.empty or None if "other" in asked else False
        kept = other is True  # its target is in the other joint's frame: it keeps what the start has
        out[cls.kind.replace("_", " ")] = Kind(
            cls.kind.replace("_", " "),
            cls,
            "" if kept else next((name for name in ("position", "point") if name in asked), ""),
            "rotation" if "rotation" in asked and not kept else "",
            "joint" not in asked,
            other,
            tuple(name for name in _VECTORS if name in asked and "keep" not in asked),
            tuple(name for name in _NUMBERS if name in asked),
            "priority" in asked,
            tuple(name for name in asked if name not in _ELSEWHERE and (kept or name not in _TARGETS)),
            "rotation" in asked,
        )
    return MappingProxyType(dict(sorted(out.items(), key=lambda item: _ORDER.get(item[0], 9))))


_ORDER: Final = {
    "position": 0,
    "rotation": 1,
    "pose": 2,
    "aim": 3,
    "pole": 4,
    "distance": 5,
    "range": 6,
    "center of mass": 7,
}


def kind_of(name: str) -> Kind:
    """Return a kind by name.

    Raises:
        UnknownNameError: If there is none of that name.
    """
    if name not in kinds():
        raise unknown_name("kind of goal", name, kinds())
    return kinds()[name]


def address(skeleton: Skeleton, row: int) -> str | int:
    """Return how goals and messages name a joint: by its name if that is unique, else by its row."""
    name = skeleton.joint_names[row]
    try:
        return name if skeleton.index(name) == row else row
    except UnknownNameError:
        return row


@dataclass(slots=True, eq=False)
class GoalEditor:
    """A goal as the page edits it, with its target and with the eased target that follows.

    Args:
        key: Number that stays the same while it lives.
        kind: Name of its kind.
        row: Joint, a row of the skeleton that was given; None for the whole body.
        label: What it is called; no two editors share a label.
        position: World position that is asked for, (3,), length units.
        rotation: World rotation that is asked for, (3, 3).
        enabled: Whether it counts.
        weight: Weight beside editors of the same priority.
        priority: 0 is the highest.
        offset: Frame on the joint that should meet the target, (4, 4).
        eased_position: Position that the solver is asked for now.
        eased_rotation: Rotation that the solver is asked for now.
        values: What else its kind has, by the name of the argument; further joints as rows of the skeleton that was
            given, for example ``other``.
        given: Parts of the target that were given or moved to (POSITION, ROTATION); a goal file leaves out the others.
        name: What the goal itself is called, None where it has no name.
        idle: Whether it follows its joint while it is off, and is switched on by being moved.
    """

    key: int
    kind: str
    row: int | None
    label: str
    position: Array = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    enabled: bool = True
    weight: float = 1.0
    priority: int = 0
    offset: Array = field(default_factory=lambda: np.eye(4))
    eased_position: Array = field(default_factory=lambda: np.zeros(3))
    eased_rotation: Array = field(default_factory=lambda: np.eye(3))
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    given: int = POSITION | ROTATION
    name: str | None = None
    idle: bool = False

    @property
    def has_position(self) -> bool:
        """Whether it has a position that can be dragged: not beside another joint or a polygon."""
        return bool(kind_of(self.kind).position) and self.values.get("other") is None and "polygon" not in self.values

    @property
    def has_rotation(self) -> bool:
        """Whether it has a rotation that can be turned; of a normal that is kept, it is the z axis."""
        return bool(kind_of(self.kind).rotation) and self.values.get("keep") != "point"

    def copy(self) -> GoalEditor:
        """Return a copy that shares nothing that changes: arrays are replaced, never written."""
        return replace(self, values=dict(self.values))

    def become(self, other: GoalEditor) -> None:
        """Copy all fields of another editor."""
        for part in fields(self):
            setattr(self, part.name, getattr(other, part.name))

    @property
    def free(self) -> bool:
        """Whether it follows its joint now."""
        return self.idle and not self.enabled

    def snap(self) -> None:
        """Move the eased target to the target at once."""
        self.eased_position, self.eased_rotation = self.position, self.rotation

    def ease(self, part: float, near: float) -> bool:
        """Move the eased target a part of the way to the target; return whether some of the way is left.

        Args:
            part: From 0 to 1.
            near: Length that counts as arrived.
        """
        away = self.position - self.eased_position
        moving = float(np.abs(away).max()) > near
        self.eased_position = self.eased_position + part * away if moving else self.position
        self.eased_rotation, turning = _turned(self.eased_rotation, self.rotation, part)
        return moving or turning

    def target(self) -> Array | tuple[Array, Array] | None:
        """Return the eased target as ``IK.solve`` takes it, None where the goal takes none."""
        if self.has_position and self.has_rotation:
            return self.eased_position, self.eased_rotation
        return self.eased_position if self.has_position else self.eased_rotation if self.has_rotation else None

    def goal(self, address: Callable[[int], str | int], *, eased: bool = True, kept: bool = False) -> Goal:
        """Return the goal.

        Args:
            address: From a row of the skeleton that was given to what the goal calls that joint.
            eased: Whether with the eased target, and not the one that is asked for.
            kept: Whether to be saved: with the target that is asked for, under its own name, and without parts of the
                target that were not given.

        Raises:
            InputError: If a value cannot be used.
        """
        kind, eased = kind_of(self.kind), eased and not kept
        place, turn = (self.eased_position, self.eased_rotation) if eased else (self.position, self.rotation)
        values = {name: value for name, value in self.values.items() if value is not None}
        values |= {name: address(values[name]) for name in JOINTS if name in values}
        values |= {"weight": self.weight, "name": self.name if kept else self.label}
        if kind.levels:
            values["priority"] = self.priority
        given = self.given if kept else POSITION | ROTATION
        if kind.name == "pose" and given:  # both or neither
            given = POSITION | ROTATION
        if self.has_position:  # a plane has a place of its own, where none is given
            values[kind.position] = place if given & POSITION else None
        normal = self.values.get("keep") == "normal"
        if self.has_rotation and given & ROTATION:
            values["normal" if normal else kind.rotation] = turn[:, 2] if normal else turn
        if normal and not kept:
            values["axis"] = self.offset[:3, 2]  # as the skeleton that was given has it at rest
        if kind.other is True:
            for name, part in (("position", POSITION), ("rotation", ROTATION)):
                if not given & part:
                    values.pop(name, None)
        if kind.frames and self.values.get("keep", "pose") == "pose":
            if not np.array_equal(self.offset, np.eye(4)):
                values["offset"] = self.offset
        elif self.offset[:3, 3].any():
            values["offset"] = self.offset[:3, 3]
        return kind.goal(**values) if self.row is None else kind.goal(address(self.row), **values)


def value_ends(skeleton: Skeleton, row: int) -> tuple[float, float]:
    """Return the interval from which the range of a joint is chosen, radians or length units.

    Raises:
        InputError: If the joint has no value of its own.
    """
    joint = skeleton.joints[row]
    if joint.kind is JointKind.BALL:
        return 0.0, math.pi
    if joint.kind not in (JointKind.HINGE, JointKind.SLIDE):
        goals.RangeGoal(row, 0.0).resolved(skeleton)  # says why not
    low, high = skeleton.value_range(row)
    far = math.pi if joint.kind is JointKind.HINGE else skeleton.size or 1.0
    return (low if math.isfinite(low) else min(-far, high - far)), (
        high if math.isfinite(high) else max(far, low + far)
    )


def bounds_of(editor: GoalEditor) -> tuple[float, float] | None:
    """Return the bounds of a range goal's editor, None for other kinds."""
    if editor.kind != goals.RangeGoal.kind or editor.row is None:
        return None
    return float(editor.values.get("lower", -math.inf)), float(editor.values.get("upper", math.inf))


def _turned(at: Array, to: Array, part: float) -> tuple[Array, bool]:
    """Return a rotation part of the way to another, and whether some of the way is left."""
    if at is to:
        return to, False
    from scipy.spatial.transform import Rotation

    step = Rotation.from_matrix(to @ at.T).as_rotvec()
    if float(np.abs(step).max()) <= 1e-4:
        return to, False
    return Rotation.from_rotvec(part * step).as_matrix() @ at, True
