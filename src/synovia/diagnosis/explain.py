"""Sentences for people: what came out of a solve, by how much a goal was missed, and what stands in the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.solution import Reason, Relief, Solution, length_text
from synovia.ik.status import Status
from synovia.kernels.layout import GOAL_ROW
from synovia.model import Kind
from synovia.model.geometry import Array
from synovia.model.tree import ancestors
from synovia.problem.structure import freedoms

_MOST_JOINTS = 6  # names in one sentence
_PLACE = 3  # rows of a place
_STALLED = "No step lowers the error further."
_SPENT = "The steps, or the move that one solve may make, were spent: solve again from this pose to go on."
_LATE = "The deadline cut it short; more time, or another solve from this pose, may bring it nearer."
_CUT = "Joint limits cut the answer of a closed form; another pose within them may come nearer."
_HELD = {
    "smoothness": "The goals held here until smoothness= took out quick motion: less of it, or slower targets.",
    "velocity": "The goals held here until velocity= held joints back: a higher one, or slower targets.",
}
_MILLI, _ODD = 1000.0, 20.0  # millimetres of a metre; how many times the reach a miss must be to look like them
_CLOSED = "A closed form gave the answer that its settings allow; nothing proves the target out of reach."


def explain(solution: Solution) -> list[str]:
    """Return the sentences: how it ended, every missed goal, the limits that are active, what was done to the start."""
    ik = solution.ik
    unit = ik.skeleton.meters_per_unit
    missed = [(solution.goals[i], solution.errors[i]) for i in solution.missed]
    causes = [] if solution.reached else _causes(solution)
    meaning = solution.status.meaning
    if solution.status is Status.STALLED and (causes or ik.solver.closed):  # more attempts would not help
        meaning = _CLOSED if ik.solver.closed else _STALLED
    elif solution.interrupted and not solution.reached:
        meaning = _LATE
    elif solution.status is Status.MAX_STEPS and ik.solver.reasons():
        meaning = _SPENT
    elif solution.status is Status.LIMITED and ik.solver.closed:
        meaning = _CUT
    held = None if solution.frame is None else solution.frame.held
    lines = [meaning if held is None else _HELD[held]]
    say = partial(length_text, meters_per_unit=unit)
    lines += [f"Goal {goal.label!r} {goal.describe_miss(*error, say)}." for goal, error in missed]
    if held is not None:
        return lines
    if hint := unit_hint(solution):
        lines.append(f"{hint[0].upper()}{hint[1:]}")
    if solution.status is Status.UNREACHABLE:
        lines += _reach_sentences(solution)
    reasons = solution.reasons if solution.missed and ik.solver.supports_priorities else ()
    if not solution.reached and (joints := _limits_in_the_way(solution, reasons)):
        lines.append(f"At a limit: {_listed(joints)}.")
    lines += causes
    lines += _reason_sentences(solution, reasons)
    if clamped := solution.start_clamped:
        lines.append(f"The start was outside the limits of {_listed(clamped)}, and was brought inside first.")
    if not solution.reached and solution.attempts > 1:
        lines.append(f"{solution.attempts} attempts were made; the best pose is from attempt {solution.attempt}.")
    if ik.solver.finish and (taken := solution.finish_steps):
        lines.append(f"The last {taken} steps were those of another method: finish={ik.solver.finish!r}.")
    return lines


def unit_hint(solution: Solution) -> str | None:
    """Return a question where a target looks like millimetres and lengths are metres; None where none does.

    It is then missed by many times the reach, and a thousandth of it would be within reach.
    """
    ik = solution.ik
    unit = ik.skeleton.meters_per_unit
    if unit not in (None, 1.0):
        return None
    for i in solution.missed:
        goal = solution.goals[i]
        if not goal.place & POSITION or solution.errors[i].position <= _ODD * ik.reach:
            continue
        less = solution.targets[i, :3, 3] / _MILLI
        if np.linalg.norm(less - _origin(solution, _chain(ik, i, ik.rows[i])[-1])) > ik.reach:
            continue
        place = ", ".join(f"{x + 0.0:.6g}" for x in less)
        if unit is None:
            return (
                f"is the target of {goal.label!r} in millimetres? The model may be in metres: did you mean ({place})?"
            )
        return f"did you mean metres, as in the model? ({place}) would be within reach of {goal.label!r}."
    return None


def _causes(solution: Solution) -> list[str]:
    """Return what, known beforehand, keeps a miss from being met: too few joints, settings, a plane on its way."""
    ik = solution.ik
    lines = [*_too_few(solution), *ik.solver.reasons()]
    poles = any(solution.goals[i].paced for i in solution.missed)
    if solution.frame is not None and solution.frame.follows and poles and (pace := ik.solver.pole_pace):
        lines.append(f"In a track the plane of a limb turns towards its pole by at most {pace}.")
    return lines


def _listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:_MOST_JOINTS])
    return shown + (f" and {len(names) - _MOST_JOINTS} more" if len(names) > _MOST_JOINTS else "")


def _chain(ik: CompiledProblem, i: int, row: int) -> list[int]:
    """Return the joints from one of goal i's up to the first that moves."""
    rows = ancestors(ik.skeleton.parents, row) if row >= 0 else []
    if (most := ik.goals[i].ancestors) is not None:
        rows = rows[: most + 1]
    while len(rows) > 1 and rows[-1] not in ik.moving:
        rows.pop()
    return rows


def _limits_in_the_way(solution: Solution, reasons: Sequence[Reason]) -> list[str]:
    """Return the joints at a limit that a missed goal hangs on, or that hold it back from afar: a knee, a hand."""
    ik = solution.ik
    if any(not ik.goal_joints[i] for i in solution.missed):  # the whole body
        return list(solution.active_limits)
    names = {
        ik.skeleton.joint_names[row] for i in solution.missed for end in ik.goal_joints[i] for row in _chain(ik, i, end)
    }
    names |= {limit.name for reason in reasons for limit in reason.limits}
    return [name for name in solution.active_limits if name in names]


def _too_few(solution: Solution) -> list[str]:
    """Return a sentence for each missed place or rotation that fewer numbers move than it asks for."""
    ik = solution.ik
    lines: list[str] = []
    for i in solution.missed:
        goal = solution.goals[i]
        count = freedoms(ik.reduced, int(ik.reduced.goals.table[i, GOAL_ROW]))
        if goal.place and 0 < count < goal.rows:
            what = {POSITION: "place", ROTATION: "rotation"}.get(goal.place, "pose")
            lines.append(
                f"Only {count} {'number moves' if count == 1 else 'numbers move'} {goal.label!r}, and a {what} has "
                f"{goal.rows}: most of what is within reach cannot be met exactly."
            )
            if goal.place == POSITION | ROTATION and count >= _PLACE:
                lines[-1] += f" A PositionGoal asks for {_PLACE} alone, and may be joined by an AimGoal."
    return lines


def _origin(solution: Solution, row: int) -> Array:
    """Return where a joint stands before its own motion, (3,)."""
    skeleton = solution.pose.skeleton
    above, rest = int(skeleton.parents[row]), skeleton.joints[row].rest
    return rest[:3, 3] if above < 0 else (solution.pose.transform(above) @ rest)[:3, 3]


def _reach_sentences(solution: Solution) -> list[str]:
    """Return, for each position goal whose target is out of bounds, what the bounds are.

    They count from the first joint of its chain that moves: the sum of the lengths from there, and the hole that one
    long bone leaves around it.
    """
    ik = solution.ik
    skeleton, unit = ik.skeleton, ik.skeleton.meters_per_unit
    lines: list[str] = []
    for i in solution.missed:
        goal = solution.goals[i]
        if not goal.place:
            continue
        rows = _chain(ik, i, ik.rows[i])
        kinds = [skeleton.joints[row].kind for row in rows]
        if ik.moving.isdisjoint(rows):
            root = ik.root == "fixed" and goal.ancestors is None
            free = ": it is a part of the fixed root, and root='free' (--root free) would let it move" if root else ""
            lines.append(f"No joint moves {goal.label!r}{free}.")
            continue
        if not goal.place & POSITION or Kind.FREE in kinds:
            continue
        bones = np.append(skeleton.lengths[rows[:-1]], np.linalg.norm(goal.offset[:3, 3]))
        travel = 0.0
        for row, kind in zip(rows, kinds, strict=True):
            if kind is Kind.SLIDE:
                travel += max(abs(end) for end in skeleton.value_range(row))
        away = float(np.linalg.norm(solution.targets[i, :3, 3] - _origin(solution, rows[-1])))
        reach = float(bones.sum()) + travel
        hole = float(2.0 * bones.max() - bones.sum()) if Kind.SLIDE not in kinds else 0.0
        place = f"The target of {goal.label!r} is {length_text(away, unit)} from {skeleton.joint_names[rows[-1]]!r}"
        if away > reach:
            lines.append(
                f"{place}, the first joint that moves it; from there it reaches {length_text(reach, unit)} at most."
            )
        elif away < hole:
            lines.append(
                f"{place}, the first joint that moves it; from there it comes no nearer than {length_text(hole, unit)}."
            )
    return lines


def _reason_sentences(solution: Solution, found: Sequence[Reason]) -> list[str]:
    """Return the reasons as people read them."""
    ik = solution.ik
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


def _met(ik: CompiledProblem, reason: Reason) -> bool:
    """Return whether a target would hold where it is."""
    ways = zip((reason.move, reason.turn), ik.tolerance, strict=True)
    known = [(way, most) for way, most in ways if way is not None]
    return bool(known) and not reason.along and all(float(np.linalg.norm(way)) <= most for way, most in known)


def _left(ik: CompiledProblem, goal: Goal, relief: Relief) -> str:
    """Return what would be left of a miss, as people read it."""
    error, unit = relief.error, ik.skeleton.meters_per_unit
    if error.position <= ik.tolerance[0] and error.angle <= ik.tolerance[1]:
        return "it would hold"
    parts = [length_text(error.position, unit)] if goal.measures & POSITION else []
    parts += [f"{math.degrees(error.angle):.3g} deg"] if goal.measures & ROTATION else []
    return f"{' and '.join(parts)} would be left"
