"""Read skeletons from ``synovia.skeleton/1`` files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from synovia.errors import InputError, UnknownNameError
from synovia.io.base import read_bytes
from synovia.io.toml.table import AXES, SCHEMA, Table, decoded, lines_of, rotation_of
from synovia.model import Joint, Kind, Mimic, Site, Skeleton
from synovia.model.geometry import as_unit_quat, quat_to_matrix, rigid
from synovia.model.limits import Interval, Limit, SwingTwist
from synovia.model.tree import parent_row, rows_by_name
from synovia.text import parse_toml

if TYPE_CHECKING:
    from synovia.model.shapes.solids import Shape, Solid

_LARGEST: Final = 2**25  # largest size of a file, bytes: twice that of a file with the largest number of joints
_KINDS: Final = {kind.name.lower(): kind for kind in Kind}
_TIES: Final = ("loop", "coupling")  # tables that ``loops.py`` reads
_TOP: Final = ("schema", "name", "meters_per_unit", "up", "forward", "notes", "excluded_pairs", "joint", *_TIES)
_ANGLES: Final = ("rpy", "limit", "preferred", "swing_x", "swing_y", "twist")
_SWING: Final = ("swing_x", "swing_y", "twist", "bone", "x_axis", "frame")
_PLAIN: Final = (
    *("name", "parent", "kind", "position", "rotation_xyzw", "axis", "bone", "x_axis", "frame"),
    *(
        "stiffness",
        "mass",
        "com",
        "mimic",
        "body",
        "role",
        "tip",
        "channels",
        "bind_xyzw",
        "velocity",
        "sites",
        "shapes",
        "shapes_lost",
    ),
)
_KEYS: Final = (*_PLAIN, *_ANGLES, *(f"{key}_deg" for key in _ANGLES))
_TURN: Final = (-math.pi, math.pi)
_OTHERS: Final = {
    "synovia.world/": "this is a world, which load_world reads",
    "synovia.loops/": "these are loops of a model, which --loops and load_skeleton(path, loops=...) read",
}
_S = TypeVar("_S", bound="Shape")


def read_skeleton(path: Path) -> Skeleton:
    """Read the skeleton of a file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is not TOML or does not describe a skeleton; the message names the line.
    """
    return parse_skeleton(read_bytes(path, most=_LARGEST), path)


def parse_skeleton(data: bytes, path: Path) -> Skeleton:
    """Parse the skeleton that the content of a file describes."""
    text = decoded(data, path)
    content = parse_toml(text, str(path))
    lines = lines_of(text, "joint")
    top = Table(content, path, "", lines[0])
    schema = content.get("schema")
    if schema != SCHEMA:
        hint = next((said for begin, said in _OTHERS.items() if str(schema).startswith(begin)), None)
        expected = f'schema = "{SCHEMA}"'
        raise top.error("is not a skeleton file of this version", value=schema, expected=expected, hint=hint)
    top.only(_TOP)
    entries = content.get("joint")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", entries)):
        raise top.error("has no joints", value=entries, expected="tables that begin with [[joint]]")
    entries = cast("list[dict[str, Any]]", entries)
    if len(lines) != 1 + len(entries):  # unknown line numbers: several joints on a line, or a header in a text
        lines = [dict[str, int]()] * (1 + len(entries))
    tables = [
        Table(entry, path, f"joint {entry.get('name', number)!r}", lines[1 + number])
        for number, entry in enumerate(entries)
    ]
    joints = [_joint(table) for table in tables]
    rows = rows_by_name(joints)
    for joint, table in zip(joints, tables, strict=True):
        try:
            parent_row(joint, joints, rows)
        except InputError as error:
            raise table.at(error) from error
    try:
        skeleton = Skeleton(
            joints,
            name=top.text("name") or path.stem,
            meters_per_unit=top.number("meters_per_unit"),
            up=top.choice("up", AXES),
            forward=top.choice("forward", AXES),
            notes=top.words("notes") or (),
            source=path,
            excluded_pairs=_pairs(top),
        )
    except (InputError, UnknownNameError) as error:
        raise top.at(error) from error
    if not any(key in content for key in _TIES):
        return skeleton
    from synovia.io.toml.loops import tied  # imported only for files with loops

    return tied(skeleton, content, path, text)


def _joint(table: Table) -> Joint:
    """Return the joint that a table describes."""
    table.only(_KEYS)
    name, kind = table.text("name"), table.choice("kind", _KINDS)
    if name is None or kind is None:
        raise table.error(f"joint has no {'name' if name is None else 'kind'}")
    if kind is not Kind.HINGE and (key := next((k for k in ("limit_deg", "preferred_deg") if k in table.values), None)):
        raise table.error(f"a {kind.name.lower()} joint cannot have {key}", key, expected="a hinge")
    parent = table.values.get("parent")
    if isinstance(parent, bool) or not isinstance(parent, (str, int, type(None))):
        raise table.error("parent is not a joint", "parent", value=parent, expected="a name, or a number from 0")
    try:
        return Joint(
            name,
            parent,
            kind,
            rest=rigid(table.numbers("position", 3) or (0.0, 0.0, 0.0), rotation_of(table)),
            axis=np.array(table.numbers("axis", 3) or (0.0, 0.0, 0.0)),
            limit=_limit(table, kind),
            preferred=table.angle("preferred"),
            stiffness=table.number("stiffness") or 0.0,
            velocity=table.number("velocity"),
            mass=table.number("mass") or 0.0,
            com=np.array(table.numbers("com", 3) or (0.0, 0.0, 0.0)),
            mimic=_mimic(table),
            body=table.text("body"),
            role=table.text("role"),
            tip=table.flag("tip"),
            channels=table.words("channels"),
            sites=tuple(_sites(table)),
            shapes=tuple(_solids(table)) if "shapes" in table.values else (),
            shapes_lost=table.flag("shapes_lost"),
            bind=quat_to_matrix(as_unit_quat(bind, "bind_xyzw")) if (bind := table.numbers("bind_xyzw", 4)) else None,
        )
    except InputError as error:
        raise table.at(error) from error


def _limit(table: Table, kind: Kind) -> Limit | None:
    """Return the limit of a joint."""
    ends = table.angles("limit", 2, infinite=True)
    used = [key for key in table.values if key.removesuffix("_deg") in _SWING]
    if used and kind not in (Kind.BALL, Kind.FREE):
        raise table.error(
            f"a {kind.name.lower()} joint cannot have {used[0]}", used[0], expected="a ball or free joint"
        )
    if ends is not None:
        return Interval(*ends)
    if not used:
        return None
    half: list[tuple[float, float]] = []
    for key in ("swing_x", "swing_y"):
        low, high = table.angles(key, 2) or _TURN
        if not -math.pi - 1e-12 <= low <= 0.0 <= high <= math.pi + 1e-12:
            raise table.error(
                f"{key} is out of range",
                table.given_key(f"{key}_deg", key),
                value=(low, high),
                expected="from -pi..0 to 0..pi radians, rest inside",
            )
        half.append((abs(low), high))
    low, high = table.angles("twist", 2) or _TURN
    bone, x_axis, rows = table.numbers("bone", 3), table.numbers("x_axis", 3), table.numbers("frame", 9)
    if (bone is None) == (rows is None) or (x_axis is not None and bone is None):
        raise table.error("the limit needs one frame", expected="bone (and x_axis), or frame")
    if bone is not None:
        return SwingTwist.about(bone, x=half[0], y=half[1], twist=(low, high), x_axis=x_axis)
    a, b, c, d, e, f, g, h, i = cast("list[float]", rows)
    return SwingTwist(x=half[0], y=half[1], twist=(low, high), frame=((a, b, c), (d, e, f), (g, h, i)))


def _mimic(table: Table) -> Mimic | None:
    """Return the coupling of a joint."""
    values = table.values.get("mimic")
    if values is None:
        return None
    if not isinstance(values, dict):
        raise table.error("mimic has the wrong form", "mimic", value=values, expected='{ leader = "..." }')
    inner = table.inner("mimic", cast("dict[str, Any]", values))
    inner.only(("leader", "ratio", "offset", "binds"))
    leader, ratio, offset = inner.text("leader"), inner.number("ratio"), inner.number("offset")
    if leader is None:
        raise inner.error("mimic has no leader", expected="the name of another joint")
    return Mimic(leader, 1.0 if ratio is None else ratio, offset or 0.0, inner.flag("binds"))


def _sites(table: Table) -> list[Site]:
    """Return the sites of a joint."""
    sites: list[Site] = []
    for inner in table.tables("sites", '[{ name = "..." }, ...]'):
        inner.only(("name", "position", "rotation_xyzw", "rpy", "rpy_deg"))
        name = inner.text("name")
        if not name:
            raise inner.error("site has no name", expected='name = "..."')
        sites.append(Site(name, rigid(inner.numbers("position", 3) or (0.0, 0.0, 0.0), rotation_of(inner))))
    return sites


def _solids(table: Table) -> list[Solid]:
    """Return the shapes of a joint."""
    from synovia.model.shapes.solids import OF_BODIES  # imported only for files with shapes

    return shapes_of(table, OF_BODIES)


def shapes_of(table: Table, kinds: Mapping[str, type[_S]]) -> list[_S]:
    """Return the shapes of a table.

    Args:
        table: The table.
        kinds: Allowed shape classes by name.
    """
    from synovia.model.shapes.solids import roles_of

    shapes: list[_S] = []
    for inner in table.tables("shapes", '[{ kind = "sphere", radius = 0.1 }, ...]'):
        kind = inner.choice("kind", kinds)
        if kind is None:
            raise inner.error("shape has no kind", expected="one of " + ", ".join(kinds))
        sizes = {name: role.size for name, role in roles_of(kind).items()}
        turns = ("rotation_xyzw", "rpy", "rpy_deg") if "rotation" in sizes else ()
        inner.only(("kind", *(name for name in sizes if name != "rotation"), *turns))
        values: dict[str, Any] = {}
        for name, size in sizes.items():
            if name == "rotation":
                values[name] = rotation_of(inner)
            elif size == (-1, 3):
                values[name] = inner.points(name)
            elif name in inner.values:
                values[name] = inner.numbers(name, 3) if size else inner.number(name)
            elif name not in ("center", "point"):
                raise inner.error(f"{kind.word} has no {name}")
        shapes.append(kind(**values))
    return shapes


def _pairs(top: Table) -> list[tuple[str, str]]:
    """Return the excluded pairs of the file."""
    pairs: Any = top.values.get("excluded_pairs", [])
    if not isinstance(pairs, list) or not all(isinstance(pair, list) for pair in cast("list[Any]", pairs)):
        raise top.error(
            "excluded_pairs has the wrong form", "excluded_pairs", value=pairs, expected='[["a", "b"], ...]'
        )
    return [cast("tuple[str, str]", tuple(pair)) for pair in cast("list[list[str]]", pairs)]


def looks_like(head: bytes) -> bool:
    """Return whether a file has the schema of a skeleton, a world or loops, of any version."""
    return re.search(rb"""(?m)^\s*schema\s*=\s*["']synovia\.(skeleton|world|loops)/""", head) is not None
