"""The door of an ``IK``: the tables of targets that its kernels take, filled from what users write.

Plain float64 numbers for every goal, and pairs of them and a ``Rotation``, go in by an assignment each, unchecked: the
kernel itself refuses what is not finite or no rigid transform. Everything else takes the long way of ``targets``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from synovia.errors import InputError, UnknownNameError
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
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.joint import LONGEST

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.spatial.transform import Rotation

    from synovia.model.pose import Numbers

_Rotation: TypeAlias = "NDArray[Any] | Sequence[Sequence[float]] | Rotation"
# One target: a position, a rotation, a pair of both, or a 4x4 transform; with a leading axis for many problems.
Target: TypeAlias = "NDArray[Any] | Sequence[float] | Sequence[Sequence[float]] | Rotation | tuple[Numbers, _Rotation]"
Targets: TypeAlias = "Mapping[str, Target] | Mapping[int, Target] | Mapping[str | int, Target] | Target"
_DOUBLE = np.dtype(np.float64)
_ndarray = np.ndarray  # one look-up less in each call
_POINT, _FRAME = (3,), (4, 4)
_LAST = (0.0, 0.0, 0.0, 1.0)  # row of a transform


class Desk:
    """What one call works on: a table of targets (1, goals, 17), ways to write each target into it, scratch memory."""

    __slots__ = ("plain", "scratch", "slots", "table")

    def __init__(self, own: Array, names: Mapping[Any, tuple[int, tuple[int, ...], int]], scratch: Array) -> None:
        """Copy the goals' own targets, and cut the views.

        Args:
            own: The goals' own targets, (1, goals, 17).
            names: By key: place among the goals, shape of the plain form, mark.
            scratch: Memory of the kernel.
        """
        self.table = own.copy()
        self.scratch = scratch
        rows = self.table[0]
        frames = [row[:16].reshape(4, 4) for row in rows]
        # by key: shape of the plain form, mark, where a place or a frame goes, the same frame as bytes
        self.slots = {
            key: (shape, mark, frames[i][:3, 3] if shape is _POINT else frames[i], memoryview(rows[i, :16]).cast("B"))
            for key, (i, shape, mark) in names.items()
        }
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
        self._skeleton = skeleton
        self._rows = rows
        self._book = address_book(skeleton, goals, rows)
        self._takes = [float(goal.takes) for goal in goals]
        self._own = default_rows(goals).reshape(1, len(goals), -1)
        # by key: place among the goals, shape of the plain form, mark
        self._plain = {
            key: (at[0], _POINT if goals[at[0]].takes == POSITION else _FRAME, 1 << at[0])
            for key, at in self._book.items()
            if len(at) == 1 and goals[at[0]].takes & POSITION
        }
        asked = [i for i, goal in enumerate(goals) if goal.takes]  # a goal that takes no target is given none
        self._every, self._count = sum(1 << i for i in asked), len(asked)

    def desk(self, scratch: Array) -> Desk:
        """Return a new place to work."""
        return Desk(self._own, self._plain, scratch)

    def fill(self, targets: Any, desk: Desk) -> None:
        """Write the targets of one problem into a desk's table; goals without one keep their own.

        Where every goal gets plain numbers, they go in as they are.
        """
        kind: type[object] = type(targets)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
        if kind is dict and len(targets) == self._count:
            slots, written = desk.slots, 0
            for key in targets:  # pairs would take longer, as would ``get``
                if key not in slots:
                    break
                shape, mark, view, memory = slots[key]
                value = targets[key]
                kind = type(value)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
                if kind is _ndarray and value.dtype is _DOUBLE and value.shape == shape:
                    if shape is _FRAME:
                        memory[:] = value.tobytes()  # takes two thirds of an assignment between arrays
                    else:
                        view[...] = value
                elif kind is not tuple or not _filled(view, shape, value):
                    break
                written |= mark
            else:
                if written == self._every:
                    if not desk.plain:
                        desk.table[0, :, 16] = self._takes
                        desk.plain = True
                    return
        desk.plain = False
        desk.table[...] = self._own
        if targets is not None:
            self._fill_any(targets, desk.table)

    def _fill_any(self, targets: Any, table: Array) -> None:
        """Fill the table from any form of targets."""
        given: dict[int, int] = {}
        for key, value in checked_table(targets, self.goals).items():
            parts = parts_of(value)
            i = self._find(key, parts)
            claim(given, i, parts, key)
            place(table[0, i], self.goals[i], value)

    def _find(self, key: Any, parts: int) -> int:
        """Return the goal that a key means: by the names that the goals know, else by the role of a joint."""
        if isinstance(key, str) and key not in self._book:
            with suppress(UnknownNameError):
                row = self._skeleton.index(key)
                same = [i for i, at in enumerate(self._rows) if at == row and self.goals[i].takes]
                self._book.update({key: same} if same else {})
        return find(self._book, self.goals, key, parts)

    def own_table(self) -> Array:
        """Return the table (1, goals, 17) of the goals' own targets."""
        return self._own.copy()

    def table_of_many(self, targets: Targets) -> Array:
        """Return the table (B, goals, 17) of many problems."""
        table = checked_table(targets, self.goals)
        rows = np.repeat(self._own, count_of(table), axis=0)
        given: dict[int, int] = {}
        for key, value in table.items():
            parts = parts_of(value, batch=1)
            i = self._find(key, parts)
            claim(given, i, parts, key)
            place_many(rows, i, self.goals[i], value)
        return rows

    def refuse(self, code: int, targets: Targets | None) -> NoReturn:
        """Raise the error of a target that the kernel refused; ``place`` says what is wrong.

        What it does not mind is too far away.
        """
        row, i = divmod(-1 - code, len(self.goals))
        goal, frame = self.goals[i], self._own[0, i].copy()
        for key, value in checked_table({} if targets is None else targets, self.goals).items():
            one = value if parts_of(value) else one_of(value, row)
            if self._find(key, parts_of(one)) == i:
                place(frame, goal, one)
        raise InputError(
            f"target of {goal.label!r} is too far away",
            value=frame[:16].reshape(4, 4)[:3, 3].tolist(),
            expected=f"a position within {LONGEST:g} length units of the origin",
        )


def _filled(view: Array, shape: tuple[int, ...], value: tuple[Any, ...]) -> bool:
    """Write a place as three floats, or a place and a ``Rotation``, into a target's view; return whether it was one."""
    if shape is _POINT:
        if [*map(type, value)] != [float, float, float]:
            return False
        view[...] = value
        return True
    if len(value) != 2 or not hasattr(value[1], "as_matrix"):
        return False
    place, turn = value[0], value[1].as_matrix()
    kind: type[object] = type(place)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
    if kind is np.ndarray:
        if place.dtype is not _DOUBLE or place.shape != _POINT:
            return False
    elif kind is not tuple or [*map(type, place)] != [float, float, float]:
        return False
    if turn.shape != (3, 3):
        return False
    view[:3, :3] = turn
    view[:3, 3] = place
    view[3] = _LAST
    return True
