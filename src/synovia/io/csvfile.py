"""Joint values over time as comma-separated text, for robots and spreadsheets.

The first row names the columns: ``time`` in seconds, then each number of q: a hinge or slide under its joint's name, a
ball as ``NAME.qx .qy .qz .qw``, a free joint with ``NAME.x .y .z`` before that. Numbers have as many digits as they
need to come back the same.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import FormatError, InputError, did_you_mean, restated
from synovia.geometry import Array
from synovia.io.base import as_path, joint_keys, read_text, write_bytes
from synovia.motion import Motion
from synovia.skeleton import Kind, Skeleton

_TURN: Final = ("qx", "qy", "qz", "qw")
_PARTS: Final = {Kind.BALL: _TURN, Kind.FREE: ("x", "y", "z", *_TURN)}


def columns(skeleton: Skeleton) -> list[str]:
    """Return the name of each number of q."""
    names: list[str] = []
    for key, joint in zip(joint_keys(skeleton), skeleton.joints, strict=True):
        parts = _PARTS.get(joint.kind)
        names += [f"{key}.{part}" for part in parts] if parts else [key] * joint.kind.q_size
    return names


def write_csv(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write the joint values of a motion as comma-separated text.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time", *columns(motion.skeleton)])
    for time, row in zip(motion.times.tolist(), motion.q.tolist(), strict=True):
        writer.writerow([repr(time), *map(repr, row)])
    write_bytes(as_path(path), out.getvalue().encode(), force=force)


def read_csv(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Return a motion of a skeleton from comma-separated text; columns may stand in any order.

    Args:
        path: The file.
        skeleton: The skeleton; joints without a column stay at rest.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If a column belongs to no joint, a row is too short, or a number cannot be used; names the line.
    """
    where = as_path(path)
    head, rows = read_table(where, expected="time, then joints")
    known = {name: at for at, name in enumerate(columns(skeleton))}
    for name in head[1:]:
        if name not in known:
            raise FormatError(
                f"column {name!r} belongs to no joint", where=f"{where}, line 1", hint=did_you_mean(name, list(known))
            )
    if not rows:
        raise FormatError("file has no frames", where=str(where))
    values = numbers_of(rows, len(head), where)
    q = np.tile(skeleton.rest_q, (len(values), 1))
    q[:, [known[name] for name in head[1:]]] = values[:, 1:]
    try:
        return Motion(skeleton, q, frame_rate(values[:, 0], where) or 30.0, name=where.stem)
    except InputError as error:
        raise restated(error, FormatError, str(where)) from error


def read_table(path: Path, *, expected: str) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns, the first of which is ``time``, and the rows below them, empty ones left out.

    Args:
        path: The file.
        expected: What the first line should hold, for the message.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the first column is not ``time``.
    """
    rows = [row for row in csv.reader(io.StringIO(read_text(path))) if row]
    head = [name.strip() for name in rows[0]] if rows else []
    if not head or head[0] != "time":
        raise FormatError("first column is not time", where=f"{path}, line 1", expected=expected)
    return head, rows[1:]


def numbers_of(rows: Sequence[Sequence[str]], width: int, path: Path, *, gap: float | None = None) -> Array:
    """Return rows of cells as numbers, (rows, width).

    Args:
        rows: The cells, from the second line of the file on.
        width: Columns that each must have.
        path: The file, for messages.
        gap: What an empty cell stands for; None: it is an error.

    Raises:
        FormatError: If a row has another length, or a cell is no number; names the line.
    """
    values = np.empty((len(rows), width))
    for number, row in enumerate(rows):
        try:
            values[number] = [gap if gap is not None and not cell.strip() else float(cell) for cell in row]
        except ValueError as error:
            where = f"{path}, line {number + 2}"
            raise FormatError(f"row does not fit: {error}", where=where, expected=f"{width} numbers") from error
    return values


def frame_rate(times: Array, path: Path) -> float | None:
    """Return the frames per second of times (T,), seconds; None for a single one.

    Raises:
        FormatError: If they do not increase.
    """
    steps = np.diff(times)
    if len(steps) and not (np.isfinite(steps).all() and steps.min() > 0.0):
        raise FormatError("times do not increase", where=str(path), expected="seconds, one frame after the other")
    return len(steps) / float(times[-1] - times[0]) if len(steps) else None
