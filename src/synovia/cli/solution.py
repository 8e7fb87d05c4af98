"""A solution as one JSON object, and as text for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.cli.output import number, printable
from synovia.goals import RelativeGoal, RestGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.reason_text import as_json as reasons_as_json
from synovia.ik.solution import length_text
from synovia.io.posefile import values_of
from synovia.model.geometry import matrix_to_quat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from synovia.goals import Goal
    from synovia.ik import IK, Solution
    from synovia.model import Pose
    from synovia.model.geometry import Array

SCHEMA: Final = "synovia.solve/1"
_UNITS: Final = {1.0: "m", 0.01: "cm", 0.001: "mm", 0.0254: "in"}
_MOVED: Final = 1e-9  # radians or lengths; less is the same number to people


def unit_name(meters_per_unit: float | None) -> str:
    """Return the name of a length unit, ``unit`` where the file does not say."""
    if meters_per_unit is None:
        return "unit"
    return _UNITS.get(meters_per_unit, f"{meters_per_unit:g} m")


def as_json(solution: Solution, ik: IK, seconds: float) -> dict[str, Any]:
    """Return what ``--json`` prints: errors in length units and radians, 0 where a goal asks for none."""
    skeleton, missed = ik.skeleton, solution.missed
    goals: list[dict[str, Any]] = []
    each = zip(solution.goals, solution.errors, solution.targets, solution.frames, strict=True)
    for i, (goal, error, target, at) in enumerate(each):
        place, turn = bool(goal.takes & POSITION), bool(goal.takes & ROTATION)
        body = goal.joint is None  # nothing of it has a rotation, and of a posture no place either
        goals.append(
            {
                "joint": skeleton.joint_names[goal.joint] if isinstance(goal.joint, int) else goal.joint,
                "name": goal.label,
                "kind": goal.kind,
                "reached": i not in missed,
                "position_error": error.position,
                "angle_error": error.angle,
                "position": at[:3, 3].tolist() if goal.measures or not body else None,
                "target_position": target[:3, 3].tolist() if place else None,
                "quat_xyzw": None if body else matrix_to_quat(at[:3, :3]).tolist(),
                "target_quat_xyzw": matrix_to_quat(target[:3, :3]).tolist() if turn else None,
                "target_seen_from": goal.other if isinstance(goal, RelativeGoal) else None,
                "weight": goal.weight,
                "priority": None if isinstance(goal, RestGoal) else goal.priority,  # below all
            }
        )
    return {
        "schema": SCHEMA,
        "model": skeleton.name,
        "status": solution.status.name,
        "reached": solution.reached,
        "interrupted": solution.interrupted,
        "solver": ik.solver.name,
        "seed": ik.solver.seed,
        "steps": solution.steps,
        "attempts": solution.attempts,
        "attempt": solution.attempt,
        "seconds": seconds,
        "unit": unit_name(skeleton.meters_per_unit),
        "meters_per_unit": skeleton.meters_per_unit,
        "reach": ik.reach,
        "root": ik.root,
        "tolerance": {"position": ik.tolerance[0], "angle": ik.tolerance[1]},
        "goals": goals,
        "q": values_of(solution.pose),
        "active_limits": list(solution.active_limits),
        "start_clamped": list(solution.start_clamped),
        "reasons": reasons_as_json(solution, solution.reasons),
        "explanation": solution.explain(),
    }


def as_text(solution: Solution, ik: IK, start: Pose, seconds: float) -> list[RenderableType]:
    """Return status, goals, explanation and the joints that moved, to be printed in this order."""
    from rich.text import Text

    colour = "bold green" if solution.reached else "bold yellow"
    status = Text(solution.status.name.replace("_", " "), style=colour)
    times = "1 attempt" if solution.attempts == 1 else f"{solution.attempts} attempts"
    steps = "1 step" if solution.steps == 1 else f"{solution.steps} steps"
    status.append(f" in {steps}, {times}, {_time_text(seconds)} ({ik.solver.name})", style="default not bold")
    parts: list[RenderableType] = [status, "", _goals(solution, ik)]
    if not solution.reached or solution.start_clamped:
        said = solution.explain()
        parts += ["", *(Text(printable(line)) for line in (said[1:] if solution.reached else said))]
    parts += ["", _joints(solution.pose, start)]
    return parts


def _goals(solution: Solution, ik: IK) -> RenderableType:
    """Return a table of the goals and what is left to each."""
    from rich.table import Table
    from rich.text import Text

    unit = ik.skeleton.meters_per_unit
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for title in ("goal", "error", "target", "position"):
        table.add_column(title, no_wrap=True)
    missed = solution.missed
    each = zip(solution.goals, solution.errors, solution.targets, solution.frames, strict=True)
    for i, (goal, error, target, at) in enumerate(each):
        left = [length_text(error.position, unit)] if goal.measures & POSITION else []
        left += [f"{math.degrees(error.angle):.3g} deg"] if goal.measures & ROTATION else []
        table.add_row(
            Text(printable(goal.label)),
            Text(", ".join(left), style="yellow" if i in missed else "green"),
            Text(printable(_target(goal, target))),
            Text(_vector(at[:3, 3]) if goal.measures else ""),
        )
    return table


def _target(goal: Goal, target: Array) -> str:
    """Return where a goal's target is, or what else it asks for."""
    if not goal.takes & POSITION:
        return goal.kind.replace("_", " ")
    seen = f" from {goal.other}" if isinstance(goal, RelativeGoal) else ""
    return f"{_vector(target[:3, 3])}{seen}"


def _joints(pose: Pose, start: Pose) -> RenderableType:
    """Return a table of the joints that are elsewhere than at the start; the others are counted."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from synovia.model import Kind

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("joint", no_wrap=True)
    table.add_column("value", no_wrap=True)
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
            shown = " ".join(number(round(v, 6)) for v in value.tolist())
        table.add_row(Text(printable(key)), Text(shown))
    if not still:
        return table
    rest = Text(f"{'1 joint is' if still == 1 else f'{still} joints are'} as at the start.", style="dim")
    return Group(table, rest) if table.row_count else rest


def _vector(values: Iterable[float]) -> str:
    """Return three numbers in brackets, to a millionth."""
    return "(" + ", ".join(number(round(float(v), 6)) for v in values) + ")"


def _time_text(seconds: float) -> str:
    """Return a time in the unit that fits."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
