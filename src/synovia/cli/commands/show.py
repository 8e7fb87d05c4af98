"""``synovia inspect``, ``synovia schema`` and ``synovia doctor``: show a model, a file format or the installation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from synovia import options
from synovia.cli.command import Argument, Command, refuse
from synovia.cli.declare import typed, with_options
from synovia.cli.output import emit, emit_report
from synovia.jobs.clearance import CLEARANCE
from synovia.jobs.clips import ClipReader, Roles, with_roles
from synovia.jobs.options import File, Word, argument, described, option, said_of
from synovia.jobs.shared import JSON, MODEL

_REACH_CELLS: Final = 36  # cells in a row of the drawn reach map; each takes two characters


@described
class Inspect(Roles):
    """Options of ``synovia inspect``."""

    file: str = argument(like=MODEL)
    model: str | None = option(default=None, like=said_of(ClipReader, "model"), rank=-1)
    srdf: Path | None = option(
        default=None, kind=File(), metavar="FILE",
        help="SRDF file of a URDF with the pairs of links that may touch; by default the one next to it.",
    )  # fmt: skip
    shapes: bool = option(
        default=...,
        like=options.FITTED,
        help="Measure how well the shapes fit the surface; fit capsules to it first where shapes are missing.",
    )
    pairs: bool = option(default=False, help="List the pairs of links that can collide, and those that are left out.")
    clearance: float | None = option(
        default=None,
        like=replace(
            CLEARANCE,
            help="With --pairs: list the pairs that are nearer than this in 95 % of random poses. A goal with this"
            " distance only keeps them from touching.",
            shown="",
        ),
    )
    reach: str | None = option(
        default=None, metavar="JOINT", completes="joints",
        help="Show a map of what this joint reaches within the limits instead: by a pose, proved to be out of reach, or"
        " undecided.",
    )  # fmt: skip
    as_json: bool = option(default=False, like=JSON)


@with_options(Inspect)
def inspect(given: Inspect) -> None:
    """Show a model: joints, kinds, limits, loops, units, roles, tips, shapes and clips; or the obstacles of a world."""
    from synovia.cli.model_report import model_report
    from synovia.io.base import as_path
    from synovia.io.load import Clips, is_bundled, load_clips, load_model
    from synovia.io.worlds import is_world, read_world

    file, model = given.file, given.model
    if not given.pairs:
        refuse("expected --pairs with this option.", "clearance")
    if not is_bundled(file) and is_world(as_path(file)):
        from synovia.cli.world_report import world_report

        text = "expected a model with this option, got a world."
        refuse(text, "model", "roles", "srdf", "loops", "shapes", "pairs", "clearance", "reach")
        emit_report(world_report(read_world(as_path(file))), as_json=given.as_json)
        return
    clip = None if model is None else file
    skeleton = load_model(model or file, clip, srdf=given.srdf, loops=given.loops)
    clips = Clips([]) if is_bundled(file) else load_clips(file, None if model is None else skeleton)
    if model is not None and clips.motions:
        skeleton = clips.motions[0].skeleton
    skeleton = with_roles(skeleton, given.roles)
    if given.reach is not None:
        from synovia.plots.reach import map_reach

        emit_report(map_reach(skeleton, given.reach, cells=_REACH_CELLS).report(), as_json=given.as_json)
        return
    fit = None
    if given.shapes:
        from synovia.covers import shape_fit, with_shapes

        skeleton = with_shapes(skeleton)
        fit = shape_fit(skeleton) if skeleton.shapes else None
    pairs = close = None
    if given.pairs:
        from synovia.model.shapes.pairs import self_pairs
        from synovia.model.shapes.within import close_pairs

        pairs = self_pairs(skeleton)
        close = None if given.clearance is None else close_pairs(skeleton, given.clearance)
    emit_report(model_report(skeleton, clips, fit, pairs, close), as_json=given.as_json)


@click.command(cls=Command)
@click.argument("name", cls=Argument, type=typed(Word(("goals", "track", "edit"))), help="Which schema.")
def schema(name: str) -> None:
    """Print the JSON schema of goal, track or layer files."""
    from importlib.resources import files

    emit(files("synovia").joinpath("files", "schemas", f"{name}-1.json").read_text(encoding="utf-8"))


@described
class Doctor:
    """Options of ``synovia doctor``."""

    warm: bool = option(default=False, help="Compile the solvers now, so that first solves are fast.")
    as_json: bool = option(default=False, like=JSON)


@with_options(Doctor)
def doctor(given: Doctor) -> None:
    """Show versions, extras and the cache of compiled code."""
    from synovia.cli.installation import compile_all, installation_report

    emit_report(installation_report(compile_all() if given.warm else None), as_json=given.as_json)
