"""A finding: one fact about a clip that a user should know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from synovia.model.anatomy.feet import frames_text

LEVELS: Final = ("note", "look", "failed")
VERDICTS: Final = dict(zip(LEVELS, ("good", "look", "failed"), strict=True))


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about a clip that a user should know.

    Args:
        limb: The part of the body, ``"body"`` for all of it, or the name of a joint that belongs to no part.
        cause: The cause. Causes of edits are ``"missed"`` (a goal), ``"body"`` (a limb does not reach without the rest
            of the body), ``"jerk"`` (a joint accelerates suddenly in a fade), ``"limits"``, ``"feet"`` (a planted foot
            has moved), ``"stretch"`` (animated scale), ``"room"`` (a fade is longer than the clip), or ``"unit"`` (an
            offset that seems to be in another unit); see ``Judgement.findings`` and ``RetargetedHand.findings`` for
            other causes.
        level: ``"failed"``, ``"look"`` or ``"note"``; a note does not change the verdict.
        frames: The affected frames.
        text: A sentence with the figures.
        layer: Label of the affected layer of an edit; empty for the whole clip.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> still = sy.Motion(body, [body.rest_q] * 20, 30.0)
        >>> finding = sy.judge(still, still).findings[0]
        >>> finding.limb, finding.level, finding.text
        ('left_lower_arm', 'note', 'left_lower_arm is at a limit in 100 % of the frames')
    """

    limb: str
    cause: str
    level: str
    frames: tuple[int, ...]
    text: str
    layer: str = ""

    def __str__(self) -> str:
        """Return level, limb, sentence and frames."""
        where = f" ({frames_text(self.frames)})" if self.frames else ""
        layer = f"{self.layer}: " if self.layer else ""
        return f"{self.level}: {layer}{self.limb.replace('_', ' ')}: {self.text}{where}"

    def to_object(self) -> dict[str, Any]:
        """Return the finding as in JSON files, without an empty layer."""
        out = {"limb": self.limb, "cause": self.cause, "level": self.level, "frames": list(self.frames)}
        return {**out, "text": self.text} | ({"layer": self.layer} if self.layer else {})


def verdict_of(findings: Iterable[Finding]) -> str:
    """Return ``"good"``, ``"look"`` (look at it before you use it) or ``"failed"``: that of the worst finding."""
    return VERDICTS[LEVELS[max((LEVELS.index(one.level) for one in findings), default=0)]]
