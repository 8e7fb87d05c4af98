"""``synovia retarget``: carry a clip over to another body."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from synovia.cli.completion import models
from synovia.cli.inputs import Clip, ClipModel, Force, Jobs, Json, Trim, load_body, load_clip, output_option
from synovia.cli.many import (
    Address,
    EngineName,
    EngineOption,
    FailFast,
    Format,
    Options,
    RetryFailed,
    ShardOption,
    run_many,
)
from synovia.cli.output import MISSED, REACHED, emit, emit_json, talk
from synovia.cli.progress import Bar
from synovia.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from synovia.model import Skeleton
    from synovia.model.motion import Motion
    from synovia.retargeting import Retargeted

SCHEMA: Final = "synovia.retarget/1"


def retarget(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            autocompletion=models,
            help="The clip: a BVH, glTF/GLB, npz or CSV file. Or many: files, folders, patterns.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="DST", autocompletion=models, help="The model to move.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        output_option("OUT", "Write .bvh, .npz, .csv, or .glb (a copy of DST with one more clip); or a folder."),
    ] = None,
    file_format: Format = None,
    clip: Clip = None,
    model: ClipModel = None,
    trim: Trim = False,
    joint_map: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="MAP.toml",
            help="Joint map, instead of guessed parts.",
            show_default=False,
        ),
    ] = None,
    save_map: Annotated[
        Path | None,
        typer.Option("--save-map", metavar="MAP.toml", help="Write the joint map that was used.", show_default=False),
    ] = None,
    rest: Annotated[
        str | None,
        typer.Option(
            "--rest",
            metavar="POSE",
            help="Pose of SRC that means standing: file, bind, first, tpose, the number of a frame, or a pose file.",
            show_default="found from the clip",
        ),
    ] = None,
    up: Annotated[
        str | None,
        typer.Option("--up", metavar="AXIS", help="Axis of SRC that points up, such as z or -y.", show_default="found"),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="OUT",
            help="Plot the judgement: .png, .svg or .pdf. Needs synovia[plot].",
            show_default=False,
        ),
    ] = None,
    feet: Annotated[bool, typer.Option("--feet/--no-feet", help="Keep standing feet in place.")] = True,
    jobs: Jobs = None,
    engine: EngineOption = EngineName.LOCAL,
    address: Address = None,
    shard: ShardOption = None,
    retry_failed: RetryFailed = False,
    fail_fast: FailFast = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Carry a clip over to another body, character or robot, within its limits, and judge the result.

    The exit code is 1 if the verdict is "failed" or feet miss their targets, and 0 if it is "good" or "look at it".

    For example: synovia retarget walk.bvh character.glb -o walking.glb
    """
    from synovia import retargeting
    from synovia.batch.inputs import is_many
    from synovia.cli.report import warn

    options = Options(output, file_format, engine, address, shard, retry_failed, fail_fast, force, jobs, as_json)
    if is_many(sources, output):
        for option, used in {
            "--save-map": save_map,
            "--plot": plot,
            "--model": model,
            "--trim-tpose": trim or None,
        }.items():
            if used is not None:
                raise typer.BadParameter("expected a single clip with this option", param_hint=f"'{option}'")
        from synovia.batch.tasks import RetargetFile, usual_ending

        given = None if joint_map is None else retargeting.read_map(joint_map)
        run_many(
            RetargetFile(target, given, feet, clip, {"rest": rest, "up": up}),
            sources,
            options,
            "retargeting",
            usual_ending(target),
        )
    options.refuse_single()
    source = sources[0]
    from synovia.io.base import check_writable
    from synovia.io.load import is_bundled
    from synovia.io.save import check_target, save_motion

    if output is not None:
        check_target(output, force=force)
    if save_map is not None:
        check_writable(save_map, force=force)
    if plot is not None:
        from synovia.plots.style import check_plot

        check_plot(plot, force=force)
    motion, body = load_clip(source, clip, model=model, trim=trim), load_body(target)
    shown = _own_clip(target, body)
    given = None if joint_map is None else retargeting.read_map(joint_map)
    try:
        with Bar("retargeting", count=len(motion)) as bar:
            answer = retargeting.retarget(
                motion, shown or body, given, rest=rest, up=up, feet=feet, threads=jobs, progress=bar
            )
    except InputError:
        if save_map is not None:
            _save_draft(save_map, retargeting.draft_map(motion.skeleton, body, given), force=force)
        raise
    if save_map is not None:
        retargeting.write_map(answer.joint_map(), save_map, force=force)
    if output is not None:
        save_motion(answer.motion, output, into=None if is_bundled(target) else target, force=force)
    if plot is not None:
        from synovia.plots import plot_judgement

        plot_judgement(answer.judgement, plot, force=force)
    if as_json:
        emit_json(_object(answer))
    else:
        emit(answer.report())
        if output is None:
            talk("no file was written; -o OUT.bvh (.glb, .npz, .csv) saves the motion")
    warn(answer.judgement)
    raise typer.Exit(MISSED if answer.missed_frames or answer.verdict == "failed" else REACHED)


def _own_clip(target: str, body: Skeleton) -> Motion | None:
    """Return the clip in the target's file if no pose of the file is a rest pose; the clip shows it."""
    from synovia.io.load import format_of, is_bundled
    from synovia.retargeting import stands

    if is_bundled(target) or not format_of(Path(target)).holds_motions:
        return None
    try:
        return None if stands(body) else load_clip(target)
    except (InputError, UnsupportedError):  # no clip, or no body: then `retarget` tells it
        return None


def _save_draft(path: Path, joints: dict[str, tuple[str, str]], *, force: bool) -> None:
    """Write the joint map with its gaps if they are the reason of the failure."""
    from synovia.retargeting import NEEDED, write_map

    gaps = [part for part in NEEDED if not all(joints[part])]
    if gaps:
        write_map(joints, path, force=force)
        talk(f"{path}: the parts that were found. Fill in {', '.join(gaps)} and try again with --map {path}")


def _object(answer: Retargeted) -> dict[str, Any]:
    """Return the answer as plain values; lengths in the unit of the target's file, but in legs in the judgement."""
    from synovia.cli.report import judgement_object

    names, stance = answer.joint_map(), answer.stance
    return {
        "schema": SCHEMA,
        "source": answer.source.skeleton.name,
        "target": answer.target.skeleton.name,
        "frames": len(answer.motion),
        "fps": answer.motion.fps,
        "scale": answer.scale,
        "rest": {
            "pose": stance.rest.name,
            "certainty": stance.rest.certainty,
            "checks_deg": dict(stance.rest.checks),
            "considered": {pose.name: pose.certainty for pose in stance.considered},
        },
        "up": {"axis": stance.up.name, "certainty": stance.up.certainty, "given": stance.up.given},
        "facing": stance.forward,
        "sides_exchanged": stance.exchanged,
        "path_scale": stance.path_scale,
        "target_rest": {"pose": answer.target_rest.name, "certainty": answer.target_rest.certainty},
        "parts": [
            {
                "part": part.role,
                "source": names[part.role][0],
                "target": names[part.role][1],
                "rest_poses_differ_deg": math.degrees(part.angle),
            }
            for part in answer.parts
        ],
        "contacts": {role: [list(span) for span in spans] for role, spans in answer.contacts.items()},
        "missed": list(answer.missed_frames),
        "worst": answer.worst,
        **judgement_object(answer.judgement),
    }
