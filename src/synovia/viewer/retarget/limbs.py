"""The angles between the limbs of a clip and those of the retargeted clip; the page colours large angles red."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, unit
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting import Retargeted
from synovia.retargeting.body import Body

FAIR: Final = 15.0  # degrees, mean over the clip; larger angles should be checked
BAD: Final = 30.0  # degrees, mean over the clip; larger angles are wrong
TRUNK: Final = "trunk"
_BONES: Final = (
    ("upper_leg", "lower_leg"),
    ("lower_leg", "foot"),
    ("foot", "toes"),
    ("upper_arm", "lower_arm"),
    ("lower_arm", "hand"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Limb:
    """A limb that both bodies have.

    Args:
        role: The part at which the limb begins; the trunk runs from between the legs to between the arms.
        rows: Rows of the joints at the ends of its bones, in the target.
        angles: Angle between the directions of the limb in the two bodies in each frame, (T,), degrees.
    """

    role: str
    rows: tuple[int, ...]
    angles: Array

    @property
    def mean(self) -> float:
        """Mean angle over the clip, degrees."""
        return float(self.angles.mean())

    @property
    def worst(self) -> int:
        """Frame with the largest angle."""
        return int(self.angles.argmax())


def compare_limbs(answer: Retargeted, motion: Motion) -> list[Limb]:
    """Return the limbs that both bodies have, with the angles between their directions in the axes of each body.

    Args:
        answer: The retargeted motion.
        motion: The original clip.
    """
    source, target = answer.source, answer.target
    both = [role for role in source.roles if role in target.roles]
    ends = [(TRUNK, [f"{side}_upper_leg" for side in SIDES], [f"{side}_upper_arm" for side in SIDES])]
    ends += [(f"{side}_{a}", [f"{side}_{a}"], [f"{side}_{b}"]) for side in SIDES for a, b in _BONES]
    places = [(motion.positions() @ source.basis, source), (answer.motion.positions() @ target.basis, target)]
    out: list[Limb] = []
    for role, start, end in ends:
        if not all(part in both for part in (*start, *end)):
            continue
        a, b = (unit(_middle(at, body, end) - _middle(at, body, start)) for at, body in places)
        angles = np.degrees(np.arccos(np.clip(np.sum(a * b, axis=1), -1.0, 1.0)))
        rows: set[int] = set()
        for part in end:
            rows.update(_between(target.skeleton, target.first_row(start[0]), target.first_row(part)))
        out.append(Limb(role, tuple(sorted(rows)), angles))
    return out


def _middle(positions: Array, body: Body, parts: Sequence[str]) -> Array:
    """Return the midpoint of some parts in each frame, (T, 3), for positions (T, n, 3)."""
    return positions[:, [body.first_row(part) for part in parts]].mean(axis=1)


def _between(skeleton: Skeleton, start: int, end: int) -> list[int]:
    """Return the rows of the bones from the last common ancestor of ``start`` and ``end`` down to ``end``."""
    path, other = ancestors(skeleton.parents, end), set(ancestors(skeleton.parents, start))
    return [row for row in path if row not in other]
