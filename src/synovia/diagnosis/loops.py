"""Explain how loops affect a miss: the joints that they lock, and singular poses."""

from __future__ import annotations

import math

import numpy as np

from synovia.ik.solution import Solution, length_text
from synovia.model import Kind
from synovia.model.loops.loop import Tie
from synovia.model.loops.mechanism import INDEPENDENT
from synovia.model.loops.tables import moved_by
from synovia.model.tree import ancestors
from synovia.text import first_few

_STILL = 1e-6  # a joint moves if its component in a unit motion of the loops is larger than this


def loops_of_misses(solution: Solution) -> list[tuple[Tie, list[int]]]:
    """Return the loops that affect a miss, each with those of its joints that move a missed goal."""
    ik, skeleton = solution.ik, solution.ik.skeleton
    if ik.reduced.loops is None or solution.reached:
        return []
    rows = {row for i in solution.missed for end in ik.goal_joints[i] for row in ancestors(skeleton.parents, end)}
    found: list[tuple[Tie, list[int]]] = []
    for tie in ik.reduced.loops.ties:
        joints = moved_by(skeleton, tie)
        if shared := sorted(rows & joints):
            found.append((tie, shared))
        elif any(moved_by(skeleton, other) & joints for other, _ in found):
            found.append((tie, []))
    return found


def rows_in_loops(solution: Solution) -> set[int]:
    """Return the rows of all joints in the loops that affect a miss."""
    return {row for tie, _ in loops_of_misses(solution) for row in moved_by(solution.ik.skeleton, tie)}


def loop_sentences(solution: Solution) -> list[str]:
    """Return sentences about loops that restrict joints of a miss: joint values, locked joints, and singular loops."""
    held = [(tie, rows) for tie, rows in loops_of_misses(solution) if rows]
    mechanism, skeleton = solution.ik.skeleton.mechanism, solution.ik.skeleton
    if not held or mechanism is None:
        return []
    lines = [f"Loop {tie.label!r} ties {first_few([_at(solution, row) for row in rows])}." for tie, rows in held]
    _, values, motions = np.linalg.svd(mechanism.rows(solution.pose.q[None])[1][0])
    rank = int((values > INDEPENDENT).sum())
    moves = np.linalg.norm(motions[rank:], axis=0) > _STILL
    sizes = np.where(skeleton.tables.is_number, 1, 3)
    owners = np.repeat(skeleton.tables.owner, sizes)
    still = [row for row in sorted({row for _, rows in held for row in rows}) if not moves[owners == row].any()]
    still = [row for row in still if (owners == row).any()]
    if still:
        lines.append(f"In this pose, the loops lock {first_few([repr(skeleton.joint_names[row]) for row in still])}.")
    if motions.shape[0] - rank > mechanism.mobility.freedom:
        lines.append("In this pose, the loops are singular: they allow more motion than in poses nearby.")
    return lines


def _at(solution: Solution, row: int) -> str:
    """Return the name of a joint as text, with the value of a hinge or slide."""
    skeleton, name = solution.ik.skeleton, repr(solution.ik.skeleton.joint_names[row])
    kind = skeleton.joints[row].kind
    if kind is Kind.HINGE:
        return f"{name} at {math.degrees(float(solution.pose[row])):.0f} deg"
    if kind is Kind.SLIDE:
        return f"{name} at {length_text(float(solution.pose[row]), skeleton.meters_per_unit)}"
    return name
