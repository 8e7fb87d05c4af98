"""The joints that the goals of a layer may move: a limb, the upper body or the whole body."""

from __future__ import annotations

from typing import Final

from synovia.clips.editing.body import Body
from synovia.layers import Layer
from synovia.model import Skeleton
from synovia.model.tree import ancestors

LIMB, UPPER, WHOLE = "limb", "upper body", "whole body"
REACHES: Final = (LIMB, UPPER, WHOLE)


def moving_of(body: Body, skeleton: Skeleton, row: int | None, reach: str) -> list[str | int] | None:
    """Return the joints that a layer may move, for ``Layer.moving``; None for the whole body.

    Args:
        body: The body of the clip.
        skeleton: The skeleton of the clip.
        row: Joint of the goal; None for the whole body.
        reach: One of ``REACHES``. With ``UPPER``, a joint outside the upper body only moves its limb.
    """
    if row is None or reach == WHOLE:
        return None
    roles = skeleton.role_rows
    rows = frozenset(body.limb(row))
    if reach == UPPER and {"hips", "left_foot", "right_foot"} <= roles.keys():
        lower = {top for foot in ("left_foot", "right_foot") for top in body.limb(roles[foot])[-1:]}
        trunk = set(ancestors(skeleton.parents, roles["hips"]))
        upper = {k for k in range(len(skeleton)) if lower.isdisjoint(ancestors(skeleton.parents, k))} - trunk
        rows = frozenset(upper) if row in upper else rows
    names = [skeleton.address(k) for k in sorted(rows) if skeleton.joints[k].kind.v_size]
    return names or None


def reach_of(body: Body, skeleton: Skeleton, layer: Layer) -> str:
    """Return the reach of a layer with goals, one of ``REACHES``; empty for another choice of joints."""
    if layer.moving is None:
        return WHOLE
    rows = [None if goal.joint is None else skeleton.locate(goal.joint)[0] for goal, _ in layer.all_goals()]
    for reach in (LIMB, UPPER):
        if len(rows) == 1 and set(moving_of(body, skeleton, rows[0], reach) or ()) == set(layer.moving):
            return reach
    return ""
