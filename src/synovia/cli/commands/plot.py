"""``synovia plot``: joint values, feet, a judgement or the reach of a joint as a plot."""

from __future__ import annotations

from pathlib import Path

import click

from synovia.cli.command import Argument, Command, refuse
from synovia.cli.completion import joints, models
from synovia.cli.inputs import clip_options, force_option, joint_option, load_body
from synovia.cli.output import talk
from synovia.cli.running import Terminal
from synovia.cli.values import FILE, FILE_NAME
from synovia.jobs.clips import ClipReader


@click.command(cls=Command)
@click.argument("file", cls=Argument, shell_complete=models, help="A clip, or a model for --reach.")
@click.option("--output", "-o", metavar="OUT", type=FILE, help="The file to write.", required=True)
@joint_option("A joint to draw", "the twelve that move most")
@click.option("--feet", is_flag=True, help="Draw height and speed of the feet instead.")
@click.option("--judge", is_flag=True, help="Draw the judgement of the clip instead.")
@click.option(
    "--beside",
    metavar="CLIP",
    type=FILE_NAME,
    help="The clip that this one was made from, for --judge; joints are matched by their roles.",
)
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
    chosen: ClipReader,
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
        motion, source = (
            (chosen.read(file, Terminal(), instead)[0], None)
            if beside is None
            else chosen.read_pair(file, beside, Terminal())
        )
        if judge:
            from synovia.retargeting import judge as judge_clip

            plot_judgement(judge_clip(motion, source), output, force=force)
        elif feet:
            plot_feet(motion, output, force=force)
        else:
            plot_joints(motion, output, joint, force=force)
    talk(str(output))
