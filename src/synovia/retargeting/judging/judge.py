"""``judge``: measure a clip, compare it with its source, and say whether it can be used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from synovia.arguments import check_kind
from synovia.clips.fit import Fitted
from synovia.model.anatomy.feet import runs
from synovia.model.finding import LEVELS, Finding, verdict_of
from synovia.model.geometry import as_numbers
from synovia.model.motion import InPlace, Motion
from synovia.model.shapes.world import World
from synovia.retargeting.judging.findings import apart, degrees, doubts, find, flipped, in_place
from synovia.retargeting.judging.findings import missed as goals_missed
from synovia.retargeting.judging.measure import Figures, Limb
from synovia.text import Report, counted, plain

_SAID: Final = {"good": "good", "look": "look at it", "failed": "failed"}


@dataclass(frozen=True, eq=False)
class Judgement:
    """The verdict on a clip, with its reasons.

    Args:
        figures: What was measured.
        findings: What is wrong or notable, the worst first.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> still = sy.Motion(body, [body.rest_q] * 20, 30.0)
        >>> judgement = sy.judge(still, still)
        >>> judgement.verdict, judgement.findings[0].level
        ('good', 'note')
    """

    figures: Figures
    findings: tuple[Finding, ...]

    def with_findings(self, findings: Iterable[Finding]) -> Judgement:
        """Return the judgement with additional findings."""
        return Judgement(self.figures, tuple(sorted((*self.findings, *findings), key=_rank)))

    @property
    def verdict(self) -> str:
        """Level of the worst finding: ``"good"``, ``"look"`` (look at the clip before you use it) or ``"failed"``."""
        return verdict_of(self.findings)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that change the verdict."""
        return tuple(one for one in self.findings if one.level != "note")

    def summary(self) -> str:
        """Return the verdict as text."""
        return f"verdict: {_SAID[self.verdict]}"

    def report(self) -> Report:
        """Return verdict, findings and figures: angles in degrees, lengths in leg lengths, frames from 0."""
        figures = self.figures
        lines = [self.summary(), *(f"  {one}" for one in self.findings)]
        compared = (*figures.limbs, *figures.fingers)
        if compared:
            rows = [("limb", "off its source", "largest", "in frame")]
            rows += [
                (one.limb.replace("_", " "), degrees(one.mean), degrees(one.largest), str(one.frame))
                for one in compared
            ]
            lines += aligned(rows)
        for foot in figures.feet:
            text = f"{foot.role.replace('_', ' ')}: slides at {foot.slide:.2g} legs/s while it stands"
            agreed = None if figures.source is None else foot.agreement(figures.motion.fps)
            if figures.source is not None:
                text += f" (source {foot.source_slide:.2g})"
            text += f", {foot.hover:.2g} legs off the ground, at most {foot.depth:.2g} below"
            if agreed is not None:
                text += f"; contacts: precision {agreed[0]:.2f}, recall {agreed[1]:.2f}"
            lines.append(text)
        if figures.steps:
            most = max(figures.steps, key=lambda step: step.largest)
            of_source = "" if most.source is None else f" (source {degrees(float(most.source.max(initial=0.0)))})"
            lines.append(
                f"largest step: {most.joint} {degrees(most.largest)} to frame {figures.number(most.frame)}{of_source}"
            )
        return Report(lines, self._facts())

    def _facts(self) -> dict[str, Any]:
        """Return verdict, findings and figures as plain values."""
        figures, tilt = self.figures, self.trunk_tilt
        compared = figures.origin is not None
        feet: list[dict[str, Any]] = []
        for foot in figures.feet:
            agreed = foot.agreement(figures.motion.fps) if compared else None
            feet.append({
                "foot": foot.role, "slide_per_second": foot.slide,
                "source_slide_per_second": foot.source_slide if compared else None,
                "off_ground": foot.hover, "depth": foot.depth,
                "precision": None if agreed is None else agreed[0], "recall": None if agreed is None else agreed[1],
                "contacts": plain(runs(foot.contact)),
            })  # fmt: skip
        return {
            "verdict": self.verdict,
            "findings": plain(self.findings),
            "trunk_tilt_deg": None if tilt is None else math.degrees(tilt),
            "turn_deg": math.degrees(figures.turn),
            "limbs": [_limb(limb) for limb in figures.limbs],
            "fingers": [_limb(limb) for limb in figures.fingers],
            "feet": feet,
            "overlaps": [
                {"limbs": list(one.limbs), "depth": float(one.depth.max()), "source_depth": float(one.source.max())}
                for one in figures.overlaps
            ],
            "crossed": None if figures.crossed is None else np.flatnonzero(figures.crossed).tolist(),
            "steps": [
                {
                    "joint": step.joint, "limb": step.limb or None, "largest_deg": math.degrees(step.largest),
                    "frame": figures.number(step.frame),
                    "source_deg": None if step.source is None else math.degrees(float(step.source.max(initial=0.0))),
                }
                for step in figures.steps
            ],
            "jumps": plain(figures.jumps.own),
            "source_jumps": plain(figures.jumps.shared),
            "at_limits": {joint: float(at.mean()) for joint, at in figures.at_limits.items() if at.any()},
            "not_mapped": list(figures.unmapped),
        }  # fmt: skip

    @property
    def trunk_tilt(self) -> float | None:
        """Mean angle between the trunks of source and result, radians; None if they cannot be compared."""
        return next((limb.mean for limb in self.figures.limbs if limb.limb == "trunk"), None)

    def __repr__(self) -> str:
        """Return a text with verdict, clip and number of warnings."""
        return f"Judgement({self.verdict!r}, {self.figures.motion!r}, {counted(len(self.warnings), 'warning')})"


def _limb(limb: Limb) -> dict[str, Any]:
    """Return the angles of a limb or a finger as plain values."""
    angles = {"mean_deg": math.degrees(limb.mean), "largest_deg": math.degrees(limb.largest)}
    return {"limb": limb.limb, **angles, "frame": limb.frame}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines of text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def judge(
    motion: Motion,
    source: Motion | None = None,
    joint_map: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    up: str | None = None,
    source_up: str | None = None,
    flips: Sequence[int] | None = None,
    missed: Sequence[int] = (),
    errors: Any = None,
    world: World | None = None,
) -> Judgement:
    """Judge a clip: how close it is to its source, and whether it can be used.

    The judge compares the clips as they are, however the result was made. Without a source, it checks jumps, feet,
    crossed and overlapping limbs, limits, and whether the trunk is upside down. A clip is never good if it misses its
    goals, is far from the points that it was fitted to, or has a note that begins with ``Look at it:``. A clip of
    ``Motion.in_place`` is judged with its path over the ground, because its feet slide without this path; a note says
    so.

    Fingers that both bodies have are compared by the directions of their segments in the frame of the palm (see
    ``Hand.frame``). A hand whose fingers are off by more than 10° on average, or whose thumb is off by more than 15°,
    is worth a look; from 45° and 60° on it has failed.

    Args:
        motion: The clip.
        source: The clip that ``motion`` was made from, with as many frames; None without a source.
        joint_map: (source joint, own joint) by role, as in ``retarget``; None to match joints by their roles.
        up: The axis of the clip that points up, such as ``"z"``; None to find it.
        source_up: The same for the source.
        flips: Frames in which the fitted points are flipped; None to use those of a fitted motion.
        missed: Frames in which goals are missed, such as ``missed_frames`` of a tracked or retargeted motion.
        errors: Distances of the points that the clip was fitted to, (T, K), length units of the clip, NaN where a point
            was not seen; None to use those of a fitted motion.
        world: Steps and ramps on which the feet of the clip stand; None for a level floor.

    Raises:
        InputError: If a clip has no frames, the two differ in length, or an axis is not known.
        UnknownNameError: If the map names a part or a joint that does not exist.

    Returns:
        A ``Judgement``: a verdict (``"good"``, ``"look"`` or ``"failed"``) and its findings, the worst first.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> still = sy.Motion(body, [body.rest_pose().q] * 20, 30.0)
        >>> sy.judge(still, still).verdict
        'good'
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    whole = motion.with_root_motion() if isinstance(motion, InPlace) else motion
    if world is not None:
        check_kind("world", world, World, "sy.World({...}) is one")
    figures = Figures(whole, source, joint_map, (source_up, up), world)
    if isinstance(motion, Fitted):
        flips, errors = motion.flips if flips is None else flips, motion.errors if errors is None else errors
    made = [flipped(flips or (), len(motion)), goals_missed(missed, len(motion)), *doubts(motion.notes)]
    if errors is not None:
        made.append(apart(as_numbers(errors, (len(motion), -1), "errors", finite=False), figures))
    if isinstance(motion, InPlace):
        made.append(in_place())
    found = [*(one for one in made if one is not None), *find(figures)]
    return Judgement(figures, tuple(sorted(found, key=_rank)))


def _rank(finding: Finding) -> int:
    """Return the sort key of a finding, so that the worst comes first."""
    return -LEVELS.index(finding.level)
