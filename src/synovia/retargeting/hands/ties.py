"""Loops of a hand, such as four-bars in fingers, as goals with the highest priority on a tree without loops.

The hand is solved on its tree without loops. Each loop is a goal with the highest priority, like a pinch, so that loops
and pinches are solved together. At the end, the loops are closed exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from synovia.errors import UnsupportedError
from synovia.goals import DistanceGoal, Goal, PoseGoal, RelativeGoal
from synovia.model import Skeleton
from synovia.model.loops.loop import Loop
from synovia.model.loops.tables import moved_by

_PARTS = ("point", "hinge", "universal")  # kinds held by origins here; structure and final closing keep the axes


def ties_of(skeleton: Skeleton, rows: Iterable[int]) -> tuple[list[Goal], list[int]]:
    """Return the loops that given joints move, as goals of priority 0; and the rows of all joints that belong to them.

    Args:
        skeleton: A skeleton.
        rows: Rows of the given joints.

    Raises:
        UnsupportedError: If no goal supports the kind of a loop.
    """
    inside, left = set(rows), list(skeleton.loops)
    chosen: list[Loop] = []
    while found := [tie for tie in left if inside & moved_by(skeleton, tie)]:
        for tie in found:
            if not isinstance(tie, Loop) or tie.kind not in (*_PARTS, "weld", "distance"):
                raise UnsupportedError(
                    "retargeting of hands does not support such a loop", where=f"{skeleton.name}: {tie.label}",
                    value=tie.kind if isinstance(tie, Loop) else "a coupling of joints",
                    expected=f"loops of the kinds {', '.join(_PARTS)}, weld and distance",
                    hint="skeleton.with_loops([...]) without it leaves it open; a Mimic couples joints in proportion",
                )  # fmt: skip
            chosen.append(tie)
            inside |= moved_by(skeleton, tie)
        left = [tie for tie in left if tie not in found]
    return [_goal(skeleton, tie, k) for k, tie in enumerate(chosen)], sorted(inside)


def _goal(skeleton: Skeleton, tie: Loop, number: int) -> Goal:
    """Return a loop as a goal of priority 0."""
    (first, offset), (second, other) = tie.ends(skeleton)
    name = f"loop {number}"
    if first < 0:
        first, offset, second, other = second, other, first, offset
    if tie.kind == "distance":
        far = tie.distance or 0.0
        to: dict[str, Any] = {"point": other[:3, 3]} if second < 0 else {"other": second, "other_offset": other[:3, 3]}
        return DistanceGoal(first, **to, minimum=far, maximum=far, offset=offset[:3, 3], priority=0, name=name)
    how: dict[str, Any] = {"offset": offset, "priority": 0, "name": name}
    if second < 0:
        how |= {"transform": other} if tie.kind == "weld" else {"position": other[:3, 3]}
        return PoseGoal(first, **how)
    how |= {"transform": np.eye(4)} if tie.kind == "weld" else {"position": (0.0, 0.0, 0.0)}
    return RelativeGoal(first, second, **how, other_offset=other)
