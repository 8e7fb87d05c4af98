"""Tables of points over time as comma-separated text, wide or long.

wide   one row per frame: ``time`` (or ``frame``), then ``NAME.x``, ``NAME.y``, ``NAME.z`` and, optionally,
       ``NAME.confidence`` for each point; ``NAME_x``, ``x_NAME`` and ``x0`` are understood too
long   one row for each point in each frame: ``frame`` or ``time``, ``landmark``, ``x``, ``y``, ``z`` and, optionally,
       ``confidence`` or ``visibility``

An empty cell, ``nan`` or a missing row means that the point was not seen. Frames that are left out have no seen points.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.base import frame_rate, most_numbers, read_text
from synovia.io.csvfile import number_of, text_rows
from synovia.model.geometry import Array

SECONDS: Final = {"time": 1.0, "t": 1.0, "time_s": 1.0, "seconds": 1.0, "timestamp": 1.0, "time_ms": 1e-3,
                  "timestamp_ms": 1e-3, "milliseconds": 1e-3}  # fmt: skip
FRAMES: Final = ("frame", "frame_id", "frame_number", "frame_index", "frame_idx", "index")
POINTS: Final = ("landmark", "landmark_name", "name", "joint", "keypoint", "point", "marker", "bodypart", "body_part",
                 "landmark_id", "landmark_index", "keypoint_id", "id")  # fmt: skip
PEOPLE: Final = ("person", "person_id", "subject", "track_id", "pose_id")
CONFIDENCE: Final = (
    "confidence",
    "conf",
    "visibility",
    "vis",
    "score",
    "likelihood",
    "probability",
    "weight",
    "c",
    "v",
    "p",
)
IGNORED: Final = ("presence", "timestamp_us")
_COLUMNS: Final = 30_000  # largest number of columns of a table
_UNEVEN: Final = 0.2  # fraction of a step by which frame numbers and times may deviate from multiples of the step
_EXPECTED: Final = "time, then JOINT.x, JOINT.y, ...; or frame, landmark, x, y, z"
_AFTER: Final = re.compile(rf"^(.+?)[._ :-]?(x|y|z|{'|'.join(CONFIDENCE)})$", re.IGNORECASE)
_BEFORE: Final = re.compile(rf"^(x|y|z|{'|'.join(CONFIDENCE)})[._ :-]?(.+)$", re.IGNORECASE)
_APART: Final = re.compile(rf"^(.+)[._ :-](x|y|z|{'|'.join(CONFIDENCE)})$", re.IGNORECASE)


class PointTable(NamedTuple):
    """Points of a table: names, positions (T, K, 3), confidence (T, K), frames per second (None if unknown), notes."""

    names: list[str]
    positions: Array
    confidence: Array
    fps: float | None
    notes: list[str]


def read_point_table(path: Path) -> PointTable:
    """Read points over time from comma-separated text.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If columns are missing or cells are not numbers. The message names the line.
    """
    text = read_text(path)
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = next((mark for mark in (",", ";", "\t") if mark in first), ",")
    rows = text_rows(text, path, delimiter)
    nothing: tuple[str, list[str]] = "", []
    place, head = next(rows, nothing)
    if len(head) > _COLUMNS:
        raise FormatError("table has too many columns", where=place, value=len(head), expected=f"at most {_COLUMNS:,}")
    small = [name.lower() for name in head]
    if set("xyz") <= set(small):
        return _long(head, rows, path, most_numbers(len(text)))
    return _wide(head, place or f"{path}, line 1", rows, path)


def _rate(times: Array, factor: float, frames: NDArray[np.intp], path: Path) -> tuple[float | None, list[str]]:
    """Return the frames per second that times imply (None if unknown), and notes about the times; see ``frame_rate``.

    Args:
        times: Time or frame number of each row, (T,).
        factor: Seconds per unit of time; 0 for frame numbers.
        frames: Frame of each row, (T,).
        path: The file, for messages.
    """
    rate, notes = frame_rate(times * (factor or 1.0), path, frames)
    return (rate, notes) if factor else (None, [])


def _frames_of(numbers: Array) -> NDArray[np.intp]:
    """Return the frame of each row, (T,), from frame numbers or times; frames without rows are gaps.

    If the values are not multiples of one step, or most multiples are missing, they only give the order of the rows.
    """
    rows, steps = np.arange(len(numbers)), np.diff(numbers)
    if not len(steps) or not ((steps > 0.0) & (steps < np.inf)).all():
        return rows
    step = float(steps.sum() / np.rint(steps / np.median(steps)).sum())
    counts = np.rint(steps / step)
    if counts.min() < 1.0 or counts.sum() >= 2 * len(rows) or np.abs(steps / step - counts).max() > _UNEVEN:
        return rows
    return np.append(0, np.cumsum(counts)).astype(np.intp)


def _wide(head: list[str], place: str, rows: Iterator[tuple[str, list[str]]], path: Path) -> PointTable:
    """Return the points of a wide table, which has one row per frame."""
    seen: set[str] = set()
    for name in head:
        if name in seen:
            raise FormatError(f"column {name!r} is repeated", where=place, expected="each column once")
        seen.add(name)
    small = [name.lower() for name in head]
    clock = [k for k, name in enumerate(small) if name in SECONDS or name in FRAMES]
    if not clock or clock[0] != 0:
        raise FormatError("first column is not time", where=place, value=head[0] if head else None, expected=_EXPECTED)
    at = next((k for k in clock if small[k] in SECONDS), clock[0])
    columns = _wide_columns(
        [(k, name) for k, name in enumerate(head) if k not in clock and small[k] not in IGNORED], place
    )
    numbers = array("d")
    for where, row in rows:
        numbers.extend([number_of(cell, where, nan) for cell in row])
    values = np.array(numbers, np.float64).reshape(-1, len(head))
    frames = _frames_of(values[:, next((k for k in clock if small[k] in FRAMES), at)])
    last = int(frames.max(initial=-1))
    places, weights = np.full((last + 1, len(columns), 3), nan), np.zeros((last + 1, len(columns)))
    for k, parts in enumerate(columns.values()):
        places[frames, k] = values[:, [parts[axis] for axis in "xyz"]]
        weights[frames, k] = values[:, parts["confidence"]] if "confidence" in parts else 1.0
    times, factor = values[:, at], SECONDS.get(small[at], 0.0)
    return PointTable(list(columns), places, weights, *_rate(times, factor, frames, path))


def _wide_columns(names: Sequence[tuple[int, str]], place: str) -> dict[str, dict[str, int]]:
    """Return the column of each part ("x", "y", "z" or "confidence") of each point.

    The first naming scheme that fits all columns is used.
    """
    for form, order in ((_APART, (1, 2)), (_BEFORE, (2, 1)), (_AFTER, (1, 2))):
        found = [(k, form.match(name)) for k, name in names]
        columns: dict[str, dict[str, int]] = {}
        for k, match in found:
            if match is None:
                break
            part = match[order[1]].lower()
            own = columns.setdefault(match[order[0]], {})
            if own.setdefault(part if part in "xyz" else "confidence", k) != k:
                break
        else:
            if columns and all(set("xyz") <= parts.keys() for parts in columns.values()):
                return columns
    return _named_columns(names, place)


def _named_columns(names: Sequence[tuple[int, str]], place: str) -> dict[str, dict[str, int]]:
    """Raise the error for columns whose names do not form points.

    Raises:
        FormatError: Always.
    """
    parts: dict[str, set[str]] = {}
    for _, name in names:
        match = _APART.match(name)
        if match is None:
            raise FormatError(
                "column does not belong to a point", where=place, value=name, expected="JOINT.x, .y, .z once each"
            )
        parts.setdefault(match[1], set()).add(match[2].lower())
    missing = [f"{joint}.{axis}" for joint, own in parts.items() for axis in "xyz" if axis not in own]
    hint = "points of an image need their depth first, from a detector or a lifter"
    flat = bool(missing) and all(name.endswith(".z") for name in missing)
    expected = missing[0] if missing else "JOINT.x, JOINT.y, JOINT.z"
    raise FormatError("a column is missing", where=place, expected=expected, hint=hint if flat else None)


def _long(head: list[str], rows: Iterator[tuple[str, list[str]]], path: Path, most: int) -> PointTable:
    """Return the points of a long table, which has one row for each point in each frame."""
    small = [name.lower() for name in head]
    place = f"{path}, line 1"

    def column(names: Sequence[str], what: str = "") -> int:
        found = next((small.index(name) for name in names if name in small), -1)
        if found < 0 and what:
            raise FormatError(f"no column has {what}", where=place, expected=f"one of {', '.join(names)}")
        return found

    point = column(POINTS, "the names of the points")
    person = column(PEOPLE)
    time, frame = column(list(SECONDS)), column(FRAMES)
    clock = frame if frame >= 0 else time
    if clock < 0:
        raise FormatError("no column has the time", where=place, expected="frame or time")
    wanted = [clock, time if time >= 0 else clock, *(small.index(axis) for axis in "xyz"), column(CONFIDENCE)]
    numbers, names, keys, who = array("d"), dict[str, int](), array("l"), set[str]()
    for where, row in rows:
        keys.append(names.setdefault(row[point], len(names)))
        numbers.extend([number_of(row[k], where, nan) if k >= 0 else 1.0 for k in wanted])
        if person >= 0:
            who.add(row[person])
    if len(who) > 1:
        raise FormatError(
            "the table has several people", where=str(path), value=sorted(who)[:4], expected="one",
            hint=f"write the rows of one {head[person]} to a file of its own",
        )  # fmt: skip
    values = np.array(numbers, np.float64).reshape(-1, len(wanted))
    if not len(values):
        raise FormatError("table has no rows", where=str(path), expected=_EXPECTED)
    if not np.isfinite(values[:, 0]).all():
        raise FormatError("a row has no frame or time", where=str(path), expected="a number in every row")
    frames, which = np.unique(values[:, 0], return_inverse=True)
    numbers_of, which = _frames_of(frames), which.reshape(-1)
    last = int(numbers_of[-1])
    if 4 * (last + 1) * len(names) > most:
        value = last + 1, len(names)
        raise FormatError("table has too many points", where=str(path), value=value, expected="rows for most of them")
    index = np.array(keys, np.intp)
    cells = numbers_of[which] * len(names) + index
    if len(np.unique(cells)) < len(cells):
        name = list(names)[int(index[np.flatnonzero(np.bincount(cells)[cells] > 1)[0]])]
        raise FormatError(
            f"point {name!r} has two rows in one frame", where=str(path), expected="one person, each point once a frame"
        )
    places, weights = np.full(((last + 1) * len(names), 3), nan), np.zeros((last + 1) * len(names))
    places[cells], weights[cells] = values[:, 2:5], values[:, 5]
    times = np.full(len(frames), np.nan)
    times[which] = values[:, 1]
    factor = SECONDS[small[time]] if time >= 0 else 0.0
    shape = (last + 1, len(names))
    rate = _rate(times, factor, numbers_of, path)
    return PointTable(list(names), places.reshape(*shape, 3), weights.reshape(shape), *rate)
