"""A joint map with gaps, to be filled in where bodies cannot be matched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synovia.model import Skeleton
from synovia.retargeting.body import NEEDED
from synovia.retargeting.shape import find_roles


def draft_map(
    source: Skeleton, target: Skeleton, joint_map: Mapping[str, tuple[Any, Any]] | None = None
) -> dict[str, tuple[str, str]]:
    """Return what is known of a joint map: (source joint, target joint) by part, "" for what was not found.

    Args:
        source: The body that moves.
        target: The body that shall follow.
        joint_map: What was given instead of the automatic match.
    """
    if joint_map is None:
        ways = [(body, find_roles(body)) for body in (source, target)]
    else:
        ways = [
            (body, {part: body.index(pair[k]) for part, pair in joint_map.items()})
            for k, body in enumerate((source, target))
        ]
    parts = dict.fromkeys((*NEEDED, *ways[0][1], *ways[1][1]))
    names = [[body.joint_names[rows[part]] if part in rows else "" for part in parts] for body, rows in ways]
    return {part: (a, b) for part, a, b in zip(parts, *names, strict=True)}
