"""``synovia animate``: from options to a clip that follows targets or points, or whose feet are held, and a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from synovia.cli.clips import load_body, load_clip
from synovia.cli.output import emit, emit_json, talk
from synovia.cli.progress import Bar
from synovia.cli.run import MISSED, REACHED
from synovia.errors import InputError
from synovia.io.load import is_bundled

if TYPE_CHECKING:
    from synovia.clips import Fitted, FootLocked
    from synovia.ik import Tracked
    from synovia.model.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line of ``synovia animate``, as it was typed."""

    file: str
    goals: Path | None
    follow: str | None
    points: Path | None
    joints: str | None
    clip: str | None
    solver: str | None
    root: str
    starts: int
    both_ways: bool
    smooth: float
    velocity: str | None
    foot_lock: bool
    feet: str | None
    up: str | None
    blend: float
    jobs: int | None
    deadline: float | None
    output: Path | None
    force: bool
    as_json: bool


def animate_request(request: Request) -> int:
    """Make the clip, print and write; return the exit code.

    Raises:
        typer.BadParameter: If options do not go together.
        SynoviaError: If what an option says cannot be used.
    """
    from synovia.cli.animation_report import animation_object, animation_text
    from synovia.io.save import check_target, save_motion
    from synovia.model.motion import Motion

    _check(request)
    if request.output is not None:
        check_target(request.output, force=request.force)
    tracked = fitted = locked = None
    if request.goals is not None or request.follow is not None:
        tracked = _track(request)
        made = tracked.motion
        name = Path(request.goals or request.follow or "").stem
        motion = Motion(made.skeleton, made.q, made.fps, name=name)
    elif request.points is not None:
        motion = fitted = _fit(request, request.points)
    else:
        model = "--foot-lock alone needs a clip; a model needs --goals, --follow or --points"
        motion = load_clip(request.file, request.clip, instead=model)
    if request.foot_lock:
        locked = _locked(motion, request)
        motion = locked.motion
    if request.output is not None:
        into = None if is_bundled(request.file) else request.file
        save_motion(motion, request.output, into=into, force=request.force)
    if request.as_json:
        emit_json(animation_object(motion, tracked, fitted, locked))
    else:
        emit("\n".join(animation_text(motion, tracked, fitted, locked)))
        if request.output is None:
            talk("nothing was written; -o OUT.bvh (.glb, .npz, .csv) keeps the motion")
    return MISSED if tracked is not None and tracked.missed else REACHED


def _check(request: Request) -> None:
    """Refuse options that do not go together.

    Raises:
        typer.BadParameter: Always then.
    """
    ways = [request.goals, request.follow, request.points]
    if sum(way is not None for way in ways) > 1:
        raise typer.BadParameter("give one of them", param_hint="'--goals' / '--follow' / '--points'")
    if all(way is None for way in ways) and not request.foot_lock:
        raise typer.BadParameter(
            "nothing to do; give a model targets (--goals), another clip (--follow) or points (--points) over time,"
            " or hold the feet of a clip",
            param_hint="'--goals', '--follow', '--points' or '--foot-lock'",
        )
    if request.goals is None and request.follow is None:
        tracks = {
            "--solver": request.solver, "--velocity": request.velocity, "--both-ways": request.both_ways,
            "--starts": request.starts > 1, "--smooth": request.smooth > 0.0,
            "--deadline": request.deadline is not None,
        }  # fmt: skip
        for option, given in tracks.items():
            if given:
                raise typer.BadParameter(
                    "means targets that are followed: --goals or --follow", param_hint=f"'{option}'"
                )


def _track(request: Request) -> Tracked:
    """Return the clip that follows the targets."""
    from synovia.goals import PositionGoal
    from synovia.ik import IK
    from synovia.solver import as_solver

    skeleton = load_body(request.file)
    start = None
    if request.goals is not None:
        from synovia.ik.trackfile import read_track

        track = read_track(request.goals)
        goals, targets, fps, frames = list(track.goals), track.targets, track.fps, track.frames
        if not targets:
            raise typer.BadParameter("no goal has keys; there is nothing to follow", param_hint="'--goals'")
    else:
        from synovia.ik.follow import targets_from

        source = load_clip(request.follow or "", request.clip)
        joints = None if request.joints is None else _pairs(request.joints)
        targets = targets_from(source, joints if joints is not None else list(skeleton.tips))
        goals = [PositionGoal(joint) for joint in targets]
        fps, frames = source.fps, len(source)
        if source.skeleton.joint_names == skeleton.joint_names:
            start = source.pose(0)
    velocity = None if request.velocity is None else _velocity(request.velocity)
    ik = IK(skeleton, goals, as_solver(request.solver), root=request.root)
    with Bar("following", count=frames) as bar:
        return ik.track(
            targets, start, fps=fps, starts=request.starts, both_ways=request.both_ways,
            smoothness=request.smooth, velocity=velocity, threads=request.jobs, progress=bar,
            deadline=request.deadline,
        )  # fmt: skip


def _pairs(text: str) -> dict[str, str]:
    """Return the joints of ``JOINT[=JOINT of the other clip],...``."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        own, _, other = part.partition("=")
        if not own.strip():
            raise typer.BadParameter(f"{text!r} names no joint", param_hint="'--joints'")
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
            f"{text!r} is no velocity; a number, or JOINT=NUMBER,...", param_hint="'--velocity'"
        ) from error


def _fit(request: Request, path: Path) -> Fitted:
    """Return the clip that passes through points over time."""
    from synovia.clips import fit_positions
    from synovia.clips.pointfile import holds_points, read_points

    skeleton = load_body(request.file)
    pairs = None if request.joints is None else _pairs(request.joints)
    if holds_points(path):
        points = read_points(path).chosen(pairs, path)
        positions, joints, rate = points.positions, points.joints, points.fps or 30.0
        more, count = {"offsets": points.offsets, "confidence": points.confidence}, len(points.positions)
    else:
        from synovia.ik.follow import targets_from

        source = load_clip(str(path), request.clip)
        names = set(source.skeleton.joint_names)
        pairs = pairs or {name: name for name in skeleton.joint_names if name in names}
        if not pairs:
            raise InputError(
                "the clip has no joint of the model's names", where=str(path), hint="--joints OWN=OTHER,... pairs them"
            )
        positions, joints, rate, more = targets_from(source, pairs), None, source.fps, {}
        count = len(next(iter(positions.values())))
    with Bar("fitting", count=count) as bar:
        return fit_positions(
            skeleton, positions, joints, **more, fps=rate, name=path.stem, threads=request.jobs, progress=bar
        )


def _locked(motion: Motion, request: Request) -> FootLocked:
    """Return the clip with its feet held."""
    from synovia.clips import foot_lock

    feet = None if request.feet is None else [name.strip() for name in request.feet.split(",")]
    with Bar("holding feet", count=len(motion)) as bar:
        return foot_lock(motion, feet=feet, up=request.up, blend=request.blend, threads=request.jobs, progress=bar)
