"""``synovia animate``: make a clip that follows targets or points, or hold the feet of a clip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from synovia.cli.command import Command, refuse, wrong
from synovia.cli.inputs import (
    ClipOptions,
    clip_options,
    clips_argument,
    deadline_option,
    load_body,
    needs_model,
    one_solver,
    output_option,
    roles_option,
    root_option,
    up_option,
    velocity_option,
)
from synovia.cli.many import Options, format_option, many_options, run_many
from synovia.cli.output import MISSED, REACHED, emit, emit_json, printable, talk
from synovia.cli.progress import Bar
from synovia.cli.saving import save_clip, tell_notes, verify_option
from synovia.cli.values import FILE, FILE_NAME, typed
from synovia.errors import InputError
from synovia.jobs.options import Number, Parsed, Word, names_of

AUTO: Final = "auto"  # a body made to measure

if TYPE_CHECKING:
    from synovia.clips import Fitted
    from synovia.clips.pointfile import PointFile
    from synovia.model import Skeleton
    from synovia.model.motion import Motion


def _pairs(text: str) -> dict[str, str]:
    """Return the joint of the other clip for each joint in ``A,B=C``."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        own, _, other = part.partition("=")
        if not own.strip() or own.strip() in pairs:
            raise InputError("", value=text, expected="A,B=C", hint="name each joint once")
        pairs[own.strip()] = other.strip() or own.strip()
    return pairs


@click.command(cls=Command)
@clips_argument(
    "files",
    "[FILE...]",
    "A model, or a clip for --foot-lock alone, or many clips: files, folders, patterns. Not needed with --points.",
    required=False,
)
@click.option(
    "--goals",
    "-g",
    metavar="TRACK",
    type=FILE,
    help="Keyframes, TOML or JSON; 'synovia schema track' prints the schema. Or a folder or pattern of them.",
)
@click.option(
    "--follow",
    metavar="CLIP",
    type=FILE_NAME,
    help="Follow joints of another clip, or of each in a folder or pattern.",
)
@click.option(
    "--points",
    metavar="POINTS",
    type=FILE,
    help="Pass through points over time: .csv, .tsv, .npz, .npy, .trc, .c3d, or the joints of a clip.",
)
@click.option(
    "--body",
    metavar="auto|FILE",
    help="The body for --points; auto: a person made to measure.",
    show_default="FILE, else auto",
)
@click.option(
    "--preset",
    metavar="NAME",
    type=typed(Word(("mediapipe", "coco", "openpose", "h36m", "smpl"))),
    help="Order of the points: mediapipe, coco, openpose, h36m or smpl.",
    show_default="by names or number",
)
@click.option(
    "--mirror",
    type=typed(Word(("x", "y", "z", "names", "none"))),
    help="Undo a mirror image of the points: negate an axis, or exchange left and right.",
    show_default="where the cause is clear",
)
@click.option(
    "--fps",
    metavar="RATE",
    type=typed(Number(1e-3)),
    help="Frames per second of points.",
    show_default="the file's, else 30",
)
@click.option(
    "--joints",
    metavar="A,B=C",
    type=typed(Parsed(_pairs)),
    help="Joints that follow; B=C: B follows C of the clip or the points.",
    show_default="all tips; all points",
)
@roles_option
@clip_options
@one_solver
@root_option(None, "fixed with --goals, else free")
@click.option(
    "--candidates",
    metavar="N",
    type=typed(Number(1, whole=True)),
    default=1,
    help="Start poses to try; the best clip is taken.",
)
@click.option("--both-ways", is_flag=True, help="Track from the end as well.")
@click.option(
    "--smooth", metavar="SECONDS", type=typed(Number(0)), default=0.0, help="Remove motion that is quicker than this."
)
@velocity_option("Largest speed of a joint, radians or length units per second; a frame that comes too late is a miss.")
@click.option("--foot-lock", is_flag=True, help="Keep standing feet in place and above the floor.")
@click.option(
    "--feet", metavar="LEFT,RIGHT", type=typed(Parsed(names_of)), help="The ankles.", show_default="by role or name"
)
@up_option("Axis that points up, of the clip or of points.")
@click.option(
    "--blend",
    metavar="SECONDS",
    type=typed(Number(0)),
    default=0.06,
    help="Fade-in and fade-out of a foot's correction.",
)
@deadline_option
@output_option("Write the clip: .bvh, .npz, .csv, or .glb (a copy of FILE); or a folder.")
@format_option()
@verify_option
@many_options()
def animate(
    files: tuple[str, ...],
    goals: Path | None,
    follow: str | None,
    points: Path | None,
    body: str | None,
    preset: str | None,
    mirror: str | None,
    fps: float | None,
    joints: dict[str, str] | None,
    chosen: ClipOptions,
    solver: str | None,
    root: str | None,
    candidates: int,
    both_ways: bool,
    smooth: float,
    velocity: float | dict[str, float] | None,
    foot_lock: bool,
    feet: list[str] | None,
    up: str | None,
    blend: float,
    deadline: float | None,
    verify: bool,
    options: Options,
) -> int:
    """Make a clip that follows targets, or hold the feet of one.

    For example: synovia animate walk.bvh --foot-lock -o still_feet.bvh
    """
    _check_sources([goals, follow, points], foot_lock=foot_lock)
    if points is None:
        refuse("expected --points with this option.", "body", "preset", "mirror", "fps")
        if follow is None:
            refuse("expected --follow or --points with this option.", "joints")
    if not foot_lock:
        refuse("expected --foot-lock with this option.", "feet", "blend")
    elif points is None and up is not None and up.startswith("-"):
        raise wrong("--up", f"expected x, y or z with --foot-lock, got {up!r}.")
    if goals is None and follow is None:
        tracking = ("solver", "root", "velocity", "both_ways", "candidates", "smooth", "deadline")
        refuse("expected --goals or --follow with this option.", *tracking)
    from synovia.solver import as_solver

    own, moves = _model_of(files, body, points), root or ("fixed" if goals is not None else "free")
    given = [str(source) for source in (goals, follow, points) if source is not None]
    if options.are_many(given or files):
        from synovia.batch.tasks import FitPoints, LockFeet, motion_endings, usual_ending
        from synovia.clips.pointfile import POINT_ENDINGS

        reader = chosen.reader()
        lock = LockFeet(reader, feet, up, blend, verify) if foot_lock else None
        if goals is not None or follow is not None:
            from synovia.batch.following import FollowTargets

            refuse("expected a single clip with this option.", "deadline")
            tracks = {"candidates": candidates, "both_ways": both_ways, "smoothness": smooth, "velocity": velocity}
            task = FollowTargets(
                own, goals is not None, joints, reader, as_solver(solver), moves, lock, tracks, verify,
            )  # fmt: skip
            return run_many(task, given, options, "following", usual_ending(own), list(task.endings()))
        if points is None:
            endings = motion_endings(on_model=chosen.model is not None)
            return run_many(lock or LockFeet(reader), files, options, "holding feet", inputs=endings)
        settings = {"preset": preset, "mirror": mirror, "up": up, "fps": fps}
        fit = FitPoints(None if own == AUTO else own, joints, lock, settings, verify)
        return run_many(fit, [str(points)], options, "fitting", ".bvh", POINT_ENDINGS)
    if len(files) > 1:
        raise wrong("FILE", f"expected one file, got {len(files)}.")
    from synovia.io.load import is_bundled
    from synovia.io.save import check_target
    from synovia.jobs.reports import clip_object, clip_text, judgement_object, warnings_of
    from synovia.model.motion import Motion
    from synovia.retargeting import judge

    output, force, jobs = options.path, options.force, options.jobs
    if output is not None:
        check_target(output, force=force)
    tracked = fitted = locked = None
    if goals is not None or follow is not None:
        from synovia.batch.following import followed, keyframes
        from synovia.facade import IK

        skeleton = load_body(own)
        wanted, targets, fps, frames, start = (
            keyframes(goals)
            if goals is not None
            else followed(_other(follow or "", own, chosen), joints, skeleton, moves)
        )
        ik = IK(skeleton, wanted, as_solver(solver), root=moves)
        with Bar("following", count=frames) as bar:
            tracked = ik.track(
                targets, start, fps=fps, candidates=candidates, both_ways=both_ways, smoothness=smooth,
                velocity=velocity, threads=jobs, progress=bar, deadline=deadline,
            )  # fmt: skip
        made = tracked.motion
        motion = Motion(made.skeleton, made.q, made.fps, name=Path(goals or follow or "").stem)
    elif points is not None:
        settings = {"preset": preset, "mirror": mirror, "up": up, "fps": fps, "threads": jobs}
        motion = fitted = _fit(None if own == AUTO else load_body(own), points, chosen, joints, settings)
        up = None
    else:
        instead = "--foot-lock alone needs a clip; a model needs --goals, --follow or --points"
        motion = chosen.load(own, instead)
    if foot_lock:
        from synovia import clips

        with Bar("holding feet", count=len(motion)) as bar:
            locked = clips.foot_lock(motion, feet=feet, up=up, blend=blend, threads=jobs, progress=bar)
        motion = locked.motion
    saved = True
    if output is not None:
        copied = own if chosen.model is None or not locked or tracked or fitted else chosen.model
        into = None if copied == AUTO or is_bundled(copied) else copied
        saved = save_clip(motion, output, into, force=force, verify=verify)
    judgement = judge(
        motion,
        up=up,
        flips=None if fitted is None else fitted.flips,
        errors=None if fitted is None else fitted.errors,
        missed=() if tracked is None else tracked.missed_frames,
    )
    if options.as_json:
        emit_json({**clip_object(motion, tracked, fitted, locked), "judgement": judgement_object(judgement)})
    else:
        emit("\n".join([*clip_text(motion, tracked, fitted, locked), judgement.summary()]))
        if output is None:
            talk("no file was written; -o OUT.bvh (.glb, .npz, .csv) saves the motion")
    for warning in warnings_of(judgement):
        talk(f"synovia: {printable(warning)}")
    missed = tracked is not None and tracked.missed_frames
    flipped = fitted is not None and fitted.flips and judgement.verdict == "failed"
    return MISSED if missed or flipped or not saved else REACHED


def _check_sources(sources: list[Path | str | None], *, foot_lock: bool) -> None:
    """Check that there is one source of motion, or none for ``--foot-lock`` alone.

    Raises:
        click.BadParameter: If there are more or fewer sources.
    """
    given = sum(source is not None for source in sources)
    if given > 1:
        raise click.UsageError("expected one of --goals, --follow and --points, got several.")
    if not given and not foot_lock:
        raise click.UsageError(
            "expected targets (--goals), another clip (--follow) or points (--points) for a model, or a clip whose feet"
            " to hold (--foot-lock), got none of them."
        )


def _other(path: str, file: str, chosen: ClipOptions) -> Motion:
    """Return the clip to follow; one that does not hold its skeleton is one of the model that follows it."""
    return chosen._replace(model=chosen.model or (file if needs_model(path) else None)).load(path)


def _model_of(files: tuple[str, ...], body: str | None, points: Path | None) -> str:
    """Return the first file, that of the model, or ``AUTO`` for a body made to measure.

    Raises:
        click.BadParameter: If there is none, or two.
    """
    if body is not None and files:
        raise wrong("--body", f"expected one body, got {files[0]!r} and {body!r}.")
    if not files and points is None:
        raise wrong("FILE", "expected a model, or --points for a body made to measure.")
    return files[0] if files else body or AUTO


def _fit(
    skeleton: Skeleton | None, path: Path, chosen: ClipOptions, pairs: dict[str, str] | None, settings: dict[str, Any]
) -> Fitted:
    """Return a clip fitted to points over time; None stands for a body made to measure."""
    from synovia.clips import Fitted, fit_keypoints
    from synovia.clips.pointfile import holds_points, read_points

    if holds_points(path):
        points = read_points(path).chosen(pairs, path)
        tell_notes(points.notes)
    else:
        points = _joints_of_clip(skeleton, path, chosen, pairs)
    settings["fps"] = settings["fps"] or points.fps or 30.0
    with Bar("fitting", count=len(points.positions)) as bar:
        fitted = fit_keypoints(
            points.positions, points.joints, body=skeleton, offsets=points.offsets, confidence=points.confidence,
            meters_per_unit=points.meters_per_unit, name=path.stem, progress=bar,
            **settings,
        )  # fmt: skip
    return Fitted.made(fitted, fitted.errors, fitted.smoothness, points.notes, fitted.flips)


def _joints_of_clip(
    skeleton: Skeleton | None, path: Path, chosen: ClipOptions, pairs: dict[str, str] | None
) -> PointFile:
    """Return the joints of a clip as points, with the names of the model, or of landmarks without a model.

    Raises:
        InputError: If the model and the clip have no joint in common.
    """
    import numpy as np

    from synovia.clips.landmarks import OF_ROLES
    from synovia.clips.pointfile import PointFile
    from synovia.ik.targets import targets_from

    source = chosen.load(str(path))
    if skeleton is None and pairs is None:
        names, rows = source.skeleton.frame_names, source.skeleton.role_rows
        pairs = {mark: names[rows[role]] for role, mark in OF_ROLES.items() if role in rows}
    elif skeleton is not None and pairs is None:
        there = dict(zip(source.skeleton.joint_names, source.skeleton.frame_names, strict=True))
        own = zip(skeleton.joint_names, skeleton.frame_names, strict=True)
        pairs = {frame: there[name] for name, frame in own if name in there}
    if not pairs:
        raise InputError(
            "no joint of the clip has a name of the model", where=str(path), hint="pair them: --joints A=B,..."
        )
    places = targets_from(source, pairs)
    return PointFile(np.stack(list(places.values()), axis=1), list(places), fps=source.fps)
