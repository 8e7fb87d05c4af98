"""Style of the panel, light and dark: the contrast of text is at least 4.5 to 1 (WCAG 2.2, level AA)."""

from __future__ import annotations

import html
import json
from typing import Final

# viser derives ten shades from a brand colour, which becomes the ninth. On a light page it fills and writes with the
# paler seventh, so the ninth must be nearly black. On a dark page it fills with the ninth and outlines with the fifth.
BRANDS: Final = {False: (0, 10, 9), True: (45, 212, 180)}

# Colours of text (held, missed, warning, secondary) on the light page (False) and the dark page (True).
INKS: Final[dict[bool, dict[str, str]]] = {
    False: {"good": "#007a69", "bad": "#c92a35", "warn": "#9a4c00", "dim": "#5f6b7a"},
    True: {"good": "#2dd4b4", "bad": "#ff8a8a", "warn": "#ffa94d", "dim": "#a6b0bf"},
}

GOOD, BAD, WARN, DIM = (f"var(--synovia-{name})" for name in INKS[False])

# Slider labels go below the track. The status line has a constant height, so that a message moves no control.
_RULES: Final = (
    ".mantine-Slider-markLabel{margin-top:7px}.mantine-Slider-mark{display:none}"
    ".mantine-Slider-root{padding-bottom:.9em}"
    ".synovia-status{height:3.1em;overflow-y:auto;scrollbar-width:thin}"
    ".synovia-code{white-space:pre-wrap;overflow-wrap:anywhere;overflow-y:auto;max-height:50vh;font-size:.84em}"
)


def style(title: str) -> str:
    """Return HTML that sets the style of the page and the title of the browser's tab; viser has no function for these.

    Args:
        title: The title, any text.
    """
    rules = _RULES
    for dark, scheme in ((False, "light"), (True, "dark")):
        inks = ";".join(f"--synovia-{name}:{colour}" for name, colour in INKS[dark].items())
        rules += f':root[data-mantine-color-scheme="{scheme}"]{{{inks};--mantine-color-dimmed:{DIM}!important}}'
    script = html.escape(f"document.title={json.dumps(title)}", quote=True)
    return f'<style onload="{script}">{rules}</style>'


def safe(text: object) -> str:
    """Return a text with HTML escaped."""
    return html.escape(str(text), quote=True)


def note(text: str, colour: str = "inherit") -> str:
    """Return a small paragraph of HTML; ``text`` must be safe HTML."""
    return (
        f'<div style="padding:0.15em 0.6em 0.45em 0.6em;font-size:0.86em;line-height:1.45;color:{colour}">{text}</div>'
    )
