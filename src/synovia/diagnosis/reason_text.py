"""The reasons of a miss as people read them, and as plain values."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from synovia.diagnosis.reasons import Reason, Relief
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.solution import Solution, length_text
from synovia.io.posefile import values_of

if TYPE_CHECKING:
    from synovia.facade import IK
    from synovia.goals import Goal


def sentences(solution: Solution, found: Sequence[Reason]) -> list[str]:
    """Return the reasons as people read them."""
    ik = solution._ik
    unit = ik.skeleton.meters_per_unit
    lines: list[str] = []
    for reason in found:
        goal = ik.goals[reason.goal]
        for rival in reason.rivals[:2]:
            other = next(g for g in ik.goals if g.label == rival.name)
            above = "a higher priority" if other.priority < goal.priority else "the same priority"
            lines.append(f"{goal.label!r} lost to {rival.name!r}, of {above}: without it {_left(ik, goal, rival)}.")
        if reason.limits:
            best = reason.limits[0]
            without = _left(ik, goal, best)
            lines.append(f"Of the active limits that of {best.name!r} costs {goal.label!r} most: without it {without}.")
        parts: list[str] = []
        if _met(ik, reason):
            lines.append(f"{goal.label!r} can be met with the others, from another start or with more attempts.")
            continue
        if reason.move is not None:
            toward = ", ".join(f"{x:.4g}" for x in reason.move)
            parts.append(f"move by {length_text(float(np.linalg.norm(reason.move)), unit)} ({toward})")
        if reason.turn is not None and (reason.move is None or float(np.linalg.norm(reason.turn)) > ik.tolerance[1]):
            parts.append(f"turn by {math.degrees(float(np.linalg.norm(reason.turn))):.3g} deg")
        if parts:
            along = f", together with {', '.join(map(repr, reason.along))}" if reason.along else ""
            how = " and ".join(parts)
            lines.append(f"The target of {goal.label!r} would have to {how} for all goals to hold{along}.")
    return lines


def _met(ik: IK, reason: Reason) -> bool:
    """Return whether a target would hold where it is."""
    ways = zip((reason.move, reason.turn), ik.tolerance, strict=True)
    known = [(way, most) for way, most in ways if way is not None]
    return bool(known) and not reason.along and all(float(np.linalg.norm(way)) <= most for way, most in known)


def _left(ik: IK, goal: Goal, relief: Relief) -> str:
    """Return what would be left of a miss, as people read it."""
    error, unit = relief.error, ik.skeleton.meters_per_unit
    if error.position <= ik.tolerance[0] and error.angle <= ik.tolerance[1]:
        return "it would hold"
    parts = [length_text(error.position, unit)] if goal.measures & POSITION else []
    parts += [f"{math.degrees(error.angle):.3g} deg"] if goal.measures & ROTATION else []
    return f"{' and '.join(parts)} would be left"


def as_json(solution: Solution, found: Sequence[Reason]) -> list[dict[str, object]]:
    """Return the reasons as plain values: labels, names, length units, radians, joint values as in a pose file."""
    goals = solution._ik.goals

    def plain(reliefs: Sequence[Relief]) -> list[dict[str, object]]:
        return [{"name": r.name, "position_error": r.error.position, "angle_error": r.error.angle} for r in reliefs]

    return [
        {
            "goal": goals[reason.goal].label,
            "lost_to": plain(reason.rivals),
            "limits": plain(reason.limits),
            "move": None if reason.move is None else reason.move.tolist(),
            "turn": None if reason.turn is None else reason.turn.tolist(),
            "along": list(reason.along),
            "q": None if reason.pose is None else values_of(reason.pose),
        }
        for reason in found
    ]
