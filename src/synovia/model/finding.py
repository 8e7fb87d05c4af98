"""What results say: findings, each one fact about a clip, and reports, as a text and as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, Self, cast

import numpy as np

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


class Report(str):
    """What a result says of itself: a text for people, and the same facts as plain values.

    Args:
        lines: Lines of the text.
        facts: The facts by name, as in ``--json``: numbers, texts, lists and dictionaries.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> report = sy.judge(sy.Motion(body, [body.rest_q] * 20, 30.0)).report()
        >>> print(report.splitlines()[0])
        verdict: good
        >>> report.to_object()["verdict"]
        'good'
    """

    __slots__ = ("facts",)

    facts: Mapping[str, Any]

    def __new__(cls, lines: Iterable[str], facts: Mapping[str, Any]) -> Self:
        """Join the lines."""
        out = super().__new__(cls, "\n".join(lines))
        out.facts = dict(facts)
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by text and facts."""
        return type(self), ([str(self)], self.facts)

    def to_object(self) -> dict[str, Any]:
        """Return the facts as in ``--json``."""
        return dict(self.facts)


def plain(value: Any, *names: str) -> Any:
    """Return a value as JSON values: arrays and tuples as lists, objects as the dictionary of their fields.

    Args:
        value: The value.
        names: Attributes of an object to take; none for all its fields.
    """
    if names:
        return {name: plain(getattr(value, name)) for name in names}
    if hasattr(value, "to_object"):
        return value.to_object()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return cast("Any", value).tolist()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(one) for one in cast("Sequence[Any]", value)]
    return value
