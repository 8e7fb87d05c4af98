"""``synovia render`` and ``synovia plot``: draw a clip as a film, or joint values as a plot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from synovia.cli.command import Argument, Command, Decorator, refuse
from synovia.cli.completion import joints, models
from synovia.cli.inputs import (
    ClipOptions,
    clip_options,
    clips_argument,
    force_option,
    joint_option,
    load_body,
    look_option,
    output_option,
)
from synovia.cli.many import Options, format_option, json_lines, many_options, run_many
from synovia.cli.output import REACHED, talk, warnings_told
from synovia.cli.progress import Bar
from synovia.cli.values import FILE, FILE_NAME, typed
from synovia.errors import InputError
from synovia.jobs.options import Number, Parsed, Word, names_of, numbers_of

_VIEWS: Final = ("three-quarter", "front", "back", "left", "right", "top")


def _size(text: str) -> tuple[int, int]:
    """Return width and height of ``WIDTHxHEIGHT``."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})x([1-9][0-9]{0,8})", text.lower())
    if found is None:
        raise InputError("", value=text, expected="WIDTHxHEIGHT, for example 960x540")
    return int(found[1]), int(found[2])


def _view(text: str) -> str | tuple[float, float]:
    """Return a view by name, or azimuth and elevation of ``A,E`` in degrees."""
    if text in _VIEWS:
        return text
    with suppress(InputError):
        azimuth, elevation = numbers_of(text, 2, 2)
        if -90.0 <= elevation <= 90.0:
            return azimuth, elevation
    raise InputError(
        "",
        value=text,
        expected=f"one of {', '.join(_VIEWS)}, or AZIMUTH,ELEVATION in degrees, ELEVATION from -90 to 90",
    )


def _film_endings() -> Sequence[str]:
    """Return the endings of films."""
    from synovia.draw.film import SUFFIXES

    return SUFFIXES


def _beside_option(text: str) -> Decorator:
    """Return the option ``--beside`` with a help text."""
    return click.option("--beside", metavar="CLIP", type=FILE_NAME, help=text)


@click.command(cls=Command)
@clips_argument("clips", "CLIP...")
@output_option("The file to write, or a folder.", required=True)
@clip_options
@_beside_option("Another clip, shown on the left.")
@click.option(
    "--title", metavar="TEXT", multiple=True, help="Text at the top; repeat with --beside, the left one first."
)
@click.option("--size", metavar="WxH", type=typed(Parsed(_size)), default="960x540", help="Pixels.")
@click.option(
    "--fps", metavar="N", type=typed(Number(0.1)), help="Frames per second.", show_default="the clip's, at most 30"
)
@click.option(
    "--view",
    metavar="NAME|A,E",
    type=typed(Parsed(_view)),
    default="three-quarter",
    help=f"{', '.join(_VIEWS)}, or angles in degrees.",
)
@click.option("--theme", type=typed(Word(("light", "dark"))), default="light", help="Colours.")
@look_option
@click.option(
    "--angles", metavar="A,B", type=typed(Parsed(names_of)), help="Joints whose angles are written, in degrees."
)
@click.option("--captions/--no-captions", default=True, help="Write the time and the number of the frame.")
@format_option("gif|mp4|png", _film_endings, "gif")
@many_options(json_lines)
def render(
    clips: tuple[str, ...],
    chosen: ClipOptions,
    beside: str | None,
    title: tuple[str, ...],
    size: tuple[int, int],
    fps: float | None,
    view: str | tuple[float, float],
    theme: str,
    look: str,
    angles: list[str] | None,
    captions: bool,
    options: Options,
) -> int:
    """Draw a clip as a film, or as a sheet of stills.

    The file is a .gif, a .png for stills, or an .mp4. The command needs the extra [render], and for .mp4 [film].

    For example: synovia render solved.bvh --beside walk.bvh -o compare.gif
    """
    from synovia.draw import render as draw_clip
    from synovia.draw.film import check_film

    if options.are_many(clips, prints_json=False):
        from synovia.batch.tasks import RenderFile, motion_endings

        refuse("expected a single clip with this option.", "beside")
        drawing = {
            "titles": list(title), "size": size, "fps": fps, "view": view, "theme": theme, "look": look,
            "captions": captions, "angles": angles or [],
        }  # fmt: skip
        endings = motion_endings(on_model=chosen.model is not None)
        return run_many(RenderFile(chosen.reader(), drawing), clips, options, "drawing", ".gif", endings)
    output = Path(options.output or "")
    check_film(output, force=options.force)
    main, other = (chosen.load(clips[0]), None) if beside is None else chosen.load_pair(clips[0], beside)
    with warnings_told(), Bar("drawing") as bar:
        draw_clip(
            main, output, beside=other, titles=list(title), size=size, fps=fps, view=view, theme=theme, look=look,
            captions=captions, angles=angles or [], jobs=options.jobs, force=options.force, watch=bar,
        )  # fmt: skip
    talk(f"{output}: {main.name}")
    return REACHED


@click.command(cls=Command)
@click.argument("file", cls=Argument, shell_complete=models, help="A clip, or a model for --reach.")
@click.option("--output", "-o", metavar="OUT", type=FILE, help="The file to write.", required=True)
@joint_option("A joint to draw", "the twelve that move most")
@click.option("--feet", is_flag=True, help="Draw height and speed of the feet instead.")
@click.option("--judge", is_flag=True, help="Draw the judgement of the clip instead.")
@_beside_option("The clip that this one was made from, for --judge; joints are matched by their roles.")
@click.option(
    "--reach", metavar="JOINT", shell_complete=joints, help="Draw the positions that this joint can reach instead."
)
@clip_options
@force_option
def plot(
    file: str,
    output: Path,
    joint: tuple[str, ...],
    feet: bool,
    judge: bool,
    beside: str | None,
    reach: str | None,
    chosen: ClipOptions,
    force: bool,
) -> None:
    """Plot joint values, the feet, a judgement or a reach map.

    Joint values are drawn over time with their limits. The file is a .png, .svg or .pdf. The command needs the extra
    [plot].

    For example: synovia plot walk.bvh --feet -o feet.png
    """
    from synovia.plots import plot_feet, plot_joints, plot_judgement, plot_reach
    from synovia.plots.style import check_plot

    if feet + judge + (reach is not None) > 1:
        raise click.UsageError("expected one of --feet, --judge and --reach, got several.")
    if not judge:
        refuse("expected --judge with this option.", "beside")
    if feet or judge or reach is not None:
        refuse("expected no --feet, --judge or --reach with this option.", "joint")
    if reach is not None:
        refuse("expected no --reach with this option.", "clip", "model", "trim")
    check_plot(output, force=force)
    if reach is not None:
        plot_reach(load_body(file), reach, output, force=force)
    else:
        instead = "give a clip, or --reach JOINT for a reach map of a model"
        motion, source = (chosen.load(file, instead), None) if beside is None else chosen.load_pair(file, beside)
        if judge:
            from synovia.retargeting import judge as judge_clip

            plot_judgement(judge_clip(motion, source), output, force=force)
        elif feet:
            plot_feet(motion, output, force=force)
        else:
            plot_joints(motion, output, joint, force=force)
    talk(str(output))
