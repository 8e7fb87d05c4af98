"""The time line: its colours, its findings, and what a browser may send."""

import re
from importlib.resources import files

import pytest

from synovia.model.finding import Finding
from synovia.viewer.page.style import INKS, PAPERS
from synovia.viewer.timeline.timeline import findings_of


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2)."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[k : k + 2], 16) / 255.0 for k in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_a_contrast_of_at_least_4_5(dark: bool) -> None:
    colours = {**INKS[dark], **PAPERS[dark]}
    for text, below in [*((text, below) for text in INKS[dark] for below in ("paper", "row")), ("on", "good")]:
        high, low = sorted((luminance(colours[text]), luminance(colours[below])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, below)


def test_all_pages_take_their_colours_from_one_palette() -> None:
    for name in ("timeline/timeline.css", "offline_page/page.css", "page/page.css"):
        rules = files("synovia.viewer").joinpath(name).read_text(encoding="utf-8")
        assert set(re.findall(r"var\(--synovia-(\w+)", rules)) <= {*INKS[False], *PAPERS[False]}


def test_findings_are_runs_of_frames_with_their_layer_and_limb() -> None:
    seen = Finding("left_hand", "missed", "look", (3, 4, 5, 9), "it misses by 3 cm", "wave")
    whole = Finding("body", "unit", "note", (), "it is in another unit")
    (row,) = findings_of([seen, whole])
    assert row["spans"] == [[3, 5], [9, 9]]
    assert row["text"] == "wave: left hand: it misses by 3 cm"
