"""Speed limits on the page: a switch, the limits, and a bar for each joint that shows how near it is to its limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from synovia.model import Skeleton
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.solving import Solving
from synovia.viewer.page.style import DIM, bars, note
from synovia.viewer.page.tab import Tab
from synovia.viewer.panel.controls import Field

_HINT: Final = "The body follows its targets as a robot would: no faster than its joints may move."
_WAITS: Final = "Without a clip, the body follows its targets within these limits."
_FIELDS: Final = {  # label and unit (for tooltips) of each setting
    "share": ("Of the file's velocities %", "Share of the joint velocities in the file of the model."),
    "velocity": ("Velocity rad/s", "Of joints without one in the file. Slides and the root: body sizes per second."),
    "acceleration": ("Acceleration rad/s²", "Of all joints. Slides and the root: body sizes/s²."),
    "jerk": ("Jerk rad/s³", "Of all joints; 0: no limit. Slides and the root: body sizes/s³."),
}


class Speed:
    """The speed limits of a tab.

    Args:
        tab: The tab.
        solving: The solver of the page.
        skeleton: The given skeleton.
    """

    def __init__(self, tab: Tab, solving: Solving, skeleton: Skeleton) -> None:
        """Add the controls."""
        self._solving = solving
        gui = tab.gui
        moving = [joint for joint in skeleton.joints if joint.kind.v_size and joint.mimic is None]
        known = {"share": any(joint.velocity is not None for joint in moving)}
        known["velocity"] = any(joint.velocity is None for joint in moving)
        self._on: Any = tab.connect(
            gui.add_checkbox("Speed limits", solving.limits.on, hint=_HINT), lambda on: self._set("on", on)
        )
        self._fields = {
            name: Field(
                tab, label, (getattr(solving.limits, name),), lambda typed, name=name: self._set(name, typed[0]),
                digits=None, hint=hint,
            )
            for name, (label, hint) in _FIELDS.items()
            if known.get(name, True)
        }  # fmt: skip
        self._bars: Any = gui.add_html("")
        self._show_fields()

    def _set(self, name: str, value: Any) -> None:
        """Change a setting."""
        if value != getattr(self._solving.limits, name):
            self._solving.set_limits(replace(self._solving.limits, **{name: value}))

    def _show_fields(self) -> None:
        """Show the fields of the limits if the limits are on, otherwise hide the fields."""
        limits = self._solving.limits
        self._on.value = limits.on
        for name, field in self._fields.items():
            field.visible = limits.on
            field.show((getattr(limits, name),))
        self._bars.visible = limits.on

    def show(self, frame: Frame) -> None:
        """Show the limits and the bars."""
        self._show_fields()
        if self._solving.limits.on:
            tick = frame.following
            rows = [] if tick is None else [(name, tick.limited.get(name, "")) for name in tick.speeds]
            shown = "" if tick is None else bars((name, limit, tick.speeds[name], limit) for name, limit in rows)
            self._bars.content = shown or note(_WAITS, DIM)
