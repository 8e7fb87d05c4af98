"""The marks of a solution: where each goal is and where it should be."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.draw.arcs import range_lines, value_of
from synovia.draw.scene import Mark
from synovia.goals import (
    AimGoal,
    CenterOfMassGoal,
    ContactGoal,
    DistanceGoal,
    Goal,
    PlaneGoal,
    PoleGoal,
    RangeGoal,
    RelativeGoal,
)
from synovia.goals.base import POSITION, ROTATION
from synovia.ik import Solution
from synovia.ik.solution import length_text
from synovia.model import Pose
from synovia.model.geometry import Array

_FAR: Final = 0.5  # of the body's size: an aim is drawn no longer, so that the body stays large
_ARC: Final = 0.12  # of the body's size: the radius of a joint's range
_PATCH: Final = 0.06  # of the body's size: half the side of the square that stands for a plane


def marks_of(solution: Solution) -> list[Mark]:
    """Return one mark for each goal of a solution that has a place, missed goals marked as such."""
    size = float(np.linalg.norm(np.ptp(solution.pose.positions, axis=0)))
    missed = solution.missed
    each = zip(solution.goals, solution.targets, solution.frames, strict=True)
    return [_mark(solution, i, goal, T, at, size, i not in missed) for i, (goal, T, at) in enumerate(each) if goal.rows]


def _mark(solution: Solution, i: int, goal: Goal, target: Array, at: Array, size: float, reached: bool) -> Mark:
    """Return the mark of one goal.

    Args:
        solution: The solution.
        i: Place of the goal.
        goal: The goal.
        target: Its target, (4, 4).
        at: World frame of its point, (4, 4).
        size: Size of the body, length units.
        reached: Whether it holds.
    """
    p, t = at[:3, 3], target[:3, 3]
    label, angle = goal.label.replace("_", " "), f"{math.degrees(solution.errors[i].angle):.2g}°"
    length, unit = solution.errors[i].position, solution.pose.skeleton.meters_per_unit
    others = [solution.pose.transform(row) for row in solution.hangs[i][1:]]
    if isinstance(goal, AimGoal):
        away = float(np.linalg.norm(t - p))
        if away <= _FAR * size:
            return Mark(p, t, label, reached, paths=[(p, t)], note=angle, on_joint=False)
        return Mark(p, None, label, reached, paths=[(p, p + _FAR * size / away * (t - p))], note=angle)
    if isinstance(goal, PoleGoal):
        return Mark(p, t, label, reached, paths=[(p, t)], note=angle, on_joint=False)
    if isinstance(goal, PlaneGoal):
        foot = p - (p - t) @ target[:3, 2] * target[:3, 2]
        return Mark(p, foot if not reached else None, label, reached, paths=[_square(foot, target[:3, :3], size)])
    if isinstance(goal, RangeGoal):
        note = length_text(length, unit) if goal.slides else angle
        return Mark(p, None, label, reached, paths=_range(solution.pose, solution.rows[i], goal, size), note=note)
    if isinstance(goal, DistanceGoal):
        o = (others[0] @ goal.other_offset)[:3, 3] if others else t
        way = (p - o) / max(float(np.linalg.norm(p - o)), 1e-300)
        lack = length if float(np.linalg.norm(p - o)) < goal.minimum else -length
        return Mark(p, None if reached else p + lack * way, label, reached, paths=[(o, p)])
    if isinstance(goal, CenterOfMassGoal) and goal.polygon is not None and goal.up is not None:
        corners = goal.terms[0].points
        floor = float((goal.polygon @ goal.up).mean()) * goal.up
        ring = np.vstack([corners, corners[:1]]) + floor
        below = p - (p @ goal.up) * goal.up + floor
        note = length_text(length, unit)
        return Mark(p, None, label, reached, paths=[ring, (p, below)], note=note, on_joint=False)
    paths: list[Array] = []
    if isinstance(goal, RelativeGoal):
        target = others[0] @ goal.other_offset @ target
        paths = [np.stack([others[0][:3, 3], target[:3, 3]])]
    planted = isinstance(goal, ContactGoal) and goal.keep == "normal"
    if planted:
        paths = [_square(t, target[:3, :3], size)]
    placed = bool(goal.measures & POSITION)
    turned = bool(goal.measures & ROTATION) and not planted
    return Mark(
        position=p,
        target=target[:3, 3] if placed else None,
        label=label,
        reached=reached,
        rotation=at[:3, :3] if turned else None,
        target_rotation=target[:3, :3] if turned else None,
        paths=paths,
        on_joint=solution.rows[i] >= 0,
    )


def _range(pose: Pose, row: int, goal: RangeGoal, size: float) -> list[Array]:
    """Return the lines in the world that stand for the range of a joint's value."""
    skeleton = pose.skeleton
    above = skeleton.parents[row]
    turn = np.eye(3) if above < 0 else pose.matrix(above)
    lines = range_lines(skeleton, row, (goal.lower, goal.upper), value_of(pose, row), _ARC * size)
    return [line @ turn.T + pose.positions[row] for line in lines]


def _square(centre: Array, rotation: Array, size: float) -> Array:
    """Return the corners (5, 3), first and last the same, of a small square across the z axis of a rotation."""
    across, along = _PATCH * size * rotation[:, 0], _PATCH * size * rotation[:, 1]
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1), (1, 1))
    return np.array([centre + a * across + b * along for a, b in signs])
