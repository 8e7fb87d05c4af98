"""Commands about Synovia itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from synovia.cli.options import Json


class SchemaName(StrEnum):
    """Published JSON schemas."""

    GOALS = "goals"
    TRACK = "track"


def schema(name: Annotated[SchemaName, typer.Argument(help="Which schema.", show_default=False)]) -> None:
    """Print the JSON schema of a file format of Synovia's own."""
    from importlib.resources import files

    from synovia.cli.output import emit

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
