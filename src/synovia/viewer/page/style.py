"""Style of the panel, light and dark: the contrast of text is at least 4.5 to 1 (WCAG 2.2, level AA)."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Final

# viser derives ten shades from a brand colour, which becomes the ninth. On a light page it fills and writes with the
# paler seventh, so the ninth must be nearly black. On a dark page it fills with the ninth and outlines with the fifth.
BRANDS: Final = {False: (0, 10, 9), True: (45, 212, 180)}

# The palette of all pages, light (False) and dark (True). Texts: plain, secondary, held, missed, warning, third curve.
INKS: Final[dict[bool, dict[str, str]]] = {
    False: {"ink": "#1e2734", "dim": "#566171", "good": "#00705f", "bad": "#c0282f", "warn": "#9a4c00",
            "blue": "#2f5bd0"},
    True: {"ink": "#ecf1f8", "dim": "#a6b0bf", "good": "#2dd4b4", "bad": "#ff8a8a", "warn": "#ffa94d",
           "blue": "#8fb4ff"},
}  # fmt: skip
PAPERS: Final = {  # and paper, rows, lines, and the text on a filled button
    False: {"paper": "#fbfcfd", "row": "#eef2f6", "line": "#cdd6e0", "on": "#fff"},
    True: {"paper": "#1d2127", "row": "#282e37", "line": "#404956", "on": "#06231d"},
}

PRIMARY: Final = "teal"  # colour of the filled button of a tab; ``page.css`` uses this name

_SHORTEST: Final = 8.0  # shortest display time of a message, seconds
_READING: Final = 14.0  # reading speed, characters per second

LARGEST_FILE: Final = 2**28  # bytes; largest file that a browser may send
# Rate (bytes per second) and first burst (bytes) of an upload, below the limits at which the server closes.
UPLOAD: Final = {"rate": 3 * 2**20, "burst": 8 * 2**20}

DIM, GOOD, BAD, WARN = (f"var(--synovia-{name})" for name in ("dim", "good", "bad", "warn"))


def style(title: str) -> str:
    """Return HTML that sets the style of the page and the title of the browser's tab, and runs ``browser.js``.

    viser has no functions for this.

    Args:
        title: The title, any text.
    """
    folder = files("synovia.viewer")
    timeline, look, code, rules = (
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("timeline/timeline.js", "timeline/timeline.css", "page/browser.js", "page/page.css")
    )
    for dark, scheme in ((False, "light"), (True, "dark")):
        dimmed = f"--mantine-color-dimmed:{DIM}!important"
        rules += f':root[data-mantine-color-scheme="{scheme}"]{{{palette(dark=dark)};{dimmed}}}'
    limits = json.dumps({"largest": LARGEST_FILE, **UPLOAD})
    script = html.escape(
        f"document.title={json.dumps(title)};window.synoviaLimits={limits};{timeline}{code}", quote=True
    )
    return f'<style onload="{script}">{rules}{look}</style>'


def palette(*, dark: bool) -> str:
    """Return the palette of a page as CSS variables."""
    return ";".join(f"--synovia-{name}:{colour}" for name, colour in {**INKS[dark], **PAPERS[dark]}.items())


def safe(text: object) -> str:
    """Return a text with HTML escaped."""
    return html.escape(str(text), quote=True)


def note(text: str, colour: str = "inherit") -> str:
    """Return a small paragraph of HTML; ``text`` must be safe HTML."""
    return (
        '<div style="padding:0.15em 0.6em 0.45em 0.6em;font-size:0.86em;line-height:1.45;overflow-wrap:anywhere;'
        f'color:{colour}">{text}</div>'
    )


def status_line(content: str, attributes: str = "") -> str:
    """Return the status line of a page, which unfolds if its content is long.

    Args:
        content: Safe HTML.
        attributes: HTML attributes for the scripts of the page.
    """
    seconds = reading_time(re.sub("<[^>]*>", "", content))
    return (
        f'<div class="synovia-status" {attributes}><div style="animation-duration:{seconds:.0f}s">{content}</div></div>'
    )


def bars(rows: Iterable[tuple[str, str, float, str]]) -> str:
    """Return bars as HTML, from name, text, filled fraction, and the limit that is near ("" for an ordinary bar)."""
    out: list[str] = []
    for name, text, share, limit in rows:
        width = 100.0 * min(max(share, 0.0), 1.0)
        out.append(
            f'<div data-limit="{safe(limit)}"><b title="{safe(name)}">{safe(name)}</b>'
            f'<span role="img" aria-label="{safe(name)}: {width:.0f} % {safe(text)}">'
            f'<i style="width:{width:.0f}%"></i></span>'
            f'<em style="{"" if limit else "color:inherit"}">{safe(text)}</em></div>'
        )
    return f'<div class="synovia-speed">{"".join(out)}</div>'


def reading_time(text: str) -> float:
    """Return the display time of a message in seconds, long enough for slow readers."""
    return max(_SHORTEST, len(text) / _READING)
