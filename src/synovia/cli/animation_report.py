"""What ``synovia animate`` tells of a clip, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.cli.solution import unit_name
from synovia.clips.feet import Bools, runs
from synovia.ik.solution import length_text

if TYPE_CHECKING:
    from synovia.clips import Fitted, FootLocked
    from synovia.model.motion import Motion
    from synovia.tracking import Tracked

SCHEMA: Final = "synovia.animate/1"
_MOST_SHOWN: Final = 8  # runs of frames in one line


def animation_text(
    motion: Motion, tracked: Tracked | None, fitted: Fitted | None, locked: FootLocked | None
) -> list[str]:
    """Return the report for people.

    Args:
        motion: The clip.
        tracked: How it followed targets, None where it did not.
        fitted: How it passed through points.
        locked: How its feet were held.
    """
    unit = motion.skeleton.meters_per_unit
    lines = [f"{motion.name}: {len(motion)} frames at {motion.fps:g} fps, {motion.duration:.2f} s"]
    if tracked is not None:
        lines += _tracked_text(tracked, unit)
    if fitted is not None:
        lines += _fitted_text(fitted, unit)
    if locked is not None:
        lines += _locked_text(motion, locked)
    return lines


def _tracked_text(tracked: Tracked, unit: float | None) -> list[str]:
    """Return how targets were followed."""
    reached = len(tracked) - len(tracked.missed)
    lines = [f"reached in {reached} of {len(tracked)} frames ({tracked.ik.solver.name})"]
    errors = tracked.errors
    for i, goal in enumerate(tracked.ik.goals):
        worst = int(errors[:, i, 0].argmax())
        lines.append(f"  {goal.label}: at most {length_text(float(errors[worst, i, 0]), unit)} off, frame {worst}")
    if tracked.interrupted.any():
        lines.append(
            f"--deadline cut {int(tracked.interrupted.sum())} frames short: those not begun hold the last pose"
        )
    if tracked.missed:
        lines.append(f"missed: frames {_listed(tracked.missed)}")
    if tracked.late:
        lines.append(f"{_of_these(tracked.late)} late: joints may not be faster than --velocity")
    if tracked.smoothed_off:
        lines.append(f"{_of_these(tracked.smoothed_off)} missed for --smooth, which took out motion quicker than that")
    if tracked.jumps:
        lines.append(f"jumps: frames {_listed(tracked.jumps)}")
    return lines


def _of_these(frames: tuple[int, ...]) -> str:
    """Return how many of the missed frames are meant."""
    return f"  of these {len(frames)} {'is' if len(frames) == 1 else 'are'}"


def _fitted_text(fitted: Fitted, unit: float | None) -> list[str]:
    """Return how points were passed through."""
    median, far = (length_text(value, unit) for value in _off(fitted))
    seen = 100.0 * float(np.isfinite(fitted.errors).mean())
    calmed = "" if fitted.smoothness else "; no noise"
    return [f"{fitted.errors.shape[1]} points, seen {seen:.0f} % of the time: {median} off, 99 % within {far}{calmed}"]


def _locked_text(motion: Motion, locked: FootLocked) -> list[str]:
    """Return how feet were held."""
    unit = motion.skeleton.meters_per_unit
    names = ", ".join(motion.skeleton.joint_names[row] for row in locked.feet)
    share = 100.0 * float(locked.contact.any(axis=1).mean())
    stands = f"one stands in {share:.0f} % of the frames" if share else "none of them ever stands, so nothing is held"
    return [
        f"feet: {names}; {stands}; up is {locked.up}",
        f"slide of standing feet: {_change(locked.slide_before, locked.slide, unit, '/s')}",
        f"deepest below the floor at {locked.floor:.4g}: {_change(locked.depth_before, locked.depth, unit)}",
    ]


def _off(fitted: Fitted) -> tuple[float, float]:
    """Return how far points are off: median and 99th percentile, length units."""
    seen = fitted.errors[np.isfinite(fitted.errors)]
    return float(np.median(seen)), float(np.quantile(seen, 0.99))


def _change(before: float, after: float, unit: float | None, per: str = "") -> str:
    """Return two lengths, before and after."""
    return f"{length_text(before, unit)}{per} -> {length_text(after, unit)}{per}"


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


def animation_object(
    motion: Motion, tracked: Tracked | None, fitted: Fitted | None, locked: FootLocked | None
) -> dict[str, Any]:
    """Return the report as one JSON object; lengths in the unit of the file. Arguments as in ``animation_text``."""
    out: dict[str, Any] = {
        "schema": SCHEMA,
        "model": motion.skeleton.name,
        "frames": len(motion),
        "fps": motion.fps,
        "unit": unit_name(motion.skeleton.meters_per_unit),
    }
    if tracked is not None:
        out["track"] = _track_object(tracked)
    if fitted is not None:
        out["fit"] = _fit_object(fitted)
    if locked is not None:
        out["foot_lock"] = _lock_object(motion, locked)
    return out


def _track_object(tracked: Tracked) -> dict[str, Any]:
    """Return how targets were followed, as plain values."""
    errors = tracked.errors
    return {
        "solver": tracked.ik.solver.name,
        "reached": len(tracked) - len(tracked.missed),
        "missed": list(tracked.missed),
        "interrupted": bool(tracked.interrupted.any()),
        "late": list(tracked.late),
        "smoothed_off": list(tracked.smoothed_off),
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


def _fit_object(fitted: Fitted) -> dict[str, Any]:
    """Return how points were passed through, as plain values."""
    median, far = _off(fitted)
    return {
        "points": fitted.errors.shape[1],
        "seen": float(np.isfinite(fitted.errors).mean()),
        "median_error": median,
        "p99_error": far,
        "smoothness": fitted.smoothness,
    }


def _lock_object(motion: Motion, locked: FootLocked) -> dict[str, Any]:
    """Return how feet were held, as plain values."""
    return {
        "feet": [motion.skeleton.joint_names[row] for row in locked.feet],
        "contacts": [_spans(locked.contact[:, k]) for k in range(len(locked.feet))],
        "up": locked.up,
        "floor": locked.floor,
        "slide_before": locked.slide_before,
        "slide": locked.slide,
        "depth_before": locked.depth_before,
        "depth": locked.depth,
    }


def _spans(flags: Bools) -> list[list[int]]:
    """Return [first, last] of each run of frames in contact."""
    return [[first, end - 1] for first, end in runs(flags)]
