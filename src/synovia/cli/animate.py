"""``synovia animate``: from options to a clip that follows targets, or whose feet are held; a report, and a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from synovia.cli.model import is_bundled, load
from synovia.cli.output import emit, emit_json, talk
from synovia.cli.progress import Bar
from synovia.cli.run import MISSED, REACHED
from synovia.cli.solution import unit_name
from synovia.ik.solution import length_text

if TYPE_CHECKING:
    from synovia.clips import FootLocked
    from synovia.ik import Tracked
    from synovia.motion import Motion

SCHEMA: Final = "synovia.animate/1"
_MOST_SHOWN: Final = 8  # runs of frames in one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line of ``synovia animate``, as it was typed."""

    file: str
    goals: Path | None
    follow: str | None
    joints: str | None
    clip: str | None
    solver: str | None
    root: str
    starts: int
    both_ways: bool
    smooth: float
    foot_lock: bool
    feet: str | None
    up: str | None
    blend: float
    output: Path | None
    force: bool
    as_json: bool


def animate_request(request: Request) -> int:
    """Make the clip, print and write; return the exit code.

    Raises:
        typer.BadParameter: If options do not go together.
        SynoviaError: If what an option says cannot be used.
    """
    from synovia.io.save import check_target, save_motion

    if request.goals is not None and request.follow is not None:
        raise typer.BadParameter("give one of them", param_hint="'--goals' / '--follow'")
    if request.goals is None and request.follow is None and not request.foot_lock:
        raise typer.BadParameter(
            "nothing to do; give targets, or hold the feet", param_hint="'--goals', '--follow' or '--foot-lock'"
        )
    if request.output is not None:
        check_target(request.output, force=request.force)
    tracked = None
    if request.goals is None and request.follow is None:
        motion = _clip(request.file, request.clip)
    else:
        tracked = _track(request)
        motion = tracked.motion
    locked = _locked(motion, request) if request.foot_lock else None
    motion = motion if locked is None else locked.motion
    if request.output is not None:
        into = None if is_bundled(request.file) else request.file
        save_motion(motion, request.output, into=into, force=request.force)
    if request.as_json:
        emit_json(_object(motion, tracked, locked))
    else:
        emit("\n".join(_text(motion, tracked, locked)))
        if request.output is None:
            talk("nothing was written; -o OUT.bvh (.glb, .npz, .csv) keeps the motion")
    return MISSED if tracked is not None and tracked.missed else REACHED


def _clip(path: str, clip: str | None) -> Motion:
    """Return one clip of a file."""
    from synovia.io import load_motion

    return load_motion(path, 0 if clip is None else int(clip) if clip.isdigit() else clip)


def _track(request: Request) -> Tracked:
    """Return the clip that follows the targets."""
    from synovia.goals import PositionGoal
    from synovia.ik import IK

    skeleton = load(request.file)
    start = None
    if request.goals is not None:
        from synovia.ik.trackfile import read_track

        track = read_track(request.goals)
        goals, targets, fps, frames = list(track.goals), track.targets, track.fps, track.frames
        if not targets:
            raise typer.BadParameter("no goal has keys; there is nothing to follow", param_hint="'--goals'")
    else:
        from synovia.ik.follow import targets_from

        source = _clip(request.follow or "", request.clip)
        joints = None if request.joints is None else _pairs(request.joints)
        targets = targets_from(source, joints if joints is not None else list(skeleton.tips))
        goals = [PositionGoal(joint) for joint in targets]
        fps, frames = source.fps, len(source)
        if source.skeleton.joint_names == skeleton.joint_names:
            start = source.pose(0)
    ik = IK(skeleton, goals, request.solver, root=request.root)
    with Bar("following", frames) as bar:
        return ik.track(
            targets, start, fps=fps, starts=request.starts, both_ways=request.both_ways,
            smoothness=request.smooth, progress=lambda done, of: bar(done / of),
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


def _locked(motion: Motion, request: Request) -> FootLocked:
    """Return the clip with its feet held."""
    from synovia.clips import foot_lock

    feet = None if request.feet is None else [name.strip() for name in request.feet.split(",")]
    with Bar("holding feet", len(motion)) as bar:
        return foot_lock(motion, feet=feet, up=request.up, blend=request.blend, progress=bar)


def _runs(frames: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the first and last of each run of frames that follow one another."""
    runs: list[tuple[int, int]] = []
    for frame in frames:
        if runs and frame == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], frame
        else:
            runs.append((frame, frame))
    return runs


def _listed(frames: tuple[int, ...]) -> str:
    """Return frames as people write them: 3, 7-12 and how many more."""
    runs = _runs(frames)
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:_MOST_SHOWN])
    return shown + (f" and {len(runs) - _MOST_SHOWN} more stretches" if len(runs) > _MOST_SHOWN else "")


def _text(motion: Motion, tracked: Tracked | None, locked: FootLocked | None) -> list[str]:
    """Return the report for people."""
    unit = motion.skeleton.meters_per_unit
    lines = [f"{motion.name}: {len(motion)} frames at {motion.fps:g} fps, {motion.duration:.2f} s"]
    if tracked is not None:
        reached = len(tracked) - len(tracked.missed)
        lines.append(f"reached in {reached} of {len(tracked)} frames ({tracked.ik.solver.name})")
        errors = tracked.errors
        for i, goal in enumerate(tracked.ik.goals):
            worst = int(errors[:, i, 0].argmax())
            lines.append(f"  {goal.label}: at most {length_text(float(errors[worst, i, 0]), unit)} off, frame {worst}")
        if tracked.missed:
            lines.append(f"missed: frames {_listed(tracked.missed)}")
        if tracked.jumps:
            lines.append(f"jumps: frames {_listed(tracked.jumps)}")
    if locked is not None:
        names = ", ".join(motion.skeleton.joint_names[row] for row in locked.feet)
        share = 100.0 * float(locked.contact.any(axis=1).mean())
        lines += [
            f"feet: {names}; one stands in {share:.0f} % of the frames; up is {locked.up}",
            f"slide of standing feet: {_change(locked.slide_before, locked.slide, unit, '/s')}",
            f"deepest below the floor at {locked.floor:.4g}: {_change(locked.depth_before, locked.depth, unit)}",
        ]
    return lines


def _change(before: float, after: float, unit: float | None, per: str = "") -> str:
    """Return two lengths, before and after."""
    return f"{length_text(before, unit)}{per} -> {length_text(after, unit)}{per}"


def _object(motion: Motion, tracked: Tracked | None, locked: FootLocked | None) -> dict[str, Any]:
    """Return the report as one JSON object; lengths in the unit of the file."""
    out: dict[str, Any] = {
        "schema": SCHEMA,
        "model": motion.skeleton.name,
        "frames": len(motion),
        "fps": motion.fps,
        "unit": unit_name(motion.skeleton.meters_per_unit),
    }
    if tracked is not None:
        errors = tracked.errors
        out["track"] = {
            "solver": tracked.ik.solver.name,
            "reached": len(tracked) - len(tracked.missed),
            "missed": list(tracked.missed),
            "jumps": list(tracked.jumps),
            "goals": [
                {
                    "name": goal.label,
                    "largest_position_error": float(errors[:, i, 0].max()),
                    "largest_angle_error": float(errors[:, i, 1].max()),
                }
                for i, goal in enumerate(tracked.ik.goals)
            ],
        }
    if locked is not None:
        out["foot_lock"] = {
            "feet": [motion.skeleton.joint_names[row] for row in locked.feet],
            "contacts": [_spans(locked.contact[:, k]) for k in range(len(locked.feet))],
            "up": locked.up,
            "floor": locked.floor,
            "slide_before": locked.slide_before,
            "slide": locked.slide,
            "depth_before": locked.depth_before,
            "depth": locked.depth,
        }
    return out


def _spans(flags: Any) -> list[list[int]]:
    """Return [first, last] of each run of frames in contact."""
    return [[a, b] for a, b in _runs(tuple(int(frame) for frame in flags.nonzero()[0]))]
