"""``synovia render`` and ``synovia plot``: draw a clip as a film, or joint values as a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.completion import joints, models
from synovia.cli.inputs import (
    Clip,
    ClipModel,
    Force,
    Jobs,
    Look,
    Trim,
    joints_option,
    load_body,
    load_clip,
    needs_model,
    output_option,
)
from synovia.cli.many import (
    Address,
    EngineName,
    EngineOption,
    FailFast,
    JsonLines,
    Options,
    RetryFailed,
    ShardOption,
    run_many,
)
from synovia.cli.output import talk
from synovia.cli.progress import Bar
from synovia.errors import InputError

_Output = Annotated[Path, output_option("OUT", "The file to write.")]


def render(
    clip_files: Annotated[
        list[str],
        typer.Argument(
            metavar="CLIP...",
            help="The clip: a BVH, glTF/GLB, npz or CSV file. Or many: files, folders, patterns.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, output_option("OUT", "The file to write, or a folder.")],
    clip: Clip = None,
    model: ClipModel = None,
    trim: Trim = False,
    beside: Annotated[
        str | None,
        typer.Option("--beside", metavar="CLIP", help="Another clip, shown on the left.", show_default=False),
    ] = None,
    title: Annotated[
        list[str] | None,
        typer.Option(
            "--title",
            metavar="TEXT",
            help="Text at the top; repeat with --beside, the left one first.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[str, typer.Option("--size", metavar="WxH", help="Pixels.")] = "960x540",
    fps: Annotated[
        float | None,
        typer.Option("--fps", metavar="N", min=0.1, help="Frames per second.", show_default="the clip's, at most 30"),
    ] = None,
    view: Annotated[
        str,
        typer.Option(
            "--view", metavar="NAME|A,E", help="three-quarter, front, back, left, right, top, or angles in degrees."
        ),
    ] = "three-quarter",
    theme: Annotated[str, typer.Option("--theme", metavar="NAME", help="light or dark.")] = "light",
    look: Look = "surface",
    angles: Annotated[
        str | None,
        typer.Option(
            "--angles", metavar="A,B", help="Joints whose angles are written, in degrees.", show_default=False
        ),
    ] = None,
    captions: Annotated[
        bool, typer.Option("--captions/--no-captions", help="Write the time and the number of the frame.")
    ] = True,
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="gif|mp4|png", help="Format of the outputs, for folders.", show_default="gif"),
    ] = None,
    jobs: Jobs = None,
    engine: EngineOption = EngineName.LOCAL,
    address: Address = None,
    shard: ShardOption = None,
    retry_failed: RetryFailed = False,
    fail_fast: FailFast = False,
    force: Force = False,
    as_json: JsonLines = False,
) -> None:
    """Draw a clip as a film: .gif, .png for a sheet of stills, or .mp4. Needs synovia[render], .mp4 synovia[film].

    For example: synovia render solved.bvh --beside walk.bvh -o compare.gif
    """
    from synovia.batch.inputs import is_many
    from synovia.draw import render as draw_clip
    from synovia.draw.film import SUFFIXES, check_film

    pixels = _parse_size(size)
    options = Options(output, file_format, engine, address, shard, retry_failed, fail_fast, force, jobs, as_json)
    if is_many(clip_files, output):
        from synovia.batch.tasks import RenderFile

        if beside is not None:
            raise typer.BadParameter("expected a single clip with this option", param_hint="'--beside'")
        drawing = {"titles": title or [], "size": pixels, "fps": fps, "view": _parse_view(view), "theme": theme}
        run_many(RenderFile(clip, drawing), clip_files, options, "drawing", ".gif", outputs=SUFFIXES)
    options.refuse_single(prints_json=False)
    clip_file = clip_files[0]
    check_film(output, force=force)
    main = load_clip(clip_file, clip, model=model, trim=trim)
    other = None if beside is None else load_clip(beside, model=model if needs_model(beside) else None, trim=trim)
    with Bar("drawing") as bar:
        draw_clip(
            main, output, beside=other, titles=title or [], size=pixels, fps=fps, view=_parse_view(view), theme=theme,
            look=look, captions=captions, angles=[] if angles is None else [name.strip() for name in angles.split(",")],
            jobs=jobs, force=force, watch=bar,
        )  # fmt: skip
    talk(f"{output}: {main.name}")


def plot(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", autocompletion=models, help="A clip, or a model for --reach.", show_default=False
        ),
    ],
    output: _Output,
    joint: Annotated[list[str] | None, joints_option("A joint to draw", "the twelve that move most")] = None,
    feet: Annotated[bool, typer.Option("--feet", help="Draw height and speed of the feet instead.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Draw the judgement of the clip instead.")] = False,
    beside: Annotated[
        str | None,
        typer.Option(
            "--beside",
            metavar="CLIP",
            help="The clip that this one was made from, for --judge; joints are matched by their roles.",
            show_default=False,
        ),
    ] = None,
    reach: Annotated[
        str | None,
        typer.Option(
            "--reach",
            metavar="JOINT",
            autocompletion=joints,
            help="Draw the positions that this joint can reach instead.",
            show_default=False,
        ),
    ] = None,
    clip: Clip = None,
    model: ClipModel = None,
    trim: Trim = False,
    force: Force = False,
) -> None:
    """Draw joint values over time with their limits, the feet, a judgement, or a reach map: .png, .svg or .pdf.

    Needs synovia[plot]. For example: synovia plot walk.bvh --feet -o feet.png
    """
    from synovia.plots import plot_feet, plot_joints, plot_judgement, plot_reach
    from synovia.plots.style import check_plot

    if beside is not None and not judge:
        raise typer.BadParameter("expected --judge with this option", param_hint="'--beside'")

    check_plot(output, force=force)
    if reach is not None:
        plot_reach(load_body(file), reach, output, force=force)
    else:
        instead = "give a clip, or --reach JOINT for a reach map of a model"
        motion = load_clip(file, clip, model=model, trim=trim, instead=instead)
        if judge:
            from synovia.retargeting import judge as judge_clip

            plot_judgement(judge_clip(motion, None if beside is None else load_clip(beside)), output, force=force)
        elif feet:
            plot_feet(motion, output, force=force)
        else:
            plot_joints(motion, output, joint or [], force=force)
    talk(str(output))


def _parse_size(text: str) -> tuple[int, int]:
    """Return width and height of ``WIDTHxHEIGHT``."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
        raise InputError("not a size", where="--size", value=text, expected="WIDTHxHEIGHT, for example 960x540")
    return int(parts[0]), int(parts[1])


def _parse_view(text: str) -> str | tuple[float, float]:
    """Return a view by name, or azimuth and elevation of ``A,E`` in degrees."""
    if "," not in text:
        return text
    try:
        azimuth, elevation = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError("not a view", where="--view", value=text, expected="a name, or AZIMUTH,ELEVATION") from error
    return azimuth, elevation
