"""A wish: one goal as the page edits it, and what each kind of goal lets people set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from synovia.errors import UnknownNameError, unknown_name
from synovia.files.goals import KINDS
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.model import Skeleton
from synovia.model.geometry import Array

JOINTS: Final = ("other", "root", "tip")  # arguments that name a further joint


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of goal that the page offers, as its class describes it.

    Args:
        name: What people call it, for example ``position``.
        goal: Its class.
        place: Name of the argument that takes a position that can be dragged, empty for none.
        turn: Name of the argument that takes a rotation, empty for none.
        whole: Whether it concerns the whole body and no joint.
        other: Whether it needs a second joint (True), takes one (None) or has none (False).
        vectors: Further directions that can be set, with what they are at first.
        numbers: Further numbers that can be set.
        levels: Whether it has a priority.
        further: Names of all arguments that stand in ``Wish.values``.
        frames: Whether its offset may be turned.
    """

    name: str
    goal: type[Goal]
    place: str
    turn: str
    whole: bool
    other: bool | None
    vectors: tuple[str, ...]
    numbers: tuple[str, ...]
    levels: bool
    further: tuple[str, ...]
    frames: bool


@cache
def kinds() -> Mapping[str, Kind]:
    """Return the kinds of goals, by name: those that a goal file can hold."""
    out: dict[str, Kind] = {}
    for kind, goal in KINDS.items():
        name, fields = kind.replace("_", " "), goal.fields
        others = [field.required for field in fields if field.name == "other"]
        out[name] = Kind(
            name,
            goal,
            next((field.name for field in fields if field.part == POSITION), ""),
            next((field.name for field in fields if field.part == ROTATION), ""),
            not goal.on_joint,
            (others[0] or None) if others else False,
            tuple(field.name for field in fields if field.control and field.form == "direction"),
            tuple(field.name for field in fields if field.control and field.form == "length"),
            goal.levels,
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
        UnknownNameError: If there is none of that name.
    """
    if name not in kinds():
        raise unknown_name("kind of goal", name, kinds())
    return kinds()[name]


def address(skeleton: Skeleton, row: int) -> str | int:
    """Return what a goal and its messages call a joint: its name where it means that joint alone, else its row."""
    name = skeleton.joint_names[row]
    try:
        return name if skeleton.index(name) == row else row
    except UnknownNameError:
        return row


def _origin() -> Array:
    return np.zeros(3)


def _unturned() -> Array:
    return np.eye(3)


@dataclass(slots=True, eq=False)
class Wish:
    """A goal as the page edits it: where it is asked to be, and where the eased target is by now.

    Args:
        key: Number that stays the same while it lives.
        kind: Name of its kind.
        row: Joint, a row of the skeleton that was given; None for the whole body.
        label: What it is called; no two wishes share a label.
        place: World position that is asked for, (3,), length units.
        turn: World rotation that is asked for, (3, 3).
        enabled: Whether it counts.
        weight: Weight beside wishes of the same priority.
        priority: 0 is the highest.
        offset: Frame on the joint that should meet the target, (4, 4).
        at_place: Position that the solver is asked for now.
        at_turn: Rotation that the solver is asked for now.
        values: What else its kind has, by the name of the argument; further joints as rows of the skeleton that was
            given, for example ``other``.
        told: Parts of the target that were given or moved to (POSITION, ROTATION); a goal file leaves out the others.
        name: What the goal itself is called, None where it has no name.
        idle: Whether it follows its joint while it is off, and is switched on by being moved.
    """

    key: int
    kind: str
    row: int | None
    label: str
    place: Array = field(default_factory=_origin)
    turn: Array = field(default_factory=_unturned)
    enabled: bool = True
    weight: float = 1.0
    priority: int = 0
    offset: Array = field(default_factory=lambda: np.eye(4))
    at_place: Array = field(default_factory=_origin)
    at_turn: Array = field(default_factory=_unturned)
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    told: int = POSITION | ROTATION
    name: str | None = None
    idle: bool = False

    @property
    def places(self) -> bool:
        """Whether it has a position that can be dragged: not beside another joint or a polygon."""
        return bool(kind_of(self.kind).place) and self.values.get("other") is None and "polygon" not in self.values

    @property
    def turns(self) -> bool:
        """Whether it has a rotation that can be turned; of a normal that is kept, it is the z axis."""
        return bool(kind_of(self.kind).turn) and self.values.get("keep") != "point"

    def copy(self) -> Wish:
        """Return a copy that shares nothing that changes: arrays are replaced, never written."""
        return replace(self, values=dict(self.values))

    def become(self, other: Wish) -> None:
        """Take all that another has."""
        for part in fields(self):
            setattr(self, part.name, getattr(other, part.name))

    @property
    def free(self) -> bool:
        """Whether it follows its joint now."""
        return self.idle and not self.enabled

    def settle(self) -> None:
        """Let the eased target be where it is asked to be."""
        self.at_place, self.at_turn = self.place, self.turn

    def ease(self, part: float, near: float) -> bool:
        """Bring the eased target a part of the way nearer; return whether some of the way is left.

        Args:
            part: From 0 to 1.
            near: Length that counts as arrived.
        """
        away = self.place - self.at_place
        moving = float(np.abs(away).max()) > near
        self.at_place = self.at_place + part * away if moving else self.place
        self.at_turn, turning = _turned(self.at_turn, self.turn, part)
        return moving or turning

    def target(self) -> Array | tuple[Array, Array] | None:
        """Return the eased target as ``IK.solve`` takes it, None where the goal takes none."""
        if self.places and self.turns:
            return self.at_place, self.at_turn
        return self.at_place if self.places else self.at_turn if self.turns else None

    def goal(self, address: Callable[[int], str | int], *, wanted: bool = False, kept: bool = False) -> Goal:
        """Return the goal.

        Args:
            address: From a row of the skeleton that was given to what the goal calls that joint.
            wanted: Whether with the target that is asked for, and not the eased one.
            kept: Whether to be kept, under its own name and without what it was not told.

        Raises:
            InputError: If a value cannot be used.
        """
        kind = kind_of(self.kind)
        place, turn = (self.place, self.turn) if wanted or kept else (self.at_place, self.at_turn)
        values = {name: value for name, value in self.values.items() if value is not None}
        values |= {name: address(values[name]) for name in JOINTS if name in values}
        values |= {"weight": self.weight, "name": self.name if kept else self.label}
        if kind.levels:
            values["priority"] = self.priority
        told = self.told if kept else POSITION | ROTATION
        if kind.name == "pose" and told:  # both or neither
            told = POSITION | ROTATION
        if self.places:  # a plane has a place of its own, where none is given
            values[kind.place] = place if told & POSITION else None
        normal = self.values.get("keep") == "normal"
        if self.turns and told & ROTATION:
            values["normal" if normal else kind.turn] = turn[:, 2] if normal else turn
        if normal and not kept:
            values["axis"] = self.offset[:3, 2]  # as the skeleton that was given has it at rest
        if kind.other is True:
            for name, part in (("position", POSITION), ("rotation", ROTATION)):
                if not told & part:
                    values.pop(name, None)
        if kind.frames and self.values.get("keep", "pose") == "pose":
            if not np.array_equal(self.offset, np.eye(4)):
                values["offset"] = self.offset
        elif self.offset[:3, 3].any():
            values["offset"] = self.offset[:3, 3]
        return kind.goal(**values) if self.row is None else kind.goal(address(self.row), **values)


def bounds_of(wish: Wish) -> tuple[float, float] | None:
    """Return the bounds of a joint's own value that a wish asks for, None for wishes of other kinds."""
    if not kind_of(wish.kind).goal.bounds_value or wish.row is None:
        return None
    return float(wish.values.get("lower", -math.inf)), float(wish.values.get("upper", math.inf))


def _turned(at: Array, to: Array, part: float) -> tuple[Array, bool]:
    """Return a rotation brought part of the way to another, and whether some of the way is left."""
    if at is to:
        return to, False
    from scipy.spatial.transform import Rotation

    step = Rotation.from_matrix(to @ at.T).as_rotvec()
    if float(np.abs(step).max()) <= 1e-4:
        return to, False
    return Rotation.from_rotvec(part * step).as_matrix() @ at, True
