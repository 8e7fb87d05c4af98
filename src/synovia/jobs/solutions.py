"""Reports of ``solve``: as text and as a JSON object."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.diagnosis import reasons_as_json
from synovia.files.poses import values_of
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.solution import gap_text, length_text
from synovia.jobs.words import number, style, table, time_text
from synovia.kernels.compiler import compiled
from synovia.model.geometry import matrix_to_quat
from synovia.text import Report, counted, plain, printable, unit_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from synovia.facade import IK
    from synovia.ik import Solution
    from synovia.model import Pose
    from synovia.model.geometry import Array

SCHEMA: Final = "synovia.solve/1"
_MOVED: Final = 1e-9  # radians or length units; a joint whose values changed less is reported as not moved


def solution_report(solution: Solution, ik: IK, start: Pose, seconds: float) -> Report:
    """Return the report on a solution: status, goals, explanation and the joints that moved."""
    lines = [line.rstrip() for line in _lines(solution, ik, start, seconds)]
    return Report(lines, _facts(solution, ik, seconds))


def _facts(solution: Solution, ik: IK, seconds: float) -> dict[str, Any]:
    """Return a solution as plain values; errors in length units and radians, 0 for parts a goal does not measure."""
    skeleton, missed, proof = ik.skeleton, solution.missed, solution.known_proof
    conflict = solution.known_conflict
    against = None
    if conflict is not None:
        against = {
            **plain(conflict, "goals", "limits", "priority"), "proved": conflict.proof is not None,
            "limits_proved": conflict.limits_proof is not None,
            "relaxations": [
                plain(change, "kind", "name", "length", "angle", "move", "turn") for change in conflict.relaxations
            ],
        }  # fmt: skip
    goals: list[dict[str, Any]] = []
    each = zip(solution.goals, solution.errors, solution.targets, solution.frames, strict=True)
    for i, (goal, error, target, at) in enumerate(each):
        place, turn = bool(goal.takes & POSITION), bool(goal.takes & ROTATION)
        body = goal.joint is None  # without a joint: no rotation, and no position except that of the center of mass
        goals.append(
            {
                "joint": skeleton.frame_names[goal.joint] if isinstance(goal.joint, int) else goal.joint,
                "name": goal.label,
                "kind": goal.kind,
                "reached": i not in missed,
                "position_error": error.position,
                "angle_error": error.angle,
                "position": at[:3, 3].tolist() if goal.has_point else None,
                "target_position": target[:3, 3].tolist() if place and goal.vector == "position" else None,
                "target_direction": target[:3, 3].tolist() if place and goal.vector == "direction" else None,
                "quat_xyzw": None if body else matrix_to_quat(at[:3, :3]).tolist(),
                "target_quat_xyzw": matrix_to_quat(target[:3, :3]).tolist() if turn else None,
                "target_seen_from": goal.other_joint,
                "weight": goal.weight,
                "priority": goal.priority if goal.has_priority else None,  # None: a posture is below all priorities
            }
        )
    return {
        "schema": SCHEMA,
        "model": skeleton.name,
        "status": solution.status.name,
        "conflict": against,
        "reached": solution.reached,
        "interrupted": solution.interrupted,
        "solver": ik.solver.name,
        "seed": ik.solver.search.seed,
        "steps": solution.steps,
        "attempts": solution.attempts,
        "attempt": solution.attempt,
        "seconds": seconds,
        "compiled": compiled(),
        "unit": unit_name(skeleton.meters_per_unit),
        "meters_per_unit": skeleton.meters_per_unit,
        "reach": ik.reach,
        "root": ik.root,
        "tolerance": {"position": ik.tolerance[0], "angle": ik.tolerance[1]},
        "goals": goals,
        "q": values_of(solution.pose),
        "contacts": [
            {"pair": list(contact.pair or ()), **plain(contact, "distance", "points", "normal")}
            for contact in solution.contacts
        ],
        "active_limits": list(solution.active_limits),
        "start_clamped": list(solution.start_clamped),
        "proof": None if proof is None else {"kind": proof.kind, "goal": proof.goal, "nearest": proof.bound},
        "reasons": reasons_as_json(solution, solution.reasons),
        "explanation": solution.explain(),
    }


def _lines(solution: Solution, ik: IK, start: Pose, seconds: float) -> list[str]:
    """Return the lines to print: status, goals, explanation and the joints that moved."""
    status = style(solution.status.name.replace("_", " "), "green" if solution.reached else "yellow", "bold")
    status += " at the deadline" if solution.interrupted and not solution.reached else ""
    times = counted(solution.attempts, "attempt")
    steps = counted(solution.steps, "step")
    status += f" in {steps}, {times}, {time_text(seconds)}{'' if compiled() else ' uncompiled'} ({ik.solver.name})"
    out = [status, "", *_goals(solution, ik)]
    if not solution.reached or solution.start_clamped:
        lines = solution.explain()[solution.reached :]  # the first line of a reached solution repeats the status
        out += ["", *map(printable, lines)]
    if nearest := solution.contacts[:1]:
        first, second = nearest[0].pair or ("", "")
        gap = gap_text(nearest[0].distance, ik.skeleton.meters_per_unit)
        out += ["", printable(f"Nearest: {first} and {second}, {gap}.")]
    return [*out, "", *_joints(solution.pose, start)]


def _goals(solution: Solution, ik: IK) -> list[str]:
    """Return a table of the goals and their errors."""
    unit, missed = ik.skeleton.meters_per_unit, solution.missed
    rows: list[tuple[str, ...]] = []
    each = zip(solution.goals, solution.errors, solution.targets, solution.frames, strict=True)
    for i, (goal, error, target, at) in enumerate(each):
        left = [length_text(error.position, unit)] if goal.measures & POSITION else []
        left += [f"{math.degrees(error.angle):.3g} deg"] if goal.measures & ROTATION else []
        off = style(", ".join(left), "yellow" if i in missed else "green")
        place = _vector(at[:3, 3]) if goal.measures and goal.has_point else ""
        rows.append((printable(goal.label), off, printable(_target(goal, target)), place))
    return table(rows, _head("goal", "error", "target", "position"))


def _head(*titles: str) -> list[str]:
    """Return the titles of a table."""
    return [style(title, "dim") for title in titles]


def _target(goal: Goal, target: Array) -> str:
    """Return a goal's target position, or the goal's kind if it has no target position."""
    if not goal.takes & POSITION:
        return goal.kind.replace("_", " ")
    seen = "" if goal.other_joint is None else f" from {goal.other_joint}"
    return f"{_vector(target[:3, 3])}{seen}"


def _joints(pose: Pose, start: Pose) -> list[str]:
    """Return a table of the joints that moved from the start pose, and the number of joints that did not."""
    from synovia.model import Kind
    from synovia.model.angles import value_text

    rows: list[tuple[str, str]] = []
    still = 0
    skeleton = pose.skeleton
    own_start = start.q if len(start.q) == skeleton.nq else skeleton.rest_q
    for row, key in enumerate(skeleton.joint_keys):
        kind, place = skeleton.joints[row].kind, skeleton.q_slice(row)
        if kind is Kind.FIXED:
            continue
        if np.abs(pose.q[place] - own_start[place]).max() <= _MOVED:
            still += 1
            continue
        value = pose[row]
        if not isinstance(value, np.ndarray):
            unit = unit_name(skeleton.meters_per_unit) if kind is Kind.SLIDE else "deg"
            shown = number(value if kind is Kind.SLIDE else math.degrees(value)) + f" {unit}"
        else:
            shown = value_text(pose, row).replace("°", " deg")
        rows.append((printable(key), shown))
    out = table(rows, _head("joint", "value")) if rows or not still else []
    if still:
        out.append(style(f"{'1 joint has' if still == 1 else f'{still} joints have'} not moved.", "dim"))
    return out


def _vector(values: Iterable[float]) -> str:
    """Return three numbers in brackets, rounded to six decimals."""
    return "(" + ", ".join(number(round(float(v), 6)) for v in values) + ")"
