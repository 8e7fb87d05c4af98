"""``synovia retarget``: carry a clip over to another body."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from synovia.cli.completion import models
from synovia.cli.inputs import Clip, Force, Jobs, Json, load_body, load_clip, output_option
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
from synovia.errors import InputError

if TYPE_CHECKING:
    from synovia.retargeting import Retargeted

SCHEMA: Final = "synovia.retarget/1"


def retarget(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            autocompletion=models,
            help="The clip: a BVH, glTF/GLB or npz file. Or many: files, folders, patterns.",
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
    """Carry a clip over to another body, character or robot, within its limits.

    For example: synovia retarget walk.bvh character.glb -o walking.glb
    """
    from synovia import retargeting
    from synovia.batch.inputs import is_many

    options = Options(output, file_format, engine, address, shard, retry_failed, fail_fast, force, jobs, as_json)
    if is_many(sources, output):
        if save_map is not None:
            raise typer.BadParameter("expected a single clip with this option", param_hint="'--save-map'")
        from synovia.batch.tasks import RetargetFile, usual_ending

        given = None if joint_map is None else retargeting.read_map(joint_map)
        run_many(RetargetFile(target, given, feet, clip), sources, options, "retargeting", usual_ending(target))
    options.refuse_single()
    source = sources[0]
    from synovia.io.base import check_writable
    from synovia.io.load import is_bundled
    from synovia.io.save import check_target, save_motion

    if output is not None:
        check_target(output, force=force)
    if save_map is not None:
        check_writable(save_map, force=force)
    motion, body = load_clip(source, clip), load_body(target)
    given = None if joint_map is None else retargeting.read_map(joint_map)
    try:
        with Bar("retargeting", count=len(motion)) as bar:
            answer = retargeting.retarget(motion, body, given, feet=feet, threads=jobs, progress=bar)
    except InputError:
        if save_map is not None:
            _save_draft(save_map, retargeting.draft_map(motion.skeleton, body, given), force=force)
        raise
    if save_map is not None:
        retargeting.write_map(answer.joint_map(), save_map, force=force)
    if output is not None:
        save_motion(answer.motion, output, into=None if is_bundled(target) else target, force=force)
    if as_json:
        emit_json(_object(answer))
    else:
        emit(answer.report())
        if output is None:
            talk("no file was written; -o OUT.bvh (.glb, .npz, .csv) saves the motion")
    raise typer.Exit(MISSED if answer.missed_frames else REACHED)


def _save_draft(path: Path, joints: dict[str, tuple[str, str]], *, force: bool) -> None:
    """Write the joint map with its gaps if they are the reason of the failure."""
    from synovia.retargeting import NEEDED, write_map

    gaps = [part for part in NEEDED if not all(joints[part])]
    if gaps:
        write_map(joints, path, force=force)
        talk(f"{path}: the parts that were found. Fill in {', '.join(gaps)} and try again with --map {path}")


def _object(answer: Retargeted) -> dict[str, Any]:
    """Return the answer as plain values; lengths in the unit of the target's file."""
    names = answer.joint_map()
    return {
        "schema": SCHEMA,
        "source": answer.source.skeleton.name,
        "target": answer.target.skeleton.name,
        "frames": len(answer.motion),
        "fps": answer.motion.fps,
        "scale": answer.scale,
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
    }
