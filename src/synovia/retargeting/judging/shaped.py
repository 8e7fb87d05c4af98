"""Assign the links of a body to limbs, and find pairs of links of different limbs that can collide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.shapes.body import Ints
from synovia.model.shapes.pairs import self_pairs
from synovia.model.tree import ancestors
from synovia.retargeting.judging.actor import first_row

TRUNK: Final = "trunk"
ARMS: Final = tuple(f"{side}_arm" for side in SIDES)
LEGS: Final = tuple(f"{side}_leg" for side in SIDES)
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    limb: tuple(f"{limb.partition('_')[0]}_{part}" for part in parts)
    for limbs, parts in ((ARMS, ("upper_arm", "lower_arm", "hand")), (LEGS, ("upper_leg", "lower_leg", "foot")))
    for limb in limbs
}


def limb_tops(skeleton: Skeleton, roles: Mapping[str, int]) -> dict[str, int]:
    """Return, for each limb, the row of the first joint that rotates it.

    Args:
        skeleton: The body.
        roles: Rows of the parts of the body, by role.
    """
    firsts = {limb: next((part for part in parts if part in roles), None) for limb, parts in PARTS.items()}
    return {limb: first_row(skeleton, roles, part) for limb, part in firsts.items() if part is not None}


def limb_of_rows(skeleton: Skeleton, roles: Mapping[str, int]) -> list[str]:
    """Return the limb of each joint; joints outside arms and legs belong to the trunk."""
    tops = {row: limb for limb, row in limb_tops(skeleton, roles).items()}
    out: list[str] = []
    for row, parent in enumerate(skeleton.parents):
        out.append(tops.get(row, out[parent] if parent >= 0 else TRUNK))
    return out


def part_of_rows(skeleton: Skeleton, roles: Mapping[str, int]) -> list[str | None]:
    """Return the role of each joint: its own, or that of its nearest ancestor with a role.

    Fingers belong to the hand, and toes to the foot.
    """
    own = {row: role for role, row in [*roles.items()][::-1] if not role[-1].isdigit() and not role.endswith("toes")}
    return [
        next((own[above] for above in ancestors(skeleton.parents, row) if above in own), None)
        for row in range(len(skeleton))
    ]


def limb_pairs(skeleton: Skeleton, roles: Mapping[str, int]) -> Ints:
    """Return the pairs of links of different limbs that can collide, as rows, (n, 2).

    They are pairs of ``self_pairs``. Links of one limb may touch: a hand its own arm, fingers the palm, the head the
    chest.
    """
    limbs = limb_of_rows(skeleton, roles)
    pairs = self_pairs(skeleton).rows
    apart = [limbs[int(a)] != limbs[int(b)] for a, b in pairs]
    return pairs[np.array(apart, bool)].reshape(-1, 2)
