"""``synovia``: the application, and which commands it has."""

from __future__ import annotations

from typing import Annotated

import typer

from synovia.cli.commands.animate import animate
from synovia.cli.commands.clip import convert, retarget
from synovia.cli.commands.model import bench, inspect, solve
from synovia.cli.commands.page import view
from synovia.cli.commands.picture import plot, render
from synovia.cli.commands.tools import doctor, schema

app = typer.Typer(
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


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


for command in (inspect, solve, animate, view, retarget, convert, render, plot, bench, schema, doctor):
    app.command()(command)
