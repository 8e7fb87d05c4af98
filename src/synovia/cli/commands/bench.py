"""``synovia bench``: compare the solvers on a model; time the ticks of a servo; or count branches of arms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from click import style

from synovia.cli.declare import with_options
from synovia.cli.output import emit_report
from synovia.cli.progress import Bar
from synovia.cli.running import Terminal
from synovia.errors import UnsupportedError
from synovia.jobs.base import UsageError
from synovia.jobs.clips import Looped, body_of
from synovia.jobs.options import File, Number, argument, described, flag_of, is_changed, option, options_of
from synovia.jobs.shared import FORCE, JOINT, JSON, MODEL, ROOT, SEED, SOLVER, STARTS, TOLERANCE
from synovia.jobs.words import number, table, time_text
from synovia.text import Report, unit_name

if TYPE_CHECKING:
    from synovia.comparison import Comparison
    from synovia.comparison.branches import BranchRow
    from synovia.comparison.measure import Row
    from synovia.comparison.ticks import Driven, TickTimes
    from synovia.model.geometry import Array

SCHEMA: Final = "synovia.bench/1"
BRANCHES_SCHEMA: Final = "synovia.bench-branches/1"
SERVO_SCHEMA: Final = "synovia.bench-servo/2"
SERVO: Final = "servo"  # word given instead of a model to time a servo
_BRANCHES: Final = "branches"
_OPTIONS: Final = {SERVO: ("ticks",), _BRANCHES: (_BRANCHES, "joint", "problems", "seed", "loops")}  # of these uses
_SHARED_OPTIONS: Final = ("file", "as_json")
_SERVO_BODIES: Final = ("arm7", "humanoid")
_BINS: Final = 4  # histogram bins for each doubling of the time
_BAR: Final = 48  # number of characters of the longest bar


@described
class Bench(Looped):
    """Options of ``synovia bench``."""

    file: str | None = argument(
        like=replace(MODEL, help=f"{MODEL.help} Or the word {SERVO}, to time the ticks of a servo."), required=False
    )
    joint: Sequence[str] = option(
        default=(), like=replace(JOINT, help="A joint with a goal; repeat for more."),
        shown="hands, feet and head, else the tips",
    )  # fmt: skip
    solver: Sequence[str] = option(
        default=(), like=replace(SOLVER, help="A solver; repeat for more."), shown="all", repeats=True
    )
    pose: bool = option(default=False, help="Set goals for orientations, too.")
    problems: int = option(
        default=200, help="Number of independent problems.", kind=Number(1, 10**6, whole=True), metavar="N"
    )
    seed: int = option(default=0, like=replace(SEED, help="Seed of the problems."))
    tolerance: tuple[float, float] | None = option(default=..., like=TOLERANCE)
    root: Any = option(default=..., like=ROOT)
    ticks: int = option(
        default=20_000, help=f"Ticks of each body, for {SERVO}.", kind=Number(100, 10**8, whole=True), metavar="N"
    )
    branches: bool = option(default=False, help="List all poses that reach a target, of named arms or of the model.")
    budget: float = option(default=5.0, help="Time limit for each solver.", kind=Number(0.01), metavar="SECONDS")
    starts: Path | None = option(
        default=...,
        like=replace(STARTS, help="Learned starts ('synovia learn'): each general solver runs with them and without."),
        shown="",
    )
    plot: Path | None = option(
        default=None, help="Plot the error by step; needs the extra [plot].", kind=File(), metavar="PNG"
    )
    force: bool = option(default=False, like=FORCE)
    as_json: bool = option(default=False, like=JSON)


@with_options(Bench)
def bench(given: Bench) -> None:
    """Compare all solvers on a model: success, steps, time, smoothness.

    For example: synovia bench humanoid --plot convergence.png

    synovia bench servo shows how long the ticks of a servo take, on an arm and on a whole body, and what a plain loop
    of damped least squares does with the same targets.

    synovia bench --branches lists all poses of arms of six and seven joints that reach a target: how many there are,
    whether a solver finds others from random starts, for how many targets the list is proved to be complete, and how
    long it takes.
    """
    file = _checked_file(given)
    if file == SERVO:
        _bench_servo(given)
        return
    if file is None or given.branches:
        _bench_branches(given)
        return
    from synovia.comparison import compare, make_problems
    from synovia.ik.starts import load_starts

    if given.plot is not None:  # check the plot file before minutes of work
        from synovia.plots.style import check_plot

        check_plot(given.plot, force=given.force)
    starts = None if given.starts is None else load_starts(given.starts)
    made = make_problems(
        body_of(file, Terminal(), loops=given.loops),
        given.joint,
        pose=given.pose,
        count=given.problems,
        seed=given.seed,
    )
    with Bar("comparing solvers", unit="") as bar:
        result = compare(
            made,
            given.solver,
            tolerance=given.tolerance,
            root=given.root,
            budget=given.budget,
            progress=bar,
            starts=starts,
        )
    if all(row.refused is not None for row in result.rows):
        raise UnsupportedError(f"no solver supports these goals: {result.rows[0].refused}", where=file)
    if given.plot is not None:
        from synovia.plots import plot_convergence

        plot_convergence(result, given.plot, force=given.force)
    emit_report(Report(_lines(result), _object(result)), as_json=given.as_json)


def _checked_file(given: Bench) -> str | None:
    """Return the model, the word for the servo, or None for named arms; refuse options of another use.

    Raises:
        UsageError: If such an option is given, or there is no model.
    """
    if given.file is None and not given.branches:
        raise UsageError(f"expected a model, {SERVO}, or --{_BRANCHES}.", "FILE")
    use = SERVO if given.file == SERVO else _BRANCHES if given.branches else ""
    own = _OPTIONS.get(use, ())
    for name, said, _ in options_of(given):
        if name in _SHARED_OPTIONS or name in own or not is_changed(given, name):
            continue
        if use:
            where = "a model" if use == SERVO else f"no --{_BRANCHES}"
            raise UsageError(f"expected {where} with this option.", flag_of(name, said))
        if name in _OPTIONS[SERVO]:
            raise UsageError(f"expected {SERVO} with this option.", flag_of(name, said))
    if given.file is None and given.joint:
        raise UsageError("expected a model with this option.", "--joint")
    return given.file


def _bench_branches(given: Bench) -> None:
    """List the branches of named arms, or of a model, and print a table."""
    from synovia.comparison.branches import STARTS, measure_branches

    body = None if given.file is None else body_of(given.file, Terminal(), loops=given.loops)
    with Bar("") as bar:
        rows = list(
            measure_branches(
                body, given.joint, count=given.problems, seed=given.seed,
                watch=lambda what, share: bar(share, text=what),
            )
        )  # fmt: skip
    found = [row for row in rows if row.refused is None]
    if not found:
        raise UnsupportedError(f"no lists of branches: {rows[0].refused}", where=given.file or "")
    name = f"{body.name}: " if body else ""
    title = f"{name}{given.problems} targets of random poses; {STARTS} random starts of a solver search for others"
    lines = table(
        (_branch_cells(row) for row in found), [style(name, bold=True) for name in _BRANCH_HEAD], gap=2, to_right=True
    )
    about = (
        "branches: poses that reach a target, mean; missing: others that a solver finds; complete: targets for which it"
        " is proved that there are no others; error: largest error by forward kinematics (length scales, radians)"
    )
    held = [f"{row.arm}: seven joints, of which {row.held!r} is held" for row in found if row.held]
    notes = [about, *held, *(f"left out, {row.arm}: {row.refused}" for row in rows if row.refused is not None)]
    facts = {
        "schema": BRANCHES_SCHEMA, "model": None if body is None else body.name, "starts": STARTS,
        "arms": [asdict(row) for row in rows],
    }  # fmt: skip
    emit_report(
        Report([title, "", *lines, "", *(style(note, dim=True) for note in notes)], facts), as_json=given.as_json
    )


_BRANCH_HEAD: Final = "arm", "branches", "missing", "complete", "error", "median", "99 %", "first call"


def _branch_cells(row: BranchRow) -> Sequence[str]:
    """Return the cells of one row of the table of branches."""
    times = (time_text(1e-6 * row.median_us), time_text(1e-6 * row.p99_us), time_text(1e-3 * row.first_ms))
    mean, complete = row.branches / row.targets, 100 * row.complete / row.targets
    return (row.arm, f"{mean:.2f}", str(row.missing), f"{complete:.1f} %", f"{row.error:.0e}", *times)


def _bench_servo(given: Bench) -> None:
    """Time the ticks of a servo, and print histograms."""
    from synovia.comparison.ticks import time_ticks
    from synovia.io.bundled import bundled

    bodies = {name: bundled(name) for name in _SERVO_BODIES}
    with Bar("") as bar:
        found = list(time_ticks(bodies, given.ticks, lambda what, share: bar(share, text=what)))
    notes = (
        "Processor time of the thread; the longest tick also in wall-clock time.",
        "The plain loop is damped least squares of all goals at once in NumPy, with its velocities clipped.",
    )
    lines = [line for one in found for line in (*_histogram(one), "", *_side_by_side(one), "")]
    facts = {"schema": SERVO_SCHEMA, "bodies": [_ticks_object(one) for one in found]}
    emit_report(Report([*lines, *(style(note, dim=True) for note in notes)], facts), as_json=given.as_json)


def _ticks_object(times: TickTimes) -> dict[str, Any]:
    """Return the times of one body as plain values, in microseconds."""
    edges, counts = _bins(times.servo.processor)
    return {
        "body": times.body,
        "goals": times.goals,
        "ticks": len(times.servo.processor),
        "servo": _driven_object(times.servo),
        "plain_loop": _driven_object(times.plain),
        "histogram": {"edges_us": (1e6 * edges).tolist(), "counts": counts.tolist()},
    }


def _driven_object(driven: Driven) -> dict[str, Any]:
    """Return the measurements of one control loop as plain values."""
    return {
        "median_us": 1e6 * driven.quantile(0.5),
        "p99_us": 1e6 * driven.quantile(0.99),
        "p99_9_us": 1e6 * driven.quantile(0.999),
        "longest_us": 1e6 * float(driven.processor.max()),
        "longest_wall_us": 1e6 * float(driven.wall.max()),
        "mean_error": driven.error,
        "largest_slip": driven.slip,
        "largest_velocity": driven.velocity,
        "largest_acceleration": driven.acceleration,
    }


def _side_by_side(times: TickTimes) -> list[str]:
    """Return the lines of a table that compares the servo with the plain loop."""
    rows: list[tuple[str, str, str]] = []

    def add(what: str, of: Callable[[Driven], str]) -> None:
        rows.append((what, of(times.servo), of(times.plain)))

    add("median tick", lambda one: time_text(one.quantile(0.5)))
    add("mean distance from the targets", lambda one: _percent(one.error))
    if times.servo.slip is not None:
        add("largest distance of a foot from its place", lambda one: _percent(one.slip or 0.0))
    add("largest velocity, of the limit", lambda one: f"{one.velocity:.2f}")
    add("largest acceleration, of the limit", lambda one: f"{one.acceleration:.2f}")
    head = [style(name, bold=True) for name in ("", "servo", "plain loop")]
    return [f"  {line}" for line in table(rows, head, gap=2, to_right=True)]


def _percent(share: float) -> str:
    """Return a fraction of the body's size as text."""
    return f"{100.0 * share:.3f} % of its size"


def _bins(times: Array) -> tuple[Array, Array]:
    """Return the edges (seconds, evenly spaced logarithms) and the counts of a histogram of times."""
    import numpy as np

    low, high = (math.floor(_BINS * math.log2(max(float(end), 1e-9))) for end in (times.min(), times.max()))
    edges = 2.0 ** (np.arange(low, high + 2) / _BINS)
    counts, _ = np.histogram(times, edges)
    return edges, counts


def _histogram(times: TickTimes) -> list[str]:
    """Return the lines of the histogram of one body."""
    edges, counts = _bins(times.servo.processor)
    tallest = int(counts.max())
    lines = [style(f"{times.body}: {times.goals}; {len(times.servo.processor)} ticks", bold=True), ""]
    for low, count in zip(edges.tolist(), counts.tolist(), strict=False):
        bar = "█" * round(_BAR * count / tallest) or ("▏" if count else "")
        lines.append(f"  from {time_text(low):>8}  {count:>9}  {bar}".rstrip())
    median = times.servo.quantile(0.5)
    shown = [f"median {time_text(median)}"]
    for name, share in (("99 %", 0.99), ("99.9 %", 0.999)):
        value = times.servo.quantile(share)
        shown.append(f"{name} {time_text(value)} ({value / median:.1f} times)")
    most, by_clock = (time_text(float(each.max())) for each in (times.servo.processor, times.servo.wall))
    longest = f"longest {most}, wall clock {by_clock}"
    return [*lines, "", "  " + "; ".join([*shown, longest])]


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


def _lines(result: Comparison) -> list[str]:
    """Return the lines of the table, sorted by success and then by time."""
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
    return [title, "", *rows, "", *(style(note, dim=True) for note in notes)]


def _cells(row: Row, most: int) -> Sequence[str]:
    """Return the cells of one row of the table."""
    few = f" of {row.count}" if row.count < most else ""
    rest = "" if math.isnan(row.from_rest_deg) else f"{row.from_rest_deg:.0f}°"
    return (
        row.solver, f"{100 * row.reached:.1f} %{few}", f"{row.steps:.0f}", f"{row.tries:.1f}",
        time_text(1e-6 * row.median_us), time_text(1e-6 * row.p99_us), rest, f"{100 * row.track_reached:.0f} %",
        f"{row.largest_step_deg:.1f}°", f"{row.roughness_deg:.2f}°",
    )  # fmt: skip
