"""Commands on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.completion import joints, solvers, targets
from synovia.cli.options import Deadline, Force, Json, Model, Root


def inspect(file: Model, as_json: Json = False) -> None:
    """Show the joints of a model: tree, kinds, limits, units, roles, tips and clips."""
    from synovia.cli.inspect import inspect_model

    inspect_model(file, as_json=as_json)


def solve(
    file: Model,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="JOINT=X,Y,Z",
            autocompletion=targets,
            help="World position of a joint, in the length unit of the file. Repeat for more joints. A joint is"
            " named by its name, body, role or row.",
            show_default=False,
        ),
    ] = None,
    rotation: Annotated[
        list[str] | None,
        typer.Option(
            "--rotation",
            "-r",
            metavar="JOINT=AXES:A,B,C",
            autocompletion=targets,
            help="World rotation of a joint: Euler angles in degrees, for example hand=xyz:10,20,30 about fixed axes,"
            " XYZ about turned ones; or quat_xyzw:X,Y,Z,W, or quat_wxyz:W,X,Y,Z. Repeat for more joints.",
            show_default=False,
        ),
    ] = None,
    goals: Annotated[
        Path | None,
        typer.Option(
            "--goals",
            "-g",
            metavar="GOALS",
            help="File of goals, TOML or JSON, with weights, priorities, offsets and names; 'synovia schema goals'"
            " prints its schema.",
            show_default=False,
        ),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            "--solver",
            metavar="NAME",
            autocompletion=solvers,
            help="Algorithm, for example lm, dls, fabrik or ccd.",
            show_default="lm",
        ),
    ] = None,
    tol: Annotated[
        str | None,
        typer.Option(
            "--tol",
            metavar="POS[,DEG]",
            help="When a goal counts as reached: a length in the file's unit, and an angle in degrees.",
            show_default="1e-4 of the reach, 1e-3 rad",
        ),
    ] = None,
    root: Root = "fixed",
    start: Annotated[
        str,
        typer.Option("--start", metavar="POSE.json|rest|random:SEED", help="Pose to start from."),
    ] = "rest",
    attempts: Annotated[
        int | None,
        typer.Option(
            "--attempts", metavar="N", help="Attempts; all but the first start at random.", show_default="the solver's"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of the restarts.", show_default="0")
    ] = None,
    deadline: Deadline = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="POSE.json",
            help="Write the pose, the best one where goals are missed, for --start to read.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="PNG", help="Draw the result; needs synovia[render].", show_default=False),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the pose that brings joints to their targets.

    For example: synovia solve arm7 -t tool=0.4,0.1,0.5 -r tool=xyz:180,0,0
    """
    from synovia.cli.solve import Request, solve_request

    request = Request(
        model=file,
        targets=tuple(target or ()),
        rotations=tuple(rotation or ()),
        goals=goals,
        solver=solver,
        tolerance=tol,
        root=root,
        start=start,
        attempts=attempts,
        seed=seed,
        deadline=deadline,
        output=output,
        picture=picture,
        force=force,
        as_json=as_json,
    )
    raise typer.Exit(solve_request(request))


def bench(
    file: Model,
    joint: Annotated[
        list[str] | None,
        typer.Option(
            "--joint",
            metavar="JOINT",
            autocompletion=joints,
            help="A joint with a goal; repeat for more.",
            show_default="hands, feet and head, else the tips",
        ),
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver", metavar="NAME", autocompletion=solvers, help="A solver; repeat for more.", show_default="all"
        ),
    ] = None,
    pose: Annotated[bool, typer.Option("--pose", help="Ask for orientations too.")] = False,
    problems: Annotated[int, typer.Option("--problems", metavar="N", min=1, help="Separate problems.")] = 200,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the problems.")] = 0,
    tol: Annotated[
        str | None,
        typer.Option(
            "--tol",
            metavar="POS[,DEG]",
            help="When a goal counts as reached.",
            show_default="1e-4 of the reach, 1e-3 rad",
        ),
    ] = None,
    root: Root = "fixed",
    budget: Annotated[
        float, typer.Option("--budget", metavar="SECONDS", min=0.01, help="Most time for one solver.")
    ] = 5.0,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="PNG",
            help="Draw how the error falls, step by step; needs synovia[plot].",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare all solvers on a model: success, steps, time, smoothness, naturalness.

    For example: synovia bench humanoid --plot convergence.png
    """
    from synovia.cli.bench import Request, bench_request
    from synovia.cli.solve import parse_tolerance

    request = Request(
        model=file,
        joints=tuple(joint or ()),
        solvers=tuple(solver or ()),
        pose=pose,
        problems=problems,
        seed=seed,
        root=root,
        tolerance=parse_tolerance(tol),
        budget=budget,
        plot=plot,
        force=force,
        as_json=as_json,
    )
    raise typer.Exit(bench_request(request))
