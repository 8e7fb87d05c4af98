"""The commands: names, options and help. What they do is imported when they run, so that help is fast."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

_Model = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A URDF, MJCF, glTF/GLB, BVH or TOML file, or the name of a bundled model: humanoid, arm7, quadruped.",
        show_default=False,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class Root(StrEnum):
    """Whether the root may move."""

    FIXED = "fixed"
    FREE = "free"


class SchemaName(StrEnum):
    """Published JSON schemas."""

    GOALS = "goals"


def _version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from importlib.metadata import version

        from synovia.cli.output import emit

        emit(f"synovia {version('synovia')}")
        raise typer.Exit


@app.callback()
def synovia(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Inverse kinematics for anything with joints.

    Exit codes: 0 all goals reached, 1 ran but some were missed, 2 usage, 3 bad input, 4 an extra is not installed, 70 a
    bug, 130 interrupted.
    """
    del version


@app.command()
def inspect(file: _Model, as_json: _Json = False) -> None:
    """Show the joints of a model: tree, kinds, limits, units, roles, tips and clips."""
    from synovia.cli.inspect import inspect_model

    inspect_model(file, as_json=as_json)


@app.command()
def solve(
    file: _Model,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="JOINT=X,Y,Z",
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
            "--solver", metavar="NAME", help="Algorithm, for example lm, dls, fabrik or ccd.", show_default="lm"
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
    root: Annotated[Root, typer.Option("--root", help="Whether the root of the model may move.")] = Root.FIXED,
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
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: _Json = False,
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
        root=root.value,
        start=start,
        attempts=attempts,
        seed=seed,
        output=output,
        picture=picture,
        force=force,
        as_json=as_json,
    )
    raise typer.Exit(solve_request(request))


@app.command()
def retarget(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="The clip: a BVH, glTF/GLB or npz file.", show_default=False)
    ],
    target: Annotated[str, typer.Argument(metavar="DST", help="The model that shall move.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write the motion: .bvh, .npz, .csv, or .glb (a copy of DST with one more clip).",
            show_default=False,
        ),
    ] = None,
    clip: Annotated[
        str | None, typer.Option("--clip", metavar="NAME|N", help="Which clip of SRC.", show_default="the first")
    ] = None,
    joint_map: Annotated[
        Path | None,
        typer.Option(
            "--map", metavar="MAP.toml", help="Which joint is which, instead of guessing.", show_default=False
        ),
    ] = None,
    save_map: Annotated[
        Path | None,
        typer.Option("--save-map", metavar="MAP.toml", help="Write the joint map that was used.", show_default=False),
    ] = None,
    feet: Annotated[bool, typer.Option("--feet/--no-feet", help="Keep standing feet where they stand.")] = True,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Threads.", show_default="all cores")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: _Json = False,
) -> None:
    """Carry a clip over to another body, character or robot, within its limits.

    For example: synovia retarget walk.bvh character.glb -o walking.glb
    """
    from synovia.cli.retarget import Request, retarget_request

    request = Request(
        source=source,
        target=target,
        clip=clip,
        output=output,
        joint_map=joint_map,
        save_map=save_map,
        feet=feet,
        jobs=jobs,
        force=force,
        as_json=as_json,
    )
    raise typer.Exit(retarget_request(request))


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A model or a clip.", show_default=False)],
    output: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Clip: .bvh, .glb, .npz, .csv; skeleton: .toml.", show_default=False),
    ],
    clip: Annotated[
        str | None, typer.Option("--clip", metavar="NAME|N", help="Which clip of IN.", show_default="the first")
    ] = None,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="GLB", help="The glTF whose copy gets the clip.", show_default="IN"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a clip or a skeleton in another format.

    For example: synovia convert walk.bvh walk.csv
    """
    from synovia.cli.convert import convert as write

    raise typer.Exit(write(source, output, clip=clip, into=into, force=force))


@app.command()
def schema(name: Annotated[SchemaName, typer.Argument(help="Which schema.", show_default=False)]) -> None:
    """Print the JSON schema of a file format of Synovia's own."""
    from importlib.resources import files

    from synovia.cli.output import emit

    emit(files("synovia").joinpath("schemas", f"{name.value}-1.json").read_text(encoding="utf-8"))


@app.command()
def doctor(
    as_json: _Json = False,
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile the solvers now, so that first solves are fast.")
    ] = False,
) -> None:
    """Show versions, extras and the cache of compiled code."""
    from synovia.cli.doctor import examine

    examine(as_json=as_json, warm=warm)
