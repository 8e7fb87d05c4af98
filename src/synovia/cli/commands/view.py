"""``synovia view``: open the live page."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synovia.cli.command import Argument, Command, refuse
from synovia.cli.completion import models
from synovia.cli.inputs import (
    load_body,
    model_argument,
    model_option,
    one_solver,
    role_file,
    roles_option,
    root_option,
    trim_option,
)
from synovia.cli.output import emit, emit_json, talk
from synovia.cli.running import Terminal, untold
from synovia.cli.values import FILE, typed
from synovia.jobs.clips import ClipReader, needs_model
from synovia.jobs.options import Number
from synovia.text import printable

if TYPE_CHECKING:
    from synovia.viewer import View


@click.command(cls=Command)
@model_argument
@click.argument("clip", cls=Argument, required=False, help="A clip to play: a file, or a name in FILE.")
@model_option
@trim_option
@roles_option
@click.option(
    "--onto",
    metavar="MODEL",
    shell_complete=models,
    help="Show the clip beside its transfer to this model, and edit the transfer.",
)
@click.option(
    "--map", "joint_map", metavar="MAP.toml", type=FILE, help="Joint map for --onto.", show_default="automatic"
)
@click.option("--goals", "-g", metavar="GOALS", type=FILE, help="File of goals to start with.")
@one_solver
@root_option(None, "free for bodies with hands and feet")
@click.option(
    "--host", metavar="ADDRESS", default="127.0.0.1", help="Address to serve on; all but local ones need a token."
)
@click.option(
    "--port",
    metavar="N",
    type=typed(Number(0, 2**16 - 1, whole=True)),
    default=8080,
    help="Port to try first; 0 for any.",
)
@click.option("--token", metavar="SECRET", help="Secret of the page.", show_default="random, if needed")
@click.option("--dark", is_flag=True, help="Start dark.")
@click.option("--shadows/--no-shadows", default=True, help="Whether the body casts a shadow.")
@click.option("--browser/--no-browser", default=True, help="Open a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as a JSON object.")
def view(
    file: str,
    clip: str | None,
    model: str | None,
    trim: bool,
    onto: str | None,
    joint_map: Path | None,
    goals: Path | None,
    solver: str | None,
    root: str | None,
    as_json: bool,
    **page_options: Any,
) -> None:
    """Open a live page: drag a hand, and the body follows.

    With --onto, the page shows the clip and its transfer to another body side by side; there you edit the joint map and
    the rest pose. The command needs the extra [view].

    For example: synovia view character.glb
    """
    from synovia import viewer
    from synovia.io.load import has_shapes, is_bundled, load_clips

    if onto is not None:
        refuse("expected no --onto with this option.", "goals", "roles", "solver", "root")
        if clip is not None and Path(clip).exists():  # FILE is the model of the clip
            file, clip, model = clip, None, file
        motion = ClipReader(clip=clip, model=model, trim=trim).read(file, Terminal())[0]
        page = viewer.view_retarget(motion, onto, joint_map, **page_options)
        _serve(page, "Open this address in a browser and edit map or rest pose. Ctrl+C ends it.", as_json=as_json)
        return
    refuse("expected --onto MODEL with this option.", "joint_map")
    wanted = None
    if goals is not None:
        from synovia.files.goals import read_goals

        wanted = read_goals(goals)
    shown = None
    body: Any = file
    if model is not None:  # FILE is a clip alone
        shown = ClipReader(clip=clip, model=model, trim=trim).read(file, Terminal())[0]
        body = shown.skeleton if has_shapes(model) else model
    elif clip is not None and Path(clip).exists():
        shown = ClipReader(model=file if needs_model(clip) else None, trim=trim).read(clip, Terminal())[0]
    elif trim:
        shown = ClipReader(clip=clip, trim=trim).read(file, Terminal())[0]
    if role_file() is not None and isinstance(body, str):
        if shown is None and not is_bundled(body) and load_clips(body).motions:
            shown = ClipReader(clip=clip).read(body, Terminal())[0]
        body = load_body(body)
    page = viewer.view(body, wanted, clip=clip if shown is None else shown, solver=solver, root=root, **page_options)
    _serve(page, "Open this address in a browser and drag a target, or any joint. Ctrl+C ends it.", as_json=as_json)


def _serve(page: View, what: str, *, as_json: bool) -> None:
    """Print the address of a page and what to do there, and serve it until the process is interrupted or ended."""
    with page, _ended_by_exceptions():
        if as_json:
            emit_json({"schema": "synovia.view/1", "url": page.url, "notes": list(page.notes)})
        else:
            emit(page.url)
        for line in untold(page.notes):
            talk(printable(line))
        talk(what)
        page.wait()


@contextmanager
def _ended_by_exceptions() -> Generator[None]:
    """Raise SystemExit at SIGTERM and SIGHUP, so that the folder of the page is removed."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    ends = [one for name in ("SIGTERM", "SIGHUP") if (one := getattr(signal, name, None)) is not None]
    before = {one: signal.getsignal(one) for one in ends}
    before = {one: handler for one, handler in before.items() if handler is not signal.SIG_IGN}  # as by nohup
    for one in before:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
