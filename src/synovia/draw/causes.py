"""Lines and labels that show why goals are missed: link lengths, joint limits, other goals, and proofs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from synovia.diagnosis.explain import limits_in_the_way, span_of
from synovia.draw.arcs import limit_arcs
from synovia.goals.base import POSITION
from synovia.ik import Solution
from synovia.ik.proofs.proof import at_least
from synovia.ik.solution import length_text
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array, align_z
from synovia.text import short_names

_MOST: Final = 6  # largest number of drawn limits, and of other goals for each missed goal
_ARC: Final = 0.09  # radius of the arc of a limit, as a fraction of the body's size
_HEAD: Final = 0.2  # length of the head of an arrow, as a fraction of the arrow
_CAP: Final = 0.45  # half the angle of the drawn part of a sphere, radians
_LEAST: Final = 1e-3  # shortest arrow and smallest ball, as a fraction of the body's size
_AROUND: Final = np.linspace(0.0, 2.0 * math.pi, 65)


class Cause(NamedTuple):
    """One reason why a goal is missed, to draw.

    Args:
        kind: "reach" for lengths of links, "proof", "limit" of a joint, "goal" for another goal, or "move" for the
            nearest target that can be met.
        text: The reason in words.
        at: Position of the text, (3,), length units.
        paths: Lines, each as points (n, 3), length units.
    """

    kind: str
    text: str
    at: Array
    paths: list[Array]


def causes_of(solution: Solution, size: float) -> list[Cause]:
    """Return the reasons why goals of a solution are missed; empty if all are met.

    The solution computes its reasons and its proof when they are first used, which takes some solves.

    Args:
        solution: The solution.
        size: Size of the body, length units.
    """
    if solution.refusal is not None or solution.reached:
        return []
    return [*_bounds(solution, size), *_limits(solution, size), *_goals(solution, size)]


def _bounds(solution: Solution, size: float) -> Iterator[Cause]:
    """Yield parts of spheres: the end of the links' reach, and the proved smallest distance from a target."""
    unit, proof = solution.ik.skeleton.meters_per_unit, solution.proof
    names, up = short_names(solution.ik.skeleton.joint_names), find_up(solution.ik.skeleton).vector
    for i in solution.missed:
        goal, target = solution.goals[i], solution.targets[i]
        if not (goal.has_point and (goal.pose_parts or goal.constrained_parts) & POSITION):
            continue
        place = target[:3, 3]
        if (span := span_of(solution, i)) is not None:
            near, far = goal.distances(target, span.origin)
            to_target = (place - span.origin) / max(float(np.linalg.norm(place - span.origin)), 1e-12)
            words, radius = "", 0.0
            if near > span.farthest:
                words, radius = "reaches {0} at most", span.farthest
            elif far < span.nearest:
                words, radius = "comes no nearer than {0}", span.nearest
            if words:
                text = f"{names[span.first]}: {words.format(length_text(radius, unit))}"
                yield Cause("reach", text, span.origin + radius * to_target, _cap(span.origin, radius, to_target))
        if proof is not None and proof.goal == goal.label and proof.measure == "length" and proof.near > _LEAST * size:
            text = f"proved: {goal.label} comes no nearer than {at_least(proof.near, unit, angle=False)}"
            yield Cause("proof", text, place - proof.near * up, _ball(place, proof.near))


def _limits(solution: Solution, size: float) -> Iterator[Cause]:
    """Yield the joints whose limits stand in the way of missed goals, with arcs that show these limits."""
    skeleton, pose = solution.pose.skeleton, solution.pose
    names = short_names(skeleton.joint_names)
    for name in limits_in_the_way(solution, solution.reasons)[0][:_MOST]:
        row = skeleton.joint_names.index(name)
        above = skeleton.parents[row]
        turn = np.eye(3) if above < 0 else pose.matrix(above)
        arcs = limit_arcs(skeleton, row, _ARC * size) @ turn.T + pose.positions[row]
        yield Cause("limit", f"{names[row]} is at its limit", pose.positions[row], list(arcs))


def _goals(solution: Solution, size: float) -> Iterator[Cause]:
    """Yield the goals that hold back a missed goal, and moves of its target after which it is met."""
    frames, labels = solution.frames, [goal.label for goal in solution.goals]
    for reason in solution.reasons:
        goal = solution.goals[reason.goal]
        if not goal.has_point:
            continue
        at = frames[reason.goal][:3, 3]
        for rival in reason.rivals[:_MOST]:
            j = labels.index(rival.name)
            if solution.goals[j].has_point and j != reason.goal:
                place = frames[j][:3, 3]
                text = f"{rival.name} holds back {goal.label}"
                yield Cause("goal", text, place, [np.stack([at, place])])
        if reason.move is not None and np.linalg.norm(reason.move) > _LEAST * size:
            start = solution.targets[reason.goal][:3, 3]
            unit = solution.ik.skeleton.meters_per_unit
            text = f"{goal.label} is met after {length_text(float(np.linalg.norm(reason.move)), unit)}"
            yield Cause("move", text, start + reason.move, _arrow(start, start + reason.move))


def _ball(middle: Array, radius: float) -> list[Array]:
    """Return three circles of a ball, each as points (n, 3)."""
    circle = np.stack([np.cos(_AROUND), np.sin(_AROUND), np.zeros(len(_AROUND))], axis=1)
    return [middle + radius * np.roll(circle, shift, axis=1) for shift in range(3)]


def _cap(middle: Array, radius: float, towards: Array) -> list[Array]:
    """Return lines on the part of a sphere around one direction (3,): two circles and two arcs."""
    turn = align_z(towards)
    out: list[Array] = []
    for angle in (0.5 * _CAP, _CAP):
        ring = [
            math.sin(angle) * np.cos(_AROUND),
            math.sin(angle) * np.sin(_AROUND),
            np.full(len(_AROUND), math.cos(angle)),
        ]
        out.append(np.stack(ring, axis=1))
    along = np.linspace(-_CAP, _CAP, 33)
    for x, y in ((1.0, 0.0), (0.0, 1.0)):
        out.append(np.stack([x * np.sin(along), y * np.sin(along), np.cos(along)], axis=1))
    return [middle + radius * line @ turn.T for line in out]


def _arrow(start: Array, end: Array) -> list[Array]:
    """Return the lines of an arrow, each as points (n, 3)."""
    along = end - start
    across = np.asarray(np.cross(along, np.eye(3)[int(np.argmin(np.abs(along)))]), float)
    side = 0.5 * _HEAD * float(np.linalg.norm(along)) * across / max(float(np.linalg.norm(across)), 1e-12)
    back = end - _HEAD * along
    return [np.stack([start, end]), np.stack([back + side, end, back - side])]
