"""Style of the panel, light and dark: the contrast of text is at least 4.5 to 1 (WCAG 2.2, level AA)."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import Final

# viser derives ten shades from a brand colour, which becomes the ninth. On a light page it fills and writes with the
# paler seventh, so the ninth must be nearly black. On a dark page it fills with the ninth and outlines with the fifth.
BRANDS: Final = {False: (0, 10, 9), True: (45, 212, 180)}

# Colours of text (held, missed, warning, secondary, third curve) on the light page (False) and the dark page (True).
INKS: Final[dict[bool, dict[str, str]]] = {
    False: {"good": "#007a69", "bad": "#c92a35", "warn": "#9a4c00", "dim": "#5f6b7a", "blue": "#2f5bd0"},
    True: {"good": "#2dd4b4", "bad": "#ff8a8a", "warn": "#ffa94d", "dim": "#a6b0bf", "blue": "#8fb4ff"},
}

PRIMARY: Final = "teal"  # colour of the filled button of a tab; the rules below use this name

_SHORTEST: Final = 8.0  # shortest display time of a message, seconds
_READING: Final = 14.0  # reading speed, characters per second

LARGEST_FILE: Final = 2**28  # bytes; largest file that a browser may send
# Rate (bytes per second) and first burst (bytes) of an upload, below the limits at which the server closes.
UPLOAD: Final = {"rate": 3 * 2**20, "burst": 8 * 2**20}

GOOD, BAD, WARN, DIM, BLUE = (f"var(--synovia-{name})" for name in INKS[False])

# Slider labels are below the track. The status line has a constant height, so that a message moves no control. A long
# message unfolds over the controls below while it is read, and later under the mouse; a click folds it. One button of a
# tab is filled; the others are outlined, unless they have their own colour. On a phone, the panel is as wide as the
# screen and leaves the upper half to the body. While a file is dragged over the page, an overlay shows that it may be
# dropped.
_RULES: Final = (
    ".mantine-Slider-markLabel{margin-top:7px}.mantine-Slider-mark{display:none}"
    ".mantine-Slider-root{padding-bottom:.9em}"
    ".synovia-status{position:relative;height:3.1em;z-index:9}"
    ".synovia-status>div{position:absolute;inset:0 0 auto;min-height:100%;max-height:100%;overflow-y:auto;"
    "scrollbar-width:thin;overflow-wrap:anywhere;background:var(--mantine-color-body);"
    "animation:synovia-unfold 8s step-end}"
    ".synovia-status>div:hover:not([data-folded]){max-height:50vh}.synovia-status>div[data-folded]{animation:none}"
    "@keyframes synovia-unfold{from{max-height:50vh;box-shadow:0 .6em .6em -.5em #0006}}"
    ".synovia-code{white-space:pre-wrap;overflow-wrap:anywhere;overflow-y:auto;max-height:50vh;font-size:.84em}"
    '[role="tablist"]>[role="tab"]{padding-inline:.48em!important}'
    '.mantine-Button-root[data-block]:not([style*="--button-bg"])'
    "{background:transparent;color:inherit;border:1px solid var(--mantine-color-default-border)}"
    '.mantine-Button-root[data-block]:not([style*="--button-bg"]):hover{background:var(--mantine-color-default-hover)}'
    f'.mantine-Button-root[data-block][style*="{PRIMARY}"]'
    "{background:var(--synovia-good);color:var(--mantine-color-body)}"
    ".synovia-tree{padding:.2em .6em .6em;font-size:.86em}.synovia-tree summary{cursor:pointer}"
    ".synovia-tree ul{list-style:none;margin:0;padding-left:1em}.synovia-tree li>button{margin-left:1em}"
    ".synovia-tree button{font:inherit;color:inherit;background:none;border:0;border-radius:3px;padding:.1em .4em;"
    "cursor:pointer;text-align:left}.synovia-tree button:hover{background:var(--mantine-color-default-hover)}"
    ".synovia-tree button[aria-current]{color:var(--synovia-good);font-weight:700}"
    ".synovia-tree>ul{max-height:40vh;overflow-y:auto;padding-left:0}"
    ".synovia-tree>input{width:100%;box-sizing:border-box;margin:.4em 0;padding:.35em .6em;font:inherit;color:inherit;"
    "background:var(--mantine-color-body);border:1px solid var(--mantine-color-default-border);border-radius:3px}"
    "#root{height:calc(100% - var(--tl-height,0px))!important}"
    ".synovia-speed{padding:.2em .6em .6em;font-size:.8em;max-height:40vh;overflow-y:auto;scrollbar-width:thin}"
    ".synovia-speed>div{display:flex;align-items:center;gap:.6em;height:1.5em}"
    ".synovia-speed b{width:8.5em;font-weight:400;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}"
    ".synovia-speed span{flex:1;height:.5em;border-radius:.25em;background:var(--mantine-color-default-border)}"
    ".synovia-speed i{display:block;height:100%;border-radius:.25em;background:var(--synovia-good)}"
    ".synovia-speed em{width:6em;font-style:normal;color:var(--synovia-warn)}"
    '.synovia-speed [data-limit]:not([data-limit=""]) i{background:var(--synovia-warn)}'
    '.synovia-speed [data-limit="recovering"] i{background:var(--synovia-bad)}'
    ".synovia-bar{height:4px;border-radius:2px;background:var(--mantine-color-default-border);margin:.3em .6em}"
    ".synovia-bar>div{height:100%;border-radius:2px;background:var(--synovia-good)}"
    "@media(max-width:640px){"
    '.mantine-Paper-root[style*="position: fixed"][style*="bottom: 0px"]'
    "{left:0;width:auto!important;bottom:var(--tl-height,0px)!important;max-height:max(9em,calc(56vh - var(--tl-height,0px)))!important}"
    '.mantine-Paper-root[style*="position: fixed"] [style*="width: 20em"]{width:100%!important}}'
    "body.synovia-drop::after{content:'Drop the file to open it';position:fixed;inset:0;z-index:1000;"
    "display:grid;place-items:center;font-size:1.4em;color:#fff;background:#0b5c51cc;pointer-events:none}"
    ".synovia-notice{position:fixed;bottom:1em;left:1em;max-width:min(30em,80vw);z-index:1000;padding:.8em 1em;"
    "border-radius:6px;color:#fff;background:#8f1d26;overflow-wrap:anywhere}"
)


def style(title: str) -> str:
    """Return HTML that sets the style of the page and the title of the browser's tab, and runs ``browser.js``.

    viser has no functions for this.

    Args:
        title: The title, any text.
    """
    rules = _RULES
    for dark, scheme in ((False, "light"), (True, "dark")):
        inks = ";".join(f"--synovia-{name}:{colour}" for name, colour in INKS[dark].items())
        rules += f':root[data-mantine-color-scheme="{scheme}"]{{{inks};--mantine-color-dimmed:{DIM}!important}}'
    folder = files("synovia.viewer")
    timeline, look, code = (
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("timeline/timeline.js", "timeline/timeline.css", "page/browser.js")
    )
    limits = json.dumps({"largest": LARGEST_FILE, **UPLOAD})
    script = html.escape(
        f"document.title={json.dumps(title)};window.synoviaLimits={limits};{timeline}{code}", quote=True
    )
    return f'<style onload="{script}">{rules}{look}</style>'


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


def reading_time(text: str) -> float:
    """Return the display time of a message in seconds, long enough for slow readers."""
    return max(_SHORTEST, len(text) / _READING)
