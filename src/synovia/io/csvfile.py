"""Joint values over time as comma-separated text, for robots and spreadsheets.

The first row names the columns: ``time`` in seconds, then one column for each number of q. A hinge or slide has the
name of its joint; a ball has ``NAME.qx .qy .qz .qw``; a free joint has ``NAME.x .y .z`` before these. Numbers have
enough digits to be read back exactly. A file does not hold its skeleton, but it does tell how the root moves.
"""

from __future__ import annotations

import csv
import io
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from synovia.errors import FormatError, InputError, did_you_mean, restated
from synovia.io.base import Format, as_path, read_text, write_text
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.root import root_of

_TURN: Final = ("qx", "qy", "qz", "qw")
_PARTS: Final = {Kind.BALL: _TURN, Kind.FREE: ("x", "y", "z", *_TURN)}
_ENDS: Final = tuple(f".{part}" for part in _PARTS[Kind.FREE])


def columns(skeleton: Skeleton) -> list[str]:
    """Return the name of each number of q."""
    names: list[str] = []
    for key, joint in zip(skeleton.joint_keys, skeleton.joints, strict=True):
        parts = _PARTS.get(joint.kind)
        names += [f"{key}.{part}" for part in parts] if parts else [key] * joint.kind.q_size
    return names


def write_csv(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write the joint values of a motion as comma-separated text.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If a name cannot be written as UTF-8.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time", *columns(motion.skeleton)])
    for time, row in zip(motion.times.tolist(), motion.q.tolist(), strict=True):
        writer.writerow([repr(time), *map(repr, row)])
    write_text(as_path(path), out.getvalue(), force=force)


def read_csv(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Read a motion of a skeleton from comma-separated text; the columns may have any order.

    Args:
        path: The file.
        skeleton: The skeleton; joints without a column stay at rest. If the file has columns of a moving root that the
            skeleton has not, as clips made by ``retarget`` have, the motion's skeleton is the one with this root.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If a column belongs to no joint, a row is too short, or a number cannot be used. The message names
            the line.
    """
    where = as_path(path)
    given = {name: at for at, name in enumerate(columns(skeleton))}
    known = dict(given)

    def check(head: list[str], place: str) -> None:
        nonlocal skeleton
        rooted = _with_root_of(skeleton, [name for name in head[1:] if name not in known])
        if rooted is not skeleton:
            skeleton = rooted
            known.clear()
            known.update({name: at for at, name in enumerate(columns(skeleton))})
        for name in head[1:]:
            if name not in known:
                raise FormatError(
                    f"column {name!r} belongs to no joint", where=place, hint=did_you_mean(name, list(given))
                )

    head, values = read_table(where, check, expected="time, then joints")
    if not len(values):
        raise FormatError("file has no frames", where=str(where))
    q = np.tile(skeleton.rest_q, (len(values), 1))
    q[:, [known[name] for name in head[1:]]] = values[:, 1:]
    try:
        return Motion(skeleton, q, frame_rate(values[:, 0], where) or 30.0, name=where.stem)
    except InputError as error:
        raise restated(error, FormatError, str(where)) from error


def _with_root_of(skeleton: Skeleton, unknown: list[str]) -> Skeleton:
    """Return the skeleton with the moving root that unknown columns name; itself if they name none."""
    names = dict.fromkeys(name.rpartition(".")[0] if name.endswith(_ENDS) else name for name in unknown)
    root = root_of(list(names))
    if root is None:
        return skeleton
    rooted = skeleton.with_root(root)
    return rooted if set(unknown) <= set(columns(rooted)) else skeleton


def read_table(
    path: Path, check: Callable[[list[str], str], None], *, expected: str, gap: float | None = None
) -> tuple[list[str], Array]:
    """Read the names of the columns and the numbers below them, (rows, columns); empty lines are skipped.

    Args:
        path: The file.
        check: Raises an error for wrong column names. Called with the names and the place of their line, before any
            number is read.
        expected: Expected form of the first line, for messages.
        gap: Value of an empty cell; None to refuse empty cells.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the first column is not ``time``, two columns have the same name, a row has more or fewer cells
            than there are names, or a cell is not a number. The message names the line.
    """
    rows = csv.reader(io.StringIO(read_text(path), newline=""))
    head: list[str] = []
    numbers = array("d")
    line = 1
    try:
        for row in rows:
            place = f"{path}, line {line}"
            line = rows.line_num + 1
            if not row:
                continue
            if not head:
                head = _names(row, place, expected)
                check(head, place)
                continue
            if len(row) != len(head):
                raise FormatError(f"row has {len(row)} cells", where=place, expected=f"{len(head)}, one for each name")
            numbers.extend([_number(cell, place, gap) for cell in row])
    except csv.Error as error:
        raise FormatError(f"is not comma-separated text: {error}", where=f"{path}, line {line}") from error
    if not head:
        raise FormatError("first column is not time", where=f"{path}, line 1", expected=expected)
    return head, np.array(numbers, np.float64).reshape(-1, len(head))


def _names(row: list[str], place: str, expected: str) -> list[str]:
    """Return the names of the columns."""
    head = [name.strip() for name in row]
    if head[0] != "time":
        raise FormatError("first column is not time", where=place, value=head[0], expected=expected)
    seen: set[str] = set()
    for name in head:
        if name in seen:
            raise FormatError(f"column {name!r} is repeated", where=place, expected="each column once")
        seen.add(name)
    return head


def _number(cell: str, place: str, gap: float | None) -> float:
    """Return the number of a cell."""
    text = cell.strip()
    if not text and gap is not None:
        return gap
    try:
        if "_" in text or not text.isascii():  # Python alone accepts 1_0 and Arabic digits
            raise ValueError
        return float(text)
    except ValueError:
        raise FormatError(
            "cell is not a number", where=place, value=text, expected="for example -0.5 or 1e-3"
        ) from None


def frame_rate(times: Array, path: Path) -> float | None:
    """Return the frames per second of times (T,), seconds; None for a single time.

    Raises:
        FormatError: If the times do not increase, or one is not finite.
    """
    length = float(times[-1]) - float(times[0]) if len(times) else 0.0
    if not (np.isfinite(length) and (times[1:] > times[:-1]).all()):
        raise FormatError("times do not increase", where=str(path), expected="seconds, one frame after the other")
    return (len(times) - 1) / length if len(times) > 1 else None


def _refuse(path: Path) -> NoReturn:
    """Refuse to read a table, which has no skeleton."""
    raise FormatError(
        "a table does not hold its skeleton",
        where=str(path),
        hint="name its model: --model FILE, or synovia.read_csv(path, skeleton) in Python",
    )


FORMAT: Final = Format(
    name="CSV",
    extensions=(".csv",),
    looks_like=lambda head: False,
    read=_refuse,
    write=write_csv,
    holds_motions=True,
    read_onto=read_csv,
)
