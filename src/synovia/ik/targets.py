"""Targets that users give, checked and written into the kernels' table of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from synovia.errors import InputError, UnknownNameError, unknown_name
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.model import Skeleton
from synovia.model.geometry import Array, as_matrix, as_numbers, as_transform, dimensions

TARGET = 17  # see kernels.tree.problem
_BOTH = POSITION | ROTATION
_PARTS: dict[tuple[int, ...], int] = {(3,): POSITION, (3, 3): ROTATION, (4, 4): _BOTH}


def default_rows(goals: Sequence[Goal]) -> Array:
    """Return the table (goals, 17) of the goals' own targets."""
    rows = np.zeros((len(goals), TARGET))
    for row, goal in zip(rows, goals, strict=True):
        row[:16] = (np.eye(4) if goal.target is None else goal.target).ravel()
        row[16] = float(goal.given)
    return rows


def address_book(skeleton: Skeleton, goals: Sequence[Goal], rows: Sequence[int]) -> dict[str | int, list[int]]:
    """Return the goals that each key of a target table means: a goal's name, or any name of its joint (rows[i])."""
    book: dict[str | int, list[int]] = {}
    for i, goal in enumerate(goals):
        if goal.name is not None:
            book.setdefault(goal.name, []).append(i)
    for i, goal in enumerate(goals):
        if not goal.takes:
            continue
        keys: set[Any] = {goal.label}
        if rows[i] >= 0:
            joint = skeleton.joints[rows[i]]
            keys = {goal.joint, joint.name, joint.body, joint.role}
        for key in keys - {None, goal.name}:
            if key is not None and all(goals[j].name != key for j in book.get(key, [])):
                book.setdefault(key, []).append(i)
    return book


def find(book: Mapping[str | int, list[int]], goals: Sequence[Goal], key: Any, parts: int) -> int:
    """Return the goal that a key means for a target with these parts.

    Raises:
        UnknownNameError: If there is none, or several.
    """
    try:
        places = book.get(key)
    except TypeError as error:
        raise InputError("a key of targets is no name", value=key, expected="a joint's or a goal's name") from error
    if places is None:
        if any(goal.label == key for goal in goals):
            raise InputError(f"goal {key!r} takes no target", expected="one that asks for a place or a rotation")
        raise unknown_name("goal on a joint", key, [str(name) for name in book])
    if len(places) > 1:
        fitting = [i for i in places if goals[i].takes == parts]
        if len(fitting) != 1:
            raise UnknownNameError(f"{key!r} means {len(places)} goals", hint="give the goals names, and use those")
        return fitting[0]
    return places[0]


def checked_table(targets: Any, goals: Sequence[Goal]) -> Mapping[Any, Any]:
    """Return targets by name; a bare target is that of the only goal that takes one.

    Raises:
        InputError: If they are anything else.
    """
    if isinstance(targets, Mapping):
        return cast("Mapping[Any, Any]", targets)
    asked = [goal for goal in goals if goal.takes]
    if len(asked) == 1 and not isinstance(targets, str):
        goal = asked[0]
        return {goal.joint if goal.name is None and goal.joint is not None else goal.label: targets}
    raise InputError("targets are no table", value=targets, expected="a dict from joints or goals to their targets")


def claim(given: dict[int, int], i: int, parts: int, key: Any) -> None:
    """Note that a key gives these parts of goal i.

    Raises:
        InputError: If another key of the table gave one of them.
    """
    if given.get(i, 0) & parts:
        raise InputError("a goal has two targets", value=key, expected="one of the names of its joint")
    given[i] = given.get(i, 0) | parts


def place(row: Array, goal: Goal, value: Any) -> None:
    """Write one target into a goal's row.

    Args:
        row: (17,).
        goal: The goal.
        value: A position (3,), a ``Rotation`` or matrix (3, 3), a pair of both, or a transform (4, 4).

    Raises:
        InputError: If the value cannot be used or the goal does not ask for that.
    """
    where = f"target of {goal.label!r}"
    frame = row[:16].reshape(4, 4)
    parts = parts_of(value)
    if parts == 0:
        raise InputError(
            f"{where} has shape {shape_of(value) or 'none'}",
            value=value,
            expected="a position (3,), a Rotation, a pair of both, or a 4x4 transform",
        )
    if not parts & goal.takes or (parts != _BOTH and parts & ~goal.takes):
        asked = {0: "none", POSITION: "a position", ROTATION: "a rotation", _BOTH: "both"}
        raise InputError(f"{where} is {asked[parts]}", expected=asked[goal.takes], hint=f"the goal is a {goal!r}")
    # Checked here, but rounding is left for the kernel to clean away: as in a batch, so that both give the same bits.
    if parts == _BOTH and not is_pair(value):
        as_transform(value, where)
        frame[:] = np.asarray(value, np.float64)
    else:
        pair = value if is_pair(value) else (value, value)
        if parts & POSITION:
            frame[:3, 3] = as_numbers(pair[0], (3,), where)
        if parts & ROTATION:
            as_matrix(pair[1], where)
            frame[:3, :3] = _numbers_of(pair[1])
    row[16] = float(int(row[16]) | (parts & goal.takes))


def _numbers_of(rotation: Any) -> Any:
    """Return the matrices of a ``Rotation``, or matrices as they are."""
    return rotation.as_matrix() if hasattr(rotation, "as_matrix") else rotation


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a value, () for ragged lists and whatever else has none."""
    return np.shape(value) if dimensions(value) > 0 else ()


def is_pair(value: Any, batch: int = 0) -> bool:
    """Return whether a value is a (position, rotation) pair, and not a list of two targets."""
    if not isinstance(value, tuple | list):
        return False
    pair = cast("Sequence[Any]", value)
    return len(pair) == 2 and (hasattr(pair[1], "as_matrix") or dimensions(pair[1]) == 2 + batch)


def parts_of(value: Any, batch: int = 0) -> int:
    """Return which parts a target gives, 0 if it cannot be told.

    Args:
        value: The target.
        batch: Number of leading axes (1 for targets of many problems).
    """
    if hasattr(value, "as_matrix"):
        return ROTATION
    if is_pair(value, batch):
        return _BOTH
    return _PARTS.get(shape_of(value)[batch:], 0)


def place_many(rows: Array, i: int, goal: Goal, value: Any) -> None:
    """Write one target a problem into the table (B, goals, 17) of many problems, for goal i.

    Args:
        rows: The table.
        i: The goal's place.
        goal: The goal.
        value: As in ``place`` with a leading axis of length B: (B, 3), a ``Rotation`` of B, a pair, or (B, 4, 4).

    Raises:
        InputError: As ``place``; values are checked by the kernel.
    """
    where = f"targets of {goal.label!r}"
    count = len(rows)
    parts = parts_of(value, batch=1)
    frames = rows[:, i, :16].reshape(count, 4, 4)
    if parts == 0:
        raise InputError(
            f"{where} have shape {shape_of(value) or 'none'}",
            expected="(B, 3), a Rotation of B, a pair of both, or (B, 4, 4) for B problems",
            hint="this is one target: solve() takes it, and [target] is a batch of one" if parts_of(value) else None,
        )
    if not parts & goal.takes or (parts != _BOTH and parts & ~goal.takes):
        raise InputError(f"{where} do not fit the goal", expected=f"what {goal!r} asks for")
    pair = value if is_pair(value, batch=1) else (value, value)
    if parts == _BOTH and pair is not value:
        frames[:] = as_numbers(value, (count, 4, 4), where)
    else:
        if parts & POSITION:
            frames[:, :3, 3] = as_numbers(pair[0], (count, 3), where)
        if parts & ROTATION:
            frames[:, :3, :3] = as_numbers(_numbers_of(pair[1]), (count, 3, 3), where)
    rows[:, i, :16] = frames.reshape(count, 16)
    rows[:, i, 16] = rows[:, i, 16].astype(np.int64) | (parts & goal.takes)


def one_of(value: Any, row: int) -> Any:
    """Return the target of one problem from the targets of many."""
    return tuple(part[row] for part in value) if is_pair(value, batch=1) else value[row]


def count_of(targets: Mapping[Any, Any]) -> int:
    """Return the number of problems in a table of targets with a leading axis.

    Raises:
        InputError: If the table is empty or its lengths differ.
    """
    lengths: dict[Any, int] = {}
    for key, value in targets.items():
        first = value[0] if is_pair(value, batch=1) else value
        try:
            lengths[key] = len(first)
        except TypeError as error:
            raise InputError(
                f"targets of {key!r} have no leading axis",
                value=first,
                hint="solve() takes one target; this takes many",
            ) from error
    if not lengths:
        raise InputError("there are no targets", expected="at least one joint with an array of targets")
    if len(set(lengths.values())) > 1:
        raise InputError("targets have different lengths", value=lengths, expected="one length for all")
    return next(iter(lengths.values()))
