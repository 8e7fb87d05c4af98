"""A wish: one goal as the page edits it, and what each kind of goal lets people set."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from synovia import goals
from synovia.errors import unknown_name
from synovia.geometry import Array
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION

_COMMON: Final = ("self", "joint", "position", "rotation", "transform", "quat_xyzw", "quat_wxyz")
_SHARED: Final = ("weight", "priority", "offset", "name")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of goal that the page offers.

    Args:
        name: What people call it, for example ``position``.
        goal: Its class.
        places: Whether it has a position that can be dragged.
        turns: Whether it has a rotation that can be turned.
    """

    name: str
    goal: type[Goal]
    places: bool
    turns: bool


@cache
def kinds() -> Mapping[str, Kind]:
    """Return the kinds of goals that can be asked for by a joint, a position and a rotation alone, by name."""
    out: dict[str, Kind] = {}
    for word in goals.__all__:
        cls = getattr(goals, word)
        if not (isinstance(cls, type) and issubclass(cls, Goal)) or cls is Goal:
            continue
        asked = inspect.signature(cls.__init__).parameters
        needed = [
            name
            for name, parameter in asked.items()
            if name not in (*_COMMON, *_SHARED) and parameter.default is inspect.Parameter.empty
        ]
        if needed or "joint" not in asked or not cls.what:
            continue
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", word.removesuffix("Goal")).lower()
        out[name] = Kind(name, cls, bool(cls.what & POSITION), bool(cls.what & ROTATION))
    return MappingProxyType(out)


def kind_of(name: str) -> Kind:
    """Return a kind by name.

    Raises:
        UnknownNameError: If there is none of that name.
    """
    if name not in kinds():
        raise unknown_name("kind of goal", name, kinds())
    return kinds()[name]


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
        row: Joint, a row of the skeleton that was given.
        label: What it is called; no two wishes share a label.
        place: World position that is asked for, (3,), length units.
        turn: World rotation that is asked for, (3, 3).
        enabled: Whether it counts.
        weight: Weight beside wishes of the same priority.
        priority: 0 is the highest.
        offset: Frame on the joint that should meet the target, (4, 4).
        at_place: Position that the solver is asked for now.
        at_turn: Rotation that the solver is asked for now.
    """

    key: int
    kind: str
    row: int
    label: str
    place: Array = field(default_factory=_origin)
    turn: Array = field(default_factory=_unturned)
    enabled: bool = True
    weight: float = 1.0
    priority: int = 0
    offset: Array = field(default_factory=lambda: np.eye(4))
    at_place: Array = field(default_factory=_origin)
    at_turn: Array = field(default_factory=_unturned)

    def copy(self) -> Wish:
        """Return a copy that shares nothing that changes: arrays are replaced, never written."""
        return replace(self)

    def settle(self) -> None:
        """Let the eased target be where it is asked to be."""
        self.at_place, self.at_turn = self.place, self.turn

    def target(self) -> Array | tuple[Array, Array]:
        """Return the eased target as ``IK.solve`` takes it."""
        kind = kind_of(self.kind)
        if kind.places and kind.turns:
            return self.at_place, self.at_turn
        return self.at_place if kind.places else self.at_turn

    def goal(self, joint: str | int, *, wanted: bool = False) -> Goal:
        """Return the goal on a joint; ``wanted``: with the target that is asked for, not the eased one.

        Raises:
            InputError: If the weight or the priority cannot be used.
        """
        kind = kind_of(self.kind)
        place, turn = (self.place, self.turn) if wanted else (self.at_place, self.at_turn)
        values: dict[str, Any] = {"weight": self.weight, "priority": self.priority, "name": self.label}
        if kind.places:
            values["position"] = place
        if kind.turns:
            values["rotation"] = turn
        if not np.array_equal(self.offset, np.eye(4)):
            values["offset"] = self.offset if kind.turns else self.offset[:3, 3]
        return kind.goal(joint, **values)
