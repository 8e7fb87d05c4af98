"""``synovia plot``: joint values, feet, distances, a judgement or the reach of a joint as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from synovia.cli.command import refuse
from synovia.cli.declare import with_options
from synovia.cli.output import talk
from synovia.cli.running import Terminal
from synovia.jobs.clearance import CLEARANCE, Clear
from synovia.jobs.clips import ClipReader, body_of
from synovia.jobs.options import File, argument, described, option
from synovia.jobs.shared import FORCE, JOINT, OUTPUT, WORLD


@described
class Plot(Clear, ClipReader):
    """Options of ``synovia plot``."""

    file: str = argument(help="A clip, or a model for --reach.", completes="models")
    output: Path = option(like=OUTPUT, required=True)
    joint: Sequence[str] = option(
        default=(), like=replace(JOINT, help="A joint to draw; repeat for more."), shown="the twelve that move most",
        rank=-1,
    )  # fmt: skip
    feet: bool = option(default=False, help="Draw height and speed of the feet instead.", rank=-1)
    judge: bool = option(default=False, help="Draw the judgement of the clip instead.", rank=-1)
    source: str | None = option(
        default=None, help="The clip that this one was made from, for --judge; joints are matched by their roles.",
        kind=File(as_text=True), metavar="CLIP", rank=-1,
    )  # fmt: skip
    reach: str | None = option(
        default=None, help="Draw the positions that this joint can reach instead.", metavar="JOINT",
        completes="joints", rank=-1,
    )  # fmt: skip
    clearance: float | None = option(
        default=None,
        like=replace(
            CLEARANCE,
            help="Draw how near links come to each other and to --world instead; below this distance, they are red.",
            shown="",
        ),
        rank=-1,
    )
    world: str | None = option(default=..., like=WORLD, rank=-1)
    force: bool = option(default=False, like=FORCE)


@with_options(Plot)
def plot(given: Plot) -> None:
    """Plot joint values, the feet, distances, a judgement or a reach map.

    Joint values are drawn over time with their limits. The file is a .png, .svg or .pdf. The command needs the extra
    [plot].

    For example: synovia plot walk.bvh --feet -o feet.png
    """
    from synovia.plots import plot_clearance, plot_feet, plot_joints, plot_judgement, plot_reach
    from synovia.plots.style import check_plot

    output, force = given.output, given.force
    clear = given.clearance is not None
    if given.feet + given.judge + clear + (given.reach is not None) > 1:
        raise click.UsageError("expected one of --feet, --judge, --clearance and --reach, got several.")
    if not given.judge:
        refuse("expected --judge with this option.", "source")
    if not clear:
        refuse("expected --clearance with this option.", "world", "shapes")
    if given.feet or given.judge or clear or given.reach is not None:
        refuse("expected no --feet, --judge, --clearance or --reach with this option.", "joint")
    if given.reach is not None:
        refuse("expected no --reach with this option.", "clip", "model", "trim")
    check_plot(output, force=force)
    if given.reach is not None:
        plot_reach(body_of(given.file, Terminal(), loops=given.loops), given.reach, output, force=force)
    else:
        source = None
        if given.source is None:
            instead = "give a clip, or --reach JOINT for a reach map of a model"
            motion, _ = given.read(given.file, Terminal(), instead)
        else:
            motion, source = given.read_pair(given.file, given.source, Terminal())
        if given.judge:
            from synovia.retargeting import judge

            plot_judgement(judge(motion, source), output, force=force)
        elif given.clearance is not None:
            motion = motion.on(given.covered(motion.skeleton, Terminal()))
            plot_clearance(motion, output, given.clearance, world=given.obstacles, force=force)
        elif given.feet:
            plot_feet(motion, output, force=force)
        else:
            plot_joints(motion, output, given.joint, force=force)
    talk(str(output))
