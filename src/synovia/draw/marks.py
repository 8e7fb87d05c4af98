"""The marks of a solution: the current state and the target of each goal, as sketched by its goal class."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from synovia.draw.arcs import range_lines, value_of
from synovia.draw.scene import Mark
from synovia.goals.describe import Sketch, View
from synovia.ik import Solution
from synovia.ik.solution import length_text
from synovia.model import Pose
from synovia.model.geometry import Array

_ARC: Final = 0.12  # radius of the arc for a joint's range, as a fraction of the body's size


def marks_of(solution: Solution) -> list[Mark]:
    """Return one mark for each goal of a solution that can be drawn; missed goals look different."""
    size = float(np.linalg.norm(np.ptp(solution.pose.positions, axis=0)))
    return [_mark(solution, i, view, drawn, size) for i, view, drawn in sketches_of(solution, size)]


def sketches_of(solution: Solution, size: float) -> Iterator[tuple[int, View, Sketch]]:
    """Yield index, view (the input of the sketch) and sketch of each goal that has a point.

    Args:
        solution: The solution.
        size: Size of the body, length units.
    """
    at, targets, errors, missed = solution.frames, solution.targets, solution.errors, set(solution.missed)
    joints = solution.goal_joints
    for i, goal in enumerate(solution.goals):
        if goal.rows and goal.has_point:
            view = View(
                at=at[i],
                target=targets[i],
                others=[solution.pose.transform(row) @ goal.place(k) for k, row in enumerate(joints[i]) if k],
                size=size,
                reached=i not in missed,
                length=errors[i].position,
            )
            yield i, view, goal.sketch(view)


def _mark(solution: Solution, i: int, view: View, drawn: Sketch, size: float) -> Mark:
    """Return the mark of goal i; ``size`` is the size of the body, length units."""
    goal, pose, error = solution.goals[i], solution.pose, solution.errors[i]
    notes = {
        "length": length_text(error.position, pose.skeleton.meters_per_unit),
        "angle": f"{math.degrees(error.angle):.2g}°",
    }
    arcs = [] if drawn.arc is None else _range(pose, solution.rows[i], drawn.arc, size)
    return Mark(
        position=view.at[:3, 3],
        target=drawn.target,
        label=goal.label.replace("_", " "),
        reached=view.reached,
        rotation=drawn.rotation,
        target_rotation=drawn.target_rotation,
        paths=[*drawn.paths, *arcs],
        note=notes.get(drawn.note, ""),
        on_joint=drawn.on_joint,
    )


def _range(pose: Pose, row: int, bounds: tuple[float, float], size: float) -> list[Array]:
    """Return the lines, in world coordinates, that show the range of a joint's value."""
    skeleton = pose.skeleton
    above = skeleton.parents[row]
    turn = np.eye(3) if above < 0 else pose.matrix(above)
    lines = range_lines(skeleton, row, bounds, value_of(pose, row), _ARC * size)
    return [line @ turn.T + pose.positions[row] for line in lines]
