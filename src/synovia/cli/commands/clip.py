"""Commands on clips."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.completion import models
from synovia.cli.options import Force, Json


def retarget(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC", autocompletion=models, help="The clip: a BVH, glTF/GLB or npz file.", show_default=False
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="DST", autocompletion=models, help="The model that shall move.", show_default=False)
    ],
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
    force: Force = False,
    as_json: Json = False,
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
    force: Force = False,
) -> None:
    """Write a clip or a skeleton in another format.

    For example: synovia convert walk.bvh walk.csv
    """
    from synovia.cli.convert import convert as write

    raise typer.Exit(write(source, output, clip=clip, into=into, force=force))
