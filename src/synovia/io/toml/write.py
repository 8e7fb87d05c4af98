"""Write skeletons to ``synovia.skeleton/1`` files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import FormatError
from synovia.io.base import OF_LOOPS, as_path, write_text
from synovia.io.toml.table import OFFSETS, SCHEMA
from synovia.model import Joint, Mimic, Site, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, rigid
from synovia.model.limits import Interval, SwingTwist
from synovia.model.shapes.solids import Shape
from synovia.text import toml_key, toml_text

if TYPE_CHECKING:
    from synovia.model.loops.loop import Tie


def write_skeleton(skeleton: Skeleton, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a skeleton without loss: reading the file gives the same skeleton.

    Args:
        skeleton: The skeleton.
        path: The file, usually with the extension ``.toml``.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        FormatError: If the file name ends with ``.loops.toml``, as for files of loops.
        InputError: If a name cannot be written as UTF-8.

    Example:
        >>> import synovia as sy
        >>> sy.formats.write_skeleton(sy.load_skeleton("robot.urdf"), "robot.toml")  # doctest: +SKIP
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    where = as_path(path)
    if where.name.lower().endswith(OF_LOOPS):
        what = f"names that end in {OF_LOOPS} are for files with the loops of a model"
        raise FormatError(what, where=str(where), expected="another name that ends in .toml")
    write_text(where, skeleton_text(skeleton), force=force)


def skeleton_text(skeleton: Skeleton) -> str:
    """Return the content of a skeleton file.

    Raises:
        InputError: If a name cannot be written as UTF-8.
    """
    head: dict[str, Any] = {"schema": SCHEMA, "name": skeleton.name, "meters_per_unit": skeleton.meters_per_unit}
    head |= {"up": skeleton.up, "forward": skeleton.forward, "notes": list(skeleton.notes) or None}
    head["excluded_pairs"] = [list(pair) for pair in skeleton.excluded_pairs] or None
    blocks = [block_of(head)]
    names = Counter(skeleton.joint_names)
    for joint, row in zip(skeleton.joints, skeleton.parents, strict=True):
        name = skeleton.joint_names[row] if row >= 0 else None
        parent = row if name is not None and names[name] > 1 else name
        blocks.append("[[joint]]\n" + block_of(_keys(joint, parent)))
    blocks += [_tie_text(tie) for tie in skeleton.loops]
    return "\n".join(blocks)


def _keys(joint: Joint, parent: str | int | None) -> dict[str, Any]:
    """Return the keys of a joint's table; values are None for defaults."""
    limit = joint.limit
    limits: dict[str, Any] = {}
    if isinstance(limit, Interval):
        limits = {"limit": (limit.lower, limit.upper)}
    elif isinstance(limit, SwingTwist):
        limits = {"frame": limit.axes.ravel(), "twist": limit.twist}
        limits |= {"swing_x": (-limit.x[0], limit.x[1]), "swing_y": (-limit.y[0], limit.y[1])}
    return {
        "name": joint.name,
        "parent": parent,
        "kind": joint.kind.name.lower(),
        **place_of(joint.rest),
        "axis": joint.axis if joint.axis.any() else None,
        **limits,
        "preferred": joint.preferred,
        "stiffness": joint.stiffness or None,
        "velocity": joint.velocity,
        "mass": joint.mass or None,
        "com": joint.com if joint.com.any() else None,
        "mimic": joint.mimic,
        "body": joint.body,
        "role": joint.role,
        "tip": joint.tip or None,
        "sites": list(joint.sites) or None,
        "shapes": [shape_keys(shape) for shape in joint.shapes] or None,
        "shapes_lost": joint.shapes_lost or None,
        "bind_xyzw": None if joint.bind is None else matrix_to_quat(joint.bind),
        "channels": None if joint.channels is None else list(joint.channels),
    }


def _tie_text(tie: Tie) -> str:
    """Return the table of a loop or a coupling."""
    from synovia.model.loops.loop import Coupling  # imported only for skeletons with loops

    if isinstance(tie, Coupling):
        factors = {joint: row[0] if len(row) == 1 else row for joint, row in tie.terms.items()}
        terms = ", ".join(f"{toml_key(joint)} = {literal(value)}" for joint, value in factors.items())
        return f"[[coupling]]\nterms = {{ {terms} }}\n{block_of({'name': tie.name, 'equals': tie.equals or None})}"
    keys: dict[str, Any] = {"name": tie.name, "first": tie.first, "second": tie.second, "kind": tie.kind}
    for key, frame in zip(OFFSETS, (tie.offset, tie.other_offset), strict=True):
        place = place_of(frame)
        keys |= {key: place["position"], f"{key}_rotation_xyzw": place["rotation_xyzw"]}
    return "[[loop]]\n" + block_of({**keys, "distance": tie.distance})


def shape_keys(shape: Shape) -> dict[str, Any]:
    """Return the keys of a shape, without a position at the origin or an identity rotation."""
    keys: dict[str, Any] = {"kind": shape.word}
    for each in fields(cast("Any", shape)):
        value: Any = getattr(shape, each.name)
        if each.name == "rotation":
            keys |= place_of(rigid(rotation=value))
        elif each.name == "points":
            keys["points"] = [tuple(point) for point in value.tolist()]
        elif each.name not in ("center", "point") or value.any():
            keys[each.name] = value
    return {key: value for key, value in keys.items() if value is not None}


def place_of(frame: Array) -> dict[str, Any]:
    """Return the keys of a rest transform (4, 4)."""
    position, rotation = frame[:3, 3], frame[:3, :3]
    return {
        "position": position if position.any() else None,
        "rotation_xyzw": None if np.array_equal(rotation, np.eye(3)) else matrix_to_quat(rotation),
    }


def block_of(keys: Mapping[str, Any]) -> str:
    """Return the TOML lines of a table."""
    return "".join(f"{key} = {literal(value)}\n" for key, value in keys.items() if value is not None)


def literal(value: object) -> str:
    """Return a value as TOML; numbers have enough digits to be read back exactly."""
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, Mimic):
        binds = ", binds = true" if value.binds else ""
        return f"{{ leader = {literal(value.leader)}, ratio = {value.ratio!r}, offset = {value.offset!r}{binds} }}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Site):
        return literal({"name": value.name, **place_of(value.rest)})
    if isinstance(value, dict):
        keys = cast("dict[str, Any]", value)
        return "{ " + ", ".join(f"{key} = {literal(part)}" for key, part in keys.items() if part is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(literal(word) for word in cast("list[object]", value)) + "]"
    if isinstance(value, (tuple, np.ndarray)):
        return "[" + ", ".join(repr(float(number)) for number in cast("Iterable[float]", value)) + "]"
    return repr(float(cast("float", value)))
