"""The command ``synovia view``: names, options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.completion import models, roots, solvers


def view(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            autocompletion=models,
            help="A URDF, MJCF, glTF/GLB, BVH or TOML file, or the name of a bundled model: humanoid, arm7, quadruped.",
            show_default=False,
        ),
    ],
    clip: Annotated[
        str | None,
        typer.Argument(metavar="[CLIP]", help="A file, or the name of a clip in FILE, to play.", show_default=False),
    ] = None,
    goals: Annotated[
        Path | None,
        typer.Option("--goals", "-g", metavar="GOALS", help="File of goals to begin with.", show_default=False),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option("--solver", metavar="NAME", autocompletion=solvers, help="Algorithm.", show_default="lm"),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            metavar="fixed|free|AXES",
            autocompletion=roots,
            help="How the root moves; AXES such as xz let it slide.",
            show_default="free for bodies with hands and feet",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to serve on; others than this need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port to try first; 0 for any.")] = 8080,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="SECRET", help="What browsers must bring.", show_default="made up if needed"),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Start dark.")] = False,
    shadows: Annotated[bool, typer.Option(help="Whether the body throws a shadow.")] = True,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as a JSON object.")] = False,
) -> None:
    """Open a live page in the browser: drag a hand, and the body follows. Needs synovia[view].

    For example: synovia view character.glb
    """
    from synovia.cli.view import ViewRequest, view_request

    request = ViewRequest(
        model=file,
        clip=clip,
        goals=goals,
        solver=solver,
        root=root,
        host=host,
        port=port,
        token=token,
        dark=dark,
        shadows=shadows,
        browser=browser,
        as_json=as_json,
    )
    raise typer.Exit(view_request(request))
