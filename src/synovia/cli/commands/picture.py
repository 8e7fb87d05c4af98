"""Commands that draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.completion import joints, models
from synovia.cli.options import Force

_Output = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The file to write.", show_default=False)]
_Clip = Annotated[str | None, typer.Option("--clip", metavar="NAME|N", help="Which clip.", show_default="the first")]


def render(
    clip_file: Annotated[
        str, typer.Argument(metavar="CLIP", help="The clip: a BVH, glTF/GLB or npz file.", show_default=False)
    ],
    output: _Output,
    clip: _Clip = None,
    beside: Annotated[
        str | None,
        typer.Option("--beside", metavar="CLIP", help="Another clip, shown at the left.", show_default=False),
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
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Threads.", show_default="all cores")] = None,
    force: Force = False,
) -> None:
    """Draw a clip as a film: .gif, .mp4, or .png for a sheet of stills.

    For example: synovia render solved.bvh --beside walk.bvh -o compare.gif
    """
    from synovia.cli.pictures import parse_size, render_clip

    code = render_clip(
        clip_file, output, clip=clip, beside=beside, titles=title or [], size=parse_size(size), fps=fps, view=view,
        theme=theme, jobs=jobs, force=force,
    )  # fmt: skip
    raise typer.Exit(code)


def plot(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", autocompletion=models, help="A clip, or a model for --reach.", show_default=False
        ),
    ],
    output: _Output,
    joint: Annotated[
        list[str] | None,
        typer.Option(
            "--joint",
            metavar="JOINT",
            autocompletion=joints,
            help="A joint; repeat for more.",
            show_default="the liveliest twelve",
        ),
    ] = None,
    reach: Annotated[
        str | None,
        typer.Option(
            "--reach",
            metavar="JOINT",
            autocompletion=joints,
            help="Draw where this joint can go instead.",
            show_default=False,
        ),
    ] = None,
    feet: Annotated[bool, typer.Option("--feet", help="Draw height and speed of the feet instead.")] = False,
    clip: _Clip = None,
    force: Force = False,
) -> None:
    """Draw joint values over time with their limits, the feet, or a reach map: .png, .svg or .pdf.

    For example: synovia plot walk.bvh --feet -o feet.png
    """
    from synovia.cli.pictures import plot_file

    raise typer.Exit(plot_file(file, output, joints=joint or [], reach=reach, feet=feet, clip=clip, force=force))
