"""The marks of a solution: where each goal is and where it should be."""

from __future__ import annotations

from synovia.draw.scene import Mark
from synovia.goals.base import POSITION, ROTATION
from synovia.ik import Solution


def marks_of(solution: Solution) -> list[Mark]:
    """Return one mark for each goal of a solution, missed goals marked as such."""
    missed = solution.missed
    marks: list[Mark] = []
    for i, (goal, target) in enumerate(zip(solution.goals, solution.targets, strict=True)):
        at = solution.pose.transform(solution.rows[i]) @ goal.offset
        placed, turned = bool(goal.what & POSITION), bool(goal.what & ROTATION)
        marks.append(
            Mark(
                position=at[:3, 3],
                target=target[:3, 3] if placed else None,
                label=goal.label.replace("_", " "),
                reached=i not in missed,
                rotation=at[:3, :3] if turned else None,
                target_rotation=target[:3, :3] if turned else None,
            )
        )
    return marks
