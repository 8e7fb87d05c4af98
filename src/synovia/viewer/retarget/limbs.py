"""The angles between the limbs of a clip and of its transfer to another body: what the page colours red."""

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

FAIR: Final = 15.0  # degrees, mean over the clip: more is worth a look
BAD: Final = 30.0  # degrees: more is wrong
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
        role: The part that it begins with; the trunk runs from between the legs to between the arms.
        rows: Rows of its bones in the target, each the end of a bone.
        angles: Angle between its directions in the two bodies in each frame, (T,), degrees.
    """

    role: str
    rows: tuple[int, ...]
    angles: Array

    @property
    def mean(self) -> float:
        """Mean angle, degrees."""
        return float(self.angles.mean())

    @property
    def worst(self) -> int:
        """Frame with the largest angle."""
        return int(self.angles.argmax())


def compare_limbs(answer: Retargeted, motion: Motion) -> list[Limb]:
    """Return the limbs of a transfer with the angles between their directions, each in the axes of its body.

    Args:
        answer: The transfer.
        motion: The clip that was transferred.
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
    """Return the rows of the bones from one joint to another: down to ``end`` from where their branches part."""
    path, other = ancestors(skeleton.parents, end), set(ancestors(skeleton.parents, start))
    return [row for row in path if row not in other]
