"""Sentences for people: what came out of a solve, by how much a goal was missed, and what stands in the way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from synovia.ik.solution import length_text
from synovia.ik.status import Status

if TYPE_CHECKING:
    from synovia.ik.solution import Solution

_MOST_JOINTS = 6  # names in one sentence


def explain(solution: Solution) -> list[str]:
    """Return the sentences: how it ended, every missed goal, the limits that are active, what was done to the start."""
    unit = solution._ik.skeleton.meters_per_unit  # pyright: ignore[reportPrivateUsage]
    lines = [solution.status.meaning]
    for i in solution.missed:
        goal, error = solution.goals[i], solution.errors[i]
        parts: list[str] = []
        if goal.what & 1:
            parts.append(length_text(error.position, unit))
        if goal.what & 2:
            parts.append(f"{math.degrees(error.angle):.3g} deg")
        lines.append(f"Goal {goal.label!r} is missed by {' and '.join(parts)}.")
    if solution.status is Status.UNREACHABLE:
        lines += _reach_sentences(solution)
    if not solution.reached and (joints := solution.active_limits):
        shown = ", ".join(repr(name) for name in joints[:_MOST_JOINTS])
        more = f" and {len(joints) - _MOST_JOINTS} more" if len(joints) > _MOST_JOINTS else ""
        lines.append(f"At a limit: {shown}{more}.")
    if clamped := solution.start_clamped:
        shown = ", ".join(repr(name) for name in clamped[:_MOST_JOINTS])
        lines.append(f"The start was outside the limits of {shown}, and was brought inside first.")
    if not solution.reached and solution.attempts > 1:
        lines.append(f"{solution.attempts} attempts were made; the best pose is from attempt {solution.attempt}.")
    return lines


def _reach_sentences(solution: Solution) -> list[str]:
    """Return, for each missed position goal, how far its target is from the root of its chain."""
    ik = solution._ik  # pyright: ignore[reportPrivateUsage]
    lines: list[str] = []
    for i in solution.missed:
        goal = solution.goals[i]
        if not goal.what & 1:
            continue
        row = ik.rows[i]
        while ik.skeleton.parents[row] >= 0:
            row = ik.skeleton.parents[row]
        away = float(np.linalg.norm(solution.targets[i, :3, 3] - solution.pose.positions[row]))
        unit = ik.skeleton.meters_per_unit
        lines.append(
            f"The target of {goal.label!r} is {length_text(away, unit)} from {ik.skeleton.joint_names[row]!r};"
            f" the reach is {length_text(ik.reach, unit)}."
        )
    return lines
