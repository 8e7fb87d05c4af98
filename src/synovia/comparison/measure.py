"""Run solvers on the same problems in turn, so that other load on the machine affects all of them equally."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np

from synovia.arguments import Progress
from synovia.comparison.problems import Problems
from synovia.errors import InputError, UnsupportedError
from synovia.facade import IK
from synovia.ik import Status
from synovia.ik.starts import LearnedStarts
from synovia.model.geometry import Array
from synovia.solver import Solver, as_solver, solvers
from synovia.tracking.trajectory import all_variables

_ROUNDS: Final = 3  # number of calls per problem; the fastest call is reported
_CURVES: Final = 60  # largest number of problems for the convergence curves
_PARTS: Final = 1000  # number of units of progress for all work together
_GRID: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 130, 160, 200)
_Report = Callable[[float], None]


@dataclass(eq=False)
class Row:
    """The results of one solver.

    Args:
        solver: Name of the solver.
        refused: Reason why the solver does not support these goals on this model; the other values are then empty.
        reached: Fraction of the problems that were reached.
        count: Number of attempted problems; smaller than requested if the time limit was reached.
        steps: Median number of steps, summed over all attempts.
        tries: Mean number of attempts.
        median_us: Median time of a call, microseconds.
        p99_us: 99th percentile of the time of a call, microseconds.
        from_rest_deg: Mean angle of a joint from rest, degrees, median over reached solutions: naturalness.
        track_reached: Fraction of the frames of a smooth path that were reached.
        largest_step_deg: Largest angle of a joint from frame to frame along the path, degrees.
        roughness_deg: Root mean square of the joints' second differences along the path, degrees: smoothness.
        statuses: Number of solutions by status.
        curve_steps: Numbers of steps of the convergence curve.
        curve: Largest position error of the first attempt after each number of steps, (steps, problems), as a fraction
            of the length scale.
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
        tolerance: Largest errors of reached goals: position (length units) and angle (radians).
        root: Whether the root could move.
        reach: Length scale of the errors, length units.
        rows: The results of each solver.

    Example:
        >>> import synovia as sy
        >>> problems = sy.comparison.make_problems(sy.bundled("arm7"), count=5, frames=5)
        >>> row = sy.comparison.compare(problems, ["lm"]).rows[0]
        >>> row.solver, row.count, row.reached
        ('lm', 5, 1.0)
    """

    problems: Problems
    tolerance: tuple[float, float]
    root: str
    reach: float
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        """Return the problems and the solvers."""
        return f"Comparison({self.problems!r}, {', '.join(row.solver for row in self.rows)})"


def compare(
    problems: Problems,
    names: Sequence[str | Solver] | None = None,
    *,
    tolerance: tuple[float, float] | None = None,
    root: str = "fixed",
    budget: float = 5.0,
    progress: Progress | None = None,
    starts: LearnedStarts | None = None,
) -> Comparison:
    """Run solvers on the same problems: separate problems from rest, and the frames of a path with warm starts.

    Args:
        problems: The problems.
        names: Names or settings of solvers; None for all registered solvers. If a solver runs with several settings,
            each row names the settings that differ from the defaults.
        tolerance: As in ``IK``.
        root: As in ``IK``.
        budget: Time limit in seconds of each solver for the separate problems.
        progress: Called with the work done and the total.
        starts: Learned starts; every general solver then gets a second row with these starts.

    Returns:
        A ``Comparison``: a row of figures for each solver (``rows``), and their curves for ``plot_convergence``.

    Raises:
        InputError: If the budget is not positive.
        UnknownNameError: If a solver does not exist.

    Example:
        >>> import synovia as sy
        >>> problems = sy.comparison.make_problems(sy.bundled("arm7"), count=5, frames=5)
        >>> [row.solver for row in sy.comparison.compare(problems, ["lm", "dls"]).rows]
        ['lm', 'dls']
    """
    if not budget > 0.0:
        raise InputError("budget", value=budget, expected="seconds above 0")
    chosen: list[str | Solver] = list(names) if names else list(solvers)

    def report(share: float) -> None:
        if progress is not None:
            progress(round(_PARTS * share), _PARTS)

    rows: list[Row] = []
    ready: list[tuple[Row, IK]] = []
    tasks: list[tuple[str | Solver, LearnedStarts | None]] = []
    for solver in chosen:
        tasks.append((solver, None))
        if starts is not None and not as_solver(solver).closed:
            tasks.append((solver, starts))
    for place, (solver, learned) in enumerate(tasks):
        row = Row(_label(solver, chosen) + (" + starts" if learned is not None else ""))
        rows.append(row)
        report(0.5 * place / len(tasks))
        try:
            settings = as_solver(solver)
            ik = IK(problems.skeleton, problems.goals, settings, tolerance=tolerance, root=root, starts=learned)
        except UnsupportedError as error:
            row.refused = error.what
            continue
        ik.precompile()  # before timing, including kernels that only misses need
        ready.append((row, ik))
    _solve(ready, problems, budget, report)
    for place, (row, ik) in enumerate(ready):
        report(0.8 + 0.1 * place / len(ready))
        _track(row, ik, problems)
    for place, (row, ik) in enumerate(ready):
        report(0.9 + 0.1 * place / len(ready))
        _converge(row, ik, problems)
    bounds, reach = (ready[0][1].tolerance, ready[0][1].reach) if ready else ((0.0, 0.0), 1.0)
    return Comparison(problems, bounds, root, reach, tuple(rows))


def _label(solver: str | Solver, chosen: Sequence[str | Solver]) -> str:
    """Return a solver's name; if it runs with several settings, also the settings that differ from the default."""
    name = solver if isinstance(solver, str) else solver.name
    if isinstance(solver, str) or [other if isinstance(other, str) else other.name for other in chosen].count(name) < 2:
        return name
    changed = [f"{f.name}={x!r}" for f in fields(solver) if (x := getattr(solver, f.name)) != f.default]
    return f"{name} ({', '.join(changed)})" if changed else name


@dataclass(eq=False)
class _Runner:
    """A solver with its row and its results."""

    row: Row
    ik: IK
    best: Array  # (N,) shortest time of each problem, seconds; infinite if not solved
    facts: Array  # (N, 3) status, steps, attempts
    q: Array  # (N, nq)
    spent: float = 0.0

    def solve(self, k: int, targets: dict[str, Any], again: bool) -> None:
        """Solve problem k and store the shortest time; store the solution only once, since repetitions are equal."""
        begun = time.perf_counter()
        solution = self.ik.solve(targets)
        seconds = time.perf_counter() - begun
        self.spent += seconds
        self.best[k] = min(self.best[k], seconds)
        if not again:
            self.facts[k] = solution.status, solution.steps, solution.attempts
            self.q[k] = solution.pose.q

    def fill_row(self) -> None:
        """Compute the row from the results."""
        row, skeleton = self.row, self.ik.skeleton
        done = np.isfinite(self.best)
        facts, q = self.facts[done], self.q[done]
        ok = facts[:, 0] == Status.REACHED
        row.count = int(done.sum())
        row.reached = float(ok.mean())
        row.steps, row.tries = float(np.median(facts[:, 1])), float(facts[:, 2].mean())
        row.median_us, row.p99_us = (float(x) * 1e6 for x in np.percentile(self.best[done], (50, 99)))
        row.statuses = {status.name: n for status in Status if (n := int((facts[:, 0] == status).sum()))}
        if ok.any():
            variables, q = all_variables(skeleton), q[ok]
            turned = variables.angles(variables.difference(np.broadcast_to(skeleton.rest_q, q.shape), q))
            row.from_rest_deg = float(np.degrees(np.median(turned.mean(1))))


def _solve(ready: Sequence[tuple[Row, IK]], problems: Problems, budget: float, report: _Report) -> None:
    """Time every solver on every problem, in rounds; a solver gets no more problems after ``budget`` seconds."""
    targets = problems.of_kind(problems.targets)
    count = len(next(iter(targets.values())))
    single = [{name: values[k] for name, values in targets.items()} for k in range(count)]
    runners = [
        _Runner(row, ik, np.full(count, np.inf), np.zeros((count, 3)), np.zeros((count, ik.skeleton.nq)))
        for row, ik in ready
    ]
    for turn in range(_ROUNDS):
        for k, one in enumerate(single):
            for runner in runners:
                if runner.spent <= budget and not (turn and np.isinf(runner.best[k])):
                    runner.solve(k, one, again=turn > 0)
            if k % 20 == 0:
                report(0.5 + 0.3 * (turn + k / count) / _ROUNDS)
    for runner in runners:
        runner.fill_row()


def _track(row: Row, ik: IK, problems: Problems) -> None:
    """Track the path, and write the results of tracking into the row."""
    answer = ik.track(problems.of_kind(problems.path))
    variables = all_variables(ik.skeleton)
    steps = variables.difference(answer.q[:-1], answer.q[1:])[1:]  # without the first step, which comes from rest
    bends = variables.angles(np.diff(steps, axis=0))
    row.track_reached = float(answer.reached.mean())
    row.largest_step_deg = float(np.degrees(variables.angles(steps).max(initial=0.0)))
    row.roughness_deg = float(np.degrees(np.sqrt(np.mean(np.square(bends))))) if bends.size else 0.0


def _converge(row: Row, ik: IK, problems: Problems) -> None:
    """Measure the errors of first attempts after increasing numbers of steps."""
    targets = {name: values[:_CURVES] for name, values in problems.of_kind(problems.targets).items()}
    row.curve_steps = tuple(k for k in _GRID if k <= ik.solver.search.max_steps)
    errors = np.array([ik.errors_after(k, targets) for k in row.curve_steps])
    row.curve = errors[..., 0].max(-1) / ik.reach
