"""Joint values over time as comma-separated text, for robots and spreadsheets.

The first row names the columns: ``time`` in seconds, then each number of q: a hinge or slide under its joint's name, a
ball as ``NAME.qx .qy .qz .qw``, a free joint with ``NAME.x .y .z`` before that. Numbers have as many digits as they
need to come back the same.
"""

from __future__ import annotations

import csv
import io
import os
from typing import Final

import numpy as np

from synovia.errors import FormatError, InputError, did_you_mean, restated
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
    rows = [row for row in csv.reader(io.StringIO(read_text(where))) if row]
    known = {name: at for at, name in enumerate(columns(skeleton))}
    head = [name.strip() for name in rows[0]] if rows else []
    if not head or head[0] != "time":
        raise FormatError("first column is not time", where=f"{where}, line 1", expected="time, then joints")
    for name in head[1:]:
        if name not in known:
            raise FormatError(
                f"column {name!r} belongs to no joint", where=f"{where}, line 1", hint=did_you_mean(name, list(known))
            )
    if len(rows) < 2:
        raise FormatError("file has no frames", where=str(where))
    values = np.empty((len(rows) - 1, len(head)))
    for number, row in enumerate(rows[1:]):
        try:
            values[number] = [float(cell) for cell in row]
        except ValueError as error:
            raise FormatError(
                f"row does not fit: {error}", where=f"{where}, line {number + 2}", expected=f"{len(head)} numbers"
            ) from error
    q = np.tile(skeleton.rest_q, (len(values), 1))
    q[:, [known[name] for name in head[1:]]] = values[:, 1:]
    steps = np.diff(values[:, 0])
    if len(steps) and not (np.isfinite(steps).all() and steps.min() > 0.0):
        raise FormatError("times do not increase", where=str(where), expected="seconds, one frame after the other")
    fps = len(steps) / float(values[-1, 0] - values[0, 0]) if len(steps) else 30.0
    try:
        return Motion(skeleton, q, fps, name=where.stem)
    except InputError as error:
        raise restated(error, FormatError, str(where)) from error
