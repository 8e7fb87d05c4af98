"""``synovia retarget``: carry a clip over to another body."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from synovia.cli.command import Argument, Command, refuse
from synovia.cli.completion import models
from synovia.cli.inputs import (
    ClipOptions,
    clip_options,
    clips_argument,
    load_body,
    output_option,
    roles_option,
    up_option,
    velocity_option,
    with_roles,
)
from synovia.cli.many import Options, format_option, many_options, run_many
from synovia.cli.output import MISSED, REACHED, emit, emit_json, talk
from synovia.cli.progress import Bar
from synovia.cli.saving import save_clip, verify_option
from synovia.cli.values import FILE, typed
from synovia.errors import InputError
from synovia.jobs.options import NUMBER, Parsed

if TYPE_CHECKING:
    from synovia.clips import Ends
    from synovia.model import Skeleton
    from synovia.retargeting import Retargeted

SCHEMA: Final = "synovia.retarget/1"
_RESTS: Final = ("file", "bind", "first", "tpose")


def _rest(text: str) -> str:
    """Return a word, the number of a frame or the name of a file, as ``retarget`` takes them."""
    if text not in _RESTS and not NUMBER.fullmatch(text.removeprefix("-")) and not Path(text).suffix:
        raise InputError("", value=text, expected=f"{', '.join(_RESTS)}, the number of a frame, or a pose file")
    return text


def _velocity(given: float | dict[str, float] | str | None, body: Skeleton) -> float | dict[str, float] | None:
    """Return the velocity limits of ``--velocity``: one for all hinges, by joint, or a share of those of the file.

    Raises:
        InputError: If a share is asked for, and the file has no velocity limits.
    """
    if not isinstance(given, str):
        return given
    share = float(given[:-1]) / 100.0
    own = {joint.name: share * joint.velocity for joint in body.joints if joint.velocity is not None}
    if not own:
        raise InputError(
            f"{body.name} has no velocity limits", where="--velocity", value=given,
            expected="a file with velocity limits, or radians per second",
        )  # fmt: skip
    return own


@click.command(cls=Command)
@clips_argument("sources", "SRC...")
@click.argument("target", cls=Argument, metavar="DST", shell_complete=models, help="The model to move.")
@output_option("Write .bvh, .npz, .csv, or .glb (a copy of DST with one more clip); or a folder.")
@format_option()
@clip_options
@click.option("--map", "joint_map", metavar="MAP.toml", type=FILE, help="Joint map, instead of guessed parts.")
@roles_option
@click.option("--save-map", metavar="MAP.toml", type=FILE, help="Write the joint map that was used.")
@click.option(
    "--rest",
    metavar="POSE",
    type=typed(Parsed(_rest)),
    help="Pose of SRC that means standing: file, bind, first, tpose, the number of a frame, or a pose file.",
    show_default="found from the clip",
)
@up_option("Axis of SRC that points up, such as z or -y.")
@velocity_option(
    "Largest speed of DST's hinges, radians per second, for all or by joint; N%: of those in its file.",
    share_of="those of DST's file",
)
@click.option(
    "--plot", metavar="OUT", type=FILE, help="Plot the judgement: .png, .svg or .pdf. Needs the extra [plot]."
)
@click.option("--feet/--no-feet", default=True, help="Keep standing feet in place.")
@verify_option
@many_options()
def retarget(
    sources: tuple[str, ...],
    target: str,
    chosen: ClipOptions,
    joint_map: Path | None,
    save_map: Path | None,
    rest: str | None,
    up: str | None,
    velocity: float | dict[str, float] | str | None,
    plot: Path | None,
    feet: bool,
    verify: bool,
    options: Options,
) -> int:
    """Carry a clip over to another body, and judge the result.

    The body is a character or a robot, and the clip stays within its limits. The exit code is 1 if the verdict is
    "failed" or feet miss their targets, and 0 if it is "good" or "look at it".

    For example: synovia retarget walk.bvh character.glb -o walking.glb
    """
    from synovia import retargeting

    given = None if joint_map is None else retargeting.read_map(joint_map)
    if options.are_many(sources):
        from synovia.batch.tasks import RetargetFile, motion_endings, usual_ending

        refuse("expected a single clip with this option.", "save_map", "plot")
        settings = {"rest": rest, "up": up, "velocity": _velocity(velocity, load_body(target))}
        task = RetargetFile(target, given, feet, chosen.reader(), settings, verify)
        endings = motion_endings(on_model=chosen.model is not None)
        return run_many(task, sources, options, "retargeting", usual_ending(target), endings)
    from synovia.batch.tasks import target_of
    from synovia.cli.report import warn
    from synovia.io.base import check_writable
    from synovia.io.load import is_bundled
    from synovia.io.save import check_target
    from synovia.model.motion import Motion

    output, force = options.path, options.force
    if output is not None:
        check_target(output, force=force)
    if save_map is not None:
        check_writable(save_map, force=force)
    if plot is not None:
        from synovia.plots.style import check_plot

        check_plot(plot, force=force)
    motion, ends = chosen.load_with_ends(sources[0])
    body = load_body(target)
    most = _velocity(velocity, body)
    shown = target_of(target)
    shown = shown.on(with_roles(shown.skeleton)) if isinstance(shown, Motion) else body
    try:
        with Bar("retargeting", count=len(motion)) as bar:
            answer = retargeting.retarget(
                motion,
                shown,
                given,
                rest=rest,
                up=up,
                feet=feet,
                velocity=most,
                threads=options.jobs,
                progress=bar,
            )
    except InputError:
        if save_map is not None:
            _save_draft(save_map, retargeting.draft_to_save(motion.skeleton, body, given), force=force)
        raise
    if save_map is not None:
        retargeting.write_map(answer.joint_map(), save_map, force=force)
    saved = True
    if output is not None:
        into = None if is_bundled(target) else target
        saved = save_clip(answer.motion, output, into, force=force, verify=verify)
    if plot is not None:
        from synovia.plots import plot_judgement

        plot_judgement(answer.judgement, plot, force=force)
    if options.as_json:
        emit_json(_object(answer, ends, trim=chosen.trim))
        warn(answer.judgement)
    else:  # the report has the warnings
        emit("\n".join([*(f"cut off: {note}" for note in ends.notes if chosen.trim), answer.report()]))
        if output is None:
            talk("no file was written; -o OUT.bvh (.glb, .npz, .csv) saves the motion")
    return MISSED if not saved or answer.missed_frames or answer.verdict == "failed" else REACHED


def _save_draft(path: Path, joints: dict[str, tuple[str | int, str | int]], *, force: bool) -> None:
    """Write the joint map with its gaps if they are the reason of the failure."""
    from synovia.retargeting import NEEDED, write_map
    from synovia.retargeting.body import ARMS

    gaps = [part for part in NEEDED if "" in joints[part]]
    if gaps:
        write_map(joints, path, force=force)
        fill = f"Fill in {', '.join(gaps)}"
        if len(gaps) == len(NEEDED):
            fill += f", or the parts that both have, such as {' and '.join(ARMS[:2])},"
        talk(f"{path}: the parts that were found. {fill} and try again with --map {path}")


def _object(answer: Retargeted, ends: Ends, *, trim: bool) -> dict[str, Any]:
    """Return the answer as plain values; lengths in the unit of the target's file, but in legs in the judgement."""
    from synovia.cli.report import judgement_object

    names, stance = [body.skeleton.frame_names for body in (answer.source, answer.target)], answer.stance
    return {
        "schema": SCHEMA,
        "source": answer.source.skeleton.name,
        "target": answer.target.skeleton.name,
        "frames": len(answer.motion),
        "notes": list(answer.motion.notes),
        "fps": answer.motion.fps,
        "calibration": list(ends.notes),
        "calibration_cut_off": trim and bool(ends.notes),
        "scale": answer.scale,
        "rest": {
            "pose": stance.rest.name,
            "certainty": stance.rest.certainty,
            "checks_deg": dict(stance.rest.checks),
            "considered": {pose.name: pose.certainty for pose in stance.considered},
        },
        "up": {
            "axis": stance.up.name,
            "certainty": stance.up.certainty,
            "given": stance.up.given,
            "tilt_deg": stance.up.tilt,
        },
        "facing": stance.forward,
        "sides_exchanged": stance.exchanged,
        "path_scale": stance.path_scale,
        "target_rest": {"pose": answer.target_rest.name, "certainty": answer.target_rest.certainty},
        "parts": [
            {
                "part": part.role,
                "source": names[0][part.source],
                "target": names[1][part.target],
                "rest_poses_differ_deg": math.degrees(part.angle),
            }
            for part in answer.parts
        ],
        "contacts": {role: [list(span) for span in spans] for role, spans in answer.contacts.items()},
        "missed": list(answer.missed_frames),
        "worst": answer.worst,
        **judgement_object(answer.judgement),
    }
