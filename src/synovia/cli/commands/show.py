"""``synovia inspect``, ``synovia schema`` and ``synovia doctor``: show a model, a file format or the installation."""

from __future__ import annotations

import click

from synovia.cli.command import Argument, Command
from synovia.cli.inputs import json_option, model_argument, model_option, roles_option, with_roles
from synovia.cli.output import emit, emit_json, emit_lines
from synovia.cli.values import Word


@click.command(cls=Command)
@model_argument
@model_option
@roles_option
@json_option
def inspect(file: str, model: str | None, as_json: bool) -> None:
    """Show a model: joints, kinds, limits, units, roles, tips and clips."""
    from synovia.cli.model_report import model_object, model_text
    from synovia.io.load import Clips, is_bundled, load_clips, load_model

    skeleton = load_model(file) if model is None else load_model(model, file)
    clips = Clips([]) if is_bundled(file) else load_clips(file, None if model is None else skeleton)
    if model is not None and clips.motions:
        skeleton = clips.motions[0].skeleton
    skeleton = with_roles(skeleton)
    if as_json:
        emit_json(model_object(skeleton, clips))
    else:
        emit_lines(model_text(skeleton, clips))


@click.command(cls=Command)
@click.argument("name", cls=Argument, type=Word(("goals", "track", "edit")), help="Which schema.")
def schema(name: str) -> None:
    """Print the JSON schema of goal, track or layer files."""
    from importlib.resources import files

    emit(files("synovia").joinpath("files", "schemas", f"{name}-1.json").read_text(encoding="utf-8"))


@click.command(cls=Command)
@json_option
@click.option("--warm", is_flag=True, help="Compile the solvers now, so that first solves are fast.")
def doctor(as_json: bool, warm: bool) -> None:
    """Show versions, extras and the cache of compiled code."""
    from synovia.cli.installation import compile_all, installation_object, installation_text

    times = compile_all() if warm else {}
    state = installation_object()
    if warm:
        state["warmed"] = times
    if as_json:
        emit_json(state)
    else:
        emit_lines(installation_text(state))
