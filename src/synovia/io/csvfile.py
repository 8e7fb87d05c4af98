"""Read and write joint values over time as comma-separated text, for robots and spreadsheets.

The first row names the columns: ``time`` in seconds, then one column for each value of q. A hinge or slide has the name
of its joint; a ball has ``NAME.qx .qy .qz .qw``; a free joint has ``NAME.x .y .z`` before these. The reader also
accepts other names of the joints, such as ``link:NAME``. Values have enough digits to be read back exactly. A file does
not hold its skeleton, but its columns show how the root moves.

A file whose name ends with ``.rates.csv`` also has ``NAME.velocity`` and ``NAME.acceleration`` of each degree of
freedom (``NAME.rx.velocity`` for a ball), as finite differences of the frames. Readers skip these columns.
"""

from __future__ import annotations

import csv
import io
import math
import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import FormatError, InputError, UnknownNameError, did_you_mean, restated
from synovia.io.base import OF_POINTS, Format, as_path, frame_rate, read_text, resting_notes, write_text
from synovia.model import Kind, Skeleton
from synovia.model.clip_tools.derivatives import accelerations, velocities
from synovia.model.geometry import Array
from synovia.model.joint import DOF_NAMES
from synovia.model.motion import Motion
from synovia.model.root import root_of
from synovia.text import counted

_TURN: Final = ("qx", "qy", "qz", "qw")
_PARTS: Final = {Kind.BALL: _TURN, Kind.FREE: ("x", "y", "z", *_TURN)}
_WITH_RATES: Final = ".rates.csv"
_RATES: Final = ("velocity", "acceleration")
_ENDS: Final = tuple(f".{part}" for part in _PARTS[Kind.FREE])


def columns(skeleton: Skeleton, rows: Sequence[int] | None = None) -> list[str]:
    """Return the column name of each value of q, for all joints or for some rows."""
    names: list[str] = []
    for row in range(len(skeleton)) if rows is None else rows:
        key, kind = skeleton.joint_keys[row], skeleton.joints[row].kind
        parts = _PARTS.get(kind)
        names += [f"{key}.{part}" for part in parts] if parts else [key] * kind.q_size
    return names


class JointColumns:
    """Finds the index in q of a column by its name, as written by ``columns`` or with another name of the joint.

    Args:
        skeleton: The skeleton.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        """Collect the column names."""
        self._skeleton = skeleton
        self._known = {name: at for at, name in enumerate(columns(skeleton))}

    def place(self, column: str) -> int | None:
        """Return the index in q of a column; None if it belongs to no joint.

        Raises:
            UnknownNameError: If several joints have this name.
        """
        at = self._known.get(column)
        if at is not None:
            return at
        for name, part in ((column, None), column.rpartition(".")[::2]):
            if name and self._skeleton.knows_value(name):
                row = self._skeleton.value_index(name)
                kind = self._skeleton.joints[row].kind
                parts = _PARTS.get(kind, (None,) * kind.q_size)
                if part in parts:
                    return self._skeleton.q_slice(row).start + parts.index(part)
        return None

    def places(self, names: Sequence[str], before: str = "") -> list[int]:
        """Return the index in q of each column.

        Args:
            names: The names of the columns.
            before: Prefix of each name in the file, for messages.

        Raises:
            InputError: If two columns mean the same value of q.
            UnknownNameError: If a column belongs to no joint, or several joints have its name.
        """
        found: dict[int, str] = {}
        for name in names:
            at = self.place(name)
            if at is None:
                hint = did_you_mean(before + name, [before + known for known in self._known])
                raise UnknownNameError(f"column {before + name!r} belongs to no joint", hint=hint)
            if at in found:
                raise InputError("columns", value=[before + found[at], before + name], expected="one for each number")
            found[at] = name
        return list(found)


def write_csv(
    motion: Motion, path: str | os.PathLike[str], *, joints: Sequence[int] | None = None, force: bool = False
) -> None:
    """Write the joint values of a motion as comma-separated text, with velocities and accelerations in ``.rates.csv``.

    Args:
        motion: The motion.
        path: The file.
        joints: Rows of the joints that the file has, in this order; None for all.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If a name cannot be written as UTF-8.
    """
    out, where = io.StringIO(), as_path(path)
    writer = csv.writer(out, lineterminator="\n")
    skeleton = motion.skeleton
    rows = range(len(skeleton)) if joints is None else joints
    at = [k for row in rows for k in range(len(motion.q[0]))[skeleton.q_slice(row)]]
    names, numbers = ["time", *columns(skeleton, rows)], [motion.times[:, None], motion.q[:, at]]
    if where.name.lower().endswith(_WITH_RATES):
        first = np.cumsum([0, *(joint.kind.v_size for joint in skeleton.joints)])
        own = [k for row in rows for k in range(first[row], first[row + 1])]
        names += [f"{name}.{rate}" for rate in _RATES for name in _degrees(skeleton, rows)]
        numbers += [velocities(motion)[:, own], accelerations(motion)[:, own]]
    writer.writerow(names)
    for row in np.concatenate(numbers, axis=1).tolist():
        writer.writerow(map(repr, row))
    write_text(where, out.getvalue(), force=force)


def _degrees(skeleton: Skeleton, rows: Sequence[int]) -> list[str]:
    """Return the names of the degrees of freedom of some rows; names include the row if joints share a name."""
    return [f"{skeleton.joint_keys[row]}{part}" for row in rows for part in DOF_NAMES[skeleton.joints[row].kind]]


def _is_rate(column: str, skeleton: Skeleton) -> bool:
    """Return whether a column has velocities or accelerations of a degree of freedom."""
    name, _, rate = column.rpartition(".")
    if rate not in _RATES:
        return False
    return any(skeleton.knows_value(joint) for joint in (name, name.rpartition(".")[0]) if joint)


def read_csv(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Read a motion of a skeleton from comma-separated text; the columns may have any order.

    Args:
        path: The file.
        skeleton: The skeleton. Joints without a column stay at rest; mimic joints without a column follow. If the file
            has columns of a moving root that the skeleton lacks, as in clips made by ``retarget``, the motion's
            skeleton gets this root.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If a column belongs to no joint, a row has a wrong number of cells, or a value cannot be used. The
            message names the line.

    Returns:
        The motion. Its rate comes from the column of times; a single frame has 30 frames per second. Its notes list
        joints without a column, and say whether times are unevenly spaced or do not begin at 0.

    Example:
        >>> import synovia as sy
        >>> sy.formats.read_csv("robot.csv", sy.load_skeleton("robot.urdf"))  # doctest: +SKIP
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    where = as_path(path)
    rows = text_rows(read_text(where), where)
    place, names = _head(rows, where)
    for name, count in Counter(names).items():
        if count > 1:
            raise FormatError(f"column {name!r} is repeated", where=place, expected="each column once")
    given = JointColumns(skeleton)
    try:
        unknown = [name for name in names[1:] if given.place(name) is None and name.rpartition(".")[2] not in _RATES]
        skeleton = _moved_as_in(skeleton, unknown)
        known = JointColumns(skeleton)
        read = [
            column
            for column, name in enumerate(names[1:], start=1)
            if known.place(name) is not None or not _is_rate(name, skeleton)
        ]
        at = known.places([names[column] for column in read])
    except (InputError, UnknownNameError) as error:
        raise restated(error, FormatError, place) from error
    numbers = array("d")
    for place, row in rows:
        parsed = [number_of(cell, place) for cell in row]
        if not all(map(math.isfinite, parsed[1:])):
            cell = next(cell for cell, number in zip(row[1:], parsed[1:], strict=True) if not math.isfinite(number))
            raise FormatError("cell cannot be used", where=place, value=cell, expected="finite numbers")
        numbers.extend(parsed)
    values = np.array(numbers, np.float64).reshape(-1, len(names))
    if not len(values):
        raise FormatError("file has no frames", where=str(where))
    q = np.repeat(skeleton.rest_q[None], len(values), axis=0)
    q[:, at] = values[:, read]
    rate, said = frame_rate(values[:, 0], where)
    notes = [*resting_notes(skeleton, at, q), *said, *_start_notes(values[:, 0])]
    try:
        return Motion(skeleton, q, rate or 30.0, name=where.stem, notes=notes)
    except InputError as error:
        raise restated(error, FormatError, str(where)) from error


def _start_notes(times: Array) -> list[str]:
    """Return a note about times (T,), seconds, that do not begin at 0."""
    steps = np.diff(times)
    if len(times) and abs(times[0]) > (0.5 * steps.mean() if len(steps) else 0.0):
        return [f"Times begin at {float(times[0]):.6g} s; those of the clip begin at 0."]
    return []


def _moved_as_in(skeleton: Skeleton, unknown: list[str]) -> Skeleton:
    """Return the skeleton with the free joints and the moving root that unknown columns name, if they name any.

    A ball or fixed joint becomes free if columns give its translation, such as hips below a root bone on the floor.
    """
    names = dict.fromkeys(name.rpartition(".")[0] if name.endswith(_ENDS) else name for name in unknown)
    rows = [skeleton.value_index(name) for name in names if skeleton.knows_value(name)]
    moved = skeleton
    if rows:
        joints = list(skeleton.joints)
        for row in rows:
            if joints[row].kind not in (Kind.BALL, Kind.FIXED):
                return skeleton
            joints[row] = replace(joints[row], kind=Kind.FREE)
        moved = skeleton.with_joints(joints)
    others = [name for name in names if not skeleton.knows_value(name)]
    root = root_of(others) if others else None
    if root is not None:
        moved = moved.with_root(root)
    known = JointColumns(moved)
    return moved if all(known.place(name) is not None for name in unknown) else skeleton


def text_rows(text: str, path: Path, delimiter: str = ",") -> Iterator[tuple[str, list[str]]]:
    """Yield the location and the stripped cells of each row of a table; skip empty lines.

    Args:
        text: The table.
        path: File of the table, for messages.
        delimiter: Character between cells.

    Raises:
        FormatError: If the text is malformed, or a row has more or fewer cells than the first one.
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line, count = 1, 0
    try:
        for row in rows:
            place = f"{path}, line {line}"
            line = rows.line_num + 1
            if not row:
                continue
            if count and len(row) != count:
                raise FormatError(
                    f"row has {counted(len(row), 'cell')}", where=place, expected=f"{count}, one for each name"
                )
            count = len(row)
            yield place, [cell.strip() for cell in row]
    except csv.Error as error:
        raise FormatError(f"is not comma-separated text: {error}", where=f"{path}, line {line}") from error


def _head(rows: Iterator[tuple[str, list[str]]], path: Path) -> tuple[str, list[str]]:
    """Return the location and the cells of the first line of a motion.

    Raises:
        FormatError: If the first column is not the time.
    """
    place, names = next(rows, (f"{path}, line 1", [""]))
    if names[0] != "time":
        expected = "a column 'time' in seconds, then one for each joint value"
        raise FormatError(
            "first column is not time", where=place, value=names[0] or None, expected=expected, hint=OF_POINTS
        )
    return place, names


def _check_head(path: Path) -> None:
    """Raise an error for a table that is not a motion."""
    _head(text_rows(read_text(path), path), path)


def number_of(cell: str, place: str, gap: float | None = None) -> float:
    """Return the value of a cell.

    Args:
        cell: The cell, without spaces around it.
        place: Location of the line, for messages.
        gap: Value for an empty cell; None to raise an error.

    Raises:
        FormatError: If the cell holds no number.
    """
    if not cell and gap is not None:
        return gap
    try:
        if "_" in cell or not cell.isascii():  # float() accepts 1_0 and Arabic digits, other programs do not
            raise ValueError
        return float(cell)
    except ValueError:
        raise FormatError(
            "cell is not a number", where=place, value=cell, expected="for example -0.5 or 1e-3"
        ) from None


FORMAT: Final = Format.without_skeleton(
    "CSV", (".csv",), lambda head: False, read_csv, write_csv,
    what="a table", hint="name its model: --model FILE, or synovia.formats.read_csv(path, skeleton) in Python",
    check=_check_head,
    keeps="joint values by name, one row a frame; as `.rates.csv` also velocities and accelerations",
    chooses=True,
)  # fmt: skip
