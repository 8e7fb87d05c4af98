"""Joint maps, which assign joints of the target to joints of the source, and their files, which users can edit.

    schema = "synovia.map/1"

    [joints]
    hips = ["Hips", "pelvis"]              # part of the body = [source, target]
    left_upper_leg = ["LeftUpLeg", "thigh.l"]

Parts have the names of VRM in snake case, or the roles that the file of a body gives its joints. Only these parts are
retargeted. A joint is given by name or, if several joints share the name, by its row in the file. Without ``hips`` and
the upper and lower legs, the base of the target does not move. An incomplete line, such as ``["LeftUpLeg", ""]``, is
written as a comment for the user to complete.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from synovia.errors import FormatError, InputError, unknown_name
from synovia.io.base import as_path, read_text, write_text
from synovia.model import Skeleton
from synovia.model.anatomy.names import ALIASES, PERSON, is_finger
from synovia.retargeting.body import NEEDED
from synovia.text import parse_toml, toml_key, toml_text

SCHEMA: Final = "synovia.map/1"
_EXPECTED_PAIR: Final = "a pair (joint of the source, joint of the target)"
_EXPECTED: Final = f"a dict with {_EXPECTED_PAIR} for each part"
_LARGEST: Final = 2**24  # bytes: largest file; a line has about fifty


def check_map(joint_map: object, *bodies: Skeleton) -> dict[str, tuple[Any, Any]]:
    """Check the parts and pairs of a joint map, but not the joints; return the map with the usual names of parts.

    Args:
        joint_map: The map that a user gives.
        bodies: Both bodies, whose own roles are parts too; without bodies, any part is accepted.

    Raises:
        InputError: If it is no mapping, or the value of a part is no pair.
        UnknownNameError: If there is no such part.
    """
    if not isinstance(joint_map, Mapping):
        hint = "sy.formats.read_map(path) reads a file" if isinstance(joint_map, str | os.PathLike) else None
        raise InputError("joint_map", value=type(cast(object, joint_map)), expected=_EXPECTED, hint=hint)
    out: dict[str, tuple[Any, Any]] = {}
    known = dict.fromkeys((*PERSON, *(role for body in bodies for role in body.role_rows)))
    for name, pair in cast("Mapping[str, Any]", joint_map).items():
        part = ALIASES.get(name, name)
        if bodies and part not in known and not is_finger(str(part)):
            raise unknown_name("part of the body", name, [*known, *ALIASES], "the joint map")
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(cast("Sequence[Any]", pair)) != 2:
            raise InputError(f"joint_map[{part!r}]", value=cast(object, pair), expected=_EXPECTED_PAIR)
        out[part] = (pair[0], pair[1])
    return out


def draft_map(
    source: Skeleton, target: Skeleton, joint_map: Mapping[str, tuple[Any, Any]] | None = None
) -> dict[str, tuple[str, str]]:
    """Return the known pairs of a joint map, (source joint, target joint), by part; "" for a missing joint.

    Args:
        source: The body that moves.
        target: The target body.
        joint_map: Joints given by the user instead of the automatic match.
    """
    found = _draft_rows(source, target, joint_map).items()
    names = source.frame_names, target.frame_names
    return {part: ("" if a is None else names[0][a], "" if b is None else names[1][b]) for part, (a, b) in found}


def draft_to_save(
    source: Skeleton, target: Skeleton, joint_map: Mapping[str, tuple[Any, Any]] | None = None
) -> dict[str, tuple[str | int, str | int]]:
    """Return a draft like ``draft_map``; rows replace names that joints share, so that it can be read back."""
    found = _draft_rows(source, target, joint_map).items()
    return {
        part: ("" if a is None else source.address(a), "" if b is None else target.address(b)) for part, (a, b) in found
    }


def _draft_rows(
    source: Skeleton, target: Skeleton, joint_map: Mapping[str, tuple[Any, Any]] | None
) -> dict[str, tuple[int | None, int | None]]:
    """Return the known pairs of a joint map as rows, by part; None for a missing joint."""
    if joint_map is None:
        rows = [dict(body.role_rows) for body in (source, target)]
    else:
        given = check_map(joint_map, source, target)
        rows = [{part: body.index(pair[k]) for part, pair in given.items()} for k, body in enumerate((source, target))]
    parts = dict.fromkeys((*NEEDED, *rows[0], *rows[1]))
    return {part: (rows[0].get(part), rows[1].get(part)) for part in parts}


def write_map(
    joints: Mapping[str, tuple[str | int, str | int]], path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write a joint map.

    Args:
        joints: (source joint, target joint) by part, each a name or a row; "" for an unknown joint.
        path: The file.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If a name cannot be written as UTF-8.

    Example:
        >>> import synovia as sy
        >>> sy.formats.write_map({"hips": ("Hips", "hips"), "head": ("Head", "head")}, "map.toml")  # doctest: +SKIP
    """
    lines = [f'schema = "{SCHEMA}"', "", "# part of the body = [joint of the source, joint of the target]", "[joints]"]
    known = {part: pair for part, pair in joints.items() if "" not in pair}
    lines += [_line(part, pair) for part, pair in known.items()]
    if len(known) < len(joints):
        lines += ["", "# Not found. Fill in the empty names and remove the #. What a body lacks stays a comment."]
        lines += [f"# {_line(part, pair)}" for part, pair in joints.items() if part not in known]
    write_text(as_path(path), "\n".join(lines) + "\n", force=force)


def read_map(path: str | os.PathLike[str]) -> dict[str, tuple[str | int, str | int]]:
    """Read a joint map: (source joint, target joint) by part, each a name or a row.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it is not a joint map.

    Example:
        >>> import synovia as sy
        >>> joint_map = sy.formats.read_map("map.toml")  # doctest: +SKIP
        >>> sy.retarget(sy.load_motion("walk.bvh"), sy.bundled("humanoid"), joint_map)  # doctest: +SKIP
    """
    where = as_path(path)
    content = parse_toml(read_text(where, most=_LARGEST), str(where))
    joints = content.get("joints")
    if content.get("schema") != SCHEMA or not isinstance(joints, dict):
        raise FormatError(
            "is not a joint map", where=str(where), value=content.get("schema"),
            expected=f'schema = "{SCHEMA}" and a table [joints]',
        )  # fmt: skip
    if not joints:
        raise FormatError(
            "is a joint map without parts", where=str(where), expected="a line for each part below [joints]",
            hint="Lines that begin with # are comments: fill in both names and remove the #",
        )  # fmt: skip
    out: dict[str, tuple[str | int, str | int]] = {}
    for part, pair in cast("dict[str, Any]", joints).items():
        names = cast("list[Any]", pair) if isinstance(pair, list) else []
        if len(names) != 2 or not all(isinstance(name, str) or type(name) is int for name in names):
            what, wanted = f"part {part!r} has no pair of joints", '["source", "target"], each a name or a row'
            raise FormatError(what, where=str(where), value=cast(object, pair), expected=wanted)
        if "" in names:
            body = ("source", "target")[names.index("")]
            raise FormatError(
                f"part {part!r}", where=str(where), value=names, expected=f"a joint of the {body}",
                hint="Fill in the empty name, or put a # before the line: what a body lacks stays a comment",
            )  # fmt: skip
        out[part] = (names[0], names[1])
    return out


def _line(part: str, pair: tuple[str | int, str | int]) -> str:
    """Return the line of one part, as in the file."""
    return f"{toml_key(part)} = [{', '.join(str(at) if isinstance(at, int) else toml_text(at) for at in pair)}]"
