"""Read BVH hierarchies as skeletons, and BVH frames as motions.

The position channels of a joint replace the same coordinates of its OFFSET, also if they come after rotations.
Three positions with three rotations make one FREE row. Otherwise each position makes a SLIDE row, three rotations make
a BALL row, and one or two rotations make HINGE rows. If a joint needs several rows, they share its name as their body,
and the last row is the parent of the joint's children.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from synovia.io.base import Contents
from synovia.io.bvh.text import LARGEST, NUMBER, Node, Source, read_hierarchy
from synovia.io.nodes.euler import AXES, to_quat
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array, axis_vector, rigid
from synovia.model.motion import Motion
from synovia.model.rates import RATES, is_rate, rate_of_step
from synovia.model.skeleton import MAX_JOINTS

_MOST_STILL: Final = 1_000_000  # largest number of frames without channels; such frames take no bytes in the file
_FRAMES: Final = re.compile(r"\s*+frames\s*+:?\s*+([^\s:]+)", re.ASCII | re.IGNORECASE)
_COUNT: Final = re.compile(r"-?\d{1,15}", re.ASCII)  # some recorders write -1 for an unknown count
_FRAME_TIME: Final = re.compile(r"\s*+frame\s*+time\s*+:?\s*+([^\s:]+)", re.ASCII | re.IGNORECASE)
_LOST = 1e-9  # fraction of the largest position (at least 1): allowed rounding error when OFFSET is subtracted


@dataclass(frozen=True, slots=True)
class _Row:
    """A skeleton row: its columns of the table, the OFFSET that these columns replace, and its position in the text."""

    joint: Joint
    columns: tuple[int, ...]
    offset: tuple[float, float, float]
    at: int


def looks_like(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a BVH file, in UTF-8 or UTF-16."""
    plain = head.replace(b"\0", b"")
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"):
        plain = plain.removeprefix(mark)
    return plain.lstrip()[:9].upper() == b"HIERARCHY"


def read(path: Path) -> Contents:
    """Read a BVH file and check its MOTION part; if it has none, ``motions`` raises an error when it is called.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If any part is malformed; a missing or empty MOTION part is allowed.
    """
    source = Source(path)
    nodes, moves = read_hierarchy(source)
    rows, width = _rows(source, nodes)
    table, seconds, notes = read_table(source, width) if moves else (None, "", ())
    skeleton = Skeleton([row.joint for row in rows], name=path.name, notes=notes, source=path)
    return Contents(skeleton, lambda: [_motion(source, skeleton, rows, table, seconds)], shown=0)


def _motion(source: Source, skeleton: Skeleton, rows: list[_Row], table: Array | None, seconds: str) -> Motion:
    """Return the motion of a table (T, channels); the table is None for a file without a MOTION part.

    Raises:
        FormatError: If the file has no frames, or its frame time cannot be used.
    """
    if table is None:
        source.fail("file has no motion", expected="MOTION after the hierarchy")
    if not len(table):
        source.fail(
            "file has no frames", value=0, expected="at least one", hint="load_skeleton reads only the hierarchy"
        )
    step = float(seconds)
    if not (step > 0.0 and is_rate(1.0 / step)):
        source.fail("frame time cannot be used", value=step, expected=f"seconds above 0, {RATES}")
    fps, notes = rate_of_step(seconds)
    q = _joint_values(source, rows, table)
    return Motion(skeleton, q, fps, name=source.path.stem, notes=(*skeleton.notes, *notes))


def _rows(source: Source, nodes: list[Node]) -> tuple[list[_Row], int]:
    """Return the rows of all nodes, in the order of the file, and the number of channels."""
    names = _tip_names(nodes)
    rows: list[_Row] = []
    last: list[int] = []  # last row of each node
    width = 0
    count = sum(len(row_groups(node.channels or ())) for node in nodes)
    if count > MAX_JOINTS:
        source.fail("too many joints", at=nodes[-1].at, value=count, expected=f"at most {MAX_JOINTS}")
    for number, node in enumerate(nodes):
        parent = last[node.parent] if node.parent >= 0 else None
        rows += _rows_of(node, names.get(number, node.name), parent, len(rows), width)
        last.append(len(rows) - 1)
        width += len(node.channels or ())
    return rows, width


@cache
def row_groups(channels: tuple[str, ...]) -> list[tuple[Kind, list[int]]]:
    """Return the kind of each row that a joint needs, with the indices of its channels among the joint's channels."""
    moves = [c for c, channel in enumerate(channels) if channel.endswith("position")]
    turns = [c for c, channel in enumerate(channels) if channel.endswith("rotation")]
    if len(moves) == len(turns) == 3:
        return [(Kind.FREE, sorted(moves, key=lambda c: channels[c]) + turns)]
    groups = [(Kind.SLIDE, [c]) for c in moves]
    groups += [(Kind.BALL, turns)] if len(turns) == 3 else [(Kind.HINGE, [c]) for c in turns]
    return groups or [(Kind.FIXED, [])]


def _rows_of(node: Node, name: str, parent: int | None, start: int, column: int) -> list[_Row]:
    """Return the skeleton rows of a node.

    Args:
        node: The node.
        name: Name of the node.
        parent: Last row of the node's parent.
        start: Index of the node's first row.
        column: Column of the node's first channel.
    """
    channels = node.channels or ()
    offset = node.offset or (0.0, 0.0, 0.0)
    groups = row_groups(channels)
    several = len(groups) > 1
    rows: list[_Row] = []
    for i, (kind, parts) in enumerate(groups):
        scalar = kind in (Kind.SLIDE, Kind.HINGE)
        joint = Joint(
            f"{name}.{channels[parts[0]]}" if several and scalar else name,
            parent=start + i - 1 if i else parent,
            kind=kind,
            rest=rigid(offset if i == 0 else (0.0, 0.0, 0.0)),
            axis=axis_vector(channels[parts[0]][0].lower()) if scalar else np.zeros(3),
            body=name if several else None,
            tip=node.end,
            channels=channels if i == len(groups) - 1 else None,
        )
        rows.append(_Row(joint, tuple(column + c for c in parts), offset, node.at))
    return rows


def _tip_names(nodes: list[Node]) -> dict[int, str]:
    """Return names for end sites without a name: the joint's name with ``_end``, and a number if this is taken."""
    taken = {node.name for node in nodes}
    used: dict[str, int] = {}
    out: dict[int, str] = {}
    for number, node in enumerate(nodes):
        if node.name:
            continue
        stem = name = f"{nodes[node.parent].name}_end"
        while name in taken:
            used[stem] = used.get(stem, 1) + 1
            name = f"{stem}{used[stem]}"
        taken.add(name)
        out[number] = name
    return out


def _joint_values(source: Source, rows: list[_Row], table: Array) -> Array:
    """Return the joint values, (T, nq), for a table of channel values, (T, channels)."""
    q = np.empty((len(table), sum(row.joint.kind.q_size for row in rows)))
    at = 0
    for row in rows:
        kind, size = row.joint.kind, row.joint.kind.q_size
        values = table[:, row.columns]
        if kind is Kind.SLIDE:
            q[:, at : at + 1] = _relative(source, row, values, np.array(row.offset)[row.joint.axis > 0.0])
        elif kind is Kind.HINGE:
            q[:, at : at + 1] = np.radians(values)
        elif kind is Kind.FREE:
            q[:, at : at + 3] = _relative(source, row, values[:, :3], np.array(row.offset))
        if kind in (Kind.BALL, Kind.FREE):
            order = [AXES.index(name[0]) for name in row.joint.channels or () if name.endswith("rotation")]
            q[:, at + size - 4 : at + size] = to_quat(order, np.radians(values[:, -3:]))
        at += size
    return q


def _relative(source: Source, row: _Row, values: Array, offset: Array) -> Array:
    """Return positions relative to OFFSET; raise an error if a huge OFFSET makes them inaccurate."""
    moved = values - offset
    lost = float(np.abs(moved + offset - values).max())
    if lost > _LOST * max(1.0, float(np.abs(values).max())):
        source.fail(
            f"positions of joint {row.joint.body or row.joint.name!r} lose precision when added to its OFFSET",
            at=row.at,
            value=offset.tolist(),
            expected="an OFFSET of the size of the motion",
        )
    return moved


def read_table(source: Source, width: int) -> tuple[Array, str, tuple[str, ...]]:
    """Read the values of all frames, (T, width), the frame time in seconds as text, and notes.

    If there are more or fewer complete frames than announced, all existing frames are read, as in Blender, with a note.

    Args:
        source: The file, read up to MOTION.
        width: Number of channels of the hierarchy.

    Raises:
        FormatError: If a header line is missing, a frame is incomplete, or a value is not finite.
    """
    match = _FRAMES.match(source.text, source.at)
    count = match.group(1) if match else ""
    source.word()
    if match is None or not _COUNT.fullmatch(count):
        at = match.start(1) if match else None
        source.fail(
            "number of frames is missing or cannot be used", at=at, value=count or None, expected="Frames: a count"
        )
    frames = int(count)
    source.at = match.end()
    match = _FRAME_TIME.match(source.text, source.at)
    if match is None:
        source.word()
        source.fail("frame time is missing", expected="Frame Time: seconds")
    source.at = match.start(1)
    word = match.group(1)
    if not NUMBER.fullmatch(word):
        source.fail("Frame Time is not a number", at=source.at, value=word, expected="seconds")
    source.begin, source.at = match.span(1)
    if width == 0 and frames > _MOST_STILL:
        source.fail("too many frames without channels", value=frames, expected=f"at most {_MOST_STILL}")
    table = _numbers(source, max(frames, 0), width)
    cut = ", so it may be cut off" if len(table) < frames else ""
    note = f"The file announces {frames} frames and has {len(table)}{cut}; these were read."
    return table, word, () if len(table) == frames else (note,)


def _numbers(source: Source, frames: int, width: int) -> Array:
    """Parse the rest of the file as values (T, width)."""
    begin = source.at
    body = source.text[begin:]
    values = _parsed(source, body, begin)
    if values.size != frames * width and (not values.size or not width or values.size % width):
        extra = values.size > frames * width
        at = _token(body, frames * width) if extra else len(body.rstrip())
        whole, rest = divmod(values.size, width) if width else (0, values.size)
        found = f"{whole} frames" + (f" and {rest} numbers" if rest else "") if width else f"{rest} numbers"
        source.fail(
            f"the motion has {'more' if extra else 'fewer'} numbers than announced: {values.size} ({found})",
            at=begin + at,
            expected=f"{frames * width} ({frames} frames of {width} channels)",
        )
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        k = int(np.argmax(bad))
        source.fail(
            f"value of channel {k % width + 1} in frame {k // width + 1} is not finite or too large",
            at=begin + _token(body, k),
            value=float(values[k]),
            expected="a finite number",
        )
    return values.reshape(-1 if width else frames, width)


def _parsed(source: Source, body: str, begin: int) -> Array:
    """Parse all numbers of a text with one fast call; if this fails, search for the wrong word."""
    if not body or body.isspace():
        return np.zeros(0)  # np.fromstring reads white space as a single number
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # NumPy before 2.3 reports invalid words in this way
            return np.fromstring(body, sep=" ")
    except (ValueError, DeprecationWarning):
        pass
    for match in re.finditer(r"\S+", body, re.ASCII):
        if not NUMBER.fullmatch(match.group()):
            source.fail(
                "unexpected word in the motion", at=begin + match.start(), value=match.group(), expected="a number"
            )
    return np.array([float(word) for word in re.findall(r"\S+", body, re.ASCII)])


def _token(body: str, k: int) -> int:
    """Return the position of word k in a text."""
    for i, match in enumerate(re.finditer(r"\S+", body, re.ASCII)):
        if i == k:
            return match.start()
    return len(body)
