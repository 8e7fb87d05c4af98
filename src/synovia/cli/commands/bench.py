"""``synovia bench``: compare the solvers on a model, as a table, JSON and a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from click import style

from synovia.cli.declare import with_options
from synovia.cli.output import emit_json, emit_lines
from synovia.cli.progress import Bar
from synovia.cli.running import Terminal
from synovia.errors import UnsupportedError
from synovia.jobs.clips import body_of
from synovia.jobs.options import File, Number, argument, described, option
from synovia.jobs.shared import FORCE, JOINT, JSON, MODEL, ROOT, SOLVER, TOLERANCE
from synovia.jobs.words import number, table, time_text
from synovia.text import unit_name

if TYPE_CHECKING:
    from synovia.comparison import Comparison, Row

SCHEMA: Final = "synovia.bench/1"
SERVO_SCHEMA: Final = "synovia.bench-servo/1"
_SERVO: Final = "servo"  # in place of a file
_SHARES: Final = {"median_us": 50.0, "p99_us": 99.0, "p99.9_us": 99.9}
_WIDE: Final = 48  # characters of the longest bar


@described
class Bench:
    """What to compare, and how."""

    file: str = argument(like=MODEL)
    joint: Sequence[str] = option(
        default=(), like=replace(JOINT, help="A joint with a goal; repeat for more."),
        shown="hands, feet and head, else the tips",
    )  # fmt: skip
    solver: Sequence[str] = option(
        default=(), like=replace(SOLVER, help="A solver; repeat for more."), shown="all", repeats=True
    )
    pose: bool = option(default=False, help="Ask for orientations too.")
    problems: int = option(default=200, help="Separate problems.", kind=Number(1, 10**6, whole=True), metavar="N")
    seed: int = option(default=0, help="Seed of the problems.", kind=Number(0, whole=True), metavar="N")
    tolerance: tuple[float, float] | None = option(default=None, like=TOLERANCE)
    root: Any = option(default="fixed", like=ROOT)
    budget: float = option(default=5.0, help="Time limit for each solver.", kind=Number(0.01), metavar="SECONDS")
    plot: Path | None = option(
        default=None, help="Plot the error by step; needs the extra [plot].", kind=File(), metavar="PNG"
    )
    force: bool = option(default=False, like=FORCE)
    as_json: bool = option(default=False, like=JSON)


@with_options(Bench)
def bench(given: Bench) -> None:
    """Compare all solvers on a model: success, steps, time, smoothness.

    For example: synovia bench humanoid --plot convergence.png

    With "servo" in place of a file: how long the ticks of a servo take, on two bundled models.
    """
    if given.file == _SERVO:
        _bench_servo(given)
        return
    from synovia.comparison import compare, make_problems

    if given.plot is not None:  # before minutes of work
        from synovia.plots.style import check_plot

        check_plot(given.plot, force=given.force)
    made = make_problems(
        body_of(given.file, Terminal()), given.joint, pose=given.pose, count=given.problems, seed=given.seed
    )
    with Bar("") as bar:
        result = compare(
            made,
            given.solver,
            tolerance=given.tolerance,
            root=given.root,
            budget=given.budget,
            watch=lambda what, share: bar(share, text=what),
        )
    if all(row.refused is not None for row in result.rows):
        raise UnsupportedError(f"no solver supports these goals: {result.rows[0].refused}", where=given.file)
    if given.plot is not None:
        from synovia.plots import plot_convergence

        plot_convergence(result, given.plot, force=given.force)
    if given.as_json:
        emit_json(_object(result))
    else:
        _print(result)


def _bench_servo(given: Bench) -> None:
    """Show how long the ticks of a servo take."""
    from synovia.comparison import tick_times

    bodies = tick_times(given.budget)
    if given.as_json:
        shown = [(body, *body.histogram()) for body in bodies]
        emit_json({
            "schema": SERVO_SCHEMA,
            "bodies": [
                {
                    "model": body.body,
                    "goals": body.goals,
                    "ticks": len(body.seconds),
                    **{name: 1e6 * body.share(percent) for name, percent in _SHARES.items()},
                    "histogram": {"edges_us": (1e6 * edges).tolist(), "ticks": counts.tolist()},
                }
                for body, counts, edges in shown
            ],
        })  # fmt: skip
        return
    lines: list[str] = []
    for body in bodies:
        counts, edges = body.histogram()
        median, high, highest = (time_text(body.share(percent)) for percent in _SHARES.values())
        lines += [
            f"{body.body}: {body.goals}; {len(body.seconds)} ticks",
            f"median {median}, 99 % {high}, 99.9 % {highest}",
            "",
        ]
        for count, low, top in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            bar = "#" * math.ceil(_WIDE * count / max(counts))
            lines.append(f"{time_text(low):>8} to {time_text(top):>8} {count:>8.0f} {bar}")
        lines.append("")
    emit_lines([*lines, style("processor time of the thread; targets go around at 500 ticks per second", dim=True)])


def _object(result: Comparison) -> dict[str, Any]:
    """Return the comparison as plain values."""
    problems = result.problems
    return {
        "schema": SCHEMA,
        "model": problems.skeleton.name,
        "goals": [{"joint": str(goal.joint), "kind": type(goal).__name__} for goal in problems.goals],
        "root": result.root,
        "tolerance": {"position": result.tolerance[0], "angle": result.tolerance[1]},
        "unit": unit_name(problems.skeleton.meters_per_unit),
        "solvers": [_row(row) for row in result.rows],
    }


def _row(row: Row) -> dict[str, Any]:
    """Return one solver's row as plain values."""
    if row.refused is not None:
        return {"solver": row.solver, "refused": row.refused}
    import numpy as np

    bands = np.percentile(row.curve, (25, 50, 75), axis=1).tolist()
    return {
        "solver": row.solver,
        "reached": row.reached,
        "problems": row.count,
        "statuses": row.statuses,
        "median_steps": row.steps,
        "mean_attempts": row.tries,
        "median_us": row.median_us,
        "p99_us": row.p99_us,
        "from_rest_deg": None if math.isnan(row.from_rest_deg) else row.from_rest_deg,
        "track_reached": row.track_reached,
        "largest_step_deg": row.largest_step_deg,
        "roughness_deg": row.roughness_deg,
        "convergence": dict(zip(("steps", "lower", "median", "upper"), (list(row.curve_steps), *bands), strict=True)),
    }


_HEAD: Final = (
    "solver",
    "reached",
    "steps",
    "tries",
    "median",
    "99 %",
    "from rest",
    "tracked",
    "largest step",
    "roughness",
)


def _print(result: Comparison) -> None:
    """Print the table, sorted by success and then by time."""
    problems = result.problems
    goals = ", ".join(str(goal.joint) for goal in problems.goals)
    kind = "pose" if type(problems.goals[0]).__name__ == "PoseGoal" else "position"
    unit = unit_name(problems.skeleton.meters_per_unit)
    most = max(row.count for row in result.rows)
    angle = f" and {number(math.degrees(result.tolerance[1]))}°" if kind == "pose" else ""
    title = (
        f"{problems.skeleton.name}: {kind} of {goals}; {most} problems from rest,"
        f" tolerance {number(result.tolerance[0])} {unit}{angle}, root {result.root}"
    )
    taken = [row for row in result.rows if row.refused is None]
    taken.sort(key=lambda row: (-round(row.reached, 2), row.median_us))
    rows = table((_cells(row, most) for row in taken), [style(name, bold=True) for name in _HEAD], gap=2, to_right=True)
    about = (
        "from rest: mean turn of a joint from the rest pose (naturalness); tracked, largest step and roughness: along a"
        " smooth path, per frame"
    )
    notes = [about, *(f"left out, {row.solver}: {row.refused}" for row in result.rows if row.refused is not None)]
    emit_lines([title, "", *rows, "", *(style(note, dim=True) for note in notes)])


def _cells(row: Row, most: int) -> Sequence[str]:
    """Return the cells of one row of the table."""
    few = f" of {row.count}" if row.count < most else ""
    rest = "" if math.isnan(row.from_rest_deg) else f"{row.from_rest_deg:.0f}°"
    return (
        row.solver, f"{100 * row.reached:.1f} %{few}", f"{row.steps:.0f}", f"{row.tries:.1f}",
        time_text(1e-6 * row.median_us), time_text(1e-6 * row.p99_us), rest, f"{100 * row.track_reached:.0f} %",
        f"{row.largest_step_deg:.1f}°", f"{row.roughness_deg:.2f}°",
    )  # fmt: skip
