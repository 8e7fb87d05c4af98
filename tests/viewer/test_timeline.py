"""The time line: its colours, its findings, and what a browser may send."""

import re
from importlib.resources import files

import pytest

from synovia.model.finding import Finding
from synovia.viewer.timeline.timeline import findings_of

STYLE = files("synovia.viewer.timeline").joinpath("timeline.css").read_text(encoding="utf-8")


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2)."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[k : k + 2], 16) / 255.0 for k in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["light", "dark", "dark offline"])
def test_text_has_a_contrast_of_at_least_4_5(mode: int) -> None:
    rules = re.findall(r"\{ (--tl-ink:[^}]*) \}", STYLE)
    assert len(rules) == 3
    colours = dict(re.findall(r"--tl-(\w+): (#\w+)", rules[mode]))
    pairs = [(text, below) for text in ("ink", "quiet", "mark", "warn", "bad", "blue") for below in ("paper", "row")]
    for text, below in [*pairs, ("on", "mark")]:
        high, low = sorted((luminance(colours[text]), luminance(colours[below])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, below)


def test_findings_are_runs_of_frames_with_their_layer_and_limb() -> None:
    seen = Finding("left_hand", "missed", "look", (3, 4, 5, 9), "it misses by 3 cm", "wave")
    whole = Finding("body", "unit", "note", (), "it is in another unit")
    (row,) = findings_of([seen, whole])
    assert row["spans"] == [[3, 5], [9, 9]]
    assert row["text"] == "wave: left hand: it misses by 3 cm"
