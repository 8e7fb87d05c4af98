"""The command ``animate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.completion import models, solvers
from synovia.cli.options import Deadline, Force, Json, RootOfClip


def animate(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", autocompletion=models, help="A model, or a clip for --foot-lock alone.", show_default=False
        ),
    ],
    goals: Annotated[
        Path | None,
        typer.Option(
            "--goals",
            "-g",
            metavar="TRACK",
            help="Keyframes, TOML or JSON; 'synovia schema track' says how.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        str | None, typer.Option("--follow", metavar="CLIP", help="Follow joints of another clip.", show_default=False)
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            "--points",
            metavar="POINTS",
            help="Pass through points over time: .csv, .npz, .npy, or the joints of a clip.",
            show_default=False,
        ),
    ] = None,
    joints: Annotated[
        str | None,
        typer.Option(
            "--joints",
            metavar="A,B=C",
            help="Joints that follow; B=C: B follows C of the clip or the points.",
            show_default="all tips; all points",
        ),
    ] = None,
    clip: Annotated[
        str | None, typer.Option("--clip", metavar="NAME|N", help="Which clip of a file.", show_default="the first")
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option("--solver", metavar="NAME", autocompletion=solvers, help="Algorithm.", show_default="lm"),
    ] = None,
    root: RootOfClip = None,
    starts: Annotated[int, typer.Option("--starts", min=1, help="Poses to begin from; the best clip is taken.")] = 1,
    both_ways: Annotated[bool, typer.Option("--both-ways", help="Track from the end as well.")] = False,
    smooth: Annotated[
        float, typer.Option("--smooth", min=0.0, metavar="SECONDS", help="Take out motion quicker than this.")
    ] = 0.0,
    velocity: Annotated[
        str | None,
        typer.Option(
            "--velocity",
            metavar="V|A=V,B=V",
            help="No joint is faster, in radians or length units per second; late frames are misses.",
            show_default=False,
        ),
    ] = None,
    foot_lock: Annotated[
        bool, typer.Option("--foot-lock", help="Keep standing feet where they stand, and above the floor.")
    ] = False,
    feet: Annotated[
        str | None, typer.Option("--feet", metavar="LEFT,RIGHT", help="The ankles.", show_default="by role or name")
    ] = None,
    up: Annotated[
        str | None, typer.Option("--up", metavar="x|y|z", help="Axis that points up.", show_default="as the clip shows")
    ] = None,
    blend: Annotated[
        float, typer.Option("--blend", metavar="SECONDS", help="How long a foot's change takes to come or go.")
    ] = 0.06,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Threads; the same bits.", show_default="all cores")
    ] = None,
    deadline: Deadline = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write the clip: .bvh, .npz, .csv, or .glb (a copy of FILE).",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make a clip that follows targets over time, or hold the feet of one.

    For example: synovia animate walk.bvh --foot-lock -o still_feet.bvh
    """
    from synovia.cli.animate import Request, animate_request

    request = Request(
        file=file, goals=goals, follow=follow, points=points, joints=joints, clip=clip, solver=solver,
        root=root or ("free" if goals is None else "fixed"),
        starts=starts, both_ways=both_ways, smooth=smooth, velocity=velocity, foot_lock=foot_lock, feet=feet, up=up,
        blend=blend, jobs=jobs, deadline=deadline, output=output, force=force, as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(animate_request(request))
