"""``synovia view``: the live page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from synovia.cli.output import emit, emit_json, printable, talk
from synovia.cli.run import REACHED


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """The command line of ``synovia view``, as it was typed."""

    model: str
    clip: str | None
    goals: Path | None
    solver: str | None
    root: str | None
    host: str
    port: int
    token: str | None
    dark: bool
    shadows: bool
    browser: bool
    as_json: bool


def view_request(request: ViewRequest) -> int:
    """Serve the page until interrupted; return the exit code.

    Raises:
        SynoviaError: If a file, goal or setting cannot be used.
    """
    from synovia.viewer import view

    goals = None
    if request.goals is not None:
        from synovia.files.goals import read_goals

        goals = read_goals(request.goals)
    if not 0 <= request.port < 2**16:
        raise typer.BadParameter(f"{request.port} is no port", param_hint="'--port'")
    page = view(
        request.model,
        goals,
        clip=request.clip,
        solver=request.solver,
        root=request.root,
        host=request.host,
        port=request.port,
        token=request.token,
        dark=request.dark,
        shadows=request.shadows,
        browser=request.browser,
    )
    with page:
        if request.as_json:
            emit_json({"schema": "synovia.view/1", "url": page.url, "notes": list(page.notes)})
        else:
            emit(page.url)
        for line in page.notes:
            talk(printable(line))
        talk("Open this address in a browser and drag a target, or any joint. Ctrl+C ends it.")
        page.wait()
    return REACHED
