"""Find the feet of a skeleton; find runs of frames in masks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.errors import UnsupportedError
from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Bools
from synovia.model.tree import ancestors
from synovia.text import counted

_FOUR: Final = tuple(f"{side}_{end}" for end in ("fore", "hind") for side in SIDES)
_FOOT: Final = re.compile(r"foot|ankle", re.IGNORECASE)
_TOE: Final = re.compile(r"toe|ball(?![a-z])", re.IGNORECASE)
_NO_LENGTH: Final = 1e-6  # fraction of the skeleton's size: shorter bones have no direction


@dataclass(frozen=True, slots=True)
class Foot:
    """One foot.

    Args:
        joints: Rows of the joints that can be in contact: ankle, toe, and the end of the toe if the file has it.
        points: Rows of all joints of the foot, including tips.
    """

    joints: tuple[int, ...]
    points: tuple[int, ...]


def ankles_of(skeleton: Skeleton) -> dict[str, int | None]:
    """Return the row of each foot or paw of a body by role: two, or four for bodies on four legs.

    For a leg without such a role, return the last known joint of the leg, or None.
    """
    found = skeleton.role_rows
    four = any(role.startswith(_FOUR) for role in found)
    legs, parts = (_FOUR, ("paw", "pastern", "lower_leg")) if four else (SIDES, ("foot", "lower_leg"))
    return {
        f"{leg}_{parts[0]}": next((found[role] for part in parts if (role := f"{leg}_{part}") in found), None)
        for leg in legs
    }


def feet_of(skeleton: Skeleton, names: Sequence[str | int] | None = None) -> list[Foot]:
    """Return the feet of a skeleton.

    Args:
        skeleton: The skeleton.
        names: The joint of each foot (the ankle); None to find them by roles and names.

    Raises:
        UnsupportedError: If no joint is recognised as a foot.
        UnknownNameError: If a joint does not exist.
    """
    if names is not None:
        heads = [skeleton.index(name) for name in names]
    else:
        # whether there is at most one person; with several people, all feet are found by name
        alone = len(skeleton.people) < 2
        heads = [row for role, row in skeleton.role_rows.items() if alone and role in ankles_of(skeleton)]
        for word in (_FOOT, _TOE):
            heads = heads or [row for row, joint in enumerate(skeleton.joints) if word.search(joint.name)]
    heads = [row for row in dict.fromkeys(heads) if not _has_above(skeleton, row, heads)]
    if not heads:
        raise UnsupportedError(
            "no joint is recognised as a foot",
            where=skeleton.name,
            hint="name the ankles: feet=[...], --feet LEFT,RIGHT",
        )
    feet: list[Foot] = []
    for head in heads:
        points = [row for row in range(head, len(skeleton)) if row == head or _has_above(skeleton, row, [head])]
        joints = [row for row in points if row == head or _counts(skeleton, row)]
        feet.append(Foot(tuple(joints), tuple(points)))
    return feet


def _counts(skeleton: Skeleton, row: int) -> bool:
    """Return whether a joint of a foot can be in contact: it has children, or it is an end apart from its parent."""
    return bool(skeleton.children[row]) or float(skeleton.lengths[row]) > _NO_LENGTH * skeleton.size


def _has_above(skeleton: Skeleton, row: int, rows: Sequence[int]) -> bool:
    """Return whether an ancestor of a joint is among ``rows``."""
    return not set(rows).isdisjoint(ancestors(skeleton.parents, row)[1:])


def runs(flags: Bools) -> list[tuple[int, int]]:
    """Return (first, end) of each run of consecutive set flags."""
    padded = np.zeros(len(flags) + 2, bool)
    padded[1:-1] = flags
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def frames_text(frames: Sequence[int], most: int = 5) -> str:
    """Return frames as text with ranges, such as "frames 3, 7-12"; beyond ``most`` ranges, the number of frames."""
    spans = runs(np.bincount(frames) > 0)
    shown = ", ".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in spans[:most])
    shown = f"frame{'' if len(set(frames)) == 1 else 's'} {shown}"
    return shown + (f" and {counted(len(spans) - most, 'more range')}" if len(spans) > most else "")
