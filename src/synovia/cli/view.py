"""``synovia view``: open the live page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synovia.cli.completion import models
from synovia.cli.inputs import ClipModel, Model, Solver, Trim, load_clip, root_option
from synovia.cli.output import emit, emit_json, printable, talk

if TYPE_CHECKING:
    from synovia.viewer import View


def view(
    file: Model,
    clip: Annotated[
        str | None,
        typer.Argument(metavar="[CLIP]", help="A clip to play: a file, or a name in FILE.", show_default=False),
    ] = None,
    model: ClipModel = None,
    trim: Trim = False,
    onto: Annotated[
        str | None,
        typer.Option(
            "--onto",
            metavar="MODEL",
            autocompletion=models,
            help="Show the clip beside its transfer to this model, and edit the transfer.",
            show_default=False,
        ),
    ] = None,
    joint_map: Annotated[
        Path | None,
        typer.Option("--map", metavar="MAP.toml", help="Joint map for --onto.", show_default="automatic"),
    ] = None,
    goals: Annotated[
        Path | None,
        typer.Option("--goals", "-g", metavar="GOALS", help="File of goals to start with.", show_default=False),
    ] = None,
    solver: Solver = None,
    root: Annotated[str | None, root_option("free for bodies with hands and feet")] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to serve on; all but local ones need a token.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=2**16 - 1, help="Port to try first; 0 for any.")
    ] = 8080,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="SECRET", help="Secret of the page.", show_default="random, if needed"),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Start dark.")] = False,
    shadows: Annotated[bool, typer.Option(help="Whether the body casts a shadow.")] = True,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as a JSON object.")] = False,
) -> None:
    """Open a live page in the browser: drag a hand, and the body follows. Needs synovia[view].

    With --onto, the page shows the clip and its transfer to another body side by side; there you edit the joint map and
    the rest pose.

    For example: synovia view character.glb
    """
    from synovia import viewer
    from synovia.io.load import has_shapes

    options: dict[str, Any] = {
        "host": host, "port": port, "token": token, "dark": dark, "shadows": shadows, "browser": browser,
    }  # fmt: skip
    if onto is not None:
        if clip is not None and Path(clip).exists():  # FILE is the model of the clip
            file, clip, model = clip, None, file
        motion = load_clip(file, clip, model=model, trim=trim)
        page = viewer.view_retarget(motion, onto, joint_map, **options)
        _serve(page, "Open this address in a browser and edit map or rest pose. Ctrl+C ends it.", as_json=as_json)
        return
    if joint_map is not None:
        raise typer.BadParameter("expected --onto MODEL with this option", param_hint="'--map'")
    wanted = None
    if goals is not None:
        from synovia.files.goals import read_goals

        wanted = read_goals(goals)
    shown = None
    body: Any = file
    if model is not None:  # FILE is a clip alone
        shown = load_clip(file, clip, model=model, trim=trim)
        body = shown.skeleton if has_shapes(model) else model
    elif clip is not None and Path(clip).exists():
        shown = load_clip(clip, model=file, trim=trim)
    elif trim:
        shown = load_clip(file, clip, trim=True)
    page = viewer.view(body, wanted, clip=clip if shown is None else shown, solver=solver, root=root, **options)
    _serve(page, "Open this address in a browser and drag a target, or any joint. Ctrl+C ends it.", as_json=as_json)


def _serve(page: View, what: str, *, as_json: bool) -> None:
    """Print the address of a page and what to do there, and serve it until it is interrupted."""
    with page:
        if as_json:
            emit_json({"schema": "synovia.view/1", "url": page.url, "notes": list(page.notes)})
        else:
            emit(page.url)
        for line in page.notes:
            talk(printable(line))
        talk(what)
        page.wait()
