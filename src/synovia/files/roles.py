"""Read role files in TOML or JSON, which map parts of the body to joints.

schema = "synovia.roles/1"             # may be left out
[roles]                                # may be left out
left_hand = "Wrist.L"
left_lower_arm = "Elbow.L"
"""

from __future__ import annotations

import os
from typing import Final, cast

from synovia.errors import FormatError, SynoviaError, UnsupportedError, restated
from synovia.io.base import as_path, read_text
from synovia.model import Skeleton
from synovia.text import parse_json, parse_toml

SCHEMA: Final = "synovia.roles/1"
_LARGEST: Final = 2**20  # largest size of a file, bytes; a line has about 50 bytes


def with_roles_of(skeleton: Skeleton, path: str | os.PathLike[str]) -> Skeleton:
    """Return a skeleton with the roles from a file; see ``Skeleton.with_roles``.

    Args:
        skeleton: The skeleton.
        path: The file, ``.toml`` or ``.json``.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is not a role file, or names a role or a joint that does not exist.
        UnsupportedError: If its name ends neither in ``.toml`` nor in ``.json``.
    """
    where = as_path(path)
    suffix = where.suffix.lower()
    if suffix not in (".toml", ".json"):
        read_text(where, most=_LARGEST)  # raises errors about the file itself before its content is decoded
        raise UnsupportedError("name of a role file", where=str(where), expected="an ending .toml or .json")
    content = (parse_json if suffix == ".json" else parse_toml)(read_text(where, most=_LARGEST), str(where))
    given = dict(cast("dict[str, object]", content)) if isinstance(content, dict) else {}
    schema = given.pop("schema", SCHEMA)
    if given.keys() == {"roles"} and isinstance(given["roles"], dict) and given["roles"]:
        given = cast("dict[str, object]", given["roles"])
    if schema != SCHEMA or not given:
        raise FormatError(
            "is not a role file", where=str(where), value=schema, expected='lines such as left_hand = "Hand.L"'
        )
    for role, joint in given.items():
        if not isinstance(joint, str):
            raise FormatError(f"role {role!r}", where=str(where), value=joint, expected="the name of a joint")
    try:
        return skeleton.with_roles(cast("dict[str, str]", given))
    except SynoviaError as error:
        raise restated(error, FormatError, str(where)) from error
