"""``synovia animate``: make a clip that follows targets or points, or hold the feet of a clip."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from synovia.cli.completion import models
from synovia.cli.inputs import (
    Clip,
    ClipModel,
    Deadline,
    Force,
    Jobs,
    Json,
    Solver,
    Trim,
    load_body,
    load_clip,
    needs_model,
    output_option,
    root_option,
)
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

AUTO: Final = "auto"  # a body made to measure

if TYPE_CHECKING:
    from synovia.clips import Fitted
    from synovia.clips.pointfile import PointFile
    from synovia.goals import Goal
    from synovia.model import Pose, Skeleton
    from synovia.model.motion import Motion


def animate(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            autocompletion=models,
            help="A model, or a clip for --foot-lock alone, or many clips: files, folders, patterns. Not needed with"
            " --points.",
            show_default=False,
        ),
    ] = None,
    goals: Annotated[
        Path | None,
        typer.Option(
            "--goals",
            "-g",
            metavar="TRACK",
            help="Keyframes, TOML or JSON; 'synovia schema track' prints the schema.",
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
            help="Pass through points over time: .csv, .npz, .npy, .trc, .c3d, or the joints of a clip.",
            show_default=False,
        ),
    ] = None,
    body: Annotated[
        str | None,
        typer.Option(
            "--body",
            metavar="auto|FILE",
            help="The body for --points; auto: a person made to measure.",
            show_default="FILE, else auto",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Order of the points: mediapipe, coco, openpose, h36m or smpl.",
            show_default="by names or number",
        ),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--mirror",
            metavar="x|y|z|names|none",
            help="Undo a mirror image of the points: negate an axis, or exchange left and right.",
            show_default="where the cause is clear",
        ),
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(
            "--fps", min=1e-3, metavar="RATE", help="Frames per second of points.", show_default="the file's, else 30"
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
    clip: Clip = None,
    model: ClipModel = None,
    trim: Trim = False,
    solver: Solver = None,
    root: Annotated[str | None, root_option("fixed with --goals, else free")] = None,
    candidates: Annotated[
        int, typer.Option("--candidates", metavar="N", min=1, help="Start poses to try; the best clip is taken.")
    ] = 1,
    both_ways: Annotated[bool, typer.Option("--both-ways", help="Track from the end as well.")] = False,
    smooth: Annotated[
        float, typer.Option("--smooth", min=0.0, metavar="SECONDS", help="Remove motion that is quicker than this.")
    ] = 0.0,
    velocity: Annotated[
        str | None,
        typer.Option(
            "--velocity",
            metavar="V|A=V,B=V",
            help="Largest speed of a joint, radians or length units per second; a frame that comes too late is a miss.",
            show_default=False,
        ),
    ] = None,
    foot_lock: Annotated[
        bool, typer.Option("--foot-lock", help="Keep standing feet in place and above the floor.")
    ] = False,
    feet: Annotated[
        str | None, typer.Option("--feet", metavar="LEFT,RIGHT", help="The ankles.", show_default="by role or name")
    ] = None,
    up: Annotated[
        str | None,
        typer.Option(
            "--up", metavar="x|y|z|-y", help="Axis that points up, of the clip or of points.", show_default="found"
        ),
    ] = None,
    blend: Annotated[
        float,
        typer.Option("--blend", metavar="SECONDS", help="Fade-in and fade-out of a foot's correction."),
    ] = 0.06,
    jobs: Jobs = None,
    deadline: Deadline = None,
    output: Annotated[
        Path | None, output_option("OUT", "Write the clip: .bvh, .npz, .csv, or .glb (a copy of FILE); or a folder.")
    ] = None,
    file_format: Format = None,
    engine: EngineOption = EngineName.LOCAL,
    address: Address = None,
    shard: ShardOption = None,
    retry_failed: RetryFailed = False,
    fail_fast: FailFast = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make a clip that follows targets over time, or hold the feet of one.

    For example: synovia animate walk.bvh --foot-lock -o still_feet.bvh
    """
    from synovia.batch.inputs import is_many

    _check_sources([goals, follow, points], foot_lock=foot_lock)
    if points is None:
        for option, given in {"--preset": preset, "--mirror": mirror, "--fps": fps}.items():
            if given is not None:
                raise typer.BadParameter("expected --points with this option", param_hint=f"'{option}'")
    if goals is None and follow is None:
        tracking = {
            "--solver": solver, "--velocity": velocity, "--both-ways": both_ways, "--candidates": candidates > 1,
            "--smooth": smooth > 0.0, "--deadline": deadline is not None,
        }  # fmt: skip
        for option, given in tracking.items():
            if given:
                raise typer.BadParameter("expected --goals or --follow with this option", param_hint=f"'{option}'")
    options = Options(output, file_format, engine, address, shard, retry_failed, fail_fast, force, jobs, as_json)
    ankles = None if feet is None else [name.strip() for name in feet.split(",")]
    files = files or []
    own = _model_of(files, body, points)
    if is_many([str(points)] if points is not None else files, output):
        if goals is not None or follow is not None:
            raise typer.BadParameter("expected --foot-lock or --points with many inputs", param_hint="'-o'")
        from synovia.batch.tasks import POINT_ENDINGS, FitPoints, LockFeet

        lock = LockFeet(clip, ankles, up, blend) if foot_lock else None
        if points is None:
            run_many(lock or LockFeet(), files, options, "holding feet")
        settings = {"preset": preset, "mirror": mirror, "up": up, "fps": fps}
        fit = FitPoints(None if own == AUTO else own, None if joints is None else _pairs(joints), lock, settings)
        run_many(fit, [str(points)], options, "fitting", ".bvh", POINT_ENDINGS)
    options.refuse_single()
    if len(files) > 1:
        raise typer.BadParameter(f"expected one file, got {len(files)}", param_hint="'FILE'")
    from synovia.cli.report import clip_object, clip_text, judgement_object, warn
    from synovia.io.load import is_bundled
    from synovia.io.save import check_target, save_motion
    from synovia.model.motion import Motion
    from synovia.retargeting import judge

    if output is not None:
        check_target(output, force=force)
    tracked = fitted = locked = None
    if goals is not None or follow is not None:
        from synovia.facade import IK
        from synovia.solver import as_solver

        skeleton = load_body(own)
        speed = None if velocity is None else _velocity(velocity)
        wanted, targets, fps, frames, start = (
            _keyframes(goals)
            if goals is not None
            else _followed(_other(follow or "", own, clip, model, trim=trim), joints, skeleton, root or "free")
        )
        ik = IK(skeleton, wanted, as_solver(solver), root=root or ("free" if goals is None else "fixed"))
        with Bar("following", count=frames) as bar:
            tracked = ik.track(
                targets, start, fps=fps, candidates=candidates, both_ways=both_ways, smoothness=smooth, velocity=speed,
                threads=jobs, progress=bar, deadline=deadline,
            )  # fmt: skip
        made = tracked.motion
        motion = Motion(made.skeleton, made.q, made.fps, name=Path(goals or follow or "").stem)
    elif points is not None:
        chosen: dict[str, Any] = {"preset": preset, "mirror": mirror, "up": up, "fps": fps, "threads": jobs}
        motion = fitted = _fit(None if own == AUTO else load_body(own), points, (clip, model, trim), joints, chosen)
        up = None
    else:
        instead = "--foot-lock alone needs a clip; a model needs --goals, --follow or --points"
        motion = load_clip(own, clip, model=model, trim=trim, instead=instead)
    if foot_lock:
        from synovia import clips

        with Bar("holding feet", count=len(motion)) as bar:
            locked = clips.foot_lock(motion, feet=ankles, up=up, blend=blend, threads=jobs, progress=bar)
        motion = locked.motion
    if output is not None:
        copied = own if model is None or not locked or tracked or fitted else model
        save_motion(motion, output, into=None if copied == AUTO or is_bundled(copied) else copied, force=force)
    judgement = judge(motion, up=up)
    if as_json:
        emit_json({**clip_object(motion, tracked, fitted, locked), "judgement": judgement_object(judgement)})
    else:
        emit("\n".join(clip_text(motion, tracked, fitted, locked)))
        if output is None:
            talk("no file was written; -o OUT.bvh (.glb, .npz, .csv) saves the motion")
    warn(judgement)
    raise typer.Exit(MISSED if tracked is not None and tracked.missed_frames else REACHED)


def _check_sources(sources: list[Path | str | None], *, foot_lock: bool) -> None:
    """Check that there is one source of motion, or none for ``--foot-lock`` alone.

    Raises:
        typer.BadParameter: If there are more or fewer sources.
    """
    given = sum(source is not None for source in sources)
    if given > 1:
        raise typer.BadParameter("expected only one of these options", param_hint="'--goals' / '--follow' / '--points'")
    if not given and not foot_lock:
        raise typer.BadParameter(
            "expected targets (--goals), another clip (--follow) or points (--points) for a model, or a clip whose feet"
            " to hold (--foot-lock)",
            param_hint="'--goals', '--follow', '--points' or '--foot-lock'",
        )


_Problem = tuple[list["Goal"], dict[str, Any], float, int, "Pose | None"]


def _keyframes(path: Path) -> _Problem:
    """Return goals, targets, frame rate, number of frames and start pose of a track file."""
    from synovia.files.tracks import read_track

    track = read_track(path)
    if not track.targets:
        raise typer.BadParameter("expected keys for at least one goal", param_hint="'--goals'")
    return list(track.goals), track.targets, track.fps, track.frames, None


def _other(path: str, file: str, clip: str | None, model: str | None, *, trim: bool) -> Motion:
    """Return the clip to follow; one that does not hold its skeleton is one of the model that follows it."""
    return load_clip(path, clip, model=model or (file if needs_model(path) else None), trim=trim)


def _followed(source: Motion, joints: str | None, skeleton: Skeleton, root: str) -> _Problem:
    """Return goals, targets, frame rate, number of frames and start pose that follow another clip."""
    from synovia.goals import PositionGoal
    from synovia.ik.targets import targets_from

    targets = targets_from(source, list(skeleton.tips) if joints is None else _pairs(joints))
    start = None
    with suppress(InputError):  # another body
        placed = source.on(skeleton)
        same = [(body.joint_names, body.nq) for body in (skeleton, skeleton.with_root(root))]
        start = placed.pose(0) if (placed.skeleton.joint_names, placed.skeleton.nq) in same else None
    return [PositionGoal(joint) for joint in targets], targets, source.fps, len(source), start


def _pairs(text: str) -> dict[str, str]:
    """Return the joint of the other clip for each joint in ``A,B=C``."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        own, _, other = part.partition("=")
        if not own.strip():
            raise typer.BadParameter(f"expected A,B=C, got {text!r}", param_hint="'--joints'")
        pairs[own.strip()] = other.strip() or own.strip()
    return pairs


def _velocity(text: str) -> float | dict[str, float]:
    """Return the velocity of ``V``, or the velocities of ``JOINT=V,...``."""
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.rpartition("=") for part in text.split(","))
        return {joint.strip(): float(value) for joint, _, value in pairs}
    except ValueError as error:
        raise typer.BadParameter(
            f"expected a number, or JOINT=NUMBER,..., got {text!r}", param_hint="'--velocity'"
        ) from error


def _model_of(files: list[str], body: str | None, points: Path | None) -> str:
    """Return the first file, that of the model, or ``AUTO`` for a body made to measure.

    Raises:
        typer.BadParameter: If there is none, or two.
    """
    if body is not None and points is None:
        raise typer.BadParameter("expected --points with this option", param_hint="'--body'")
    if body is not None and files:
        raise typer.BadParameter(f"expected one body, got {files[0]!r} and {body!r}", param_hint="'--body'")
    if not files and body is None and points is None:
        raise typer.BadParameter("expected a model, or --points for a body made to measure", param_hint="'FILE'")
    return (files or [body or AUTO])[0]


_Chosen = tuple[str | None, str | None, bool]  # --clip, --model and --trim-tpose


def _fit(
    skeleton: Skeleton | None, path: Path, chosen: _Chosen, joints: str | None, settings: dict[str, Any]
) -> Fitted:
    """Return a clip fitted to points over time; None stands for a body made to measure."""
    from synovia.clips import fit_keypoints
    from synovia.clips.pointfile import holds_points, read_points

    pairs = None if joints is None else _pairs(joints)
    if holds_points(path):
        points = read_points(path).chosen(pairs, path)
    else:
        points = _joints_of_clip(skeleton, path, chosen, pairs)
    settings["fps"] = settings["fps"] or points.fps or 30.0
    with Bar("fitting", count=len(points.positions)) as bar:
        return fit_keypoints(
            points.positions, points.joints, body=skeleton, offsets=points.offsets, confidence=points.confidence,
            meters_per_unit=points.meters_per_unit, name=path.stem, progress=bar,
            **settings,
        )  # fmt: skip


def _joints_of_clip(skeleton: Skeleton | None, path: Path, chosen: _Chosen, pairs: dict[str, str] | None) -> PointFile:
    """Return the joints of a clip as points, with the names of the model, or of landmarks without a model.

    Raises:
        InputError: If the model and the clip have no joint in common.
    """
    import numpy as np

    from synovia.clips.landmarks import OF_ROLES
    from synovia.clips.pointfile import PointFile
    from synovia.ik.targets import targets_from

    clip, model, trim = chosen
    source = load_clip(str(path), clip, model=model, trim=trim)
    if skeleton is None and pairs is None:
        pairs = {mark: source.skeleton.roles[role] for role, mark in OF_ROLES.items() if role in source.skeleton.roles}
    elif skeleton is not None and pairs is None:
        there = set(source.skeleton.joint_names)
        pairs = {name: name for name in skeleton.joint_names if name in there}
    if not pairs:
        raise InputError(
            "no joint of the clip has a name of the model", where=str(path), hint="pair them: --joints A=B,..."
        )
    places = targets_from(source, pairs)
    return PointFile(np.stack(list(places.values()), axis=1), list(places), fps=source.fps)
