"""Joint maps as files that people edit: which joint of the source is which joint of the target.

    schema = "synovia.map/1"

    [joints]
    hips = ["Hips", "pelvis"]              # part of the body = [source, target]
    left_upper_leg = ["LeftUpLeg", "thigh.l"]

Parts are named as in VRM, in snake case. ``hips`` and the upper and lower legs must be there; further parts may have
any name. A line with a gap, ``["LeftUpLeg", ""]``, is written as a comment, to be filled in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, cast

from synovia.errors import FormatError
from synovia.io.base import as_path, read_text, write_text
from synovia.text import parse_toml, toml_key, toml_text

SCHEMA: Final = "synovia.map/1"
_LARGEST: Final = 2**24  # bytes; a line takes about fifty


def write_map(joints: Mapping[str, tuple[str, str]], path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a joint map.

    Args:
        joints: (source joint, target joint) by part; "" where one is not known.
        path: The file.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If a name cannot be written as UTF-8.
    """
    lines = [f'schema = "{SCHEMA}"', "", "# part of the body = [joint of the source, joint of the target]", "[joints]"]
    known = {part: pair for part, pair in joints.items() if all(pair)}
    lines += [_line(part, pair) for part, pair in known.items()]
    if len(known) < len(joints):
        lines += ["", "# Not found. Fill in the empty names, and take the # away."]
        lines += [f"# {_line(part, pair)}" for part, pair in joints.items() if part not in known]
    write_text(as_path(path), "\n".join(lines) + "\n", force=force)


def read_map(path: str | os.PathLike[str]) -> dict[str, tuple[str, str]]:
    """Return the joint map of a file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it is no joint map.
    """
    where = as_path(path)
    content = parse_toml(read_text(where, most=_LARGEST), str(where))
    joints = content.get("joints")
    if content.get("schema") != SCHEMA or not isinstance(joints, dict) or not joints:
        raise FormatError(
            "is no joint map", where=str(where), value=content.get("schema"),
            expected=f'schema = "{SCHEMA}" and a table [joints]',
        )  # fmt: skip
    out: dict[str, tuple[str, str]] = {}
    for part, pair in cast("dict[str, Any]", joints).items():
        names = cast("list[Any]", pair) if isinstance(pair, list) else []
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise FormatError(
                f"part {part!r} has no pair of joints",
                where=str(where),
                value=cast(object, pair),
                expected='["source", "target"]',
            )
        out[part] = (names[0], names[1])
    return out


def _line(part: str, pair: tuple[str, str]) -> str:
    """Return the line of one part."""
    return f"{toml_key(part)} = [{toml_text(pair[0])}, {toml_text(pair[1])}]"
