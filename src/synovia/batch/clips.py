"""Helpers for many clips: read target bodies, and collect notes and figures of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from synovia.batch.work import Figure
from synovia.errors import InputError, UnsupportedError
from synovia.io.load import format_of, is_bundled, load_model, load_motion
from synovia.model import Skeleton
from synovia.model.motion import Motion

if TYPE_CHECKING:
    from synovia.clips import Fitted
    from synovia.retargeting import Judgement, Retargeted


def target_of(name: str, loops: Path | None = None) -> Skeleton | Motion:
    """Return the body to retarget to: the model, or the file's clip if the body does not stand at rest.

    Args:
        name: The file or the bundled model.
        loops: File of additional loops; with it, the result is always the model.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    from synovia.retargeting import stands

    body = load_model(name, loops=loops)
    if loops is not None or is_bundled(name) or not format_of(Path(name)).holds_motions:
        return body
    try:
        return body if stands(body) else load_motion(Path(name))
    except (InputError, UnsupportedError):  # no clip, or no recognized body: `retarget` reports this later
        return body


def notes_of(answer: Retargeted) -> list[str]:
    """Return notes that the judgement of a retargeted clip lacks: doubts about rest poses, sides and path."""
    from synovia.retargeting.rest_pose import CERTAIN

    poses = (("rest pose", answer.stance.rest), ("rest pose of the target", answer.target_rest))
    doubts = [f"{what} {pose.name}: {pose.doubt}" for what, pose in poses if pose.certainty < CERTAIN]
    return [*doubts, *answer.stance.notes]


JUDGED: Final[Mapping[str, type]] = {
    "verdict": str,
    "findings": str,
    "bad_frames": int,
    "foot_slide": float,
    "foot_depth": float,
    "limb_deg": float,
}
"""Figures of a judgement, and their types."""


def judged(judgement: Judgement) -> dict[str, Figure]:
    """Return the verdict of a judgement, the causes of its warnings, and its main measured figures.

    Lengths are in leg lengths, angles in degrees. ``bad_frames`` counts the frames of the findings that decide the
    verdict; if such a finding concerns the whole clip, it counts all frames.
    """
    warnings = judgement.warnings
    causes = dict.fromkeys(f"{one.limb.replace('_', ' ')}: {one.cause}" for one in warnings)
    # the worst warnings come first; only their frames count
    deciding = [one.frames for one in warnings if one.level == warnings[0].level]
    frames = {frame for some in deciding for frame in some}
    bad = len(frames) if all(deciding) else len(judgement.figures.motion)
    feet, limbs = judgement.figures.feet, judgement.figures.limbs
    found: dict[str, Figure] = {"verdict": judgement.verdict, "findings": "; ".join(causes), "bad_frames": bad}
    for name, values, unit in (
        ("foot_slide", [foot.slide for foot in feet], 1.0),
        ("foot_depth", [foot.depth for foot in feet], 1.0),
        ("limb_deg", [limb.mean for limb in limbs], math.degrees(1.0)),
    ):
        finite = [unit * float(value) for value in values if math.isfinite(value)]
        if finite:
            found[name] = max(finite)
    return found


def point_errors(fitted: Fitted) -> dict[str, float]:
    """Return the median and the 99th percentile of the distances of points from a fitted body."""
    errors = fitted.errors[np.isfinite(fitted.errors)]
    return {"median_error": float(np.median(errors)), "p99_error": float(np.quantile(errors, 0.99))}


def judged_alone(
    motion: Motion, up: str | None = None, *, missed: Sequence[int] = (), fitted: Fitted | None = None
) -> dict[str, Figure]:
    """Judge a motion without an original, and return the figures of ``judged``.

    Args:
        motion: The motion.
        up: The axis that points up; None to find it.
        missed: Frames in which goals are missed.
        fitted: The fit to points from which the motion was made; None without a fit.
    """
    from synovia.retargeting import judge

    flips, errors = (None, None) if fitted is None else (fitted.flips, fitted.errors)
    return judged(judge(motion, up=up, missed=missed, flips=flips, errors=errors))
