"""Read loops and couplings in TOML: tables of a skeleton file, or a file next to a model, ``synovia.loops/1``.

    schema = "synovia.loops/1"

    [[loop]]
    name = "shin"               # optional, for messages
    first = "coupler"           # a joint, link or site
    second = "rocker"           # without this key: the world
    kind = "point"              # or weld, hinge, universal, slide, cylindrical, distance
    offset = [0.3, 0, 0]        # position on the first, in its frame
    offset_rpy_deg = [0, 0, 90] # rotations about x, y, z in order; or offset_rotation_xyzw, a unit quaternion
    other_offset = [0.1, 0, 0]  # position on the second, in its frame; also other_offset_rpy_deg
    distance = 0.2              # only for the kind "distance"

    [[coupling]]
    terms = { thumb = 1, index = [-0.5, 0.1] }  # factors of the value, or of its first to fourth power
    equals = 0                                  # the sum of the terms, by default 0

The keys are the arguments of ``Loop`` and ``Coupling``; values are in radians and length units. A file
``robot.loops.toml`` next to ``robot.urdf`` is read with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from synovia.errors import InputError, UnknownNameError
from synovia.io.base import read_bytes
from synovia.io.toml.table import OFFSETS, Table, decoded, lines_of, rotation_of
from synovia.model import Skeleton
from synovia.model.geometry import Array, rigid
from synovia.model.loops.loop import KINDS, Coupling, Loop, Tie
from synovia.text import parse_toml

SCHEMA: Final = "synovia.loops/1"
TABLES: Final = ("loop", "coupling")
_LARGEST: Final = 2**22  # largest size of a file, bytes
_TURNS: Final = ("rotation_xyzw", "rpy", "rpy_deg")
_LOOP: Final = (
    *("name", "first", "second", "kind", "distance"),
    *(key for offset in OFFSETS for key in (offset, *(f"{offset}_{turn}" for turn in _TURNS))),
)
_COUPLING: Final = ("name", "terms", "equals")


def with_loops_of(skeleton: Skeleton, path: Path) -> Skeleton:
    """Return a skeleton with the loops of a file in addition to its own.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed, names objects that the skeleton lacks, or has a loop that cannot close.
    """
    text = decoded(read_bytes(path, most=_LARGEST), path)
    content = parse_toml(text, str(path))
    top = Table(content, path, "", lines_of(text, "loop")[0])
    if content.get("schema") != SCHEMA:
        expected = f'schema = "{SCHEMA}"'
        raise top.error("is not a file of loops of this version", value=content.get("schema"), expected=expected)
    top.only(("schema", *TABLES))
    return tied(skeleton, content, path, text)


def tied(skeleton: Skeleton, content: Mapping[str, Any], path: Path, text: str) -> Skeleton:
    """Return a skeleton with the loops in the tables of a file in addition to its own.

    Raises:
        FormatError: If a table is malformed, names objects that the skeleton lacks, or has a loop that cannot be
            closed; the message names the line.
    """
    ties: list[tuple[Tie, Table]] = []
    for name in TABLES:
        for table in _tables(content, path, text, name):
            try:
                tie = _loop(table) if name == "loop" else _coupling(table)
                _ = tie.ends(skeleton) if isinstance(tie, Loop) else tie.joint_rows(skeleton)
            except (InputError, UnknownNameError) as error:
                raise table.at(error) from error
            ties.append((tie, table))
    if not ties:
        return skeleton
    try:
        return skeleton.with_loops([*skeleton.loops, *(tie for tie, _ in ties)])
    except (InputError, UnknownNameError) as error:
        table = next((table for tie, table in ties if repr(tie.label) in error.what), Table({}, path, "", {}))
        raise table.at(error) from error


def _tables(content: Mapping[str, Any], path: Path, text: str, name: str) -> list[Table]:
    """Return all tables with a name."""
    lines = lines_of(text, name)
    entries = Table(content, path, "", lines[0]).tables(name, f"tables that begin with [[{name}]]")
    if len(lines) != 1 + len(entries):  # unknown line numbers: several loops on a line, or a header in a text
        lines = [dict[str, int]()] * (1 + len(entries))
    return [
        Table(entry.values, path, f"{name} {entry.values.get('name', number)!r}", lines[1 + number])
        for number, entry in enumerate(entries)
    ]


def _loop(table: Table) -> Loop:
    """Return the loop that a table describes."""
    table.only(_LOOP)
    first = table.text("first")
    if first is None:
        raise table.error("loop has no first", expected="the name of a joint, link or site")
    table.choice("kind", KINDS)
    offset, other = (_offset(table, key) for key in OFFSETS)
    return Loop(
        first,
        table.text("second"),
        table.text("kind") or "point",
        offset=offset,
        other_offset=other,
        distance=table.number("distance"),
        name=table.text("name"),
    )


def _offset(table: Table, key: str) -> Array:
    """Return the frame that the keys of a table describe."""
    return rigid(table.numbers(key, 3) or (0.0, 0.0, 0.0), rotation_of(table, f"{key}_"))


def _coupling(table: Table) -> Coupling:
    """Return the coupling that a table describes."""
    table.only(_COUPLING)
    terms = table.values.get("terms")
    if not isinstance(terms, dict) or not terms:
        raise table.error("terms has the wrong form", "terms", value=terms, expected="{ joint = factor, ... }")
    given = cast("dict[str, Any]", terms)
    inner = table.inner("terms", given)
    factors: dict[str, Any] = {}
    for joint, value in given.items():
        several = isinstance(value, list)
        factors[joint] = inner.numbers(joint, len(cast("list[Any]", value))) if several else inner.number(joint)
    return Coupling(factors, table.number("equals") or 0.0, name=table.text("name"))
