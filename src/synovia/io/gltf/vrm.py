"""Read the table of humanoid bones in a VRM file or a VRM animation, which maps nodes to parts of the body.

References:
    VRM Consortium, *VRM 0.0*, ``VRM.humanoid``; *VRM 1.0*, ``VRMC_vrm.humanoid``; *VRM animation 1.0*,
    ``VRMC_vrm_animation.humanoid``.
"""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path
from typing import Any, Final, NamedTuple

from synovia.errors import FormatError
from synovia.io.gltf.fields import Element
from synovia.model.anatomy.names import FINGERS
from synovia.text import listed

ANIMATION: Final = "VRMC_vrm_animation"
ENDING: Final = ".vrm"
_LATEST: Final = "VRMC_vrm"
_FIRST: Final = "VRM"
_CAPITAL: Final = re.compile(r"(?=[A-Z])")
_ENDS: Final = {"metacarpal": 1, "proximal": 1, "intermediate": 2, "distal": 3}  # numbers of finger bones by name
_THUMB: Final = {"metacarpal": 1, "proximal": 2, "distal": 3}  # numbers of thumb bones by name, since version 1 of VRM


class Table(NamedTuple):
    """The humanoid bones of a file.

    Args:
        roles: Part of the body by node index.
        forward: Axis that the body faces, which the version of the format defines; None for a file without the table.
        notes: Sentences about bones that were not kept.
        alone: Whether all joints of the file are in the table, as in a VRM animation, which has no skin.
    """

    roles: dict[int, str]
    forward: str | None
    notes: tuple[str, ...]
    alone: bool = False


def check_name(target: Path, extensions: Container[str]) -> None:
    """Raise an error for a file name that ends in ``.vrm`` if the file would not be a VRM.

    Args:
        target: The file to write.
        extensions: glTF extensions of the file to write.

    Raises:
        FormatError: If the name ends in ``.vrm``, and the VRM extension is missing.
    """
    if target.suffix.lower() == ENDING and _LATEST not in extensions and _FIRST not in extensions:
        raise FormatError(
            "a VRM is written only as a copy of the VRM that the body came from",
            where=str(target),
            expected="the ending .glb; or .vrma for the clip of a humanoid, which any VRM character can play",
        )


def read_table(root: Element, count: int) -> Table:
    """Read the humanoid bones of a file; the table is empty if the file is not a VRM.

    Args:
        root: The root object of the file.
        count: Number of nodes in the file.

    Raises:
        FormatError: If the structure of the table differs from the format.
    """
    extensions = root.child("extensions")
    names = (_LATEST, _FIRST, ANIMATION)
    latest, first, clip = (None if extensions is None else extensions.child(name) for name in names)
    alone = latest is None and first is None and clip is not None
    latest = clip if alone else latest
    if latest is not None:
        pairs, forward = _bones_of_1(latest), "z"
    elif first is not None:
        pairs, forward = _bones_of_0(first), "-z"
    else:
        return Table({}, None, ())
    roles: dict[int, str] = {}
    lost: list[str] = []
    for bone, node in pairs:
        role = _role(bone, since_1=latest is not None)
        if not isinstance(node, int) or isinstance(node, bool) or not 0 <= node < count or node in roles:
            lost.append(bone)
        elif role not in roles.values():
            roles[node] = role
    notes = (f"Humanoid bones {listed(lost)} have no node of their own and were not kept.",) if lost else ()
    return Table(roles, forward, notes, alone)


def _bones_of_0(extension: Element) -> list[tuple[str, Any]]:
    """Return the bones and nodes of version 0: a list of objects."""
    humanoid = extension.child("humanoid")
    bones = [] if humanoid is None else humanoid.items("humanBones")
    return [(bone.text("bone", ""), bone.data.get("node")) for bone in bones]


def _bones_of_1(extension: Element) -> list[tuple[str, Any]]:
    """Return the bones and nodes of version 1: an object of objects."""
    humanoid = extension.child("humanoid")
    bones = None if humanoid is None else humanoid.child("humanBones")
    if bones is None:
        return []
    return [(name, found.data.get("node")) for name in bones.data if (found := bones.child(name)) is not None]


def bone_of(role: str) -> str:
    """Return the bone of version 1 for a role, such as ``"leftIndexProximal"`` for ``"left_index_1"``."""
    words = role.split("_")
    if len(words) == 3 and words[2].isdigit():
        ends = _THUMB if words[1] == "thumb" else {end: k for end, k in _ENDS.items() if end != "metacarpal"}
        words[2] = next(end for end, number in ends.items() if number == int(words[2]))
    return words[0] + "".join(word.capitalize() for word in words[1:])


def _role(bone: str, *, since_1: bool) -> str:
    """Return the role of a bone: its name in snake case, with a number for a bone of a finger."""
    words = [word.lower() for word in _CAPITAL.split(bone) if word]
    if len(words) == 3 and words[1] in FINGERS and words[2] in _ENDS:
        number = (_THUMB if since_1 and words[1] == "thumb" else _ENDS).get(words[2], 1)
        return f"{words[0]}_{FINGERS[words[1]]}_{number}"
    return "_".join(words)
