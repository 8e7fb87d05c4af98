"""``synovia``: the application, its small commands, and ``main``, which runs a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from io import TextIOWrapper
from typing import Annotated, Final

import typer

from synovia.cli.animate import animate
from synovia.cli.bench import bench
from synovia.cli.convert import convert
from synovia.cli.inputs import ClipModel, Json, Model
from synovia.cli.output import REACHED, emit, talk
from synovia.cli.pictures import plot, render
from synovia.cli.progress import CompileNotice
from synovia.cli.retarget import retarget
from synovia.cli.solve import solve
from synovia.cli.view import view
from synovia.errors import MissingExtraError, SynoviaError

_BAD_INPUT: Final = 3
_NO_EXTRA: Final = 4
_BUG: Final = 70
_INTERRUPTED: Final = 130
_REPORT_BUG: Final = (
    "This is a bug in Synovia. Please report it with the lines above and the output of 'synovia doctor'."
)

app = typer.Typer(
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(asked: bool) -> None:
    """Print the version and exit."""
    if asked:
        from importlib.metadata import version

        emit(f"synovia {version('synovia')}")
        raise typer.Exit


@app.callback()
def synovia(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Inverse kinematics for anything with joints.

    Exit codes: 0 all goals reached, 1 some goals missed, 2 wrong usage, 3 bad input, 4 an extra is not installed, 70 a
    bug, 130 interrupted.
    """
    del version


def inspect(file: Model, model: ClipModel = None, as_json: Json = False) -> None:
    """Show a model: tree of joints, kinds, limits, units, roles, tips and clips."""
    from synovia.cli.inspect import inspect_model

    inspect_model(file, model, as_json=as_json)


class SchemaName(StrEnum):
    """Published JSON schemas."""

    GOALS = "goals"
    TRACK = "track"


def schema(name: Annotated[SchemaName, typer.Argument(help="Which schema.", show_default=False)]) -> None:
    """Print the JSON schema of goal files or track files."""
    from importlib.resources import files

    emit(files("synovia").joinpath("files", "schemas", f"{name.value}-1.json").read_text(encoding="utf-8"))


def doctor(
    as_json: Json = False,
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile the solvers now, so that first solves are fast.")
    ] = False,
) -> None:
    """Show versions, extras and the cache of compiled code."""
    from synovia.cli.doctor import examine

    examine(as_json=as_json, warm=warm)


for command in (inspect, solve, animate, view, retarget, convert, render, plot, bench, schema, doctor):
    app.command()(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Arguments after the program's name; None for those of this process.

    Returns:
        The exit code.
    """
    # Before NumPy and SciPy load: a second thread of OpenBLAS makes fits of clips many times slower on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names in files may have characters that the terminal cannot print
            stream.reconfigure(errors="backslashreplace")
    try:
        with CompileNotice():
            app(args=None if arguments is None else list(arguments), prog_name="synovia")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else REACHED
    except SynoviaError as error:
        talk(f"synovia: {error}")
        return _NO_EXTRA if isinstance(error, MissingExtraError) else _BAD_INPUT
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception:  # noqa: BLE001 - any other error is a bug
        import traceback

        talk(traceback.format_exc() + _REPORT_BUG)
        return _BUG
    return REACHED
