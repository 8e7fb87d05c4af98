"""Reports of clips: as text and as JSON objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.bodies.footing import standing_lines
from synovia.ik.solution import length_text
from synovia.model.anatomy.feet import frames_text, runs
from synovia.text import Report, counted, unit_name

if TYPE_CHECKING:
    from synovia.clips import Fitted, FootLocked
    from synovia.model.motion import Motion
    from synovia.retargeting import Judgement
    from synovia.tracking import Tracked

CLIP_SCHEMA: Final = "synovia.animate/1"
_MOST_SHOWN: Final = 8  # largest number of frame ranges in a line


def warnings_of(judgement: Judgement) -> list[str]:
    """Return the warnings of a judgement."""
    return [str(one) for one in judgement.warnings]


def clip_report(motion: Motion, tracked: Tracked | None, fitted: Fitted | None, locked: FootLocked | None) -> Report:
    """Return the report on a clip; lengths in the unit of the file.

    Args:
        motion: The clip.
        tracked: Result of tracking targets, None without tracking.
        fitted: Result of the fit to points, None without a fit.
        locked: Result of the foot lock, None without it.
    """
    unit = motion.skeleton.meters_per_unit
    lines = [f"{motion.name}: {counted(len(motion), 'frame')} at {motion.fps:g} fps, {motion.duration:.2f} s"]
    if tracked is not None:
        lines += _tracked_text(tracked, unit)
    if fitted is not None:
        lines += _fitted_text(fitted, unit)
    if locked is not None:
        lines += _locked_text(motion, locked)
    return Report(lines, _facts(motion, tracked, fitted, locked))


def _tracked_text(tracked: Tracked, unit: float | None) -> list[str]:
    """Return the lines about tracking."""
    reached = len(tracked) - len(tracked.missed_frames)
    lines = [f"reached in {reached} of {counted(len(tracked), 'frame')} ({tracked.ik.solver.name})"]
    errors = tracked.errors
    for i, goal in enumerate(tracked.ik.goals):
        worst = int(errors[:, i, 0].argmax())
        lines.append(f"  {goal.label}: at most {length_text(float(errors[worst, i, 0]), unit)} off, frame {worst}")
    if tracked.interrupted.any():
        cut = counted(int(tracked.interrupted.sum()), "frame")
        lines.append(f"--deadline cut {cut} short; frames after it repeat the last pose")
    if tracked.missed_frames:
        lines.append(f"missed: {frames_text(tracked.missed_frames, _MOST_SHOWN)}")
    if tracked.late:
        lines.append(f"{_of_these(tracked.late)} late: --velocity limits the speed of the joints")
    if tracked.smoothed_off:
        lines.append(f"{_of_these(tracked.smoothed_off)} missed because of --smooth")
    if tracked.jumps:
        lines.append(f"jumps: {frames_text(tracked.jumps, _MOST_SHOWN)}")
    if tracked.blocked:
        lines.append(f"too near on the path to: {frames_text(tracked.blocked, _MOST_SHOWN)}")
    return lines


def _of_these(frames: tuple[int, ...]) -> str:
    """Return the first words of a line on a subset of the missed frames."""
    return f"  of these {len(frames)} {'is' if len(frames) == 1 else 'are'}"


def _fitted_text(fitted: Fitted, unit: float | None) -> list[str]:
    """Return the line about the fit to points."""
    median, far = (length_text(value, unit) for value in _off(fitted))
    seen = 100.0 * float(np.isfinite(fitted.errors).mean())
    calmed = "" if fitted.smoothness else "; no noise"
    points = f"{fitted.errors.shape[1]} points, seen {seen:.0f} % of the time"
    return [
        *(f"points: {note}" for note in fitted.notes),
        f"{points}: median error {median}, 99 % within {far}{calmed}",
    ]


def _locked_text(motion: Motion, locked: FootLocked) -> list[str]:
    """Return the lines about the foot lock."""
    unit = motion.skeleton.meters_per_unit
    names = ", ".join(motion.skeleton.joint_names[row] for row in locked.feet)
    share = 100.0 * float(locked.contact.any(axis=1).mean())
    stands = (
        f"one stands in {share:.0f} % of the frames"
        if share
        else "none of them stands in any frame, so no foot is held"
    )
    below = "ground" if locked.footholds else f"floor at {locked.floor:.4g}"
    return [
        f"feet: {names}; {stands}; up is {locked.up}",
        f"slide of standing feet: {_change(locked.slide_before, locked.slide, unit, '/s')}",
        f"deepest below the {below}: {_change(locked.depth_before, locked.depth, unit)}",
        *standing_lines(locked.footholds, locked.missed_frames),
    ]


def _off(fitted: Fitted) -> tuple[float, float]:
    """Return the median and the 99th percentile of the errors of points, length units."""
    seen = fitted.errors[np.isfinite(fitted.errors)]
    return float(np.median(seen)), float(np.quantile(seen, 0.99))


def _change(before: float, after: float, unit: float | None, per: str = "") -> str:
    """Return the text for a length before and after a change."""
    return f"{length_text(before, unit)}{per} -> {length_text(after, unit)}{per}"


def _facts(motion: Motion, tracked: Tracked | None, fitted: Fitted | None, locked: FootLocked | None) -> dict[str, Any]:
    """Return the report on a clip as plain values."""
    out: dict[str, Any] = {
        "schema": CLIP_SCHEMA,
        "model": motion.skeleton.name,
        "frames": len(motion),
        "fps": motion.fps,
        "unit": unit_name(motion.skeleton.meters_per_unit),
        "notes": list(motion.notes),
    }
    if tracked is not None:
        errors = tracked.errors
        out["track"] = {
            "solver": tracked.ik.solver.name,
            "reached": len(tracked) - len(tracked.missed_frames),
            "missed": list(tracked.missed_frames),
            "interrupted": bool(tracked.interrupted.any()),
            "late": list(tracked.late),
            "smoothed_off": list(tracked.smoothed_off),
            "jumps": list(tracked.jumps),
            "blocked": list(tracked.blocked),
            "goals": [
                {
                    "name": goal.label,
                    "largest_position_error": float(errors[:, i, 0].max()),
                    "largest_angle_error": float(errors[:, i, 1].max()),
                }
                for i, goal in enumerate(tracked.ik.goals)
            ],
        }
    if fitted is not None:
        median, far = _off(fitted)
        out["fit"] = {
            "points": fitted.errors.shape[1],
            "seen": float(np.isfinite(fitted.errors).mean()),
            "median_error": median,
            "p99_error": far,
            "smoothness": fitted.smoothness,
            "notes": list(fitted.notes),
        }
    if locked is not None:
        names = ("up", "floor", "slide_before", "slide", "depth_before", "depth")
        out["foot_lock"] = {
            "feet": [motion.skeleton.joint_names[row] for row in locked.feet],
            "contacts": [[[first, end - 1] for first, end in runs(column)] for column in locked.contact.T],
            **{name: getattr(locked, name) for name in names},
        }
    return out
