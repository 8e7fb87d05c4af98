"""``synovia solve``: from options to an ``IK``, and from its answer to text, JSON, a pose file and a picture."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from synovia.cli.clips import load_body
from synovia.cli.run import MISSED, REACHED
from synovia.cli.targets import goals_from, numbers
from synovia.errors import UnsupportedError
from synovia.io.base import check_writable

if TYPE_CHECKING:
    from synovia.ik import IK, Solution
    from synovia.model import Pose, Skeleton

_DEFAULT_ANGLE: Final = 1e-3  # rad; the library's, where --tol gives a length alone
_QUICK: Final = 2.0  # seconds; a solve that took longer, in many steps, is not repeated to be timed
_FEW: Final = 2000  # steps; if these took long, it was the compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line of ``synovia solve``, as it was typed."""

    model: str
    targets: tuple[str, ...]
    rotations: tuple[str, ...]
    goals: Path | None
    solver: str | None
    tolerance: str | None
    root: str
    start: str
    attempts: int | None
    seed: int | None
    deadline: float | None
    output: Path | None
    picture: Path | None
    force: bool
    as_json: bool


def solve_request(request: Request) -> int:
    """Solve, print and write; return the exit code.

    Raises:
        typer.BadParameter: If an option has another form.
        SynoviaError: If an option has the right form, and what it says cannot be used.
    """
    if not (request.targets or request.rotations or request.goals):
        raise typer.BadParameter("nothing to reach; give a target", param_hint="'-t', '-r' or '-g'")
    tolerance = parse_tolerance(request.tolerance)
    seed = _start_seed(request.start)
    _check_files(request)
    ik = _build(request, load_body(request.model), tolerance)
    start = _start(request.start, seed, ik.skeleton)
    seconds = time.perf_counter()
    solution = ik.solve(start=start, deadline=request.deadline)
    seconds = time.perf_counter() - seconds
    if (seconds < _QUICK or solution.steps < _FEW) and not solution.interrupted:
        # the first solve of a process loads or compiles code; the second, of the same bits, tells its speed
        seconds = time.perf_counter()
        ik.solve(start=start)
        seconds = time.perf_counter() - seconds
    if request.output is not None:
        from synovia.io.posefile import save_pose

        save_pose(solution.pose, request.output, force=request.force)
    if request.picture is not None:
        _draw(solution, ik, request.picture, force=request.force)
    if request.as_json:
        from synovia.cli.output import emit_json
        from synovia.cli.solution import as_json

        emit_json(as_json(solution, ik, seconds))
    else:
        from synovia.cli.output import emit_rich
        from synovia.cli.solution import as_text

        emit_rich(*as_text(solution, ik, ik.default_start if start is None else start, seconds))
    return REACHED if solution.reached else MISSED


def _build(request: Request, skeleton: Skeleton, tolerance: tuple[float, float] | None) -> IK:
    """Return the packed problem."""
    goals = goals_from(request.targets, request.rotations, skeleton)
    if request.goals is not None:
        from synovia.ik.goalfile import read_goals

        goals = [*read_goals(request.goals), *goals]
    from synovia.ik import IK
    from synovia.solver import as_solver

    settings = {"attempts": request.attempts, "seed": request.seed}
    solver = as_solver(request.solver).replace(**{name: value for name, value in settings.items() if value is not None})
    return IK(skeleton, goals, solver, tolerance=tolerance, root=request.root)


def parse_tolerance(text: str | None) -> tuple[float, float] | None:
    """Return length and angle (radians) of ``POS[,DEG]``."""
    if text is None:
        return None
    values = numbers(text, "--tol", 1, 2, text)
    return values[0], math.radians(values[1]) if len(values) > 1 else _DEFAULT_ANGLE


def _start_seed(text: str) -> int | None:
    """Return the seed of ``random:SEED``, None for other starts."""
    word, colon, seed = text.partition(":")
    if word != "random" or Path(text).suffix == ".json":
        return None
    if not colon or not (seed.isascii() and seed.isdecimal()) or len(seed) > 10:
        raise typer.BadParameter(f"{text!r} is not of the form random:SEED", param_hint="'--start'")
    return int(seed)


def _start(text: str, seed: int | None, skeleton: Skeleton) -> Pose | None:
    """Return the pose to start from, None for the rest pose."""
    if text == "rest":
        return None
    if seed is not None:
        return skeleton.random_pose(seed)
    from synovia.io.posefile import load_pose

    return load_pose(Path(text), skeleton)


def _check_files(request: Request) -> None:
    """Refuse files that could not be written, before any work is done for them."""
    for path, ending in ((request.output, ".json"), (request.picture, ".png")):
        if path is None:
            continue
        if path.suffix.lower() != ending:
            raise UnsupportedError(
                "cannot write this format", where=str(path), expected=f"a name that ends in {ending}"
            )
        check_writable(path, force=request.force)
    if request.picture is not None:
        from synovia.draw.raster import require_pillow

        require_pillow()


def _draw(solution: Solution, ik: IK, path: Path, *, force: bool) -> None:
    """Write a picture of the pose and its targets."""
    from synovia.draw import picture

    title = f"{ik.skeleton.name}: {solution.status.name.lower().replace('_', ' ')}"
    picture(solution, path=path, title=title, force=force)
