"""Read BVH hierarchies as skeletons, and BVH frames as motions.

The position channels of a joint replace the same coordinates of its OFFSET, wherever they are among the rotations.
Three positions with three rotations make one FREE row. Otherwise each position makes a SLIDE row, three rotations make
a BALL row, and one or two rotations make HINGE rows. If a joint needs several rows, they share its name as their body,
and the last row is the parent of the joint's children.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from synovia.io.base import Contents
from synovia.io.bvh.table import read_table
from synovia.io.bvh.text import Node, Source, read_hierarchy
from synovia.io.nodes.euler import AXES, to_quat
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array, axis_vector, rigid
from synovia.model.motion import Motion
from synovia.model.rates import RATES, is_rate, rate_of_step
from synovia.model.skeleton import MAX_JOINTS

_LOST = 1e-9  # largest rounding error of a position relative to OFFSET, as a fraction of the position (or of one unit)


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
    """Read a BVH file and check its MOTION part; if this part is missing, only ``motions`` raises an error.

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
