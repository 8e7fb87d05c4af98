"""The door of an ``IK``: the tables of targets that its kernels take, filled from what users write.

Plain float64 numbers for every goal go in by one assignment each, unchecked: the kernel itself refuses what is not
finite or no rigid transform. Everything else takes the long way of ``targets``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from synovia.errors import InputError
from synovia.geometry import Array
from synovia.goals import Goal
from synovia.goals.base import POSITION
from synovia.ik.targets import (
    address_book,
    checked_table,
    claim,
    count_of,
    default_rows,
    find,
    one_of,
    parts_of,
    place,
    place_many,
)
from synovia.skeleton import Skeleton

Targets = Mapping[Any, Any]
_DOUBLE = np.dtype(np.float64)
_POINT, _FRAME = (3,), (4, 4)


class Desk:
    """What one call works on: a table of targets (1, goals, 17), views of each target in it, and scratch memory."""

    __slots__ = ("plain", "scratch", "table", "views")

    def __init__(self, table: Array, shapes: Sequence[tuple[int, ...]], scratch: Array) -> None:
        """Cut the views: the place of a position goal, the frame of a pose goal."""
        self.table = table
        self.scratch = scratch
        frames = [row[:16].reshape(4, 4) for row in table[0]]
        self.views = [f[:3, 3] if shape is _POINT else f for f, shape in zip(frames, shapes, strict=True)]
        self.plain = False  # whether every goal is marked as given


class Door:
    """Tables of targets for the goals of one ``IK``.

    Args:
        skeleton: The skeleton.
        goals: The goals.
        rows: Joint of each goal.
    """

    def __init__(self, skeleton: Skeleton, goals: Sequence[Goal], rows: Sequence[int]) -> None:
        """Learn the names of the goals and their own targets."""
        self.goals = goals
        self._book = address_book(skeleton, goals, rows)
        self._shapes = [_POINT if goal.takes == POSITION else _FRAME for goal in goals]
        self._takes = [float(goal.takes) for goal in goals]
        self._own = default_rows(goals).reshape(1, len(goals), -1)
        # by key: place among the goals, shape of the plain form, mark
        self._plain = {
            key: (at[0], self._shapes[at[0]], 1 << at[0])
            for key, at in self._book.items()
            if len(at) == 1 and goals[at[0]].takes & POSITION
        }
        asked = [i for i, goal in enumerate(goals) if goal.takes]  # a goal that takes no target is given none
        self._every, self._count = sum(1 << i for i in asked), len(asked)

    def desk(self, scratch: Array) -> Desk:
        """Return a new place to work."""
        return Desk(self._own.copy(), self._shapes, scratch)

    def fill(self, targets: Targets | None, desk: Desk) -> None:
        """Write the targets of one problem into a desk's table; goals without one keep their own."""
        if targets is None:
            desk.table[...] = self._own
            desk.plain = False
        elif not self._fill_plain(targets, desk):
            desk.plain = False
            desk.table[...] = self._own
            self._fill_any(targets, desk.table)

    def _fill_plain(self, targets: Any, desk: Desk) -> bool:
        """Fill the table if every goal gets an array of float64 or a tuple of three floats; return whether it did."""
        kind: type[object] = type(targets)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
        if kind is not dict:
            return False
        views = desk.views
        written = 0
        for key, value in targets.items():
            slot = self._plain.get(key)
            if slot is None:
                return False
            at, shape, mark = slot
            kind = type(value)  # pyright: ignore[reportUnknownVariableType]
            if kind is np.ndarray:
                if value.dtype is not _DOUBLE or value.shape != shape:
                    return False
            elif kind is not tuple or shape is not _POINT or [*map(type, value)] != [float, float, float]:
                return False
            views[at][...] = value
            written |= mark
        if written != self._every or len(targets) != self._count:
            return False
        if not desk.plain:
            desk.table[0, :, 16] = self._takes
            desk.plain = True
        return True

    def _fill_any(self, targets: Any, table: Array) -> None:
        """Fill the table from any form of targets."""
        given: dict[int, int] = {}
        for key, value in checked_table(targets).items():
            parts = parts_of(value)
            i = find(self._book, self.goals, key, parts)
            claim(given, i, parts, key)
            place(table[0, i], self.goals[i], value)

    def table_of_many(self, targets: Targets) -> Array:
        """Return the table (B, goals, 17) of many problems."""
        rows = np.repeat(self._own, count_of(checked_table(targets)), axis=0)
        given: dict[int, int] = {}
        for key, value in targets.items():
            parts = parts_of(value, batch=1)
            i = find(self._book, self.goals, key, parts)
            claim(given, i, parts, key)
            place_many(rows, i, self.goals[i], value)
        return rows

    def refuse(self, code: int, targets: Targets | None) -> NoReturn:
        """Raise the error of a target that the kernel refused (see ``kernels.drive``); ``place`` says what is wrong."""
        row, i = divmod(-1 - code, len(self.goals))
        goal = self.goals[i]
        for key, value in (targets or {}).items():
            one = value if parts_of(value) else one_of(value, row)
            if find(self._book, self.goals, key, parts_of(one)) == i:
                place(np.zeros(17), goal, one)
        raise InputError(
            "target is no position or rigid transform",
            where=f"target {row} of {goal.label!r}",
            expected="a rotation, and a position less than 1e150 times the reach from the origin",
        )
