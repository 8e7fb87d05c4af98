"""Read and write Synovia's text format for worlds, ``synovia.world/1``, which people can write by hand.

    schema = "synovia.world/1"
    meters_per_unit = 1.0
    up = "z"

    [[obstacle]]
    name = "floor"
    shapes = [{ kind = "half-space", normal = [0, 0, 1] }]

    [[obstacle]]
    name = "table"
    position = [0.5, 0, 0]      # of the obstacle's frame in the world
    rpy_deg = [0, 0, 30]        # about the world's x, then y, then z axis; or rotation_xyzw, a unit quaternion
    shapes = [                  # in the obstacle's frame
        { kind = "box", center = [0, 0, 0.7], size = [0.6, 1, 0.04] },
        { kind = "cylinder", center = [0, 0, 0.34], radius = 0.05, length = 0.68 },
    ]

The kinds are the names of the shapes in ``model.shapes.solids``, such as ``box`` and ``half-space``; the keys of a
shape are the arguments of its class. ``rpy`` is in radians. An obstacle without ``name`` is named after its kind.
Without ``meters_per_unit`` or ``up``, the world has the unit and the axis of the bodies that use it. Unknown keys cause
an error.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from synovia.arguments import check_kind
from synovia.errors import InputError, UnsupportedError
from synovia.io.base import as_path, read_bytes, write_text
from synovia.io.toml.read import parse_skeleton, shapes_of
from synovia.io.toml.table import AXES, SCHEMA, Table, decoded, lines_of, rotation_of
from synovia.io.toml.write import block_of, literal, place_of, shape_keys
from synovia.model.geometry import rigid
from synovia.model.shapes.solids import KINDS, PointCloud, Shape
from synovia.model.shapes.world import Obstacle, World
from synovia.text import parse_toml

WORLD: Final = "synovia.world/1"
_LARGEST: Final = 2**25  # largest size of a file, bytes; tomllib is slow
_SHAPES: Final[dict[str, type[Shape]]] = {**KINDS, PointCloud.word: PointCloud}
_TOP: Final = ("schema", "meters_per_unit", "up", "notes", "obstacle")
_KEYS: Final = ("name", "position", "rotation_xyzw", "rpy", "rpy_deg", "shapes")


def read_world(path: Path) -> World:
    """Read the obstacles of a world file, or the shapes of the body at rest from a skeleton file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed; the message names the line.
    """
    data = read_bytes(path, most=_LARGEST)
    text = decoded(data, path)
    content = parse_toml(text, str(path))
    lines = lines_of(text, "obstacle")
    top = Table(content, path, "", lines[0])
    if content.get("schema") == SCHEMA:
        return World.of(parse_skeleton(data, path).rest_pose())
    if content.get("schema") != WORLD:
        expected = f'schema = "{WORLD}"'
        raise top.error("is not a world file of this version", value=content.get("schema"), expected=expected)
    top.only(_TOP)
    entries = [entry.values for entry in top.tables("obstacle", "tables that begin with [[obstacle]]")]
    if len(lines) != 1 + len(entries):  # unknown line numbers: several obstacles on a line, or a header in a text
        lines = [dict[str, int]()] * (1 + len(entries))
    tables = [
        Table(entry, path, f"obstacle {entry.get('name', number)!r}", lines[1 + number])
        for number, entry in enumerate(entries)
    ]
    obstacles = [_obstacle(table) for table in tables]
    used: dict[str, Table] = {}
    for obstacle, table in zip(obstacles, tables, strict=True):
        if obstacle.name is not None and used.setdefault(obstacle.name, table) is not table:
            raise table.error("name is used twice", "name", value=obstacle.name, expected="each name once")
    try:
        return World(
            tuple(obstacles),
            meters_per_unit=top.number("meters_per_unit"),
            up=top.choice("up", AXES),
            notes=top.words("notes") or (),
            source=path,
        )
    except InputError as error:
        raise top.at(error) from error


def _obstacle(table: Table) -> Obstacle:
    """Return the obstacle that a table describes."""
    table.only(_KEYS)
    if "shapes" not in table.values:
        raise table.error("obstacle has no shapes", expected='shapes = [{ kind = "sphere", radius = 0.1 }]')
    try:
        place = rigid(table.numbers("position", 3) or (0.0, 0.0, 0.0), rotation_of(table))
        return Obstacle(tuple(shapes_of(table, _SHAPES)), name=table.text("name"), transform=place)
    except InputError as error:
        raise table.at(error) from error


def save_world(world: World, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a world as TOML, for ``load_world`` and ``--world``; values are exact up to rounding.

    Args:
        world: The world.
        path: The file, with the ending ``.toml``.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        UnsupportedError: If the name of the file has another ending.
        InputError: If a name cannot be written as UTF-8.

    Example:
        >>> import synovia as sy
        >>> sy.save_world(sy.World({"floor": sy.HalfSpace()}), "world.toml")  # doctest: +SKIP
    """
    check_kind("world", world, World, "such as sy.World([sy.Box(size=(1, 1, 1))])")
    where = as_path(path)
    if where.suffix.lower() != ".toml":
        raise UnsupportedError("name of a world file", where=str(where), expected="an ending .toml")
    write_text(where, world_text(world), force=force)


def world_text(world: World) -> str:
    """Return the content of a world file.

    Raises:
        InputError: If a name cannot be written as UTF-8.
    """
    head: dict[str, Any] = {"schema": WORLD, "meters_per_unit": world.meters_per_unit, "up": world.up}
    blocks = [block_of({**head, "notes": list(world.notes) or None})]
    for obstacle in world:
        keys = {"name": obstacle.name, **place_of(obstacle.transform)}
        rows = "".join(f"    {literal(shape_keys(shape))},\n" for shape in obstacle.shapes)
        blocks.append(f"[[obstacle]]\n{block_of(keys)}shapes = [\n{rows}]\n")
    return "\n".join(blocks)
