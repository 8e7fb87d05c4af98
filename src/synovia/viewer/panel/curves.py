"""Curves of the selected joint over the frames of the clip, with its limits and the current frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from synovia.model.geometry import Array
from synovia.viewer.editing.clip.curves import Curve, Curves
from synovia.viewer.page.style import BLUE, DIM, GOOD, WARN, note, safe
from synovia.viewer.page.tab import Tab
from synovia.viewer.panel.controls import hidden_field, written

_INKS: Final = (GOOD, WARN, BLUE)
_WIDTH, _HEIGHT = 1000.0, 100.0  # size of the drawing, which the page stretches
_MARGIN: Final = 6.0  # empty space above and below the curves
_LEAST: Final = {"°": 10.0, "": 1e-3}  # smallest range of the axis, by unit
_NO_JOINT: Final = "Select a joint that moves: click it in the scene, or find it with J."


class CurvesView:
    """The curves of one tab.

    Args:
        tab: The tab.
        go: Called with the frame that the user clicks.
    """

    def __init__(self, tab: Tab, go: Callable[[int], Any]) -> None:
        """Add the curves."""
        self._uuid = hidden_field(tab, "Frame of the curves", lambda typed: go(typed[0]) if len(typed) == 2 else None)
        self._html: Any = tab.gui.add_html("", visible=False)

    def hide(self) -> None:
        """Hide the curves."""
        self._html.visible = False

    def show(self, joint: str, curves: Curves | None, last: int) -> None:
        """Show the curves of a joint.

        Args:
            joint: Name of the joint.
            curves: Curves of the joint; None if the joint does not move or no joint is selected.
            last: Last frame of the clip.
        """
        self._html.content = note(_NO_JOINT, DIM) if curves is None else curves_html(joint, curves, last, self._uuid)
        self._html.visible = True


def curves_html(joint: str, curves: Curves, last: int, uuid: str) -> str:
    """Return the curves of a joint as HTML.

    Thick lines show the edited values, thin lines the values of the clip itself, and dashed lines the limits.

    Args:
        joint: Name of the joint.
        curves: Curves of the joint.
        last: Last frame of the clip.
        uuid: Identifier of the text field that receives the frame that the user clicks.
    """
    low, high = _range(curves)
    lines: list[str] = []
    legend = [f"<b>{safe(joint)}</b>"]
    for ink, curve in zip(_INKS, curves.curves, strict=False):
        for limit in (curve.low, curve.high):
            if limit is not None and low <= limit <= high:
                y = _y(np.array([limit]), low, high)[0]
                lines.append(
                    f'<line x1="0" x2="{_WIDTH:g}" y1="{y:.1f}" y2="{y:.1f}" stroke="{ink}" stroke-dasharray="6 5"'
                    ' opacity=".6" vector-effect="non-scaling-stroke"/>'
                )
        if np.abs(curve.values - curve.clip).max(initial=0.0) > 0.0:
            lines.append(_line(curves.frames, curve.clip, (low, high), last, f'stroke="{ink}" opacity=".45"'))
        lines.append(_line(curves.frames, curve.values, (low, high), last, f'stroke="{ink}" stroke-width="2"'))
        legend.append(f'<span style="color:{ink}">{safe(_words(curve, curves.unit))}</span>')
    spoken = "; ".join(_words(curve, curves.unit) for curve in curves.curves)
    return (
        f'<div class="synovia-curves" data-uuid="{safe(uuid)}" data-last="{last}"><p>{"".join(legend)}</p>'
        f'<div><em style="top:0">{written((high,), 3 if not curves.unit else 0)}{curves.unit}</em>'
        f'<em style="bottom:0">{written((low,), 3 if not curves.unit else 0)}{curves.unit}</em>'
        f'<svg role="img" aria-label="{safe(joint)}: {safe(spoken)}" preserveAspectRatio="none"'
        f' viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}">{"".join(lines)}</svg></div></div>'
    )


def _words(curve: Curve, unit: str) -> str:
    """Return the name of a curve, its range, and its limits."""
    digits = 0 if unit else 3
    ends = f"{written((curve.values.min(),), digits)} to {written((curve.values.max(),), digits)}{unit}"
    limits = [written((limit,), digits) if limit is not None else "none" for limit in (curve.low, curve.high)]
    limited = "" if curve.low is None and curve.high is None else f" (limits {limits[0]}, {limits[1]})"
    return f"{curve.name} {ends}{limited}".strip()


def _range(curves: Curves) -> tuple[float, float]:
    """Return the ends of the axis, which covers all values, and the limits near these values."""
    values = np.concatenate([part for curve in curves.curves for part in (curve.values, curve.clip)])
    low, high = float(values.min()), float(values.max())
    wide = max(high - low, _LEAST[curves.unit])
    middle = 0.5 * (low + high)
    low, high = min(low, middle - 0.5 * wide), max(high, middle + 0.5 * wide)
    near = [
        limit
        for curve in curves.curves
        for limit in (curve.low, curve.high)
        if limit is not None and low - 0.5 * wide <= limit <= high + 0.5 * wide
    ]
    return min([low, *near]), max([high, *near])


def _y(values: Array, low: float, high: float) -> Array:
    """Return the y coordinates of values in the drawing, measured from its top."""
    part: Array = (values - low) / (high - low)
    return _HEIGHT - _MARGIN - part * (_HEIGHT - 2.0 * _MARGIN)


def _line(frames: Array, values: Array, ends: tuple[float, float], last: int, look: str) -> str:
    """Return a curve as an SVG polyline."""
    places = zip((_WIDTH * frames / max(last, 1)).tolist(), _y(values, *ends).tolist(), strict=True)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline fill="none" points="{points}" {look} vector-effect="non-scaling-stroke"/>'
