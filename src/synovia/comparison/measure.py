"""Every solver on the same problems, in turns, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from synovia.comparison.problems import Problems, angles_between
from synovia.errors import UnsupportedError
from synovia.geometry import Array
from synovia.ik import IK, Status
from synovia.solver import Solver, solvers

_ROUNDS: Final = 3  # the fastest of so many counts
_CURVES: Final = 60  # problems of the curves of convergence
_GRID: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 130, 160, 200)
Watch = Callable[[str, float], None]


@dataclass(eq=False)
class Row:
    """How one solver fared.

    Args:
        solver: Its name.
        refused: Why it cannot take these goals on this model; the rest is empty then.
        reached: Share of the problems that were reached.
        count: Problems that were tried; fewer than asked for when the time was spent.
        steps: Median number of steps, all attempts together.
        tries: Mean number of attempts.
        median_us: Median time of a call, microseconds.
        p99_us: What 99 % of the calls stay below.
        from_rest_deg: Median over reached answers of the mean turn of a joint from rest, degrees: naturalness.
        track_reached: Share of the frames of a smooth path that were reached.
        largest_step_deg: Largest turn of a joint from frame to frame along it, degrees.
        roughness_deg: Root mean square of the joints' second differences along it, degrees: smoothness.
        statuses: Number of answers by status.
        curve_steps: Steps of the curve of convergence.
        curve: (steps, problems) largest position error of a first attempt after so many steps, in reaches.
    """

    solver: str
    refused: str | None = None
    reached: float = 0.0
    count: int = 0
    steps: float = 0.0
    tries: float = 0.0
    median_us: float = 0.0
    p99_us: float = 0.0
    from_rest_deg: float = float("nan")
    track_reached: float = 0.0
    largest_step_deg: float = 0.0
    roughness_deg: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    curve_steps: tuple[int, ...] = ()
    curve: Array = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class Comparison:
    """All solvers on one model.

    Args:
        problems: The problems.
        tolerance: Position (length units) and angle (radians) that counted as reached.
        root: Whether the root could move.
        reach: The length that errors are divided by, length units.
        rows: One a solver, in the order of the registry.
    """

    problems: Problems
    tolerance: tuple[float, float]
    root: str
    reach: float
    rows: tuple[Row, ...]


def compare(
    problems: Problems,
    names: Sequence[str | Solver] | None = None,
    *,
    tolerance: tuple[float, float] | None = None,
    root: str = "fixed",
    budget: float = 5.0,
    watch: Watch | None = None,
) -> Comparison:
    """Run solvers on the same problems: from rest, one by one, and warm-started along the path.

    Args:
        problems: The problems.
        names: Names or settings of solvers; all of the registry without.
        tolerance: As in ``IK``.
        root: As in ``IK``.
        budget: Seconds that one solver may take for the separate problems, at most.
        watch: Called with what is done and the share that is done, in [0, 1].
    """
    chosen: list[str | Solver] = list(names) if names else list(solvers)
    say = watch if watch is not None else _silent
    rows: list[Row] = []
    ready: list[tuple[Row, IK]] = []
    for place, solver in enumerate(chosen):
        row = Row(solver if isinstance(solver, str) else solver.name)
        rows.append(row)
        say(f"making {row.solver} ready", 0.5 * place / len(chosen))
        try:
            ik = IK(problems.skeleton, problems.goals, solver, tolerance=tolerance, root=root)
        except UnsupportedError as error:
            row.refused = error.what
            continue
        ik.warm()  # whatever is compiled only for a miss is compiled before the clock runs
        ready.append((row, ik))
    _solve(ready, problems, budget, say)
    for place, (row, ik) in enumerate(ready):
        say(f"tracking with {row.solver}", 0.8 + 0.1 * place / len(ready))
        _track(row, ik, problems)
    for place, (row, ik) in enumerate(ready):
        say(f"convergence of {row.solver}", 0.9 + 0.1 * place / len(ready))
        _converge(row, ik, problems)
    bounds, reach = (ready[0][1].tolerance, ready[0][1].reach) if ready else ((0.0, 0.0), 1.0)
    return Comparison(problems, bounds, root, reach, tuple(rows))


def _silent(what: str, share: float) -> None:
    """Watch nothing."""
    del what, share


def _solve(ready: Sequence[tuple[Row, IK]], problems: Problems, budget: float, say: Watch) -> None:
    """Time every solver on every problem, in rounds; the answers are the same in each."""
    targets = problems.of_kind(problems.targets)
    asked = [{name: values[k] for name, values in targets.items()} for k in range(len(next(iter(targets.values()))))]
    best = {row.solver: np.full(len(asked), np.inf) for row, _ in ready}
    spent = dict.fromkeys(best, 0.0)
    answers = {row.solver: (np.zeros((len(asked), 3)), np.zeros((len(asked), ik.skeleton.nq))) for row, ik in ready}
    for turn in range(_ROUNDS):
        for k, one in enumerate(asked):
            for row, ik in ready:
                name = row.solver
                if spent[name] > budget or (turn and not np.isfinite(best[name][k])):
                    continue
                begun = time.perf_counter()
                solution = ik.solve(one)
                seconds = time.perf_counter() - begun
                spent[name] += seconds
                best[name][k] = min(best[name][k], seconds)
                if turn == 0:
                    answers[name][0][k] = solution.status, solution.steps, solution.attempts
                    answers[name][1][k] = solution.pose.q
            if k % 20 == 0:
                say("solving", 0.5 + 0.3 * (turn + k / len(asked)) / _ROUNDS)
    for row, ik in ready:
        done = np.isfinite(best[row.solver])
        facts, q = answers[row.solver][0][done], answers[row.solver][1][done]
        ok = facts[:, 0] == Status.REACHED
        row.count = int(done.sum())
        row.reached = float(ok.mean())
        row.steps, row.tries = float(np.median(facts[:, 1])), float(facts[:, 2].mean())
        row.median_us, row.p99_us = (float(x) * 1e6 for x in np.percentile(best[row.solver][done], (50, 99)))
        row.statuses = {status.name: n for status in Status if (n := int((facts[:, 0] == status).sum()))}
        if ok.any():
            turned = angles_between(ik.skeleton, q[ok], ik.skeleton.rest_q)
            row.from_rest_deg = float(np.degrees(np.median(turned.mean(1))))


def _track(row: Row, ik: IK, problems: Problems) -> None:
    """Follow the path."""
    answer = ik.track(problems.of_kind(problems.path))
    steps = angles_between(ik.skeleton, answer.q[1:], answer.q[:-1])
    row.track_reached = float(answer.reached.mean())
    row.largest_step_deg = float(np.degrees(steps[1:].max(initial=0.0)))  # the first is the way there from rest
    row.roughness_deg = (
        float(np.degrees(np.sqrt(np.mean(np.square(np.diff(steps[1:], axis=0)))))) if len(steps) > 2 else 0.0
    )


def _converge(row: Row, ik: IK, problems: Problems) -> None:
    """Stop first attempts after more and more steps."""
    targets = {name: values[:_CURVES] for name, values in problems.of_kind(problems.targets).items()}
    row.curve_steps = tuple(k for k in _GRID if k <= ik.solver.max_steps)
    errors = np.array([ik.errors_after(k, targets) for k in row.curve_steps])
    row.curve = errors[..., 0].max(-1) / ik.reach
